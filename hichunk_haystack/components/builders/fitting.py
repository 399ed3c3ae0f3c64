# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Choosing what fits into a budget, and cutting what does not."""

from collections.abc import Callable, Sequence

import regex

from hichunk_haystack.units import sentence_starts

# Tokenizers may join or divide characters where two texts meet: by at most about this many tokens.
_SEAM = 4
# How often the whole is counted exactly while choosing; each time costs as much as the budget is long.
_CHECKS = 32

_CHARACTER = regex.compile(r"\X")


def choose(costs: Sequence[tuple[int, int]], budget: int, count: Callable[[list[int]], int], exact: bool) -> list[int]:
    """
    Choose parts in their order: each that fits is taken, and what does not fit is skipped.

    Counts do not add up in general, so that only the whole tells what fits. It is counted where the sum of the parts
    leaves a doubt, and in the end; so the cost grows with the parts and a few times the budget, not with their product.

    :param costs: For each part the fewest and the most tokens that it may add. The first part is known to fit.
    :param budget: The most tokens.
    :param count: Counts the whole that is made of some parts, given by their numbers.
    :param exact: Whether the counts of parts add up.
    :returns: The numbers of the parts taken.
    """
    taken = [0]
    used, seams, checks = count(taken), 0, _CHECKS
    for number, (least, most) in list(enumerate(costs))[1:]:
        doubt = 0 if exact else _SEAM * (seams + 1)
        if used + most + doubt <= budget:
            taken.append(number)
            used, seams = used + most, seams + 1
        elif used + least - doubt <= budget and checks > 0:
            checks -= 1
            whole = count([*taken, number])
            if whole <= budget:
                taken.append(number)
                used, seams = whole, 0
    whole = count(taken)
    while whole > budget and len(taken) > 1:
        # Only for a counter whose counts add up worse than the seams allow for.
        taken = taken[: max(1, min(len(taken) - 1, len(taken) * budget // whole))]
        whole = count(taken)
    return taken


def cut_to_fit(text: str, fits: Callable[[str], bool]) -> int:
    """
    Find how much of a text fits: to the end of a sentence, else of a word, else of a character.

    A cut that would lose more than half of what fits is not taken for its being a better place.

    :param text: The text.
    :param fits: Says whether a beginning of it fits.
    :returns: Length of the beginning in characters; 0 if nothing fits.
    """
    most = _longest(text, fits)
    if most == len(text) or most == 0:
        return most
    good = [end for end in _sentence_and_word_ends(text, most) if 2 * end >= most]
    for end in [*good, *_character_ends(text, most)]:
        if fits(text[:end]):
            return end
    # A single character, as a reader sees it, may be longer than what fits.
    return most


def _longest(text: str, fits: Callable[[str], bool]) -> int:
    """About the longest beginning that fits. Its length is found by doubling, so that a long rest costs nothing."""
    low, high = 0, min(len(text), 64)
    while fits(text[:high].rstrip()):
        low = high
        if high == len(text):
            break
        high = min(len(text), 2 * high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(text[:middle].rstrip()) else (low, middle)
    return len(text[:low].rstrip())


def _sentence_and_word_ends(text: str, most: int) -> list[int]:
    """Ends of the last sentences at or before a place, then of the last words."""
    # A little more of the text shows whether a sentence ends just there.
    sentences = [len(text[:start].rstrip()) for start in sentence_starts(text[: most + 64])]
    sentences = [end for end in sentences if 0 < end <= most]
    begin = max(0, most - 256)
    words = [begin + match.start() for match in regex.finditer(r"(?<=\S)\s", text[begin : most + 1])]
    return [end for ends in (sentences, words) for end in reversed(ends[-3:])]


def _character_ends(text: str, most: int) -> list[int]:
    """Ends of the last characters, as a reader sees them (extended grapheme clusters), at or before a place."""
    found = [match.end() for match in _CHARACTER.finditer(text, max(0, most - 64), most + 64)]
    return [end for end in found if end <= most][:-4:-1]
