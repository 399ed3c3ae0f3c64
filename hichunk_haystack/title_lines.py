# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Lines that look like titles, and which of them stand above which."""

import re
from collections import Counter
from collections.abc import Sequence
from math import log
from statistics import median

import numpy as np
from numpy.typing import NDArray

from hichunk_haystack.text_units import Unit
from hichunk_haystack.units import Strength

_LONGEST = 100
_MOST_WORDS = 12
_NO_ENDS = (".", ",", ";", ":", "!", "|", "。")
# So many short lines in a row are a list or the cells of a table.
_MOST_IN_A_ROW = 3
_LEAST = 2
# Titles structure a text where one paragraph in so many is one, and half of them have so many characters below them.
_MOST_PARAGRAPHS = 12
_LEAST_BELOW = 150
# Fewer titles than this are of one level, if none stands straight above another.
_LEAST_FOR_LEVELS = 8
_LINK_TARGET = re.compile(r"^\[[^\]\n]+\]:[^\n]*$", re.MULTILINE)
_WORD = re.compile(r"\w+")


def title_like(text: str, units: Sequence[Unit]) -> list[bool]:
    """
    Say of each unit whether it is a short line that stands alone and ends no sentence, as a title does.

    :param text: The text.
    :param units: Its units.
    :returns: An answer for each.
    """
    answers = [_may_be_title(text, units, number) for number in range(len(units))]
    first = 0
    for number in range(len(units) + 1):
        if number == len(units) or not answers[number]:
            if number - first > _MOST_IN_A_ROW:
                answers[first:number] = [False] * (number - first)
            first = number + 1
    return answers


def titles_structure(text: str, units: Sequence[Unit], titles: Sequence[int], paragraphs: int) -> bool:
    """
    Say whether lines that look like titles are the sections of a text, not just some short lines in it.

    :param text: The text.
    :param units: Its units.
    :param titles: Which of them look like titles, without the very first unit.
    :param paragraphs: How many paragraphs the text has.
    :returns: Whether there are enough of them, with text below.
    """
    if len(titles) < max(_LEAST, paragraphs / _MOST_PARAGRAPHS):
        return False
    ends = [*(units[number].start for number in titles[1:]), len(text)]
    # A title straight above another has the text of that one below it.
    below = [end - units[number].end for number, end in zip(titles, ends, strict=True)]
    return median([each for each in below if each] or [0]) >= _LEAST_BELOW


def title_levels(
    text: str, units: Sequence[Unit], vectors: NDArray[np.float64], titles: Sequence[int], levels: int
) -> list[int]:
    """
    Tell which titles stand above which.

    A title is the higher the more general it is ("Motivation", "Background"): its words are rare in the text, which is
    about particular things, its vector is far from the mean of the text's, and another title may stand straight below
    it. With `n` titles and `L` levels, `n ** ((l + 1) / (L + 1))` are of level `l` or above.

    :param text: The text.
    :param units: Its units.
    :param vectors: A vector for each unit.
    :param titles: Which units are titles, in order.
    :param levels: Number of levels, from 1 on.
    :returns: A level, from 1 on, for each title.
    """
    above = np.array([number + 1 in set(titles[place : place + 2]) for place, number in enumerate(titles)], dtype=float)
    if levels == 1 or (len(titles) < _LEAST_FOR_LEVELS and not above.any()):
        return [1] * len(titles)
    counts = Counter(_WORD.findall(text.lower()))
    lines = [_WORD.findall(text[units[number].start : units[number].end].lower()) for number in titles]
    rarity = np.array([-sum(log(1 + counts[word]) for word in line) / max(1, len(line)) for line in lines])
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    units_long = vectors / np.where(norms > 0, norms, 1)
    distance = -(units_long[list(titles)] @ units_long.mean(axis=0))
    # Rounded, so that the order of equals does not hang on the machine's last digit.
    generality = np.round(sum(map(standardised, (rarity, distance, above))), 9)
    found = np.full(len(titles), levels)
    order = np.argsort(-generality, kind="stable")
    for level in range(levels - 1, 0, -1):
        found[order[: round(len(titles) ** ((level + 1) / (levels + 1)))]] = level
    return [int(level) for level in found]


def standardised(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """
    Give values in standard deviations from their mean.

    :param values: Values.
    :returns: Zeros where all are equal.
    """
    spread = values.std()
    return (values - values.mean()) / spread if spread > 1e-9 else np.zeros_like(values)  # noqa: PLR2004 - rounding


def _may_be_title(text: str, units: Sequence[Unit], number: int) -> bool:
    unit = units[number]
    if unit.kind not in ("paragraph", "heading") or unit.strength != Strength.BLOCK:
        return False
    if number + 1 < len(units) and units[number + 1].strength not in (Strength.BLOCK, Strength.WORD):
        return False  # more of a paragraph follows
    line = text[unit.start : min(unit.end, unit.start + 10 * _LONGEST)].strip()
    if "\n[" in line:
        line = _LINK_TARGET.sub("", line).strip()
    return (
        (line[:1].isalnum() or line[:1] == "`")
        and "\n" not in line
        and len(line) <= _LONGEST
        and len(line.split()) <= _MOST_WORDS
        and not line.endswith(_NO_ENDS)
    )
