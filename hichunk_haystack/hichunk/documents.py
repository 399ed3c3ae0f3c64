# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Many documents at once: each with its own windows, its own report, its own failure."""

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any

from haystack import Document
from haystack.components.generators.chat.types import ChatGenerator
from tqdm import tqdm

from hichunk_haystack.hichunk.asking import Asking, answered, answered_async
from hichunk_haystack.hichunk.lines import Lines, make_lines
from hichunk_haystack.hichunk.windows import AnswerCache, Cut, Plan, Report, predict_cuts
from hichunk_haystack.tree import CutPoint
from hichunk_haystack.units import Strength

_CHARACTERS_PER_TOKEN = 5


@dataclass(frozen=True)
class Chunking:
    """
    How to have a model find the cut points of documents.

    :param generator: The model, warmed up.
    :param plan: How documents are put to it.
    :param cache: Known answers.
    :param line_settings: Keyword arguments of `make_lines`.
    :param max_workers: How many documents are worked on at once.
    :param progress_bar: Whether to show progress.
    """

    generator: ChatGenerator
    plan: Plan
    cache: AnswerCache | None
    line_settings: Mapping[str, Any]
    max_workers: int
    progress_bar: bool


@dataclass
class Outcome:
    """
    What came out for one source.

    :param prediction: Its cut points and places to cut; `None` where it failed.
    :param report: What happened.
    """

    source: Document
    prediction: tuple[list[CutPoint], Mapping[int, Strength]] | None = None
    report: Report = field(default_factory=Report)

    def failed(self, error: Exception) -> None:
        """Note that nothing came out."""
        if self.report.error is None:
            self.report.error = f"{type(error).__name__}: {error}"

    def told(self) -> dict[str, Any]:
        """Give the report as a plain dictionary, with the source's id and file."""
        path = self.source.meta.get("file_path")
        told = asdict(self.report) | {"dropped": dict(self.report.dropped)}
        return {"source_id": self.source.id, "file_path": None if path is None else str(path), **told}


class _Stopped(BaseException):
    """The run was broken off: workers leave at their next question."""


class _Progress:
    """A bar over windows. How many there will be is a guess, put right document by document."""

    def __init__(self, sources: Sequence[Document], chunking: Chunking) -> None:
        self.lock = threading.Lock()
        self.stopped = False
        self.room = _CHARACTERS_PER_TOKEN * chunking.plan.room
        self.total = sum(map(self.guess, sources))
        self.bar = tqdm(
            total=self.total,
            disable=not chunking.progress_bar,
            desc="Asking for cut points",
            unit="window",
        )

    def guess(self, source: Document) -> int:
        return 1 + len(source.content or "") // self.room

    def seen(self, outcome: Outcome, shown: int) -> int:
        """Show the windows that have come since; how many are shown now."""
        if self.stopped:
            raise _Stopped
        windows = outcome.report.windows
        with self.lock:
            self.bar.update(windows - shown)
        return windows

    def done(self, outcome: Outcome) -> None:
        with self.lock:
            self.total += outcome.report.windows - self.guess(outcome.source)
            self.bar.total = self.total
            self.bar.refresh()


class _Steps:
    """Tells the bar of one document's windows."""

    def __init__(self, progress: _Progress, outcome: Outcome) -> None:
        self.progress = progress
        self.outcome = outcome
        self.shown = 0

    def __call__(self) -> None:
        self.shown = self.progress.seen(self.outcome, self.shown)


def chunk(documents: Sequence[Document], chunking: Chunking) -> list[Outcome]:
    """
    Find the cut points of documents, several at a time in threads.

    :param documents: Sources; those without text, and one that comes twice, are passed over.
    :param chunking: How to ask.
    :returns: What came out for each source, in order.
    """
    sources = list(_usable(documents))
    progress = _Progress(sources, chunking)

    def one(source: Document) -> Outcome:
        outcome = Outcome(source)
        try:
            lines = make_lines(source.content or "", **chunking.line_settings)
            work: Asking[dict[int, Cut]] = predict_cuts(lines, chunking.plan, outcome.report, chunking.cache)
            cuts = answered(work, chunking.generator, _Steps(progress, outcome))
            outcome.prediction = _prediction(lines, cuts)
        except Exception as error:
            # One document's failure must leave the others.
            outcome.failed(error)
        progress.done(outcome)
        return outcome

    with progress.bar, ThreadPoolExecutor(max_workers=chunking.max_workers) as pool:
        futures = [pool.submit(one, source) for source in sources]
        try:
            return [future.result() for future in futures]
        except BaseException:
            progress.stopped = True
            pool.shutdown(wait=False, cancel_futures=True)
            raise


async def chunk_async(documents: Sequence[Document], chunking: Chunking) -> list[Outcome]:
    """
    Find the cut points of documents concurrently.

    :param documents: Sources; those without text, and one that comes twice, are passed over.
    :param chunking: How to ask.
    :returns: What came out for each source, in order.
    """
    sources = list(_usable(documents))
    progress = _Progress(sources, chunking)
    places = asyncio.Semaphore(chunking.max_workers)

    async def one(source: Document) -> Outcome:
        outcome = Outcome(source)
        async with places:
            try:
                lines = await asyncio.to_thread(make_lines, source.content or "", **chunking.line_settings)
                work: Asking[dict[int, Cut]] = predict_cuts(lines, chunking.plan, outcome.report, chunking.cache)
                cuts = await answered_async(work, chunking.generator, _Steps(progress, outcome))
                outcome.prediction = _prediction(lines, cuts)
            except Exception as error:
                # One document's failure must leave the others.
                outcome.failed(error)
        progress.done(outcome)
        return outcome

    with progress.bar:
        return list(await asyncio.gather(*map(one, sources)))


def _usable(documents: Sequence[Document]) -> Iterator[Document]:
    """What `split_documents` will split; it tells of the others."""
    seen: set[str] = set()
    for document in documents:
        if document.id not in seen and (document.content or "").strip():
            seen.add(document.id)
            yield document


def _prediction(lines: Lines, cuts: Mapping[int, Cut]) -> tuple[list[CutPoint], Mapping[int, Strength]]:
    points = []
    for line, (level, is_title) in cuts.items():
        titled = is_title or line in lines.headings
        points.append(CutPoint(lines.starts[line], level, lines.title(line) if titled else None))
    return points, lines.boundaries
