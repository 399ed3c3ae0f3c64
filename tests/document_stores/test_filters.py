# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from typing import Any

from haystack import Document
from haystack.document_stores.in_memory import InMemoryDocumentStore
from hypothesis import given, settings
from hypothesis import strategies as st
from qdrant_client.http import models as rest

from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from hichunk_haystack.document_stores._filters import compact_filter


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
