# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Cut points, the one tree builder, and the tree contract to and from Haystack documents."""

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from haystack.token_counters.types import TokenCounter

from hichunk_haystack.atoms import Atoms, make_atoms, pack
from hichunk_haystack.nodes import (
    ANCESTORS,
    BLOCK_SIZE,
    CHILDREN,
    LEAF_RANGE,
    LEVEL,
    PARENT,
    TREE_ID,
    Node,
    append_node,
    from_documents,
    is_leaf,
    leaf_id,
    to_documents,
)
from hichunk_haystack.sections import CutPoint, Section, join_small, nest
from hichunk_haystack.tokens import count_texts, counter_key, is_additive
from hichunk_haystack.units import Strength, paragraph_boundaries

__all__ = [
    "ANCESTORS", "BLOCK_SIZE", "CHILDREN", "LEAF_RANGE", "LEVEL", "PARENT", "TREE_ID",
    "CutPoint", "Node", "TreeBuilder", "from_documents", "is_leaf", "leaf_id", "to_documents",
]  # fmt: skip

_MOST_LEVELS = 100


class TreeBuilder:
    """
    Builds a tree from the cut points of any splitter.

    Cut points become nested sections. Sections that are too small join a neighbour, long ones are cut into leaves
    (200 tokens each, the HC200 of arXiv 2509.11552), and long runs of leaves are grouped under inner nodes, so that a
    merge has something between a leaf and a whole section to climb to. Inner nodes with a single child do not come up.

    ```python
    from hichunk_haystack.tokens import HuggingFaceTokenCounter
    from hichunk_haystack.tree import CutPoint, TreeBuilder

    text = "# Kiln\\n\\nFire it slowly, then let it cool.\\n\\n# Wheel\\n\\nCentre the clay first.\\n"
    builder = TreeBuilder(HuggingFaceTokenCounter(), min_leaf_tokens=1)
    for node in builder.build(text, [CutPoint(0, 1, "Kiln"), CutPoint(43, 1, "Wheel")]):
        print("  " * node.level, node.tokens, node.headings)
    ```
    """

    def __init__(
        self,
        counter: TokenCounter,
        *,
        leaf_tokens: int = 200,
        min_leaf_tokens: int = 20,
        max_level: int = 10,
        inner_tokens: Sequence[int] | None = None,
        language: str = "en",
    ) -> None:
        """
        Set the bounds.

        :param counter: Token counter.
        :param leaf_tokens: The most tokens of a leaf.
        :param min_leaf_tokens: Sections of fewer tokens join their neighbour inside the same parent.
        :param max_level: Cut points of deeper levels are ignored.
        :param inner_tokens: Bounds in tokens of the inner nodes that group the leaves of a long section. By default 4
            and 16 times `leaf_tokens`; an empty list hangs all leaves directly under their section.
        :param language: ISO 639-1 code, for finding sentences.
        :raises ValueError: If a bound makes no sense; the message names it.
        """
        if leaf_tokens < 1:
            msg = f"leaf_tokens is {leaf_tokens}; a leaf needs at least 1 token (200 is usual)."
            raise ValueError(msg)
        if not 0 <= min_leaf_tokens <= leaf_tokens:
            msg = f"min_leaf_tokens is {min_leaf_tokens}; it must lie between 0 and leaf_tokens ({leaf_tokens})."
            raise ValueError(msg)
        if not 1 <= max_level <= _MOST_LEVELS:
            msg = f"max_level is {max_level}; it must lie between 1 and {_MOST_LEVELS}."
            raise ValueError(msg)
        sizes = sorted({4 * leaf_tokens, 16 * leaf_tokens} if inner_tokens is None else set(inner_tokens))
        if sizes and sizes[0] <= leaf_tokens:
            msg = f"inner_tokens holds {sizes[0]}; each must be more than leaf_tokens ({leaf_tokens})."
            raise ValueError(msg)
        self.counter = counter
        self.leaf_tokens = leaf_tokens
        self.min_leaf_tokens = min_leaf_tokens
        self.max_level = max_level
        self.inner_tokens = sizes
        self.language = language

    @property
    def key(self) -> str:
        """A text that is equal for builders that build equal trees."""
        settings = (self.leaf_tokens, self.min_leaf_tokens, self.max_level, self.inner_tokens, self.language)
        return json.dumps([*settings, counter_key(self.counter)])

    def build(
        self, text: str, cut_points: Iterable[CutPoint], boundaries: Mapping[int, Strength] | None = None
    ) -> list[Node]:
        """
        Build the tree of one source.

        :param text: The source.
        :param cut_points: Where sections start, in any order; of several at one place the highest level counts.
        :param boundaries: Offset in characters -> how good a cut there is, from a parser of the source's format. By
            default paragraphs of plain text.
        :returns: The nodes, the root first; empty when the text is empty or white space only.
        :raises ValueError: If a cut point lies behind the end of the text.
        """
        return self.build_many([(text, cut_points, boundaries)])[0]

    def build_many(
        self, sources: Iterable[tuple[str, Iterable[CutPoint], Mapping[int, Strength] | None]]
    ) -> list[list[Node]]:
        """
        Build the trees of several sources; their pieces are counted together, which is faster.

        :param sources: What `build` takes, for each source.
        :returns: What `build` gives, for each source.
        :raises ValueError: If a cut point lies behind the end of its text.
        """
        texts: list[str] = []
        cuts: list[dict[int, tuple[int, str | None]]] = []
        places: list[dict[int, Strength]] = []
        for text, cut_points, boundaries in sources:
            texts.append(text)
            cuts.append(self._usable(text, cut_points))
            found = dict(paragraph_boundaries(text) if boundaries is None else boundaries)
            found.update(dict.fromkeys(cuts[-1], Strength.BLOCK))
            places.append(found)
        with_text = [number for number, text in enumerate(texts) if text and not text.isspace()]
        atoms = make_atoms(
            [(texts[number], places[number]) for number in with_text], self.leaf_tokens, self.counter, self.language
        )
        trees: list[list[Node]] = [[] for _ in texts]
        for number, found_atoms in zip(with_text, atoms, strict=True):
            trees[number] = self._assemble(texts[number], cuts[number], found_atoms)
        return trees

    def _assemble(self, text: str, cuts: dict[int, tuple[int, str | None]], atoms: Atoms) -> list[Node]:
        """Sections, leaves and groups over the pieces of a text."""
        # Each cut is the start of a piece.
        found = [(bisect_left(atoms.starts, offset), *cut) for offset, cut in sorted(cuts.items())]
        root = nest(found, len(atoms.strengths))
        # A section without any token is joined even where no minimum is set: it would be an empty leaf.
        join_small(root, atoms.tokens, max(1, self.min_leaf_tokens))
        nodes: list[Node] = []
        exact = is_additive(self.counter) and atoms.at_seams
        self._add(nodes, root, None, [], _Measure(text, atoms, self.counter, exact))
        if not exact:
            counts = count_texts(self.counter, [text[node.start : node.end] for node in nodes])
            for node, count in zip(nodes, counts, strict=True):
                node.tokens = count
        return nodes

    def _usable(self, text: str, cut_points: Iterable[CutPoint]) -> dict[int, tuple[int, str | None]]:
        """Offset -> (level, title) of the cut points that count, on the line where their section's text begins."""
        first, end = len(text) - len(text.lstrip()), len(text.rstrip())
        cuts: dict[int, tuple[int, str | None]] = {}
        for cut in cut_points:
            if cut.offset > len(text):
                msg = f"A cut point lies at {cut.offset}, behind the end of the source ({len(text)} characters)."
                raise ValueError(msg)
            if cut.level > self.max_level or cut.offset >= end:
                continue
            offset = 0 if cut.offset <= first else _after_blank_lines(text, cut.offset)
            if offset not in cuts or cut.level < cuts[offset][0]:
                cuts[offset] = (cut.level, cut.title)
        return cuts

    def _add(
        self, nodes: list[Node], section: Section, parent: int | None, headings: list[str], measure: "_Measure"
    ) -> None:
        """Add a section with all that is below it."""
        path = [*headings, *section.titles]
        if section.children:
            number = append_node(nodes, parent, measure.span(section.start, section.end), 0, path)
            for child in section.children:
                self._add(nodes, child, number, path, measure)
            return
        ends = measure.leaf_ends(section.start, section.end, self.leaf_tokens, self.min_leaf_tokens)
        if len(ends) == 1:
            append_node(nodes, parent, measure.span(section.start, section.end), self.leaf_tokens, path)
            return
        number = append_node(nodes, parent, measure.span(section.start, section.end), 0, path)
        self._add_groups(nodes, number, [section.start, *ends], list(reversed(self.inner_tokens)), path, measure)

    def _add_groups(
        self, nodes: list[Node], parent: int, edges: list[int], sizes: list[int], path: list[str], measure: "_Measure"
    ) -> None:
        """Add leaves under a node, in groups where they are many: the largest groups first."""
        weights = [measure.atoms.weights[edge] for edge in edges]
        while sizes and weights[-1] - weights[0] <= sizes[0]:
            sizes = sizes[1:]
        if not sizes:
            for start, end in pairwise(edges):
                append_node(nodes, parent, measure.span(start, end), self.leaf_tokens, path)
            return
        strengths = [measure.atoms.strengths[edge] for edge in edges[:-1]]
        begin = 0
        for end in pack(weights, strengths, 0, len(strengths), sizes[0], self.leaf_tokens):
            group = edges[begin : end + 1]
            if len(group) == 2:  # noqa: PLR2004 - one leaf needs no group around it
                append_node(nodes, parent, measure.span(group[0], group[1]), self.leaf_tokens, path)
            else:
                number = append_node(nodes, parent, measure.span(group[0], group[-1]), sizes[0], path)
                self._add_groups(nodes, number, group, sizes[1:], path, measure)
            begin = end


