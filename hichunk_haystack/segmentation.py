# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""From vectors of units to nested segments: optimal segmentations whose price of a cut comes from the text itself."""

from collections.abc import Sequence
from math import exp, log, sqrt
from statistics import fmean

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from hichunk_haystack.text_units import Unit
from hichunk_haystack.title_lines import standardised, title_levels, title_like, titles_structure
from hichunk_haystack.units import Strength

Floats = NDArray[np.float64]

# Units count by their length, up to this many characters.
_LONGEST = 400
# Where a segment may have begun: more places than this are thinned out, which bounds time and memory.
_MOST_STARTS = 1024
_ROUNDS = 20
_LEAST_PARAGRAPHS = 4
# Windows of so many units on each side of a place.
_WINDOWS = (2, 4, 8)
_SHUFFLES = 2
# Places whose windows are summed up at once, which bounds memory.
_BLOCK = 4096
# Where titles structure a text, a place without one is like a valley that is shallower by two standard deviations.
_NO_TITLE = exp(2)
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
    found by dynamic programming. The price is what the best cut would gain in a text without any order, which follows
    from what neighbouring units differ by, from their effective dimension and from their number. It is lower in a
    valley, where the windows of units left and right of a place are less alike than those around the neighbouring
    places (Hearst 1997): by how deep the valley is among those of the text, as far as their depths vary more than in
    the same text shuffled. Nothing is set by hand.

    The segments of the lowest level are then put together by the same rule at a higher price, so that levels nest. With
    `n` segments at the lowest of `L` levels, level `l` has between `n ** (l / L)` and `n ** ((l + 1) / (L + 1))`: as
    many as stay the same over the widest range of prices.

    Cuts lie in front of paragraphs (of sentences where there are hardly any paragraphs). With `layout`, and where short
    lines that stand alone look like the titles of the text, a cut in front of one is free, others are dear, and levels
    follow from the titles: the more general ones stand above.

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
    prices = np.concatenate(([price], price * np.exp(-sums.valleys(np.array(places[1:])))))
    edges = np.array([*places, len(units)])
    titles = [number for number, title in enumerate(title_like(text, units)) if title and number] if layout else []
    structured = titles_structure(text, units, titles, len(places))
    if structured:
        is_title = np.isin(edges[:-1], titles)
        cuts = sums.cheapest(edges, np.where(is_title, 0.0, _NO_TITLE * prices))
    else:
        cuts = sums.cheapest(edges, prices)
    found = {int(edges[cut]): levels for cut in cuts}
    if structured:
        titles = [number for number in titles if number in found]
        found.update(zip(titles, title_levels(text, units, sums.unit_vectors, titles, levels), strict=True))
    else:
        found.update(_higher_levels(sums, edges, prices / price, cuts, levels, price))
    return [(units[number].start, level) for number, level in sorted(found.items())]


def _higher_levels(
    sums: "_Sums", edges: NDArray[np.int_], scales: Floats, cuts: list[int], levels: int, price: float
) -> dict[int, int]:
    """Put segments together, level by level: number of a unit -> the highest level at which a cut lies before it."""
    found: dict[int, int] = {}
    most = len(cuts) + 1
    for level in range(levels - 1, 0, -1):
        scales = scales[[0, *cuts]]
        edges = edges[[0, *cuts, len(edges) - 1]]
        fewest = max(1, round(most ** (level / levels)))
        cuts = sums.steadiest(edges, scales, price, fewest, max(1, round(most ** ((level + 1) / (levels + 1)))))
        found.update((int(edges[cut]), level) for cut in cuts)
    return found


