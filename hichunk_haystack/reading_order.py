# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""The leaves of each tree, one behind the other."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from haystack import Document

from hichunk_haystack.chains import Lengths, resolve_hits
from hichunk_haystack.nodes import ANCESTORS, PARENT, TREE_ID, is_leaf
from hichunk_haystack.plans import Hit


def with_ancestors(leaves: Iterable[Document], documents: Iterable[Document], lengths: Lengths) -> list[Document]:
    """
    Give leaves that carry what is above them, as our splitters make them.

    Leaves of Haystack's `HierarchicalDocumentSplitter` name their parent only, and count from its start.

    :param leaves: Leaves of any trees; they are not changed.
    :param documents: Where the nodes above them are looked for. What is not there is left out.
    :param lengths: Where lengths come from.
    :returns: The same leaves, those that carried nothing with `__ancestors`, their source's id, their offset in it and
        their length.
    """
    found = [_without_links(leaf) for leaf in leaves]
    bare = [leaf for leaf in found if ANCESTORS not in leaf.meta and leaf.meta.get(PARENT)]
    if not bare:
        return found
    known: dict[str, dict[str, Any]] = {}
    for hit in _resolve(bare, documents, lengths):
        links = [{"id": node.id, "level": node.level, "tokens": node.tokens} for node in hit.ancestors]
        known[hit.id] = {
            ANCESTORS: links, "source_id": hit.source_id, "split_idx_start": hit.start, "token_count": hit.tokens,
        }  # fmt: skip
    return [replace(leaf, meta={**leaf.meta, **known[leaf.id]}) if leaf.id in known else leaf for leaf in found]


def _without_links(leaf: Document) -> Document:
    """Without `__ancestors` where these are not all there, so that they are looked for."""
    links = leaf.meta.get(ANCESTORS) or ()
    if all({"id", "level", "tokens"} <= link.keys() for link in links):
        return leaf
    return replace(leaf, meta={name: value for name, value in leaf.meta.items() if name != ANCESTORS})


def _resolve(leaves: Sequence[Document], documents: Iterable[Document], lengths: Lengths) -> list[Hit]:
    """Hits for leaves, with what is above them as far as it is among some documents."""
    by_id = {document.id: document for document in documents}
    work = resolve_hits(leaves, lengths)
    try:
        wanted = next(work)
        while True:
            wanted = work.send({node_id: by_id[node_id] for node_id in wanted if node_id in by_id})
    except StopIteration as done:
        hits: list[Hit] = done.value.hits
    return hits


def leaves_in_order(documents: Sequence[Document], lengths: Lengths) -> tuple[list[list[Hit]], list[str]]:
    """
    Sort leaves by trees, and inside of a tree by place.

    :param documents: Nodes of any trees, our own or Haystack's; a leaf that comes twice counts once.
    :param lengths: Where lengths come from.
    :returns: The leaves with text of each tree, with their places and what is above them as far as it is among the
        documents; and the ids of leaves whose place is not known, or that have no text.
    """
    by_id = {document.id: document for document in documents}
    leaves = [document for document in by_id.values() if is_leaf(document)]
    hits = _resolve(leaves, by_id.values(), lengths)
    trees: dict[tuple[str, Any], list[Hit]] = {}
    apart = []
    for hit in hits:
        if hit.start is None or not (by_id[hit.id].content or "").strip():
            apart.append(hit.id)
        else:
            trees.setdefault((hit.source_id, by_id[hit.id].meta.get(TREE_ID)), []).append(hit)
    for tree in trees.values():
        tree.sort(key=lambda hit: (hit.start, hit.end))
    return list(trees.values()), apart
