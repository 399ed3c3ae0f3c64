# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Merging ranked hits upwards within a token budget: a pure function of hits, lengths and budget."""

from collections.abc import Callable, Iterable
from typing import Any

from hichunk_haystack.plans import Ancestor, Held, Hit, MergePlan, better
from hichunk_haystack.policies import POLICIES, Candidate, Condition, MergeOptions, at_least

__all__ = ["Ancestor", "Held", "Hit", "MergeOptions", "MergePlan", "merge"]


def merge(
    hits: Iterable[Hit],
    budget: int,
    options: MergeOptions | None = None,
    *,
    available: Callable[[str], bool] | None = None,
    cut: Callable[[str, int], int] | None = None,
) -> MergePlan:
    """
    Take hits in rank order and merge them upwards while the budget lasts.

    The rule is the Auto-Merge of HiChunk (arXiv 2509.11552), with other policies in the place of its conditions where
    the options say so. A hit that is held already, or that lies under a node that is held, is skipped; each hit that
    fits is held, and then its ancestors are tried one by one: a parent takes the place of all that is held under it
    when the policy says so and the budget can take it.

    A hit that occurs twice counts once, with its best score. A hit with hits below it that are held takes their place.
    When no hit fits, the best one is cut to the budget, so that the answer is not empty, even if nothing is left then
    for its overhead.

    It takes time in proportion to the number of hits and the depth of their trees, but for sorting.

    :param hits: Hits in rank order, best first.
    :param budget: The most tokens that may come out, overhead included.
    :param options: How to merge; HiChunk's rule with the net growth by default.
    :param available: Says of a node's id whether it can be merged into; by default all can.
    :param cut: Says to how many tokens a hit can be cut, given its id and the most that is allowed (0 when it can't
        be); by default to just what is allowed.
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
    merging = _Merging(budget, options or MergeOptions(), available, cut)
    ranked = _distinct(hits)
    for rank in _turns(ranked, merging.options.top_parents):
        merging.take(ranked[rank], rank)
    if not merging.held:
        # Something is better than nothing: the best hit that can be cut. Where the overhead would leave no room for it,
        # it counts for nothing: what shows the answer has to do without a citation line.
        if merging.room("") <= merging.overhead:
            merging.overhead = 0
        any(merging.truncate(hit, rank) for rank, hit in enumerate(ranked))
    merging.count_left_out()
    nodes = list(merging.held.values())
    for node in nodes:
        node.ranks.sort()
        node.hits = [ranked[rank].id for rank in node.ranks]
    ordered = _by_position(nodes) if merging.options.order == "document" else sorted(nodes, key=_rank)
    return MergePlan(ordered, merging.used, budget, ranked, merging.steps)


def _distinct(hits: Iterable[Hit]) -> list[Hit]:
    """Each hit once, at its first place, with its best score."""
    found: dict[str, Hit] = {}
    for hit in hits:
        known = found.setdefault(hit.id, hit)
        if known is not hit and better(hit.score, known.score):
            found[hit.id] = known._replace(score=hit.score)
    return list(found.values())


def _turns(hits: list[Hit], top_parents: int | None) -> Iterable[int]:
    """Ranks in the order in which hits are taken: the best hit of each of the best parents first."""
    if top_parents is None:
        return range(len(hits))
    best: dict[str, int] = {}
    for rank, hit in enumerate(hits):
        best.setdefault(hit.ancestors[0].id if hit.ancestors else hit.id, rank)
    first = list(best.values())[:top_parents]
    return [*first, *sorted(set(range(len(hits))).difference(first))]


def _by_position(nodes: list[Held]) -> list[Held]:
    """Sources by their best hit, nodes of a source by position; those without a position at its end."""
    best: dict[str, int] = {}
    for node in nodes:
        best[node.source_id] = min(node.ranks[0], best.get(node.source_id, node.ranks[0]))
    return sorted(
        nodes,
        key=lambda node: (best[node.source_id], node.start is None, node.start or 0, node.end or 0, node.rank),
    )


def _rank(node: Held) -> int:
    return node.rank


class _Node:
    """A node that the hits have made known, with sums over what is held below it."""

    held: Held | None = None
    cost_below = 0
    held_children = 0
    held_tokens = 0

    def __init__(self, link: Ancestor | Hit, parent: "_Node | None") -> None:
        self.link = link
        self.parent = parent


class _Merging:
    """The state of one merge. Each step costs the tree's depth; what is replaced is never looked at again."""

    def __init__(
        self,
        budget: int,
        options: MergeOptions,
        available: Callable[[str], bool] | None,
        cut: Callable[[str, int], int] | None,
    ) -> None:
        self.budget = budget
        self.options = options
        self.overhead = options.document_overhead
        self.policy = POLICIES[options.policy]
        self.available = available
        self.cut = cut
        self.source_cap = options.source_cap(budget) if options.max_share_per_source is not None else None
        self.limited = bool(options.max_merge_level or self.source_cap or available)
        self.used = 0
        self.used_by: dict[str, int] = {}
        self.held: dict[str, Held] = {}
        self.known: dict[str, _Node] = {}
        # Not in the nodes, which name their parents: without circles they are freed as soon as the merge is done.
        self.branches: dict[str, list[_Node]] = {}
        self.left_out: list[tuple[Hit, int]] = []
        self.ended = False
        self.steps: list[dict[str, Any]] = []

    def room(self, source_id: str) -> int:
        """Tokens that a source may still take."""
        left = self.budget - self.used
        return left if self.source_cap is None else min(left, self.source_cap - self.used_by.get(source_id, 0))

    def take(self, hit: Hit, rank: int) -> None:
        """Hold a hit if it is new and fits, then climb."""
        node = self.known.get(hit.id)
        holder = self.holder(hit, node)
        if holder is not None and not holder.truncated:
            holder.stand_for(hit, rank)
            self.note("covered", hit, node=holder.id)
            return
        if self.ended:
            self.note("not_tried", hit)
            self.left_out.append((hit, rank))
            return
        source, left = hit.source_id or hit.id, self.budget - self.used
        growth = hit.tokens + self.overhead - (0 if node is None else node.cost_below)
        room = left if self.source_cap is None else self.room(source)
        if growth > room:
            reason = "budget" if growth > left else "source_share"
            overflow = self.options.overflow if reason == "budget" else "skip"
            if overflow == "truncate" and self.truncate(hit, rank):
                return
            self.note("does_not_fit", hit, reason=reason, needs=growth, left=room)
            self.left_out.append((hit, rank))
            self.ended = overflow == "stop"
            return
        gone: list[Held] = []
        if node is None:
            node = self.make_known(hit)
        else:
            gone = self.below(node)
        place = min(rank, gone[0].rank) if gone else rank
        held = Held(hit.id, hit.tokens, hit.score, place, source, [rank], hit.start, hit.end)
        self.hold(node, held, gone)
        self.note("held", hit, node=hit.id, tokens=hit.tokens, replaced=[below.id for below in gone])
        self.climb(node, held)

    def holder(self, hit: Hit, node: _Node | None) -> Held | None:
        """What is held of the hit and the nodes above it."""
        if node is None:
            for link in hit.ancestors:
                node = self.known.get(link.id)
                if node is not None:
                    break
        while node is not None and node.held is None:
            node = node.parent
        return None if node is None else node.held

    def count_left_out(self) -> None:
        """Hits that were left out, but lie under what is held in the end, count for it."""
        for hit, rank in self.left_out:
            holder = self.holder(hit, self.known.get(hit.id))
            if holder is not None and not holder.truncated and rank != holder.rank:
                holder.stand_for(hit, rank)

    def truncate(self, hit: Hit, rank: int) -> bool:
        """Hold a hit cut to the room that there is, and end; not one above what is held, which would be lost."""
        source = hit.source_id or hit.id
        allowed = self.room(source) - self.overhead
        node = self.known.get(hit.id)
        if allowed < 1 or (node is not None and self.below(node)):
            return False
        tokens = min(hit.tokens, allowed) if self.cut is None else min(self.cut(hit.id, allowed), allowed)
        if tokens < 1:
            return False
        cut = tokens < hit.tokens
        held = Held(hit.id, tokens, hit.score, rank, source, [rank], hit.start, hit.end, truncated=cut)
        self.hold(node or self.make_known(hit), held, [])
        action = "truncated" if cut else "held"
        self.note(action, hit, node=hit.id, tokens=tokens, of=hit.tokens, allowed=allowed, replaced=[])
        self.ended = True
        return True

    def climb(self, node: _Node, held: Held) -> None:
        """Merge into the ancestors as far as they allow it."""
        options, hit, climbed, only_child = self.options, held.id, 0, True
        while (parent := node.parent) is not None:
            link = parent.link
            assert isinstance(link, Ancestor)
            only_child = only_child and link.children == 1
            candidate = Candidate(
                link.tokens, link.children, link.level, parent.held_children, parent.held_tokens,
                self.used / self.budget, climbed, only_child,
            )  # fmt: skip
            asked = () if held.tokens < options.min_node_tokens else self.policy(candidate, options)
            if asked is None:
                return
            growth, left = link.tokens + self.overhead - parent.cost_below, self.budget - self.used
            # An only child has all of its parent's text: nothing more has to be taken in, whole or not.
            needs = growth if options.budget_check == "net" or only_child else link.tokens + self.overhead
            conditions = [*asked, at_least("budget", left, needs)]
            if self.limited:
                conditions += self.limits(link, growth, held.source_id)
            merges = False not in [condition["met"] for condition in conditions]
            step: dict[str, Any] = {
                "action": "merged" if merges else "not_merged",
                "hit": hit,
                "node": link.id,
                "level": link.level,
                "tokens": link.tokens,
                "children": link.children,
                "held_children": parent.held_children,
                "held_tokens": parent.held_tokens,
                "threshold": asked[-1]["needs"] if asked else None,
                "needs": needs,
                "left": left,
                "conditions": conditions,
                "used": self.used,
            }
            self.steps.append(step)
            if not merges:
                return
            gone = self.below(parent)
            place = next(below.rank for below in gone if self.known[below.id].parent is parent)
            held = Held(link.id, link.tokens, None, place, held.source_id, [], link.start, link.end, merged=True)
            self.hold(parent, held, gone)
            step["used"], step["replaced"] = self.used, [below.id for below in gone]
            node, climbed = parent, climbed + 1

    def limits(self, parent: Ancestor, growth: int, source_id: str) -> list[Condition]:
        """What a merge is bound by besides the policy and the budget."""
        limits = []
        if self.options.max_merge_level:
            limits.append(at_least("level", parent.level, self.options.max_merge_level))
        if self.source_cap is not None:
            limits.append(at_least("source_share", self.source_cap - self.used_by.get(source_id, 0), growth))
        if self.available is not None:
            limits.append(at_least("in_store", int(self.available(parent.id)), 1))
        return limits

    def hold(self, node: _Node, held: Held, gone: list[Held]) -> None:
        """Hold a node in the place of those below it."""
        growth = held.tokens + self.overhead - node.cost_below
        for below in gone:
            if better(below.score, held.score):
                held.score = below.score
            held.ranks += below.ranks
            self.known[below.id].held = None
            del self.held[below.id]
        node.held = self.held[held.id] = held
        node.cost_below = 0
        self.used += growth
        if self.source_cap is not None:
            # What a merge replaces is of the same source.
            self.used_by[held.source_id] = self.used_by.get(held.source_id, 0) + growth
        above = node.parent
        if above is not None:
            above.held_children += 1
            above.held_tokens += held.tokens
        while above is not None:
            above.cost_below += growth
            above = above.parent

    def below(self, node: _Node) -> list[Held]:
        """What is held below a node, in rank order."""
        found = []
        waiting = self.branches.get(node.link.id, [])[:]
        while waiting:
            known = waiting.pop()
            if known.held is not None:
                found.append(known.held)
            else:
                waiting += self.branches.get(known.link.id, ())
        return sorted(found, key=_rank)

    def make_known(self, hit: Hit) -> _Node:
        """The node of a hit, linked to those above it."""
        above, new = None, 0
        for link in hit.ancestors:
            above = self.known.get(link.id)
            if above is not None:
                above.link = link  # it may have been known as a hit only, which does not tell its children
                break
            new += 1
        down: list[Ancestor | Hit] = [*hit.ancestors[:new][::-1], hit]
        for new_link in down:
            node = self.known[new_link.id] = _Node(new_link, above)
            if above is not None:
                siblings = self.branches.get(above.link.id)
                if siblings is None:
                    self.branches[above.link.id] = [node]
                else:
                    siblings.append(node)
            above = node
        return node

    def note(self, action: str, hit: Hit, **details: Any) -> None:
        """Write down what became of a hit."""
        self.steps.append({"action": action, "hit": hit.id, "score": hit.score, **details, "used": self.used})
