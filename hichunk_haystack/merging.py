# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Merging ranked hits upwards within a token budget: a pure function of hits, lengths and budget."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

# Thresholds are products of floats; a sum of whole tokens that equals one must not fail by a rounding error.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Ancestor:
    """
    What a merge must know of a node above a hit.

    :param id: The node's id.
    :param tokens: Its length in tokens.
    :param children: How many children it has.
    :param level: Its level; 0 for the root.
    """

    id: str
    tokens: int
    children: int
    level: int = 0


@dataclass(frozen=True, slots=True)
class Hit:
    """
    A retrieved node.

    :param id: The node's id.
    :param tokens: Its length in tokens.
    :param score: Its score, where it has one.
    :param source_id: The source it belongs to.
    :param ancestors: The nodes above it, its parent first, the root last; empty for a document without a tree.
    """

    id: str
    tokens: int
    score: float | None = None
    source_id: str = ""
    ancestors: tuple[Ancestor, ...] = ()


@dataclass(frozen=True)
class MergeOptions:
    """
    How to merge.

    :param policy: A key of `POLICIES`.
    :param budget_check: What must fit into the budget left for a merge into p: "net", the tokens it adds (len(p) less
        what is held under p), or "paper", all of len(p).
    :param min_children: Held children that a merge needs ("hichunk").
    :param theta_start: Share of the parent's length that the held children must have with an empty context.
    :param theta_end: The same with a full one.
    :param document_overhead: Tokens that each node costs besides its own (a citation line, a separator).
    :raises ValueError: If an option makes no sense; the message names it.
    """

    policy: str = "hichunk"
    budget_check: Literal["net", "paper"] = "net"
    min_children: int = 2
    theta_start: float = 1 / 3
    theta_end: float = 2 / 3
    document_overhead: int = 0

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            msg = f"policy is '{self.policy}'; it must be one of {', '.join(map(repr, POLICIES))}."
            raise ValueError(msg)
        if self.budget_check not in ("net", "paper"):
            msg = f"budget_check is '{self.budget_check}'; it must be 'net' or 'paper'."
            raise ValueError(msg)
        if self.min_children < 1:
            msg = f"min_children is {self.min_children}; it must be at least 1."
            raise ValueError(msg)
        if not 0 <= self.theta_start <= self.theta_end:
            msg = f"theta_start is {self.theta_start} and theta_end {self.theta_end}; 0 <= start <= end must hold."
            raise ValueError(msg)
        if self.document_overhead < 0:
            msg = f"document_overhead is {self.document_overhead}; it counts tokens, from 0 on."
            raise ValueError(msg)


@dataclass
class Held:
    """
    A node of the plan.

    :param id: The node's id.
    :param tokens: Its length in tokens; what is left of it when it is truncated.
    :param score: Best score of the hits that it stands for.
    :param rank: Place of the first hit that it stands for.
    :param source_id: The source it belongs to.
    :param hits: Ids of the hits that it stands for, in rank order.
    :param ancestors: The nodes above it, its parent first.
    :param merged: Whether it was not a hit itself, and so has to be fetched.
    :param truncated: Whether it has to be cut to `tokens`.
    """

    id: str
    tokens: int
    score: float | None
    rank: int
    source_id: str
    hits: list[str]
    ancestors: tuple[Ancestor, ...]
    merged: bool = False
    truncated: bool = False


@dataclass
class MergePlan:
    """
    What to return.

    :param nodes: An antichain (no node above another) in rank order, within the budget.
    :param used: Tokens that the nodes take.
    :param budget: Tokens that were allowed.
    :param steps: What happened, in order, as plain dicts.
    """

    nodes: list[Held]
    used: int
    budget: int
    steps: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Candidate:
    """
    A merge that is being considered.

    :param parent: The node to merge into.
    :param held_children: How many of its children are held.
    :param held_tokens: Sum of their lengths in tokens.
    :param fill: Share of the budget that is used.
    """

    parent: Ancestor
    held_children: int
    held_tokens: int
    fill: float


Policy = Callable[[Candidate, MergeOptions], tuple[bool, float]]


