# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Merge policies, one function each, and the options of a merge."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypedDict

# Thresholds are products of floats; a sum of whole tokens that equals one must not fail by a rounding error.
_ROUNDING = 1e-9


class Condition(TypedDict):
    """
    A number that must reach another one, as the trace shows it.

    :param name: What it is about.
    :param has: The number that there is.
    :param needs: The number that it takes.
    :param met: Whether the one reaches the other.
    """

    name: str
    has: float
    needs: float
    met: bool


def at_least(name: str, has: float, needs: float) -> Condition:
    """
    Make a condition.

    :param name: What it is about.
    :param has: The number that there is.
    :param needs: The number that it takes; one that is a product of floats may be missed by a rounding error.
    :returns: The condition.
    """
    met = has >= needs or (isinstance(needs, float) and has >= needs - _ROUNDING * abs(needs))
    return {"name": name, "has": has, "needs": needs, "met": met}


class Candidate(NamedTuple):
    """
    A merge that is being considered: of a node that is held, and of its siblings, into their parent.

    :param tokens: The parent's length in tokens.
    :param children: How many children the parent has.
    :param level: The parent's level; 0 for the root.
    :param held_children: How many of its children are held.
    :param held_tokens: Sum of their lengths in tokens.
    :param fill: Share of the budget that is used, from 0 to 1.
    :param climbed: How many levels the node lies above the hit from which this climb started.
    :param only_child: Whether all that was climbed, this step included, led from an only child to its parent.
    """

    tokens: int
    children: int
    level: int
    held_children: int
    held_tokens: int
    fill: float
    climbed: int
    only_child: bool


@dataclass(frozen=True)
class MergeOptions:
    """
    How to merge.

    :param policy: A key of `POLICIES`.
    :param budget_check: What must fit into the budget left for a merge into p: "net", the tokens it adds (len(p) less
        what is held under p), or "paper", all of len(p).
    :param min_children: Held children that a merge needs ("hichunk").
    :param theta_start: Share of the parent's length that the held children must have with an empty context ("hichunk").
    :param theta_end: The same with a full one.
    :param threshold: Share of a parent's children that must be held ("ratio").
    :param parent_levels: How many levels above a hit to go ("parent").
    :param min_node_tokens: A node of fewer tokens is merged into its parent whatever the policy says, as long as the
        budget can take it: what is searched may be smaller than what is read.
    :param max_merge_level: Nothing is merged into a node above this level; 0 is the root.
    :param overflow: What happens to a hit that does not fit: "skip" leaves it out and tries the next ones, "stop" ends
        there, "truncate" cuts it to what is left and ends.
    :param order: Of the nodes that come out: "rank", or "document", which takes the sources by their best hit and
        inside of a source goes by position.
    :param top_parents: The best hit of each of so many best-ranked parents is taken before all other hits.
    :param max_share_per_source: The most that one source may take: up to 1 a share of the budget, above 1 a number of
        tokens.
    :param document_overhead: Tokens that each node costs besides its own (a citation line, a separator).
    :raises ValueError: If an option makes no sense; the message names it.
    """

    policy: str = "hichunk"
    budget_check: Literal["net", "paper"] = "net"
    min_children: int = 2
    theta_start: float = 1 / 3
    theta_end: float = 2 / 3
    threshold: float = 0.5
    parent_levels: int = 1
    min_node_tokens: int = 0
    max_merge_level: int = 0
    overflow: Literal["skip", "stop", "truncate"] = "skip"
    order: Literal["rank", "document"] = "rank"
    top_parents: int | None = None
    max_share_per_source: float | None = None
    document_overhead: int = 0

    def __post_init__(self) -> None:
        share = self.max_share_per_source
        _one_of("policy", self.policy, POLICIES)
        _one_of("budget_check", self.budget_check, ("net", "paper"))
        _one_of("overflow", self.overflow, ("skip", "stop", "truncate"))
        _one_of("order", self.order, ("rank", "document"))
        _check(
            0 <= self.theta_start <= self.theta_end,
            f"theta_start is {self.theta_start} and theta_end {self.theta_end}; 0 <= start <= end must hold.",
        )
        _check(0 < self.threshold <= 1, f"threshold is {self.threshold}; it must be above 0 and at most 1.")
        _check(self.min_children >= 1, f"min_children is {self.min_children}; it must be at least 1.")
        _check(self.parent_levels >= 1, f"parent_levels is {self.parent_levels}; it must be at least 1.")
        _check(
            self.min_node_tokens >= 0,
            f"min_node_tokens is {self.min_node_tokens}; it counts tokens, from 0 on, which sets no bound.",
        )
        _check(self.max_merge_level >= 0, f"max_merge_level is {self.max_merge_level}; the root's level is 0.")
        _check(
            self.top_parents is None or self.top_parents >= 1,
            f"top_parents is {self.top_parents}; it must be at least 1, or null for none.",
        )
        _check(
            share is None or 0 < share <= 1 or (share > 1 and share == int(share)),
            f"max_share_per_source is {share}; it must be a share above 0 and up to 1, or a whole number of tokens.",
        )
        _check(
            self.document_overhead >= 0,
            f"document_overhead is {self.document_overhead}; it counts tokens, from 0 on.",
        )

    def source_cap(self, budget: int) -> int:
        """
        Work out how much one source may take.

        :param budget: The token budget.
        :returns: Tokens, at least 1 and at most the budget.
        """
        share = self.max_share_per_source
        if share is None:
            return budget
        return max(1, int(budget * share + _ROUNDING)) if share <= 1 else min(budget, int(share))


