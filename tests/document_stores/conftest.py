# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""
Every behaviour of the store is tested on a folder, in memory and over HTTP, and on a real server where there is one.

`QDRANT_URL` (and `QDRANT_API_KEY`) name the real server. The tests over HTTP talk to a stand-in: the routes that the
store uses, answered by qdrant-client's own engine. It refuses what a server in strict mode refuses: a request above
32 MB, a filter on a field without an index, a wrong key.
"""

import json
import os
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter
from qdrant_client import QdrantClient
from qdrant_client.http import models as rest

from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore

REAL_SERVER = os.environ.get("QDRANT_URL")
REAL_KEY = os.environ.get("QDRANT_API_KEY")
MAX_BYTES = 32 * 1024 * 1024


class RestServer:
    """A small HTTP server in front of an in-memory engine. It keeps a list of (method, path, bytes) it was sent."""

    def __init__(self) -> None:
        self.engine = QdrantClient(location=":memory:")
        self.lock = threading.Lock()
        self.indexes: dict[str, dict[str, str]] = {}
        self.requests: list[tuple[str, str, int]] = []
        self.keys: list[str | None] = []
        self.required_key: str | None = None
        self.before: Callable[[str, str], None] = lambda method, path: None
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def sent(self, method: str, end: str) -> list[int]:
        return [size for verb, path, size in self.requests if verb == method and path.endswith(end)]

    def answer(self, method: str, path: str, body: Any) -> Any:
        if path == "/":
            return {"title": "stand-in", "version": "1.20.0"}
        _, name, *rest_of_path = path.split("?", maxsplit=1)[0].strip("/").split("/")
        route = "/".join([method, *rest_of_path])
        with self.lock:
            exists = self.engine.collection_exists(name)
            if route == "GET/exists":
                return {"exists": exists}
            if exists == (route == "PUT"):
                raise RefusedError(*((409, "it exists") if exists else (404, f"Collection `{name}` doesn't exist!")))
            for key in _filter_keys(body):
                if key not in self.indexes[name]:
                    raise RefusedError(400, f'Index required but not found for "{key}"')
            if route not in ROUTES:
                raise RefusedError(501, f"not part of the stand-in: {route}")
            return ROUTES[route](self, name, body)

    def create(self, name: str, body: Any) -> Any:
        self.indexes[name] = {}
        config = rest.CreateCollection(**body)
        return self.engine.create_collection(name, config.vectors, config.sparse_vectors)

    def describe(self, name: str, body: Any) -> Any:
        schema = {field: {"data_type": kind, "points": 0} for field, kind in self.indexes[name].items()}
        return {**self.engine.get_collection(name).model_dump(mode="json"), "payload_schema": schema}

    def create_index(self, name: str, body: Any) -> Any:
        self.indexes[name][body["field_name"]] = body["field_schema"]
        return {"operation_id": 0, "status": "completed"}

    def scroll(self, name: str, body: Any) -> Any:
        points, after = self.engine.scroll(
            name,
            scroll_filter=rest.ScrollRequest(**body).filter,
            limit=body["limit"],
            offset=body.get("offset"),
            with_payload=body["with_payload"],
            with_vectors=body["with_vector"],
        )
        return rest.ScrollResult(points=points, next_page_offset=after)

    def query(self, name: str, body: Any) -> Any:
        request = rest.QueryRequest(**body)
        return self.engine.query_points(
            name, request.query, query_filter=request.filter, limit=request.limit, with_vectors=request.with_vector
        )

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"  # connections stay open

            def handle_any(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(size)
                server.requests.append((self.command, self.path.split("?")[0], size))
                server.keys.append(self.headers.get("api-key"))
                server.before(self.command, self.path)
                try:
                    if server.required_key not in (None, self.headers.get("api-key")):
                        raise RefusedError(401, "Must provide an API key or an Authorization bearer token")
                    if size > MAX_BYTES:
                        raise RefusedError(413, f"Payload error: JSON payload ({size} bytes) is larger than allowed")
                    result = server.answer(self.command, self.path, json.loads(body) if body else None)
                except RefusedError as refusal:
                    self.reply(refusal.status, {"status": {"error": str(refusal)}, "time": 0.0})
                except ValueError as error:
                    self.reply(400, {"status": {"error": str(error)}, "time": 0.0})
                else:
                    answer = {"result": _plain(result), "status": "ok", "time": 0.0}
                    self.reply(200, answer if self.path != "/" else result)

            do_GET = do_PUT = do_POST = do_DELETE = handle_any  # noqa: N815

            def reply(self, status: int, answer: Any) -> None:
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


class RefusedError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


ROUTES: dict[str, Callable[[RestServer, str, Any], Any]] = {
    "PUT": RestServer.create,
    "GET": RestServer.describe,
    "DELETE": lambda server, name, body: server.engine.delete_collection(name),
    "PUT/index": RestServer.create_index,
    "PUT/points": lambda server, name, body: server.engine.upsert(name, rest.PointsList(**body).points),
    "POST/points": lambda server, name, body: server.engine.retrieve(
        name, body["ids"], body["with_payload"], body["with_vector"]
    ),
    "POST/points/delete": lambda server, name, body: server.engine.delete(
        name, TypeAdapter(rest.PointsSelector).validate_python(body)
    ),
    "POST/points/count": lambda server, name, body: server.engine.count(name, rest.CountRequest(**body).filter),
    "POST/points/scroll": RestServer.scroll,
    "POST/points/query": RestServer.query,
}


def _plain(result: Any) -> Any:
    if isinstance(result, list):
        return [_plain(item) for item in result]
    return result.model_dump(mode="json") if hasattr(result, "model_dump") else result


def _filter_keys(body: Any) -> set[str]:
    def walk(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            if isinstance(node.get("key"), str):
                yield node["key"]
            for value in node.values():
                yield from walk(value)
        elif isinstance(node, list):
            for item in node:
                yield from walk(item)

    return set(walk((body or {}).get("filter"))) if isinstance(body, dict) else set()


@pytest.fixture(autouse=True)
def clean_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No variable decides where a test connects, and a relative folder lands in the test's own."""
    for name in ("QDRANT_URL", "QDRANT_API_KEY", "QDRANT_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def rest_server() -> Iterator[RestServer]:
    server = RestServer()
    yield server
    server.stop()


@pytest.fixture
def real_server(monkeypatch: pytest.MonkeyPatch) -> str:
    if not REAL_SERVER:
        pytest.skip("QDRANT_URL names no server")
    if REAL_KEY:
        monkeypatch.setenv("QDRANT_API_KEY", REAL_KEY)
    return REAL_SERVER


BACKENDS = ["folder", "memory", "http", pytest.param("server", marks=pytest.mark.integration)]


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Init parameters that lead to the same data however often they are used."""
    index = f"hichunk-test-{uuid.uuid4()}"
    if request.param == "folder":
        yield {"path": str(tmp_path / "folder"), "index": index}
    elif request.param == "memory":
        yield {"location": f":memory:{index}", "index": index}
    elif request.param == "http":
        url = request.getfixturevalue("rest_server").url
        yield {"url": url, "index": index, "client_kwargs": {"check_compatibility": False}}
    else:
        url = request.getfixturevalue("real_server")
        yield {"url": url, "index": index}
        QdrantClient(url=url, api_key=REAL_KEY).delete_collection(index)


MakeStore = Callable[..., HierarchyQdrantDocumentStore]


@pytest.fixture
def make_store() -> Iterator[MakeStore]:
    """Makes stores of two dimensions that are closed in the end."""
    stores: list[HierarchyQdrantDocumentStore] = []

    def make(**settings: Any) -> HierarchyQdrantDocumentStore:
        store = HierarchyQdrantDocumentStore(**{"embedding_dim": 2, **settings})
        stores.append(store)
        return store

    yield make
    for store in stores:
        with suppress(Exception):
            store.close()
