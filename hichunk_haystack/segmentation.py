# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""From vectors of units to nested segments: optimal segmentations whose price of a cut comes from the text itself."""

from collections.abc import Sequence
from math import exp, log, sqrt

import numpy as np
from numpy.typing import NDArray

from hichunk_haystack.text_units import Unit
from hichunk_haystack.units import Strength

Floats = NDArray[np.float64]

# Units count by their length, up to this many characters.
_LONGEST = 400
# Where a segment may have begun: more places than this are thinned out, which bounds time and memory.
_MOST_STARTS = 1024
_ROUNDS = 25
_TITLE_LENGTH = 100
_TITLE_WORDS = 12
_NO_TITLE_ENDS = (".", ",", ";", ":", "!", "?", '"', ")", "|", "。")
_LEAST_TITLES = 2
_LEAST_PARAGRAPHS = 4
_AS_IT_IS = frozenset({"code", "html", "table row", "front matter"})


def whole_blocks(units: Sequence[Unit]) -> list[Unit]:
    """
    Put the lines of a listing, and the rows of a table, back together.

    :param units: Units in order.
    :returns: Units in order: sentences as they were, what is no prose block by block.
    """
    joined: list[Unit] = []
    for unit in units:
        last = joined[-1] if joined else None
        if last is not None and unit.kind in _AS_IT_IS and unit.kind == last.kind and unit.strength < Strength.BLOCK:
            joined[-1] = Unit(last.start, unit.end, last.kind, last.strength)
        else:
            joined.append(unit)
    return joined


def title_like(text: str, units: Sequence[Unit]) -> list[bool]:
    """
    Say of each unit whether it is a short line that stands alone and ends no sentence, as a title does.

    :param text: The text.
    :param units: Its units.
    :returns: An answer for each.
    """
    answers = []
    for number, unit in enumerate(units):
        line = text[unit.start : unit.end].strip()
        alone = number + 1 == len(units) or units[number + 1].strength in (Strength.BLOCK, Strength.WORD)
        answers.append(
            alone
            and unit.kind in ("paragraph", "heading")
            and unit.strength == Strength.BLOCK
            and line[:1].isalnum()
            and "\n" not in line
            and len(line) <= _TITLE_LENGTH
            and len(line.split()) <= _TITLE_WORDS
            and not line.endswith(_NO_TITLE_ENDS)
        )
    return answers


def segment(
    text: str,
    units: Sequence[Unit],
    vectors: Sequence[Sequence[float]] | Floats,
    *,
    levels: int = 2,
    layout: bool = True,
) -> list[tuple[int, int]]:
    """
    Find nested segments of a text.

    A segment costs what its units' vectors scatter about their mean, a cut costs a price; the cheapest segmentation is
    found by dynamic programming. The price is what the best cut would gain in a text of the same vectors without any
    order, which follows from their scatter, their effective dimension and their number: nothing is set by hand. The
    segments of the lowest level are then put together by the same rule at a higher price, so that levels nest. With `n`
    segments at the lowest of `L` levels, level `l` has at most `n ** (l / L)`.

    Cuts lie in front of paragraphs (of sentences where there are hardly any paragraphs). With `layout`, a cut in front
    of a short line that stands alone is free where the text has several, and every other cut costs double.

    :param text: The text.
    :param units: Its units in order.
    :param vectors: A vector for each unit.
    :param levels: Number of levels, from 1 on.
    :param layout: Whether lines that look like titles count.
    :returns: (offset in characters, level) of each segment but the first, in order.
    """
    places = [number for number, unit in enumerate(units) if number == 0 or unit.strength >= Strength.BLOCK]
    if len(places) < _LEAST_PARAGRAPHS or len(units) > 50 * len(places):
        places = list(range(len(units)))
    if len(places) <= 2:  # noqa: PLR2004 - nothing to choose from
        return []
    sums = _Sums(np.asarray(vectors, dtype=np.float64), [min(_LONGEST, unit.end - unit.start) for unit in units])
    price = sums.price(len(places))
    if price <= 0:  # all units alike
        return []
    prices = np.full(len(places), price)
    titles = np.array(title_like(text, units))[places] if layout else np.zeros(len(places), dtype=bool)
    if titles.sum() >= _LEAST_TITLES:
        prices = np.where(titles, 0.0, 2 * price)
    edges = np.array([*places, len(units)])
    cuts = sums.cheapest(edges, prices)
    found = {int(edges[cut]): levels for cut in cuts}
    edges = np.concatenate(([0], edges[cuts], [len(units)])).astype(int)
    most = len(edges) - 1
    for level in range(levels - 1, 0, -1):
        cuts = sums.at_most(edges, max(1, round(most ** (level / levels))), price)
        found.update((int(edges[cut]), level) for cut in cuts)
        edges = np.concatenate(([0], edges[cuts], [len(units)])).astype(int)
    return [(units[number].start, level) for number, level in sorted(found.items())]


