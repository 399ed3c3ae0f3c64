# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What goes into a merge, and the plan that comes out of it."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Ancestor(NamedTuple):
    """
    What a merge must know of a node above a hit.

    :param id: The node's id.
    :param tokens: Its length in tokens.
    :param children: How many children it has.
    :param level: Its level; 0 for the root.
    :param start: Offset of its first character in the source, where known.
    :param end: Offset after its last character.
    """

    id: str
    tokens: int
    children: int
    level: int = 0
    start: int | None = None
    end: int | None = None


class Hit(NamedTuple):
    """
    A retrieved node.

    :param id: The node's id.
    :param tokens: Its length in tokens.
    :param score: Its score, where it has one.
    :param source_id: The source it belongs to; empty for a document that is a source of its own.
    :param ancestors: The nodes above it, its parent first, the root last; empty for a document without a tree.
    :param start: Offset of its first character in the source, where known.
    :param end: Offset after its last character.
    """

    id: str
    tokens: int
    score: float | None = None
    source_id: str = ""
    ancestors: tuple[Ancestor, ...] = ()
    start: int | None = None
    end: int | None = None


def better(score: float | None, other: float | None) -> bool:
    """
    Compare scores, any of which is better than none.

    :param score: A score.
    :param other: Another one.
    :returns: Whether the first is better.
    """
    return score is not None and (other is None or score > other)


@dataclass(slots=True)
class Held:
    """
    A node of a plan.

    :param id: The node's id.
    :param tokens: Its length in tokens; what is left of it when it is truncated.
    :param score: Best score of the hits that it stands for.
    :param rank: Its place, from 0 on: that of the hit which it took the place of.
    :param source_id: The source it belongs to.
    :param ranks: Places of the hits that it stands for.
    :param start: Offset of its first character in the source, where known.
    :param end: Offset after its last character.
    :param merged: Whether it was not a hit itself, and so has to be fetched.
    :param truncated: Whether it has to be cut to `tokens`.
    :param hits: Ids of the hits that it stands for, in rank order.
    """

    id: str
    tokens: int
    score: float | None
    rank: int
    source_id: str
    ranks: list[int]
    start: int | None = None
    end: int | None = None
    merged: bool = False
    truncated: bool = False
    hits: list[str] = field(default_factory=list)

    def stand_for(self, hit: Hit, rank: int) -> None:
        """
        Count a hit that is covered by this node.

        :param hit: The hit.
        :param rank: Its place.
        """
        self.ranks.append(rank)
        if better(hit.score, self.score):
            self.score = hit.score


@dataclass
class MergePlan:
    """
    What to return.

    :param nodes: An antichain (no node above another) within the budget, in the order asked for.
    :param used: Tokens that the nodes take, overhead included.
    :param budget: Tokens that were allowed.
    :param hits: The hits, each once, in rank order.
    :param steps: What happened, in order, as plain dicts.
    """

    nodes: list[Held]
    used: int
    budget: int
    hits: list[Hit]
    steps: list[dict[str, Any]]
