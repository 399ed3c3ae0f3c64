# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import asyncio
import copy
import logging
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from haystack import Document, component
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.components.generators.chat.mock import MockChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.utils import Secret
from hypothesis import given
from hypothesis import strategies as st

from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.components.preprocessors.hichunk_splitter import HiChunkSplitError, HiChunkSplitter
from hichunk_haystack.hichunk.prompts import JSON_TEMPLATE
from hichunk_haystack.tokens import HuggingFaceTokenCounter
from hichunk_haystack.tree import from_documents
from tests.hichunk.gold import shown_lines
from tests.hichunk.test_windows import LIES
from tests.test_tree import check_contract, prose

TYPE = "hichunk_haystack.components.preprocessors.HiChunkSplitter"
WORDPIECE = HuggingFaceTokenCounter()

POTTERY = """\
Kiln and wheel

The kiln stands in the yard. It is fired slowly, over eight hours.

How to centre

Centre the clay before you open it. Keep the sponge wet all the time.
"""


@component
class Scripted:
    """Answers by a function of the prompt."""

    def __init__(self, reply: Callable[[str], str | BaseException]) -> None:
        self.reply = reply
        self.prompts: list[str] = []

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]) -> dict[str, list[ChatMessage]]:
        prompt = messages[0].text or ""
        self.prompts.append(prompt)
        reply = self.reply(prompt)
        if isinstance(reply, BaseException):
            raise reply
        return {"replies": [ChatMessage.from_assistant(reply)]}

    def to_dict(self) -> dict[str, Any]:
        return {"type": "scripted", "init_parameters": {}}


def splitter(reply: Callable[[str], str | BaseException], **options: Any) -> HiChunkSplitter:
    defaults = {"min_leaf_tokens": 1, "token_counter": WORDPIECE, "progress_bar": False, "max_retries": 0}
    return HiChunkSplitter(Scripted(reply), **{**defaults, **options})


def asked(chunker: HiChunkSplitter) -> list[str]:
    return chunker.chat_generator.prompts  # type: ignore[attr-defined]


def page(name: str) -> Document:
    return Document(content=POTTERY.replace("Kiln and wheel", f"Page {name}"), meta={"file_path": f"{name}.txt"})


def two_sections(_: str) -> str:
    return "0, Level One, True\n3, Level One, True"


def test_a_text_without_headings_gets_the_sections_that_the_model_names() -> None:
    chunker = splitter(two_sections)
    source = Document(content=POTTERY, meta={"file_path": "pottery.txt"})
    result = chunker.run([source])
    assert shown_lines(asked(chunker)[0]) == [
        "Kiln and wheel",
        "The kiln stands in the yard.",
        "It is fired slowly, over eight hours.",
        "How to centre",
        "Centre the clay before you open it.",
        "Keep the sponge wet all the time.",
    ]
    assert [
        (node.meta["__level"], node.meta["headings"], (node.content or "").split("\n")[0])
        for node in result["documents"]
    ] == [
        (0, [], "Kiln and wheel"),
        (1, ["Kiln and wheel"], "Kiln and wheel"),
        (1, ["How to centre"], "How to centre"),
    ]
    assert result["report"] == [
        {
            "source_id": source.id,
            "file_path": "pottery.txt",
            "windows": 1,
            "calls": 1,
            "cached": 0,
            "prompt_tokens": WORDPIECE.count_texts(asked(chunker))[0],
            # 0 , level one , true, twice
            "answer_tokens": 12,
            "retries": 0,
            "dropped": {},
            "fallbacks": 0,
            "lines": 6,
            "cut_points": 2,
            "error": None,
        }
    ]


def test_a_line_that_is_no_title_starts_a_section_without_one_and_a_heading_keeps_its_title() -> None:
    nodes = splitter(lambda _: "0, Level One, False\n3, Level One, False").run([Document(content=POTTERY)])["documents"]
    assert [node.meta["headings"] for node in nodes] == [[], [], []]
    marked = POTTERY.replace("How to", "# How to")
    nodes = splitter(lambda _: "0, Level One\n3, Level One, False").run([Document(content=marked)])["documents"]
    assert [node.meta["headings"] for node in nodes] == [[], [], ["How to centre"]]


def test_json_may_be_asked_for() -> None:
    chunker = splitter(lambda _: '{"cut_points": [{"line": 3, "level": 1, "title": true}]}', answer_format="json")
    nodes = chunker.run([Document(content=POTTERY)])["documents"]
    assert [node.meta["headings"] for node in nodes] == [[], [], ["How to centre"]]
    assert asked(chunker)[0].startswith(JSON_TEMPLATE.split("{lines}")[0])


