# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""
The merge rule a second time, as slow and as close to the words of the paper and of our docs as can be: an oracle.

The context is a list of passages, which are texts; every length, every "what is held under p" is worked out anew from
the texts whenever it is needed, and thresholds are fractions. A text is a list of words, one token each.
"""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any


@dataclass(eq=False)
class Text:
    """A node of a tree of texts; each word of a source is its place in the source."""

    id: str
    words: list[str]
    parent: "Text | None" = None
    children: list["Text"] = field(default_factory=list)

    def __str__(self) -> str:
        return self.id


@dataclass(eq=False)
class Passage:
    """A node in the context, with the words of it that are there."""

    node: Text
    words: list[str]
    place: int
    hits: list[Text]


@dataclass
class Rule:
    """The options, each under the name it has in `MergeOptions`."""

    policy: str = "hichunk"
    budget_check: str = "net"
    min_children: int = 2
    theta_start: Fraction = Fraction(1, 3)
    theta_end: Fraction = Fraction(2, 3)
    threshold: Fraction = Fraction(1, 2)
    parent_levels: int = 1
    min_node_tokens: int = 0
    max_merge_level: int = 0
    overflow: str = "skip"
    order: str = "rank"
    top_parents: int | None = None
    max_share_per_source: Fraction | None = None
    document_overhead: int = 0


def above(node: Text) -> list[Text]:
    return [] if node.parent is None else [node.parent, *above(node.parent)]


def root(node: Text) -> Text:
    return [node, *above(node)][-1]


def span(node: Text) -> tuple[int, int]:
    """Places of its first word, and behind its last, in its source."""
    start = root(node).words.index(node.words[0])
    return start, start + len(node.words)


def naive_merge(hits: list[Text], budget: int, rule: Rule) -> list[Passage]:
    """What comes out for hits in rank order."""
    ranked = [hit for number, hit in enumerate(hits) if hit not in hits[:number]]
    context: list[Passage] = []
    for hit in in_turn(ranked, rule.top_parents):
        if not take(context, hit, ranked.index(hit), budget, rule):
            break
    for hit in ranked:
        if not context and not cut(context, hit, ranked.index(hit), budget, rule):
            # No room beside the overhead: then it counts for nothing.
            cut(context, hit, ranked.index(hit), budget, replace(rule, document_overhead=0))
    # What lies under a held passage counts for it, even behind the hit at which it all ended.
    for hit in ranked:
        for passage in context:
            whole = passage.words == passage.node.words
            if whole and passage.node in [hit, *above(hit)] and hit not in passage.hits:
                passage.hits.append(hit)
    for passage in context:
        passage.hits.sort(key=ranked.index)
    if rule.order == "rank":
        return sorted(context, key=lambda passage: passage.place)
    sources: list[Text] = []
    for hit in ranked:
        if root(hit) not in sources and any(hit in passage.hits for passage in context):
            sources.append(root(hit))
    in_order = sorted(context, key=lambda passage: (span(passage.node), passage.place))
    return sorted(in_order, key=lambda passage: sources.index(root(passage.node)))


def take(context: list[Passage], hit: Text, place: int, budget: int, rule: Rule) -> bool:
    """One hit; `False` when it all ends there."""
    holders = [passage for passage in context if passage.node in [hit, *above(hit)]]
    if holders:
        holders[0].hits.append(hit)
    elif added(context, hit, rule) <= left_for(context, hit, budget, rule):
        put(context, Passage(hit, hit.words, place, [hit]))
        climb(context, hit, budget, rule)
    elif added(context, hit, rule) > budget - used(context, rule):
        if rule.overflow == "stop":
            return False
        if rule.overflow == "truncate" and not under(context, hit):
            return not cut(context, hit, place, budget, rule)
    # Where only the share of its source is used up, it is left out, whatever the overflow.
    return True


def cut(context: list[Passage], hit: Text, place: int, budget: int, rule: Rule) -> bool:
    """As much of a hit as there is room for; `False` when there is none."""
    room = left_for(context, hit, budget, rule) - rule.document_overhead
    if room >= 1:
        context.append(Passage(hit, hit.words[:room], place, [hit]))
    return room >= 1


def in_turn(hits: list[Text], top_parents: int | None) -> list[Text]:
    """The best hit of each of the best parents first."""
    best: list[Text] = []
    seen: list[Text] = []
    for hit in hits:
        parent = hit.parent or hit
        if parent not in seen and len(seen) < (top_parents or 0):
            seen.append(parent)
            best.append(hit)
    return best + [hit for hit in hits if hit not in best]


def cost(words: list[str], rule: Rule) -> int:
    return len(words) + rule.document_overhead


def used(context: list[Passage], rule: Rule) -> int:
    return sum(cost(passage.words, rule) for passage in context)


def under(context: list[Passage], node: Text) -> list[Passage]:
    return [passage for passage in context if node in above(passage.node)]


def added(context: list[Passage], node: Text, rule: Rule) -> int:
    """What the context grows by when the node takes the place of all that is held under it."""
    return cost(node.words, rule) - used(under(context, node), rule)


def left_for(context: list[Passage], node: Text, budget: int, rule: Rule) -> int:
    """What is left of the budget, and of what the node's source may take of it."""
    left = budget - used(context, rule)
    share = rule.max_share_per_source
    if share is None:
        return left
    most = max(1, int(budget * share)) if share <= 1 else int(share)
    return min(left, most - used([held for held in context if root(held.node) is root(node)], rule))


def put(context: list[Passage], passage: Passage) -> None:
    """A passage takes the place of all that is held under it."""
    gone = under(context, passage.node)
    passage.place = min([passage.place, *(held.place for held in gone)])
    passage.hits = [*(hit for held in gone for hit in held.hits), *passage.hits]
    for held in gone:
        context.remove(held)
    context.append(passage)


def climb(context: list[Passage], hit: Text, budget: int, rule: Rule) -> None:
    only_children = 0
    while above(hit)[only_children:] and len(above(hit)[only_children].children) == 1:
        only_children += 1
    for climbed, parent in enumerate(above(hit)):
        only_child = climbed < only_children
        below = [hit, *above(hit)][climbed]
        small = len(below.words) < rule.min_node_tokens
        if not small and not wanted(context, parent, climbed, only_child, budget, rule):
            return
        if added(context, parent, rule) > left_for(context, parent, budget, rule):
            return
        left = budget - used(context, rule)
        if rule.budget_check == "paper" and not only_child and cost(parent.words, rule) > left:
            return
        if len(above(parent)) < rule.max_merge_level:
            return
        children = [passage for passage in context if passage.node in parent.children]
        first = min(passage.place for passage in children)
        merged = Passage(parent, parent.words, first, [])
        put(context, merged)
        merged.place = first


def wanted(context: list[Passage], parent: Text, climbed: int, only_child: bool, budget: int, rule: Rule) -> bool:
    """What each policy asks for."""
    children = [passage for passage in context if passage.node in parent.children]
    words = sum(len(passage.words) for passage in children)
    if rule.policy == "none":
        return False
    if rule.policy == "parent":
        return climbed < rule.parent_levels
    if rule.policy == "ratio":
        return Fraction(len(children), len(parent.children)) >= rule.threshold
    fill = Fraction(used(context, rule), budget)
    share = rule.theta_start + (rule.theta_end - rule.theta_start) * fill
    return only_child or (len(children) >= rule.min_children and words >= len(parent.words) * share)


def as_options(rule: Rule) -> dict[str, Any]:
    """The same for `MergeOptions`."""
    return {name: float(value) if isinstance(value, Fraction) else value for name, value in vars(rule).items()}
