# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hichunk_haystack.segmentation import _depths, _Sums, segment, whole_blocks
from hichunk_haystack.text_units import Unit, find_units
from hichunk_haystack.title_lines import title_levels, title_like, titles_structure
from tests.word_embedder import WordEmbedder


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


def two_subjects_of_three_parts(spread: float) -> np.ndarray:
    random = np.random.default_rng(5)
    parts = []
    for subject in spread * random.normal(size=(2, 48)):
        for part in subject + random.normal(size=(3, 48)):
            parts += [part + 0.2 * random.normal(size=48) for _ in range(8)]
    return np.array(parts)


# Subjects that are far apart do not hide their parts.
@pytest.mark.parametrize("spread", [1, 2, 3])
def test_levels_nest(spread: float) -> None:
    text, units = paragraphs(48)
    cuts = segment(text, units, two_subjects_of_three_parts(spread), levels=2)
    assert [units.index(next(u for u in units if u.start == offset)) for offset, _ in cuts] == [8, 16, 24, 32, 40]
    assert [level for _, level in cuts] == [2, 2, 1, 2, 2]


@pytest.mark.parametrize("levels", [1, 2, 3, 4])
def test_more_levels_find_the_same_segments(levels: int) -> None:
    text, units = paragraphs(48)
    cuts = segment(text, units, two_subjects_of_three_parts(2), levels=levels)
    assert [offset for offset, _ in cuts] == [units[number].start for number in (8, 16, 24, 32, 40)]
    assert {level for _, level in cuts} <= set(range(1, levels + 1))
    assert min(cuts, key=lambda cut: cut[1])[0] == (units[24].start if levels > 1 else units[8].start)


def test_a_valley_is_as_deep_as_the_windows_differ() -> None:
    # Two units of one kind, then two of the other: the windows of two on both sides of the third are opposites.
    sums = _Sums(np.array([[1.0, 0], [1, 0], [-1, 0], [-1, 0]]), [1] * 4)
    # Similarity is 1, -1, 1 in front of the second, third and fourth unit: the window of one unit is like its half of
    # the window of two, whose halves cancel out, and counts as unlike nothing.
    assert _depths(sums.vectors, np.array([1, 2, 3]), 1).tolist() == [0, 4, 0]


def test_valleys_count_for_nothing_where_order_says_nothing() -> None:
    random = np.random.default_rng(3).normal(size=(400, 64))
    assert np.abs(_Sums(random, [1] * 400).valleys(np.arange(1, 400))).max() < 1


def test_valleys_are_deep_where_the_subject_changes() -> None:
    # Changes in front of 8, 16, ..., 72; places that are no nearer than two units to one lie on a slope at most.
    subjects = np.eye(10)[[number // 8 for number in range(80)]]
    ordered = subjects + 0.1 * np.random.default_rng(1).normal(size=subjects.shape)
    found = _Sums(ordered, [1] * 80).valleys(np.arange(1, 80))
    changes = [number - 1 for number in range(8, 80, 8)]
    inside = [number - 1 for number in range(1, 80) if 2 <= number % 8 <= 6]
    assert found[changes].min() > max(0, found[inside].max())


@pytest.mark.parametrize("count", [2, 3, 4, 5, 17])
def test_few_units_and_long_ones(count: int) -> None:
    text = "\n\n".join("A kiln is hot. " * 100 for _ in range(count))
    units = [unit for unit in find_units(text) if unit.strength > 2]
    for seed in range(5):
        cuts = segment(text, units, np.random.default_rng(seed).normal(size=(len(units), 4)), levels=3)
        assert [offset for offset, _ in cuts] == sorted({offset for offset, _ in cuts} - {0})


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


def test_what_a_title_looks_like() -> None:
    def answers(*lines: str) -> list[bool]:
        text = "\n\n".join(each for line in lines for each in (line, "It is fired slowly. For a day."))
        units = find_units(text)
        found = {text[u.start : u.end].strip(): title for u, title in zip(units, title_like(text, units), strict=True)}
        return [found.get(line, False) for line in lines]

    assert answers("Why is it hot?", "`Kiln` and wheel", "1990 to 1999", "Motivation\n[motivation]: #motivation") == [
        True,
        True,
        True,
        True,
    ]
    assert answers("It is hot.", "for example:", "One,", "- item", "two\nlines", "one " * 13) == [False] * 6


def test_many_short_lines_in_a_row_are_a_list() -> None:
    for lines, expected in ((3, 3), (4, 0)):
        text = "\n\n".join(["Fire it slowly.", *["Name"] * lines, "It cools for a day."])
        assert sum(title_like(text, find_units(text))) == expected


def test_few_short_lines_in_a_long_text_are_no_structure() -> None:
    text = "".join(f"{'Title' if n in (9, 29) else 'It is fired slowly over a day.'}\n\n" for n in range(60))
    units = find_units(text)
    assert sum(title_like(text, units)) == 2
    assert not titles_structure(text, units, [9, 29], 60)
    assert segment(text, units, np.random.default_rng(2).normal(size=(60, 16))) == []


def test_general_titles_stand_above_particular_ones() -> None:
    body = "The kiln and the wheel and the glaze are slow. The glaze of the kiln and the wheel is old.\n\n" * 2
    names = ["Motivation", "kiln", "wheel", "glaze", "Outlook", "kiln wheel", "glaze kiln", "wheel glaze"]
    text = f"{body}" + "".join(f"{name}\n\n{body}" for name in names)
    units = find_units(text)
    titles = [number for number, title in enumerate(title_like(text, units)) if title]
    assert len(titles) == 8
    embedder = WordEmbedder()
    points = np.array([embedder.embed(text[unit.start : unit.end]) for unit in units])
    # 8 ** (2 / 3) = 4 of eight.
    levels = title_levels(text, units, points, titles, 2)
    assert levels.count(1) == 4
    assert levels[0] == levels[4] == 1
    assert title_levels(text, units, points, titles, 1) == [1] * 8
    # Fewer than eight, none straight above another: nothing tells their levels apart.
    assert title_levels(text, units, points, titles[:7], 2) == [1] * 7


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
