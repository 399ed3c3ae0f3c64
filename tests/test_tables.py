# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import pytest

from hichunk_haystack.markdown import parse_markdown
from hichunk_haystack.tables import Table, header_for, pipe_tables


def lines(text: str) -> list[tuple[int, str]]:
    found, offset = [], 0
    for line in text.splitlines(keepends=True):
        found.append((offset, line))
        offset += len(line)
    return found


@pytest.mark.parametrize(
    ("text", "header", "rows"),
    [
        # A line of dashes, with and without outer pipes, and drawn with plus signs.
        ("| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n", "| a | b |\n|---|---|\n", ["| 1 | 2 |", "| 3 | 4 |"]),
        ("a | b\n--- | ---\n1 | 2\n", "a | b\n--- | ---\n", ["1 | 2"]),
        ("+---+---+\n| a | b |\n+---+---+\n| 1 | 2 |\n+---+---+\n", "+---+---+\n| a | b |\n+---+---+\n", ["| 1 | 2 |"]),
        # No dashes: three rows or more, and no number in the first.
        ("a | b\n1 | 2\n3 | 4\n", "a | b\n", ["1 | 2", "3 | 4"]),
        ("7 | b\n1 | 2\n3 | 4\n", "", ["7 | b", "1 | 2", "3 | 4"]),
        ("a | b\n1 | 2\n", "", ["a | b", "1 | 2"]),
    ],
)
def test_tables(text: str, header: str, rows: list[str]) -> None:
    before = "Some text.\n\n"
    (table,) = pipe_tables(lines(before + text + "\nMore text.\n"))
    whole = before + text
    assert whole[table.start : table.body] == header
    assert [whole[row:].splitlines()[0] for row in table.rows] == rows
    assert table.end == len(whole)


@pytest.mark.parametrize(
    "text",
    ["one | line\n", "a | b\n\nc | d\n", "x || y\nz || w\n", "a | b\nc | d | e\n", "run `a|b`\nrun `c|d`\n", "---\n"],
)
def test_what_is_no_table(text: str) -> None:
    assert pipe_tables(lines(text)) == []


def test_the_header_that_a_leaf_lacks() -> None:
    tables = [Table(10, 30, 60), Table(100, 100, 150)]
    assert header_for(5, tables) is None
    assert header_for(10, tables) is None  # it starts with the header
    assert header_for(30, tables) == (10, 30)
    assert header_for(59, tables) == (10, 30)
    assert header_for(60, tables) is None
    assert header_for(120, tables) is None  # that one has no header
    assert header_for(5, []) is None


def test_tables_in_markdown_of_either_kind_in_characters() -> None:
    text = "Größe 😀.\n\n| ä | b |\n|---|---|\n| 1 | 2 |\n\nä | b\nx | 2\ny | 4\n\n```\na | b\nc | d\ne | f\n```\n"
    first, second = parse_markdown(text).tables
    assert text[first.start : first.body] == "| ä | b |\n|---|---|\n"
    assert text[second.start : second.body] == "ä | b\n"
    assert [text[row] for row in second.rows] == ["x", "y"]
