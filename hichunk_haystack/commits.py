# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""The commit record that a root carries in a store: what its tree was made from, and whether all of it is there."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from haystack import Document

from hichunk_haystack.nodes import ANCESTORS, BLOCK_SIZE, CHILDREN, LEVEL, PARENT, TREE_ID, is_leaf
from hichunk_haystack.storable import storable_meta

FINGERPRINT = "__fingerprint"
"""Meta key of a root: a hash of its source and of all that its tree and its vectors depend on."""

STATE = "__state"
"""Meta key of a root: `COMPLETE`, `SUPERSEDED`, or nothing while its tree is being written."""

LEAVES = "__leaves"
"""Meta key of a root: number of leaves of its tree."""

COMPLETE = "complete"
SUPERSEDED = "superseded"

COMMIT_FIELDS = (FINGERPRINT, STATE, LEAVES)

# What a splitter puts into meta; the rest of a root's meta is its source's own.
_STRUCTURE = {
    LEVEL, PARENT, CHILDREN, BLOCK_SIZE, TREE_ID, ANCESTORS, *COMMIT_FIELDS,
    "source_id", "split_idx_start", "split_idx_end", "token_count", "headings",
}  # fmt: skip


def is_root(document: Document) -> bool:
    """
    Say whether a document is the root of a tree of ours.

    :param document: Any document.
    :returns: Whether it is.
    """
    return document.meta.get(TREE_ID) is not None and document.meta.get(PARENT) is None


def fingerprint(roots: Iterable[Document], version: str = "") -> str:
    """
    Hash what the trees of one source and their vectors depend on.

    That is: each tree's id (which covers the source's id, its text, the splitter's settings and where it was cut), the
    source's own meta, and `version`.

    :param roots: The roots of all trees of the source, in any order.
    :param version: What else it depends on, such as the embedding model.
    :returns: 32 hexadecimal digits.
    :raises UnstorableError: If there is something in the meta that can't be written.
    """
    parts = sorted(json.dumps([root.meta[TREE_ID], storable_meta(_own_meta(root))], sort_keys=True) for root in roots)
    text = json.dumps([version, *parts])
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def is_committed(meta: dict[str, Any] | None, expected: str) -> bool:
    """
    Say whether a stored root belongs to a tree that is there as a whole, and was made from the same.

    :param meta: The stored root's meta; `None` where there is no such root.
    :param expected: The fingerprint that it would have now.
    :returns: Whether nothing has to be written.
    """
    return meta is not None and meta.get(STATE) == COMPLETE and meta.get(FINGERPRINT) == expected


@dataclass
class Signed:
    """
    The nodes of one source, ready to be written.

    :param nodes: The same nodes; the roots carry the first part of their commit record.
    :param roots: The roots to mark as complete once everything is written; none if part of a tree is missing.
    """

    nodes: list[Document]
    roots: list[Document]


def sign(nodes: Sequence[Document]) -> Signed:
    """
    Put the first part of the commit record on the roots of one source: fingerprint and number of leaves.

    :param nodes: All nodes that are written of the source; they are not changed.
    :returns: The nodes to write.
    :raises UnstorableError: If there is something in the meta of a root that can't be written.
    """
    ids = {node.id for node in nodes}
    trees: dict[str, list[Document]] = {}
    for node in nodes:
        if TREE_ID in node.meta:
            trees.setdefault(node.meta[TREE_ID], []).append(node)
    roots = {tree: [node for node in members if is_root(node)] for tree, members in trees.items()}
    whole = all(
        len(roots[tree]) == 1 and all(child in ids for node in members for child in node.meta.get(CHILDREN) or ())
        for tree, members in trees.items()
    )
    if not whole:
        return Signed([_without_record(node) for node in nodes], [])
    found = [root for each in roots.values() for root in each]
    # A filter in front knows of a version, and has signed them already.
    given = {root.meta.get(FINGERPRINT) for root in found}
    mark = given.pop() if len(given) == 1 else None
    mark = mark or fingerprint(found)
    signed = {}
    for root in found:
        leaves = sum(map(is_leaf, trees[root.meta[TREE_ID]]))
        meta = {name: value for name, value in root.meta.items() if name != STATE}
        signed[root.id] = replace(root, meta={**meta, FINGERPRINT: mark, LEAVES: leaves})
    return Signed([signed.get(node.id, node) for node in nodes], list(signed.values()))


def _without_record(node: Document) -> Document:
    if not any(name in node.meta for name in COMMIT_FIELDS):
        return node
    return replace(node, meta={name: value for name, value in node.meta.items() if name not in COMMIT_FIELDS})


def _own_meta(root: Document) -> dict[str, Any]:
    return {str(name): value for name, value in root.meta.items() if name not in _STRUCTURE}
