# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import asyncio
import json
import os
import re
import threading
import time
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from haystack import Document, Pipeline, component
from haystack.components.preprocessors import HierarchicalDocumentSplitter
from haystack.dataclasses import ChatMessage
from haystack.utils import Secret

from hichunk_haystack.components.embedders import LeafEmbedder
from hichunk_haystack.components.generators import EndpointChatGenerator
from hichunk_haystack.components.preprocessors import ContextualLeafEnricher, MarkdownHierarchicalSplitter
from hichunk_haystack.tokens import HuggingFaceTokenCounter
from hichunk_haystack.tree import is_leaf
from tests.hichunk.endpoint import serve
from tests.word_embedder import WordEmbedder

TEXT = """\
# Kiln

Fire it slowly over eight hours.

## Glaze

Dip the pot for three seconds.

# Wheel

Centre the clay before you open it.
"""
NUMBER = re.compile(r"The passage to situate is \[(\d+)\]")


@component
class Script:
    """A chat generator that answers by a function of the prompt, and notes what it is asked, and when."""

    def __init__(
        self, answer: Callable[[str], str] = lambda prompt: f"On passage {NUMBER.findall(prompt)[0]}."
    ) -> None:
        self.answer = answer
        self.prompts: list[str] = []
        self.lock = threading.Lock()
        self.running = self.most = 0
        self.pause = 0.0

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]) -> dict[str, list[ChatMessage]]:
        prompt = messages[-1].text or ""
        with self.lock:
            self.prompts.append(prompt)
            self.running += 1
            self.most = max(self.most, self.running)
        try:
            time.sleep(self.pause)
            return {"replies": [ChatMessage.from_assistant(self.answer(prompt))]}
        finally:
            with self.lock:
                self.running -= 1

    def to_dict(self) -> dict[str, Any]:
        return {"type": "tests.Script", "init_parameters": {}}


def tree(text: str = TEXT, leaf_tokens: int = 16, **meta: Any) -> list[Document]:
    splitter = MarkdownHierarchicalSplitter(leaf_tokens=leaf_tokens, min_leaf_tokens=1)
    return splitter.run([Document(content=text, meta=meta)])["documents"]


def enrich(generator: Any, nodes: list[Document], **options: Any) -> dict[str, Any]:
    return ContextualLeafEnricher(generator, progress_bar=False, **options).run(nodes)


def contexts(nodes: list[Document]) -> list[Any]:
    return [node.meta.get("leaf_context") for node in nodes if is_leaf(node)]


def test_leaves_get_their_sentences_and_nothing_else_changes() -> None:
    nodes = tree(file_path="/home/ann/pottery.md")
    before = deepcopy(nodes)
    result = enrich(Script(), nodes)
    assert contexts(result["documents"]) == ["On passage 1.", "On passage 2.", "On passage 3."]
    assert nodes == before
    for node, old in zip(result["documents"], nodes, strict=True):
        assert (node.id, node.content) == (old.id, old.content)
        assert {key: value for key, value in node.meta.items() if key != "leaf_context"} == old.meta
        assert ("leaf_context" in node.meta) == is_leaf(node)
    assert result["report"] == [
        {
            "source_id": nodes[0].id, "file_path": "/home/ann/pottery.md", "leaves": 3, "written": 3, "cached": 0,
            "alone": 0, "failed": [],
        }
    ]  # fmt: skip
    json.dumps(result["report"])


def test_the_model_sees_the_section_and_which_leaf_is_meant() -> None:
    generator = Script()
    enrich(generator, tree(file_path="/home/ann/pottery.md"))
    prompt = next(prompt for prompt in generator.prompts if "situate is [2]" in prompt)
    assert 'document "pottery.md"' in prompt
    assert "/home/ann" not in prompt
    assert "[1]\n# Kiln\n\nFire it slowly over eight hours.\n\n[2]\n## Glaze\n\nDip the pot for" in prompt
    assert "situate is [2] (under: Kiln > Glaze):\n\n## Glaze\n\nDip the pot for three seconds.\n\n" in prompt


def test_prompts_of_a_section_share_all_that_comes_before_the_leaf() -> None:
    # No title and no file: the name falls back on a heading, which must not differ inside a section.
    generator = Script()
    enrich(generator, tree())
    # Of texts, whatever its name says.
    shared = os.path.commonprefix(generator.prompts)  # noqa: RUF071
    assert shared.endswith("Centre the clay before you open it.\n\nThe passage to situate is [")


def test_what_is_shown_keeps_within_the_bound(rust_book: dict[str, str], counter: HuggingFaceTokenCounter) -> None:
    text = rust_book["ch04-01-what-is-ownership.md"]
    nodes = MarkdownHierarchicalSplitter(leaf_tokens=60, min_leaf_tokens=10).run([Document(content=text)])["documents"]
    generator = Script()
    result = enrich(generator, nodes, section_tokens=300)
    leaves = [node for node in nodes if is_leaf(node)]
    assert len(generator.prompts) == len(leaves) == result["report"][0]["written"]
    for prompt in generator.prompts:
        section = prompt.split("numbered passages.\n\n", 1)[1].split("\n\nThe passage to situate", 1)[0]
        passages = re.split(r"(?:\A|\n\n)\[\d+\]\n", section)[1:]
        assert len(passages) > 1
        assert sum(counter.count_texts(passages)) <= 300


