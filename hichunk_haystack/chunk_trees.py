# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Trees over chunks that are there already: inner nodes over runs of chunks, the chunks as leaves."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from statistics import median_high

from haystack.token_counters.types import TokenCounter

from hichunk_haystack.atoms import pack
from hichunk_haystack.markdown import parse_markdown
from hichunk_haystack.nodes import Node
from hichunk_haystack.plain_text import plain_headings
from hichunk_haystack.sections import Section, join_small, nest
from hichunk_haystack.tokens import count_texts
from hichunk_haystack.units import Strength

# Inner nodes over long runs hold so many chunks' worth of tokens, as in `TreeBuilder`.
_GROUPS = (16, 4)


def tree_over(text: str, spans: Sequence[tuple[int, int]], counter: TokenCounter, max_level: int = 10) -> list[Node]:
    """
    Build a tree whose leaves are given.

    Sections start at the chunks in which headings stand (Markdown's, else those of plain text): at the next chunk where
    a heading stands in the second half of one. Long sections are grouped by size. A node's titles are those in force
    over all its leaves.

    :param text: The text.
    :param spans: (start, end) of each chunk, in reading order; neighbours may overlap.
    :param counter: Token counter.
    :param max_level: Headings of deeper levels are ignored.
    :returns: The nodes, the root first, each behind its parent; one leaf a chunk, and always a root above it.
    """
    parsed = parse_markdown(text)
    found = [*parsed.headings] or plain_headings(text)
    headings = [heading for heading in found if heading[1] <= max_level]
    starts = [start for start, _ in spans]
    counts = count_texts(counter, [text[start:end] for start, end in spans])
    builder = _Builder(
        spans,
        counts,
        [parsed.boundaries.get(start, Strength.WORD) for start in starts],
        _titles(headings, [(start + end) // 2 for start, end in spans]),
    )
    section = nest(_cuts(headings, spans), len(spans))
    join_small(section, builder.weights, 1)
    builder.add(section, None)
    inner = [node for node in builder.nodes if node.children]
    lengths = count_texts(counter, [text[node.start : node.end] for node in inner])
    for node, length in zip(inner, lengths, strict=True):
        node.tokens = length
    return builder.nodes


def _cuts(
    headings: Sequence[tuple[int, int, str | None]], spans: Sequence[tuple[int, int]]
) -> list[tuple[int, int, str | None]]:
    """The chunks at which sections start; of several at one chunk the highest level counts."""
    starts = [start for start, _ in spans]
    levels: dict[int, int] = {}
    for offset, level, _ in headings:
        number = bisect_right(starts, offset) - 1
        if number < 0:
            continue
        start, end = spans[number]
        number += offset - start > (end - start) // 2
        if number < len(spans):
            levels[number] = min(level, levels.get(number, level))
    return [(number, level, None) for number, level in sorted(levels.items())]


def _titles(headings: Sequence[tuple[int, int, str | None]], places: Sequence[int]) -> list[list[str]]:
    """The titles in force at each of these offsets, from the top down."""
    result = []
    open_titles: list[tuple[int, str | None]] = []
    number = 0
    for place in places:
        while number < len(headings) and headings[number][0] <= place:
            _, level, title = headings[number]
            open_titles = [*(each for each in open_titles if each[0] < level), (level, title)]
            number += 1
        result.append([title for _, title in open_titles if title])
    return result


class _Builder:
    """Collects the nodes of one tree."""

    def __init__(
        self,
        spans: Sequence[tuple[int, int]],
        counts: Sequence[int],
        strengths: Sequence[Strength],
        titles: Sequence[list[str]],
    ) -> None:
        self.spans = spans
        self.counts = counts
        self.strengths = strengths
        self.titles = titles
        self.weights = list(accumulate(counts, initial=0))
        size = max(1, median_high(counts))
        self.sizes = [size * group for group in _GROUPS]
        self.nodes: list[Node] = []

    def add(self, section: Section, parent: int | None) -> None:
        """Add a section with all that is below it."""
        if section.end - section.start == 1 and parent is not None:
            self._append(section.start, section.end, parent, 0, leaf=True)
            return
        number = self._append(section.start, section.end, parent, 0)
        for child in section.children:
            self.add(child, number)
        if not section.children:
            self._add_groups(number, section.start, section.end, self.sizes)

    def _add_groups(self, parent: int, low: int, high: int, sizes: Sequence[int]) -> None:
        """Add chunks under a node, in groups where they are many: the largest groups first."""
        while sizes and self.weights[high] - self.weights[low] <= sizes[0]:
            sizes = sizes[1:]
        if not sizes:
            for chunk in range(low, high):
                self._append(chunk, chunk + 1, parent, self.counts[chunk], leaf=True)
            return
        begin = low
        for end in pack(self.weights, self.strengths, low, high, sizes[0], 0):
            if end - begin == 1:
                self._append(begin, end, parent, self.counts[begin], leaf=True)
            else:
                self._add_groups(self._append(begin, end, parent, sizes[0]), begin, end, sizes[1:])
            begin = end

    def _append(self, low: int, high: int, parent: int | None, block_size: int, *, leaf: bool = False) -> int:
        level = 0 if parent is None else self.nodes[parent].level + 1
        # Of chunks that overlap more than their neighbour, the last one need not reach furthest.
        start, end = self.spans[low][0], max(end for _, end in self.spans[low:high])
        tokens = self.counts[low] if leaf else 0
        bound = self.counts[low] if leaf else block_size
        self.nodes.append(Node(start, end, level, parent, tokens, bound, _common(self.titles[low:high])))
        number = len(self.nodes) - 1
        if parent is not None:
            self.nodes[parent].children.append(number)
        return number


def _common(titles: Sequence[list[str]]) -> list[str]:
    """What all begin with."""
    common = list(titles[0])
    for each in titles[1:]:
        length = next((n for n, pair in enumerate(zip(common, each, strict=False)) if pair[0] != pair[1]), None)
        common = common[: min(len(each), len(common)) if length is None else length]
    return common
