# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Reading many documents by id, in one call, from any document store."""

import asyncio
from collections.abc import Generator, Iterable, Sequence
from typing import Any, TypeVar

from haystack import Document
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.document_stores.types import DocumentStore

Result = TypeVar("Result")

Reads = Generator[Sequence[str], dict[str, Document], Result]
"""Work that yields the ids it wants to read, is sent the documents that are there, and returns a result."""

# The cheapest way a store has, first: by id without vectors, by id, by filter.
_METHODS = ("get_nodes", "get_nodes_by_id", "get_documents_by_id")


def read_documents(store: DocumentStore, ids: Sequence[str], *, with_embeddings: bool = False) -> dict[str, Document]:
    """
    Read documents by id in one call.

    :param store: Any document store.
    :param ids: Ids of documents; nothing is asked of the store when there are none.
    :param with_embeddings: Whether embeddings are needed; stores that know no difference give them anyway.
    :returns: The documents that are there, by id.
    """
    if not ids:
        return {}
    if isinstance(store, InMemoryDocumentStore):
        return _in_memory(store, ids)
    for name in _METHODS:
        method = getattr(store, name, None)
        if method is not None:
            return _by_id(method(list(ids), **_wanted(name, with_embeddings)))
    return _by_id(store.filter_documents(_id_filter(ids)))


async def read_documents_async(
    store: DocumentStore, ids: Sequence[str], *, with_embeddings: bool = False
) -> dict[str, Document]:
    """
    Read documents by id in one call, without blocking; a store that has no asynchronous side is asked in a thread.

    :param store: Any document store.
    :param ids: Ids of documents; nothing is asked of the store when there are none.
    :param with_embeddings: Whether embeddings are needed.
    :returns: The documents that are there, by id.
    """
    if not ids:
        return {}
    if isinstance(store, InMemoryDocumentStore):
        return _in_memory(store, ids)
    for name in _METHODS:
        method = getattr(store, f"{name}_async", None)
        if method is not None:
            return _by_id(await method(list(ids), **_wanted(name, with_embeddings)))
    method = getattr(store, "filter_documents_async", None)
    if method is not None:
        return _by_id(await method(_id_filter(ids)))
    return await asyncio.to_thread(read_documents, store, ids, with_embeddings=with_embeddings)


def with_reads(work: Reads[Result], store: DocumentStore, *, with_embeddings: bool = False) -> Result:
    """
    Carry out work that reads documents.

    :param work: The work.
    :param store: Where to read.
    :param with_embeddings: Whether it needs embeddings.
    :returns: The work's result.
    """
    try:
        wanted = next(work)
        while True:
            wanted = work.send(read_documents(store, wanted, with_embeddings=with_embeddings))
    except StopIteration as done:
        return done.value


async def with_reads_async(work: Reads[Result], store: DocumentStore, *, with_embeddings: bool = False) -> Result:
    """
    Carry out work that reads documents, without blocking.

    :param work: The work.
    :param store: Where to read.
    :param with_embeddings: Whether it needs embeddings.
    :returns: The work's result.
    """
    try:
        wanted = next(work)
        while True:
            wanted = work.send(await read_documents_async(store, wanted, with_embeddings=with_embeddings))
    except StopIteration as done:
        return done.value


def _in_memory(store: InMemoryDocumentStore, ids: Sequence[str]) -> dict[str, Document]:
    """Its filter looks at every document it has; its storage is a dictionary."""
    storage = store.storage
    return {node_id: storage[node_id] for node_id in ids if node_id in storage}


def _wanted(method: str, with_embeddings: bool) -> dict[str, bool]:
    """What our own store is told; Haystack's `get_documents_by_id` knows no choice."""
    return {"with_embeddings": True} if with_embeddings and method == "get_nodes_by_id" else {}


def _id_filter(ids: Sequence[str]) -> dict[str, Any]:
    return {"field": "id", "operator": "in", "value": list(ids)}


def _by_id(documents: Iterable[Document]) -> dict[str, Document]:
    return {document.id: document for document in documents}
