# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""How well the sections of a document are found once its headings are hidden."""

import re
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from haystack import Document

from hichunk_haystack.evaluation.cut_points import (
    CutScores,
    WindowErrors,
    compressed,
    cuts_on_units,
    from_counts,
    score_levels,
    window_errors,
)
from hichunk_haystack.evaluation.datasets import load_dataset
from hichunk_haystack.evaluation.dense import hide_headings
from hichunk_haystack.sections import CutPoint
from hichunk_haystack.segmentation import whole_blocks
from hichunk_haystack.text_units import Unit, find_units
from hichunk_haystack.tree import ANCESTORS, BLOCK_SIZE, LEVEL, PARENT, is_leaf

# So many characters of a piece are enough to find it by.
_LOOKED_FOR = 200

Splitter = Callable[[str, list[Unit]], Iterable[CutPoint]]
"""Finds cut points in a text that has these units."""


@dataclass(frozen=True)
class Case:
    """
    A text and where its sections start.

    :param text: The text.
    :param units: Its units: sentences, listings, tables.
    :param right: The cuts, with levels compressed.
    """

    text: str
    units: list[Unit]
    right: dict[int, int]


@dataclass(frozen=True)
class StructureScores:
    """
    How well the sections of one document were found.

    :param levels: Scores by `L1`, `L2` (and so on) and `Lall`; `None` where there is no cut on either side.
    :param windows: Pk and WindowDiff; `None` if they were not asked for.
    """

    levels: dict[str, CutScores | None]
    windows: WindowErrors | None = None


@dataclass
class StructureMeans:
    """
    The same for many documents.

    :param f1: F1 by name, mean of the documents that have cuts of that level.
    :param pk: Mean over the documents.
    :param window_diff: Mean over the documents.
    :param over_all: Scores by name over the cuts of all documents together: long documents count more.
    :param documents: How many documents count.
    :param seconds: What the splitter took.
    """

    f1: dict[str, float | None]
    pk: float | None
    window_diff: float | None
    over_all: dict[str, CutScores]
    documents: int
    seconds: float = field(default=0.0, compare=False)


def make_case(text: str, cut_points: Iterable[CutPoint], language: str = "en") -> Case:
    """
    Put right cut points on the units of their text. Listings and tables are one unit each, and no place for a cut.

    :param text: The text, with whatever is to be hidden hidden.
    :param cut_points: Where its sections start.
    :param language: ISO 639-1 code, for the sentences.
    :returns: The case; its `right` may be empty.
    """
    units = whole_blocks(find_units(text, language))
    return Case(text, units, compressed(cuts_on_units(text, units, cut_points)))


def hidden_case(markdown: str, *, removed: bool = False, language: str = "en") -> Case:
    """
    Hide the headings of a text.

    :param markdown: The text.
    :param removed: Whether the lines of headings go altogether; by default only their marks do.
    :param language: ISO 639-1 code, for the sentences.
    :returns: The case.
    """
    hidden = hide_headings(markdown, keep_lines=not removed)
    return make_case(hidden.text, hidden.cut_points, language)


def hidden_sources(
    sources: Sequence[Document], *, removed: bool = False
) -> tuple[list[Document], list[list[list[int]]]]:
    """
    Hide the headings of documents, to see what a splitter makes of them.

    :param sources: Markdown documents; they are not changed.
    :param removed: Whether the lines of headings go altogether; by default only their marks do.
    :returns: Documents with the same ids and meta, and for each where its sections start: offset in characters and
        level. Both go to `ChunkPointEvaluator`.
    """
    hidden = [hide_headings(source.content or "", keep_lines=not removed) for source in sources]
    documents = [
        # Not `replace`: what was embedded of the old text is not the new one's.
        Document(id=source.id, content=one.text, meta=dict(source.meta))
        for source, one in zip(sources, hidden, strict=True)
    ]
    return documents, [[[cut.offset, cut.level] for cut in one.cut_points] for one in hidden]


def cut_points_of_nodes(nodes: Iterable[Document]) -> list[CutPoint]:
    """
    Tell where a tree, or the chunks of one document, say that sections start.

    A section's start is a cut point of its level in the tree. Leaves and groups into which a section was cut by length
    are none. Where sections have no titles, leaves that fill their parent may be sections or parts cut by length, and
    are taken for parts: split with a `leaf_tokens` above the length of whole documents, and `min_leaf_tokens=1`, to see
    all sections. Chunks that belong to no tree count as sections of level 1.

    :param nodes: All nodes of one tree of ours, in any order, or all chunks of one document, with `split_idx_start`.
    :returns: The cut points, in order.
    :raises ValueError: If a node does not tell where in its source it starts.
    """
    nodes = list(nodes)
    parents = {node.id: node for node in nodes}
    with_sections = {node.meta.get(PARENT) for node in nodes if _is_inner_section(node)}
    found: dict[int, int] = {}
    for node in nodes:
        start, level = node.meta.get("split_idx_start"), node.meta.get(LEVEL)
        if level == 0 or (level is None and start is None and "source_id" not in node.meta):
            continue  # the whole source
        if not isinstance(start, int) or (level is not None and ANCESTORS not in node.meta):
            msg = (
                f"Node '{node.id}' does not tell where in its source it starts: it has no 'split_idx_start', or one "
                "that counts from its parent's start, as in trees of Haystack's HierarchicalDocumentSplitter."
            )
            raise ValueError(msg)
        if level is None or _is_section(node, parents.get(node.meta[PARENT]), with_sections):
            found[start] = min(level or 1, found.get(start, level or 1))
    return [CutPoint(start, level) for start, level in sorted(found.items())]


