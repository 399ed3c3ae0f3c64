# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import pytest
from haystack import Document
from haystack.dataclasses import SparseEmbedding

from hichunk_haystack.components.embedders import Bm25DocumentEmbedder, Bm25TextEmbedder
from hichunk_haystack.components.retrievers import QdrantHybridLeafRetriever
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore


@pytest.fixture
def store() -> HierarchyQdrantDocumentStore:
    """60 leaves: the higher the number, the worse its dense similarity and the more words it shares with the query."""
    store = HierarchyQdrantDocumentStore(
        location=":memory:", embedding_dim=2, use_sparse_embeddings=True, sparse_idf=True
    )
    leaves = [
        Document(
            id=str(number),
            content="kiln " * number + "rest " * (60 - number),
            embedding=[60.0 - number, float(number)],
            meta={"half": number % 2},
        )
        for number in range(60)
    ]
    store.write_documents(Bm25DocumentEmbedder(b=0).run(leaves)["documents"])
    return store


QUERY = Bm25TextEmbedder().run("kiln")["sparse_embedding"]


def test_both_lists_are_as_long_as_asked_for(store: HierarchyQdrantDocumentStore) -> None:
    retriever = QdrantHybridLeafRetriever(document_store=store, top_k=40)
    hits = retriever.run(query_embedding=[1.0, 0.0], query_sparse_embedding=QUERY)["documents"]
    # Leaves 0 to 39 come from the dense list, 20 to 59 from the sparse one, so all are found; those that stand in the
    # middle of both lead.
    assert len(hits) == 40
    ranks = {str(number): 1 / (2 + number) for number in range(40)}
    for place in range(40):
        ranks[str(59 - place)] = ranks.get(str(59 - place), 0) + 1 / (2 + place)
    assert {hit.id: round(hit.score or 0, 6) for hit in hits} == {
        key: round(ranks[key], 6) for key in sorted(ranks, key=lambda key: -ranks[key])[:40]
    }


async def test_run_async_and_filters(store: HierarchyQdrantDocumentStore) -> None:
    retriever = QdrantHybridLeafRetriever(document_store=store, top_k=30)
    filters = {"field": "meta.half", "operator": "==", "value": 1}
    query = {"query_embedding": [1.0, 0.0], "query_sparse_embedding": QUERY, "filters": filters}
    hits = retriever.run(**query)["documents"]
    assert sorted(int(hit.id) for hit in hits) == list(range(1, 60, 2))
    assert (await retriever.run_async(**query))["documents"] == hits


def test_groups_see_enough_hits(store: HierarchyQdrantDocumentStore) -> None:
    retriever = QdrantHybridLeafRetriever(document_store=store, top_k=2, group_by="meta.half", group_size=15)
    hits = retriever.run(query_embedding=[1.0, 0.0], query_sparse_embedding=QUERY)["documents"]
    assert len(hits) == 30


def test_a_query_without_words_finds_by_meaning(store: HierarchyQdrantDocumentStore) -> None:
    retriever = QdrantHybridLeafRetriever(document_store=store, top_k=3)
    empty = SparseEmbedding(indices=[], values=[])
    hits = retriever.run(query_embedding=[1.0, 0.0], query_sparse_embedding=empty)["documents"]
    assert [hit.id for hit in hits] == ["0", "1", "2"]


def test_to_dict_and_back_with_our_store() -> None:
    store = HierarchyQdrantDocumentStore(path="somewhere", use_sparse_embeddings=True, sparse_idf=True)
    retriever = QdrantHybridLeafRetriever(document_store=store, top_k=48, rrf_k=30)
    data = retriever.to_dict()
    assert data["type"] == "hichunk_haystack.components.retrievers.QdrantHybridLeafRetriever"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HAYSTACK_DESERIALIZATION_ALLOWLIST", "hichunk_haystack")
        again = QdrantHybridLeafRetriever.from_dict(data)
    assert isinstance(again._document_store, HierarchyQdrantDocumentStore)
    assert again.to_dict() == data
