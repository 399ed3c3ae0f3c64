# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hichunk_haystack.hichunk.answers import parse_answer
from hichunk_haystack.hichunk.prompts import write_answer

TRUE, FALSE, UNSAID = True, False, None

ANSWERS = {
    # The form asked for.
    "0, Level One, True\n3, Level Two, False": {0: (1, TRUE), 3: (2, FALSE)},
    "  0 ,Level One ,True \r\n\r\n\t3, Level Two, False  ": {0: (1, TRUE), 3: (2, FALSE)},
    # Full-width marks and digits, other words.
    "0，Level One，True": {0: (1, TRUE)},
    "１２，Ｌｅｖｅｌ Ｔｗｏ，Ｔｒｕｅ": {12: (2, TRUE)},
    "第3行，二级，是": {3: (2, TRUE)},
    "0, level 1, yes\n1, LEVEL TEN, no\n2, Level II, n\n3, level-three, y\n4, Lvl 4, 1": {
        0: (1, TRUE), 1: (10, FALSE), 2: (2, FALSE), 3: (3, TRUE), 4: (4, TRUE),
    },
    # Bullets, numbering, quotes, brackets, tables, emphasis.
    "- 0, Level One, True\n* 3, Level Two, False\n• 5, Level Two, True": {0: (1, TRUE), 3: (2, FALSE), 5: (2, TRUE)},
    "1. 10, Level One, True\n2. 13, Level Two, False": {10: (1, TRUE), 13: (2, FALSE)},
    "10. Level One, True": {10: (1, TRUE)},
    '"0, Level One, True",\n"3, Level Two, False"': {0: (1, TRUE), 3: (2, FALSE)},
    "[0, Level One, True], [3, Level Two, False]": {0: (1, TRUE), 3: (2, FALSE)},
    "(0, Level One); (1, Level Two)": {0: (1, UNSAID), 1: (2, UNSAID)},
    "| line | level | title |\n|---|---|---|\n| 4 | Level Two | False |": {4: (2, FALSE)},
    "**7**, **Level One**, **True**": {7: (1, TRUE)},
    # Missing, spelled-out and bare fields; the sentence repeated; the level first.
    "0, Level One": {0: (1, UNSAID)},
    "Line 5: Level 1 (title)\nLine 6: Level 2, not a title": {5: (1, TRUE), 6: (2, FALSE)},
    "5, 1, True\n6, 2\n7, Two, no": {5: (1, TRUE), 6: (2, UNSAID), 7: (2, FALSE)},
    "5 1 true": {5: (1, TRUE)},
    "8 @ The 3 Level Two items, Level One, True": {8: (1, TRUE)},
    "Level One: 0, 12\nLevel Two: 4": {0: (1, UNSAID), 12: (1, UNSAID), 4: (2, UNSAID)},
    # Prose around, fences, thinking before.
    "Here are the sections:\n```\n0, Level One, True\n```\nI hope this helps!": {0: (1, TRUE)},
    "<think>0, Level Five, True\nno...</think>\n2, Level One, True": {2: (1, TRUE)},
    "so line 4, Level Two it is</think>\n\n2, Level One, True": {2: (1, TRUE)},
    "<Reasoning>well</Reasoning>2, Level One, True": {2: (1, TRUE)},
    # Out of order.
    "9, Level Two, True\n0, Level One, True": {0: (1, TRUE), 9: (2, TRUE)},
    # JSON in many shapes.
    '{"cut_points": [{"line": 0, "level": 1, "title": true}, {"line": 3, "level": 2, "title": false}]}': {
        0: (1, TRUE), 3: (2, FALSE),
    },
    '```json\n[{"Line Number": "3", "segment_level": "Level Two", "is_title": "no"}]\n```': {3: (2, FALSE)},
    '[[0, "Level One", true], [3, 2]]': {0: (1, TRUE), 3: (2, UNSAID)},
    '["0, Level One, True", "3, Level Two, False"]': {0: (1, TRUE), 3: (2, FALSE)},
    '{"Level One": [0, 9], "Level Two": [3]}': {0: (1, UNSAID), 9: (1, UNSAID), 3: (2, UNSAID)},
    '{"0": "Level One, True", "3": {"level": 2, "title": null}}': {0: (1, TRUE), 3: (2, UNSAID)},
    '{"line": 0, "level": 1, "title": "Kiln"}\n{"line": 3, "level": 2.0}': {0: (1, TRUE), 3: (2, UNSAID)},
    # JSON that was cut off keeps what is whole.
    '{"cut_points": [{"line": 0, "level": 1, "title": true}, {"line": 3, "lev': {0: (1, TRUE)},
}  # fmt: skip


