# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Cutting a text to what fits."""

from collections.abc import Callable, Iterator

import regex

from hichunk_haystack.units import sentence_starts

_WORD_END = regex.compile(r"(?<=\S)\s")
_GRAPHEME = regex.compile(r"\X")

# What is looked at behind a cut to tell whether a sentence, or a character as a reader sees it, ends there.
_LOOK_AHEAD = 64


def cut_to_fit(text: str, fits: Callable[[str], bool], *, keep: float = 0.0) -> int:
    """
    Find how much of a text fits: up to the end of a sentence, else of a word, else of a character.

    :param text: The text.
    :param fits: Says whether a beginning of the text fits. It is asked some 30 times, about beginnings that are at most
        twice as long as what fits.
    :param keep: Share of the longest beginning that fits which a cut at a sentence or word must keep; where it would
        lose more, the next best place is taken.
    :returns: Length of the beginning in characters, with no white space at its end; 0 if nothing fits.

    ```python
    from hichunk_haystack.cutting import cut_to_fit

    text = "Fire it slowly. Then let it cool for a whole day."
    end = cut_to_fit(text, lambda beginning: len(beginning.split()) <= 8)
    print(text[:end])  # Fire it slowly.
    ```
    """
    most = _longest(text, fits)
    if most == 0 or most >= len(text.rstrip()):
        return most
    for end in _places(text, most, keep * most):
        if fits(text[:end]):
            return end
    # A single character, as a reader sees it, may be more than what fits.
    return most


def _longest(text: str, fits: Callable[[str], bool]) -> int:
    """The longest beginning that fits, by doubling and halving: a long rest costs nothing."""
    whole = len(text.rstrip())
    low, high = 0, min(whole, 64)
    while low < high and fits(text[:high]):
        low, high = high, min(whole, 2 * high)
    if low == whole:
        return len(text) if whole and fits(text) else whole
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(text[:middle].rstrip()) else (low, middle)
    return len(text[:low].rstrip())


def _places(text: str, most: int, least: float) -> Iterator[int]:
    """Where to cut, the best place first."""
    sentences = [len(text[:start].rstrip()) for start in sentence_starts(text[: most + _LOOK_AHEAD])]
    words = [match.start() for match in _WORD_END.finditer(text, 0, most + 1)]
    for ends in (sentences, words):
        yield from (end for end in reversed(ends) if max(1, least) <= end <= most)
    near = [match.end() for match in _GRAPHEME.finditer(text, max(0, most - _LOOK_AHEAD), most + _LOOK_AHEAD)]
    yield from (end for end in reversed(near) if end <= most)
