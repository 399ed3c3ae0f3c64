# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Cut points, the one tree builder, and the tree contract to and from Haystack documents."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from haystack import Document
from haystack.token_counters.types import TokenCounter

from hichunk_haystack.atoms import Atoms, make_atoms, pack
from hichunk_haystack.sections import CutPoint, Section, join_small, nest
from hichunk_haystack.tokens import count_texts, counter_key, is_additive
from hichunk_haystack.units import Strength, paragraph_boundaries

__all__ = [
    "ANCESTORS", "BLOCK_SIZE", "CHILDREN", "LEVEL", "PARENT", "TREE_ID",
    "CutPoint", "Node", "TreeBuilder", "from_documents", "is_leaf", "to_documents",
]  # fmt: skip

# The first four are Haystack's own names, so that its AutoMergingRetriever reads our trees.
LEVEL = "__level"
PARENT = "__parent_id"
CHILDREN = "__children_ids"
BLOCK_SIZE = "__block_size"
TREE_ID = "__tree_id"
ANCESTORS = "__ancestors"

_MOST_LEVELS = 100


@dataclass
class Node:
    """
    A node of a tree; a tree is a list of nodes, each behind its parent, children in reading order.

    :param start: Offset of its first character in the source.
    :param end: Offset after its last character.
    :param level: 0 for the root.
    :param parent: Its parent's number in the list, `None` for the root.
    :param tokens: Length in tokens.
    :param block_size: The bound in force, in tokens; 0 where there is none (sections, the root).
    :param headings: Titles from the top down to this node.
    :param children: Its children's numbers in the list.
    """

    start: int
    end: int
    level: int
    parent: int | None
    tokens: int
    block_size: int
    headings: list[str] = field(default_factory=list)
    children: list[int] = field(default_factory=list)


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
        number_at = {start: number for number, start in enumerate(atoms.starts)}
        root = nest([(number_at[offset], *cut) for offset, cut in sorted(cuts.items())], len(atoms.strengths))
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
            number = _append(nodes, parent, measure.span(section.start, section.end), 0, path)
            for child in section.children:
                self._add(nodes, child, number, path, measure)
            return
        ends = measure.leaf_ends(section.start, section.end, self.leaf_tokens, self.min_leaf_tokens)
        if len(ends) == 1:
            _append(nodes, parent, measure.span(section.start, section.end), self.leaf_tokens, path)
            return
        number = _append(nodes, parent, measure.span(section.start, section.end), 0, path)
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
                _append(nodes, parent, measure.span(start, end), self.leaf_tokens, path)
            return
        strengths = [measure.atoms.strengths[edge] for edge in edges[:-1]]
        begin = 0
        for end in pack(weights, strengths, 0, len(strengths), sizes[0], self.leaf_tokens):
            group = edges[begin : end + 1]
            if len(group) == 2:  # noqa: PLR2004 - one leaf needs no group around it
                _append(nodes, parent, measure.span(group[0], group[1]), self.leaf_tokens, path)
            else:
                number = _append(nodes, parent, measure.span(group[0], group[-1]), sizes[0], path)
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


def _append(nodes: list[Node], parent: int | None, span: tuple[int, int, int], block_size: int, path: list[str]) -> int:
    level = 0 if parent is None else nodes[parent].level + 1
    nodes.append(Node(span[0], span[1], level, parent, span[2], block_size, path))
    if parent is not None:
        nodes[parent].children.append(len(nodes) - 1)
    return len(nodes) - 1


def is_leaf(document: Document) -> bool:
    """
    Say whether a document is a leaf: a node of a tree without children, or a document that belongs to no tree.

    :param document: Any document.
    :returns: `False` for inner nodes only.
    """
    return not document.meta.get(CHILDREN)