class _Sums:
    """Sums over the units before each place, from which the scatter of any run follows at once."""

    def __init__(self, vectors: Floats, lengths: Sequence[int]) -> None:
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = vectors / np.where(norms > 0, norms, 1)
        self.unit_vectors = vectors
        weights = np.asarray(lengths, dtype=np.float64)
        weights /= weights.mean()
        vectors = vectors - weights @ vectors / weights.sum()
        self.vectors = _running_sums(vectors * weights[:, None])
        self.weights = np.concatenate(([0.0], np.cumsum(weights)))
        self.squares = np.concatenate(([0.0], np.cumsum(weights * (vectors**2).sum(axis=1))))
        # What neighbours differ by tells the scatter inside of segments, few of them being in two (von Neumann 1941).
        shares = 2 / (1 / weights[1:] + 1 / weights[:-1])
        steps = np.diff(vectors, axis=0) * np.sqrt(shares)[:, None]
        total = float(self.squares[-1]) / max(1, len(weights) - 1)
        self.variance = min(total, float((steps**2).sum()) / 2 / max(1, len(steps)))
        covariance = steps.T @ steps
        # How many directions the vectors take up: trace(C)^2 / trace(C^2).
        self.dimensions = float(np.trace(covariance) ** 2 / max((covariance**2).sum(), 1e-12))

    def price(self, places: int) -> float:
        """What the best of so many cuts gains where there is nothing to find."""
        if self.variance < 1e-9:  # noqa: PLR2004 - rounding
            return 0.0
        # A cut gains the variance times a chi-squared variable over its degrees of freedom: the largest of many
        # (Laurent and Massart 2000).
        chance = log(places) / max(1.0, self.dimensions)
        return float(self.variance * (1 + 2 * sqrt(chance) + 2 * chance))

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

    def valleys(self, places: NDArray[np.int_]) -> Floats:
        """
        How deep the valley of similarity is at each place, in standard deviations.

        Mean over windows of several lengths, each weighed by how much of the depths' variance is more than that of the
        same units shuffled: nearly nothing where the order of the units says nothing.
        """
        steps = np.diff(self.vectors, axis=0)
        random = np.random.default_rng(0)
        shuffled = [_running_sums(steps[random.permutation(len(steps))]) for _ in range(_SHUFFLES)]
        total = np.zeros(len(places))
        for window in _WINDOWS:
            depths = _depths(self.vectors, places, window)
            by_chance = fmean(float(_depths(sums, places, window).var()) for sums in shuffled)
            excess = 1 - by_chance / max(float(depths.var()), 1e-9)
            total += max(0.0, excess) * standardised(depths) / len(_WINDOWS)
        return total

    def steadiest(self, edges: NDArray[np.int_], scales: Floats, price: float, fewest: int, most: int) -> list[int]:
        """
        Cuts of the cheapest segmentation into no more than `most` segments that stays for the widest range of prices.

        :param edges: Where segments may begin, and the end.
        :param scales: By how much a cut at an edge is dearer than another.
        :param price: Some price to start from.
        :param fewest: Segmentations into fewer segments are not looked at.
        :param most: Nor into more.
        """
        low, high = log(price * 1e-3), log(price) + log(1 + self.squares[-1] / price) - log(scales.min())

        def at(logarithm: float) -> list[int]:
            return self.cheapest(edges, exp(logarithm) * scales)

        def lowest(segments: int, low: float, high: float) -> float:
            for _ in range(_ROUNDS):
                middle = (low + high) / 2
                low, high = (middle, high) if len(at(middle)) + 1 > segments else (low, middle)
            return high

        start = lowest(most, low, high)
        end = lowest(max(1, fewest - 1), start, high)
        ranges: dict[tuple[int, ...], int] = {}
        for logarithm in np.linspace(start, end, _ROUNDS, endpoint=False):
            cuts = tuple(at(float(logarithm)))
            ranges[cuts] = ranges.get(cuts, 0) + 1
        # Of equals the first, which has the most segments.
        return list(max(ranges.items(), key=lambda each: each[1])[0])


def _running_sums(vectors: Floats) -> Floats:
    return np.vstack([np.zeros(vectors.shape[1]), np.cumsum(vectors, axis=0)])


def _depths(sums: Floats, places: NDArray[np.int_], window: int) -> Floats:
    """How much less alike the windows left and right of each place are than near it, on both sides together."""
    similarities = np.zeros(len(places))
    for first in range(0, len(places), _BLOCK):
        here = places[first : first + _BLOCK]
        left = sums[here] - sums[np.maximum(0, here - window)]
        right = sums[np.minimum(len(sums) - 1, here + window)] - sums[here]
        norms = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
        similarities[first : first + _BLOCK] = (left * right).sum(axis=1) / np.maximum(norms, 1e-9)
    # The peaks on both sides, no further away than two windows.
    reach = 2 * window
    padding = np.full(reach, -1.0)
    before = sliding_window_view(np.concatenate((padding, similarities)), reach + 1).max(axis=1)
    behind = sliding_window_view(np.concatenate((similarities, padding)), reach + 1).max(axis=1)
    return before + behind - 2 * similarities
