# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Work that calls a document store, written once for synchronous and asynchronous callers."""

import asyncio
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, TypeVar

from haystack import Document
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.document_stores.types import DocumentStore

Result = TypeVar("Result")

# Ids in one filter.
_MOST_IDS = 1000


class StoreCall(NamedTuple):
    """
    A call of a document store's method.

    :param method: The name of the synchronous method.
    :param arguments: Its arguments, by name.
    """

    method: str
    arguments: dict[str, Any]


StoreWork = Generator[StoreCall, Any, Result]
"""Work that yields calls, is sent what they return (or thrown what they raise), and returns a result."""


def run_work(work: StoreWork[Result], store: DocumentStore) -> Result:
    """
    Carry out work on a store.

    :param work: The work.
    :param store: Any document store.
    :returns: The work's result.
    """
    try:
        call = next(work)
        while True:
            try:
                answer = getattr(store, call.method)(**call.arguments)
            except Exception as error:
                call = work.throw(error)
            else:
                call = work.send(answer)
    except StopIteration as done:
        return done.value


async def run_work_async(work: StoreWork[Result], store: DocumentStore) -> Result:
    """
    Carry out work on a store without blocking; methods that have no asynchronous twin are called in a thread.

    :param work: The work.
    :param store: Any document store.
    :returns: The work's result.
    """
    try:
        call = next(work)
        while True:
            method = getattr(store, f"{call.method}_async", None)
            try:
                if method is not None:
                    answer = await method(**call.arguments)
                else:
                    answer = await asyncio.to_thread(getattr(store, call.method), **call.arguments)
            except Exception as error:
                call = work.throw(error)
            else:
                call = work.send(answer)
    except StopIteration as done:
        return done.value


def delete_by_filter(store: DocumentStore, filters: dict[str, Any]) -> StoreWork[int]:
    """
    Delete by one filter; where the store cannot, find the documents first.

    :param store: Any document store.
    :param filters: A Haystack filter.
    :returns: Work that returns how many documents were deleted.
    """
    if hasattr(store, "delete_by_filter"):
        return (yield StoreCall("delete_by_filter", {"filters": filters})) or 0
    found = [document.id for document in (yield StoreCall("filter_documents", {"filters": filters}))]
    if found:
        yield StoreCall("delete_documents", {"document_ids": found})
    return len(found)


def scan(
    store: DocumentStore,
    filters: dict[str, Any] | None,
    fields: Sequence[str],
    take: Callable[[Document], object],
    *,
    with_embeddings: bool = False,
) -> StoreWork[None]:
    """
    Go through the documents that match a filter, page by page and without their texts where the store knows how.

    Other stores give them all at once.

    :param store: Any document store.
    :param filters: A Haystack filter; `None` for all documents.
    :param fields: Names of the meta fields that are needed.
    :param take: Called with each document.
    :param with_embeddings: Whether embeddings are needed.
    :returns: Work.
    """
    if not hasattr(store, "get_nodes_page"):
        for document in (yield StoreCall("filter_documents", {"filters": filters})):
            take(document)
        return
    after = None
    while True:
        arguments = {"filters": filters, "fields": fields, "after": after, "with_embeddings": with_embeddings}
        page, after = yield StoreCall("get_nodes_page", arguments)
        for document in page:
            take(document)
        if after is None:
            return


def get_meta(store: DocumentStore, ids: Sequence[str], fields: Sequence[str]) -> StoreWork[dict[str, dict[str, Any]]]:
    """
    Read meta of documents by id in one call, without their texts where the store knows how.

    :param store: Any document store.
    :param ids: Ids of documents.
    :param fields: Names of the meta fields that are needed.
    :returns: Work that returns the meta of those that are there, by id.
    """
    if not ids:
        return {}
    if hasattr(store, "get_meta_by_id"):
        return (yield StoreCall("get_meta_by_id", {"ids": ids, "fields": fields}))
    if isinstance(store, InMemoryDocumentStore):  # its filter looks at every document it has
        return {node_id: store.storage[node_id].meta for node_id in ids if node_id in store.storage}
    if hasattr(store, "get_documents_by_id"):
        found = yield StoreCall("get_documents_by_id", {"ids": list(ids)})
    else:
        found = yield StoreCall("filter_documents", {"filters": {"field": "id", "operator": "in", "value": list(ids)}})
    return {document.id: document.meta for document in found}


def set_meta(store: DocumentStore, ids: Sequence[str], meta: dict[str, Any]) -> StoreWork[bool]:
    """
    Set the same meta fields on several documents, in one call where the store knows how.

    :param store: Any document store.
    :param ids: Ids of documents.
    :param meta: The fields; others stay as they are.
    :returns: Work that returns whether the store knows how.
    """
    if not ids:
        return True
    if hasattr(store, "set_meta_by_id"):
        yield StoreCall("set_meta_by_id", {"ids": ids, "meta": meta})
    elif isinstance(store, InMemoryDocumentStore):  # its filter compares every document with every id
        for node_id in ids:
            if node_id in store.storage:
                store.storage[node_id].meta.update(meta)
    elif hasattr(store, "update_by_filter"):
        for start in range(0, len(ids), _MOST_IDS):
            filters = {"field": "id", "operator": "in", "value": list(ids[start : start + _MOST_IDS])}
            yield StoreCall("update_by_filter", {"filters": filters, "meta": meta})
    else:
        return False
    return True
