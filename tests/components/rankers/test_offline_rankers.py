# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from haystack import Document, Pipeline
from haystack.core.errors import DeserializationError, PipelineError, PipelineRuntimeError
from haystack.utils import ComponentDevice
from haystack_integrations.components import rankers as integrations
from haystack_integrations.components.rankers.sentence_transformers import (
    SentenceTransformersDiversityRanker,
    SentenceTransformersSimilarityRanker,
)

from hichunk_haystack import load_pipeline
from hichunk_haystack.components.rankers import (
    OfflineSentenceTransformersDiversityRanker,
    OfflineSentenceTransformersSimilarityRanker,
)
from hichunk_haystack.models import ModelNotFoundError, packaged_model
from hichunk_haystack.pipeline_files import pipeline_file

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
CROSS_ENCODER = "cross-encoder/ms-marco-MiniLM-L-6-v2"
QUERY = "How is clay fired?"
DOCUMENTS = [
    Document(id=str(number), content=text, meta={"title": "Clay"})
    for number, text in enumerate(["Centre the clay.", "Fire it slowly.", "Fire the kiln slowly.", "Glaze it."])
]


@pytest.fixture(scope="module")
def cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with a small cross-encoder that was never trained; what it says is always the same."""
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    folder = tmp_path_factory.mktemp("cross_encoder")
    torch.manual_seed(0)
    config = BertConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, num_labels=1)
    BertForSequenceClassification(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(packaged_model(MINILM)).save_pretrained(folder)
    return str(folder)


def order(result: dict[str, list[Document]]) -> list[tuple[str, Any]]:
    return [(document.id, document.score) for document in result["documents"]]


def test_a_text_without_a_utf_8_form_is_ranked(cross_encoder: str) -> None:
    documents = [Document(id="odd", content="Fire \udcff it."), *DOCUMENTS]
    similarity = OfflineSentenceTransformersSimilarityRanker(model=cross_encoder)
    diversity = OfflineSentenceTransformersDiversityRanker(model=MINILM)
    for ranker in (similarity, diversity):
        found = ranker.run("How \ud800?", documents)["documents"]
        assert {document.id for document in found} == {document.id for document in documents}


def test_the_cross_encoder_ranks_as_the_stock_ranker_does(cross_encoder: str) -> None:
    options: dict[str, Any] = {"model": cross_encoder, "top_k": 3, "meta_fields_to_embed": ["title"]}
    stock = SentenceTransformersSimilarityRanker(**options)
    ours = OfflineSentenceTransformersSimilarityRanker(**options)
    assert order(ours.run(QUERY, DOCUMENTS)) == order(stock.run(query=QUERY, documents=DOCUMENTS))
    asked: dict[str, Any] = {"top_k": 2, "scale_score": False, "score_threshold": -9.0}
    assert order(ours.run(QUERY, DOCUMENTS, **asked)) == order(stock.run(query=QUERY, documents=DOCUMENTS, **asked))
    assert ours.run(QUERY, []) == {"documents": []}
    with pytest.raises(ValueError, match="top_k must be > 0"):
        ours.run(QUERY, DOCUMENTS, top_k=0)


async def test_diversity_is_that_of_the_stock_ranker_with_the_packaged_model() -> None:
    options: dict[str, Any] = {"strategy": "maximum_margin_relevance", "top_k": 4}
    stock = SentenceTransformersDiversityRanker(model=str(packaged_model(MINILM)), **options)
    ours = OfflineSentenceTransformersDiversityRanker(**options)
    await ours.warm_up_async()
    loaded = ours._stock.model
    for asked in ({}, {"top_k": 2}, {"lambda_threshold": 0.1}):
        assert order(ours.run(QUERY, DOCUMENTS, **asked)) == order(stock.run(QUERY, DOCUMENTS, **asked))
    assert ours._stock.model is loaded


@pytest.mark.parametrize(
    ("kind", "name", "options"),
    [
        (OfflineSentenceTransformersSimilarityRanker, CROSS_ENCODER, {"scale_score": False, "batch_size": 4}),
        (OfflineSentenceTransformersDiversityRanker, MINILM, {"strategy": "maximum_margin_relevance"}),
    ],
)
def test_serialisation(kind: Any, name: str, options: dict[str, Any]) -> None:
    model_kwargs = {"dtype": torch.bfloat16}
    ranker = kind(top_k=5, device=ComponentDevice.from_str("cpu"), model_kwargs=model_kwargs, **options)
    data = ranker.to_dict()
    parameters = data["init_parameters"]
    assert data["type"] == f"hichunk_haystack.components.rankers.{kind.__name__}"
    assert {name: parameters[name] for name in ("model", "top_k", "device", "model_kwargs", *options)} == {
        "model": name, "top_k": 5, "device": {"type": "single", "device": "cpu"},
        "model_kwargs": {"dtype": "torch.bfloat16"}, **options,
    }  # fmt: skip
    assert model_kwargs == {"dtype": torch.bfloat16}
    assert kind.from_dict(data).to_dict() == data
    pipeline = Pipeline()
    pipeline.add_component("ranker", ranker)
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["hichunk_haystack"])
    assert again.dumps() == pipeline.dumps()


@pytest.mark.parametrize(
    "kind", [OfflineSentenceTransformersSimilarityRanker, OfflineSentenceTransformersDiversityRanker]
)
def test_a_model_that_is_nowhere_is_named(kind: Any) -> None:
    with pytest.raises(ModelNotFoundError, match=r"Model 'nobody/nothing-here' .*hf download nobody/nothing-here"):
        kind(model="nobody/nothing-here").warm_up()


@pytest.mark.parametrize("name", ["query_rerank", "baseline"])
def test_the_pipelines_name_the_model_that_is_missing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("QDRANT_PATH", str(tmp_path / "qdrant"))
    pipeline = load_pipeline(pipeline_file(name))
    with pytest.raises((ModelNotFoundError, PipelineRuntimeError), match=f"Model '{CROSS_ENCODER}' is not on this"):
        pipeline.warm_up()
    pipeline.close()


def test_without_the_optional_packages_the_way_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = Pipeline()
    pipeline.add_component("ranker", OfflineSentenceTransformersDiversityRanker())
    text = pipeline.dumps()
    monkeypatch.delattr(integrations, "sentence_transformers")
    monkeypatch.setitem(sys.modules, "haystack_integrations.components.rankers.sentence_transformers", None)
    with pytest.raises(ImportError, match=r"pip install 'hichunk-haystack\[local\]'"):
        OfflineSentenceTransformersSimilarityRanker()
    with pytest.raises((PipelineError, DeserializationError), match=r"pip install 'hichunk-haystack\[local\]'"):
        Pipeline.loads(text, allowed_modules=["hichunk_haystack"])


# The hub is not switched off, and can't be reached: it is asked once, and not for a minute.
_SCRIPT = """
import socket, sys, time
import hichunk_haystack.components.rankers as rankers
assert "sentence_transformers" not in sys.modules
def refuse(*args, **kwargs):
    raise OSError("no network")
socket.socket.connect = refuse
socket.getaddrinfo = refuse
ranker = rankers.OfflineSentenceTransformersSimilarityRanker()
start = time.monotonic()
try:
    ranker.warm_up()
except Exception as error:
    print(type(error).__name__, error, time.monotonic() - start < 20)
"""


def test_a_hub_out_of_reach_is_not_waited_for(tmp_path: Path) -> None:
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "TRANSFORMERS_"))}
    process = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        env=variables | {"HF_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.startswith(
        f"ModelNotFoundError Model '{CROSS_ENCODER}' is not on this machine: the hub could"
    )
    assert process.stdout.endswith("True\n")
