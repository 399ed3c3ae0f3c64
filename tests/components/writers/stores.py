# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Stores that tell what was asked of them, and trees to write into them."""

from dataclasses import replace
from typing import Any

from haystack import Document, default_from_dict, default_to_dict
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.document_stores.types import DuplicatePolicy

from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from hichunk_haystack.tree import is_leaf

MODEL = "sentence-transformers/all-MiniLM-L6-v2"


SPLITTER = MarkdownHierarchicalSplitter(leaf_tokens=20, min_leaf_tokens=1)


EVERYTHING = {"field": "meta.nowhere", "operator": "!=", "value": "x"}


def sections(count: int, word: str = "clay") -> str:
    """A document with as many leaves as sections, and two levels."""
    return "".join(f"# Section {number}\n\nAbout {word} number {number}.\n\n" for number in range(1, count + 1))


def tree(text: str, path: str | None = None, **fields: Any) -> list[Document]:
    """The nodes of a source, the leaves with embeddings of two numbers."""
    source = Document(content=text, meta={"file_path": path} if path else {}, **fields)
    nodes = SPLITTER.run([source])["documents"]
    return [replace(node, embedding=[1.0, 0.5]) if is_leaf(node) else node for node in nodes]


def ids(documents: list[Document]) -> set[str]:
    return {document.id for document in documents}


def counts(nodes: int, leaves: int, added: int = 0, replaced: int = 0, deleted: int = 0) -> dict[str, int]:
    """What the writer answers."""
    return {
        "documents_written": nodes, "sources": added + replaced, "leaves": leaves,
        "added": added, "replaced": replaced, "deleted": deleted,
    }  # fmt: skip


def stored(store: Any) -> set[str]:
    return ids(store.filter_documents(EVERYTHING))


class SyncStore:
    """A store without asynchronous methods and without deletion by filter, over one that has them."""

    def __init__(self) -> None:
        self.inner = InMemoryDocumentStore()

    def to_dict(self) -> dict[str, Any]:
        return default_to_dict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "SyncStore":
        return default_from_dict(cls, data)

    def count_documents(self) -> int:
        return self.inner.count_documents()

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        return self.inner.filter_documents(filters)

    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
        return self.inner.write_documents(documents, policy)

    def delete_documents(self, document_ids: list[str]) -> None:
        self.inner.delete_documents(document_ids)


class RecordingStore(HierarchyQdrantDocumentStore):
    """An embedded Qdrant that notes what is asked of it and can be told to fail."""

    def __init__(self, *, fail_at_write: int | None = None, fail_at_delete: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.fail_at_write = fail_at_write
        self.fail_at_delete = fail_at_delete
        self.writes: list[list[Document]] = []
        self.policies: set[DuplicatePolicy] = set()
        self.calls: list[str] = []

    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.FAIL) -> int:
        self.calls.append("write")
        if len(self.writes) == self.fail_at_write:
            msg = "disk full"
            raise OSError(msg)
        self.writes.append(documents)
        self.policies.add(policy)
        return super().write_documents(documents, policy)

    def delete_by_filter(self, filters: dict[str, Any]) -> int:
        self.calls.append("delete")
        if self.fail_at_delete:
            msg = "connection lost"
            raise ConnectionError(msg)
        return super().delete_by_filter(filters)
