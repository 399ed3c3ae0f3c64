# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Embeddings of inner nodes beside those of leaves: what is written, what searches find, what comes back."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from haystack import Document
from haystack.dataclasses import SparseEmbedding
from haystack_integrations.components.retrievers.qdrant import QdrantEmbeddingRetriever
from haystack_integrations.document_stores.qdrant.document_store import QdrantStoreError

from hichunk_haystack.components.writers import HierarchyWriter
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore

NODES = [
    Document(id="root", content="ab", meta={"__children_ids": ["a", "b"], "__level": 0}, embedding=[1.0, 0.0]),
    Document(id="a", content="a", meta={"__children_ids": [], "__level": 1}, embedding=[0.6, 0.8]),
    Document(
        id="b", content="b", meta={"__children_ids": [], "__level": 1}, embedding=[0.0, 1.0],
        sparse_embedding=SparseEmbedding([7], [1.0]),
    ),
    Document(id="plain", content="plain", embedding=[0.8, 0.6]),
    Document(id="silent", content="silent", meta={"__children_ids": ["x"], "__level": 1}),
]  # fmt: skip


def make(**options: Any) -> HierarchyQdrantDocumentStore:
    return HierarchyQdrantDocumentStore(
        **{"location": ":memory:", "embedding_dim": 2, "inner_embeddings": True, **options}
    )


@pytest.fixture
def store() -> HierarchyQdrantDocumentStore:
    store = make()
    store.write_documents(NODES)
    return store


def ids(documents: list[Document]) -> list[str]:
    return [document.id for document in documents]


async def test_each_search_finds_its_kind(store: HierarchyQdrantDocumentStore) -> None:
    stock = QdrantEmbeddingRetriever(document_store=store)
    assert ids(stock.run(query_embedding=[1.0, 0.0])["documents"]) == ["plain", "a", "b"]
    assert ids(store.query_inner_nodes([0.0, 1.0])) == ["root"]
    assert ids(await store.query_inner_nodes_async([0.0, 1.0])) == ["root"]
    hybrid = store._query_hybrid([1.0, 0.0], SparseEmbedding([7], [1.0]), top_k=5)
    assert sorted(ids(hybrid)) == ["a", "b", "plain"]


async def test_embeddings_come_back_whatever_kind_of_node(store: HierarchyQdrantDocumentStore) -> None:
    expected = {node.id: node.embedding for node in NODES}
    for found in (
        store.get_nodes_by_id(list(expected), with_embeddings=True),
        await store.get_nodes_by_id_async(list(expected), with_embeddings=True),
        store.get_documents_by_id(list(expected)),
        store.filter_documents(),
        await store.filter_documents_async(),
        store.get_nodes_page(fields=["__level"], with_embeddings=True)[0],
    ):
        for node in found:
            wanted = expected[node.id]
            assert node.embedding == (None if wanted is None else pytest.approx(wanted)), node.id
    (root,) = store.query_inner_nodes([1.0, 0.0], return_embedding=True)
    assert root.embedding == pytest.approx([1.0, 0.0])
    assert store.query_inner_nodes([1.0, 0.0])[0].embedding is None


def test_filters_come_before_the_cut(store: HierarchyQdrantDocumentStore) -> None:
    roots = [
        replace(NODES[0], id=f"r{number}", embedding=[1.0, number / 10], meta={**NODES[0].meta, "n": number})
        for number in range(5)
    ]
    store.write_documents(roots)
    filters = {"field": "meta.n", "operator": "in", "value": [3, 4]}
    assert ids(store.query_inner_nodes([1.0, 0.0], filters=filters, top_k=2)) == ["r3", "r4"]


def test_the_callers_documents_are_not_changed_and_a_node_can_become_a_leaf(
    store: HierarchyQdrantDocumentStore,
) -> None:
    assert NODES[0].embedding == [1.0, 0.0]
    leaf = replace(NODES[0], meta={"__children_ids": [], "__level": 0})
    HierarchyWriter(store).run([leaf])
    assert store.query_inner_nodes([1.0, 0.0]) == []
    assert ids(store._query_by_embedding([1.0, 0.0], top_k=1)) == ["root"]


def test_on_disk_and_opened_again(tmp_path: Path) -> None:
    settings = {"location": None, "path": str(tmp_path)}
    first = make(**settings)
    first.write_documents(NODES)
    first.close()
    again = make(**settings)
    assert ids(again.query_inner_nodes([1.0, 0.0])) == ["root"]
    again.close()


def test_a_store_without_them_says_so(tmp_path: Path) -> None:
    with pytest.raises(QdrantStoreError, match="inner_embeddings=True"):
        make(inner_embeddings=False).query_inner_nodes([1.0, 0.0])
    settings: dict[str, Any] = {"location": None, "path": str(tmp_path)}
    for first, second in ((True, False), (False, True)):
        there = make(**settings, index=str(first), inner_embeddings=first, use_sparse_embeddings=True)
        there.count_documents()
        other = make(**settings, index=str(first), inner_embeddings=second, use_sparse_embeddings=True)
        with pytest.raises(QdrantStoreError, match=f"set `inner_embeddings={first}`"):
            other.count_documents()
        there.close()
        other.close()


def test_to_dict_and_back() -> None:
    data = make().to_dict()
    assert data["init_parameters"]["inner_embeddings"] is True
    assert data["init_parameters"]["use_sparse_embeddings"] is True
    assert HierarchyQdrantDocumentStore.from_dict(data).to_dict() == data