def test_the_instruction_can_be_ones_own_and_marks_can_be_hidden() -> None:
    chunker = splitter(
        two_sections, prompt_template="Cut it!\n{lines}\nNow.", hide_heading_marks=True, sentence_chars=10
    )
    chunker.run([Document(content="# Kiln\n\nFire it slowly over eight hours.")])
    assert asked(chunker) == ["Cut it!\n0 @ Kiln\n1 @ Fire it sl\nNow."]


def test_when_the_model_is_no_good_the_tree_is_that_of_the_headings(rust_book: dict[str, str]) -> None:
    sources = [Document(content=text) for text in list(rust_book.values())[20:24]]
    chunker = splitter(lambda _: "I am not sure.", window_tokens=2048, min_leaf_tokens=20)
    expected = MarkdownHierarchicalSplitter(token_counter=WORDPIECE).run(sources)["documents"]
    result = chunker.run(sources)
    keys = ("__level", "split_idx_start", "split_idx_end", "headings", "token_count", "source_id")
    assert [[node.meta[key] for key in keys] for node in result["documents"]] == [
        [node.meta[key] for key in keys] for node in expected
    ]
    assert all(report["fallbacks"] == report["windows"] for report in result["report"])


def test_one_documents_failure_leaves_the_others(caplog: pytest.LogCaptureFixture) -> None:
    sources = [page("one"), page("two"), page("three")]

    def reply(prompt: str) -> str | Exception:
        return ConnectionError("refused") if "Page two" in prompt else "0, Level One, True\n3, Level One, True"

    with caplog.at_level(logging.WARNING):
        result = splitter(reply).run(sources)
    assert [node.meta["file_path"] for node in result["documents"]] == ["one.txt"] * 3 + ["two.txt"] + ["three.txt"] * 3
    assert [report["fallbacks"] for report in result["report"]] == [0, 1, 0]
    assert [record.getMessage() for record in caplog.records] == [
        "'two.txt': 1 of 1 windows came to nothing; window 1, lines 0 to 5: ConnectionError: refused"
    ]
    with pytest.raises(
        HiChunkSplitError, match=r"1 of 3 documents could not be chunked\. 'two\.txt': window 1"
    ) as caught:
        splitter(reply, on_failure="raise").run(sources)
    assert [node.meta["file_path"] for node in caught.value.documents] == ["one.txt"] * 3 + ["three.txt"] * 3
    assert [report["error"] is None for report in caught.value.report] == [True, False, True]


def test_documents_without_text_and_one_that_comes_twice_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    empty, blank, source = Document(content=None, meta={"file_path": "none.md"}), Document(content=" \n"), page("one")
    chunker = splitter(two_sections)
    with caplog.at_level(logging.WARNING):
        result = chunker.run([empty, source, blank, source])
    assert len(result["documents"]) == 3
    assert [report["file_path"] for report in result["report"]] == ["one.txt"]
    assert len(asked(chunker)) == 1
    messages = "\n".join(record.getMessage() for record in caplog.records)
    assert "'none.md' has no text" in messages
    assert f"document '{blank.id}' has no text" in messages
    assert "'one.txt' comes twice" in messages
    assert chunker.run([]) == {"documents": [], "report": []}


def test_what_is_no_document_is_refused_before_the_model_is_asked() -> None:
    chunker = splitter(two_sections)
    with pytest.raises(TypeError, match="takes Documents, but got a str"):
        chunker.run([page("one"), "text"])  # type: ignore[list-item]
    assert asked(chunker) == []


def test_the_callers_documents_are_not_changed() -> None:
    source = Document(content=POTTERY, meta={"tags": ["clay"]}, embedding=[0.1])
    before = copy.deepcopy(source)
    nodes = splitter(two_sections).run([source])["documents"]
    nodes[0].meta["tags"].append("changed")
    assert source == before


def test_ids_hang_on_what_the_model_answered() -> None:
    def ids(answer: str) -> list[str]:
        return [node.id for node in splitter(lambda _: answer).run([Document(content=POTTERY)])["documents"]]

    first = ids("0, Level One, True\n3, Level One, True")
    assert ids("- 3, level 1, yes\n- 0, level 1, yes") == first
    other = ids("0, Level One, True\n4, Level One, False")
    # The root keeps the source's id; no other node of one tree is taken for a node of the other.
    assert first[0] == other[0] == Document(content=POTTERY).id
    assert not set(first[1:]) & set(other[1:])


