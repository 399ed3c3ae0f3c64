# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import builtins
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hichunk_haystack.evaluation.cut_points import (
    CutScores,
    WindowErrors,
    compressed,
    cuts_on_units,
    score_cuts,
    score_levels,
    window_errors,
)
from hichunk_haystack.sections import CutPoint
from hichunk_haystack.text_units import Unit, find_units
from hichunk_haystack.units import Strength


def test_scores_by_level() -> None:
    # Found: 2, 4 (level 1), 6, 8 (level 2). Right: 2, 6 (level 1), 8, 9, 10 (level 2).
    scores = score_levels({2: 1, 4: 1, 6: 2, 8: 2}, {2: 1, 6: 1, 8: 2, 9: 2, 10: 2}, levels=(1, 2, 3))
    # Level 1: only 2 is right; 1 of 2 found, 1 of 2 right.
    assert scores["L1"] == CutScores(0.5, 0.5, 0.5, 2, 2, 1)
    # Level 2: only 8; 1 of 2 found, 1 of 3 right; F1 = 2 * 1 / (2 + 3).
    assert scores["L2"] == pytest.approx(CutScores(0.5, 1 / 3, 0.4, 2, 3, 1))
    assert scores["L3"] is None
    # Without levels: 2, 6 and 8; 3 of 4 found, 3 of 5 right; F1 = 6 / 9.
    assert scores["Lall"] == pytest.approx(CutScores(0.75, 0.6, 2 / 3, 4, 5, 3))


def test_scores_at_the_edges() -> None:
    assert score_cuts([], []) is None
    assert score_cuts([1], []) == CutScores(0.0, 0.0, 0.0, 1, 0, 0)
    assert score_cuts([], [1]) == CutScores(0.0, 0.0, 0.0, 0, 1, 0)
    assert score_cuts([3, 3, 1], [1, 3]) == CutScores(1.0, 1.0, 1.0, 2, 2, 2)


def test_compressed() -> None:
    assert compressed({4: 3, 9: 6, 12: 3}) == {4: 1, 9: 2, 12: 1}
    assert compressed({}) == {}


TEXT = "  First one.  \n\n\nSecond one. Third one.\n"


def test_cut_points_on_sentences() -> None:
    units = find_units(TEXT)
    assert [TEXT[unit.start : unit.end].strip() for unit in units] == ["First one.", "Second one.", "Third one."]
    second, third = TEXT.index("Second"), TEXT.index("Third")

    def cuts(*places: tuple[int, int]) -> dict[int, int]:
        return cuts_on_units(TEXT, units, [CutPoint(offset, level) for offset, level in places])

    # Anywhere in the white space in front of it.
    assert cuts((second, 1)) == cuts((second - 2, 1)) == cuts((TEXT.index(".") + 1, 1)) == {1: 1}
    # Inside: "S|econd one." goes back, "Second on|e." goes on.
    assert cuts((second + 1, 1)) == {1: 1}
    assert cuts((third - 3, 1)) == {2: 1}
    # In front of the text and in the first half of its first sentence there is nothing to divide.
    assert cuts((0, 1)) == cuts((1, 1)) == cuts((2, 1)) == cuts((5, 1)) == {}
    # Behind the last sentence neither.
    assert cuts((len(TEXT) - 1, 1)) == cuts((len(TEXT), 1)) == {}
    # Of two at one place the highest level counts.
    assert cuts((third, 3), (third - 1, 2), (second, 4)) == {1: 4, 2: 2}
    assert cuts_on_units("", [], [CutPoint(0, 1)]) == {}


def test_blank_units_are_no_place_for_a_cut() -> None:
    text = "One.\n   \nTwo."
    units = [Unit(0, 5, "paragraph", Strength.BLOCK), Unit(5, 9, "paragraph", Strength.BLOCK)]
    units.append(Unit(9, 13, "paragraph", Strength.BLOCK))
    assert cuts_on_units(text, units, [CutPoint(6, 1)]) == {2: 1}


def test_windows_by_hand() -> None:
    # 8 units, right cuts in front of 4, found in front of 5. Two right segments of 4 units: the window is 2.
    # Pairs of units 2 apart, in the same segment or not:
    #   right: 0-2 yes, 1-3 yes, 2-4 no,  3-5 no, 4-6 yes, 5-7 yes
    #   found: 0-2 yes, 1-3 yes, 2-4 yes, 3-5 no, 4-6 no,  5-7 yes
    # They differ for 2-4 and 4-6: 2 of 6. No window holds more than one cut, so that WindowDiff says the same.
    assert window_errors({5}, {4}, 8) == pytest.approx(WindowErrors(2 / 6, 2 / 6))
    # 8 units, right cuts 3 and 4, found 3 only. Segments of 3, 1 and 4: the window is round(8 / 6) = 1, so that each of
    # the 7 places is looked at: 1 differs.
    assert window_errors({3}, {3, 4}, 8) == pytest.approx(WindowErrors(1 / 7, 1 / 7))
    # 12 units, right cut 6 (window 3), found 5 and 6. Pairs 3 apart, 9 of them. Right divides 3-6, 4-7, 5-8.
    # Found divides those and 2-5: Pk 1 of 9. Cuts inside: at 3-6 and 4-7 two instead of one: WindowDiff 3 of 9.
    assert window_errors({5, 6}, {6}, 12) == pytest.approx(WindowErrors(1 / 9, 3 / 9))


def test_windows_at_the_edges() -> None:
    assert window_errors([], [], 0) is None
    assert window_errors([], [], 1) is None
    assert window_errors({1}, {1}, 2) == WindowErrors(0.0, 0.0)
    assert window_errors({1}, [], 2) == WindowErrors(1.0, 1.0)
    assert window_errors([], [], 9) == WindowErrors(0.0, 0.0)
    with pytest.raises(ValueError, match="in front of unit 9; with 9 units, cuts lie in front of 1 to 8"):
        window_errors({9}, {3}, 9)
    with pytest.raises(ValueError, match="in front of unit 0"):
        window_errors({0}, {3}, 9)


@given(st.integers(2, 30), st.data())
def test_windows_against_counting_pairs(units: int, data: st.DataObject) -> None:
    cuts = st.sets(st.integers(1, units - 1))
    found, right = data.draw(cuts), data.draw(cuts)
    window = min(units - 1, max(1, round(units / (2 * (len(right) + 1)))))
    pairs = [(first, first + window) for first in range(units - window)]

    def inside(of: set[int], pair: tuple[int, int]) -> int:
        return sum(pair[0] < cut <= pair[1] for cut in of)

    apart = sum((inside(found, pair) > 0) != (inside(right, pair) > 0) for pair in pairs)
    unequal = sum(inside(found, pair) != inside(right, pair) for pair in pairs)
    assert window_errors(found, right, units) == pytest.approx(WindowErrors(apart / len(pairs), unequal / len(pairs)))


def test_without_nltk_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name == "nltk" or name.startswith("nltk.")]:
        monkeypatch.delitem(sys.modules, name)
    real = builtins.__import__

    def missing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("nltk"):
            raise ModuleNotFoundError(name="nltk")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match=r"\(nltk\): pip install 'hichunk-haystack\[evaluation\]'"):
        window_errors({1}, {1}, 3)
