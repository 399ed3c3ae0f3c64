# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What the pages show, as plain data: trees by columns, and traces as the retriever gave them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from haystack import Document

from hichunk_haystack.components.builders.citations import short_names, source_of
from hichunk_haystack.nodes import Node, from_documents
from hichunk_haystack.tracing import SCHEMA

_NEEDED = ("split_idx_start", "split_idx_end", "token_count", "headings", "__block_size", "__children_ids")


class Run(NamedTuple):
    """
    One merge of a query's hits, to be shown beside others.

    :param label: What tells it from the others, such as "hichunk, 1,024 tokens".
    :param trace: The `trace` of `BudgetAutoMergingRetriever`.
    :param documents: Its `documents`, or what a served pipeline answers for them (`id`, `content`), for their whole
        texts; without them the page shows where they begin.
    """

    label: str
    trace: Mapping[str, Any]
    documents: Sequence[Document | Mapping[str, Any]] = ()


def tree_data(documents: Iterable[Document]) -> dict[str, Any]:
    """
    Turn trees into what the page shows.

    Leaves carry their text, inner nodes the numbers of their first and last leaf: no offset has to be counted in the
    browser, whose strings have other ones.

    :param documents: All nodes of one source or several, in any order.
    :returns: A dictionary with `kind` ("tree") and `sources`: `name`, `id`, `characters`, `leaves` (numbers of the
        leaves' nodes), `texts` (of the leaves, each character once), `overlaps` (leaf's place -> characters that it
        repeats) and `nodes`, a list for each property.
    :raises ValueError: If documents are missing or are no trees; the message says what to pass.
    """
    trees: dict[str, list[Document]] = {}
    for document in documents:
        lacking = [key for key in _NEEDED if key not in document.meta]
        if lacking:
            msg = (
                f"Document '{document.id}' has no '{lacking[0]}' in its meta, so it is no node of a tree. Pass the "
                "`documents` that one of the splitters of hichunk_haystack gave, all of them."
            )
            raise ValueError(msg)
        trees.setdefault(str(document.meta.get("source_id") or document.id), []).append(document)
    if not trees:
        msg = "There are no nodes to show: the source is empty, or nothing was passed. Pass all nodes of a tree."
        raise ValueError(msg)
    # The root comes first in a splitter's output, but not in what a store gives.
    roots = {
        source: next((node for node in nodes if not node.meta.get("__parent_id")), nodes[0])
        for source, nodes in trees.items()
    }
    names = short_names(roots.values(), 1)
    sources = [
        _source(nodes, roots[source], names[source_of(roots[source])] or roots[source].id)
        for source, nodes in trees.items()
    ]
    return {"kind": "tree", "sources": sorted(sources, key=lambda source: source["name"])}


def _source(documents: list[Document], root: Document, name: str) -> dict[str, Any]:
    nodes = from_documents(documents)
    text = root.content or ""
    leaves = [number for number, node in enumerate(nodes) if not node.children]
    first, last = _leaf_runs(nodes)
    texts, overlaps, done = [], {}, 0
    for place, number in enumerate(leaves):
        node = nodes[number]
        if node.start < done:
            overlaps[place] = min(done, node.end) - node.start
        texts.append(text[done : max(done, node.end)])
        done = max(done, node.end)
    ids = {(d.meta["split_idx_start"], d.meta["split_idx_end"], d.meta["__level"]): d.id for d in documents}
    return {
        "name": name,
        "id": root.id,
        "characters": len(text),
        "leaves": leaves,
        "texts": texts,
        "overlaps": overlaps,
        "nodes": {
            "id": [ids[node.start, node.end, node.level] for node in nodes],
            "parent": [node.parent for node in nodes],
            "level": [node.level for node in nodes],
            "tokens": [node.tokens for node in nodes],
            "start": [node.start for node in nodes],
            "end": [node.end for node in nodes],
            "bound": [node.block_size for node in nodes],
            "titles": [
                node.headings if node.parent is None else node.headings[len(nodes[node.parent].headings) :]
                for node in nodes
            ],
            "first": first,
            "last": last,
        },
    }


def _leaf_runs(nodes: Sequence[Node]) -> tuple[list[int], list[int]]:
    """For each node the places of its first and last leaf; nodes stand behind their parents, in reading order."""
    first, last, leaf = [0] * len(nodes), [0] * len(nodes), 0
    for number, node in enumerate(nodes):
        first[number] = last[number] = leaf
        leaf += not node.children
    for number in range(len(nodes) - 1, -1, -1):
        if nodes[number].children:
            last[number] = last[nodes[number].children[-1]]
    return first, last


def query_data(query: str, runs: Sequence[Run | tuple[Any, ...]]) -> dict[str, Any]:
    """
    Turn traces into what the page shows.

    :param query: The question.
    :param runs: One or more merges of its hits.
    :returns: A dictionary with `kind` ("query"), `query` and `runs`: `label`, `trace`, and `texts`, the documents'
        whole texts by id.
    :raises ValueError: If there is no run, or a trace is of another schema; the message says what to do.
    """
    if not runs:
        msg = "There is nothing to show: pass at least one run, a label and the trace of a BudgetAutoMergingRetriever."
        raise ValueError(msg)
    shown = []
    for run in (Run(*run) for run in runs):
        schema = run.trace.get("schema")
        if schema != SCHEMA:
            msg = (
                f"The trace of '{run.label}' has the schema {schema}; this page reads {SCHEMA}. Ask again with the "
                "BudgetAutoMergingRetriever of this version and pass its `trace`."
            )
            raise ValueError(msg)
        texts = dict(_text(document) for document in run.documents)
        shown.append({"label": run.label, "trace": dict(run.trace), "texts": texts})
    return {"kind": "query", "query": query, "runs": shown}


def _text(document: Document | Mapping[str, Any]) -> tuple[str, str]:
    if isinstance(document, Document):
        return document.id, document.content or ""
    return document["id"], document.get("content") or ""
