# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""The folder between processes: a second one, a killed one, a forked one, one that just ends; and the disk."""

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from haystack import Document
from haystack.document_stores.types import DuplicatePolicy
from haystack_integrations.document_stores.qdrant.document_store import QdrantStoreError
from qdrant_client import QdrantClient

PROJECT = Path(__file__).parents[2]
LEAVES = [Document(id=str(number), content="x", embedding=[1.0, float(number)]) for number in range(30)]

# Haystack imports torch where it is installed, which takes longer than everything else here.
SETUP = """
import sys
sys.modules["torch"] = None
from haystack import Document
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
store = HierarchyQdrantDocumentStore(path="data", embedding_dim=2, write_batch_size=5)
"""


def start(script: str, folder: Path) -> subprocess.Popen:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    return subprocess.Popen(
        [sys.executable, "-c", SETUP + textwrap.dedent(script)],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[subprocess.Popen]:
    """A process that writes five leaves at a time and reports each that has been acknowledged."""
    process = start(
        """
        for batch in range(10_000):
            store.write_documents([Document(id=f"{batch}-{n}", content="x") for n in range(5)])
            print(batch, flush=True)
        """,
        tmp_path,
    )
    yield process
    process.kill()
    process.communicate()


def open_files(folder: Path) -> list[str]:
    names = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            names.append(str(entry.readlink()))
        except FileNotFoundError:  # the listing's own
            continue
    return [name for name in names if name.startswith(str(folder))]


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are listed on Linux only")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


@needs_proc
def test_a_second_process_gets_one_sentence_and_works_when_the_first_has_been_killed(writer, make_store, tmp_path):
    assert writer.stdout.readline() == "0\n"
    store = make_store(path="data")
    for _ in range(2):
        with pytest.raises(QdrantStoreError) as raised:
            store.count_documents()
        message = str(raised.value)
        assert str(tmp_path / "data") in message
        assert f"process {writer.pid}" in message
        assert "QDRANT_URL" in message
        assert message.count(".") - message.count(str(tmp_path)) * str(tmp_path).count(".") == 1
        # the error is held here, and still no file of the folder is open
        assert open_files(tmp_path) == []
    writer.send_signal(signal.SIGKILL)
    acknowledged = [0, *map(int, writer.communicate()[0].split())]
    assert store.count_documents() >= 5 * len(acknowledged)
    expected = [f"{batch}-{number}" for batch in acknowledged for number in range(5)]
    assert [node.id for node in store.get_nodes_by_id(expected)] == expected


def test_a_process_that_comes_second_is_refused_and_goes_on_later_and_ends_without_a_word(make_store, tmp_path):
    store = make_store(path="data")
    store.write_documents(LEAVES)
    second = start(
        """
        try:
            store.count_documents()
        except Exception as error:
            print(type(error).__name__, error, flush=True)
        input()
        print(store.count_documents())
        """,
        tmp_path,
    )
    refusal = second.stdout.readline()
    assert refusal.startswith("QdrantStoreError The embedded Qdrant folder")
    assert f"in use by process {os.getpid()}" in refusal
    store.close()
    assert second.communicate("go\n", timeout=60) == ("30\n", "")
    assert store.count_documents() == 30


@needs_proc
def test_a_stock_client_of_the_same_process_is_told_as_well(make_store, tmp_path):
    stock = QdrantClient(path=str(tmp_path / "data"))
    before = open_files(tmp_path)
    store = make_store(path="data")
    with pytest.raises(QdrantStoreError, match=r"another Qdrant client of this one.*QDRANT_URL") as raised:
        store.count_documents()
    assert sorted(open_files(tmp_path)) == sorted(before), raised  # while the error is held
    stock.close()
    assert store.count_documents() == 0


def test_a_folder_that_cannot_be_made_is_named(make_store, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(QdrantStoreError, match=r"file/data.*QDRANT_PATH"):
        make_store(path="file/data").count_documents()


@needs_fork
def test_a_forked_child_leaves_the_folder_to_its_parent(tmp_path):
    """In the child, everything that could close the parent's client runs: use, garbage collection, a normal exit."""
    process = start(
        """
        import fcntl, gc, os, threading
        from haystack_integrations.document_stores.qdrant.document_store import QdrantStoreError
        memory = HierarchyQdrantDocumentStore(location=":memory:", embedding_dim=2)
        other = HierarchyQdrantDocumentStore(path="data", embedding_dim=2)
        busy = HierarchyQdrantDocumentStore(path="busy", embedding_dim=2)
        for each in (store, memory):
            each.write_documents([Document(id="parent", content="x")])
        other.count_documents()
        busy.count_documents()
        # A thread of a library, such as that of a progress bar, may hold a lock at the fork.
        assert threading.enumerate() == [threading.main_thread()], threading.enumerate()
        inside, leave = threading.Event(), threading.Event()

        def hold():
            with memory._set_up_lock, memory._connection.exclusive(), busy._set_up_lock, busy._connection.exclusive():
                inside.set()
                leave.wait()

        thread = threading.Thread(target=hold)
        thread.start()
        inside.wait()
        child = os.fork()
        if child == 0:
            # the thread that would release the locks does not exist here
            memory.write_documents([Document(id="child", content="x")])
            messages = []
            for each in (store, busy):
                try:
                    each.count_documents()
                except QdrantStoreError as error:
                    messages.append(str(error))
            other.close()
            del each, store, other
            gc.collect()
            refused = len(messages) == 2 and all(str(os.getppid()) in message for message in messages)
            sys.exit(0 if memory.count_documents() == 2 and refused else 4)
        leave.set()
        thread.join()
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        for lock in (".lock", ".process.lock"):
            with open(f"data/{lock}", "r+") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    print(lock, "lost")
                except BlockingIOError:
                    print(lock, "held")
        store.write_documents([Document(id="later", content="x")])
        print(store.count_documents(), memory.count_documents())
        """,
        tmp_path,
    )
    output, errors = process.communicate(timeout=60)
    assert errors == ""
    assert output.splitlines() == ["0", ".lock held", ".process.lock held", "2 1"]


def sqlite_connection(store) -> sqlite3.Connection:
    return store._connection._hold.held.client._client.collections[store.index].storage.storage


def test_a_request_is_one_transaction(make_store):
    store = make_store(path="data", write_batch_size=10)
    store.count_documents()
    statements: list[str] = []
    sqlite_connection(store).set_trace_callback(statements.append)
    store.write_documents(LEAVES)
    assert statements.count("COMMIT") == 3
    statements.clear()
    store.delete_documents([leaf.id for leaf in LEAVES[:20]])
    assert statements.count("COMMIT") == 1
    store.close()
    assert store.count_documents() == 10


async def test_what_the_disk_refused_is_not_answered_from_memory(make_store):
    store = make_store(path="data", write_batch_size=10)
    store.write_documents(LEAVES[:10])
    connection = sqlite_connection(store)
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")  # the disk is full
    big = [Document(id=f"big-{number}", content="x" * 1000) for number in range(10)]
    with pytest.raises(sqlite3.OperationalError, match="full"):
        store.write_documents(big, DuplicatePolicy.OVERWRITE)
    assert sorted(document.id for document in store.filter_documents()) == sorted(leaf.id for leaf in LEAVES[:10])
    # the folder has been read again, and the bound with it
    assert await store.write_documents_async(big) == 10
    assert store.count_documents() == 20