@pytest.mark.parametrize("text", ANSWERS)
def test_answers_of_many_shapes(text: str) -> None:
    answer = parse_answer(text, 20)
    assert (answer.cuts, answer.problem) == (ANSWERS[text], None)
    assert list(answer.cuts) == sorted(answer.cuts)


@pytest.mark.parametrize(
    "text", ["none", "None.", "```\nnone\n```", "[]", '{"cut_points": []}', "<think>x</think> none"]
)
def test_an_answer_that_says_that_nothing_starts_is_of_use(text: str) -> None:
    answer = parse_answer(text, 20)
    assert (answer.cuts, answer.problem, answer.dropped) == ({}, None, {})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it is empty"),
        (" \n\t", "it is empty"),
        ("<think>line 0, Level One, True ...", "the thinking never ended in an answer"),
        ("I can't do that.", "no row of it names a line and its level"),
        ("20, Level One, True\n-1, Level One, True", "it names only lines that are not there"),
        ("9" * 5000 + ", Level One, True", "it names only lines that are not there"),
        ("3, Level 0, True\n4, Level 11, True", "it gives no line a level from One to Ten"),
        ('{"cut_points": [{"line": 3}]}', "no row of it names a line and its level"),
        ("[" * 5000, "no row of it names a line and its level"),
    ],
)
def test_useless_answers_say_why(text: str, problem: str) -> None:
    answer = parse_answer(text, 20)
    assert (answer.cuts, answer.problem) == ({}, problem)


def test_what_is_dropped_is_counted() -> None:
    text = "Sure!\n0, Level One, True\n0, Level Two, True\n5, Level Two\n5, Level One\n20, Level One\n6, Level 99, True"
    answer = parse_answer(text, 20)
    # Of several rows for one line the one with the highest level counts.
    assert answer.cuts == {0: (1, TRUE), 5: (1, UNSAID)}
    assert answer.dropped == {"unreadable": 1, "duplicate": 2, "outside": 1, "level": 1}


rows = st.dictionaries(st.integers(0, 99), st.tuples(st.integers(1, 10), st.booleans()), min_size=1, max_size=20)


@given(rows, st.sampled_from(["lines", "json"]))
def test_what_is_written_is_read_back(cuts: dict[int, tuple[int, bool]], answer_format: str) -> None:
    text = write_answer(((number, *cut) for number, cut in sorted(cuts.items())), answer_format)
    answer = parse_answer(text, 100)
    assert (answer.cuts, dict(answer.dropped), answer.problem) == (dict(sorted(cuts.items())), {}, None)


SCRAPS = [
    "Level ",
    "One",
    "0",
    "12",
    ", ",
    "True",
    "\n",
    "{",
    "}",
    "[",
    "]",
    '"',
    ":",
    "<think>",
    "</think>",
    "- ",
    "| ",
]
noise = st.lists(st.sampled_from(SCRAPS) | st.text(max_size=5), max_size=40).map("".join)


@given(noise, st.integers(1, 30))
def test_any_text_is_read_without_an_error(text: str, count: int) -> None:
    answer = parse_answer(text, count)
    assert all(0 <= number < count and 1 <= level <= 10 for number, (level, _) in answer.cuts.items())
    assert (answer.problem is None) or not answer.cuts


@pytest.mark.parametrize(
    "unit", ["[", "{", '["', '{"a":[', "<think>", "</think>", "9", "0, Level One, True; ", "Level ", "-", "( ", "1. "]
)
def test_no_answer_takes_long_to_read(unit: str) -> None:
    start = time.process_time()
    parse_answer(unit * (200_000 // len(unit)), 20)
    # Measured below 1 s for each; 200,000 characters are more than any model answers.
    assert time.process_time() - start < 10
