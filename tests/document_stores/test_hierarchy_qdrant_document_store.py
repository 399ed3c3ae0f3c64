# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What the store answers, on every backend."""

import asyncio
import logging
from dataclasses import replace
from typing import Any

import pytest
from haystack import Document
from haystack.dataclasses import SparseEmbedding
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack_integrations.document_stores.qdrant import QdrantDocumentStore
from haystack_integrations.document_stores.qdrant.document_store import QdrantStoreError

ROOT = Document(id="root", content="east and west", meta={"__level": 0, "source_id": "root", "file_path": "a.md"})
EAST = Document(id="east", content="east", embedding=[1.0, 0.0], meta={"__level": 1, "source_id": "root"})
WEST = Document(id="west", content="west", embedding=[0.0, 1.0], meta={"__level": 1, "source_id": "root"})
OTHER = Document(id="other", content="other", embedding=[0.8, 0.6], meta={"__level": 1, "source_id": "other"})
NODES = [ROOT, EAST, WEST, OTHER]


def ids(documents: list[Document]) -> list[str]:
    return [document.id for document in documents]


def is_source(value: str) -> dict[str, Any]:
    return {"field": "meta.source_id", "operator": "==", "value": value}


def test_what_was_written_comes_back(backend, make_store):
    before = [document.to_dict() for document in NODES]
    store = make_store(**backend)
    assert store.write_documents(NODES) == 4
    assert store.count_documents() == 4
    assert sorted(ids(store.filter_documents())) == ["east", "other", "root", "west"]
    # cosine of (1, 0) with each: 1, 0.8, 0. The root has no vector and is never found.
    hits = store._query_by_embedding([1.0, 0.0], top_k=10)
    assert ids(hits) == ["east", "other", "west"]
    assert [hit.score for hit in hits] == pytest.approx([1.0, 0.8, 0.0], abs=1e-6)
    assert hits[0].meta == EAST.meta
    assert [document.to_dict() for document in NODES] == before


async def test_awaited_calls_see_what_plain_calls_wrote_and_back(backend, make_store):
    store = make_store(**backend)
    assert store.write_documents([ROOT, EAST]) == 2
    assert await store.write_documents_async([WEST, OTHER]) == 2
    assert store.count_documents() == await store.count_documents_async() == 4
    assert ids(await store._query_by_embedding_async([1.0, 0.0], top_k=2)) == ["east", "other"]
    assert sorted(ids(await store.filter_documents_async())) == sorted(ids(store.filter_documents()))
    await store.delete_documents_async(["west"])
    assert store.count_documents() == 3
    await store.close_async()
    if not backend.get("location"):
        assert await store.count_documents_async() == 3
        await store.close_async()


async def test_nodes_come_in_the_order_asked_for_without_embeddings(backend, make_store):
    store = make_store(**backend)
    store.write_documents(NODES)
    asked = ["west", "gone", "root", "west", "east"]
    for nodes in (store.get_nodes_by_id(asked), await store.get_nodes_by_id_async(asked)):
        assert ids(nodes) == ["west", "root", "east"]
        assert [node.content for node in nodes] == ["west", "east and west", "east"]
        assert [node.embedding for node in nodes] == [None, None, None]
    for nodes in (
        store.get_nodes_by_id(asked, with_embeddings=True),
        await store.get_nodes_by_id_async(asked, with_embeddings=True),
    ):
        assert [node.embedding for node in nodes] == [[0.0, 1.0], None, [1.0, 0.0]]
    assert store.get_nodes_by_id([]) == await store.get_nodes_by_id_async([]) == []
    assert sorted(ids(store.get_documents_by_id(["west", "east", "gone"]))) == ["east", "west"]


async def test_an_empty_collection_answers_empty(backend, make_store):
    store = make_store(**backend)
    assert store._query_by_embedding([1.0, 0.0]) == []
    assert store.filter_documents() == []
    assert store.filter_documents(is_source("root")) == []
    assert store.get_documents_by_id(["root"]) == []
    assert await store.get_nodes_by_id_async(["root"]) == []
    assert store.count_documents() == 0


