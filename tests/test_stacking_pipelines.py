# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""The YAML pipelines that stack further techniques on the two plain ones, run as they are on real models."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hichunk_haystack import load_pipeline
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from hichunk_haystack.models import packaged_model
from hichunk_haystack.nodes import is_leaf
from tests.hichunk.endpoint import Endpoint, serve
from tests.pipeline_files import PIPELINES, data, edited, served

HANDBOOK = PIPELINES.parent / "examples" / "handbook"
SAFETY = HANDBOOK / "06-slipway-safety.md"
EQUIPMENT = HANDBOOK / "07-slipway-equipment.md"
TELEPHONES = HANDBOOK / "14-telephone-list.txt"
LATHE = "How long may the wood lathe be booked and what does it cost per hour?"
HURT = "Somebody was hurt at a machine in the Slipway. What do I do?"


def run(name: str, folder: Path | None = None, *changes: tuple[str, str], **values: Any) -> dict[str, Any]:
    """Load a pipeline of the repository (or a copy with changes), run it by its declared inputs, and close it."""
    file = PIPELINES / f"{name}.yml"
    if folder is not None:
        file = edited(file, folder, *changes)
    pipeline = load_pipeline(file)
    try:
        return served(file, pipeline.run(data(file, **values)))
    finally:
        pipeline.close()


@pytest.fixture(autouse=True)
def embedded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that every store of a test opens; files that a YAML names go there too."""
    monkeypatch.delenv("QDRANT_URL", raising=False)
    monkeypatch.setenv("QDRANT_PATH", str(tmp_path / "qdrant"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "qdrant"


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """A model's endpoint on this machine, which answers by a rule."""

    def answer(prompt: str) -> str:
        if number := re.search(r"The passage to situate is \[(\d+)\]", prompt):
            return f"Passage {number[1]} of the zebra handbook."
        if '"queries"' in prompt:
            return '{"queries": ["wood lathe booking time", "price of the wood lathe per hour"]}'
        return "Three hours, for 2 euros each [1]."

    with serve(answer) as running:
        monkeypatch.setenv("HICHUNK_BASE_URL", running.url)
        monkeypatch.setenv("HICHUNK_MODEL", "small")
        monkeypatch.delenv("HICHUNK_API_KEY", raising=False)
        yield running


MINILM = "sentence-transformers/all-MiniLM-L6-v2"
CROSS_ENCODER = "cross-encoder/ms-marco-MiniLM-L-6-v2"


@pytest.fixture(scope="module")
def cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a cross-encoder on MiniLM's weights; its head was never trained, so what it says means nothing."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = tmp_path_factory.mktemp("cross_encoder")
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_pretrained(packaged_model(MINILM), num_labels=1)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(packaged_model(MINILM)).save_pretrained(folder)
    return folder


# Haystack's diversity ranker knows no packaged models.
LOCAL_DIVERSITY = (
    f"model: {MINILM}\n      strategy", f"model: {packaged_model(MINILM)}\n      strategy"
)  # fmt: skip


def test_contextual(endpoint: Endpoint) -> None:
    paths = [str(SAFETY)]
    first = run("indexing_contextual", paths=paths)
    (report,) = first["report"]
    assert report["written"] == report["leaves"] == first["leaves"] > 1
    assert len(endpoint.requests) == report["leaves"]
    # What is read is the handbook, not what the model said of it.
    answer = run("query", query="zebra")
    assert "zebra" not in answer["context"]
    store = HierarchyQdrantDocumentStore(path="qdrant_data", index="hichunk", embedding_dim=384)
    leaves = [node for node in store.filter_documents() if is_leaf(node)]
    assert len(leaves) == first["leaves"]
    assert all("zebra" in leaf.meta["leaf_context"] for leaf in leaves)
    # Unchanged: neither embedded nor asked about again.
    assert run("indexing_contextual", paths=paths)["unchanged"] == 1
    assert len(endpoint.requests) == report["leaves"]


def test_hybrid() -> None:
    indexed = run("indexing_hybrid", paths=[str(SAFETY), str(EQUIPMENT), str(TELEPHONES)])
    assert (indexed["sources"], indexed["failed"]) == (3, [])
    answer = run("query_hybrid", query=LATHE)
    assert answer["citations"][0]["source"] == str(EQUIPMENT)
    assert "| Wood lathe" in answer["context"]
    assert 0 < answer["tokens_used"] <= 1024
    # A number has no meaning for the dense model; its words find it.
    number = re.search(r"\d{3,} \d{2,}|\b\d{4,}\b", TELEPHONES.read_text(encoding="utf-8"))
    assert number is not None
    assert number[0] in run("query_hybrid", query=f"Whose number is {number[0]}?")["context"]


def test_late_chunking(tmp_path: Path) -> None:
    assert run("indexing_late", paths=[str(SAFETY), str(EQUIPMENT)])["sources"] == 2
    answer = run("query", tmp_path, ("index: hichunk\n", "index: hichunk_late\n"), query=LATHE)
    assert "| Wood lathe" in answer["context"]


def test_four_levels_by_content(tmp_path: Path) -> None:
    assert run("indexing_kohaku", paths=[str(SAFETY), str(EQUIPMENT)])["sources"] == 2
    changes = (("index: hichunk\n", "index: hichunk_kohaku\n"), ("top_k: 64", "top_k: 128"))
    answer = run("query", tmp_path, *changes, query=HURT)
    assert "Ring 112" in answer["context"]
    assert len(answer["trace"]["hits"]) > 64
    # Sentences, which merge into paragraphs and sections.
    assert max(hit["tokens"] for hit in answer["trace"]["hits"]) <= 100
    assert any(node["merged"] for node in answer["trace"]["nodes"])


