# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Flat chunks, as Haystack's `DocumentSplitter` writes them, laid out along the text that they came from."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from haystack import Document

from hichunk_haystack.nodes import CHILDREN, PARENT, TREE_ID

FLAT_SOURCE = "__flat_source"
"""Meta key of all nodes of a migrated tree: the `source_id` that its chunks had."""

# Splitters that strip their chunks leave out white space and separators; more than this is a chunk that is missing.
_MOST_BETWEEN = 50


def flat_source(document: Document) -> str | None:
    """
    Name the source of a flat chunk, or of a leaf that was one before it was migrated.

    :param document: Any document.
    :returns: The `source_id` that its splitter gave it; `None` for everything else.
    """
    meta = document.meta
    if meta.get(CHILDREN):
        return None
    if TREE_ID in meta or PARENT in meta:
        source = meta.get(FLAT_SOURCE) if meta.get(PARENT) is not None else None
    else:
        source = meta.get("source_id") if _number(meta, "split_id") is not None or _start(meta) is not None else None
    return source if isinstance(source, str) and source else None


@dataclass
class Run:
    """
    Chunks that stood behind one another in their source, without a gap.

    :param start: Offset of the first one in the source, in characters.
    :param text: Their text, what overlaps once.
    :param chunks: The chunks in reading order.
    :param spans: (start, end) of each chunk in `text`.
    """

    start: int
    text: str = ""
    chunks: list[Document] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)

    def add(self, chunk: Document, start: int) -> None:
        """
        Add a chunk.

        :param chunk: The next one in reading order.
        :param start: Where it starts in `text`, not in front of the one before.
        """
        content = chunk.content or ""
        self.text += content[len(self.text) - start :] if start < len(self.text) else content
        self.chunks.append(chunk)
        self.spans.append((start, start + len(content)))


class UnusableChunksError(ValueError):
    """Chunks that can't be laid out; the message says why."""


def lay_out(chunks: Sequence[Document]) -> list[Run]:
    """
    Lay the chunks of one source out, in runs without a gap.

    Places come from `split_idx_start`, as far as the texts agree with it; else from `split_id` and the overlaps that
    the splitter noted. Where a chunk is missing a new run begins. Where a splitter has left out white space between two
    chunks, line breaks or a space stand in its place.

    :param chunks: All chunks of a source, in any order.
    :returns: The runs in reading order.
    :raises UnusableChunksError: If chunks have no text, or are of two ways to split the source.
    """
    ordered = _in_order(chunks)
    runs: list[Run] = []
    for chunk in ordered:
        if runs:
            place = _place(runs[-1], chunk)
            if place is not None:
                if place > len(runs[-1].text):
                    runs[-1].text += _filler(place - len(runs[-1].text))
                runs[-1].add(chunk, place)
                continue
        start = _start(chunk.meta)
        behind = runs[-1].start + len(runs[-1].text) if runs else 0
        # In a source without offsets a later run lies somewhere behind.
        runs.append(Run(max(behind, start) if start is not None else behind))
        runs[-1].add(chunk, 0)
    return runs


def _in_order(chunks: Sequence[Document]) -> list[Document]:
    empty = sum(not chunk.content for chunk in chunks)
    if empty:
        msg = f"{empty} of its {len(chunks)} chunks have no text"
        raise UnusableChunksError(msg)
    numbers = [_number(chunk.meta, "split_id") for chunk in chunks]
    if None not in numbers:
        if len(set(numbers)) < len(numbers):
            msg = "several of its chunks have the same split_id: it is there in two versions"
            raise UnusableChunksError(msg)
        return [chunk for _, chunk in sorted(zip(numbers, chunks, strict=True), key=lambda pair: pair[0] or 0)]
    starts = [_start(chunk.meta) for chunk in chunks]
    if None in starts or len(set(starts)) < len(starts):
        msg = "some of its chunks have neither split_id nor a split_idx_start of their own"
        raise UnusableChunksError(msg)
    return sorted(chunks, key=lambda chunk: chunk.meta["split_idx_start"])


def _place(run: Run, chunk: Document) -> int | None:
    """Where the next chunk starts in the text of a run; `None` where it does not follow on it."""
    before = run.chunks[-1]
    numbers = (_number(before.meta, "split_id"), _number(chunk.meta, "split_id"))
    follows = None in numbers or numbers[1] == (numbers[0] or 0) + 1
    start, start_before = _start(chunk.meta), _start(before.meta)
    if start is not None and start_before is not None:
        place = run.spans[-1][0] + start - start_before
        between = place - len(run.text)
        if place >= run.spans[-1][0] and _agree(run.text, place, chunk.content or ""):
            if between <= 0:
                return place
            return place if follows and between <= _MOST_BETWEEN else None
    # No offsets, or some that the texts do not agree with, such as those of a text that was cleaned afterwards.
    return len(run.text) - _noted_overlap(before, chunk) if follows else None


def _agree(text: str, place: int, content: str) -> bool:
    """Whether a chunk says the same as the text of a run where both have a text."""
    shared = text[place : place + len(content)]
    return content.startswith(shared)


def _noted_overlap(before: Document, chunk: Document) -> int:
    """How many characters a chunk repeats of the one before, as the splitter noted and the texts bear out."""
    text, content = before.content or "", chunk.content or ""
    for note in _notes(chunk.meta):
        if note.get("doc_id") != before.id:
            continue
        span = note.get("range")
        if isinstance(span, list | tuple) and len(span) == 2 and all(isinstance(edge, int) for edge in span):  # noqa: PLR2004
            shared = text[span[0] :]
            if shared and span[1] >= len(text) and content.startswith(shared):
                return len(shared)
    return 0


def _notes(meta: dict[str, Any]) -> list[dict[str, Any]]:
    notes = meta.get("_split_overlap")
    return [note for note in notes if isinstance(note, dict)] if isinstance(notes, list) else []


def _filler(length: int) -> str:
    """White space where a splitter has left some out: what it was is not known."""
    return " " if length == 1 else "\n\n" + " " * (length - 2)


def _number(meta: dict[str, Any], name: str) -> int | None:
    value = meta.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _start(meta: dict[str, Any]) -> int | None:
    value = _number(meta, "split_idx_start")
    return value if value is not None and value >= 0 else None
