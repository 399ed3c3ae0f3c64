# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hichunk_haystack.markdown import parse_markdown
from hichunk_haystack.units import Strength


def headings(text: str) -> list[tuple[str, int, str | None]]:
    """(first line, level, title)"""
    return [(text[offset:].splitlines()[0], level, title) for offset, level, title in parse_markdown(text).headings]


def pieces(text: str) -> list[tuple[str, str]]:
    boundaries = parse_markdown(text).boundaries
    edges = [*sorted(boundaries), len(text)]
    return [(boundaries[a].name, text[a:b]) for a, b in pairwise(edges)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# One\n## Two ##\n", [("# One", 1, "One"), ("## Two ##", 2, "Two")]),
        ("Setext\n======\n\nSecond\n---\n", [("Setext", 1, "Setext"), ("Second", 2, "Second")]),
        ("####### seven\n#hashtag\n", []),
        ("```\n# comment\n```\n~~~sh\n# comment\n~~~\n", []),
        ("    # indented code\n", []),
        ("<div>\n# in HTML\n</div>\n", []),
        ("| # a | b |\n|---|---|\n| # c | d |\n", []),
        ("> # quoted\n", []),
        ("- # in a list\n", []),
        ("---\ntitle: x\n---\n\n# Real\n", [("# Real", 1, "Real")]),
        ("   # Indented by three\n", [("   # Indented by three", 1, "Indented by three")]),
        ("# *24/7* `desk`\n", [("# *24/7* `desk`", 1, "24/7 desk")]),
        ("Two\nlines\n=====\n", [("Two", 1, "Two lines")]),
        ("#\n", [("#", 1, None)]),
        ("# One\r\n\r\ntext\r\n\r\n## Two\r\n", [("# One", 1, "One"), ("## Two", 2, "Two")]),
        ("# One\r\rtext\r\r## Two\r", [("# One", 1, "One"), ("## Two", 2, "Two")]),
        ("# ä😀字\n\n## Ω\n", [("# ä😀字", 1, "ä😀字"), ("## Ω", 2, "Ω")]),
        ("# a\x00b\n", [("# a\x00b", 1, "a\ufffdb")]),
        ("# a\ud800b\n\n## c\n", [("# a\ud800b", 1, "a\ufffdb"), ("## c", 2, "c")]),
    ],
)
def test_headings(text: str, found: list[tuple[str, int, str | None]]) -> None:
    assert headings(text) == found


def test_blocks_and_lines() -> None:
    text = (
        "Intro.\n\n- a\n  - b\n- c\n\n> q\n>\n> r\n\n| h | i |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\n"
        "```py\nx = 1\n# y\n```\nEnd.\n"
    )
    assert pieces(text) == [
        ("BLOCK", "- a\n"),
        ("LINE", "  - b\n"),
        ("LINE", "- c\n\n"),
        ("BLOCK", "> q\n>\n"),
        ("LINE", "> r\n\n"),
        ("BLOCK", "| h | i |\n|---|---|\n"),
        ("WORD", "| 1 | 2 |\n"),  # the header stays with the first row
        ("LINE", "| 3 | 4 |\n\n"),
        ("BLOCK", "```py\n"),
        ("LINE", "x = 1\n"),
        ("LINE", "# y\n"),
        ("LINE", "```\n"),
        ("BLOCK", "End.\n"),
    ]


def test_a_heading_stays_with_what_follows_it() -> None:
    assert pieces("Intro\n\n# A\n\ntext\n") == [("BLOCK", "# A\n\n"), ("WORD", "text\n")]


@given(st.text(st.sampled_from(list("# \n\r-=>|`*[]()<a>é😀字\t0.")), max_size=80) | st.text(max_size=80))
def test_positions_are_starts_of_lines(text: str) -> None:
    structure = parse_markdown(text)
    for offset in [*structure.boundaries, *(heading[0] for heading in structure.headings)]:
        assert 0 <= offset < len(text)
        assert offset == 0 or text[offset - 1] in "\n\r\f"
        assert all(isinstance(strength, Strength) for strength in structure.boundaries.values())


@pytest.mark.parametrize(
    "text",
    [
        "- " * 200_000,
        ">" * 200_000,
        "[" * 400_000,
        "\r".join(["# a"] * 50_000),
        "x" * 5_000_000,
        "*a _b " * 100_000,
        "".join(" " * depth + "- x\n" for depth in range(1_500)),
        "```\n" * 100_000,
    ],
    ids=["list markers", "quotes", "brackets", "lone returns", "one line", "emphasis", "nested list", "fences"],
)
def test_no_input_makes_it_slow(text: str) -> None:
    start = time.process_time()
    parse_markdown(text)
    assert time.process_time() - start < 10