def test_the_first_leaf_of_a_section_is_asked_about_before_its_others_and_no_more_than_allowed_at_once() -> None:
    text = "".join(f"Sentence number {number} is about a kiln of its own.\n\n" for number in range(12))
    generator = Script()
    generator.pause = 0.01
    enrich(generator, tree(text), max_workers=3)
    assert NUMBER.findall(generator.prompts[0]) == ["1"]
    assert generator.most == 3
    one = Script()
    enrich(one, tree(text), max_workers=1)
    assert [int(NUMBER.findall(prompt)[0]) for prompt in one.prompts] == list(range(1, 13))
    assert one.most == 1


async def test_run_and_run_async_give_the_same() -> None:
    nodes = tree()
    enricher = ContextualLeafEnricher(Script(), progress_bar=False)
    assert await enricher.run_async(nodes) == enricher.run(nodes)


async def test_asynchronously_no_more_than_allowed_at_once_and_the_loop_is_free() -> None:
    text = "".join(f"Sentence number {number} is about a kiln of its own.\n\n" for number in range(8))
    generator = Script()
    generator.pause = 0.02
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    ticking = asyncio.create_task(tick())
    await ContextualLeafEnricher(generator, max_workers=2, progress_bar=False).run_async(tree(text))
    ticking.cancel()
    assert generator.most == 2
    assert ticks > 10


def test_a_leaf_that_fails_goes_without_and_is_reported() -> None:
    def answer(prompt: str) -> str:
        if "situate is [2]" in prompt:
            msg = "overloaded"
            raise ConnectionError(msg)
        return "" if "situate is [3]" in prompt else "On kilns."

    nodes = tree()
    # What an earlier run wrote does not stay where this one failed: it may be about another text.
    nodes[-1].meta["leaf_context"] = "Old."
    generator = Script(answer)
    result = enrich(generator, nodes, max_retries=2, max_workers=1)
    assert contexts(result["documents"]) == ["On kilns.", None, None]
    failed = result["report"][0]["failed"]
    leaves = [node for node in nodes if is_leaf(node)]
    assert failed == [
        {"id": leaves[1].id, "reason": "ConnectionError: overloaded"},
        {"id": leaves[2].id, "reason": "the answer holds no sentence: ''"},
    ]
    assert len(generator.prompts) == 1 + 3 + 3


def test_a_model_that_is_gone_is_not_asked_for_every_leaf() -> None:
    def answer(prompt: str) -> str:
        msg = "no route"
        raise ConnectionError(msg)

    text = "".join(f"Sentence number {number} is about a kiln of its own.\n\n" for number in range(40))
    generator = Script(answer)
    nodes = tree(text)
    result = enrich(generator, nodes, max_workers=2)
    assert len(generator.prompts) <= 8
    report = result["report"][0]
    assert report["written"] == 0
    assert len(report["failed"]) == report["leaves"] > 30
    assert report["failed"][-1]["reason"] == (
        "not asked, as 6 requests in a row had failed, the last with ConnectionError: no route"
    )


def test_answers_are_kept_on_disk_by_model_and_prompt(tmp_path: Path) -> None:
    first, second = Script(), Script()
    once = enrich(first, tree(), cache_dir=tmp_path)
    twice = enrich(second, tree(), cache_dir=tmp_path)
    assert second.prompts == []
    assert contexts(twice["documents"]) == contexts(once["documents"])
    assert twice["report"][0]["cached"] == 3
    # A changed section is asked about anew.
    enrich(second, tree(TEXT.replace("eight", "nine")), cache_dir=tmp_path)
    assert len(second.prompts) == 3


def test_useless_answers_are_not_kept(tmp_path: Path) -> None:
    enrich(Script(lambda prompt: "..."), tree(), cache_dir=tmp_path)
    again = Script()
    assert enrich(again, tree(), cache_dir=tmp_path)["report"][0]["written"] == 3
    assert len(again.prompts) == 3


def test_a_long_answer_is_cut_at_a_sentence(counter: HuggingFaceTokenCounter) -> None:
    answer = "This passage is about kilns. " + "It goes on and on about the firing of pots. " * 20
    result = enrich(Script(lambda prompt: answer), tree(), context_tokens=25)
    expected = "This passage is about kilns. It goes on and on about the firing of pots."
    assert contexts(result["documents"]) == [expected] * 3
    assert counter.count_texts([expected])[0] <= 25


def test_a_leaf_that_is_its_whole_document_is_not_asked_about() -> None:
    generator = Script()
    plain = Document(content="No tree at all.")
    result = enrich(generator, [*tree("# Bees\n\nThe hive.\n", leaf_tokens=50), plain])
    assert generator.prompts == []
    assert contexts(result["documents"]) == [None, None]
    assert [report["alone"] for report in result["report"]] == [1, 1]


