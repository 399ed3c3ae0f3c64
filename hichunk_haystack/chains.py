# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""From retrieved documents to hits: their lengths, their places and the nodes above them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from haystack import Document
from haystack.token_counters.types import TokenCounter

from hichunk_haystack.nodes import ANCESTORS, CHILDREN, LEVEL, PARENT
from hichunk_haystack.plans import Ancestor, Hit
from hichunk_haystack.reading import Reads
from hichunk_haystack.tokens import count_texts
from hichunk_haystack.weights import CHARACTERS_PER_TOKEN, weigh

# Lengths that are remembered; at 100 bytes each this is 2 MB.
_MOST_LENGTHS = 20_000


@dataclass
class ResolvedHits:
    """
    Hits in rank order, and the documents that had to be read to know what is above them.

    :param hits: One for each retrieved document.
    :param read: Documents read on the way, by id.
    :param missing: Ids of parents that are not in the store.
    """

    hits: list[Hit]
    read: dict[str, Document]
    missing: list[str]


class Lengths:
    """Lengths of documents in tokens: as they carry them, else counted, and remembered as long as the text is equal."""

    def __init__(self, counter: TokenCounter) -> None:
        """
        Start with nothing remembered.

        :param counter: Counts what carries no `token_count`.
        """
        self._counter = counter
        self._known: dict[tuple[str, int], int] = {}

    def of(self, documents: Iterable[Document]) -> dict[str, int]:
        """
        Find the lengths of documents; those that must be counted are counted together.

        :param documents: Any documents.
        :returns: Length in tokens by id.
        """
        lengths: dict[str, int] = {}
        uncounted: dict[tuple[str, int], str] = {}
        for document in documents:
            tokens = document.meta.get("token_count")
            if isinstance(tokens, int) and tokens >= 0:
                lengths[document.id] = tokens
                continue
            key = (document.id, hash(document.content))
            if key in self._known:
                lengths[document.id] = self._known[key]
            else:
                uncounted[key] = document.content or ""
        if uncounted:
            if len(self._known) + len(uncounted) > _MOST_LENGTHS:
                self._known.clear()
            for key, tokens in zip(uncounted, count_texts(self._counter, list(uncounted.values())), strict=True):
                lengths[key[0]] = self._known[key] = tokens
        return lengths


def _weigh_span(tokens: int, start: int | None, end: int | None) -> int:
    """What a node takes of a budget of which only the span is known; its white space counts."""
    return tokens if start is None or end is None else max(tokens, -(-(end - start) // CHARACTERS_PER_TOKEN))


def resolve_hits(documents: Sequence[Document], lengths: Lengths) -> Reads[ResolvedHits]:
    """
    Find each document's length, place and ancestors.

    Our nodes carry all of it, and nothing is read. Nodes of Haystack's `HierarchicalDocumentSplitter` name their parent
    only: the parents of all such hits are read together, level by level, what has no length is counted, and offsets,
    which are relative to the parent there, are added up. Documents without a tree have no ancestors.

    Lengths are what a budget has to give for them: tokens, or one for each 16 characters where these are more.

    :param documents: Retrieved documents in rank order.
    :param lengths: Where lengths come from.
    :returns: Work that returns the hits.
    """
    read: dict[str, Document] = {}
    missing: dict[str, None] = {}
    wanted = _parents(documents)
    while wanted:
        found = yield wanted
        read.update(found)
        missing.update((node_id, None) for node_id in wanted if node_id not in found)
        wanted = [node_id for node_id in _parents(found.values()) if node_id not in read and node_id not in missing]
    resolver = _Resolver(read, lengths.of([*documents, *read.values()]))
    return ResolvedHits([resolver.hit(document) for document in documents], read, list(missing))


def _parents(documents: Iterable[Document]) -> list[str]:
    """Ids of the parents that have to be read to know them."""
    named: dict[str, None] = {}
    for document in documents:
        if ANCESTORS not in document.meta and document.meta.get(PARENT):
            named[document.meta[PARENT]] = None
    return list(named)


@dataclass(frozen=True)
class _Place:
    """Where a node is: its source (or the topmost node that is known), its offset there, and what is above it."""

    source_id: str
    start: int | None
    above: tuple[Ancestor, ...]


class _Resolver:
    """Makes hits of documents; what siblings share is worked out once."""

    def __init__(self, read: dict[str, Document], lengths: dict[str, int]) -> None:
        self.read = read
        self.lengths = lengths
        self.chains: dict[str, tuple[Ancestor, ...]] = {}
        self.places: dict[str, _Place] = {}

    def hit(self, document: Document) -> Hit:
        """One document's hit."""
        meta = document.meta
        if ANCESTORS in meta:
            start, source = meta.get("split_idx_start"), str(meta.get("source_id") or document.id)
            above = self.carried(meta[ANCESTORS])
        elif LEVEL in meta or meta.get(PARENT):
            place = self.place(document)
            start, source, above = place.start, place.source_id, place.above
        else:
            start, source, above = meta.get("split_idx_start"), str(meta.get("source_id") or document.id), ()
        if not isinstance(start, int):
            start = None
        end = None if start is None else start + len(document.content or "")
        # Some rankers score with NumPy's numbers, which JSON has no words for.
        score = None if document.score is None else float(document.score)
        tokens = weigh(document.content or "", self.lengths[document.id])
        return Hit(document.id, tokens, score, source, above, start, end)

    def carried(self, links: Sequence[dict[str, Any]] | None) -> tuple[Ancestor, ...]:
        """The ancestors that a node of ours carries."""
        chain: tuple[Ancestor, ...] = ()
        for link in reversed(links or ()):
            node_id = link["id"]
            known = self.chains.get(node_id)
            if known is None:
                start, end = link.get("start"), link.get("end")
                tokens = _weigh_span(link["tokens"], start, end)
                ancestor = Ancestor(node_id, tokens, link["children"], link["level"], start, end)
                known = self.chains[node_id] = (ancestor, *chain)
            chain = known
        return chain

    def place(self, document: Document) -> _Place:
        """Where a node is that names its parent only."""
        path = [document]
        while path[-1].id not in self.places:
            parent = self.read.get(path[-1].meta.get(PARENT) or "")
            if parent is None or any(node.id == parent.id for node in path):
                break
            path.append(parent)
        place = self.places.get(path[-1].id)
        if place is None:
            top = path[-1]
            missing = top.meta.get(PARENT)
            offset = top.meta.get("split_idx_start") if missing else 0
            place = self.places[top.id] = _Place(missing or top.id, offset if isinstance(offset, int) else None, ())
        for parent, node in zip(path[:0:-1], path[-2::-1], strict=True):
            start, offset = place.start, _offset(node, parent)
            end = None if start is None else start + len(parent.content or "")
            tokens = weigh(parent.content or "", self.lengths[parent.id])
            children, level = len(parent.meta.get(CHILDREN) or ()), parent.meta.get(LEVEL, 0)
            link = Ancestor(parent.id, tokens, children, level, start, end)
            start = None if start is None or offset is None else start + offset
            place = self.places[node.id] = _Place(place.source_id, start, (link, *place.above))
        return place


def _offset(node: Document, parent: Document) -> int | None:
    """Offset of a node in its parent; the one it names, where its text stands there."""
    text, within = node.content or "", parent.content or ""
    offset = node.meta.get("split_idx_start")
    if isinstance(offset, int) and within.startswith(text, offset):
        return offset
    found = within.find(text)
    return None if found < 0 else found
