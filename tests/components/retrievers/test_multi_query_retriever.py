# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import asyncio
import threading
import time
from typing import Any

import pytest
from haystack import Document, Pipeline, component
from haystack.components.generators.chat import MockChatGenerator
from haystack.components.query import QueryExpander
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

from hichunk_haystack.components.embedders import Bm25DocumentEmbedder, Bm25TextEmbedder
from hichunk_haystack.components.embedders.offline_sentence_transformers_document_embedder import (
    OfflineSentenceTransformersDocumentEmbedder,
)
from hichunk_haystack.components.embedders.offline_sentence_transformers_text_embedder import (
    OfflineSentenceTransformersTextEmbedder,
)
from hichunk_haystack.components.retrievers import MultiQueryRetriever, QdrantHybridLeafRetriever, QdrantLeafRetriever
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore

FOUND = {"one": [("a", 0.4), ("b", 0.3)], "two": [("c", 0.9), ("a", 0.3)], "three": [("b", 0.6), ("a", 0.1)]}


@component
class Script:
    """A retriever of text that finds what it is told, and can fail."""

    def __init__(self, pause: float = 0.0) -> None:
        self.pause = pause
        self.queries: list[str] = []
        self.running = self.most = 0
        self.lock = threading.Lock()

    @component.output_types(documents=list[Document])
    def run(self, query: str, top_k: int = 10) -> dict[str, list[Document]]:
        with self.lock:
            self.queries.append(query)
            self.running += 1
            self.most = max(self.most, self.running)
        time.sleep(self.pause)
        with self.lock:
            self.running -= 1
        if "fail" in query:
            msg = "no route"
            raise ConnectionError(msg)
        found = FOUND.get(query, [("d", 0.5)])[:top_k]
        return {"documents": [Document(id=name, content=name, score=score) for name, score in found]}


def names(found: dict[str, list[Document]]) -> list[str]:
    return [document.id for document in found["documents"]]


async def test_what_many_queries_found_comes_first() -> None:
    queries = list(FOUND)
    retriever = MultiQueryRetriever(Script(), mode="frequency")
    found = retriever.run(queries=queries)
    assert names(found) == ["a", "b", "c"]
    assert [document.score for document in found["documents"]] == pytest.approx([1, 2 / 3, 1 / 3])
    assert await retriever.run_async(queries=queries) == found
    assert names(MultiQueryRetriever(Script(), mode="score").run(queries=queries)) == ["b", "c", "a"]
    assert names(MultiQueryRetriever(Script(), top_k=1).run(queries=queries)) == ["a"]


def test_equal_queries_count_once() -> None:
    script = Script()
    MultiQueryRetriever(script, max_workers=1).run(queries=["one", " ONE ", "two", "", "one"])
    assert script.queries == ["one", "two"]


def test_arguments_for_the_retriever_are_handed_on() -> None:
    assert names(MultiQueryRetriever(Script()).run(queries=["one"], retriever_kwargs={"top_k": 1})) == ["a"]


async def test_a_query_that_fails_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    retriever = MultiQueryRetriever(Script())
    assert names(retriever.run(queries=["one", "fail"])) == ["a", "b"]
    assert "Query 'fail' failed and is left out (ConnectionError: no route)" in caplog.text
    assert names(await retriever.run_async(queries=["fail", "one"])) == ["a", "b"]
    with pytest.raises(RuntimeError, match="All 2 queries failed, the first with ConnectionError: no route"):
        retriever.run(queries=["fail", "fail too"])


async def test_nothing_asked_nothing_found() -> None:
    assert MultiQueryRetriever(Script()).run(queries=[" "]) == {"documents": []}
    assert await MultiQueryRetriever(Script()).run_async(queries=[]) == {"documents": []}


def test_no_more_at_once_than_allowed_and_asynchronously_too() -> None:
    queries = [str(number) for number in range(6)]
    for workers in (1, 2):
        script = Script(pause=0.02)
        MultiQueryRetriever(script, max_workers=workers).run(queries=queries)
        assert script.most == workers
        script.most = 0
        asyncio.run(MultiQueryRetriever(script, max_workers=workers).run_async(queries=queries))
        assert script.most == workers


TEXTS = ["Fire the kiln slowly.", "The wheel turns to the left.", "E1047: call the service.", "Bees sleep in winter."]


async def test_with_a_real_model_dense_and_sparse() -> None:
    store = HierarchyQdrantDocumentStore(
        location=":memory:", embedding_dim=384, use_sparse_embeddings=True, sparse_idf=True
    )
    documents = OfflineSentenceTransformersDocumentEmbedder(progress_bar=False).run(
        [Document(content=t) for t in TEXTS]
    )
    store.write_documents(Bm25DocumentEmbedder().run(documents["documents"])["documents"])
    retriever = MultiQueryRetriever(
        QdrantHybridLeafRetriever(store, top_k=2),
        text_embedder=OfflineSentenceTransformersTextEmbedder(),
        sparse_text_embedder=Bm25TextEmbedder(),
    )
    queries = ["What to do on E1047?", "pottery oven with code E1047", "how hot is the kiln"]
    found = retriever.run(queries=queries)
    assert found["documents"][0].content == "E1047: call the service."
    assert len({document.id for document in found["documents"]}) == len(found["documents"])
    assert names(await retriever.run_async(queries=queries)) == names(found)


def test_behind_haystacks_query_expander_from_yaml(monkeypatch: pytest.MonkeyPatch) -> None:
    store = InMemoryDocumentStore()
    store.write_documents([Document(content=text) for text in TEXTS])
    pipeline = Pipeline()
    generator = MockChatGenerator('{"queries": ["firing a kiln", "kiln speed"]}')
    pipeline.add_component("expander", QueryExpander(chat_generator=generator, n_expansions=2))
    pipeline.add_component("retriever", MultiQueryRetriever(InMemoryBM25Retriever(store, top_k=1), mode="frequency"))
    pipeline.connect("expander.queries", "retriever.queries")
    result = pipeline.run({"expander": {"query": "How fast may the kiln be?"}})["retriever"]["documents"]
    assert (result[0].content, result[0].score) == ("Fire the kiln slowly.", 1.0)
    text = pipeline.dumps()
    assert Pipeline.loads(text, allowed_modules=["hichunk_haystack"]).dumps() == text


def test_to_dict_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAYSTACK_DESERIALIZATION_ALLOWLIST", "hichunk_haystack")
    retriever = MultiQueryRetriever(
        QdrantLeafRetriever(HierarchyQdrantDocumentStore(path="data")),
        text_embedder=OfflineSentenceTransformersTextEmbedder(),
        mode="score", frequency_weight=0.3, top_k=9, max_workers=2,
    )  # fmt: skip
    data = retriever.to_dict()
    assert data["type"] == "hichunk_haystack.components.retrievers.MultiQueryRetriever"
    parameters = {key: value for key, value in data["init_parameters"].items() if not isinstance(value, dict)}
    assert parameters == {
        "sparse_text_embedder": None, "mode": "score", "frequency_weight": 0.3, "top_k": 9, "max_workers": 2
    }  # fmt: skip
    assert MultiQueryRetriever.from_dict(data).to_dict() == data


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "best"}, "mode is 'best'; it must be one of combined, frequency, score"),
        ({"frequency_weight": 1.5}, "frequency_weight is 1.5"),
        ({"top_k": 0}, "top_k is 0"),
        ({"max_workers": 0}, "max_workers is 0"),
    ],
)
def test_options_that_make_no_sense_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MultiQueryRetriever(Script(), **options)
