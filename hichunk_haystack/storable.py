# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What of a document a store can hold: JSON, texts that have a UTF-8 form, and numbers."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import date, time
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from haystack import Document
from pydantic_core import to_jsonable_python

from hichunk_haystack.unicode import well_formed

# A Qdrant server reads JSON down to 128 levels, and the request around a document's meta has some of its own.
_MOST_LEVELS = 100

_LONG_NUMBER = re.compile(r"\d{19}")

_ENCODE = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


class UnstorableError(ValueError):
    """Something in a document that no store can hold; the message names it and the way out."""


def storable(document: Document) -> Document:
    """
    Give a document as a store can hold it, the same in every store.

    Meta becomes JSON where there is one plain way to say it (`storable_value`), as Haystack and Qdrant's client say it
    too. A lone surrogate in the text, which has no UTF-8 form, becomes U+FFFD, so that offsets stay true.

    ```python
    from datetime import date
    from pathlib import Path

    from haystack import Document

    from hichunk_haystack.storable import storable

    page = Document(content="Fire it slowly.", meta={"file_path": Path("kiln.md"), "read": date(2026, 11, 30)})
    print(storable(page).meta)  # {'file_path': 'kiln.md', 'read': '2026-11-30'}
    ```

    :param document: Any document. It is not changed.
    :returns: The same object where nothing had to be done, else another document with the same id.
    :raises UnstorableError: If there is something that can't be stored.
    """
    try:
        document.id.encode("utf-8")
    except UnicodeEncodeError:
        msg = f"the id {document.id!r} has no UTF-8 form; give the document another one"
        raise UnstorableError(msg) from None
    _check_numbers(document.embedding, "an embedding")
    if document.sparse_embedding is not None:
        _check_numbers(document.sparse_embedding.values, "a sparse embedding")
    changes: dict[str, Any] = {}
    if not _is_plain(document.meta):
        changes["meta"] = storable_meta(document.meta)
    if document.content is not None and (text := well_formed(document.content)) != document.content:
        changes["content"] = text
    if document.blob is not None and not _is_plain(document.blob.meta):
        changes["blob"] = replace(document.blob, meta=storable_meta(document.blob.meta))
    if document.score is not None and type(document.score) not in (float, int):
        changes["score"] = storable_value(document.score)
    return replace(document, **changes) if changes else document


def storable_meta(meta: Mapping[Any, Any]) -> dict[str, Any]:
    """
    Turn the meta of a document into JSON.

    :param meta: Any meta.
    :returns: Plain data.
    :raises UnstorableError: If a value can't be stored; the message names the field.
    """
    plain = {}
    for name, value in meta.items():
        try:
            plain[_key(name)] = storable_value(value)
        except UnstorableError as error:
            msg = f"its meta field {name!r} {error}; make it a text, a number, a list or a dictionary, or leave it out"
            raise UnstorableError(msg) from None
    return plain


def storable_value(value: Any) -> Any:
    """
    Turn a value into JSON, where there is one plain way to say it.

    Paths, UUIDs and decimals become texts, times ISO 8601, bytes the text that they are in UTF-8; tuples and sets
    (sorted) become lists, dataclasses dictionaries, members of an enumeration their values, numbers and arrays of NumPy
    those of Python. NaN and infinities, which JSON does not know, become `None`. A lone surrogate is written out, as in
    `\\udce9`: it stands in paths whose bytes are no text, and these have to stay apart.

    :param value: Any value.
    :returns: Dictionaries, lists, texts, numbers, booleans and `None`.
    :raises UnstorableError: If there is no such way.
    """
    try:
        return _plain(value, 0)
    except UnstorableError:
        raise
    except Exception as error:  # whatever a foreign object raises
        msg = f"holds a {type(value).__name__} that can't be read ({type(error).__name__})"
        raise UnstorableError(msg) from error


def _plain(value: Any, level: int) -> Any:
    if level > _MOST_LEVELS:
        msg = f"is nested more than {_MOST_LEVELS} levels deep"
        raise UnstorableError(msg)
    if isinstance(value, Enum):
        return _plain(value.value, level + 1)
    if value is None or isinstance(value, bool | int | float | str):
        return _scalar(value)
    if isinstance(value, Mapping):
        return {_key(key): _plain(each, level + 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each, level + 1) for each in value]
    if isinstance(value, set | frozenset):
        return _sorted(_plain(each, level + 1) for each in value)
    return _taken_apart(value, level)


def _scalar(value: bool | float | str | None) -> bool | float | str | None:
    """Python's own kind of it: NumPy has subclasses of some."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, bool):
        return value
    if not -(1 << 63) <= value < 1 << 64:
        msg = "holds a whole number of more than 64 bits"
        raise UnstorableError(msg)
    return int(value)


def _taken_apart(value: Any, level: int) -> Any:
    if isinstance(value, PurePath | UUID | Decimal):
        return _text(str(value))
    if isinstance(value, date | time):
        # pandas' "not a time" is not equal to itself
        return value.isoformat() if value == value else None  # noqa: PLR0124
    if isinstance(value, bytes | bytearray | memoryview):
        try:
            return bytes(value).decode("utf-8")
        except UnicodeDecodeError:
            msg = "holds bytes that are no text in UTF-8"
            raise UnstorableError(msg) from None
    if callable(getattr(value, "tolist", None)):  # NumPy's numbers and arrays
        listed = value.tolist()
        if not isinstance(listed, type(value)):
            return _plain(listed, level + 1)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name), level + 1) for field in fields(value)}
    msg = f"holds a {type(value).__name__}, which JSON has no way to say"
    if isinstance(value, Iterator):  # can be read once, and a tree has many nodes
        raise UnstorableError(msg)
    try:
        plain = to_jsonable_python(value)
    except Exception as error:  # whatever a foreign object raises
        raise UnstorableError(msg) from error
    return _plain(plain, level + 1)


def _is_plain(meta: dict[str, Any]) -> bool:
    """The quick way: nearly all meta is JSON already."""
    try:
        text = _ENCODE(meta)
        text.encode("utf-8")
    except Exception:  # whatever a foreign object raises
        return False
    if _LONG_NUMBER.search(text):
        return False
    return text.count("[") + text.count("{") <= _MOST_LEVELS and all(isinstance(name, str) for name in meta)


def _key(key: Any) -> str:
    if isinstance(key, str) and not isinstance(key, Enum):
        return _text(key)
    plain = storable_value(key)
    if isinstance(plain, dict | list):
        msg = f"has the key {key!r}, and keys of JSON are texts"
        raise UnstorableError(msg)
    return plain if isinstance(plain, str) else json.dumps(plain)


def _text(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _sorted(values: Iterable[Any]) -> list[Any]:
    """The same order in every process, which that of a set is not."""
    found = list(values)
    try:
        return sorted(found)
    except TypeError:
        return sorted(found, key=lambda value: json.dumps(value, sort_keys=True))


def _check_numbers(numbers: Any, name: str) -> None:
    if numbers is None:
        return
    try:
        if math.isfinite(sum(numbers)) or all(map(math.isfinite, numbers)):
            return
        wrong = "NaN or infinity"
    except (TypeError, ValueError):
        wrong = "something that is no number"
    msg = f"{name} holds {wrong}; see what the embedder makes of the text"
    raise UnstorableError(msg)