def test_documents_are_worked_on_in_threads() -> None:
    # Three wait until all three are asked: one after the other they would wait in vain.
    together = threading.Barrier(3, timeout=30)

    def reply(_: str) -> str:
        together.wait()
        return "none"

    result = splitter(reply, max_workers=3).run([page(name) for name in ("one", "two", "three")])
    assert [report["fallbacks"] for report in result["report"]] == [0, 0, 0]


@component
class Asynchronous:
    """Answers asynchronously, and notes how many are asked at once."""

    def __init__(self, wait_for: int) -> None:
        self.wait_for = wait_for
        self.waiting = self.most = 0
        self.all_there = asyncio.Event()

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]) -> dict[str, list[ChatMessage]]:
        raise AssertionError

    @component.output_types(replies=list[ChatMessage])
    async def run_async(self, messages: list[ChatMessage]) -> dict[str, list[ChatMessage]]:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        if self.waiting == self.wait_for:
            self.all_there.set()
        await asyncio.wait_for(self.all_there.wait(), 30)
        self.waiting -= 1
        return {"replies": [ChatMessage.from_assistant(two_sections(""))]}


async def test_run_async_is_concurrent_up_to_its_bound_and_gives_what_run_gives() -> None:
    sources = [page(str(number)) for number in range(7)]
    expected = splitter(two_sections).run(sources)
    generator = Asynchronous(wait_for=4)
    chunker = HiChunkSplitter(
        generator, max_workers=4, min_leaf_tokens=1, token_counter=WORDPIECE, progress_bar=False, max_retries=0
    )
    assert await chunker.run_async(sources) == expected
    assert generator.most == 4


async def test_run_async_takes_generators_that_are_not_asynchronous() -> None:
    sources = [page("one"), page("two")]

    def reply(prompt: str) -> str | Exception:
        return ValueError("no") if "Page two" in prompt else two_sections(prompt)

    assert await splitter(reply).run_async(sources) == splitter(reply).run(sources)
    with pytest.raises(HiChunkSplitError, match=r"two\.txt"):
        await splitter(reply, on_failure="raise").run_async(sources)


def windows_of_a_chapter(prompt: str) -> str:
    """Level One at the first line, Level Two at each fourth."""
    rows = [f"{number}, Level {'Two' if number else 'One'}, False" for number in range(0, len(shown_lines(prompt)), 4)]
    return "\n".join(rows)


def test_a_run_that_was_killed_goes_on_where_it_stopped(tmp_path: Path, rust_book: dict[str, str]) -> None:
    sources = [Document(content=text) for text in list(rust_book.values())[30:33]]
    options = {"window_tokens": 1024, "cache_dir": tmp_path, "max_workers": 1}
    whole = splitter(windows_of_a_chapter, **{**options, "cache_dir": None})
    expected = whole.run(sources)
    windows = sum(report["windows"] for report in expected["report"])
    assert windows > 8

    count = iter(range(windows))
    killed = splitter(lambda p: KeyboardInterrupt() if next(count) == 6 else windows_of_a_chapter(p), **options)
    with pytest.raises(KeyboardInterrupt):
        killed.run(sources)
    assert len(asked(killed)) == 7

    rest = splitter(windows_of_a_chapter, **options)
    result = rest.run(sources)
    assert result["documents"] == expected["documents"]
    # Six were answered before; the seventh was not.
    assert asked(rest) == asked(whole)[6:]
    assert sum(report["cached"] for report in result["report"]) == 6
    again = splitter(windows_of_a_chapter, **options)
    assert again.run(sources)["documents"] == expected["documents"]
    assert asked(again) == []


def test_answers_of_another_model_or_prompt_are_not_taken(tmp_path: Path) -> None:
    def calls(model: str, **options: Any) -> int:
        generator = MockChatGenerator("0, Level One, True", model=model)
        chunker = HiChunkSplitter(generator, token_counter=WORDPIECE, progress_bar=False, cache_dir=tmp_path, **options)
        return chunker.run([Document(content=POTTERY)])["report"][0]["calls"]

    assert [calls("a"), calls("a"), calls("b"), calls("b")] == [1, 0, 1, 0]
    assert [calls("a", sentence_chars=20), calls("a", answer_format="json"), calls("a")] == [1, 1, 0]
    # What does not change a window is no reason to ask again.
    assert calls("a", leaf_tokens=50, window_tokens=8000) == 0


