# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""A server that is busy, slow, or away for a moment; over HTTP, with the real client."""

import asyncio
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx
import pytest
from haystack import Document
from haystack.document_stores.errors import DocumentStoreError
from haystack.document_stores.types import DuplicatePolicy
from haystack.utils import Secret
from haystack_integrations.document_stores.qdrant.document_store import QdrantStoreError
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from hichunk_haystack.components.writers import HierarchyWriter
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore, _retries
from hichunk_haystack.document_stores._retries import seconds_to_wait
from tests.document_stores.conftest import MakeStore, RefusedError, RestServer

QUIET = {"check_compatibility": False}
LEAVES = [Document(id=str(number), content="text", embedding=[1.0, float(number)]) for number in range(6)]


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_retries, "WAITS", (0.01, 0.01, 0.01, 0.01))


class Trouble:
    """Refuses requests of one kind, once it is set going."""

    def __init__(self, server: RestServer) -> None:
        self.answer = server.answer
        self.left = 0
        self.after = 0
        self.what: Callable[[], None] = lambda: None
        self.lock = threading.Lock()
        server.answer = self  # type: ignore[method-assign, assignment]

    def begin(self, times: int, what: Callable[[], None], after: int = 0) -> None:
        self.left, self.what, self.after = times, what, after

    def __call__(self, method: str, path: str, body: Any) -> Any:
        if path.split("?", maxsplit=1)[0].endswith("/points") and method == "PUT":
            with self.lock:
                self.after -= 1
                strikes = self.after < 0 < self.left
                self.left -= strikes
            if strikes:
                self.what()
        return self.answer(method, path, body)


def refusing(status: int) -> Callable[[], None]:
    def refuse() -> None:
        raise RefusedError(status, "too much to do")

    return refuse


@pytest.fixture
def trouble(rest_server: RestServer) -> Trouble:
    return Trouble(rest_server)


@pytest.fixture
def store(make_store: MakeStore, rest_server: RestServer) -> HierarchyQdrantDocumentStore:
    store = make_store(url=rest_server.url, client_kwargs=QUIET, write_batch_size=2, timeout=1)
    assert store.count_documents() == 0
    return store


@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_server_is_asked_again(
    status: int, store: HierarchyQdrantDocumentStore, trouble: Trouble, rest_server: RestServer
) -> None:
    trouble.begin(2, refusing(status))
    assert store.write_documents(LEAVES[:4]) == 4
    assert len(rest_server.sent("PUT", "/points")) == 4  # two refused, two taken
    trouble.begin(2, refusing(status))
    assert await store.write_documents_async(LEAVES[4:]) == 2
    assert store.count_documents() == 6


async def test_a_timeout_is_no_loss_and_nothing_comes_twice(
    store: HierarchyQdrantDocumentStore, trouble: Trouble
) -> None:
    trouble.begin(1, lambda: time.sleep(1.5))  # the server writes all the same, after the client has turned away
    assert store.write_documents(LEAVES[:2]) == 2
    trouble.begin(1, lambda: time.sleep(1.5))
    assert await store.write_documents_async(LEAVES[2:4]) == 2
    assert store.count_documents() == 4


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_server_that_stays_busy_is_an_error_that_tells_what_is_written(
    asynchronous: bool, store: HierarchyQdrantDocumentStore, trouble: Trouble, rest_server: RestServer
) -> None:
    trouble.begin(99, refusing(503), after=2)
    write = store.write_documents_async if asynchronous else partial(asyncio.to_thread, store.write_documents)
    with pytest.raises(QdrantStoreError) as caught:
        await write(LEAVES)
    message = str(caught.value)
    assert "the first 4 of 6 documents are written" in message
    assert "too busy for a request at 5 attempts" in message
    assert rest_server.url in message
    assert len(rest_server.sent("PUT", "/points")) == 2 + 5
    trouble.begin(0, refusing(503))
    assert store.count_documents() == 4
    assert store.write_documents(LEAVES, policy="overwrite") == 6  # type: ignore[arg-type]


def test_the_writer_names_the_sources_that_are_missing(store: HierarchyQdrantDocumentStore, trouble: Trouble) -> None:
    trouble.begin(99, refusing(503), after=1)
    chunks = [
        Document(id=f"{source} {n}", content="text", meta={"file_path": source}, embedding=[1.0, 0.0])
        for source in ("kiln.md", "bees.md")
        for n in range(2)
    ]
    with pytest.raises(DocumentStoreError, match=r"after 2 of 4 nodes.*1 of 2 sources are complete.*bees\.md"):
        HierarchyWriter(store, max_batch_documents=2, progress_bar=False).run(chunks)


