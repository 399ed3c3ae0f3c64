# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import os
import subprocess
import sys
from copy import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from haystack import Document, Pipeline
from haystack.core.errors import DeserializationError, PipelineError
from haystack.utils import ComponentDevice, Secret
from haystack_integrations.components import embedders as integrations
from haystack_integrations.components.embedders.sentence_transformers import (
    SentenceTransformersDocumentEmbedder,
    SentenceTransformersTextEmbedder,
)

from hichunk_haystack.components.embedders import (
    OfflineSentenceTransformersDocumentEmbedder,
    OfflineSentenceTransformersTextEmbedder,
)
from hichunk_haystack.models import ModelNotFoundError, resolve_model

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
NAME = "hichunk_haystack.components.embedders.OfflineSentenceTransformers{}Embedder"


def test_documents_are_embedded_as_by_the_stock_embedder() -> None:
    documents = [Document(content="Fire it slowly.", meta={"title": "Kiln"})]
    options: dict[str, Any] = {"prefix": "passage: ", "meta_fields_to_embed": ["title"], "progress_bar": False}
    ours = OfflineSentenceTransformersDocumentEmbedder(model=MODEL, **options)
    stock = SentenceTransformersDocumentEmbedder(model=resolve_model(MODEL), **options)
    ours.warm_up()
    stock.warm_up()
    assert ours.run(documents) == stock.run(documents)
    assert documents[0].embedding is None


def test_a_text_without_a_utf_8_form_is_embedded_and_stays_what_it_is() -> None:
    documents = [Document(content="Fire it slowly."), Document(id="odd", content="Fire \udcff it.", meta={"n": 1})]
    embedder = OfflineSentenceTransformersDocumentEmbedder(model=MODEL, progress_bar=False)
    found = embedder.run(documents)["documents"]
    assert [(done.id, done.content, done.meta) for done in found] == [
        (given.id, given.content, given.meta) for given in documents
    ]
    query = OfflineSentenceTransformersTextEmbedder(model=MODEL).run("Fire \udcff it.")["embedding"]
    assert found[1].embedding == pytest.approx(query, abs=1e-4)


async def test_queries_are_embedded_as_by_the_stock_embedder_with_the_same_model_in_memory() -> None:
    ours = OfflineSentenceTransformersTextEmbedder(model=MODEL)
    stock = SentenceTransformersTextEmbedder(model=resolve_model(MODEL), progress_bar=False)
    documents = OfflineSentenceTransformersDocumentEmbedder(model=MODEL)
    await ours.warm_up_async()
    stock.warm_up()
    documents.warm_up()
    assert ours.run("How hot is the kiln?") == stock.run("How hot is the kiln?")
    assert ours._stock.embedding_backend is documents._stock.embedding_backend


def test_a_run_loads_the_model_if_nobody_did() -> None:
    assert len(OfflineSentenceTransformersTextEmbedder().run("kiln")["embedding"]) == 384
    documents = OfflineSentenceTransformersDocumentEmbedder(progress_bar=False).run([Document(content="kiln")])
    assert len(documents["documents"][0].embedding or []) == 384


def test_a_copy_can_be_changed_and_shares_the_model() -> None:
    embedder = OfflineSentenceTransformersDocumentEmbedder(model=MODEL)
    embedder.warm_up()
    other = copy(embedder)
    other.progress_bar = False
    assert embedder.progress_bar is True
    assert other._stock.embedding_backend is embedder._stock.embedding_backend


