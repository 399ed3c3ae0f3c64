# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Trees of texts, as hits and as random cases, for the tests of the merge."""

from fractions import Fraction
from random import Random
from typing import Any

from hypothesis import strategies as st

from hichunk_haystack.merging import Ancestor, Hit, MergeOptions, MergePlan, merge
from tests.naive_merge import Rule, Text, above, root, span

# Not what is registered, which others may add to.
POLICY_NAMES = ["hichunk", "ratio", "parent", "none"]


def build(shape: Any, prefix: str = "r", parent: Text | None = None) -> Text:
    """A tree of texts: a number is a leaf of so many words, a list an inner node."""
    node = Text(prefix, [], parent)
    if isinstance(shape, int):
        node.words = [f"{prefix}.{word}" for word in range(shape)]
    else:
        node.children = [build(child, f"{prefix}{number}", node) for number, child in enumerate(shape)]
        node.words = [word for child in node.children for word in child.words]
    return node


def nodes_of(tree: Text) -> list[Text]:
    return [tree, *(node for child in tree.children for node in nodes_of(child))]


def leaves_of(tree: Text) -> list[Text]:
    return [node for node in nodes_of(tree) if not node.children]


def lengthen(tree: Text, overlap: int) -> None:
    """Have each leaf repeat the last words of the sibling before it, as splitters with an overlap do."""
    for node in nodes_of(tree):
        before = [sibling.words for sibling in node.children]
        for words, sibling in zip(before, node.children[1:], strict=False):
            if overlap and not sibling.children:
                sibling.words = [*words[-overlap:], *sibling.words]


def to_hit(node: Text, score: float | None = None) -> Hit:
    links = tuple(Ancestor(up.id, len(up.words), len(up.children), len(above(up)), *span(up)) for up in above(node))
    return Hit(node.id, len(node.words), score, root(node).id, links, *span(node))


def ids(plan: MergePlan) -> list[str]:
    return [node.id for node in plan.nodes]


def run(tree: Any, hits: str, budget: int, **options: Any) -> MergePlan:
    """Merge the named nodes of one tree."""
    by_id = {node.id: node for node in nodes_of(build(tree))}
    return merge([to_hit(by_id[name]) for name in hits.split()], budget, MergeOptions(**options))


shapes = st.recursive(st.integers(1, 9), lambda inner: st.lists(inner, min_size=1, max_size=4), max_leaves=12)


@st.composite
def cases(draw: st.DrawFn, *, overlapping: bool = False) -> tuple[list[Text], int]:
    """Hits on some trees in rank order, and a budget."""
    trees = [build(shape, f"t{number}-") for number, shape in enumerate(draw(st.lists(shapes, min_size=1, max_size=3)))]
    if overlapping:
        for tree in trees:
            lengthen(tree, draw(st.integers(0, 2)))
    nodes = [node for tree in trees for node in nodes_of(tree)]
    # Most hits are leaves, as they are behind a vector search; the others are inner nodes and roots.
    leaves = [node for tree in trees for node in leaves_of(tree)]
    hits = draw(st.lists(st.integers(-len(nodes), 2 * len(leaves) - 1), max_size=20))
    return [leaves[number // 2] if number >= 0 else nodes[number] for number in hits], draw(st.integers(1, 120))


def some_rules(seed: int, number: int, policy: str | None = None) -> list[Rule]:
    """Any options; each is at its default in a good part of the cases, so that they are seen alone and together."""
    pick = Random(seed).choice
    rules = []
    for _ in range(number):
        thetas = pick(
            [(Fraction(1, 3), Fraction(2, 3)), sorted([Fraction(pick(range(7)), 6), Fraction(pick(range(7)), 6)])]
        )
        rules.append(
            Rule(
                policy=policy or pick(POLICY_NAMES),
                budget_check=pick(["net", "paper"]),
                min_children=pick([2, 2, 1, 3]),
                theta_start=thetas[0],
                theta_end=thetas[1],
                threshold=Fraction(pick(range(1, 7)), 6),
                parent_levels=pick([1, 2, 3]),
                min_node_tokens=pick([0, 0, 0, 3, 8, 20]),
                max_merge_level=pick([0, 0, 1, 2, 3]),
                overflow=pick(["skip", "stop", "truncate"]),
                order=pick(["rank", "document"]),
                top_parents=pick([None, None, 1, 2, 3]),
                max_share_per_source=pick([None, None, Fraction(pick(range(1, 21)), 20), Fraction(pick(range(2, 60)))]),
                document_overhead=pick([0, 0, 1, 3]),
            )
        )
    return rules


seeds = st.integers(0, 2**32)
