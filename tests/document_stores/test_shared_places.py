# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""One client a place in a process: who opens it, who closes it, and who waits for whom."""

import asyncio
import contextvars
import copy
import gc
import pickle
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from haystack import Document
from haystack.document_stores.types import DuplicatePolicy
from qdrant_client import QdrantClient

from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore, _shared_places

LEAF = Document(id="leaf", content="text", embedding=[1.0, 0.0])


def is_free(path: Path) -> bool:
    """Whether another client could open the folder."""
    try:
        QdrantClient(path=str(path)).close()
    except RuntimeError:
        return False
    return True


def leaves(name: str, count: int) -> list[Document]:
    return [Document(id=f"{name}-{number}", content=name, embedding=[1.0, float(number)]) for number in range(count)]


def test_stores_on_one_folder_share_its_client_whatever_they_call_it(make_store, tmp_path):
    folder = tmp_path / "data"
    (tmp_path / "link").symlink_to(folder)
    first = make_store(path=str(folder))
    first.write_documents([LEAF])
    for path in (str(folder), "data", str(tmp_path / "link"), f"{folder}/../data/"):  # the test runs in tmp_path
        assert make_store(path=path).count_documents() == 1
    assert not is_free(folder)


def test_a_folder_stays_where_it_is_when_the_working_directory_changes(make_store, tmp_path, monkeypatch):
    store = make_store(path="data")
    store.write_documents([LEAF])
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    store.delete_all_documents(recreate_index=True)  # rewrites the folder's list of collections
    assert store.count_documents() == 0
    assert list(Path().iterdir()) == []


def test_the_last_user_closes(make_store, tmp_path):
    first, second = make_store(path="data"), make_store(path="data", index="other")
    first.write_documents([LEAF])
    second.count_documents()
    first.close()
    first.close()
    assert not is_free(tmp_path / "data")
    assert second.count_documents() == 0
    second.close()
    assert is_free(tmp_path / "data")
    assert first.count_documents() == 1
    assert not is_free(tmp_path / "data")
    first.close()
    assert is_free(tmp_path / "data")


def test_a_store_recreates_once_even_if_it_is_alone_and_closed_in_between(make_store, tmp_path):
    earlier = make_store(path="data")
    earlier.write_documents([LEAF, replace(LEAF, id="second")])
    earlier.close()
    store = make_store(path="data", recreate_index=True)
    assert store.count_documents() == 0
    store.write_documents([LEAF])
    store.close()
    assert is_free(tmp_path / "data")
    assert store.count_documents() == 1


async def test_closing_from_a_coroutine(make_store, tmp_path):
    store = make_store(path="data")
    await store.write_documents_async([LEAF])
    await store.close_async()
    assert is_free(tmp_path / "data")
    assert await store.count_documents_async() == 1
    store.close()
    assert is_free(tmp_path / "data")


def test_a_forgotten_store_lets_go_at_once(tmp_path):
    store = HierarchyQdrantDocumentStore(path="data", embedding_dim=2)
    store.write_documents([LEAF])
    gc.disable()  # reference counts alone must do
    try:
        del store
        assert is_free(tmp_path / "data")
    finally:
        gc.enable()


def test_stores_forgotten_during_a_call_are_let_go_after_it(make_store, tmp_path):
    stores = [make_store(path="data"), make_store(path="data")]
    for store in stores:
        store.count_documents()
    inside, leave = threading.Event(), threading.Event()

    def call() -> None:
        with stores[0]._connection.exclusive():
            inside.set()
            leave.wait(5)

    thread = threading.Thread(target=call)
    thread.start()
    inside.wait(5)
    start = time.perf_counter()
    for store in stores:
        store._connection._hold.abandon()  # what the garbage collector calls; it must not wait
    assert time.perf_counter() - start < 1
    assert not is_free(tmp_path / "data")
    leave.set()
    thread.join()
    assert is_free(tmp_path / "data")
    assert str(tmp_path / "data") not in _shared_places._places


def test_closing_waits_for_a_call_that_is_under_way(make_store, tmp_path):
    store = make_store(path="data")
    store.count_documents()
    client = store._connection._hold.held.client
    inside, order = threading.Event(), []

    def call() -> None:
        with store._connection.exclusive():
            inside.set()
            time.sleep(0.2)
            order.append(client.count(store.index).count)  # raises if the client has been closed

    thread = threading.Thread(target=call)
    thread.start()
    inside.wait(5)
    store.close()
    order.append("closed")
    thread.join()
    assert order == [0, "closed"]
    assert is_free(tmp_path / "data")


def test_memory_is_private_without_a_name_and_shared_by_name(make_store):
    private, other = make_store(location=":memory:"), make_store(location=":memory:")
    private.write_documents([LEAF])
    assert asyncio.run(private.count_documents_async()) == 1
    assert other.count_documents() == 0

    first, second = make_store(location=":memory:a"), make_store(location=":memory:a")
    third = make_store(location=":memory:b")
    first.write_documents([LEAF])
    assert [second.count_documents(), third.count_documents()] == [1, 0]
    first.close()
    assert second.count_documents() == 1
    second.close()
    assert first.count_documents() == 0


def test_threads_that_open_at_once_share_one_client(make_store):
    stores = [make_store(path="data", index=f"index-{number % 2}") for number in range(8)]
    barrier, clients, errors = threading.Barrier(8), set(), []

    def use(store: HierarchyQdrantDocumentStore) -> None:
        try:
            barrier.wait(5)
            store.count_documents()
            clients.add(id(store._connection._hold.held.client))
        except Exception as error:
            errors.append(error)

    run_threads([(use, store) for store in stores])
    assert errors == []
    assert len(clients) == 1