async def test_a_collection_that_somebody_removed_answers_empty_and_takes_documents(backend, make_store):
    store = make_store(**backend)
    store.write_documents(NODES)
    other = make_store(**backend)
    other.count_documents()
    other._client.delete_collection(other.index)
    assert store._query_by_embedding([1.0, 0.0]) == []
    other._client.delete_collection(other.index)
    assert await store._query_by_embedding_async([1.0, 0.0]) == []
    other._client.delete_collection(other.index)
    assert store.write_documents([EAST]) == 1
    assert store.count_documents() == 1


def test_policies(backend, make_store):
    store = make_store(**backend)
    store.write_documents([EAST])
    changed = replace(EAST, content="changed")
    with pytest.raises(DuplicateDocumentError, match="east"):
        store.write_documents([WEST, changed], DuplicatePolicy.FAIL)
    assert ids(store.filter_documents()) == ["east"]
    assert store.write_documents([WEST, changed, changed], DuplicatePolicy.SKIP) == 1
    assert [node.content for node in store.get_nodes_by_id(["east", "west"])] == ["east", "west"]
    assert store.write_documents([changed], DuplicatePolicy.OVERWRITE) == 1
    assert [node.content for node in store.get_nodes_by_id(["east"])] == ["changed"]
    assert store.write_documents([], DuplicatePolicy.FAIL) == store.write_documents([], DuplicatePolicy.OVERWRITE) == 0


async def test_policies_async(backend, make_store):
    store = make_store(**backend)
    await store.write_documents_async([EAST])
    changed = replace(EAST, content="changed")
    with pytest.raises(DuplicateDocumentError, match="east"):
        await store.write_documents_async([WEST, changed])
    assert await store.write_documents_async([WEST, changed], DuplicatePolicy.SKIP) == 1
    assert await store.write_documents_async([changed], DuplicatePolicy.OVERWRITE) == 1
    assert [node.content for node in await store.get_nodes_by_id_async(["east", "west"])] == ["changed", "west"]


@pytest.mark.parametrize("field", ["source_id", "file_path"])
def test_filters_on_the_source(backend, make_store, field):
    store = make_store(**backend)
    store.write_documents(NODES)
    value = {"source_id": "root", "file_path": "a.md"}[field]
    expected = {"source_id": ["east", "root", "west"], "file_path": ["root"]}[field]
    by_source = {"field": f"meta.{field}", "operator": "==", "value": value}
    assert sorted(ids(store.filter_documents(by_source))) == expected
    leaves = {"operator": "AND", "conditions": [is_source("root"), is_source_level(1)]}
    assert ids(store._query_by_embedding([0.0, 1.0], filters=leaves, top_k=5)) == ["west", "east"]
    assert ids(store.filter_documents({"field": "id", "operator": "in", "value": ["east", "gone"]})) == ["east"]
    assert store.delete_by_filter(by_source) == len(expected)
    assert store.count_documents() == 4 - len(expected)


def is_source_level(level: int) -> dict[str, Any]:
    return {"field": "meta.__level", "operator": "==", "value": level}


async def test_a_query_of_another_dimension_is_refused(backend, make_store):
    store = make_store(**backend)
    store.write_documents(NODES)
    for attempt in (store._query_by_embedding, lambda query: asyncio.run(store._query_by_embedding_async(query))):
        with pytest.raises(QdrantStoreError, match=r"has 3 dimensions.*have 2"):
            await asyncio.to_thread(attempt, [1.0, 0.0, 0.0])


async def test_a_document_of_another_dimension_is_refused_before_anything_is_written(backend, make_store):
    store = make_store(**backend, write_batch_size=1)
    bad = Document(id="bad", content="x", embedding=[1.0, 2.0, 3.0])
    with pytest.raises(QdrantStoreError, match=r"'bad' has 3 dimensions.*takes 2"):
        store.write_documents([EAST, bad])
    with pytest.raises(QdrantStoreError, match="'bad' has 3"):
        await store.write_documents_async([EAST, bad])
    with pytest.raises(ValueError, match="str"):
        store.write_documents([EAST, "text"])
    assert store.count_documents() == 0