@pytest.mark.parametrize("kind", ["Document", "Text"])
def test_serialisation(kind: str) -> None:
    ours: Any = {
        "Document": OfflineSentenceTransformersDocumentEmbedder,
        "Text": OfflineSentenceTransformersTextEmbedder,
    }[kind]
    common: dict[str, Any] = {
        "model": MODEL,
        "device": {"type": "single", "device": "cpu"},
        "token": {"type": "env_var", "env_vars": ["MY_TOKEN"], "strict": False},
        "prefix": "p",
        "suffix": "s",
        "batch_size": 8,
        "progress_bar": True,
        "normalize_embeddings": True,
        "trust_remote_code": False,
        "revision": None,
        "local_files_only": True,
        "truncate_dim": 128,
        "model_kwargs": {"dtype": "torch.bfloat16"},
        "tokenizer_kwargs": {"model_max_length": 200},
        "config_kwargs": None,
        "precision": "float32",
        "encode_kwargs": None,
        "backend": "torch",
        "quantization_ranges": None,
    }
    expected = common if kind == "Text" else {**common, "meta_fields_to_embed": ["a"], "embedding_separator": " "}
    more: dict[str, Any] = {} if kind == "Text" else {"meta_fields_to_embed": ["a"], "embedding_separator": " "}
    model_kwargs = {"dtype": torch.bfloat16}
    embedder = ours(
        model=MODEL,
        device=ComponentDevice.from_str("cpu"),
        token=Secret.from_env_var("MY_TOKEN", strict=False),
        prefix="p",
        suffix="s",
        batch_size=8,
        progress_bar=True,
        normalize_embeddings=True,
        local_files_only=True,
        truncate_dim=128,
        model_kwargs=model_kwargs,
        tokenizer_kwargs={"model_max_length": 200},
        **more,
    )
    data = embedder.to_dict()
    assert data == {"type": NAME.format(kind), "init_parameters": expected}
    assert model_kwargs == {"dtype": torch.bfloat16}

    revived = ours.from_dict(data)
    assert data["init_parameters"] == expected  # nor does reviving write into the data
    assert revived.to_dict() == data
    revived.warm_up()
    assert revived.to_dict() == data
    assert revived.model == MODEL
    assert revived._stock.embedding_backend.model.dtype == torch.bfloat16
    assert revived._stock.embedding_backend.model.max_seq_length == 200


def test_a_misspelt_option_is_told_when_the_embedder_is_made() -> None:
    with pytest.raises(TypeError, match="batchsize"):
        OfflineSentenceTransformersDocumentEmbedder(batchsize=8)


def test_a_query_shows_no_progress_bar() -> None:
    data = OfflineSentenceTransformersTextEmbedder().to_dict()
    assert data["init_parameters"]["progress_bar"] is False
    assert data["init_parameters"]["model"] == MODEL


def test_a_model_that_is_nowhere() -> None:
    embedder = OfflineSentenceTransformersTextEmbedder(model="nobody/nothing-here")
    with pytest.raises(ModelNotFoundError, match="hf download nobody/nothing-here"):
        embedder.warm_up()
    with pytest.raises(ModelNotFoundError, match="HF_HUB_OFFLINE"):
        OfflineSentenceTransformersTextEmbedder(model="nobody/nothing-here", local_files_only=True).run("kiln")


def test_without_the_optional_packages_the_way_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = Pipeline()
    pipeline.add_component("embedder", OfflineSentenceTransformersTextEmbedder())
    text = pipeline.dumps()
    monkeypatch.delattr(integrations, "sentence_transformers")
    monkeypatch.setitem(sys.modules, "haystack_integrations.components.embedders.sentence_transformers", None)
    with pytest.raises(ImportError, match=r"pip install 'hichunk-haystack\[local\]'"):
        OfflineSentenceTransformersDocumentEmbedder()
    with pytest.raises((PipelineError, DeserializationError), match=r"pip install 'hichunk-haystack\[local\]'"):
        Pipeline.loads(text, allowed_modules=["hichunk_haystack"])


# Importing is cheap; a home that can't be written and a hub that can't be reached do no harm; nothing is asked of the
# network, although the hub is not switched off.
_SCRIPT = """
import socket, sys
import hichunk_haystack.components.embedders as embedders
assert "sentence_transformers" not in sys.modules
asked = []
def refuse(self, address):
    asked.append(address)
    raise OSError("no network")
socket.socket.connect = refuse
socket.getaddrinfo = lambda *args, **kwargs: refuse(None, args)
embedder = embedders.OfflineSentenceTransformersTextEmbedder()
embedder.warm_up()
print(len(embedder.run("kiln")["embedding"]), asked)
"""


def test_in_a_process_without_network_and_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("a file, so that no folder can be made in it", encoding="utf-8")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "TRANSFORMERS_"))}
    variables |= {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    process = subprocess.run(
        [sys.executable, "-c", _SCRIPT], env=variables, capture_output=True, text=True, check=False, timeout=120
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout == "384 []\n"
