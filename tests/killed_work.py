# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Indexing and deleting on an embedded folder, in a process that gets killed."""

from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from haystack import Document, Pipeline
from haystack.document_stores.types import DocumentStore

from hichunk_haystack.components.embedders import LeafEmbedder
from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.components.routers import UnchangedSourceFilter
from hichunk_haystack.components.writers import HierarchyDeleter, HierarchyWriter
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from tests.word_embedder import WordEmbedder

DIMENSION = 16
SPLITTER = MarkdownHierarchicalSplitter(leaf_tokens=20, min_leaf_tokens=1)


def open_store(folder: str) -> HierarchyQdrantDocumentStore:
    """The store of the folder."""
    return HierarchyQdrantDocumentStore(path=folder, embedding_dim=DIMENSION)


def split(pages: dict[str, str]) -> list[Document]:
    """The trees of pages: path -> text."""
    sources = [Document(content=text, meta={"file_path": path}) for path, text in pages.items()]
    return SPLITTER.run(sources)["documents"]


def index(store: DocumentStore, pages: dict[str, str]) -> dict[str, Any]:
    """Index pages, with small requests, so that there are many moments to be killed at."""
    pipeline = Pipeline()
    pipeline.add_component("changed", UnchangedSourceFilter(store, version="words"))
    pipeline.add_component("embedder", LeafEmbedder(WordEmbedder(DIMENSION), progress_bar=False))
    pipeline.add_component("writer", HierarchyWriter(store, max_batch_documents=3, progress_bar=False))
    pipeline.connect("changed.documents", "embedder.documents")
    pipeline.connect("embedder", "writer")
    return pipeline.run({"changed": {"documents": split(pages)}}, include_outputs_from={"changed"})


def delete(store: DocumentStore, names: list[str | int]) -> dict[str, int]:
    """Delete sources."""
    return HierarchyDeleter(store).run(sources=names)


def work(folder: str, call: Callable[..., Any], argument: Any, pipe: Connection) -> None:
    """What the process does: say that it starts, work, and say that it is done."""
    store = open_store(folder)
    store.count_documents()
    split({"warm up": "text"})
    pipe.send("start")
    call(store, argument)
    pipe.send("done")
    store.close()
