# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Runs of the `HiChunkSplitter`: threads, awaited, killed and gone on with, progress."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from haystack import Document, component
from haystack.components.generators.chat.mock import MockChatGenerator
from haystack.dataclasses import ChatMessage

from hichunk_haystack.components.preprocessors.hichunk_splitter import HiChunkSplitError, HiChunkSplitter
from tests.components.preprocessors.scripted_splitter import POTTERY, WORDPIECE, asked, page, splitter, two_sections
from tests.hichunk.gold import shown_lines


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
