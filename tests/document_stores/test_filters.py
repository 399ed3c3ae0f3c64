# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from pathlib import Path
from typing import Any

import pytest
from haystack import Document
from haystack.document_stores.in_memory import InMemoryDocumentStore
from hypothesis import given, settings
from hypothesis import strategies as st
from qdrant_client.http import models as rest
from qdrant_client.local.payload_filters import check_filter

from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from hichunk_haystack.document_stores._filters import compact_filter, quick_test


def test_a_list_of_values_is_one_condition() -> None:
    found = compact_filter(
        {
            "operator": "AND",
            "conditions": [
                {"field": "meta.tree", "operator": "not in", "value": ["a", "b"]},
                {"field": "meta.path", "operator": "in", "value": ["x", "y", "z"]},
            ],
        }
    )
    assert found == rest.Filter(
        must=[
            rest.Filter(must_not=[rest.FieldCondition(key="meta.tree", match=rest.MatchAny(any=["a", "b"]))]),
            rest.FieldCondition(key="meta.path", match=rest.MatchAny(any=["x", "y", "z"])),
        ]
    )


def test_qdrants_own_filters_and_none_are_taken() -> None:
    own = rest.Filter(must=[rest.FieldCondition(key="meta.a", range=rest.Range(lt=3))])
    assert compact_filter(own) == own
    assert compact_filter(None) is None


terms = st.recursive(
    st.builds(
        lambda field, operator, value: {"field": f"meta.{field}", "operator": operator, "value": value},
        st.sampled_from("ab"),
        st.sampled_from(["in", "not in"]),
        st.lists(st.integers(0, 3), min_size=1, max_size=3) | st.lists(st.sampled_from("xyz"), min_size=1, max_size=3),
    )
    | st.builds(
        lambda field, operator, value: {"field": f"meta.{field}", "operator": operator, "value": value},
        st.sampled_from("ab"),
        st.sampled_from(["==", "!="]),
        st.integers(0, 3) | st.sampled_from("xyz"),
    ),
    lambda inner: st.builds(
        lambda operator, conditions: {"operator": operator, "conditions": conditions},
        st.sampled_from(["AND", "OR", "NOT"]),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=5,
)
metas = st.dictionaries(st.sampled_from("ab"), st.integers(0, 3) | st.sampled_from("xyz"))


@settings(max_examples=40)
@given(terms, st.lists(metas, max_size=6))
def test_the_same_documents_are_deleted_as_by_haystacks_own_filter(term: dict[str, Any], all_meta: list[Any]) -> None:
    documents = [Document(id=str(number), content="x", meta=meta) for number, meta in enumerate(all_meta)]
    store = HierarchyQdrantDocumentStore(location=":memory:", embedding_dim=2)
    store.write_documents(documents)
    stock = {document.id for document in store.filter_documents(term)}
    assert store.delete_by_filter(term) == len(stock)
    assert {document.id for document in store.filter_documents()} == {each.id for each in documents} - stock
    store.close()


def test_negations_hold_where_a_field_is_missing() -> None:
    documents = [Document(id="with", content="x", meta={"tree": "a"}), Document(id="without", content="x")]
    term = {"field": "meta.tree", "operator": "not in", "value": ["a", "b"]}
    for store in (HierarchyQdrantDocumentStore(location=":memory:", embedding_dim=2), InMemoryDocumentStore()):
        store.write_documents(documents)
        assert store.delete_by_filter(term) == 1
        assert [document.id for document in store.filter_documents()] == ["with"]


# -- filters as functions

testable = st.recursive(
    st.builds(
        lambda field, operator, values: {"field": field, "operator": operator, "value": values},
        st.sampled_from(["meta.a", "meta.b", "meta.deep.c", "id"]),
        st.sampled_from(["in", "not in"]),
        st.lists(st.integers(0, 3), min_size=1, max_size=3) | st.lists(st.sampled_from("xyz"), min_size=1, max_size=3),
    )
    | st.builds(
        lambda field, value: {"field": field, "operator": "==", "value": value},
        st.sampled_from(["meta.a", "meta.deep.c", "id"]),
        st.integers(0, 3) | st.sampled_from("xyz"),
    ),
    lambda inner: st.builds(
        lambda operator, conditions: {"operator": operator, "conditions": conditions},
        st.sampled_from(["AND", "OR"]),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=5,
)
VALUES = [None, 0, 1, 2, 1.0, True, "x", "y", "", [1, "x"], [], [["y"]], {"c": 1}]


@given(filters=testable)
@settings(max_examples=60, deadline=None)
def test_a_filter_as_a_function_finds_what_the_engine_finds(filters: Any) -> None:
    test = quick_test(filters)
    assert test is not None
    payloads = [{"meta": {"a": one, "b": other, "deep": {"c": one}}} for one in VALUES for other in ("x", 1)]
    payloads += [{"id": "x", "meta": {}}, {"id": "z", "meta": {"deep": "c"}}, {"meta": None}, {}]
    engine = compact_filter(filters)
    for payload in payloads:
        assert test.holds(payload) is check_filter(engine, payload, 1, {}), payload
    assert set(test.fields) == {each["field"] for each in _leaves(filters)}


def _leaves(filters: Any) -> list[Any]:
    return [leaf for each in filters["conditions"] for leaf in _leaves(each)] if "conditions" in filters else [filters]


@pytest.mark.parametrize(
    "filters",
    [
        {"field": "meta.a", "operator": "==", "value": None},
        {"field": "meta.a", "operator": "==", "value": 1.5},
        {"field": "meta.a", "operator": "!=", "value": "x"},
        {"field": "meta.a", "operator": "in", "value": ["x", 1]},
        {"field": "meta.a", "operator": "in", "value": [1.5]},
        {"field": "meta.a", "operator": "in", "value": [True]},
        {"field": "meta.a", "operator": "in", "value": []},
        {"field": 'meta."two words"', "operator": "in", "value": ["x"]},
        {"operator": "NOT", "conditions": [{"field": "meta.a", "operator": "in", "value": ["x"]}]},
        {"operator": "AND", "conditions": []},
        {
            "operator": "AND",
            "conditions": [
                {"field": "meta.a", "operator": "in", "value": ["x"]},
                {"field": "meta.b", "operator": ">", "value": 3},
            ],
        },
        None,
    ],
)
def test_what_is_left_to_the_engine(filters: Any) -> None:
    assert quick_test(filters) is None


@pytest.mark.parametrize("run_async", [False, True])
async def test_many_sources_are_deleted_at_once(tmp_path: Path, run_async: bool) -> None:
    store = HierarchyQdrantDocumentStore(path=str(tmp_path / "qdrant"), embedding_dim=2)
    store.write_documents([Document(id=f"{n}", content="x", meta={"file_path": f"{n}.md"}) for n in range(300)])
    filters = {"field": "meta.file_path", "operator": "in", "value": [f"{n}.md" for n in range(0, 600, 2)]}
    for deleted in (150, 0):
        found = await store.delete_by_filter_async(filters) if run_async else store.delete_by_filter(filters)
        assert found == deleted
    store.close()
    assert {document.id for document in store.filter_documents()} == {f"{n}" for n in range(1, 300, 2)}
    store.close()