def _hichunk(candidate: Candidate, options: MergeOptions) -> tuple[bool, float]:
    """HiChunk's Auto-Merge (arXiv 2509.11552): enough children, and long enough for how full the context is."""
    share = options.theta_start + (options.theta_end - options.theta_start) * candidate.fill
    threshold = candidate.parent.tokens * share
    long_enough = candidate.held_tokens >= threshold - _ROUNDING * max(1.0, threshold)
    return candidate.held_children >= options.min_children and long_enough, threshold


POLICIES: dict[str, Policy] = {"hichunk": _hichunk}


def merge(
    hits: Iterable[Hit],
    budget: int,
    options: MergeOptions | None = None,
    *,
    available: Callable[[str], bool] | None = None,
) -> MergePlan:
    """
    Take hits in rank order and merge them upwards while the budget lasts.

    The rule is the Auto-Merge of HiChunk (arXiv 2509.11552). A hit that is held already, or that lies under a node that
    is held, is skipped; an only child stands for its parent; each hit that fits is held, and then its ancestors are
    tried one by one: a parent takes the place of all that is held under it when the policy says so and the budget can
    take it. A hit that does not fit is left out, and the next ones are tried.

    A hit that occurs twice counts once, with its best score. A hit with hits below it that are held takes their place.

    :param hits: Hits in rank order, best first.
    :param budget: The most tokens that may come out, overhead included.
    :param options: How to merge; HiChunk's rule with the net growth by default.
    :param available: Says of a node's id whether it can be merged into; by default all can.
    :returns: The plan.
    :raises ValueError: If the budget is below 1.

    ```python
    from hichunk_haystack.merging import Ancestor, Hit, merge

    section = Ancestor(id="section", tokens=300, children=3)
    hits = [Hit("a", 100, 0.9, "doc", (section,)), Hit("b", 100, 0.8, "doc", (section,))]
    print([node.id for node in merge(hits, budget=1000).nodes])  # ['section']
    ```
    """
    if budget < 1:
        msg = f"The token budget is {budget}; it must be at least 1."
        raise ValueError(msg)
    merging = _Merging(budget, options or MergeOptions(), available)
    for rank, hit in enumerate(_distinct(hits)):
        merging.take(hit, rank)
    nodes = sorted(merging.held.values(), key=lambda node: node.rank)
    return MergePlan(nodes, merging.used, budget, merging.steps)


def _distinct(hits: Iterable[Hit]) -> list[Hit]:
    """Each hit once, at its first place, with its best score."""
    found: dict[str, Hit] = {}
    for hit in hits:
        known = found.get(hit.id)
        if known is None:
            found[hit.id] = hit
        elif _best(known.score, hit.score) != known.score:
            found[hit.id] = Hit(known.id, known.tokens, hit.score, known.source_id, known.ancestors)
    return list(found.values())


def _best(*scores: float | None) -> float | None:
    return max((score for score in scores if score is not None), default=None)


