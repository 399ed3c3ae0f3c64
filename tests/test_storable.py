# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What is stored of a document: JSON, as Haystack and Qdrant's client would say it."""

import json
import math
from collections import deque
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from ipaddress import ip_address
from pathlib import Path, PureWindowsPath
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from haystack import Document
from haystack.dataclasses import ByteStream, SparseEmbedding
from haystack.document_stores.errors import DocumentStoreError
from haystack.document_stores.in_memory import InMemoryDocumentStore
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from hichunk_haystack.components.preprocessors import TokenHierarchicalSplitter
from hichunk_haystack.components.writers import HierarchyWriter
from hichunk_haystack.storable import UnstorableError, storable, storable_value


class Kind(str, Enum):  # noqa: UP042 - `str()` of it is not its value
    PAGE = "page"


class Rank(IntEnum):
    FIRST = 1


@dataclass
class Author:
    name: str
    born: date


class Licence(BaseModel):
    name: str


class NotATime(datetime):
    """As pandas has it: a time that is not equal to itself."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return False

    def __ne__(self, other: object) -> bool:
        return True


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (Path("docs/kiln.md"), "docs/kiln.md"),
        (PureWindowsPath("c:/kiln.md"), "c:\\kiln.md"),
        (datetime(2026, 11, 30, 12, tzinfo=UTC), "2026-11-30T12:00:00+00:00"),
        (date(2026, 11, 30), "2026-11-30"),
        (time(9, 30), "09:30:00"),
        (timedelta(days=1), "P1D"),  # ISO 8601
        (NotATime(2026, 1, 1), None),
        (UUID(int=3), "00000000-0000-0000-0000-000000000003"),
        (Decimal("1.50"), "1.50"),
        ({"b", "a", "c"}, ["a", "b", "c"]),
        ({"b", 1}, ["b", 1]),  # as their JSON sorts: a quote before a digit
        ((1, (2,)), [1, [2]]),
        (deque([1, 2]), [1, 2]),
        (b"kiln", "kiln"),
        (bytearray("ä".encode()), "ä"),
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.float64("nan"), None),
        (np.bool_(True), True),
        (np.str_("kiln"), "kiln"),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.datetime64("2026-11-30"), "2026-11-30"),
        (math.nan, None),
        ([1.5, -math.inf], [1.5, None]),
        (Kind.PAGE, "page"),
        (Rank.FIRST, 1),
        (Author("Ana", date(1990, 1, 2)), {"name": "Ana", "born": "1990-01-02"}),
        (Licence(name="MIT"), {"name": "MIT"}),
        (ip_address("127.0.0.1"), "127.0.0.1"),
        (
            {1: "a", "x": "b", None: "c", 2.5: "d", Kind.PAGE: "e"},
            {"1": "a", "x": "b", "null": "c", "2.5": "d", "page": "e"},
        ),
        ("cut \ud83d off", "cut \\ud83d off"),
        ({"\udce9": ["\udce9"]}, {"\\udce9": ["\\udce9"]}),
    ],
)
def test_a_value_with_one_plain_form_is_stored_in_it(value: Any, stored: Any) -> None:
    found = storable_value(value)
    assert found == stored
    assert type(found) is type(stored)
    document = storable(Document(id="x", content="x", meta={"k": value}))
    json.dumps(document.meta, allow_nan=False, ensure_ascii=False).encode("utf-8")


def _circle() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


def _deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (object(), "holds a object, which JSON has no way to say"),
        (len, "holds a builtin_function_or_method"),
        (iter([1]), "holds a list_iterator"),
        ((each for each in [1]), "holds a generator"),
        (b"\xff\xfe", "holds bytes that are no text in UTF-8"),
        ({(1, 2): 3}, r"has the key \(1, 2\), and keys of JSON are texts"),
        (_circle(), "is nested more than 100 levels deep"),
        (_deep(110), "is nested more than 100 levels deep"),
        (_deep(5000), "is nested more than 100 levels deep"),
    ],
)
def test_a_value_without_one_is_named_with_its_field(value: Any, says: str) -> None:
    with pytest.raises(UnstorableError, match=f"its meta field 'owner' {says}"):
        storable(Document(id="x", content="x", meta={"file_path": "a.md", "owner": value}))


def test_what_is_plain_already_is_the_same_object() -> None:
    document = Document(content="ä😀", meta={"a": [1, 2.5, None, {"b": "c"}]}, embedding=[0.5])
    assert storable(document) is document
    many = Document(content="x", meta={"many": [[number] for number in range(500)]})
    assert storable(many).meta == many.meta


def test_text_keeps_its_length_and_the_caller_his_document() -> None:
    meta = {"path": Path("a"), "lists": [{1}]}
    document = Document(id="x", content="a\ud83d b", meta=meta, blob=ByteStream(b"x", meta={"at": Path("b")}))
    found = storable(document)
    assert (found.id, found.content, found.meta) == ("x", "a\ufffd b", {"path": "a", "lists": [[1]]})
    assert found.blob is not None
    assert found.blob.meta == {"at": "b"}
    assert document.content == "a\ud83d b"
    assert meta == {"path": Path("a"), "lists": [{1}]}


@pytest.mark.parametrize("number", [math.nan, math.inf, None, "1"])
def test_a_vector_that_no_search_can_use_is_refused(number: Any) -> None:
    with pytest.raises(UnstorableError, match="an embedding holds"):
        storable(Document(content="x", embedding=[0.5, number]))
    with pytest.raises(UnstorableError, match="a sparse embedding holds"):
        storable(Document(content="x", sparse_embedding=SparseEmbedding([1, 2], [0.5, number])))


def test_numbers_that_add_up_to_infinity_are_no_infinity() -> None:
    document = Document(content="x", embedding=[1e308, 1e308])
    assert storable(document) is document


def test_an_id_without_a_utf_8_form_is_refused() -> None:
    with pytest.raises(UnstorableError, match="the id '\\\\ud800' has no UTF-8 form"):
        storable(Document(id="\ud800", content="x"))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates() | st.decimals(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.sets(st.integers()),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), VALUES, max_size=4))
@settings(max_examples=60, deadline=None)
def test_what_comes_out_is_json_and_stays_as_it_is(meta: dict[str, Any]) -> None:
    try:
        document = storable(Document(id="x", content="x", meta=meta))
    except UnstorableError:
        return
    text = json.dumps(document.meta, allow_nan=False, ensure_ascii=False)
    text.encode("utf-8")
    assert storable(document) is document or storable(document).meta == json.loads(text)


class Broken:
    """An object of which nothing can be had."""

    def __repr__(self) -> str:
        raise OSError

    __str__ = __repr__

    def tolist(self) -> list[int]:
        raise OSError


class BrokenMapping(dict[str, int]):
    def items(self) -> Any:
        raise OSError


ODD = {
    "object": Broken(), "list": [Broken()], "mapping": BrokenMapping(a=1), "large": 10**400, "huge": 10**5000,
    "below": {"n": -(10**30)},
}  # fmt: skip


@pytest.mark.parametrize("value", ODD.values(), ids=ODD)
def test_what_can_not_be_read_or_is_too_large_is_refused_by_its_field(value: Any) -> None:
    with pytest.raises(UnstorableError, match="its meta field 'odd' "):
        storable(Document(id="x", content="x", meta={"fine": 1, "odd": value}))


@pytest.mark.parametrize("number", [-(1 << 63), (1 << 64) - 1, 10**18])
def test_whole_numbers_of_64_bits_stay_what_they_are(number: int) -> None:
    document = Document(id="x", content="x", meta={"number": number, "text": "1" * 40})
    assert storable(document).meta == document.meta


@pytest.mark.parametrize("value", ODD.values(), ids=ODD)
def test_a_source_with_such_a_value_does_not_keep_the_others_from_being_written(value: Any) -> None:
    store = InMemoryDocumentStore()
    splitter = TokenHierarchicalSplitter()
    good = splitter.run([Document(content="Fire it slowly.", meta={"file_path": "good.md"})])["documents"]
    odd = splitter.run([Document(content="Dip the pot.", meta={"file_path": "odd.md", "odd": 1})])["documents"]
    odd = [replace(node, meta={**node.meta, "odd": value}) for node in odd]
    with pytest.raises(DocumentStoreError, match=r"odd\.md"):
        HierarchyWriter(store).run([*odd, *good])
    assert {node.meta["file_path"] for node in store.filter_documents()} == {"good.md"}
