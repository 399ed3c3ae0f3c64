# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""
What the stores of one process share about one place: the embedded client of a folder, its lock and its worker.

Stores take a `Hold` on a place. The client opens with the first hold that is used and closes with the last that is let
go. All changes happen under the lock of the place. Two facts keep the register itself free of locks, which matters
because the garbage collector may let go of a hold at any point of any thread: `dict.setdefault` is atomic, and a
place is retired before it leaves the register, so that whoever still finds it there tries again.
"""

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol

from ._local_client import LocalClient


class SharedPlace:
    """
    A folder, a named memory or a server, as seen by all stores of this process.

    For a server there is no client to share; the lock and the list of recreated collections are.
    """

    def __init__(self, key: str, open_client: Callable[[], LocalClient] | None) -> None:
        """
        Opens nothing yet.

        :param key: Name of the place in the register.
        :param open_client: Opens the embedded client; None for a server.
        """
        self.key = key
        self.lock = threading.RLock()
        # Asynchronous calls queue up here. In asyncio's own pool, waiting for the lock, a few of them would keep all
        # threads from whatever else runs there, such as an embedder.
        self.worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="qdrant")
        self.client: LocalClient | None = None
        self.recreated: set[str] = set()
        self.holds: set[Hold] = set()
        self.retired = False
        self.owner = os.getpid()
        self._open_client = open_client

    @property
    def in_memory(self) -> bool:
        """Whether a forked child can go on with its copy of the data."""
        return self.client is not None and self.key.startswith(":memory:")

    def open(self) -> None:
        """Opens the client if it is closed. The lock is held."""
        if self.client is None and self._open_client is not None:
            self.client = self._open_client()

    def run(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """
        Calls a client method. The lock is held.

        :param method: Name of a `QdrantClient` method.
        :param args: Passed on.
        :param kwargs: Passed on.
        :returns: What the method returns.
        """
        self.open()
        assert self.client is not None
        try:
            return self.client.run(method, *args, **kwargs)
        except sqlite3.Error:
            # What did not reach the disk must not be answered from memory: read the folder again.
            self.client.close()
            self.client = None
            raise

    def retire_if_unused(self, *, wait: bool) -> None:
        """
        Closes the client when nobody holds the place.

        :param wait: False for the garbage collector, which must not wait: if another thread has the lock, that
            thread calls this method when it leaves.
        """
        while not self.holds and not self.retired and self.lock.acquire(blocking=wait):
            try:
                if self.holds or self.retired:
                    return
                self.retired = True
                client, self.client = self.client, None
                try:
                    if client is not None:
                        client.close()
                finally:
                    _places.pop(self.key, None)
            finally:
                self.lock.release()

    def renew_after_fork(self) -> None:
        """Replaces what another thread of the parent may have held at the fork."""
        self.lock = threading.RLock()
        self.worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="qdrant")
        self.owner = os.getpid()


class Hold:
    """One store's share in a place. Letting go twice is fine, and a hold that is used again takes hold again."""

    def __init__(self, key: str, open_client: Callable[[], LocalClient] | None) -> None:
        """
        Takes no hold yet.

        :param key: Name of the place in the register.
        :param open_client: Opens the embedded client; None for a server.
        """
        self.key = key
        self._open_client = open_client
        self._held: SharedPlace | None = None

    @property
    def held(self) -> SharedPlace | None:
        """The place if it is held and belongs to this process, else None."""
        place = self._held
        return place if place is not None and place.owner == os.getpid() else None

    @contextmanager
    def place(self) -> Iterator[SharedPlace]:
        """
        Takes hold of the place and locks it.

        :returns: The locked place, its client open.
        :raises QdrantStoreError: If the client cannot be opened; nothing stays open or held then.
        """
        place = self._enter()
        try:
            try:
                place.open()
            except BaseException:
                self.let_go()
                raise
            yield place
        finally:
            place.lock.release()
            place.retire_if_unused(wait=False)

    def _enter(self) -> SharedPlace:
        while True:
            place = self.held or _places.setdefault(self.key, SharedPlace(self.key, self._open_client))
            place.lock.acquire()
            place.holds.add(self)  # before the look at `retired`: from here on nobody retires it
            if not place.retired:
                self._held = place
                return place
            place.lock.release()
            self._held = None

    def let_go(self) -> None:
        """Gives up the hold. The last one to do so closes the client, after the calls of other threads have ended."""
        place, self._held = self.held, None
        if place is not None:
            place.holds.discard(self)
            place.retire_if_unused(wait=True)

    def abandon(self) -> None:
        """The same for the garbage collector: never waits, and leaves the places of a parent process alone."""
        place, self._held = self.held, None
        if place is not None:
            place.holds.discard(self)
            place.retire_if_unused(wait=False)


class ForkAware(Protocol):
    """Something that holds locks or clients which a forked child must not use."""

    def renew_after_fork(self) -> None:
        """Runs in the child, before anything else."""


_places: dict[str, SharedPlace] = {}
_fork_aware: "weakref.WeakSet[ForkAware]" = weakref.WeakSet()


def renew_on_fork(thing: ForkAware) -> None:
    """
    Has an object told when it wakes up in a forked child.

    :param thing: Kept by weak reference.
    """
    _fork_aware.add(thing)


def _after_fork_in_child() -> None:
    for key, place in list(_places.items()):
        if place.in_memory:
            place.renew_after_fork()
        else:
            del _places[key]
    for thing in list(_fork_aware):
        thing.renew_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
