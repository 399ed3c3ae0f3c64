# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Where a store connects to, and what is particular to a server."""

import asyncio
import uuid
import warnings
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from haystack import Document
from haystack.document_stores.types import DuplicatePolicy
from haystack.utils import Secret
from qdrant_client import QdrantClient
from qdrant_client.http import models as rest

LEAF = Document(id="leaf", content="text", embedding=[1.0, 0.0])
QUIET = {"check_compatibility": False}  # no request of its own, from a thread of its own, for the server's version
KEYWORDS = ("id", "meta.source_id", "meta.__tree_id", "meta.file_path")
FIELDS = {**dict.fromkeys(KEYWORDS, "keyword"), "meta.__level": "integer"}
MEGABYTE = 1024 * 1024


def test_the_folder_has_a_default(make_store, tmp_path):
    make_store().write_documents([LEAF])
    assert (tmp_path / "qdrant_data" / "meta.json").exists()


def test_a_variable_moves_the_folder(make_store, tmp_path, monkeypatch):
    monkeypatch.setenv("QDRANT_PATH", str(tmp_path / "moved"))
    stores = [make_store(), make_store(path="somewhere")]
    stores[0].write_documents([LEAF])
    assert stores[1].count_documents() == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["moved"]
    assert stores[1].to_dict()["init_parameters"]["path"] == "somewhere"
    assert make_store(location=":memory:").count_documents() == 0


async def test_a_variable_switches_to_a_server(make_store, tmp_path, monkeypatch, rest_server):
    store = make_store(path="data", index="Switched", client_kwargs=QUIET)
    before = store.to_dict()
    rest_server.required_key = "secret"
    monkeypatch.setenv("QDRANT_URL", rest_server.url)  # after the store has been made
    monkeypatch.setenv("QDRANT_API_KEY", "secret")
    with pytest.warns(UserWarning, match="insecure connection"):
        assert store.write_documents([LEAF]) == 1
    with pytest.warns(UserWarning, match="insecure connection"):
        assert await store.count_documents_async() == 1
    assert rest_server.engine.count("Switched").count == 1
    assert set(rest_server.keys) == {"secret"}
    assert list(tmp_path.iterdir()) == []
    assert store.to_dict() == before
    assert "secret" not in str(before)
    await store.close_async()
    # decided anew after closing
    monkeypatch.delenv("QDRANT_URL")
    assert store.count_documents() == 0
    assert (tmp_path / "data").exists()


@pytest.mark.filterwarnings("ignore:Api key is used")
@pytest.mark.parametrize("own_key", [None, Secret.from_env_var("OWN_KEY")])
def test_which_key_goes_to_the_server_of_the_variable(make_store, monkeypatch, rest_server, own_key):
    monkeypatch.setenv("QDRANT_URL", rest_server.url)
    monkeypatch.setenv("QDRANT_API_KEY", "general")
    monkeypatch.setenv("OWN_KEY", "own")
    make_store(path="data", api_key=own_key, client_kwargs=QUIET).count_documents()
    assert set(rest_server.keys) == {"own" if own_key else "general"}


@pytest.mark.parametrize("name", ["url", "location"])
def test_an_explicit_server_wins_and_an_empty_key_is_none(make_store, monkeypatch, rest_server, name):
    monkeypatch.setenv("QDRANT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("QDRANT_API_KEY", "")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_store(**{name: rest_server.url}, client_kwargs=QUIET).write_documents([LEAF])
    assert rest_server.engine.count("Document").count == 1
    assert set(rest_server.keys) == {None}


def test_host_and_memory_win_as_well(make_store, monkeypatch, rest_server):
    port = int(rest_server.url.rsplit(":", 1)[1])
    monkeypatch.setenv("QDRANT_URL", "http://127.0.0.1:9")
    make_store(host="127.0.0.1", port=port, https=False, client_kwargs=QUIET).write_documents([LEAF])
    assert rest_server.engine.count("Document").count == 1
    assert make_store(location=":memory:").count_documents() == 0


def test_an_embedded_store_needs_no_key(make_store):
    store = make_store(path="data", api_key=Secret.from_env_var("NOT_SET"))
    assert store.count_documents() == 0


def test_two_places_are_refused(make_store):
    with pytest.raises(ValueError, match=r"location, url, host and path.*got url, path"):
        make_store(path="data", url="http://127.0.0.1:9").count_documents()


def test_a_server_that_is_away_is_an_error_and_the_store_works_when_it_is_back(make_store, monkeypatch, rest_server):
    monkeypatch.setenv("QDRANT_URL", "http://127.0.0.1:9")
    store = make_store(path="data", client_kwargs=QUIET)
    with pytest.raises(Exception, match="refused"):
        store.count_documents()
    monkeypatch.setenv("QDRANT_URL", rest_server.url)
    assert store.count_documents() == 0


def test_indexes_are_made_for_new_and_for_existing_collections(make_store, rest_server):
    settings = {"url": rest_server.url, "client_kwargs": QUIET}
    make_store(**settings, index="new").count_documents()
    assert rest_server.indexes["new"] == FIELDS
    make_store(**settings, index="new").count_documents()
    assert len(rest_server.sent("PUT", "/index")) == len(FIELDS)

    make_store(**settings, index="old", payload_fields_to_index=[]).count_documents()
    assert rest_server.indexes["old"] == {}
    own = [{"field_name": "meta.language", "field_schema": "keyword"}]
    make_store(**settings, index="old", payload_fields_to_index=own).count_documents()
    assert rest_server.indexes["old"] == {"meta.language": "keyword"}
    asyncio.run(make_store(**settings, index="old").count_documents_async())
    assert rest_server.indexes["old"] == {"meta.language": "keyword", **FIELDS}


def test_embedded_stores_make_no_indexes(make_store, monkeypatch):
    def fail(*_, **__) -> None:
        pytest.fail("the engine warns that indexes have no effect, once a process")

    monkeypatch.setattr(QdrantClient, "create_payload_index", fail)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store = make_store(path="data", payload_fields_to_index=[{"field_name": "a", "field_schema": "keyword"}])
        store.write_documents([LEAF])
        store.delete_all_documents(recreate_index=True)
        asyncio.run(make_store(location=":memory:").count_documents_async())


def test_two_stores_that_make_a_collection_anew_wait_for_each_other(make_store, rest_server):
    stores = [make_store(url=rest_server.url) for _ in range(4)]

    def recreate(store):
        for _ in range(10):
            store.delete_all_documents(recreate_index=True)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(recreate, stores))
    assert stores[0].count_documents() == 0


