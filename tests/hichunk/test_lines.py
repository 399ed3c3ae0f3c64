# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hichunk_haystack.hichunk.lines import make_lines
from tests.test_tree import prose

PAGE = """\
---
owner: workshop
---

Kiln
====

The kiln is fired slowly. Then it cools for a day!
Nobody opens it early.

- Fire to 600 degrees. Wait an hour.
- Fire to 1,000 degrees.

| stage | hours |
|-------|-------|
| bisque | 8 |
| glaze | 10 |

```sh
kiln --start. Now

kiln --stop
```

### Cones

A cone melts.
"""


def pieces(text: str, **options: object) -> list[str]:
    starts = make_lines(text, **options).starts  # type: ignore[arg-type]
    return [text[start:end] for start, end in pairwise([*starts, len(text)])]


def test_a_page_is_cut_into_sentences_headings_items_rows_and_code_lines() -> None:
    assert make_lines(PAGE).shown == [
        "---",
        "owner: workshop",
        "---",
        "# Kiln",
        "The kiln is fired slowly.",
        "Then it cools for a day!",
        "Nobody opens it early.",
        "- Fire to 600 degrees. Wait an hour.",
        "- Fire to 1,000 degrees.",
        "| stage | hours | |-------|-------|",
        "| bisque | 8 |",
        "| glaze | 10 |",
        "```sh",
        "kiln --start. Now",
        "kiln --stop",
        "```",
        "## Cones",
        "A cone melts.",
    ]


def test_levels_count_from_the_highest_heading_and_marks_can_be_hidden() -> None:
    lines = make_lines(PAGE, hide_heading_marks=True)
    # H1 and H3 are the first and the second level that the page has.
    assert lines.headings == {3: (1, "Kiln"), 16: (2, "Cones")}
    assert (lines.shown[3], lines.shown[16]) == ("Kiln", "Cones")
    assert [PAGE[lines.starts[number] :].split("\n", maxsplit=1)[0] for number in (3, 16)] == ["Kiln", "### Cones"]


def test_a_heading_behind_blank_lines_is_the_first_line() -> None:
    lines = make_lines("\n \n# Kiln\n\nHot all day long.\n")
    assert (lines.starts, lines.headings) == ([0, 11], {0: (1, "Kiln")})


def test_sentences_under_ten_characters_join_the_next() -> None:
    # "Look." has 5 characters, "It is hot." 10, "Wait. Now." is the last of its paragraph and joins nothing.
    assert pieces("Look. The kiln is on. It is hot. Go out.\n\nAnother one.") == [
        "Look. The kiln is on. ", "It is hot. ", "Go out.\n\n", "Another one.",
    ]  # fmt: skip


def test_short_sentences_do_not_join_a_heading_or_an_item() -> None:
    assert make_lines("Look.\n\n# Kiln\n\nHot.\n\n- One.\n- Two.\n").shown == [
        "Look.", "# Kiln", "Hot.", "- One.", "- Two.",
    ]  # fmt: skip


@pytest.mark.parametrize("language", ["en", "zh"])
def test_chinese_is_cut_at_its_own_marks(language: str) -> None:
    text = "窑炉需要慢慢地加热八个小时。然后让它冷却一整天再打开！谁会提前打开这个窑炉的门呢？"
    assert pieces(text, language=language) == [
        "窑炉需要慢慢地加热八个小时。",
        "然后让它冷却一整天再打开！",
        "谁会提前打开这个窑炉的门呢？",
    ]


def test_a_line_is_shown_on_one_line_and_cut_short() -> None:
    lines = make_lines("The kiln\n   is  fired\tslowly " + "and slowly " * 50, sentence_chars=30)
    assert lines.shown == ["The kiln is fired slowly and s"]


def test_titles() -> None:
    lines = make_lines("# The **big** kiln\n\n**Firing it:**\n\n> quoted words here\n\n***\n\n---\n")
    assert [lines.title(number) for number in range(len(lines.shown))] == [
        "The big kiln",
        "Firing it:",
        "quoted words here",
        # Marks only are no title.
        None,
        None,
    ]


def test_what_servers_refuse_is_shown_replaced() -> None:
    assert make_lines("a lone \ud800 surrogate and a \0 character").shown == [
        "a lone \ufffd surrogate and a \ufffd character"
    ]


@given(prose.filter(lambda text: text.strip()), st.booleans(), st.integers(10, 40))
def test_lines_partition_the_text(text: str, hidden: bool, characters: int) -> None:
    lines = make_lines(text, hide_heading_marks=hidden, sentence_chars=characters)
    assert lines.starts[0] == 0
    assert all(before < after for before, after in pairwise([*lines.starts, len(text)]))
    assert len(lines.shown) == len(lines.starts)
    for start, end, shown in zip(lines.starts, [*lines.starts[1:], len(text)], lines.shown, strict=True):
        assert text[start:end].strip() or len(lines.starts) == 1
        assert len(shown) <= characters
        assert len(shown.splitlines()) <= 1
    for number, (level, _) in lines.headings.items():
        assert 0 <= number < len(lines.starts)
        assert 1 <= level <= 6


@pytest.mark.parametrize("text", ["x" * 5_000_000, "* " * 200_000 + "end", "> " * 2_000 + "end", "word\n" * 400_000])
def test_long_and_deep_texts_take_time_in_proportion(text: str) -> None:
    start = time.process_time()
    make_lines(text)
    # 5 MB; measured 0.1 to 3 s here, a quadratic cut would take minutes.
    assert time.process_time() - start < 20
