# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""The settings that docs/moving_to_a_server.md recommends load, and reach the server."""

from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter
from qdrant_client.http import models as rest

from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from tests.conftest import REPOSITORY
from tests.document_stores.conftest import RestServer
from tests.snippets import blocks

PAGE = (REPOSITORY / "docs" / "moving_to_a_server.md").read_text(encoding="utf-8")
BLOCKS = [yaml.safe_load(code) for language, code in blocks(PAGE) if language == "yaml"]
ONCE = ("shard_number", "replication_factor", "write_consistency_factor", "on_disk_payload")


def test_there_are_settings_for_both_sizes() -> None:
    assert [block["init_parameters"]["shard_number"] for block in BLOCKS] == [2, 12]


@pytest.mark.parametrize("block", BLOCKS, ids=["a million", "a hundred million"])
def test_every_block_loads_as_a_store_and_its_collection_is_made_like_that(
    block: dict[str, Any], rest_server: RestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QDRANT_API_KEY", "key")
    store = HierarchyQdrantDocumentStore.from_dict(block)
    given = block["init_parameters"]
    dumped = store.to_dict()["init_parameters"]
    assert {name: dumped[name] for name in given} == given

    # The same over HTTP to a stand-in, which keeps what it was sent.
    answer, made = rest_server.answer, []

    def keeping(method: str, path: str, body: Any) -> Any:
        if method == "PUT" and path.split("?", maxsplit=1)[0] == "/collections/hichunk":
            made.append(body)
        return answer(method, path, body)

    rest_server.answer = keeping  # type: ignore[method-assign]
    schemas = [each["field_schema"] for each in given.get("payload_fields_to_index", [])]
    for schema in schemas:
        TypeAdapter(rest.PayloadFieldSchema).validate_python(schema)
    here = {"url": rest_server.url, "prefer_grpc": False, "api_key": None, "payload_fields_to_index": []}
    local = HierarchyQdrantDocumentStore(**{**given, **here, "client_kwargs": {"check_compatibility": False}})
    assert local.count_documents() == 0
    local.close()
    (body,) = made
    assert {name: body[name] for name in ONCE if name in given} == {name: given[name] for name in ONCE if name in given}
    assert body["vectors"] == {"size": 384, "distance": "Cosine", "on_disk": True}
    assert body["quantization_config"] == given["quantization_config"]
    for name in ("hnsw_config", "optimizers_config", "wal_config"):
        assert {key: body[name][key] for key in given.get(name, {})} == given.get(name, {})
    # Nothing that a server would not know.
    rest.CreateCollection.model_validate(body)
