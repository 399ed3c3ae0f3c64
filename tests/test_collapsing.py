# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hichunk_haystack.collapsing import collapse
from hichunk_haystack.plans import Ancestor, Hit

# Document "doc" of 100 characters: section A, 0 to 40 (leaves a1, a2, a3 of 10, 10, 20), section B, 40 to 100 (b1, b2).
SPANS = {"doc": (0, 100), "A": (0, 40), "B": (40, 100), "a1": (0, 10), "a2": (10, 20), "a3": (20, 40), "b1": (40, 90)}
SPANS["b2"] = (90, 100)
ABOVE = {"doc": (), "A": ("doc",), "B": ("doc",), **dict.fromkeys(("a1", "a2", "a3"), ("A", "doc"))}
ABOVE |= {"b1": ("B", "doc"), "b2": ("B", "doc")}


def hit(name: str, score: float | None) -> Hit:
    start, end = SPANS[name]
    above = tuple(Ancestor(node, SPANS[node][1] - SPANS[node][0], 2) for node in ABOVE[name])
    return Hit(name, end - start, score, "doc", above, start, end)


def collapsed(coverage: float = 0.5, **scores: float | None) -> list[tuple[str, float | None]]:
    return [(one.id, one.score) for one in collapse([hit(name, score) for name, score in scores.items()], coverage)]


def test_a_node_stands_for_what_makes_up_most_of_it_with_the_best_score() -> None:
    # a2 and a3 are 30 of the 40 characters of A.
    assert collapsed(A=0.5, a3=0.9, a2=0.4, b2=0.7) == [("A", 0.9), ("b2", 0.7)]


def test_what_was_found_exactly_stays_where_it_is_little_of_the_node_and_takes_its_score() -> None:
    # a1 is a quarter of A, b2 a sixth of B.
    assert collapsed(A=0.9, a1=0.6, B=0.5, b2=0.8) == [("a1", 0.9), ("b2", 0.8)]


def test_a_node_alone_stays() -> None:
    assert collapsed(A=0.9, b1=0.5) == [("A", 0.9), ("b1", 0.5)]


def test_levels_are_gone_through_from_the_deepest_up() -> None:
    # A stands for a3 (half of it), then A is 40 of the 100 characters of the document, and the document goes.
    assert collapsed(doc=0.95, A=0.5, a3=0.6) == [("A", 0.95)]
    # With b1 it is 90: the document stands for all.
    assert collapsed(doc=0.2, A=0.5, a3=0.6, b1=0.4) == [("doc", 0.6)]


def test_the_bound_itself_is_enough_and_above_one_nothing_is() -> None:
    assert collapsed(0.5, A=0.1, a3=0.2) == [("A", 0.2)]
    assert collapsed(0.51, A=0.1, a3=0.2) == [("a3", 0.2)]
    assert collapsed(1.0, A=0.1, a1=0.2, a2=0.2, a3=0.2) == [("A", 0.2)]
    assert collapsed(1.01, A=0.1, a1=0.2, a2=0.2, a3=0.2) == [("a1", 0.2), ("a2", 0.2), ("a3", 0.2)]


def test_a_node_that_is_too_long_never_stands_for_others() -> None:
    hits = [hit("A", 0.5), hit("a3", 0.9), hit("a2", 0.4)]
    assert [one.id for one in collapse(hits, 0.5, max_tokens=40)] == ["A"]
    assert [(one.id, one.score) for one in collapse(hits, 0.5, max_tokens=39)] == [("a3", 0.9), ("a2", 0.4)]


def test_a_bare_title_does_not_displace_its_paragraphs() -> None:
    # A tree whose parent holds the title only, and not the text of what is below it.
    title = Hit("title", 3, 0.99, "doc", (), 0, 9)
    below = [
        Hit(f"p{number}", 50, score, "doc", (Ancestor("title", 3, 2),), 10 + 90 * number, 100 + 90 * number)
        for number, score in enumerate((0.6, 0.7))
    ]
    assert [(one.id, one.score) for one in collapse([title, *below], 0.5)] == [("p1", 0.99), ("p0", 0.6)]


def test_where_nothing_is_known_of_places_what_is_below_stays() -> None:
    node = Hit("node", 10, 0.9)
    leaf = Hit("leaf", 10, 0.8, ancestors=(Ancestor("node", 10, 1),))
    assert [one.id for one in collapse([node, leaf], 0.5)] == ["leaf"]


def test_a_hit_that_comes_twice_counts_once_and_none_is_the_lowest_score() -> None:
    hits = [hit("a1", None), hit("b2", 0.2), hit("a1", 0.9), hit("a1", 0.3), hit("a2", None)]
    assert [(one.id, one.score) for one in collapse(hits, 0.5)] == [("a1", 0.9), ("b2", 0.2), ("a2", None)]
    assert collapse([], 0.5) == []


@given(
    st.lists(st.tuples(st.sampled_from(sorted(SPANS)), st.one_of(st.none(), st.floats(0, 1))), max_size=12),
    st.floats(0.01, 1.2),
)
def test_nothing_comes_out_twice_and_nothing_is_made_up(found: list[tuple[str, float | None]], coverage: float) -> None:
    hits = [hit(name, score) for name, score in found]
    left = collapse(hits, coverage)
    ids = [one.id for one in left]
    assert len(set(ids)) == len(ids)
    assert set(ids) <= {name for name, _ in found}
    for one in left:
        assert not {node.id for node in one.ancestors} & set(ids)
    scores = [-1 if one.score is None else one.score for one in left]
    assert scores == sorted(scores, reverse=True)
    # The best score is never lost.
    if found:
        assert scores[0] == max(-1 if score is None else score for _, score in found)
    assert collapse(left, coverage) == left


@pytest.mark.parametrize("order", [["A", "a3", "b2"], ["b2", "A", "a3"], ["a3", "b2", "A"]])
def test_the_order_of_hits_does_not_matter(order: list[str]) -> None:
    scores = {"A": 0.5, "a3": 0.9, "b2": 0.7}
    assert collapsed(**{name: scores[name] for name in order}) == [("A", 0.9), ("b2", 0.7)]