def cut_points_of_pieces(text: str, pieces: Iterable[str]) -> list[CutPoint]:
    """
    Find where pieces of a text start, for splitters that don't tell.

    :param text: The text.
    :param pieces: Pieces in order; they may overlap a little, and white space at their ends may be missing.
    :returns: A cut point of level 1 at the start of each.
    """
    cut_points = []
    position = 0
    for piece in pieces:
        start = text.find(piece[:_LOOKED_FOR], position)
        start = start if start >= 0 else position
        cut_points.append(CutPoint(start, 1))
        position = start + max(1, len(piece) - _LOOKED_FOR)
    return cut_points


def score_case(
    case: Case, cut_points: Iterable[CutPoint], levels: Sequence[int] = (1, 2), *, windows: bool = True
) -> StructureScores:
    """
    Score the cut points that were found in a text. Their levels are compressed as the right ones are.

    :param case: The text and its right cuts.
    :param cut_points: What was found.
    :param levels: Which levels to score.
    :param windows: Whether to measure Pk and WindowDiff, which need the extra `evaluation`.
    :returns: The scores.
    :raises ImportError: If NLTK is not installed and `windows` is set.
    """
    found = compressed(cuts_on_units(case.text, case.units, cut_points))
    errors = window_errors(found, case.right, len(case.units)) if windows else None
    return StructureScores(score_levels(found, case.right, levels), errors)


def average(scores: Sequence[StructureScores]) -> StructureMeans:
    """
    Put the scores of documents together.

    :param scores: Scores of the documents that have right cuts.
    :returns: Means, and scores over all cuts.
    """
    names = list(dict.fromkeys(name for one in scores for name in one.levels))
    f1: dict[str, float | None] = {}
    over_all = {}
    for name in names:
        known = [one for one in (each.levels[name] for each in scores) if one is not None]
        f1[name] = statistics.fmean(one.f1 for one in known) if known else None
        over_all[name] = from_counts(
            sum(one.found for one in known), sum(one.right for one in known), sum(one.both for one in known)
        )
    errors = [one.windows for one in scores if one.windows is not None]
    pk = statistics.fmean(one.pk for one in errors) if errors else None
    window_diff = statistics.fmean(one.window_diff for one in errors) if errors else None
    return StructureMeans(f1, pk, window_diff, over_all, len(scores))


def measure(
    cases: Sequence[Case], split: Splitter, levels: Sequence[int] = (1, 2), *, windows: bool = True
) -> StructureMeans:
    """
    Run a splitter over texts and score what it finds. Texts without right cuts are left out.

    :param cases: The texts.
    :param split: The splitter.
    :param levels: Which levels to score.
    :param windows: Whether to measure Pk and WindowDiff, which need the extra `evaluation`.
    :returns: Means, and scores over all cuts.
    """
    scores = []
    seconds = 0.0
    for case in cases:
        if case.right:
            start = time.perf_counter()
            cut_points = list(split(case.text, case.units))
            seconds += time.perf_counter() - start
            scores.append(score_case(case, cut_points, levels, windows=windows))
    means = average(scores)
    means.seconds = seconds
    return means


def structure_texts(
    folder: str | Path, *, least_words: int = 0, lines_are_paragraphs: bool = False, documents: int | None = None
) -> list[str]:
    """
    Load the documents of a data set whose headings are to be found.

    :param folder: The data set.
    :param least_words: Shorter documents are left out.
    :param lines_are_paragraphs: Whether each line is a paragraph. Blank lines then stand around headings only, and
        would give them away: one is put between any two lines.
    :param documents: About this many of them, evenly over the set.
    :returns: The texts.
    :raises FileNotFoundError: If there are no documents.
    """
    texts = [text for text in load_dataset(folder).documents.values() if len(text.split()) >= least_words]
    if lines_are_paragraphs:
        texts = [re.sub(r"\n+", "\n\n", text) for text in texts]
    return texts[:: max(1, len(texts) // documents)] if documents else texts


def as_row(means: StructureMeans) -> dict[str, Any]:
    """
    Give means as plain values, for tables and JSON.

    :param means: The means.
    :returns: Value by name.
    """
    whole: Mapping[str, CutScores] = means.over_all
    found = whole.get("Lall", from_counts(0, 0, 0))
    return {
        **means.f1,
        "Pk": means.pk,
        "WindowDiff": means.window_diff,
        "precision": found.precision,
        "recall": found.recall,
        "Lall over all cuts": found.f1,
        "documents": means.documents,
        "seconds": means.seconds,
    }


def _is_inner_section(node: Document) -> bool:
    return bool(node.meta.get(LEVEL)) and node.meta.get(BLOCK_SIZE) == 0


def _is_section(node: Document, parent: Document | None, with_sections: set[Any]) -> bool:
    """Whether a node below the root is a section, or part of one that was cut by length."""
    if _is_inner_section(node):
        return True
    if not is_leaf(node) or parent is None or parent.meta.get(BLOCK_SIZE) != 0:
        return False  # a group of leaves, or a leaf of one
    return (
        parent.id in with_sections
        or node.meta.get("headings") != parent.meta.get("headings")
        # What would have fitted a leaf was not cut by length.
        or parent.meta["token_count"] <= node.meta[BLOCK_SIZE]
    )
