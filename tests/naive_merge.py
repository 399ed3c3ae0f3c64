# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""
The merge rule a second time, as slow and as close to the paper's words as can be: an oracle for the fast one.

The context is a list of nodes that are texts; every length, every "what is held under p" is worked out anew from the
texts whenever it is needed. A text is a list of words, one token each.
"""

from dataclasses import dataclass, field
from fractions import Fraction


@dataclass
class Text:
    """A node of a tree of texts."""

    id: str
    words: list[str]
    parent: "Text | None" = None
    children: list["Text"] = field(default_factory=list)


def above(node: Text) -> list[Text]:
    return [] if node.parent is None else [node.parent, *above(node.parent)]


def naive_merge(hits: list[Text], budget: int, *, net: bool = True, min_children: int = 2) -> list[Text]:
    """The rule of arXiv 2509.11552 with thresholds of 1/3 and 2/3."""
    context: list[Text] = []

    def used() -> int:
        return sum(len(node.words) for node in context)

    def under(node: Text) -> list[Text]:
        return [held for held in context if node in above(held)]

    def growth(node: Text) -> int:
        return len(node.words) - sum(len(held.words) for held in under(node))

    def put(node: Text, at: int, gone: list[Text]) -> None:
        context.insert(at, node)
        for held in gone:
            context.remove(held)

    for original in hits:
        hit = original
        if hit in context or any(node in context for node in above(hit)):
            continue
        while hit.parent is not None and len(hit.parent.children) == 1 and growth(hit.parent) <= budget - used():
            hit = hit.parent
        if growth(hit) > budget - used():
            continue
        gone = under(hit)
        put(hit, context.index(gone[0]) if gone else len(context), gone)
        while hit.parent is not None:
            parent = hit.parent
            held = [child for child in parent.children if child in context]
            words = sum(len(child.words) for child in held)
            threshold = Fraction(len(parent.words), 3) * (1 + Fraction(used(), budget))
            room = budget - used() >= (growth(parent) if net else max(len(parent.words), growth(parent)))
            if len(held) < min_children or words < threshold or not room:
                break
            first = min(held, key=context.index)
            gone = under(parent)
            put(parent, context.index(first), gone)
            hit = parent
    return context