def test_levels() -> None:
    assert run("indexing_levels", paths=[str(SAFETY), str(EQUIPMENT)])["sources"] == 2
    answer = run("query_levels", query=HURT)
    assert "Ring 112" in answer["context"]
    assert 0 < answer["tokens_used"] <= 1024
    starts = [(citation["source"], citation["start"], citation["end"]) for citation in answer["citations"]]
    for source, start, end in starts:
        assert not any(source == other and start < b and a < end for other, a, b in starts if (a, b) != (start, end))


def test_variants(endpoint: Endpoint) -> None:
    run("indexing", paths=[str(SAFETY), str(EQUIPMENT)])
    answer = run("query_variants", query=LATHE)
    assert "| Wood lathe" in answer["context"]
    assert sorted(answer["queries"]) == sorted([LATHE, "wood lathe booking time", "price of the wood lathe per hour"])
    assert len(endpoint.requests) == 1
    assert endpoint.requests[0]["response_format"] == {"type": "json_object"}


def test_rerank_as_it_is_with_a_local_cross_encoder(tmp_path: Path, cross_encoder: Path) -> None:
    run("indexing", paths=[str(SAFETY), str(EQUIPMENT)])
    changes = ((CROSS_ENCODER, str(cross_encoder)), LOCAL_DIVERSITY)
    answer = run("query_rerank", tmp_path, *changes, query=HURT)
    # The budget is filled in the order of the cross-encoder, whose scores are the merge's.
    assert 900 < answer["tokens_used"] <= 1024
    hits = answer["trace"]["hits"]
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    plain = run("query", query=HURT)["trace"]["hits"]
    assert {hit["id"] for hit in hits} == {hit["id"] for hit in plain}
    assert [hit["id"] for hit in hits] != [hit["id"] for hit in plain]


def test_the_trained_cross_encoder_is_the_published_one(trained_cross_encoder: Path) -> None:
    from sentence_transformers import CrossEncoder

    question = "How many people live in Berlin?"
    number = "Berlin had a population of 3,520,031 registered inhabitants in an area of 891.82 square kilometers."
    museums = "Berlin is well known for its museums."
    # What its model card gives for them; 8-bit weights take it a little aside.
    scores = CrossEncoder(str(trained_cross_encoder)).predict([(question, number), (question, museums)])
    assert scores.tolist() == pytest.approx([9.218911, -4.0780287], abs=0.3)


def test_rerank_with_a_trained_cross_encoder(tmp_path: Path, trained_cross_encoder: Path) -> None:
    run("indexing", paths=[str(SAFETY), str(EQUIPMENT)])
    answer = run("query_rerank", tmp_path, (CROSS_ENCODER, str(trained_cross_encoder)), LOCAL_DIVERSITY, query=LATHE)
    assert "| Wood lathe" in "".join(document["content"] for document in answer["documents"])
    best = answer["trace"]["hits"][0]
    holder = next(document for document in answer["documents"] if best["node"] == document["id"])
    assert "| Wood lathe" in holder["content"]
    # The best stands at one end of the context.
    assert holder in (answer["documents"][0], answer["documents"][-1])


def test_baseline(tmp_path: Path, cross_encoder: Path) -> None:
    indexed = run("indexing_baseline", paths=[str(SAFETY), str(EQUIPMENT)])
    assert indexed["sources"] == 2
    answer = run("baseline", tmp_path, (CROSS_ENCODER, str(cross_encoder)), query=LATHE)
    assert 0 < answer["tokens_used"] <= 1024
    assert not any(node["merged"] for node in answer["trace"]["nodes"])
    lengths = [hit["tokens"] for hit in answer["trace"]["hits"]]
    assert max(lengths) <= 500
    assert sum(lengths) / len(lengths) > 350
    # 15 %: neighbours share some text.
    spans = sorted((hit["source_id"], hit["start"], hit["end"]) for hit in answer["trace"]["hits"])
    assert any(one[0] == next_one[0] and next_one[1] < one[2] for one, next_one in pairwise(spans))


def test_baseline_with_a_trained_cross_encoder(tmp_path: Path, trained_cross_encoder: Path) -> None:
    run("indexing_baseline", paths=[str(SAFETY), str(EQUIPMENT)])
    answer = run("baseline", tmp_path, (CROSS_ENCODER, str(trained_cross_encoder)), query=LATHE)
    assert "| Wood lathe" in answer["context"]
    # It knows what has to do with the question, and what has not.
    scores = [hit["score"] for hit in answer["trace"]["hits"]]
    assert scores[0] > 0.5
    assert scores[-1] < 0.01


def test_rag(endpoint: Endpoint) -> None:
    run("indexing", paths=[str(SAFETY), str(EQUIPMENT)])
    answer = run("rag", query=LATHE)
    assert answer["reply"] == "Three hours, for 2 euros each [1]."
    (request,) = endpoint.requests
    system, user = request["messages"]
    assert system["role"] == "system"
    assert "numbers of the passages" in " ".join(system["content"].split())
    # The context as it is, and the question behind it.
    assert user["content"].strip() == f"{answer['context'].strip()}\n\nQuestion: {LATHE}"
    assert request["model"] == "small"
    assert [citation["number"] for citation in answer["citations"]][:1] == [1]


def test_rag_takes_braces_for_text(endpoint: Endpoint, tmp_path: Path) -> None:
    page = tmp_path / "braces.md"
    page.write_text("# Templates\n\nWrite {{ question }} and {% endmessage %} where they belong.\n")
    run("indexing", paths=[str(page)])
    answer = run("rag", query="Where is {{ context }} written?")
    user = endpoint.requests[0]["messages"][-1]["content"]
    assert "Write {{ question }} and {% endmessage %} where" in user
    assert user.strip().endswith("Question: Where is {{ context }} written?")
    assert answer["reply"]