def test_threads_that_write_query_close_and_forget(make_store):
    keeper = make_store(path="data")
    errors, found = [], []

    def use(name: str) -> None:
        try:
            for turn in range(5):
                store = HierarchyQdrantDocumentStore(path="data", embedding_dim=2, write_batch_size=3)
                store.write_documents(leaves(f"{name}-{turn}", 7))
                found.append(len(store._query_by_embedding([1.0, 0.0], top_k=7)))
                asyncio.run(store.get_nodes_by_id_async([f"{name}-{turn}-0"]))
                if turn % 2:
                    store.close()
        except Exception as error:
            errors.append(error)

    run_threads([(use, f"thread-{number}") for number in range(4)])
    assert errors == []
    assert found == [7] * 20
    documents = keeper.filter_documents()
    assert sorted(document.id for document in documents) == sorted(
        f"thread-{thread}-{turn}-{number}" for thread in range(4) for turn in range(5) for number in range(7)
    )
    assert all(document.id.startswith(document.content) for document in documents)


def run_threads(calls: list[tuple]) -> None:
    threads = [threading.Thread(target=function, args=arguments, daemon=True) for function, *arguments in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(15)
    assert not any(thread.is_alive() for thread in threads)


async def test_many_coroutines_and_a_thread_at_once(make_store):
    store, other = make_store(path="data"), make_store(path="data")
    writes = [store.write_documents_async(leaves(f"task-{number}", 5)) for number in range(12)]
    queries = [other._query_by_embedding_async([1.0, 0.0], top_k=3) for _ in range(12)]
    thread = asyncio.to_thread(other.write_documents, leaves("thread", 20))
    results = await asyncio.gather(*writes, *queries, thread)
    assert results[:12] == [5] * 12
    assert all(len(hits) <= 3 for hits in results[12:24])
    assert store.count_documents() == 12 * 5 + 20
    assert len(await store._query_by_embedding_async([1.0, 0.0], top_k=3)) == 3


async def test_waiting_for_the_lock_blocks_neither_the_loop_nor_other_threads(make_store):
    store = make_store(path="data")
    await store.count_documents_async()
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with store._connection.exclusive():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    await asyncio.to_thread(inside.wait, 5)
    calls = [asyncio.create_task(store.count_documents_async()) for _ in range(40)]
    await asyncio.sleep(0.05)
    # more calls are waiting than asyncio has threads in its pool
    assert await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 5) == "free"
    assert not any(call.done() for call in calls)
    calls.pop().cancel()
    leave.set()
    assert await asyncio.gather(*calls) == [0] * 39
    thread.join()


async def test_awaited_calls_run_in_the_callers_context(make_store):
    store = make_store(location=":memory:")
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("span")
    await store.count_documents_async()
    client = store._connection._hold.held.client
    client.info = variable.get
    assert await store._async_client.info() == "span"


def test_a_store_closed_while_it_writes_goes_on(make_store):
    store = make_store(path="data", write_batch_size=1)
    writer = threading.Thread(target=store.write_documents, args=(leaves("leaf", 20), DuplicatePolicy.OVERWRITE))
    writer.start()
    while writer.is_alive():
        store.close()
    writer.join()
    assert store.count_documents() == 20


def test_restoring_a_collection_and_connecting_at_once_do_not_lock_up(make_store, monkeypatch):
    store, other = make_store(path="data"), make_store(path="data")
    store.count_documents()
    other.count_documents()
    set_up = store._set_up_own_collection
    answers = []
    second = threading.Thread(target=lambda: answers.append(store.count_documents()), daemon=True)

    def set_up_while_another_thread_connects(*, recreate: bool) -> None:
        if second.ident is None:
            store._ready = False  # as after closing
            second.start()
            time.sleep(0.1)
        set_up(recreate=recreate)

    monkeypatch.setattr(store, "_set_up_own_collection", set_up_while_another_thread_connects)
    other._client.delete_collection("Document")
    run_threads([(lambda: answers.append(store.count_documents()),)])
    second.join(5)
    assert answers == [0, 0]


def test_a_collection_that_is_removed_again_and_again(make_store):
    store, awaited, other = make_store(path="data"), make_store(path="data"), make_store(path="data")
    other.count_documents()
    errors, counts, done = [], [], threading.Event()

    def remove() -> None:
        while not done.is_set():
            other._client.delete_collection("Document")

    def close_and_count() -> None:
        try:
            for turn in range(60):
                if turn % 3 == 0:
                    store.close()
                counts.append(store.count_documents())
                counts.append(asyncio.run(awaited.count_documents_async()))
        except Exception as error:
            errors.append(error)
        done.set()

    run_threads([(close_and_count,), (remove,)])
    assert errors == []
    assert counts == [0] * 120


@pytest.mark.parametrize("copy_of", [copy.deepcopy, lambda store: pickle.loads(pickle.dumps(store))])
def test_a_copy_is_a_store_of_its_own(make_store, tmp_path, copy_of):
    store = make_store(path="data")
    store.write_documents([LEAF])
    twin = copy_of(store)
    assert twin.to_dict() == store.to_dict()
    assert twin.count_documents() == 1
    store.close()
    assert not is_free(tmp_path / "data")
    twin.close()
    assert is_free(tmp_path / "data")