async def test_requests_are_bounded_in_bytes(make_store, rest_server):
    # nodes of 1 MB, of which a server takes 31 in a request
    store = make_store(url=rest_server.url, client_kwargs=QUIET)
    nodes = [Document(id=str(number), content="x" * MEGABYTE) for number in range(36)]
    assert store.write_documents(nodes[:18]) == 18
    assert await store.write_documents_async(nodes[18:]) == 18
    sizes = rest_server.sent("PUT", "/points")
    # 15 nodes fill 16 MB but for the rest of their payload
    assert [size // MEGABYTE for size in sizes] == [15, 3, 15, 3]
    assert store.count_documents() == 36
    # the stock way to change meta reads everything and writes it back
    everything = {"field": "meta.source_id", "operator": "!=", "value": "none"}
    assert store.update_by_filter(everything, {"seen": True}) == 36
    assert max(rest_server.sent("PUT", "/points")) < 16 * MEGABYTE
    assert {node.meta["seen"] for node in store.get_nodes_by_id([node.id for node in nodes])} == {True}


def test_a_node_above_the_bound_goes_alone(make_store, rest_server):
    store = make_store(url=rest_server.url, client_kwargs=QUIET)
    sizes = [1, 20, 1, 1]
    nodes = [Document(id=str(i), content="x" * (size * MEGABYTE)) for i, size in enumerate(sizes)]
    store.write_documents(nodes)
    assert [size // MEGABYTE for size in rest_server.sent("PUT", "/points")] == [1, 20, 2]
    assert store.count_documents() == 4


def test_a_collection_made_by_somebody_faster_is_kept(make_store, rest_server):
    def be_faster(method: str, path: str) -> None:
        if (method, path) == ("PUT", "/collections/Document") and not rest_server.engine.collection_exists("Document"):
            rest_server.indexes["Document"] = dict(FIELDS)
            vectors = rest.VectorParams(size=2, distance=rest.Distance.COSINE)
            rest_server.engine.create_collection("Document", vectors)
            rest_server.engine.upsert("Document", [rest.PointStruct(id=1, vector=[1.0, 0.0], payload={"id": "a"})])

    rest_server.before = be_faster
    assert make_store(url=rest_server.url, client_kwargs=QUIET).count_documents() == 1


def test_one_event_loop_after_another(make_store, rest_server):
    # connections are kept, which the client does for servers that are not on this machine
    limits = httpx.Limits(max_keepalive_connections=5)
    store = make_store(url=rest_server.url, client_kwargs={**QUIET, "limits": limits})
    asyncio.run(store.write_documents_async([LEAF]))
    assert asyncio.run(store.count_documents_async()) == 1
    asyncio.run(store.close_async())
    assert asyncio.run(store.count_documents_async()) == 1


@pytest.mark.integration
async def test_a_real_server_has_the_indexes_and_takes_what_is_large(make_store, real_server):
    index = f"hichunk-test-{uuid.uuid4()}"
    store = make_store(url=real_server, index=index)
    client = QdrantClient(url=real_server, api_key=store.api_key.resolve_value())
    try:
        nodes = [Document(id=str(number), content="x" * MEGABYTE, meta={"source_id": "a"}) for number in range(40)]
        assert store.write_documents(nodes[:20]) == 20
        assert await store.write_documents_async(nodes[20:], DuplicatePolicy.OVERWRITE) == 20
        schema = client.get_collection(index).payload_schema
        assert {field: kind.data_type.value for field, kind in schema.items()} == FIELDS
        assert store.delete_by_filter({"field": "meta.source_id", "operator": "==", "value": "a"}) == 40
    finally:
        client.delete_collection(index)
