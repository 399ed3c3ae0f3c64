# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""The trace of a merge: all that a page needs to draw it, in plain dicts. Its schema is in the retriever's docs."""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from haystack import Document

from hichunk_haystack.components.builders.citations import headings_of, short_names, source_of
from hichunk_haystack.joining import Part
from hichunk_haystack.nodes import ANCESTORS, LEVEL
from hichunk_haystack.plans import Held, Hit, MergePlan

SCHEMA = 1
"""Version of the trace's schema."""

_EXCERPT = 160


def trace_merge(
    plan: MergePlan,
    parts: Sequence[Part],
    used: int,
    documents: Mapping[str, Document],
    options: dict[str, Any],
    missing: Sequence[str],
) -> dict[str, Any]:
    """
    Tell what happened.

    :param plan: The plan.
    :param parts: What is returned.
    :param used: Tokens that it takes.
    :param documents: Documents by id: all hits, and the nodes that were read.
    :param options: The options in force.
    :param missing: Ids of parents that are not in the store.
    :returns: The trace; it can be dumped as JSON.
    """
    outcomes = _outcomes(plan)
    hits = {hit.id: _hit(rank, hit, documents[hit.id], *outcomes[hit.id]) for rank, hit in enumerate(plan.hits, 1)}
    return {
        "schema": SCHEMA,
        "token_budget": plan.budget,
        "tokens_used": used,
        "options": options,
        "hits": list(hits.values()),
        "ancestors": _ancestors(plan.hits, documents),
        "sources": _sources(plan.hits, documents),
        "steps": plan.steps,
        "nodes": [_node(node, hits.get(node.id) or _seen(documents[node.id])) for node in plan.nodes],
        "documents": [
            {"id": part.document.id, "nodes": part.nodes, "tokens": part.tokens, "start": part.start} for part in parts
        ],
        "missing": list(missing),
    }


def _hit(rank: int, hit: Hit, document: Document, outcome: str, reason: str | None, node: str | None) -> dict[str, Any]:
    return {
        "rank": rank,
        "id": hit.id,
        "source_id": hit.source_id,
        "tokens": hit.tokens,
        "score": hit.score,
        "start": hit.start,
        "end": hit.end,
        "ancestors": [above.id for above in hit.ancestors],
        "outcome": outcome,
        "reason": reason,
        "node": node,
        **_seen(document),
    }


def _node(node: Held, seen: dict[str, Any]) -> dict[str, Any]:
    return {
        "rank": node.rank + 1,
        "id": node.id,
        "source_id": node.source_id,
        "tokens": node.tokens,
        "score": node.score,
        "start": node.start,
        "end": node.end,
        "merged": node.merged,
        "truncated": node.truncated,
        "hits": node.hits,
        "level": seen["level"],
        "headings": seen["headings"],
        "excerpt": seen["excerpt"],
    }


def _seen(document: Document) -> dict[str, Any]:
    """What a reader knows a document by."""
    return {
        "level": document.meta.get(LEVEL),
        "headings": headings_of(document),
        "excerpt": (document.content or "")[:_EXCERPT],
    }


def _outcomes(plan: MergePlan) -> dict[str, tuple[str, str | None, str | None]]:
    """What became of each hit, why it was left out, and which node stands for it."""
    outcomes: dict[str, tuple[str, str | None, str | None]] = {}
    for step in plan.steps:
        if step["action"] == "does_not_fit":
            outcomes[step["hit"]] = ("left_out", step["reason"], None)
        elif step["action"] == "not_tried":
            outcomes[step["hit"]] = ("left_out", "ended", None)
    for node in plan.nodes:
        for hit in node.hits:
            outcomes[hit] = (
                "truncated" if node.truncated else "returned" if node.id == hit else "merged",
                None,
                node.id,
            )
    return outcomes


def _ancestors(hits: Sequence[Hit], documents: Mapping[str, Document]) -> dict[str, dict[str, Any]]:
    """The nodes above the hits, by id."""
    found: dict[str, dict[str, Any]] = {}
    guessed: set[str] = set()
    for hit in hits:
        document = documents[hit.id]
        headings = headings_of(document)
        links = {link["id"]: link for link in document.meta.get(ANCESTORS) or ()}
        parent = None
        for above in reversed(hit.ancestors):
            known = found.get(above.id)
            if known is None:
                titles = links.get(above.id, {}).get("titles")
                # Trees from before links told the number of titles: those that all hits below share, one a level.
                if titles is None and above.id not in documents:
                    guessed.add(above.id)
                path = headings[: above.level if titles is None else titles]
                found[above.id] = {
                    "level": above.level,
                    "tokens": above.tokens,
                    "children": above.children,
                    "start": above.start,
                    "end": above.end,
                    "parent": parent,
                    "headings": headings_of(documents[above.id]) if above.id in documents else path,
                }
            elif above.id in guessed:
                pairs = zip(known["headings"], headings, strict=False)
                known["headings"] = [title for title, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]
            parent = above.id
    return found


def _sources(hits: Sequence[Hit], documents: Mapping[str, Document]) -> dict[str, str]:
    """Short names of the sources hit, by id; empty where a source has nothing but its id."""
    names = short_names([documents[hit.id] for hit in hits], 1)
    return {hit.source_id: names[source_of(documents[hit.id])] for hit in hits}