Policy = Callable[[Candidate, MergeOptions], tuple[Condition, ...] | None]
"""Says what a merge takes besides room in the budget; `None` when it is out of the question."""


def hichunk(candidate: Candidate, options: MergeOptions) -> tuple[Condition, ...]:
    """
    HiChunk's Auto-Merge (arXiv 2509.11552): enough children, and long enough for how full the context is.

    :param candidate: The merge that is considered.
    :param options: `min_children`, `theta_start`, `theta_end`.
    :returns: Its conditions; none when a hit is its parent's only child, and so is the parent's text.
    """
    if candidate.only_child:
        return ()
    share = options.theta_start + (options.theta_end - options.theta_start) * candidate.fill
    return (
        at_least("children", candidate.held_children, options.min_children),
        at_least("tokens", candidate.held_tokens, candidate.tokens * share),
    )


def ratio(candidate: Candidate, options: MergeOptions) -> tuple[Condition, ...]:
    """
    Merge when a share of the children is held, however long they are; what LlamaIndex and Haystack do.

    :param candidate: The merge that is considered.
    :param options: `threshold`.
    :returns: The one condition.
    """
    return (at_least("children_share", candidate.held_children / max(1, candidate.children), options.threshold),)


def parent(candidate: Candidate, options: MergeOptions) -> tuple[Condition, ...] | None:
    """
    Always go so many levels up; what LangChain's ParentDocumentRetriever does.

    :param candidate: The merge that is considered.
    :param options: `parent_levels`.
    :returns: No condition up to that level.
    """
    return () if candidate.climbed < options.parent_levels else None


def none(candidate: Candidate, options: MergeOptions) -> None:
    """
    Never merge: the hits are packed into the budget.

    :param candidate: The merge that is considered.
    :param options: Not used.
    """


POLICIES: dict[str, Policy] = {"hichunk": hichunk, "ratio": ratio, "parent": parent, "none": none}
"""All policies by name. A new one is a function here and a line in this table."""


def _one_of(name: str, value: str, allowed: "dict[str, Policy] | tuple[str, ...]") -> None:
    _check(value in allowed, f"{name} is '{value}'; it must be one of {', '.join(map(repr, allowed))}.")


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)