class _Merging:
    """The state of one merge: what is held, and sums along the ancestors, so that each step costs the tree's depth."""

    def __init__(self, budget: int, options: MergeOptions, available: Callable[[str], bool] | None) -> None:
        self.budget = budget
        self.options = options
        self.available = available
        self.used = 0
        self.held: dict[str, Held] = {}
        self.steps: list[dict[str, Any]] = []
        # For each node: cost of all that is held below it; number and tokens of its held children; and those of its
        # children that are held or have something held below them.
        self.cost_below: dict[str, int] = {}
        self.held_children: dict[str, int] = {}
        self.held_tokens: dict[str, int] = {}
        self.branches: dict[str, dict[str, None]] = {}

    def cost(self, tokens: int) -> int:
        """Tokens that a node takes of the budget."""
        return tokens + self.options.document_overhead

    def take(self, hit: Hit, rank: int) -> None:
        """Hold a hit if it is new and fits, then climb."""
        holder = next((node for node in (hit.id, *(above.id for above in hit.ancestors)) if node in self.held), None)
        if holder is not None:
            self.held[holder].hits.append(hit.id)
            self.held[holder].score = _best(self.held[holder].score, hit.score)
            self.note("covered", hit, by=holder)
            return
        node = Held(hit.id, hit.tokens, hit.score, rank, hit.source_id, [hit.id], hit.ancestors)
        while node.ancestors and node.ancestors[0].children == 1 and self.can_take(node.ancestors[0]):
            parent = node.ancestors[0]
            node.id, node.tokens, node.ancestors, node.merged = parent.id, parent.tokens, node.ancestors[1:], True
        growth = self.cost(node.tokens) - self.cost_below.get(node.id, 0)
        if growth > self.budget - self.used:
            self.note("does_not_fit", hit, node=node.id, needs=growth, left=self.budget - self.used)
            return
        gone = self.below(node.id)
        if gone:
            node.rank = min(held.rank for held in gone)
            node.score = _best(node.score, *(held.score for held in gone))
            node.hits = [*(hit_id for held in gone for hit_id in held.hits), *node.hits]
        self.replace(node, gone)
        self.note("held", hit, node=node.id, tokens=node.tokens, replaced=[held.id for held in gone])
        self.climb(node)

    def can_take(self, parent: Ancestor) -> bool:
        """Whether a node may be fetched, and fits."""
        growth = self.cost(parent.tokens) - self.cost_below.get(parent.id, 0)
        return growth <= self.budget - self.used and (self.available is None or self.available(parent.id))

    def climb(self, node: Held) -> None:
        """Merge into the ancestors as far as they allow it."""
        while node.ancestors:
            parent = node.ancestors[0]
            candidate = Candidate(
                parent, self.held_children[parent.id], self.held_tokens[parent.id], self.used / self.budget
            )
            wanted, threshold = POLICIES[self.options.policy](candidate, self.options)
            growth = self.cost(parent.tokens) - self.cost_below[parent.id]
            needs = growth if self.options.budget_check == "net" else self.cost(parent.tokens)
            left = self.budget - self.used
            there = self.available is None or self.available(parent.id)
            merges = wanted and max(needs, growth) <= left and there
            step = {
                "action": "merged" if merges else "not_merged",
                "node": parent.id,
                "tokens": parent.tokens,
                "held_children": candidate.held_children,
                "children": parent.children,
                "held_tokens": candidate.held_tokens,
                "threshold": threshold,
                "needs": needs,
                "left": left,
                "available": there,
            }
            if not merges:
                self.steps.append({**step, "used": self.used})
                return
            gone = self.below(parent.id)
            first = next(child for child in gone if _is_child(child, parent))
            hits = [hit for child in gone for hit in child.hits]
            score = _best(*(child.score for child in gone))
            node = Held(
                parent.id, parent.tokens, score, first.rank, node.source_id, hits, node.ancestors[1:], merged=True
            )
            self.replace(node, gone)
            self.steps.append({**step, "replaced": [child.id for child in gone], "used": self.used})

    def replace(self, node: Held, gone: list[Held]) -> None:
        """Hold a node in the place of those below it."""
        for below in gone:
            self.count(self.held.pop(below.id), -1)
        self.held[node.id] = node
        self.count(node, 1)

    def count(self, node: Held, sign: int) -> None:
        """Add a node to the sums along its ancestors, or take it off."""
        cost = sign * self.cost(node.tokens)
        self.used += cost
        if node.ancestors:
            parent = node.ancestors[0].id
            self.held_children[parent] = self.held_children.get(parent, 0) + sign
            self.held_tokens[parent] = self.held_tokens.get(parent, 0) + sign * node.tokens
        child = node.id
        for above in node.ancestors:
            self.cost_below[above.id] = self.cost_below.get(above.id, 0) + cost
            if sign > 0:
                self.branches.setdefault(above.id, {})[child] = None
            child = above.id

    def below(self, node_id: str) -> list[Held]:
        """What is held below a node, in rank order; each branch is forgotten, since it is about to be replaced."""
        found = []
        waiting = list(self.branches.pop(node_id, ()))
        while waiting:
            branch = waiting.pop()
            if branch in self.held:
                found.append(self.held[branch])
            waiting += self.branches.pop(branch, ())
        return sorted(found, key=lambda node: node.rank)

    def note(self, action: str, hit: Hit, **details: Any) -> None:
        """Write down what became of a hit."""
        self.steps.append({"action": action, "hit": hit.id, "score": hit.score, **details, "used": self.used})


def _is_child(node: Held, parent: Ancestor) -> bool:
    return bool(node.ancestors) and node.ancestors[0].id == parent.id
