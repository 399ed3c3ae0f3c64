# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Collections are copied point by point: from folder to folder, and to a server over HTTP."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from haystack import Document
from haystack.dataclasses import SparseEmbedding
from haystack_integrations.document_stores.qdrant import QdrantDocumentStore
from haystack_integrations.document_stores.qdrant.document_store import QdrantStoreError
from qdrant_client import QdrantClient

from hichunk_haystack.copying import CopyReport, copy_collection, main
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from tests.document_stores.conftest import REAL_KEY, REAL_SERVER, RefusedError, RestServer

DIMENSION = 3


@pytest.fixture(autouse=True)
def clean_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("QDRANT_URL", "QDRANT_API_KEY", "QDRANT_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def rest_server() -> Iterator[RestServer]:
    server = RestServer()
    yield server
    server.stop()


def nodes(count: int = 12) -> list[Document]:
    """Leaves with vectors, inner nodes without; payload of every kind."""
    leaves = [
        Document(
            id=f"leaf {n}",
            content=f"Blatt {n} 葉 \U0001f33f",
            meta={"n": n, "tags": ["a", {"b": None}], "part": 0.1 * n, "__children_ids": [], "__level": 1},
            embedding=[0.6, 0.8 * (n % 2), float(n)],
        )
        for n in range(count)
    ]
    return [*leaves, Document(id="root", content="", meta={"__level": 0, "__children_ids": ["leaf 0"]})]


def store_on(path: str | Path, /, **settings: Any) -> HierarchyQdrantDocumentStore:
    defaults = {"path": str(path), "index": "hichunk", "embedding_dim": DIMENSION}
    return HierarchyQdrantDocumentStore(**{**defaults, **settings})


def points(path: str | Path, index: str = "hichunk") -> dict[Any, Any]:
    """Everything in a folder, read with the stock client."""
    client = QdrantClient(path=str(path))
    try:
        found, after = client.scroll(index, limit=10_000, with_payload=True, with_vectors=True)
        assert after is None
        return {point.id: (point.vector, point.payload) for point in found}
    finally:
        client.close()


def filled(path: str, **settings: Any) -> None:
    store = store_on(path, **settings)
    store.write_documents(nodes())
    store.close()


@pytest.mark.parametrize("similarity", ["cosine", "dot_product", "l2"])
def test_a_folder_is_copied_to_a_folder_as_it_is(similarity: str, capsys: pytest.CaptureFixture[str]) -> None:
    filled("here", similarity=similarity)
    assert main(["here", "there", "--page-size", "5"]) == 0
    assert capsys.readouterr().out == "13 points: 13 copied, 0 were there.\n"
    assert points("there") == points("here")
    assert len(points("there")) == 13
    assert main(["here", "there"]) == 0
    assert capsys.readouterr().out == "13 points: 0 copied, 13 were there.\n"
    copy = store_on("there", similarity=similarity)
    (found,) = copy._query_by_embedding([0.6, 0.0, 0.0], top_k=1)
    assert found.id in {f"leaf {n}" for n in range(12)}
    copy.close()


@pytest.mark.parametrize("settings", [{"use_sparse_embeddings": True}, {"inner_embeddings": True}])
def test_vectors_keep_their_names(settings: dict[str, Any]) -> None:
    source = store_on("here", **settings)
    source.write_documents(
        [
            Document(
                id="leaf",
                content="leaf",
                embedding=[1.0, 0.0, 0.0],
                sparse_embedding=SparseEmbedding(indices=[3], values=[0.5]),
                meta={"__children_ids": []},
            ),
            Document(id="inner", content="inner", embedding=[0.0, 1.0, 0.0], meta={"__children_ids": ["leaf"]}),
        ]
    )
    source.close()
    assert main(["here", "there"]) == 0
    assert points("there") == points("here")
    assert {name for vector, _ in points("there").values() for name in vector} >= (
        {"text-inner", "text-dense"} if "inner_embeddings" in settings else {"text-sparse", "text-dense"}
    )


def test_a_collection_of_a_stock_store_is_copied() -> None:
    stock = QdrantDocumentStore(path="here", index="Document", embedding_dim=DIMENSION)
    stock.write_documents(nodes())
    stock.close()
    assert main(["here", "there", "--index", "Document", "--to-index", "hichunk"]) == 0
    assert points("there") == points("here", "Document")


def test_variables_do_not_move_what_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    filled("here")
    monkeypatch.setenv("QDRANT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("QDRANT_PATH", "elsewhere")
    assert main(["here", "there"]) == 0
    assert len(points("there")) == 13
    assert os.environ["QDRANT_PATH"] == "elsewhere"
    assert not Path("elsewhere").exists()


def test_a_copy_that_was_interrupted_goes_on(rest_server: RestServer) -> None:
    # Not by cosine: some engines bring such vectors to length 1 before they keep them.
    source = store_on("here", similarity="dot_product")
    away = {"url": rest_server.url, "client_kwargs": {"check_compatibility": False}}
    target = store_on("", path=None, similarity="dot_product", **away)
    source.write_documents(nodes())
    answer, writes = rest_server.answer, []

    def failing(method: str, path: str, body: Any) -> Any:
        if method == "PUT" and path.split("?", maxsplit=1)[0].endswith("/points"):
            writes.append(len(body["points"]))
            if len(writes) == 3:
                raise RefusedError(500, "the disk is full")
        return answer(method, path, body)

    rest_server.answer = failing  # type: ignore[method-assign]
    with pytest.raises(QdrantStoreError, match="The copy stopped after 8 of 13 points"):
        copy_collection(source, target, page_size=4, progress_bar=False)
    assert rest_server.engine.count("hichunk").count == 8
    report = copy_collection(source, target, page_size=4, progress_bar=False)
    assert report == CopyReport(points=13, copied=5, there=8)
    assert "meta.source_id" in rest_server.indexes["hichunk"]
    sent, _ = rest_server.engine.scroll("hichunk", limit=100, with_payload=True, with_vectors=True)
    source.close()
    there = points("here")
    assert {point.id: point.payload for point in sent} == {number: payload for number, (_, payload) in there.items()}
    for point in sent:
        assert (point.vector or {}) == pytest.approx(there[point.id][0] or {}, abs=1e-6)
    target.close()


def test_what_is_there_is_written_again_when_that_is_asked_for() -> None:
    source, target = store_on("here"), store_on("there")
    source.write_documents(nodes())
    target.write_documents([Document(id="leaf 0", content="older")])
    assert copy_collection(source, target, progress_bar=False) == CopyReport(points=13, copied=12, there=1)
    assert copy_collection(source, target, overwrite=True, progress_bar=False).copied == 13
    assert target.get_nodes_by_id(["leaf 0"])[0].content.startswith("Blatt 0")
    source.close()
    target.close()


def test_what_does_not_fit_is_refused() -> None:
    source = store_on("here")
    source.write_documents(nodes())
    other = store_on("there", similarity="dot_product")
    with pytest.raises(QdrantStoreError, match=r"3 Cosine.*3 Dot"):
        copy_collection(source, other, progress_bar=False)
    with pytest.raises(ValueError, match="the same collection"):
        copy_collection(source, store_on("here"), progress_bar=False)
    with pytest.raises(ValueError, match="page_size is 0"):
        copy_collection(source, other, page_size=0)
    source.close()
    other.close()


def test_the_command_says_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["nowhere", "there"])
    assert "there is no folder 'nowhere'" in capsys.readouterr().err
    assert not Path("nowhere").exists()
    filled("here")
    assert main(["here", "there", "--index", "other"]) == 1
    assert "no collection 'other' in 'here'; those there are: hichunk" in capsys.readouterr().err
    assert main(["here", "http://127.0.0.1:9"]) == 1
    assert "does not answer" in capsys.readouterr().err


@pytest.mark.integration
def test_to_a_real_server(monkeypatch: pytest.MonkeyPatch) -> None:
    if not REAL_SERVER:
        pytest.skip("QDRANT_URL names no server")
    if REAL_KEY:
        monkeypatch.setenv("QDRANT_API_KEY", REAL_KEY)
    filled("here")
    index = f"hichunk-test-{uuid.uuid4()}"
    try:
        assert main(["here", REAL_SERVER, "--to-index", index]) == 0
        copy = store_on("", path=None, url=REAL_SERVER, index=index)
        assert {node.id for node in copy.filter_documents()} == {node.id for node in nodes()}
        copy.close()
    finally:
        QdrantClient(url=REAL_SERVER, api_key=REAL_KEY).delete_collection(index)
