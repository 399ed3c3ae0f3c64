# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""The two clients that a store's code sees, one to call and one to await, over one connection."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from http import HTTPStatus
from typing import Any

from qdrant_client import AsyncQdrantClient, QdrantClient
from qdrant_client.http.exceptions import UnexpectedResponse

from ._connections import Connection
from ._level_vectors import name_dense
from ._points import MAX_REQUEST_BYTES, split_by_bytes

# Calls that make sense again once a collection that somebody else has removed is there again, empty.
_DATA_METHODS = frozenset(
    {"count", "delete", "query_batch_points", "query_points", "query_points_groups", "retrieve", "scroll", "upsert"}
)


# How often a call is made again. One time is enough for embedded data, which nobody else touches meanwhile; on a server
# another process may go on removing the collection.
_RETRIES = 3

Restore = Callable[[], Callable[[str], AbstractContextManager[bool]] | None]
"""
Weak reference to a function that sees to it that a collection is there, says whether it is, and keeps the other stores
of the process out while the call is made again. Weak, so that store and client are no cycle and a forgotten store lets
go of its folder at once.
"""


class StoreClient:
    """
    What a store calls as its `QdrantClient`.

    Every request for writing points is cut to what a server accepts, and a collection that somebody has removed since
    the store looked is made again, so that reading from it answers empty. Embeddings of inner nodes come back under
    the name of all embeddings.
    """

    def __init__(self, connection: Connection, restore: Restore) -> None:
        """
        Connects to nothing yet.

        :param connection: Where calls go.
        :param restore: Makes a collection again that has gone.
        """
        self._connection = connection
        self._restore = restore

    def __getattr__(self, name: str) -> Callable[..., Any]:
        _check_method(QdrantClient, name)
        return partial(self._call, name)

    def _call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return name_dense(self._connection.call(method, *args, **kwargs))
        except Exception as error:
            return name_dense(_call_again(error, self._connection, self._restore, method, *args, **kwargs))

    def upsert(self, collection_name: str, points: list[Any], **kwargs: Any) -> Any:
        """Writes points, in several requests where one would be too large."""
        result = None
        for batch in split_by_bytes(points, MAX_REQUEST_BYTES):
            result = self._call("upsert", collection_name=collection_name, points=batch, **kwargs)
        return result

    def query_points(self, collection_name: str, **kwargs: Any) -> Any:
        """Searches; what is fused is searched for as many points as are asked for."""
        return self._call("query_points", collection_name=collection_name, **_with_prefetch_limits(kwargs))

    def query_points_groups(self, collection_name: str, **kwargs: Any) -> Any:
        """Searches for groups; what is fused is searched for as many points as the groups can hold."""
        return self._call("query_points_groups", collection_name=collection_name, **_with_prefetch_limits(kwargs))


class AsyncStoreClient:
    """The same to await, in the place of an `AsyncQdrantClient`."""

    def __init__(self, connection: Connection, restore: Restore) -> None:
        """
        Connects to nothing yet.

        :param connection: Where calls go.
        :param restore: Makes a collection again that has gone.
        """
        self._connection = connection
        self._restore = restore

    def __getattr__(self, name: str) -> Callable[..., Any]:
        _check_method(AsyncQdrantClient, name)
        return partial(self._call, name)

    async def _call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return name_dense(await self._connection.call_async(method, *args, **kwargs))
        except Exception as error:
            # In a thread and by the other client, as collections are set up with that one.
            again = partial(_call_again, error, self._connection, self._restore, method)
            return name_dense(await asyncio.to_thread(again, *args, **kwargs))

    async def upsert(self, collection_name: str, points: list[Any], **kwargs: Any) -> Any:
        """Writes points, in several requests where one would be too large."""
        result = None
        for batch in await asyncio.to_thread(list, split_by_bytes(points, MAX_REQUEST_BYTES)):
            result = await self._call("upsert", collection_name=collection_name, points=batch, **kwargs)
        return result

    async def query_points(self, collection_name: str, **kwargs: Any) -> Any:
        """Searches; what is fused is searched for as many points as are asked for."""
        return await self._call("query_points", collection_name=collection_name, **_with_prefetch_limits(kwargs))

    async def query_points_groups(self, collection_name: str, **kwargs: Any) -> Any:
        """Searches for groups; what is fused is searched for as many points as the groups can hold."""
        return await self._call("query_points_groups", collection_name=collection_name, **_with_prefetch_limits(kwargs))


def _with_prefetch_limits(arguments: dict[str, Any]) -> dict[str, Any]:
    """
    Gives a limit to searches inside of a search that name none.

    Qdrant takes 10 for them, and qdrant-haystack's hybrid search names none: it would find 20 points at most, whatever
    its `top_k`.
    """
    inner = arguments.get("prefetch")
    if not isinstance(inner, list) or not arguments.get("limit"):
        return arguments
    limit = arguments["limit"] * (arguments.get("group_size") or 1)
    limited = [one if one.limit else one.model_copy(update={"limit": limit}) for one in inner]
    return {**arguments, "prefetch": limited}


def _check_method(client_class: type, name: str) -> None:
    if name.startswith("_") or not callable(getattr(client_class, name, None)):
        msg = f"{client_class.__name__} has no method {name!r}"
        raise AttributeError(msg)


def _call_again(
    error: Exception, connection: Connection, restore: Restore, method: str, *args: Any, **kwargs: Any
) -> Any:
    """Makes a call that failed for want of its collection again, with the collection there; else raises the error."""
    for _ in range(_RETRIES):
        restored = restore()
        if method not in _DATA_METHODS or restored is None or not _is_not_found(error):
            raise error
        with restored(kwargs.get("collection_name", "")) as there:
            if not there:
                raise error
            try:
                return connection.call(method, *args, **kwargs)
            except Exception as again:
                error = again
    raise error


def _is_not_found(error: Exception) -> bool:
    if isinstance(error, UnexpectedResponse):
        return error.status_code == HTTPStatus.NOT_FOUND
    code = getattr(error, "code", None)  # of a gRPC error
    if callable(code):
        return getattr(code(), "name", "") == "NOT_FOUND"
    return isinstance(error, ValueError) and "not found" in str(error)
