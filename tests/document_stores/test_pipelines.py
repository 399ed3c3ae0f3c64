# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Serialisation, and stock Haystack components around the store."""

import asyncio
from pathlib import Path

import pytest
import yaml
from haystack import Document, Pipeline
from haystack.components.writers import DocumentWriter
from haystack.document_stores.types import DuplicatePolicy
from haystack.utils import Secret
from haystack_integrations.components.retrievers.qdrant import QdrantEmbeddingRetriever

from hichunk_haystack.components.retrievers import QdrantLeafRetriever
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore

TYPE = "hichunk_haystack.document_stores.HierarchyQdrantDocumentStore"
DEFAULTS = {
    "location": None,
    "url": None,
    "port": 6333,
    "grpc_port": 6334,
    "prefer_grpc": False,
    "https": None,
    "api_key": {"type": "env_var", "env_vars": ["QDRANT_API_KEY"], "strict": False},
    "prefix": None,
    "timeout": None,
    "host": None,
    "path": None,
    "force_disable_check_same_thread": False,
    "index": "Document",
    "embedding_dim": 768,
    "on_disk": False,
    "use_sparse_embeddings": False,
    "sparse_idf": False,
    "similarity": "cosine",
    "return_embedding": False,
    "progress_bar": False,
    "recreate_index": False,
    "shard_number": None,
    "replication_factor": None,
    "write_consistency_factor": None,
    "on_disk_payload": None,
    "hnsw_config": None,
    "optimizers_config": None,
    "wal_config": None,
    "quantization_config": None,
    "wait_result_from_api": True,
    "metadata": {},
    "write_batch_size": 100,
    "scroll_size": 10_000,
    "payload_fields_to_index": None,
    "client_kwargs": {},
    "inner_embeddings": False,
}
CHANGED = {
    "path": "data",
    "index": "nodes",
    "embedding_dim": 384,
    "similarity": "l2",
    "recreate_index": True,
    "api_key": {"type": "env_var", "env_vars": ["OTHER"], "strict": True},
    "metadata": {"a": 1},
    "payload_fields_to_index": [{"field_name": "meta.a", "field_schema": "keyword"}],
    "client_kwargs": {"headers": {"x": "y"}},
}


def test_to_dict_of_a_store_with_defaults():
    assert HierarchyQdrantDocumentStore().to_dict() == {"type": TYPE, "init_parameters": DEFAULTS}


def test_to_dict_and_back(monkeypatch):
    monkeypatch.setenv("OTHER", "a very secret value")
    monkeypatch.setenv("QDRANT_URL", "http://127.0.0.1:9")
    arguments = {**CHANGED, "api_key": Secret.from_env_var("OTHER")}
    data = HierarchyQdrantDocumentStore(**arguments).to_dict()
    assert data == {"type": TYPE, "init_parameters": {**DEFAULTS, **CHANGED}}
    again = HierarchyQdrantDocumentStore.from_dict(yaml.safe_load(yaml.safe_dump(data)))
    assert type(again) is HierarchyQdrantDocumentStore
    assert again.to_dict() == data
    assert again.api_key == Secret.from_env_var("OTHER")


def test_a_key_given_as_a_value_is_never_dumped():
    with pytest.raises(ValueError, match="token-based"):
        HierarchyQdrantDocumentStore(api_key=Secret.from_token("a very secret value")).to_dict()
    assert HierarchyQdrantDocumentStore(api_key=None).to_dict()["init_parameters"]["api_key"] is None


def indexing(path: str) -> str:
    store = HierarchyQdrantDocumentStore(path=path, embedding_dim=2)
    pipeline = Pipeline()
    pipeline.add_component("writer", DocumentWriter(store, policy=DuplicatePolicy.OVERWRITE))
    return pipeline.dumps()


def querying(path: str) -> str:
    store = HierarchyQdrantDocumentStore(path=path, embedding_dim=2)
    pipeline = Pipeline()
    pipeline.add_component("first", QdrantLeafRetriever(document_store=store, top_k=1))
    pipeline.add_component("second", QdrantLeafRetriever(document_store=store, top_k=2))
    return pipeline.dumps()


def test_a_stock_retriever_takes_the_store(make_store):
    store = make_store(path="data")
    store.write_documents(DOCUMENTS)
    answer = QdrantEmbeddingRetriever(document_store=store, top_k=2).run(query_embedding=[1.0, 0.0])
    assert [document.id for document in answer["documents"]] == ["a", "b"]


def load(text: str) -> Pipeline:
    yaml.safe_load(text)  # what hayhooks reads it with
    pipeline = Pipeline.loads(text, allowed_modules=["hichunk_haystack"])
    assert pipeline.dumps() == text
    return pipeline


EMBEDDINGS = {"a": [1.0, 0.0], "b": [0.8, 0.6], "c": [0.0, 1.0]}
DOCUMENTS = [Document(id=name, content=name, embedding=vector) for name, vector in EMBEDDINGS.items()]
QUESTION = {"first": {"query_embedding": [0.0, 1.0]}, "second": {"query_embedding": [1.0, 0.0]}}


def found(result: dict) -> list[list[str]]:
    return [[document.id for document in result[name]["documents"]] for name in ("first", "second")]


def test_an_indexing_and_a_query_pipeline_on_one_folder(tmp_path: Path):
    """Each pipeline has stores of its own, as after loading; the query pipeline has two."""
    index, query = load(indexing("data")), load(querying("data"))
    stores = {id(query.get_component(name)._document_store) for name in ("first", "second")}
    assert len(stores) == 2

    assert found(query.run(QUESTION)) == [[], []]
    assert index.run({"writer": {"documents": DOCUMENTS[:1]}})["writer"]["documents_written"] == 1
    assert found(query.run(QUESTION)) == [["a"], ["a"]]

    async def awaited() -> list[list[str]]:
        await index.run_async({"writer": {"documents": DOCUMENTS[1:]}})
        answers = await asyncio.gather(*(query.run_async(QUESTION) for _ in range(5)))
        assert all(found(answer) == found(answers[0]) for answer in answers)
        return found(answers[0])

    assert asyncio.run(awaited()) == [["c"], ["a", "b"]]
    assert found(query.run(QUESTION)) == [["c"], ["a", "b"]]

    # closed as pipelines are, and used again
    index.close()
    asyncio.run(query.close_async())
    query.close()
    for name in ("first", "second"):
        query.get_component(name)._document_store.close()
    assert found(load(querying("data")).run(QUESTION)) == [["c"], ["a", "b"]]
