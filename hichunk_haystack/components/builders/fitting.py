# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Choosing what fits into a budget, and cutting what does not."""

from collections.abc import Callable, Sequence
from math import ceil

from hichunk_haystack.cutting import cut_to_fit

# What is left of a document that is cut to fill a rest of the budget: so many tokens are worth their citation line, of
# a shorter document a quarter, and never only a few words.
_USEFUL, _USEFUL_SHARE, _LEAST = 32, 0.25, 8
# A cut that would lose more than this share of what fits is not taken for its being a better place.
_KEEP = 0.5

# Tokenizers may join or divide characters where two texts meet: by at most about this many tokens.
_SEAM = 4
# How often the whole is counted exactly while choosing; each time costs as much as the budget is long.
_CHECKS = 32


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


def useful_tokens(tokens: int) -> int:
    """
    Tell how much of a document has to be left for a cut to be worth its while.

    :param tokens: Length of the document in tokens.
    :returns: 32 tokens, or a quarter of the document where that is less, but no less than 8.
    """
    return min(_USEFUL, max(_LEAST, ceil(tokens * _USEFUL_SHARE)))


def cut_passage(text: str, fits: Callable[[str], bool]) -> int:
    """
    Cut a passage to what fits: no row of a table is cut through, else the end of a sentence is best, else of a word.

    :param text: The text.
    :param fits: Says whether a beginning of the text fits.
    :returns: Length of the beginning in characters; 0 if nothing fits.
    """
    if "|" in text:
        # Figures and abbreviations in cells look like the ends of sentences: rows come first.
        most = cut_to_fit(text, fits, keep=1.0)
        row = _row_start(text, most)
        if row is not None and row >= _KEEP * most and fits(text[:row]):
            return row
    return cut_to_fit(text, fits, keep=_KEEP)


def _row_start(text: str, end: int) -> int | None:
    """Where the last whole row of a table ends in a beginning of a text; `None` where it does not end in a table."""
    start, stop = text.rfind("\n", 0, end) + 1, text.find("\n", end)
    stop = len(text) if stop < 0 else stop
    pipes = text.count("|", start, stop)
    above = text.count("|", text.rfind("\n", 0, max(0, start - 1)) + 1, start)
    # As in the tables that the splitters see, neighbouring rows have the same number of pipes.
    if not pipes or pipes != above:
        return None
    return len(text[:start].rstrip()) if text[end:stop].strip() else end
