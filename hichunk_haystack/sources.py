# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Which source a node belongs to, and which nodes in a store are left over from an older version of it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from haystack import Document

from hichunk_haystack.components.preprocessors.splitting import describe
from hichunk_haystack.nodes import LEVEL, PARENT, TREE_ID, is_leaf
from hichunk_haystack.storable import UnstorableError, storable_value

# A filter holds this many values at most, except for a single source that needs more.
MOST_VALUES = 1000

TOP: dict[str, Any] = {"operator": "NOT", "conditions": [{"field": f"meta.{LEVEL}", "operator": ">", "value": 0}]}
"""A filter for roots, and for documents without a tree."""


@dataclass
class Source:
    """
    The nodes that are written of one source.

    :param name: What to call it in messages.
    :param keys: Its values of the meta field that identifies sources; empty where its nodes have none.
    :param roots: Ids of its trees' roots, or of the document that its chunks were split from.
    :param trees: Its trees' ids.
    :param loose: Ids of its nodes that belong to no tree of ours.
    :param nodes: All of them.
    """

    name: str
    keys: set[str | int] = field(default_factory=set)
    roots: set[str | int] = field(default_factory=set)
    trees: set[str] = field(default_factory=set)
    loose: set[str] = field(default_factory=set)
    nodes: list[Document] = field(default_factory=list)

    @property
    def replaceable(self) -> bool:
        """Whether an older version can be told from other sources."""
        return bool(self.keys or self.roots)

    def in_writing_order(self) -> list[Document]:
        """Give inner nodes from the root down, then leaves, so that a parent is there before what names it."""
        inner = [node for node in self.nodes if not is_leaf(node)]
        inner.sort(key=lambda node: node.meta.get(LEVEL, 0))
        return inner + [node for node in self.nodes if is_leaf(node)]


def group_by_source(documents: Iterable[Document], source_key: str) -> list[Source]:
    """
    Find the sources of nodes.

    A source is known by its value of the meta field `source_key`, or by its root's id. Documents that share either
    belong together, so that several documents from one file are one source. Documents that have neither are a source
    each. Of two documents with one id, the later one counts.

    :param documents: Nodes in any order.
    :param source_key: Name of the meta field.
    :returns: The sources in the order in which they first come up.
    """
    sources: list[Source] = []
    by_key: dict[str | int, Source] = {}
    by_root: dict[str | int, Source] = {}
    for document in {document.id: document for document in documents}.values():
        key, root = source_key_of(document, source_key), source_id_of(document)
        source = by_root.get(root) if root is not None else None
        if source is None and key is not None:
            source = by_key.get(key)
        if source is None:
            source = Source(describe(document))
            sources.append(source)
        if key is not None:
            source.keys.add(key)
            by_key[key] = source
        if root is not None:
            source.roots.add(root)
            by_root[root] = source
        tree = document.meta.get(TREE_ID)
        if tree is None:
            source.loose.add(document.id)
        else:
            source.trees.add(tree)
        source.nodes.append(document)
    return sources


def stale_filters(sources: Sequence[Source], source_key: str) -> Iterator[dict[str, Any]]:
    """
    Build filters for what is left over: of these sources, but neither of a tree nor a document that was just written.

    Nodes without a tree's id are found as well, since "not in" holds where a field is missing. So flat chunks of a file
    give way to its first tree.

    :param sources: What was written.
    :param source_key: Name of the meta field that identifies sources.
    :returns: Haystack filters; usually one.
    """
    for part in _parts([source for source in sources if source.replaceable]):
        written = [
            {"field": name, "operator": "not in", "value": values}
            for name, values in (
                (f"meta.{TREE_ID}", _union(source.trees for source in part)),
                ("id", _union(source.loose for source in part)),
            )
            if values
        ]
        # First what most nodes fail when a whole collection is indexed again: an embedded store tests them one by one.
        yield {"operator": "AND", "conditions": [*written, _theirs(part, source_key)]}


def top_filters(sources: Sequence[Source], source_key: str) -> Iterator[dict[str, Any]]:
    """
    Build filters for the roots of these sources that are in a store, and for their documents without a tree.

    :param sources: The sources.
    :param source_key: Name of the meta field that identifies sources.
    :returns: Haystack filters; usually one.
    """
    for part in _parts([source for source in sources if source.replaceable]):
        yield {"operator": "AND", "conditions": [TOP, _theirs(part, source_key)]}


def _theirs(sources: Sequence[Source], source_key: str) -> dict[str, Any]:
    """A filter for all that belongs to some sources."""
    keys, roots = _union(source.keys for source in sources), _union(source.roots for source in sources)
    return of_sources(keys, roots, source_key)


def of_sources(keys: Sequence[str | int], roots: Sequence[str | int], source_key: str) -> dict[str, Any]:
    """
    Build a filter for all that belongs to some sources.

    :param keys: Their values of the meta field that identifies sources.
    :param roots: Ids of their roots.
    :param source_key: Name of that meta field.
    :returns: A Haystack filter.
    """
    conditions = [
        {"field": name, "operator": "in", "value": list(values)}
        for name, values in ((f"meta.{source_key}", keys), ("meta.source_id", roots))
        if values
    ]
    return {"operator": "OR", "conditions": conditions}


def source_key_of(document: Document, source_key: str) -> str | int | None:
    """
    Give the value of the identifying field as a store holds it, where it is one that a store can filter on.

    :param document: A node.
    :param source_key: Name of the meta field.
    :returns: The value, or `None`.
    """
    return as_source_name(document.meta.get(source_key))


def source_id_of(document: Document) -> str | int | None:
    """
    Give the id of the source document, which nodes of Haystack's own trees do not know: theirs names the parent.

    :param document: A node.
    :returns: The id, or `None`.
    """
    if TREE_ID not in document.meta and PARENT in document.meta:
        return None
    return as_source_name(document.meta.get("source_id"))


def as_source_name(value: Any) -> str | int | None:
    """
    Give a value as the name of a source, the same whether it comes from a caller or from a store.

    :param value: Any value: a text, a whole number, or what is stored as one of these, such as a `pathlib.Path`.
    :returns: A text or a whole number; `None` where the value is neither.
    """
    if type(value) is str and value.isascii():
        return value
    try:
        plain = storable_value(value)
    except UnstorableError:
        return None
    return plain if isinstance(plain, str | int) and not isinstance(plain, bool) else None


def _parts(sources: Iterable[Source]) -> Iterator[list[Source]]:
    part: list[Source] = []
    size = 0
    for source in sources:
        values = len(source.keys) + len(source.roots) + len(source.trees) + len(source.loose)
        if part and size + values > MOST_VALUES:
            yield part
            part, size = [], 0
        part.append(source)
        size += values
    if part:
        yield part


def _union(values: Iterable[set[Any]]) -> list[Any]:
    return list(dict.fromkeys(value for some in values for value in sorted(some, key=str)))