@dataclass
class _Measure:
    """Spans and lengths of runs of pieces."""

    text: str
    atoms: Atoms
    counter: TokenCounter
    exact: bool

    def span(self, low: int, high: int) -> tuple[int, int, int]:
        """Offsets and length in tokens; the length is an estimate where counts do not add up."""
        tokens = self.atoms.tokens
        return self.atoms.starts[low], self.atoms.starts[high], tokens[high] - tokens[low]

    def leaf_ends(self, low: int, high: int, limit: int, minimum: int) -> list[int]:
        """Cut a run into leaves; where counts do not add up, count each leaf and cut again what is above the limit."""
        ends = pack(self.atoms.weights, self.atoms.strengths, low, high, limit, minimum)
        if self.exact:
            return ends
        starts = [low, *ends[:-1]]
        texts = [self.text[self.atoms.starts[a] : self.atoms.starts[b]] for a, b in zip(starts, ends, strict=True)]
        result = []
        for a, b, count in zip(starts, ends, count_texts(self.counter, texts), strict=True):
            if count > limit and b - a > 1:
                # Half the run's weight: each round at least halves the number of pieces in the leaf.
                half = max(1, (self.atoms.weights[b] - self.atoms.weights[a]) // 2)
                parts = pack(self.atoms.weights, self.atoms.strengths, a, b, half, 0)
                parts = parts if len(parts) > 1 else [(a + b) // 2, b]
                for c, d in zip([a, *parts[:-1]], parts, strict=True):
                    result += self.leaf_ends(c, d, limit, 0)
            else:
                result.append(b)
        return result


def _after_blank_lines(text: str, offset: int) -> int:
    """Move a cut over blank lines, so that they end the section before it instead of starting the next."""
    rest = offset
    while text[rest].isspace():
        rest += 1
    newline = max(text.rfind("\n", offset, rest), text.rfind("\r", offset, rest))
    return newline + 1 if newline >= 0 else offset
