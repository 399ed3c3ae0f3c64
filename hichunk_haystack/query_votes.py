# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What several queries found, as one ranking: by how many of them found a node, and how well."""

from collections.abc import Iterable, Sequence
from math import fsum

MODES = ("combined", "frequency", "score")


def count_votes(
    found: Sequence[Iterable[tuple[str, float | None]]], mode: str, frequency_weight: float
) -> list[tuple[str, float]]:
    """
    Rank nodes by the queries that found them (KohakuRAG, arXiv 2603.07612).

    - `frequency`: the share of queries that found a node.
    - `score`: the sum of its scores, as a share of the highest such sum.
    - `combined`: the weighted mean of both.

    The others decide between equal ones: score after frequency, then who came first.

    :param found: For each query the nodes that it found, with their scores, the best first. A node that comes twice for
        one query counts once, with its better score.
    :param mode: `frequency`, `score` or `combined`.
    :param frequency_weight: Weight of the frequency in `combined`; the score has the rest.
    :returns: (id, new score between 0 and 1) of each node, the best first.
    """
    queries = [_once(each) for each in found]
    names = list(dict.fromkeys(name for each in queries for name in each))
    shares = {name: sum(name in each for each in queries) / len(queries) for name in names}
    # Rounded, so that sums of the same scores in another order are equal.
    sums = {name: round(fsum(each[name] or 0.0 for each in queries if name in each), 9) for name in names}
    # Similarities below 0 would turn around what a share means.
    lowest = min(0.0, min(sums.values(), default=0.0))
    highest = max(sums.values(), default=0.0) - lowest
    scores = {name: (total - lowest) / highest if highest > 0 else 0.0 for name, total in sums.items()}
    weight = {"frequency": 1.0, "score": 0.0, "combined": frequency_weight}[mode]
    votes = {name: weight * shares[name] + (1 - weight) * scores[name] for name in names}
    names.sort(key=lambda name: (-votes[name], -scores[name], -shares[name]))
    return [(name, votes[name]) for name in names]


def different_queries(queries: Iterable[str]) -> list[str]:
    """
    Leave out queries that differ from another one in blanks and upper case only.

    An expander likes to give the original back.

    :param queries: Queries.
    :returns: The first of those that are equal; none that is blank.
    """
    first: dict[str, str] = {}
    for query in queries:
        if plain := " ".join(query.split()).casefold():
            first.setdefault(plain, query)
    return list(first.values())


def _once(found: Iterable[tuple[str, float | None]]) -> dict[str, float | None]:
    best: dict[str, float | None] = {}
    for name, score in found:
        known = best.get(name)
        best[name] = score if known is None else max(known, score if score is not None else known)
    return best
