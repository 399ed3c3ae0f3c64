# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""`pipelines/indexing_hichunk.yml` against a server on this machine that answers from the gold headings."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from haystack import Pipeline

from hichunk_haystack import load_pipeline
from hichunk_haystack.hichunk.lines import Lines, make_lines
from hichunk_haystack.hichunk.prompts import write_answer
from tests.conftest import REPOSITORY
from tests.hichunk.endpoint import Endpoint, serve
from tests.hichunk.gold import shown_lines

FILE = REPOSITORY / "pipelines" / "indexing_hichunk.yml"
PAGES = {
    "kiln.md": "# Kiln\n\nThe kiln stands in the yard behind the shop. Nobody opens it before the next morning.\n\n"
    "## Firing\n\nFire it slowly, over eight hours, and write down the temperature every half an hour.\n\n"
    "## Cooling\n\nLet it cool for a whole day. Opening it early cracks the glaze and may break the shelves.\n",
    "wheel.md": "# Wheel\n\nCentre the clay before you open it, and keep the sponge wet all the time you turn.\n\n"
    "# Glaze\n\nDip the pot for three seconds. Sieve the glaze twice when it has stood for a week or longer.\n",
}


def answer_from_headings(prompt: str) -> str:
    texts = shown_lines(prompt)
    documents: list[Lines] = [make_lines(text) for text in PAGES.values()]
    (lines,) = [lines for lines in documents if lines.shown == texts]
    return write_answer((line, level, True) for line, (level, _) in sorted(lines.headings.items()))


@pytest.fixture
def endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """A server that the environment names, and a folder of its own for all that is written."""
    for name in ("QDRANT_URL", "QDRANT_PATH", "HICHUNK_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    for name, text in PAGES.items():
        (tmp_path / name).write_bytes(text.encode())
    with serve(answer_from_headings) as running:
        monkeypatch.setenv("HICHUNK_BASE_URL", running.url)
        monkeypatch.setenv("HICHUNK_MODEL", "hichunk-4b")
        yield running


def run(pipeline: Pipeline, *, asynchronously: bool) -> dict[str, dict[str, object]]:
    data = {"converter": {"paths": sorted(PAGES)}}
    include = {"splitter"}
    if asynchronously:
        return asyncio.run(pipeline.run_async(data, include_outputs_from=include))
    return pipeline.run(data, include_outputs_from=include)


def test_it_loads_without_the_environment_and_round_trips(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HICHUNK_BASE_URL", "HICHUNK_MODEL", "HICHUNK_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    pipeline = load_pipeline(FILE)
    dumped = pipeline.dumps()
    assert Pipeline.loads(dumped, allowed_modules=["hichunk_haystack"]).to_dict() == pipeline.to_dict()
    # What a variable holds is never written.
    monkeypatch.setenv("HICHUNK_MODEL", "hichunk-4b")
    monkeypatch.setenv("HICHUNK_API_KEY", "secret")
    assert load_pipeline(FILE).dumps() == dumped
    assert "HICHUNK_API_KEY" in dumped


def test_it_differs_from_the_pipeline_without_a_model_in_the_splitter_only() -> None:
    ours = yaml.safe_load(FILE.read_text())
    plain = yaml.safe_load((REPOSITORY / "pipelines" / "indexing.yml").read_text())
    assert ours["outputs"].pop("report") == "answer.report"
    assert ours["components"]["answer"]["init_parameters"]["names"].pop() == "report"
    ours["connections"].remove({"sender": "splitter.report", "receiver": "answer.report"})
    splitter, other = ours["components"].pop("splitter"), plain["components"].pop("splitter")
    assert splitter["type"] != other["type"]
    for name in ("leaf_tokens", "min_leaf_tokens", "token_counter"):
        assert splitter["init_parameters"][name] == other["init_parameters"][name]
    assert ours == plain


@pytest.mark.parametrize("asynchronously", [False, True])
def test_it_indexes_along_what_the_server_answers(endpoint: Endpoint, asynchronously: bool) -> None:
    pipeline = load_pipeline(FILE)
    result = run(pipeline, asynchronously=asynchronously)
    # kiln.md: Kiln's own text, Firing, Cooling; wheel.md: two sections. All within 100 tokens.
    assert (result["answer"]["sources"], result["answer"]["leaves"]) == (2, 5)
    reports = result["answer"]["report"]
    assert [(report["windows"], report["calls"], report["fallbacks"]) for report in reports] == [(1, 1, 0)] * 2
    store = pipeline.get_component("writer").document_store
    leaves = [node for node in store.filter_documents() if not node.meta["__children_ids"]]
    assert sorted(node.meta["headings"] for node in leaves) == [
        ["Glaze"], ["Kiln"], ["Kiln", "Cooling"], ["Kiln", "Firing"], ["Wheel"],
    ]  # fmt: skip
    assert {(request["model"], request["temperature"], request["max_tokens"]) for request in endpoint.requests} == {
        ("hichunk-4b", 0, 4096)
    }
    # Answers are kept: another pipeline asks for nothing.
    asked = len(endpoint.requests)
    again = run(load_pipeline(FILE), asynchronously=asynchronously)
    assert len(endpoint.requests) == asked == 2
    assert (again["answer"]["sources"], again["answer"]["unchanged"]) == (0, 2)
