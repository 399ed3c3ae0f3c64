# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hichunk_haystack.query_votes import MODES, count_votes

# Of three queries all find a, two find b, one finds c, and best of all.
FOUND = [[("a", 0.4), ("b", 0.3)], [("c", 0.9), ("a", 0.3)], [("b", 0.6), ("a", 0.1)]]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("frequency", [("a", 1), ("b", 2 / 3), ("c", 1 / 3)]),
        # Sums are 0.8, 0.9, 0.9; of equal ones more queries decide.
        ("score", [("b", 1), ("c", 1), ("a", 0.8 / 0.9)]),
        (
            "combined",
            [
                ("a", 0.4 * 1 + 0.6 * 0.8 / 0.9),
                ("b", 0.4 * 2 / 3 + 0.6),
                ("c", 0.4 / 3 + 0.6),
            ],
        ),
    ],
)
def test_by_hand(mode: str, expected: list[tuple[str, float]]) -> None:
    votes = count_votes(FOUND, mode, 0.4)
    assert [name for name, _ in votes] == [name for name, _ in expected]
    assert [vote for _, vote in votes] == pytest.approx([vote for _, vote in expected])


def test_a_node_that_comes_twice_for_one_query_counts_once_with_its_better_score() -> None:
    assert count_votes([[("a", 0.2), ("a", 0.4), ("b", 0.4)]], "combined", 0.4) == [("a", 1.0), ("b", 1.0)]
    assert count_votes([[("a", None), ("a", 0.4)], [("a", 0.3), ("a", None)]], "score", 0) == [("a", 1.0)]


def test_without_scores_the_frequency_decides_and_then_who_came_first() -> None:
    assert [name for name, _ in count_votes([[("a", None), ("b", None)], [("b", None)]], "combined", 0.4)] == ["b", "a"]
    assert count_votes([[("a", None), ("b", None)]], "score", 0.4) == [("a", 0.0), ("b", 0.0)]


def test_scores_below_zero_keep_their_order() -> None:
    assert count_votes([[("a", -0.25), ("b", -0.75), ("c", -0.5)]], "score", 0.4) == [
        ("a", 1.0),
        ("c", 0.5),
        ("b", 0.0),
    ]


def test_nothing_found() -> None:
    assert count_votes([], "combined", 0.4) == []
    assert count_votes([[], []], "combined", 0.4) == []


_SCORE = st.one_of(st.none(), st.floats(-1, 1))


@given(
    st.lists(st.lists(st.tuples(st.sampled_from("abcdef"), _SCORE), max_size=6), min_size=1, max_size=5),
    st.sampled_from(MODES),
    st.floats(0, 1),
)
def test_votes_lie_between_0_and_1_in_order(
    found: list[list[tuple[str, float | None]]], mode: str, weight: float
) -> None:
    votes = count_votes(found, mode, weight)
    assert {name for name, _ in votes} == {name for each in found for name, _ in each}
    values = [vote for _, vote in votes]
    assert values == sorted(values, reverse=True)
    assert all(-1e-9 <= value <= 1 + 1e-9 for value in values)