def test_progress_is_shown_over_windows(capsys: pytest.CaptureFixture[str], rust_book: dict[str, str]) -> None:
    sources = [Document(content=text) for text in list(rust_book.values())[30:33]]
    result = splitter(windows_of_a_chapter, window_tokens=1024, progress_bar=True).run(sources)
    windows = sum(report["windows"] for report in result["report"])
    shown = capsys.readouterr().err
    # However the number was guessed at first, at the end it is right.
    assert "Asking for cut points: 100%" in shown.split("\r")[-1]
    assert f"{windows}/{windows} " in shown.split("\r")[-1]
    splitter(two_sections, progress_bar=False).run([page("one")])
    assert capsys.readouterr().err == ""


def test_serialisation_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAYSTACK_DESERIALIZATION_ALLOWLIST", "hichunk_haystack")
    generator = OpenAIChatGenerator(api_key=Secret.from_env_var("KEY"), model="hichunk-4b", api_base_url="http://a/v1")
    defaults = {
        "chat_generator": generator.to_dict(),
        "prompt_template": None,
        "answer_format": "lines",
        "window_tokens": 16384,
        "sentence_chars": 100,
        "hide_heading_marks": False,
        "leaf_tokens": 200,
        "min_leaf_tokens": 20,
        "max_level": 10,
        "inner_tokens": None,
        "language": "en",
        "token_counter": None,
        "max_retries": 2,
        "on_failure": "structure",
        "max_workers": 4,
        "cache_dir": None,
        "progress_bar": True,
    }
    assert HiChunkSplitter(generator).to_dict() == {"type": TYPE, "init_parameters": defaults}
    changed = {
        "chat_generator": {**generator.to_dict()},
        "prompt_template": "Cut: {lines}",
        "answer_format": "json",
        "window_tokens": 4096,
        "sentence_chars": 80,
        "hide_heading_marks": True,
        "leaf_tokens": 100,
        "min_leaf_tokens": 10,
        "max_level": 4,
        "inner_tokens": [500],
        "language": "zh",
        "token_counter": HuggingFaceTokenCounter("some/model").to_dict(),
        "max_retries": 0,
        "on_failure": "single",
        "max_workers": 1,
        "cache_dir": "answers",
        "progress_bar": False,
    }
    data = {"type": TYPE, "init_parameters": changed}
    revived = HiChunkSplitter.from_dict(copy.deepcopy(data))
    assert revived.to_dict() == data
    assert isinstance(revived.chat_generator, OpenAIChatGenerator)
    assert isinstance(revived.token_counter, HuggingFaceTokenCounter)
    assert HiChunkSplitter(generator, cache_dir=Path("answers")).to_dict()["init_parameters"]["cache_dir"] == "answers"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"answer_format": "xml"}, "answer_format is 'xml'; it must be one of lines, json"),
        ({"on_failure": "ignore"}, "on_failure is 'ignore'; it must be one of structure, single, raise"),
        ({"prompt_template": "Cut it."}, r"prompt_template holds \{lines\} 0 times"),
        ({"sentence_chars": 9}, "sentence_chars is 9; it must be at least 10"),
        ({"max_retries": -1}, "max_retries is -1"),
        ({"max_workers": 0}, "max_workers is 0"),
        ({"leaf_tokens": 0}, "leaf_tokens is 0"),
    ],
)
def test_parameters_that_make_no_sense_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        splitter(two_sections, **options)


def test_a_window_that_the_instruction_fills_is_refused() -> None:
    with pytest.raises(ValueError, match="window_tokens is 100, but the instruction alone takes"):
        splitter(two_sections, window_tokens=100).run([page("one")])


@given(prose.filter(lambda text: text.strip()), st.integers(0, 2**32), st.sampled_from(["structure", "single"]))
def test_the_tree_contract_holds_whatever_the_model_says(text: str, seed: int, on_failure: str) -> None:
    chance = random.Random(seed)

    def reply(prompt: str) -> str | Exception:
        if chance.random() < 0.2:
            return chance.choice([RuntimeError("out of memory"), *LIES])
        count = len(shown_lines(prompt))
        rows = range(chance.randrange(1, 12))
        return "\n".join(f"{chance.randrange(-2, count + 2)}, Level {chance.choice([1, 1, 2, 3, 9, 12])}" for _ in rows)

    source = text * 4
    chunker = splitter(
        reply, prompt_template="{lines}", window_tokens=64, leaf_tokens=20, on_failure=on_failure, max_retries=1
    )
    nodes = chunker.run([Document(id="source", content=source)])["documents"]
    check_contract(source, from_documents(nodes), WORDPIECE, 20)
    assert len({node.id for node in nodes}) == len(nodes)
    assert all(
        (node.content or "") == source[node.meta["split_idx_start"] : node.meta["split_idx_end"]] for node in nodes
    )
