# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hichunk_haystack.segmentation import _Sums, segment, whole_blocks
from hichunk_haystack.text_units import Unit, find_units
from hichunk_haystack.title_lines import title_like


def paragraphs(count: int) -> tuple[str, list[Unit]]:
    text = "\n\n".join(f"Paragraph {number} says something of its own." for number in range(count))
    return text, find_units(text)


def vectors(topics: list[int], spread: float = 0.3) -> np.ndarray:
    random = np.random.default_rng(1)
    centres = random.normal(size=(max(topics) + 1, 24))
    return centres[topics] + spread * random.normal(size=(len(topics), 24))


def test_cuts_where_the_subject_changes() -> None:
    text, units = paragraphs(30)
    cuts = segment(text, units, vectors([0] * 10 + [1] * 8 + [2] * 12), levels=1)
    assert cuts == [(units[10].start, 1), (units[18].start, 1)]


def test_one_subject_or_one_vector_is_one_segment() -> None:
    text, units = paragraphs(40)
    assert segment(text, units, np.random.default_rng(3).normal(size=(40, 64)), levels=2) == []
    assert segment(text, units, np.ones((40, 8)), levels=2) == []
    assert segment(text, units, np.zeros((40, 8)), levels=2) == []


def test_levels_nest() -> None:
    # Two subjects of three parts each: parts of a subject are near each other.
    random = np.random.default_rng(5)
    parts = []
    for subject in random.normal(size=(2, 48)):
        for part in subject + random.normal(size=(3, 48)):
            parts += [part + 0.2 * random.normal(size=48) for _ in range(8)]
    text, units = paragraphs(48)
    cuts = segment(text, units, np.array(parts), levels=2)
    assert [units.index(next(u for u in units if u.start == offset)) for offset, _ in cuts] == [8, 16, 24, 32, 40]
    assert [level for _, level in cuts] == [2, 2, 1, 2, 2]


@given(st.integers(2, 9), st.integers(0, 10_000))
@settings(max_examples=40)
def test_the_segmentation_is_the_cheapest_of_all(count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    sums = _Sums(random.normal(size=(count, 3)), [1] * count)
    prices = random.uniform(0, 1.5, size=count)
    edges = np.arange(count + 1)

    def cost(cuts: tuple[int, ...]) -> float:
        ends = [0, *cuts, count]
        total = sum(prices[cut] for cut in cuts)
        for a, b in itertools.pairwise(ends):
            mean = (sums.vectors[b] - sums.vectors[a]) / (b - a)
            total += sums.squares[b] - sums.squares[a] - (b - a) * mean @ mean
        return float(total)

    every = [cuts for size in range(count) for cuts in itertools.combinations(range(1, count), size)]
    assert cost(tuple(sums.cheapest(edges, prices))) == pytest.approx(min(map(cost, every)))


def test_lines_that_look_like_titles() -> None:
    text = "Firing a kiln\n\nIt is fired slowly.\n\nCooling\n\nIt cools. For a day.\n\nfor example:\n\n- item\n"
    units = find_units(text)
    assert [
        text[u.start : u.end].strip() for u, is_title in zip(units, title_like(text, units), strict=True) if is_title
    ] == [
        "Firing a kiln",
        "Cooling",
    ]


def test_titles_attract_cuts_with_layout_only() -> None:
    text = "".join(f"Title {n}\n\n" + "It is fired slowly over eight hours and more.\n\n" * 4 for n in range(6))
    units = find_units(text)
    random = np.random.default_rng(2).normal(size=(len(units), 16))
    starts = [u.start for u, title in zip(units, title_like(text, units), strict=True) if title and u.start]
    assert set(starts) <= {offset for offset, _ in segment(text, units, random)}
    assert segment(text, units, random, layout=False) == []


def test_blocks_are_put_back_together() -> None:
    text = "One. Two.\n\n```py\na\n\nb\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n"
    assert [unit.kind for unit in whole_blocks(find_units(text))] == ["paragraph", "paragraph", "code", "table row"]
