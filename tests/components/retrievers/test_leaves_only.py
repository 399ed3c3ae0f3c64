# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""The two retrievers of leaves find leaves, wherever inner nodes have their embeddings."""

from typing import Any

import pytest
from haystack import Document
from haystack.dataclasses import SparseEmbedding
from haystack_integrations.document_stores.qdrant import QdrantDocumentStore
from qdrant_client.http import models as rest

from hichunk_haystack.components.retrievers import QdrantHybridLeafRetriever, QdrantLeafRetriever
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore

QUERY = [1.0, 0.0]
WORDS = SparseEmbedding([1], [1.0])


def nodes() -> list[Document]:
    """Three trees of a root and two leaves; the roots are most like the query."""
    found = []
    for number in range(3):
        meta: dict[str, Any] = {"n": number}
        children = [f"{number}a", f"{number}b"]
        found.append(Document(id=str(number), content="ab", embedding=QUERY, meta={**meta, "__children_ids": children}))
        for place, child in enumerate(children):
            weight = 9.0 - 2 * number - place
            leaf = {"embedding": [weight, 1.0], "sparse_embedding": SparseEmbedding([1], [weight])}
            found.append(Document(id=child, content=child, meta={**meta, "__children_ids": []}, **leaf))
    return found


def run(store: QdrantDocumentStore, hybrid: bool, **options: Any) -> list[str]:
    kind = QdrantHybridLeafRetriever if hybrid else QdrantLeafRetriever
    query = {"query_embedding": QUERY, **({"query_sparse_embedding": WORDS} if hybrid else {})}
    filters = options.pop("run_filters", None)
    found = kind(document_store=store, **options).run(**query, filters=filters)["documents"]
    return sorted(document.id for document in found)


@pytest.fixture(params=[True, False], ids=["apart", "together"])
def store(request: pytest.FixtureRequest) -> HierarchyQdrantDocumentStore:
    store = HierarchyQdrantDocumentStore(
        location=":memory:", embedding_dim=2, use_sparse_embeddings=True, inner_embeddings=request.param
    )
    store.write_documents(nodes())
    return store


ALL = ["0a", "0b", "1a", "1b", "2a", "2b"]


@pytest.mark.parametrize("hybrid", [False, True], ids=["dense", "hybrid"])
async def test_as_many_leaves_as_asked_for(store: HierarchyQdrantDocumentStore, hybrid: bool) -> None:
    assert run(store, hybrid, top_k=6) == ALL
    assert run(store, hybrid, top_k=4) == ALL[:4]
    n = {"field": "meta.n", "operator": ">", "value": 0}
    leaf = {"field": "meta.n", "operator": "<", "value": 2}
    assert run(store, hybrid, top_k=6, run_filters=n) == ALL[2:]
    assert run(store, hybrid, top_k=6, filters=n, run_filters=leaf) == ALL[:4]
    both = {"operator": "AND", "conditions": [n]}, {"operator": "AND", "conditions": [leaf]}
    assert run(store, hybrid, top_k=6, filters=both[0], run_filters=both[1], filter_policy="merge") == ALL[2:4]
    native = rest.Filter(must=[rest.FieldCondition(key="meta.n", match=rest.MatchValue(value=2))])
    assert run(store, hybrid, top_k=6, run_filters=native) == ALL[4:]


async def test_asynchronously_the_same(store: HierarchyQdrantDocumentStore) -> None:
    plain = QdrantLeafRetriever(document_store=store, top_k=5)
    assert await plain.run_async(query_embedding=QUERY) == plain.run(query_embedding=QUERY)
    hybrid = QdrantHybridLeafRetriever(document_store=store, top_k=5)
    query = {"query_embedding": QUERY, "query_sparse_embedding": WORDS}
    assert await hybrid.run_async(**query) == hybrid.run(**query)


def test_a_warning_tells_once_how_to_do_without_the_filter(caplog: pytest.LogCaptureFixture) -> None:
    store = HierarchyQdrantDocumentStore(location=":memory:", embedding_dim=2)
    store.write_documents(nodes())
    retriever = QdrantLeafRetriever(document_store=store, top_k=2)
    for _ in range(2):
        assert len(retriever.run(query_embedding=QUERY)["documents"]) == 2
    assert caplog.text.count("inner_embeddings=True") == 1
    # The retriever itself is as it was.
    assert retriever.to_dict() == QdrantLeafRetriever(document_store=store, top_k=2).to_dict()


def test_with_the_stock_store() -> None:
    store = QdrantDocumentStore(location=":memory:", embedding_dim=2)
    store.write_documents(nodes())
    assert run(store, hybrid=False, top_k=6) == ALL
