# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from hypothesis import given
from hypothesis import strategies as st

from hichunk_haystack.quick_blocks import quick_blocks


def test_places_to_cut() -> None:
    text = (
        "Intro\ngoes on.\n\n# Kiln\n\nUnder it.\n- item\n\n```py\n# no heading\na | b\n```\n"
        "After.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\nLast.\fPage\n"
    )
    boundaries, tables = quick_blocks(text)
    assert [(boundaries[offset].name, text[offset:].splitlines()[0]) for offset in sorted(boundaries)] == [
        ("BLOCK", "# Kiln"),
        ("WORD", "Under it."),
        ("LINE", "- item"),
        ("BLOCK", "```py"),
        ("LINE", "# no heading"),
        ("LINE", "a | b"),
        ("LINE", "```"),
        ("BLOCK", "| a | b |"),
        ("WORD", "| 1 | 2 |"),
        ("LINE", "| 3 | 4 |"),
        ("BLOCK", "Last."),
        ("BLOCK", "Page"),
    ]
    assert [text[table.start : table.body] for table in tables] == ["| a | b |\n|---|---|\n"]


@given(
    st.lists(st.sampled_from(["```\n", "a | b\n", "---\n", "# a\n", "\n", "    x\n", "\f", "~~~~\n", "- y\r"])).map(
        "".join
    )
)
def test_offsets_lie_inside(text: str) -> None:
    boundaries, tables = quick_blocks(text)
    assert all(0 < offset < len(text) for offset in boundaries)
    assert all(table.start <= table.body <= table.end <= len(text) for table in tables)


def test_a_listing_is_not_cut_in_front_of_its_blank_lines() -> None:
    text = "```\na\n\n \nb\n```\n"
    assert sorted(quick_blocks(text)[0]) == [4, 9, 11]  # "a", "b" and the closing fence


def test_a_line_that_starts_with_much_white_space_is_a_line() -> None:
    text = "# Kiln\n" + " " * 90 + "Fire it.\nSlowly.\n"
    boundaries, _ = quick_blocks(text)
    assert {offset: strength.name for offset, strength in boundaries.items()} == {7: "WORD"}


def test_a_page_that_starts_indented_is_a_page() -> None:
    text = "It ends.\f        CHAPTER II\n    indented\n"
    boundaries, _ = quick_blocks(text)
    assert {offset: strength.name for offset, strength in boundaries.items()} == {9: "BLOCK", 28: "LINE"}


def test_code_in_a_line_opens_no_listing() -> None:
    text = "```pip install it```\nSo far.\n\nMore.\n"
    assert {offset: strength.name for offset, strength in quick_blocks(text)[0].items()} == {30: "BLOCK"}


def test_a_listing_ends_at_a_fence_that_says_nothing() -> None:
    text = "```\nx\n```py\n\ny\n````  \nz\n"
    boundaries, _ = quick_blocks(text)  # behind the closing fence, "z" goes on with the paragraph
    assert sorted(boundaries) == [4, 6, 13, 15]
