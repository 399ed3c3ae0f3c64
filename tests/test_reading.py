# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Sequence
from typing import Any

import pytest
from haystack import Document
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack_integrations.document_stores.qdrant import QdrantDocumentStore

from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from hichunk_haystack.reading import Reads, read_documents, read_documents_async, with_reads, with_reads_async

DOCUMENTS = [Document(id=name, content=f"text of {name}") for name in ("a", "b", "c")]


class FilterOnlyStore:
    """A store that has nothing but what Haystack's protocol asks for; it counts its calls."""

    def __init__(self) -> None:
        self.store = InMemoryDocumentStore()
        self.filters: list[dict[str, Any]] = []

    def filter_documents(self, filters: dict[str, Any]) -> list[Document]:
        self.filters.append(filters)
        return self.store.filter_documents(filters)


@pytest.fixture(params=["in memory", "qdrant", "ours", "filters only"])
def store(request: pytest.FixtureRequest) -> Any:
    made = {
        "in memory": InMemoryDocumentStore,
        "qdrant": lambda: QdrantDocumentStore(location=":memory:", embedding_dim=2),
        "ours": lambda: HierarchyQdrantDocumentStore(location=":memory:", embedding_dim=2),
        "filters only": FilterOnlyStore,
    }[request.param]()
    getattr(made, "store", made).write_documents(DOCUMENTS)
    return made


def contents(found: dict[str, Document]) -> dict[str, str | None]:
    return {node_id: document.content for node_id, document in found.items()}


def test_documents_are_read_by_id_and_what_is_not_there_is_left_out(store: Any) -> None:
    assert contents(read_documents(store, ["c", "x", "a"])) == {"a": "text of a", "c": "text of c"}
    assert read_documents(store, []) == {}
    if isinstance(store, FilterOnlyStore):
        assert store.filters == [{"field": "id", "operator": "in", "value": ["c", "x", "a"]}]


async def test_the_same_without_blocking(store: Any) -> None:
    if isinstance(store, QdrantDocumentStore) and not isinstance(store, HierarchyQdrantDocumentStore):
        # The stock store's asynchronous client has an in-memory place of its own.
        await store.write_documents_async(DOCUMENTS)
    assert contents(await read_documents_async(store, ["c", "x", "a"])) == {"a": "text of a", "c": "text of c"}
    assert await read_documents_async(store, []) == {}


def doubling(rounds: int) -> Reads[list[str]]:
    """Reads so many times, each time what it found the time before."""
    found: dict[str, Document] = {}
    wanted: Sequence[str] = ["a"]
    for _ in range(rounds):
        found |= yield wanted
        wanted = [*found, "b"]
    return list(found)


async def test_work_may_read_any_number_of_times() -> None:
    store = FilterOnlyStore()
    store.store.write_documents(DOCUMENTS)
    assert with_reads(doubling(0), store) == []
    assert with_reads(doubling(3), store) == ["a", "b"]
    assert len(store.filters) == 3
    assert await with_reads_async(doubling(2), store) == ["a", "b"]
    assert len(store.filters) == 5
