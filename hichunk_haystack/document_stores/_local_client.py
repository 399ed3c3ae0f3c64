# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""qdrant-client's embedded engine on one folder, made safe to share: one process, one commit a request."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from haystack_integrations.document_stores.qdrant.document_store import QdrantStoreError
from qdrant_client import QdrantClient

# Beside the client's own ".lock", which the client takes only after it has read all data: a process that opens the
# folder while another one closes it would start from stale data, and one that comes too late would load for nothing.
LOCK_FILE = ".process.lock"

_WRITES = frozenset(
    {
        "batch_update_points",
        "clear_payload",
        "delete",
        "delete_payload",
        "delete_vectors",
        "overwrite_payload",
        "set_payload",
        "update_vectors",
        "upsert",
    }
)


class LocalClient(QdrantClient):
    """
    An embedded Qdrant that belongs to the process that opened it.

    It is not thread-safe by itself: whoever shares it holds a lock around every call.
    """

    def __init__(self, path: str | None = None) -> None:
        """
        Opens the folder, or an in-memory engine.

        :param path: Folder of the data, made if it is missing. None keeps the data in memory.
        :raises QdrantStoreError: If another process (or another client of this one) has the folder open, or if it
            cannot be read and written.
        """
        self._owner = os.getpid()
        self._folder_lock: IO[str] | None = None
        if path is None:
            super().__init__(location=":memory:", force_disable_check_same_thread=True)
            return

        folder_in_use = False
        try:
            os.makedirs(path, exist_ok=True)
            self._folder_lock = _lock(path)
            super().__init__(path=path, force_disable_check_same_thread=True)
        except OSError as error:
            self._unlock()
            msg = f"The embedded Qdrant folder '{path}' cannot be opened ({error}): set QDRANT_PATH to another folder."
            raise QdrantStoreError(msg) from error
        except RuntimeError as error:
            self._unlock()
            folder_in_use = "already accessed" in str(error)
            if not folder_in_use:
                raise
        except BaseException:
            self._unlock()
            raise
        if folder_in_use:
            # Raised here, outside of the handler: an error chained to the client's own would keep its half-open
            # files alive for as long as the caller holds the error.
            raise folder_in_use_error(path)

    def run(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """
        Calls a client method by name, a writing one as a single transaction.

        :param method: Name of a `QdrantClient` method.
        :param args: Passed on.
        :param kwargs: Passed on.
        :returns: What the method returns.
        :raises sqlite3.Error: If the data could not be stored. What is held in memory may then be ahead of the
            folder: close this client and open a new one.
        """
        if method not in _WRITES:
            return getattr(self, method)(*args, **kwargs)
        with self._one_commit(kwargs.get("collection_name") or args[0]):
            return getattr(self, method)(*args, **kwargs)

    @contextmanager
    def _one_commit(self, collection_name: str) -> Iterator[None]:
        """
        The engine commits, and waits for the disk, once a point. This makes it once a request.

        It looks into the engine for its SQLite connection, and leaves everything as it is where it finds none: in
        memory, or in a release that is built differently.
        """
        collection = getattr(getattr(self, "_client", None), "collections", {}).get(collection_name)
        persistence = getattr(collection, "storage", None)
        connection = getattr(persistence, "storage", None)
        if persistence is None or not isinstance(connection, sqlite3.Connection):
            yield
            return
        persistence.storage = _OpenTransaction(connection)
        try:
            yield
        finally:
            # Also after an error, as the points before it are in memory by now. The lock around every call keeps
            # other threads out of the open transaction.
            persistence.storage = connection
            try:
                connection.commit()
            except sqlite3.Error:
                connection.rollback()
                raise

    def close(self, grpc_grace: float | None = None, **kwargs: Any) -> None:
        """
        Closes the files and frees the folder, in the process that opened it only.

        A forked child inherits the object; closing it there, as the garbage collector would, takes away the lock of
        its parent.

        :param grpc_grace: Passed on.
        :param kwargs: Passed on.
        """
        if getattr(self, "_owner", None) != os.getpid():
            return
        super().close(grpc_grace, **kwargs)
        self._unlock()

    def _unlock(self) -> None:
        if self._folder_lock is not None:
            self._folder_lock.close()
            self._folder_lock = None


class _OpenTransaction:
    """A SQLite connection whose `with` block does not commit."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> sqlite3.Connection:
        return self._connection

    def __exit__(self, *_: object) -> None:
        return None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def folder_in_use_error(path: str, owner: str = "") -> QdrantStoreError:
    """
    The one sentence for a folder that somebody else has open.

    :param path: The folder.
    :param owner: Process id of the one who has it, where known.
    :returns: The error to raise.
    """
    process = f"process {owner}" if owner else "another process, or by another Qdrant client of this one"
    return QdrantStoreError(
        f"The embedded Qdrant folder '{path}' is in use by {process}: stop that one, or set the environment variable "
        f"QDRANT_URL to a Qdrant server, which several processes can share."
    )


def _lock(path: str) -> IO[str]:
    # Imported late, as qdrant-client does: the import fails where no directory can be written.
    import portalocker

    file = open(os.path.join(path, LOCK_FILE), "a+", encoding="ascii")  # noqa: SIM115 (kept open while locked)
    try:
        portalocker.lock(file, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
    except portalocker.exceptions.LockException:
        owner = _read_owner(file)
    else:
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        return file
    file.close()
    raise folder_in_use_error(path, owner)


def _read_owner(file: IO[str]) -> str:
    try:
        file.seek(0)
        owner = file.read(20)
    except OSError:  # on Windows a locked file cannot be read either
        return ""
    return owner if owner.isdigit() and owner != str(os.getpid()) else ""
