# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""From retrieved documents to hits: their lengths and the nodes above them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from haystack import Document
from haystack.token_counters.types import TokenCounter

from hichunk_haystack.merging import Ancestor, Hit
from hichunk_haystack.reading import Reads
from hichunk_haystack.tokens import count_texts
from hichunk_haystack.tree import ANCESTORS, CHILDREN, LEVEL, PARENT


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


def resolve_hits(documents: Sequence[Document], counter: TokenCounter) -> Reads[ResolvedHits]:
    """
    Find each document's length and ancestors.

    Our nodes carry both, and nothing is read. Nodes of Haystack's `HierarchicalDocumentSplitter` name their parent
    only: the parents of all such hits are read together, level by level, and what has no length is counted.
    Documents without a tree have no ancestors.

    :param documents: Retrieved documents in rank order.
    :param counter: Counts what carries no `token_count`.
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
    lengths = _lengths([*documents, *read.values()], counter)
    return ResolvedHits([_hit(document, read, lengths) for document in documents], read, list(missing))


def _parents(documents: Iterable[Document]) -> list[str]:
    """Ids of the parents that have to be read to know them."""
    named: dict[str, None] = {}
    for document in documents:
        if ANCESTORS not in document.meta and document.meta.get(PARENT):
            named[document.meta[PARENT]] = None
    return list(named)


def _lengths(documents: Sequence[Document], counter: TokenCounter) -> dict[str, int]:
    """Length in tokens by id: as carried, else counted."""
    lengths: dict[str, int] = {}
    uncounted: dict[str, str] = {}
    for document in documents:
        tokens = document.meta.get("token_count")
        if isinstance(tokens, int):
            lengths[document.id] = tokens
        else:
            uncounted[document.id] = document.content or ""
    if uncounted:
        lengths.update(zip(uncounted, count_texts(counter, list(uncounted.values())), strict=True))
    return lengths


def _hit(document: Document, read: dict[str, Document], lengths: dict[str, int]) -> Hit:
    carried = document.meta.get(ANCESTORS)
    if carried is not None:
        chain = [Ancestor(link["id"], link["tokens"], link["children"], link["level"]) for link in carried]
        source = document.meta.get("source_id", document.id)
    else:
        chain = []
        seen = {document.id}
        node = read.get(document.meta.get(PARENT) or "")
        while node is not None and node.id not in seen:
            seen.add(node.id)
            children = len(node.meta.get(CHILDREN) or ())
            chain.append(Ancestor(node.id, lengths[node.id], children, node.meta.get(LEVEL, 0)))
            node = read.get(node.meta.get(PARENT) or "")
        source = chain[-1].id if chain else document.meta.get("source_id", document.id)
    return Hit(document.id, lengths[document.id], document.score, source, tuple(chain))
