# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Joining documents that touch in their source."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from haystack import Document

from hichunk_haystack.nodes import ANCESTORS, BLOCK_SIZE, CHILDREN, LEVEL, PARENT, TREE_ID
from hichunk_haystack.weights import weigh

JOINED = "joined"
"""Meta key of a joined document: the ids of the nodes that it is made of."""

TRUNCATED = "truncated"
"""Meta key that is there, and true, where the end of a node is missing."""


@dataclass
class Part:
    """
    A document and where it stands.

    :param document: The document.
    :param tokens: What it takes of the budget.
    :param start: Offset of its first character in its source; `None` where that is not known.
    :param source_id: Its source.
    :param nodes: Ids of the nodes that it is made of.
    """

    document: Document
    tokens: int
    start: int | None
    source_id: str
    nodes: list[str]

    @property
    def text(self) -> str:
        """The document's text."""
        return self.document.content or ""


def join_touching(parts: Sequence[Part], count: Callable[[Sequence[str]], list[int]], overhead: int = 0) -> list[Part]:
    """
    Join neighbours of one source that touch or overlap; what overlaps is there once.

    A joined document may count more tokens than its parts do together with some tokenizers; there they stay apart, so
    that joining never uses up more of a budget.

    :param parts: Documents, those of a source together and by position.
    :param count: Counts the tokens of texts.
    :param overhead: Tokens that each document costs besides its own.
    :returns: Documents in the same order.
    """
    groups: list[_Group] = []
    for part in parts:
        if not groups or not groups[-1].add(part):
            groups.append(_Group(part))
    several = [group for group in groups if len(group.parts) > 1]
    counts = iter(count(["".join(group.pieces) for group in several]) if several else [])
    result: list[Part] = []
    for group in groups:
        text, tokens = "".join(group.pieces), next(counts) if len(group.parts) > 1 else 0
        weight = weigh(text, tokens)
        together = sum(part.tokens + overhead for part in group.parts)
        if len(group.parts) > 1 and weight + overhead <= together:
            result.append(_joined(group.parts, text, tokens, weight))
        else:
            result += group.parts
    return result


class _Group:
    """Parts that follow on each other."""

    def __init__(self, part: Part) -> None:
        self.parts = [part]
        self.pieces = [part.text]
        # The part that reaches furthest.
        self.last = part

    def add(self, part: Part) -> bool:
        """Take in a part, if it follows on the others."""
        last = self.last
        if last.start is None or part.start is None or last.source_id != part.source_id:
            return False
        if last.document.meta.get(TREE_ID) != part.document.meta.get(TREE_ID):
            return False
        # How much of the part is there already; offsets that are not true of the texts join nothing.
        overlap = last.start + len(last.text) - part.start
        if overlap < 0 or not part.text.startswith(last.text[part.start - last.start :][: len(part.text)]):
            return False
        self.parts.append(part)
        if overlap < len(part.text):
            self.pieces.append(part.text[overlap:])
            self.last = part
        return True


def _joined(group: list[Part], text: str, tokens: int, weight: int) -> Part:
    first, metas = group[0], [part.document.meta for part in group]
    nodes = [node for part in group for node in part.nodes]
    # It is no node of the tree: what says so of its first part goes.
    meta: dict[str, Any] = {
        key: value
        for key, value in metas[0].items()
        if key not in (LEVEL, PARENT, CHILDREN, BLOCK_SIZE, ANCESTORS, "split_id", "_split_overlap")
    }
    assert first.start is not None
    meta |= {
        "split_idx_start": first.start,
        "split_idx_end": first.start + len(text),
        "token_count": tokens,
        JOINED: nodes,
    }
    if any(TRUNCATED in path for path in metas):
        meta[TRUNCATED] = True
    if isinstance(meta.get("headings"), list):
        paths = zip(*(path.get("headings") or [] for path in metas), strict=False)
        shared = takewhile(lambda titles: all(title == titles[0] for title in titles), paths)
        meta["headings"] = [titles[0] for titles in shared]
    scores = [part.document.score for part in group if part.document.score is not None]
    document = replace(
        first.document,
        id=hashlib.blake2b("\n".join(nodes).encode(), digest_size=16).hexdigest(),
        content=text,
        meta=meta,
        embedding=None,
        sparse_embedding=None,
        score=max(scores, default=None),
    )
    return Part(document, weight, first.start, first.source_id, nodes)
