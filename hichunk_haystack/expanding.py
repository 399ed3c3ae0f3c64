# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What a budget still takes of what stands above and beside results: a pure function of hits, lengths and budget."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hichunk_haystack.plans import Hit, better


@dataclass
class Place:
    """
    A result, or the node above it that stands in its place.

    :param hit: The node.
    :param stands_for: Ids of the results that it has taken the place of; empty for a result that is there itself.
    :param climbed: How many levels it lies above the result whose place it took.
    """

    hit: Hit
    stands_for: tuple[str, ...] = ()
    climbed: int = 0


class Neighbour(NamedTuple):
    """
    A sibling that may come in.

    :param number: Number of the place that it stands beside.
    :param id: Its id.
    :param step: Its distance; below 0 for one that stands before.
    """

    number: int
    id: str
    step: int


def climb(
    hits: Sequence[Hit],
    room: int,
    levels: int,
    overhead: int = 0,
    available: Callable[[str, Sequence[str]], bool] | None = None,
) -> tuple[list[Place], int]:
    """
    Put nodes above results in their place, level by level, as far as the room allows.

    All results go up one level first, the best first, then all that did go up another one. A node takes the place of
    the first of the results below it, and all of them go, so that its cost is its length less theirs. One that does not
    fit, or is not available, ends the climb of its result. A result that lies in another one stays where it is.

    :param hits: Results in rank order, with what is above them.
    :param room: Tokens that the budget has left beside the results; nothing happens where that is below 0.
    :param levels: The most levels to go up.
    :param overhead: Tokens that each node costs besides its own.
    :param available: Says of a node's id, and of those of the results that would go for it, whether it can be had.
    :returns: What stands there now, in rank order, and the room that is left. Of results of which none lies in another,
        none does now.
    """
    places = {number: Place(hit) for number, hit in enumerate(hits)}
    for step in range(1, levels + 1 if room >= 0 else 1):
        if not any(place.climbed == step - 1 for place in places.values()):
            break
        for number in list(places):
            place = places.get(number)
            # Those that have gone for a node above them are not there any more.
            if place is None or place.climbed != step - 1 or not place.hit.ancestors:
                continue
            held = {each.hit.id for each in places.values()}
            if any(node.id in held for node in place.hit.ancestors):
                continue
            link, *above = place.hit.ancestors
            gone = {
                other: each for other, each in places.items() if any(node.id == link.id for node in each.hit.ancestors)
            }
            growth = link.tokens + overhead - sum(each.hit.tokens + overhead for each in gone.values())
            # Each once, though a result may have been given twice.
            names = list(dict.fromkeys(name for each in gone.values() for name in each.stands_for or (each.hit.id,)))
            if growth > room or (available is not None and not available(link.id, names)):
                continue
            score = place.hit.score
            for each in gone.values():
                score = each.hit.score if better(each.hit.score, score) else score
            node = Hit(link.id, link.tokens, score, place.hit.source_id, tuple(above), link.start, link.end)
            first = next(iter(gone))
            places[first] = Place(node, tuple(names), step)
            for other in gone:
                if other != first:
                    del places[other]
            room -= growth
    return list(places.values()), room


def siblings(hits: Sequence[Hit], children: Mapping[str, Sequence[str]], reach: int) -> Iterator[Neighbour]:
    """
    List the siblings of results in the order in which they may come in: the nearest of the best results first.

    :param hits: Results in rank order.
    :param children: Ids of the children of the nodes above them, in reading order.
    :param reach: How many siblings on either side to go.
    :returns: Siblings. What comes before is needed for understanding more often, and is listed first.
    """
    lines = []
    for hit in hits:
        line = list(children.get(hit.ancestors[0].id, ())) if hit.ancestors else []
        lines.append((line, line.index(hit.id)) if hit.id in line else ([], 0))
    for distance in range(1, min(reach, max((len(line) for line, _ in lines), default=0)) + 1):
        for number, (line, place) in enumerate(lines):
            for step in (-distance, distance):
                if 0 <= place + step < len(line):
                    yield Neighbour(number, line[place + step], step)


def choose(
    hits: Iterable[Hit], wanted: Iterable[Neighbour], around: Mapping[str, Hit], room: int, overhead: int = 0
) -> dict[tuple[int, int], str]:
    """
    Take the siblings that fit, in order, and none whose text stands in a result or another one already.

    :param hits: The results.
    :param wanted: Siblings in the order in which they may come in.
    :param around: The siblings as hits, by id; those that are not named can't be had.
    :param room: Tokens that the budget has left.
    :param overhead: Tokens that each node costs besides its own.
    :returns: (number of the place, step) -> id of the sibling.
    """
    taken = _Taken(hits)
    chosen: dict[tuple[int, int], str] = {}
    for number, name, step in wanted:
        sibling = around.get(name)
        if sibling is None or sibling.tokens + overhead > room or not taken.take(sibling):
            continue
        room -= sibling.tokens + overhead
        chosen[number, step] = name
    return chosen


class _Taken:
    """Tells whether a node's text stands in a result already, in whole or in part."""

    def __init__(self, hits: Iterable[Hit]) -> None:
        self.held: set[str] = set()
        self.above: set[str] = set()
        for hit in hits:
            self.add(hit)

    def add(self, hit: Hit) -> None:
        self.held.add(hit.id)
        self.above.update(node.id for node in hit.ancestors)

    def take(self, hit: Hit) -> bool:
        if hit.id in self.held or hit.id in self.above or any(node.id in self.held for node in hit.ancestors):
            return False
        self.add(hit)
        return True
