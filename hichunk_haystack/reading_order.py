# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""The leaves of each tree, one behind the other."""

from collections.abc import Sequence
from typing import Any

from haystack import Document

from hichunk_haystack.chains import Lengths, resolve_hits
from hichunk_haystack.nodes import TREE_ID, is_leaf
from hichunk_haystack.plans import Hit


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
    work = resolve_hits(leaves, lengths)
    try:
        wanted = next(work)
        while True:
            wanted = work.send({node_id: by_id[node_id] for node_id in wanted if node_id in by_id})
    except StopIteration as done:
        hits: list[Hit] = done.value.hits
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
