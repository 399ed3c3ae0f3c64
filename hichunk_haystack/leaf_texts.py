# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Text stored once: inner nodes without text of their own, and their text built from their leaves."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from haystack import Document

from hichunk_haystack.nodes import ANCESTORS, CHILDREN, LEAF_RANGE, TREE_ID, leaf_id
from hichunk_haystack.reading import Reads

INNER_TEXT = "__inner_text"
"""Meta key of all nodes of a tree whose inner nodes were stored without text; its value is `DERIVED`."""

DERIVED = "derived"


def without_inner_text(nodes: Iterable[Document]) -> list[Document]:
    """
    Take the text out of inner nodes, as far as it can be built again from their leaves.

    :param nodes: Nodes of any trees; they are not changed. Trees that do not say which leaves their nodes have (those
        of Haystack's own splitter, or of earlier releases of ours) keep their text.
    :returns: The nodes, those that lost their text and their leaves marked in their meta.
    """
    result = []
    for node in nodes:
        if LEAF_RANGE in node.meta and node.meta.get(CHILDREN):
            result.append(replace(node, content="", meta={**node.meta, INNER_TEXT: DERIVED}))
        elif any("first_leaf" in link for link in node.meta.get(ANCESTORS) or ()):
            result.append(replace(node, meta={**node.meta, INNER_TEXT: DERIVED}))
        else:
            result.append(node)
    return result


def lacks_text(document: Document) -> bool:
    """
    Say whether a document is an inner node that was stored without its text.

    :param document: Any document.
    :returns: Whether its text has to be built from its leaves.
    """
    return document.meta.get(INNER_TEXT) == DERIVED and not document.content and bool(document.meta.get(CHILDREN))


def leaves_below(hit: Document, node_id: str) -> list[str]:
    """
    Compute the ids of the leaves below a node above a hit, or below the hit itself, without reading anything.

    :param hit: A node of a tree.
    :param node_id: The id of the hit or of a node above it.
    :returns: Ids in reading order; empty where the tree's inner nodes have a text of their own.
    """
    if hit.meta.get(INNER_TEXT) != DERIVED:
        return []
    if hit.id == node_id:
        return _ids(hit.meta[TREE_ID], *hit.meta.get(LEAF_RANGE, (0, 0)))
    for link in hit.meta.get(ANCESTORS) or ():
        if link["id"] == node_id:
            return _ids(hit.meta[TREE_ID], link["first_leaf"], link["leaves"])
    return []


def with_text(node: Document, leaves: Sequence[str], there: Mapping[str, Document]) -> Document | None:
    """
    Build the text of an inner node from its leaves, byte for byte.

    What overlapping leaves repeat is taken once.

    :param node: The node.
    :param leaves: Ids of its leaves in reading order.
    :param there: Documents by id.
    :returns: The node with its text, or `None` if one of its leaves is not there, or not as it was.
    """
    start, end = node.meta["split_idx_start"], node.meta["split_idx_end"]
    parts: list[str] = []
    position = start
    for leaf_id_ in leaves:
        leaf = there.get(leaf_id_)
        if leaf is None or not is_as_split(leaf) or leaf.meta.get(TREE_ID) != node.meta.get(TREE_ID):
            return None
        behind = position - leaf.meta["split_idx_start"]
        if behind < 0:
            return None
        parts.append((leaf.content or "")[behind:])
        position = max(position, leaf.meta["split_idx_end"])
    return None if position != end else replace(node, content="".join(parts))


def is_as_split(leaf: Document) -> bool:
    """
    Say whether a leaf's text has the length that its span says, as far as one can tell.

    :param leaf: A leaf.
    :returns: `False` where a ranker or a joiner has cut or lengthened it.
    """
    start, end = leaf.meta.get("split_idx_start"), leaf.meta.get("split_idx_end")
    return isinstance(start, int) and isinstance(end, int) and len(leaf.content or "") == end - start


def read_hits(documents: Sequence[Document]) -> Reads[tuple[list[Document], list[str]]]:
    """
    Give hits that are inner nodes without text their text; nothing is read where there are none.

    :param documents: Hits; they are not changed.
    :returns: Work that returns the hits, and the ids of those left out because not all of their leaves are there.
    """
    wanted = {hit.id: leaves_below(hit, hit.id) for hit in documents if lacks_text(hit)}
    if not wanted:
        return list(documents), []
    there = yield list(dict.fromkeys(leaf for leaves in wanted.values() for leaf in leaves))
    whole = [with_text(hit, wanted[hit.id], there) if hit.id in wanted else hit for hit in documents]
    found = [hit for hit in whole if hit is not None]
    return found, sorted(wanted.keys() - {hit.id for hit in found})


def _ids(tree_id: Any, first: int, count: int) -> list[str]:
    return [leaf_id(str(tree_id), ordinal) for ordinal in range(first, first + count)]
