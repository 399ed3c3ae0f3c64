# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack_integrations.document_stores.qdrant import QdrantDocumentStore

from hichunk_haystack.components.writers import HierarchyWriter
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from tests.components.writers.stores import RecordingStore, SyncStore


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[RecordingStore]:
    store = RecordingStore(path=str(tmp_path / "qdrant"), embedding_dim=2)
    yield store
    store.close()


@pytest.fixture(params=["embedded", "in_memory", "stock_qdrant", "sync"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """Each kind of store in turn."""
    makers: dict[str, Callable[[], Any]] = {
        "embedded": lambda: HierarchyQdrantDocumentStore(path=str(tmp_path / "qdrant"), embedding_dim=2),
        "in_memory": InMemoryDocumentStore,
        "stock_qdrant": lambda: QdrantDocumentStore(":memory:", embedding_dim=2),
        "sync": SyncStore,
    }
    made = makers[request.param]()
    yield made
    if hasattr(made, "close"):
        made.close()


@pytest.fixture
def write(store: Any) -> Callable[..., dict[str, int]]:
    return HierarchyWriter(store, progress_bar=False).run
