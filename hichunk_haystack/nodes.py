# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Nodes of trees, and the tree contract: what a node is as a Haystack document."""

import hashlib
import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from haystack import Document

# The first four are Haystack's own names, so that its AutoMergingRetriever reads our trees.
LEVEL = "__level"
PARENT = "__parent_id"
CHILDREN = "__children_ids"
BLOCK_SIZE = "__block_size"
TREE_ID = "__tree_id"
ANCESTORS = "__ancestors"
LEAF_RANGE = "__leaf_range"


@dataclass(slots=True)
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


def append_node(
    nodes: list[Node], parent: int | None, span: tuple[int, int, int], block_size: int, path: list[str]
) -> int:
    """
    Put a node behind the others of its tree, and tell its parent.

    :param nodes: The tree so far.
    :param parent: Number of its parent, `None` for the root.
    :param span: Its start, its end and its length in tokens.
    :param block_size: The bound in force.
    :param path: Its headings.
    :returns: Its number.
    """
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
    # Where it was cut goes in: a model may cut the same text in another way at the next time.
    shape = json.dumps([(node.start, node.end, node.level, node.headings) for node in nodes])
    tree_id = _digest(source.id, text, settings, shape)
    ranges = _leaf_ranges(nodes)
    ids = [source.id]
    of_tree, of_leaf = _hasher(tree_id), _hasher(tree_id, "leaf")
    for node, (first, _) in zip(nodes[1:], ranges[1:], strict=True):
        if node.children:
            ids.append(_hex(of_tree, str(node.start), str(node.end), str(node.level)))
        else:
            ids.append(_hex(of_leaf, str(first)))
    nested = any(isinstance(value, list | dict | set) for value in source.meta.values())
    page_ends = [match.start() for match in re.finditer("\f", text)] if "\f" in text else []
    first_page = source.meta.get("page_number", 1)
    # For each inner node what its children have in `__ancestors`.
    chains: dict[int, list[dict[str, Any]]] = {}
    documents = []
    for number, (node, node_id) in enumerate(zip(nodes, ids, strict=True)):
        chain = [] if node.parent is None else chains[node.parent]
        if node.children:
            link = {
                "id": node_id, "level": node.level, "tokens": node.tokens,
                "children": len(node.children), "start": node.start, "end": node.end,
                "titles": len(node.headings), "first_leaf": ranges[number][0], "leaves": ranges[number][1],
            }  # fmt: skip
            chains[number] = [link, *chain]
        meta = {
            **(_copied(source.meta) if nested else source.meta),
            LEVEL: node.level,
            PARENT: None if node.parent is None else ids[node.parent],
            CHILDREN: [ids[child] for child in node.children],
            BLOCK_SIZE: node.block_size,
            TREE_ID: tree_id,
            ANCESTORS: [link.copy() for link in chain],
            "source_id": source.id,
            "split_idx_start": node.start,
            "split_idx_end": node.end,
            "token_count": node.tokens,
            "headings": list(node.headings),
        }
        if node.children:
            meta[LEAF_RANGE] = list(ranges[number])
        if page_ends and isinstance(first_page, int):
            meta["page_number"] = first_page + bisect_left(page_ends, node.start)
        documents.append(Document(id=node_id, content=text[node.start : node.end], meta=meta))
    return documents


def _copied(meta: dict[str, Any]) -> dict[str, Any]:
    """A copy that shares nothing, but for what can't be copied: a writer names that, and it stops no other source."""
    copied = {}
    for name, value in meta.items():
        try:
            copied[name] = deepcopy(value)
        except Exception:  # whatever a foreign object raises
            copied[name] = value
    return copied


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
        number = append_node(nodes, parent, span, meta[BLOCK_SIZE], list(meta["headings"]))
        waiting += [(child, number) for child in reversed(meta[CHILDREN])]
    return nodes


def _leaf_ranges(nodes: Sequence[Node]) -> list[tuple[int, int]]:
    """For each node the number of its first leaf, counted from the source's start, and how many leaves it has."""
    counts = [0 if node.children else 1 for node in nodes]
    for number in range(len(nodes) - 1, 0, -1):
        parent = nodes[number].parent
        assert parent is not None
        counts[parent] += counts[number]
    firsts = accumulate((0 if node.children else 1 for node in nodes), initial=0)
    return list(zip(firsts, counts, strict=False))


def leaf_id(tree_id: str, ordinal: int) -> str:
    """
    Compute the id of a leaf, so that the leaves below a node can be read without reading the node first.

    :param tree_id: The tree's id.
    :param ordinal: The leaf's place among the leaves of its tree, from 0 on, in reading order.
    :returns: The id.
    """
    return _digest(tree_id, "leaf", str(ordinal))


def _digest(*parts: str) -> str:
    """128 bits over the parts."""
    return _hasher(*parts).hexdigest()


def _hasher(*parts: str) -> "hashlib.blake2b":
    """Each part's length goes in, so that no two lists of parts look alike."""
    hasher = hashlib.blake2b(digest_size=16)
    for part in parts:
        _feed(hasher, part)
    return hasher


def _hex(begun: "hashlib.blake2b", *parts: str) -> str:
    """The digest of what a hasher has seen and of more parts."""
    hasher = begun.copy()
    for part in parts:
        _feed(hasher, part)
    return hasher.hexdigest()


def _feed(hasher: "hashlib.blake2b", part: str) -> None:
    raw = part.encode("utf-8", "surrogatepass")
    hasher.update(len(raw).to_bytes(8, "big") + raw)
