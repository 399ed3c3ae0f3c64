# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hichunk_haystack.text_units import find_units

PAGE = """\
---
title: Kiln
---

# Kiln

Fire it slowly, e.g. over 3.5 hours. See https://kiln.example/a.b?c=d. "Really?" he said... Yes.

> Quoted one. Quoted two.

1. Open it. Then wait.
2. Close it.

a | b | c
x | y | z
1 | 2 | 3

    indented code. Not two sentences.

<div>
Some HTML. More.
</div>
"""


def kinds(text: str) -> list[tuple[str, str]]:
    return [(unit.kind, text[unit.start : unit.end].rstrip("\n")) for unit in find_units(text)]


def test_units_of_each_kind() -> None:
    assert kinds(PAGE) == [
        ("front matter", "---"),
        ("front matter", "title: Kiln"),
        ("front matter", "---"),
        ("heading", "# Kiln"),
        ("paragraph", "Fire it slowly, e.g. over 3.5 hours. "),
        ("paragraph", "See https://kiln.example/a.b?c=d. "),
        ("paragraph", '"Really?" he said... '),
        ("paragraph", "Yes."),
        ("quote", "> Quoted one. "),
        ("quote", "Quoted two."),
        ("list item", "1. Open it. "),
        ("list item", "Then wait."),
        ("list item", "2. Close it."),
        ("table row", "a | b | c"),
        ("table row", "x | y | z"),
        ("table row", "1 | 2 | 3"),
        ("code", "    indented code. Not two sentences."),
        ("html", "<div>"),
        ("html", "Some HTML. More."),
        ("html", "</div>"),
    ]


def test_pages_part_units() -> None:
    text = "One page ends.\fThe next goes\fon."
    assert [text[unit.start : unit.end] for unit in find_units(text)] == ["One page ends.\f", "The next goes\f", "on."]


PIECES = [
    "- ",
    "> ",
    "#",
    "```py\n",
    "```",
    "| ",
    "|-",
    "\n",
    "\n\n",
    "1. ",
    "a.",
    "。",
    "\f",
    '"',
    "(",
    "\u0301",
    "<b>",
    "\r",
    "\x00",
    "\ud800",
    "é",
]


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=40).map("".join))
def test_units_partition_any_text(text: str) -> None:
    units = find_units(text)
    assert "".join(text[unit.start : unit.end] for unit in units) == text
    assert all(unit.start < unit.end for unit in units)


PATHOLOGICAL = [
    "- ", ">", "```\n", "| ", "|a|b|\n", "|---", "+---+\n", "\f", "\f ", " ", ")", "a.) ", "\"", "'", '"""\n',
    "1. ", "I. ", "。」", "...", "<!--", "[a](", "e\u0301", "\r", "    x\n", "({[", "/*", "a\n| ", "Dr. ", "`",
    "x\n===\n",
]  # fmt: skip


@pytest.mark.parametrize("prefix", ["", "```python\n", "```rust\n"])
def test_no_input_makes_it_slow(prefix: str) -> None:
    # A fifth of a megabyte each: twenty microseconds a character is far above linear work, far below squares.
    for piece in PATHOLOGICAL:
        text = prefix + piece * (200_000 // len(piece))
        start = time.process_time()
        find_units(text)
        assert time.process_time() - start < 4, repr(piece)