async def test_a_collection_of_another_dimension_names_both_and_the_way_out(backend, make_store):
    make_store(**backend).write_documents(NODES)
    store = make_store(**backend, embedding_dim=3)
    for _ in range(2):  # the stock store takes such a collection at the second attempt
        with pytest.raises(QdrantStoreError) as raised:
            store.count_documents()
        with pytest.raises(QdrantStoreError):
            await store.write_documents_async(NODES)
    for part in (backend["index"], "2 dimensions", "set to 3", "embedding_dim=2", "`index`", "recreate_index=True"):
        assert part in str(raised.value)
    with pytest.raises(QdrantStoreError, match=r"Cosine.*Euclid.*similarity"):
        make_store(**backend, similarity="l2").count_documents()
    # the way out works
    fresh = make_store(**backend, embedding_dim=3, recreate_index=True)
    assert fresh.write_documents([Document(content="x", embedding=[1.0, 2.0, 3.0])]) == 1


async def test_recreate_index_takes_effect_once(backend, make_store):
    make_store(**backend).write_documents(NODES)
    keeper = make_store(**backend)
    keeper.count_documents()  # keeps a memory alive while the others close
    store = make_store(**backend, recreate_index=True)
    assert store.count_documents() == 0
    store.write_documents([EAST])
    assert await store.count_documents_async() == 1  # not again for the asynchronous side
    store.close()
    assert store.count_documents() == 1  # nor after opening again
    twin = make_store(**backend, recreate_index=True)
    assert twin.count_documents() == 1  # nor by a store with the same settings at the same time
    twin.write_documents([WEST])
    assert keeper.count_documents() == store.count_documents() == 2
    other_index = make_store(**{**backend, "index": backend["index"] + "-2"}, recreate_index=True)
    assert other_index.count_documents() == 0
    assert keeper.count_documents() == 2
    other_index._client.delete_collection(other_index.index)


async def test_emptying_the_store(backend, make_store):
    store = make_store(**backend, similarity="dot_product")
    for recreate in (False, True):
        store.write_documents(NODES)
        store.delete_all_documents(recreate_index=recreate)
        assert store.count_documents() == 0
        store.write_documents(NODES)
        await store.delete_all_documents_async(recreate_index=recreate)
        assert store.count_documents() == 0
    store.write_documents(NODES)
    assert len(store.filter_documents(is_source("root"))) == 3


def test_batches_are_bounded_in_count(make_store, caplog):
    store = make_store(location=":memory:", write_batch_size=2)
    store.count_documents()
    sizes = []
    upsert = store._client.upsert
    store._client.upsert = lambda **request: (sizes.append(len(request["points"])), upsert(**request))
    with caplog.at_level(logging.WARNING):
        store.write_documents([Document(content=str(number)) for number in range(5)])
    assert sizes == [2, 2, 1]
    assert store.count_documents() == 5
    assert caplog.records == []


def test_sparse_collections(make_store, tmp_path):
    store = make_store(path=str(tmp_path / "sparse"), use_sparse_embeddings=True)
    both = replace(EAST, sparse_embedding=SparseEmbedding(indices=[7], values=[2.0]))
    store.write_documents([both, WEST, ROOT])
    assert ids(store._query_by_embedding([1.0, 0.0])) == ["east", "west"]
    assert ids(store._query_by_sparse(SparseEmbedding(indices=[7], values=[1.0]))) == ["east"]
    assert ids(store._query_hybrid([1.0, 0.0], SparseEmbedding(indices=[7], values=[1.0]), top_k=1)) == ["east"]
    with pytest.raises(QdrantStoreError, match="3 dimensions"):
        store._query_hybrid([1.0, 0.0, 0.0], SparseEmbedding(indices=[7], values=[1.0]))
    read = store.get_nodes_by_id(["root", "east"], with_embeddings=True)
    assert [node.embedding for node in read] == [None, [1.0, 0.0]]
    assert store.get_nodes_by_id(["east"])[0].content == "east"


def test_a_folder_of_the_stock_store_reads_the_same(make_store, tmp_path):
    def contents(store: QdrantDocumentStore) -> dict[str, Any]:
        documents = store.filter_documents()
        store.close()
        return {document.id: (document.content, document.meta) for document in documents}

    def stock() -> QdrantDocumentStore:
        return QdrantDocumentStore(path=str(tmp_path / "stock"), embedding_dim=2, progress_bar=False)

    expected = {node.id: (node.content, node.meta) for node in NODES}
    writer = stock()
    writer.write_documents(NODES)
    writer.close()
    store = make_store(path=str(tmp_path / "stock"))
    assert contents(store) == expected
    store.write_documents(NODES, DuplicatePolicy.OVERWRITE)
    store.close()
    assert contents(stock()) == expected
