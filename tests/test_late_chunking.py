# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from hypothesis import given
from hypothesis import strategies as st

from hichunk_haystack.late_chunking import Window, join_leaves, leaf_of_tokens, token_windows


def test_windows_overlap_and_each_gives_what_is_far_from_its_edge() -> None:
    assert token_windows(0, 10, 4) == []
    assert token_windows(10, 10, 4) == [Window(0, 10, 0, 10)]
    # 0-10 and 6-16 share 6 to 10, half each; the last one is as long as the others.
    assert token_windows(18, 10, 4) == [Window(0, 10, 0, 8), Window(6, 16, 8, 12), Window(8, 18, 12, 18)]
    assert token_windows(20, 10, 0) == [Window(0, 10, 0, 10), Window(10, 20, 10, 20)]


@given(st.integers(0, 200), st.integers(1, 40), st.data())
def test_every_token_is_taken_once_from_a_window_that_reads_around_it(
    count: int, size: int, data: st.DataObject
) -> None:
    overlap = data.draw(st.integers(0, size - 1))
    windows = token_windows(count, size, overlap)
    assert [token for window in windows for token in range(window.low, window.high)] == list(range(count))
    for window in windows:
        assert 0 <= window.start <= window.low <= window.high <= window.end <= count
        assert window.end - window.start == min(size, count)
        assert window.start == 0 or window.low - window.start >= overlap // 2
        assert window.end == count or window.end - window.high >= overlap // 2


def test_a_token_belongs_to_the_leaf_in_which_it_starts() -> None:
    assert leaf_of_tokens([0, 4, 9, 10, 25], [0, 10, 20]) == [0, 0, 0, 1, 2]
    # A leaf that is all repetition has none.
    assert leaf_of_tokens([0, 5], [0, 5, 5]) == [0, 2]


def test_leaves_are_put_together_to_the_text_that_they_were_cut_from() -> None:
    assert join_leaves(["Fire it. ", "Cool it."], [0, 9]) == ("Fire it. Cool it.", [0, 9])
    # An overlap is said once, what is missing is a line break, and a text need not start at 0.
    assert join_leaves(["abcdef", "efgh", "xy"], [3, 7, 20]) == ("abcdefgh\nxy", [0, 6, 9])
    assert join_leaves(["abcdef", "cd", "gh"], [0, 2, 6]) == ("abcdefgh", [0, 6, 6])
    assert join_leaves([], []) == ("", [])


@given(st.text(max_size=60), st.lists(st.integers(0, 60), max_size=6), st.integers(0, 5))
def test_leaves_with_overlaps_join_to_the_source(text: str, cuts: list[int], overlap: int) -> None:
    edges = sorted({0, *(cut for cut in cuts if cut < len(text))})
    places = [max(0, edge - overlap) for edge in edges]
    texts = [text[place:end] for place, end in zip(places, [*edges[1:], len(text)], strict=True)]
    joined, starts = join_leaves(texts, places)
    assert joined == text
    assert starts == edges