class _Sums:
    """Sums over the units before each place, from which the scatter of any run follows at once."""

    def __init__(self, vectors: Floats, lengths: Sequence[int]) -> None:
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = vectors / np.where(norms > 0, norms, 1)
        weights = np.asarray(lengths, dtype=np.float64)
        weights /= weights.mean()
        vectors = vectors - weights @ vectors / weights.sum()
        self.vectors = np.vstack([np.zeros(vectors.shape[1]), np.cumsum(vectors * weights[:, None], axis=0)])
        self.weights = np.concatenate(([0.0], np.cumsum(weights)))
        self.squares = np.concatenate(([0.0], np.cumsum(weights * (vectors**2).sum(axis=1))))
        covariance = vectors.T @ vectors
        # How many directions the vectors take up: trace(C)^2 / trace(C^2).
        self.dimensions = float(np.trace(covariance) ** 2 / max((covariance**2).sum(), 1e-12))

    def price(self, places: int) -> float:
        """What the best of so many cuts gains where there is nothing to find."""
        variance = self.squares[-1] / (len(self.weights) - 2)
        if variance < 1e-9:  # noqa: PLR2004 - rounding
            return 0.0
        # A cut gains the variance times a chi-squared variable over its degrees of freedom: the largest of many.
        return float(variance * (1 + sqrt(4 * log(places) / max(1.0, self.dimensions))))

    def cheapest(self, edges: NDArray[np.int_], prices: Floats) -> list[int]:
        """
        Numbers of the edges at which the cheapest segmentation cuts.

        A start that is dearer at some edge than that edge itself can never come to be the better one, and is dropped
        (PELT, Killick et al. 2012).
        """
        vectors, weights, squares = self.vectors[edges], self.weights[edges], self.squares[edges]
        norms = (vectors**2).sum(axis=1)
        count = len(edges) - 1
        # Cost of the cheapest segmentation up to an edge, with the price of the cut there.
        costs = np.zeros(count + 1)
        origins = np.zeros(count + 1, dtype=int)
        starts = np.array([0])
        for end in range(1, count + 1):
            run = weights[end] - weights[starts]
            between = norms[end] - 2 * (vectors[starts] @ vectors[end]) + norms[starts]
            totals = costs[starts] + (squares[end] - squares[starts]) - between / run
            best = int(np.argmin(totals))
            costs[end] = totals[best] + (prices[end] if end < count else 0.0)
            origins[end] = starts[best]
            starts = np.append(starts[totals < costs[end]], end)
            if len(starts) > _MOST_STARTS:
                starts = np.concatenate((starts[:-256:2], starts[-256:]))
        cuts: list[int] = []
        position = int(origins[count])
        while position > 0:
            cuts.append(position)
            position = int(origins[position])
        return cuts[::-1]

    def at_most(self, edges: NDArray[np.int_], most: int, price: float) -> list[int]:
        """Cuts of the cheapest segmentation at the lowest price that leaves no more than so many segments."""
        if len(edges) - 1 <= most:
            return list(range(1, len(edges) - 1))
        low, high = log(price * 1e-3), log(price) + log(1 + self.squares[-1] / price)
        best: list[int] = []
        for _ in range(_ROUNDS):
            middle = (low + high) / 2
            cuts = self.cheapest(edges, np.full(len(edges) - 1, exp(middle)))
            if len(cuts) + 1 > most:
                low = middle
            else:
                best, high = cuts, middle
        return best
