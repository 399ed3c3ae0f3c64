# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Asking a model for the contexts of many leaves: which prompts, in which order, and what became of each."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from haystack import Document

from hichunk_haystack.chains import Lengths
from hichunk_haystack.contexts import clean_context, fill, section_windows, show_section
from hichunk_haystack.hichunk.asking import Asking
from hichunk_haystack.hichunk.cache import DiskCache
from hichunk_haystack.hichunk.windows import Question
from hichunk_haystack.reading_order import leaves_in_order
from hichunk_haystack.unicode import well_formed

# So many errors in a row, with no answer between them, and the model is taken to be gone.
_GONE_AFTER = 6


@dataclass(frozen=True)
class Job:
    """
    One question.

    :param leaf: The leaf.
    :param prompt: What to ask.
    """

    leaf: Document
    prompt: str


@dataclass(frozen=True)
class Outcome:
    """
    What came of one question.

    :param context: The sentences; `None` where there are none.
    :param reason: Why there are none.
    :param cached: Whether they came from the disk.
    """

    context: str | None = None
    reason: str | None = None
    cached: bool = False


@dataclass
class Asker:
    """
    How to ask, and what has happened so far.

    :param fits: Says whether a beginning of an answer is short enough.
    :param max_retries: How often a leaf is asked about again.
    :param cache: Known answers.
    :param stopped: Whether to ask no more.
    """

    fits: Callable[[str], bool]
    max_retries: int
    cache: DiskCache | None
    stopped: bool = False
    _errors: int = 0
    _last_error: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def work(self, prompt: str) -> Asking[Outcome]:
        """
        Ask about one leaf.

        :param prompt: What to ask.
        :returns: Work that asks and returns the outcome.
        """
        known = None if self.cache is None else self.cache.get(prompt)
        if known is not None and (context := clean_context(known, self.fits)):
            return Outcome(context, cached=True)
        reason = "never asked: the run was broken off"
        for _ in range(1 + self.max_retries):
            if self.stopped:
                return Outcome(reason=self._last_error or reason)
            reply = yield Question((("user", prompt),), (), 0)
            if isinstance(reply, Exception):
                reason = f"{type(reply).__name__}: {reply}"
                self._note_error(reason)
                continue
            self._note_error(None)
            if context := clean_context(reply, self.fits):
                if self.cache is not None:
                    self.cache.put(prompt, reply)
                return Outcome(context)
            reason = f"the answer holds no sentence: {reply[:80]!r}"
        return Outcome(reason=reason)

    def _note_error(self, reason: str | None) -> None:
        with self._lock:
            self._errors = 0 if reason is None else self._errors + 1
            if self._errors >= _GONE_AFTER and not self.stopped:
                self.stopped = True
                self._last_error = f"not asked, as {self._errors} requests in a row had failed, the last with {reason}"


def plan_jobs(
    documents: Sequence[Document], lengths: Lengths, section_tokens: int, template: str
) -> tuple[list[list[Job]], list[str]]:
    """
    Write the prompts for the leaves of trees.

    :param documents: Nodes; a leaf that comes twice is asked about once.
    :param lengths: Where lengths come from.
    :param section_tokens: The most tokens shown around a leaf.
    :param template: The prompt's template.
    :returns: The jobs, window by window; and the ids of leaves that stand alone, around which there is nothing to show.
    """
    by_id = {document.id: document for document in documents}
    trees, alone = leaves_in_order(documents, lengths)
    windows = []
    for hits in trees:
        for window in section_windows(hits, section_tokens):
            shown = hits[window.first : window.last]
            if len(shown) == 1:
                alone.append(shown[0].id)
                continue
            # What all prompts of a window begin with must not differ from leaf to leaf, the name included.
            name = _name(by_id[shown[0].id])
            section = show_section([by_id[hit.id].content or "" for hit in shown], shown)
            windows.append(
                [
                    Job(by_id[hit.id], _prompt(template, by_id[hit.id], name, section, number))
                    for number, hit in enumerate(shown, start=1)
                    if window.low <= window.first + number - 1 < window.high
                ]
            )
    return windows, alone


def run_jobs(windows: Sequence[Sequence[Job]], ask: Callable[[Job], None], workers: int) -> None:
    """
    Ask in threads. The first leaf of a window is asked about before its others, so that these find the beginning of
    their prompts read already.

    :param windows: The jobs, window by window.
    :param ask: Asks about one leaf; it does not raise.
    :param workers: How many questions there are at once.
    """
    calls = ThreadPoolExecutor(workers)
    openings = ThreadPoolExecutor(workers)

    def opened(window: Sequence[Job]) -> None:
        calls.submit(ask, window[0]).result()
        rest: list[Future[None]] = [calls.submit(ask, job) for job in window[1:]]
        for future in rest:
            future.result()

    try:
        for future in [openings.submit(opened, window) for window in windows]:
            future.result()
    finally:
        openings.shutdown(wait=False, cancel_futures=True)
        calls.shutdown(wait=False, cancel_futures=True)


async def run_jobs_async(windows: Sequence[Sequence[Job]], ask: Callable[[Job], Awaitable[None]], workers: int) -> None:
    """
    Ask concurrently, in the same order.

    :param windows: The jobs, window by window.
    :param ask: Asks about one leaf; it does not raise.
    :param workers: How many questions there are at once.
    """
    calls, openings = asyncio.Semaphore(workers), asyncio.Semaphore(workers)

    async def one(job: Job) -> None:
        async with calls:
            await ask(job)

    async def opened(window: Sequence[Job]) -> None:
        async with openings:
            await one(window[0])
            await asyncio.gather(*map(one, window[1:]))

    async with asyncio.TaskGroup() as group:
        for window in windows:
            group.create_task(opened(window))


def _prompt(template: str, leaf: Document, name: str, section: str, number: int) -> str:
    titles = [" ".join(str(title).split()) for title in leaf.meta.get("headings") or ()]
    values = {
        "document": name,
        "section": section,
        "number": str(number),
        "headings": f" (under: {' > '.join(titles)})" if titles else "",
        "passage": (leaf.content or "").strip("\r\n"),
    }
    return well_formed(fill(template, values))


def _name(leaf: Document) -> str:
    """The document's title, else its file's name, else its topmost heading. No path: it tells of the machine."""
    title = leaf.meta.get("title")
    if isinstance(title, str) and title.strip():
        return " ".join(title.split())
    path = leaf.meta.get("file_path")
    if path:
        return PurePosixPath(str(path).replace("\\", "/")).name
    headings = leaf.meta.get("headings") or ["untitled"]
    return " ".join(str(headings[0]).split())
