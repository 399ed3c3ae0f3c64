# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Where a store connects to, and the ways there: an embedded folder or memory that is shared, or a server."""

import asyncio
import contextvars
import os
import threading
import time
import uuid
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from typing import Any

from haystack import logging
from haystack_integrations.document_stores.qdrant.document_store import QdrantStoreError
from qdrant_client import AsyncQdrantClient, QdrantClient
from qdrant_client.http.exceptions import ResponseHandlingException

from ._local_client import LocalClient
from ._retries import is_busy, is_out_of_reach, seconds_to_wait
from ._shared_places import Hold, SharedPlace

logger = logging.getLogger(__name__)

DEFAULT_PATH = "qdrant_data"
MEMORY = ":memory:"


class Connection(ABC):
    """A way to the data: calls client methods by name, from threads and from event loops."""

    embedded: bool

    def __init__(self, hold: Hold) -> None:
        """
        Connects to nothing yet.

        :param hold: The share in the place that this connection leads to.
        """
        self._hold = hold
        weakref.finalize(self, hold.abandon)

    @abstractmethod
    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Calls a client method and waits for its result."""

    @abstractmethod
    async def call_async(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """The same without keeping the event loop from its other work."""

    @abstractmethod
    def close(self) -> None:
        """Lets go of the place and closes what needs no event loop for that. The next call connects again."""

    @abstractmethod
    async def close_async(self) -> None:
        """Lets go of the place and closes everything. The next call connects again."""

    @contextmanager
    def exclusive(self) -> Iterator[SharedPlace]:
        """Keeps the other stores of this process out while a collection is set up."""
        with self._hold.place() as place:
            yield place

    @property
    def place(self) -> str:
        """Where it leads to, for messages: a folder, a memory or a server."""
        return f"'{self._hold.key.split()[0] if not self.embedded else self._hold.key}'"

    @property
    def survives_fork(self) -> bool:
        """Whether a forked child may go on with it."""
        return self._hold.held is not None and self._hold.held.in_memory


class EmbeddedConnection(Connection):
    """Shares the one client of a folder or a memory with every other store of the process."""

    embedded = True

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Waits for its turn, then calls the shared client."""
        with self._hold.place() as place:
            return place.run(method, *args, **kwargs)

    async def call_async(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Calls the shared client in the worker thread of the place, in the caller's context."""
        place = self._hold.held
        call = partial(contextvars.copy_context().run, self.call, method, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(place.worker if place else None, call)

    def close(self) -> None:
        """Lets go of the place. The last store to do so closes the client."""
        self._hold.let_go()

    async def close_async(self) -> None:
        """The same in a thread, since it waits for calls that are under way."""
        await asyncio.to_thread(self.close)


class ServerConnection(Connection):
    """A client of its own for a server, and one for each event loop, as their sockets belong to a loop."""

    embedded = False

    def __init__(self, hold: Hold, params: dict[str, Any]) -> None:
        """
        Connects to nothing yet.

        :param hold: The share in the lock of this server.
        :param params: Arguments for both client classes.
        """
        super().__init__(hold)
        self._params = params
        self._answered = False
        self._lock = threading.Lock()
        self._client: QdrantClient | None = None
        self._async_clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncQdrantClient]
        self._async_clients = weakref.WeakKeyDictionary()

    def _arguments(self) -> dict[str, Any]:
        # copies, because the clients write the API key into the dictionaries they are given
        return {key: {**value} if isinstance(value, dict) else value for key, value in self._params.items()}

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Calls the client, which is safe under threads."""
        with self._lock:
            if self._client is None:
                self._client = QdrantClient(**self._arguments())
            client = self._client
        for attempt in count(1):
            try:
                answer = getattr(client, method)(*args, **kwargs)
            except Exception as error:
                time.sleep(self._wait_or_raise(error, attempt))
            else:
                self._answered = True
                return answer
        raise AssertionError  # never: the loop has no end

    async def call_async(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Awaits the client of the running loop."""
        loop = asyncio.get_running_loop()
        client = self._async_clients.get(loop)
        if client is None:
            # the other client has compared versions already
            client = AsyncQdrantClient(**{**self._arguments(), "check_compatibility": False})
            self._async_clients[loop] = client
        for attempt in count(1):
            try:
                answer = await getattr(client, method)(*args, **kwargs)
            except Exception as error:
                await asyncio.sleep(self._wait_or_raise(error, attempt))
            else:
                self._answered = True
                return answer
        raise AssertionError  # never: the loop has no end

    def _wait_or_raise(self, error: Exception, attempt: int) -> float:
        """Seconds to wait for the next attempt; where there is none, the error."""
        wait = seconds_to_wait(error, attempt, answered=self._answered)
        if wait is not None:
            logger.warning(
                "The Qdrant server {place} did not take a request ({error}); attempt {attempt} follows in {wait} s.",
                place=self.place,
                error=_first_line(error),
                attempt=attempt + 1,
                wait=round(wait, 1),
            )
            return wait
        tried = f" at {attempt} attempts" if attempt > 1 else ""
        if is_busy(error):
            msg = (
                f"The Qdrant server {self.place} is too busy for a request{tried} ({_first_line(error)}): try again "
                "later, write less at once (`write_batch_size`), or give it more to work with."
            )
            raise QdrantStoreError(msg) from error
        if is_out_of_reach(error) or isinstance(error, ResponseHandlingException):
            msg = (
                f"The Qdrant server {self.place} does not answer{tried} ({_first_line(error)}): start it, or check "
                "QDRANT_URL and `url`. Without either, an embedded folder is used."
            )
            raise QdrantStoreError(msg) from error
        raise error

    def close(self) -> None:
        """Closes the client for calls from threads."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):
                client.close()
        self._hold.let_go()

    async def close_async(self) -> None:
        """Closes the client of the running loop as well."""
        client = self._async_clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            with suppress(Exception):
                await client.close()
        await asyncio.to_thread(self.close)


def connect(place: dict[str, Any], server_params: Callable[[], dict[str, Any]]) -> Connection:
    """
    Decides where a store connects to. No connection is made before the first call.

    An explicit `location`, `url` or `host` wins, then the environment variable `QDRANT_URL`, then the embedded folder
    of `QDRANT_PATH`, of `path`, or `DEFAULT_PATH`.

    :param place: `location`, `url`, `host`, `path`, `port` and `prefix` of the store.
    :param server_params: Gives all arguments for a server's client. Called for a server only, so that an embedded
        store needs no API key. A server named by `QDRANT_URL` falls back on the key of `QDRANT_API_KEY`.
    :returns: The connection.
    :raises ValueError: If more than one of `location`, `url`, `host` and `path` is given.
    """
    given = [name for name in ("location", "url", "host", "path") if place.get(name)]
    if len(given) > 1:
        msg = f"Only one of location, url, host and path can be given, got {', '.join(given)}."
        raise ValueError(msg)

    location = place.get("location") or ""
    if location.startswith(MEMORY):
        # without a name, a memory of its own
        key = location if location != MEMORY else f"{MEMORY}{uuid.uuid4()}"
        return EmbeddedConnection(Hold(key, LocalClient))

    explicit = location or place.get("url") or place.get("host")
    server = explicit or os.environ.get("QDRANT_URL", "").strip()
    if not server:
        folder = os.environ.get("QDRANT_PATH", "").strip() or place.get("path") or DEFAULT_PATH
        folder = os.path.realpath(os.path.expanduser(folder))
        return EmbeddedConnection(Hold(os.path.normcase(folder), partial(LocalClient, folder)))

    params = server_params()
    if not explicit:
        params = {**params, "url": server, "path": None}
        params["api_key"] = params.get("api_key") or os.environ.get("QDRANT_API_KEY")
    # docker compose passes a variable that is not set as an empty one
    params["api_key"] = params.get("api_key") or None
    return ServerConnection(Hold(f"{server} {place.get('port')} {place.get('prefix')}", None), params)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