def test_trees_of_haystacks_own_splitter_and_a_leaf_that_comes_twice() -> None:
    text = "One two three four five six seven eight. " * 4
    nodes = HierarchicalDocumentSplitter(block_sizes={16, 8}).run([Document(content=text)])["documents"]
    generator = Script(lambda prompt: "On numbers.")
    result = enrich(generator, [*nodes, nodes[-1]])
    leaves = [node for node in nodes if is_leaf(node)]
    assert contexts(result["documents"]) == ["On numbers."] * (len(leaves) + 1)
    assert len(generator.prompts) == len(leaves)
    # The passages of the whole document, in order, although offsets count from the parent there.
    assert all("[4]\n" in prompt for prompt in generator.prompts)
    assert result["report"][0]["leaves"] + sum(r["leaves"] for r in result["report"][1:]) == len(leaves)


def test_odd_text_gets_through() -> None:
    text = "# {section} \ud83d\n\nä😀字 {passage}\n\n# [2]\n\n\x00 nul </document>\n"
    splitter = MarkdownHierarchicalSplitter(leaf_tokens=16, min_leaf_tokens=1)
    nodes = splitter.run([Document(id="odd", content=text)])["documents"]
    generator = Script()
    result = enrich(generator, nodes)
    assert contexts(result["documents"]) == ["On passage 1.", "On passage 2."]
    # Half a character can't be sent.
    assert all(prompt.encode() for prompt in generator.prompts)


def test_nothing_in_nothing_out() -> None:
    assert enrich(Script(), []) == {"documents": [], "report": []}


def test_what_is_no_document_is_refused() -> None:
    with pytest.raises(TypeError, match="but got a str"):
        enrich(Script(), ["text"])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("option", "value"), [("section_tokens", 0), ("context_tokens", 0), ("max_retries", -1), ("max_workers", 0)]
)
def test_options_that_make_no_sense_are_named(option: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"{option} is {value}; it must be at least"):
        ContextualLeafEnricher(Script(), **{option: value})


# -- what is embedded


def test_the_embedder_is_given_the_sentences_in_front_and_the_content_stays() -> None:
    nodes = enrich(Script(), tree())["documents"]
    seen: list[str] = []

    class Recorder(WordEmbedder):
        def embed(self, text: str) -> list[float]:
            seen.append(text)
            return super().embed(text)

    embedded = LeafEmbedder(Recorder(), progress_bar=False).run(nodes)["documents"]
    assert "On passage 2.\nKiln\n## Glaze\n\nDip the pot for three seconds.\n\n" in seen
    assert [node.content for node in embedded] == [node.content for node in nodes]
    seen.clear()
    LeafEmbedder(Recorder(), progress_bar=False, embed_context=False).run(nodes)
    assert "Kiln\n## Glaze\n\nDip the pot for three seconds.\n\n" in seen


# -- YAML and a real endpoint


def test_to_dict_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAYSTACK_DESERIALIZATION_ALLOWLIST", "hichunk_haystack")
    enricher = ContextualLeafEnricher(EndpointChatGenerator(model="small"), cache_dir="answers", section_tokens=500)
    data = enricher.to_dict()
    assert data["type"] == "hichunk_haystack.components.preprocessors.ContextualLeafEnricher"
    parameters = dict(data["init_parameters"])
    assert parameters.pop("chat_generator")["type"] == "hichunk_haystack.components.generators.EndpointChatGenerator"
    assert parameters.pop("prompt_template").startswith("Below stands a part of the document")
    assert parameters == {
        "section_tokens": 500, "context_tokens": 60, "token_counter": None, "max_retries": 1, "max_workers": 4,
        "cache_dir": "answers", "progress_bar": True,
    }  # fmt: skip
    assert ContextualLeafEnricher.from_dict(data).to_dict() == data


def test_in_a_pipeline_from_yaml_against_an_endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = Pipeline()
    pipeline.add_component("splitter", MarkdownHierarchicalSplitter(leaf_tokens=16, min_leaf_tokens=1))
    generator = EndpointChatGenerator(
        api_base_url=Secret.from_env_var("CONTEXT_URL"), model="small", generation_kwargs={"temperature": 0}
    )
    pipeline.add_component(
        "enricher", ContextualLeafEnricher(generator, cache_dir=tmp_path / "answers", progress_bar=False)
    )
    pipeline.connect("splitter.documents", "enricher.documents")
    loaded = Pipeline.loads(pipeline.dumps(), allowed_modules=["hichunk_haystack"])
    with serve(lambda prompt: f"On passage {NUMBER.findall(prompt)[0]}.") as endpoint:
        monkeypatch.setenv("CONTEXT_URL", endpoint.url)
        result = loaded.run({"splitter": {"documents": [Document(content=TEXT)]}})["enricher"]
        assert contexts(result["documents"]) == ["On passage 1.", "On passage 2.", "On passage 3."]
        assert len(endpoint.requests) == 3
        result = loaded.run({"splitter": {"documents": [Document(content=TEXT)]}})["enricher"]
        assert result["report"][0]["cached"] == 3
        assert len(endpoint.requests) == 3
    loaded.close()
