# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from haystack import Document
from hypothesis import given
from hypothesis import strategies as st

from hichunk_haystack.joining import Part, join_touching

SOURCE = "The kiln is fired slowly, and then it cools for a day. Centre the clay before you open it."


def part(start: int, end: int, source_id: str = "s", text: str | None = None, **meta: Any) -> Part:
    content = SOURCE[start:end] if text is None else text
    document = Document(id=f"{source_id}{start}-{end}", content=content, score=1 - start / 1000, meta=meta)
    return Part(document, len(content), start, source_id, [document.id])


def count(texts: Sequence[str]) -> list[int]:
    """A token is a character."""
    return [len(text) for text in texts]


def texts(parts: list[Part]) -> list[str]:
    return [part.text for part in parts]


def test_neighbours_that_touch_become_one() -> None:
    (joined,) = join_touching([part(0, 20), part(20, 30), part(30, 55)], count)
    assert joined.text == SOURCE[:55]
    assert joined.nodes == ["s0-20", "s20-30", "s30-55"]
    assert (joined.tokens, joined.start, joined.source_id) == (55, 0, "s")


def test_neighbours_apart_stay_apart() -> None:
    parts = [part(0, 20), part(21, 30)]
    assert join_touching(parts, count) == parts


def test_what_overlaps_is_there_once() -> None:
    (joined,) = join_touching([part(0, 25), part(20, 40), part(38, 55)], count)
    assert joined.text == SOURCE[:55]


def test_a_part_inside_of_another_adds_nothing() -> None:
    (joined,) = join_touching([part(0, 40), part(10, 20), part(35, 55)], count)
    assert joined.text == SOURCE[:55]
    assert joined.nodes == ["s0-40", "s10-20", "s35-55"]


def test_two_sources_are_not_joined() -> None:
    assert len(join_touching([part(0, 20), part(20, 30, "t")], count)) == 2
    # Nor two versions of one source.
    assert len(join_touching([part(0, 20, __tree_id="new"), part(20, 30, __tree_id="old")], count)) == 2


def test_offsets_that_are_not_true_join_nothing() -> None:
    # It says that it starts at 15, inside of the first, but has another text there.
    assert len(join_touching([part(0, 20), part(15, 30, text="something else")], count)) == 2
    unknown = replace(part(20, 30), start=None)
    assert len(join_touching([part(0, 20), unknown], count)) == 2


def test_a_join_that_would_cost_more_tokens_is_not_made() -> None:
    def greedy(texts: Sequence[str]) -> list[int]:
        return [len(text) + 5 for text in texts]

    parts = [part(0, 20), part(20, 30), part(40, 50), part(50, 55)]
    # 30 + 5 > 20 + 10, and 15 + 5 > 10 + 5.
    assert join_touching(parts, greedy) == parts
    # One overhead of 5 instead of two makes up for it.
    assert texts(join_touching(parts, greedy, overhead=5)) == [SOURCE[:30], SOURCE[40:55]]


def test_the_joined_document_says_what_it_is() -> None:
    tree = {"__level": 2, "__parent_id": "p", "__children_ids": [], "__ancestors": [], "__block_size": 9}
    first = part(0, 20, headings=["Kiln", "Firing", "Slowly"], file_path="kiln.md", split_idx_start=0, **tree)
    second = part(20, 55, headings=["Kiln", "Firing", "Cooling"], file_path="kiln.md", split_idx_start=20, **tree)
    second = replace(
        second, document=replace(second.document, score=2.0, meta={**second.document.meta, "truncated": True})
    )
    (joined,) = join_touching([first, second], count)
    assert joined.document.meta == {
        "headings": ["Kiln", "Firing"],
        "file_path": "kiln.md",
        "split_idx_start": 0,
        "split_idx_end": 55,
        "token_count": 55,
        "joined": ["s0-20", "s20-55"],
        "truncated": True,
    }
    assert joined.document.score == 2.0
    assert joined.document.id not in ("s0-20", "s20-55")
    assert joined.document.id == join_touching([first, second], count)[0].document.id
    # The parts are as they were.
    assert first.document.meta["__level"] == 2
    assert first.text == SOURCE[:20]


@given(st.lists(st.tuples(st.integers(0, 80), st.integers(1, 30)), max_size=8))
def test_each_character_that_parts_hold_comes_out_once(spans: list[tuple[int, int]]) -> None:
    parts = [part(start, min(start + length, len(SOURCE))) for start, length in sorted(spans)]
    joined = join_touching(parts, count)
    places = [set(range(each.start, each.start + len(each.text))) for each in joined if each.start is not None]
    assert all(
        each.text == SOURCE[each.start : each.start + len(each.text)] for each in joined if each.start is not None
    )
    assert sum(map(len, places)) == len(set().union(*places)) if places else True
    assert set().union(*places) == {
        at for each in parts for at in range(each.start or 0, (each.start or 0) + len(each.text))
    }
    # What is left apart does not touch.
    edges = [(each.start or 0, (each.start or 0) + len(each.text)) for each in joined]
    assert all(end < start for (_, end), (start, _) in pairwise(edges))