@pytest.mark.parametrize("status", [400, 401, 413, 500])
def test_what_is_no_passing_trouble_is_told_at_once(
    status: int, store: HierarchyQdrantDocumentStore, trouble: Trouble, rest_server: RestServer
) -> None:
    trouble.begin(1, refusing(status))
    with pytest.raises(QdrantStoreError, match=f"the first 0 of 2 documents are written.*{status}"):
        store.write_documents(LEAVES[:2])
    assert len(rest_server.sent("PUT", "/points")) == 1


def test_a_server_that_was_there_and_goes_is_waited_for(
    store: HierarchyQdrantDocumentStore, rest_server: RestServer
) -> None:
    rest_server.stop()
    with pytest.raises(QdrantStoreError, match="does not answer at 5 attempts"):
        store.count_documents()


def test_a_server_that_was_never_there_is_not_waited_for(
    make_store: MakeStore,
) -> None:
    with pytest.raises(QdrantStoreError, match=r"does not answer \("):
        make_store(url="http://127.0.0.1:9", client_kwargs=QUIET).count_documents()


@pytest.mark.integration
def test_a_real_server_takes_what_is_sent_twice(make_store: MakeStore, real_server: str) -> None:
    store = make_store(url=real_server, index="hichunk-test-retries", recreate_index=True)
    for _ in range(2):
        store.write_documents(LEAVES, policy=DuplicatePolicy.OVERWRITE)
    assert store.count_documents() == 6
    store._client.delete_collection("hichunk-test-retries")


def response(status: int, **headers: str) -> UnexpectedResponse:
    return UnexpectedResponse(status, "", b"", httpx.Headers({"Retry-After": headers["after"]} if headers else {}))


def test_how_long_is_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_retries, "WAITS", (0.5, 1.0, 2.0, 4.0))
    for attempt, seconds in enumerate((0.5, 1.0, 2.0, 4.0), 1):
        wait = seconds_to_wait(response(503), attempt, answered=False)
        assert wait is not None
        assert 0.75 * seconds <= wait <= 1.25 * seconds
    assert seconds_to_wait(response(503), 5, answered=True) is None
    assert seconds_to_wait(response(429, after="7"), 1, answered=True) == 7
    assert seconds_to_wait(ResourceExhaustedResponse("", 9), 1, answered=True) == 9
    assert seconds_to_wait(response(503, after="86400"), 1, answered=True) == 30
    assert seconds_to_wait(response(404), 1, answered=True) is None
    assert seconds_to_wait(ValueError("a bug"), 1, answered=True) is None
    assert seconds_to_wait(ResponseHandlingException(ValueError("no JSON")), 1, answered=True) is None
    refused = ResponseHandlingException(httpx.ConnectError("refused"))
    assert seconds_to_wait(refused, 1, answered=False) is None
    assert seconds_to_wait(refused, 1, answered=True) is not None


# -- what goes to the client, and what never leaves


@pytest.mark.filterwarnings("ignore:Api key is used")
def test_grpc_a_cloud_address_and_its_key_go_through_and_the_key_is_dumped_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CLOUD_KEY", "very-secret")
    store = HierarchyQdrantDocumentStore(
        url="https://cluster.europe.example:6333",
        prefer_grpc=True,
        grpc_port=6399,
        api_key=Secret.from_env_var("CLOUD_KEY"),
        timeout=7,
        metadata={"team": "kiln"},
    )
    params = store._prepare_client_params()
    assert (params["url"], params["prefer_grpc"], params["grpc_port"]) == (store.url, True, 6399)
    assert (params["api_key"], params["timeout"]) == ("very-secret", 7)
    data = store.to_dict()
    assert data["init_parameters"]["api_key"] == {"type": "env_var", "env_vars": ["CLOUD_KEY"], "strict": True}
    assert "very-secret" not in repr(data)
    again = HierarchyQdrantDocumentStore.from_dict(data)
    assert (again.prefer_grpc, again.grpc_port, again.metadata) == (True, 6399, {"team": "kiln"})
    with pytest.raises(ValueError, match=r"[Tt]oken"):
        HierarchyQdrantDocumentStore(api_key=Secret.from_token("very-secret")).to_dict()


def test_over_grpc_a_server_that_is_away_is_named(make_store: MakeStore) -> None:
    store = make_store(url="http://127.0.0.1:9", grpc_port=9, prefer_grpc=True, timeout=2, client_kwargs=QUIET)
    with pytest.raises(QdrantStoreError, match=r"127\.0\.0\.1:9.*does not answer"):
        store.count_documents()
