# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""How well cut points are found: precision, recall and F1 by level (HiChunk, arXiv 2509.11552), Pk and WindowDiff."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import NamedTuple

from hichunk_haystack.sections import CutPoint
from hichunk_haystack.text_units import Unit

Cuts = Mapping[int, int]
"""Number of a unit (a sentence, a listing) -> level of the section that starts with it; 1 is the highest."""


class CutScores(NamedTuple):
    """
    How cuts that were found agree with those that are right.

    :param precision: Of the cuts found, how many are right; 0 if none was found.
    :param recall: Of the right cuts, how many were found; 0 if there are none.
    :param f1: Harmonic mean of the two.
    :param found: Number of cuts found.
    :param right: Number of right cuts.
    :param both: Number of cuts found that are right.
    """

    precision: float
    recall: float
    f1: float
    found: int
    right: int
    both: int


class WindowErrors(NamedTuple):
    """
    Errors seen through a window that moves over the units, from 0 (none) to 1.

    :param pk: How often exactly one of the two segmentations has a cut inside the window (Beeferman et al. 1999).
    :param window_diff: How often they differ in the number of cuts inside it (Pevzner and Hearst 2002).
    """

    pk: float
    window_diff: float


def cuts_on_units(text: str, units: Sequence[Unit], cut_points: Iterable[CutPoint]) -> dict[int, int]:
    """
    Tell in front of which units cut points lie.

    Between two units, anywhere in the white space, a cut point belongs to the unit behind. Inside a unit it moves to
    its start, or to the next unit's if that is nearer. In front of the first unit it divides nothing and is left out.
    Of several in front of one unit the highest level counts.

    :param text: The text.
    :param units: Its units in order, as `find_units` gives them.
    :param cut_points: Cut points in any order.
    :returns: Number of the unit -> level, in order.
    """
    places = []
    for number, unit in enumerate(units):
        inside = text[unit.start : unit.end]
        if inside.strip():
            places.append((unit.start + len(inside) - len(inside.lstrip()), unit.start + len(inside.rstrip()), number))
    starts = [start for start, _, _ in places]
    cuts: dict[int, int] = {}
    for cut in cut_points:
        place = bisect_right(starts, cut.offset) - 1
        # Place 0 is the first unit, and -1 what is in front of it.
        if place >= 0 and cut.offset > starts[place]:
            start, end, _ = places[place]
            place += cut.offset >= end or (place + 1 < len(places) and cut.offset - start >= end - cut.offset)
        if 0 < place < len(places):
            number = places[place][2]
            cuts[number] = min(cut.level, cuts.get(number, cut.level))
    return dict(sorted(cuts.items()))


def compressed(cuts: Cuts) -> dict[int, int]:
    """
    Number the levels of a document anew, so that its highest is 1 and none is left out.

    :param cuts: Cuts with any levels.
    :returns: The same cuts with levels from 1 on.
    """
    ranks = {level: rank for rank, level in enumerate(sorted(set(cuts.values())), start=1)}
    return {number: ranks[level] for number, level in cuts.items()}


def at_level(cuts: Cuts, level: int) -> set[int]:
    """
    Give the cuts of one level.

    :param cuts: Cuts.
    :param level: The level.
    :returns: Numbers of units.
    """
    return {number for number, own in cuts.items() if own == level}


def score_cuts(found: Iterable[int], right: Iterable[int]) -> CutScores | None:
    """
    Compare cuts without regard to levels. A cut counts when it lies in front of exactly the right unit.

    :param found: Numbers of units.
    :param right: Numbers of units.
    :returns: The scores; `None` if there are no cuts on either side, which is neither good nor bad.
    """
    found, right = set(found), set(right)
    if not found and not right:
        return None
    return from_counts(len(found), len(right), len(found & right))


def from_counts(found: int, right: int, both: int) -> CutScores:
    """
    Give the scores of numbers of cuts, of one document or added up over many.

    :param found: Cuts found.
    :param right: Right cuts.
    :param both: Cuts found that are right.
    :returns: The scores.
    """
    f1 = 2 * both / (found + right) if both else 0.0
    return CutScores(both / found if found else 0.0, both / right if right else 0.0, f1, found, right, both)


def score_levels(found: Cuts, right: Cuts, levels: Iterable[int] = (1, 2)) -> dict[str, CutScores | None]:
    """
    Compare cuts by level and without levels.

    :param found: Cuts found.
    :param right: Right cuts.
    :param levels: Which levels.
    :returns: Scores by name: `L1` and so on, where cut and level must be right, and `Lall`, where levels don't count.
        `None` where there are no cuts on either side.

    ```python
    from hichunk_haystack.evaluation.cut_points import score_levels

    scores = score_levels(found={3: 1, 5: 2, 9: 2}, right={3: 1, 5: 1, 8: 2})
    print(scores["L1"].recall, scores["L2"].f1, round(scores["Lall"].f1, 2))  # 0.5 0.0 0.67
    ```
    """
    scores = {f"L{level}": score_cuts(at_level(found, level), at_level(right, level)) for level in levels}
    return {**scores, "Lall": score_cuts(found, right)}


def window_errors(found: Iterable[int], right: Iterable[int], units: int) -> WindowErrors | None:
    """
    Measure Pk and WindowDiff, which forgive a cut that is a little off more than one that is missing.

    The window is half a right segment long, as usual, and at least one unit. Needs the extra `evaluation`.

    :param found: Numbers of the units with a cut in front, from 1 on.
    :param right: The same, of the right cuts.
    :param units: How many units the text has.
    :returns: The errors; `None` if there is nothing to divide, with fewer than two units.
    :raises ImportError: If NLTK is not installed.
    :raises ValueError: If a cut does not lie between two of the units.
    """
    found, right = set(found), set(right)
    outside = sorted(number for number in found | right if not 0 < number < units)
    if outside:
        msg = f"A cut lies in front of unit {outside[0]}; with {units} units, cuts lie in front of 1 to {units - 1}."
        raise ValueError(msg)
    if units < 2:  # noqa: PLR2004
        return None
    nltk = _nltk()
    # A mark for each place between two units: a window of k places reaches from a unit to the one k further on.
    marks = ["".join("1" if number in cuts else "0" for number in range(1, units)) for cuts in (right, found)]
    window = min(units - 1, max(1, round(units / (2 * (len(right) + 1)))))
    return WindowErrors(nltk.pk(*marks, k=window), nltk.windowdiff(*marks, k=window))


def _nltk() -> ModuleType:
    try:
        from nltk.metrics import segmentation
    except ImportError as error:
        msg = (
            f"Pk and WindowDiff need a library that is missing ({error.name}): "
            "pip install 'hichunk-haystack[evaluation]'."
        )
        raise ImportError(msg, name=error.name) from error
    return segmentation