def to_documents(nodes: Sequence[Node], source: Document, settings: str = "") -> list[Document]:
    """
    Turn a tree into Haystack documents that keep the tree contract.

    The root keeps the source's id. All other ids are hashes of the source's id, its text, the settings and the node's
    place, so that the same source and settings give the same ids, and two equal passages two ids. Each node carries in
    `__ancestors` what a merge has to know of the nodes above it: ids, lengths and numbers of children.

    :param nodes: What `TreeBuilder.build` gave for the source's content.
    :param source: The source; it is not changed. Its meta is copied to every node.
    :param settings: What the tree depends on besides the source: usually `TreeBuilder.key` and the splitter's name.
    :returns: A document for each node, in the order of the nodes.
    """
    text = source.content or ""
    tree_id = _digest(source.id, text, settings)
    ids = [source.id, *(_digest(tree_id, str(node.start), str(node.end), str(node.level)) for node in nodes[1:])]
    nested = any(isinstance(value, list | dict | set) for value in source.meta.values())
    pages = "\f" in text
    first_page = source.meta.get("page_number", 1)
    chains: list[list[dict[str, Any]]] = []
    documents = []
    for number, (node, node_id) in enumerate(zip(nodes, ids, strict=True)):
        if node.parent is None:
            chains.append([])
        else:
            parent = nodes[node.parent]
            link = {
                "id": ids[node.parent], "level": parent.level, "tokens": parent.tokens,
                "children": len(parent.children), "start": parent.start, "end": parent.end,
            }  # fmt: skip
            chains.append([link, *chains[node.parent]])
        meta = {
            **(deepcopy(source.meta) if nested else source.meta),
            LEVEL: node.level,
            PARENT: None if node.parent is None else ids[node.parent],
            CHILDREN: [ids[child] for child in node.children],
            BLOCK_SIZE: node.block_size,
            TREE_ID: tree_id,
            ANCESTORS: [dict(link) for link in chains[number]],
            "source_id": source.id,
            "split_idx_start": node.start,
            "split_idx_end": node.end,
            "token_count": node.tokens,
            "headings": list(node.headings),
        }
        if pages and isinstance(first_page, int):
            meta["page_number"] = first_page + text.count("\f", 0, node.start)
        documents.append(Document(id=node_id, content=text[node.start : node.end], meta=meta))
    return documents


def from_documents(documents: Iterable[Document]) -> list[Node]:
    """
    Read one tree back from its documents, in any order.

    :param documents: All nodes of one tree that keeps the contract.
    :returns: The nodes, each behind its parent, children in reading order.
    :raises ValueError: If there is not exactly one root, or a node names a child that is not there.
    """
    by_id = {document.id: document for document in documents}
    roots = [document for document in by_id.values() if document.meta.get(PARENT) is None]
    if len(roots) != 1:
        msg = f"A tree has one root; these {len(by_id)} documents have {len(roots)}. Pass the nodes of one source."
        raise ValueError(msg)
    nodes: list[Node] = []
    waiting: list[tuple[str, int | None]] = [(roots[0].id, None)]
    while waiting:
        node_id, parent = waiting.pop()
        document = by_id.get(node_id)
        if document is None:
            msg = f"Node '{node_id}' is named as a child but is not among the documents. Pass all nodes of the tree."
            raise ValueError(msg)
        meta = document.meta
        span = (meta["split_idx_start"], meta["split_idx_end"], meta["token_count"])
        number = _append(nodes, parent, span, meta[BLOCK_SIZE], list(meta["headings"]))
        waiting += [(child, number) for child in reversed(meta[CHILDREN])]
    return nodes


def _digest(*parts: str) -> str:
    """128 bits over the parts; each part's length goes in, so that no two lists of parts look alike."""
    hasher = hashlib.blake2b(digest_size=16)
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        hasher.update(len(raw).to_bytes(8, "big"))
        hasher.update(raw)
    return hasher.hexdigest()


def _after_blank_lines(text: str, offset: int) -> int:
    """Move a cut over blank lines, so that they end the section before it instead of starting the next."""
    rest = offset
    while text[rest].isspace():
        rest += 1
    newline = max(text.rfind("\n", offset, rest), text.rfind("\r", offset, rest))
    return newline + 1 if newline >= 0 else offset
