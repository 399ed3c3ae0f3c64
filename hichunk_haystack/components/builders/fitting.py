# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Choosing what fits into a budget."""

from collections.abc import Callable, Sequence

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
