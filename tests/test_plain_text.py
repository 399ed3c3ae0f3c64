# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hichunk_haystack.plain_text import plain_headings, read_plain_text
from hichunk_haystack.units import Strength
from tests.conftest import data_set
from tests.plain_documents import DOCUMENTS


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_ten_kinds_of_documents(kind: str) -> None:
    text, expected = DOCUMENTS[kind]
    assert [(level, title) for _, level, title in plain_headings(text)] == expected


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_offsets_are_lines_and_line_ends_do_not_matter(kind: str) -> None:
    text, expected = DOCUMENTS[kind]
    text = text.replace("\n", "\r\n")
    found = plain_headings(text)
    assert [(level, title) for _, level, title in found] == expected
    assert all(offset == 0 or text[offset - 1] in "\n\f" for offset, _, _ in found)


BODY = "It is fired slowly, and then it cools for a day before anybody opens the door of it, as the rules have it.\n\n"


@pytest.mark.parametrize(
    "text",
    [
        "1. Open the door\n\n2. Switch on the fan\n\n3. Close the door\n",  # a list with blank lines
        f"{BODY}1995 was a good year\n\n{BODY}1996 was a better one\n\n{BODY}",
        f"1 Introduction ........ 3\n\n2 Kilns ............... 7\n\n{BODY}",  # a table of contents
        f"{BODY}HELLO\n\n{BODY}",  # once is no style
        "Ada Fox\n\nHarbour Street\n\nPort Ellen\n\nNext To Nothing\n",  # no text below any
        f"> 1 Kiln\n\n{BODY}> 2 Wheel\n\n{BODY}",
        f"3.5 Hours\n\n{BODY}1.2 Bars\n\n{BODY}",  # no order in the numbers
        f"Part of it is lost.\n\n{BODY}Section 5 applies to all\n\n{BODY}",
        "int main() {\n\n    return 0;\n\n}\n",
        "",
    ],
)
def test_what_is_no_heading(text: str) -> None:
    assert plain_headings(text) == []


def test_capitals_above_numbers_that_start_again() -> None:
    text = "".join(f"{name}\n\n1. Aim\n\n{BODY}2. Way\n\n{BODY}" for name in ("CLAY WORK", "GLAZE WORK"))
    assert [(level, title) for _, level, title in plain_headings(text)] == [
        (1, "CLAY WORK"), (2, "Aim"), (2, "Way"), (1, "GLAZE WORK"), (2, "Aim"), (2, "Way"),
    ]  # fmt: skip


def test_a_heading_stays_with_its_text_and_rows_with_their_header() -> None:
    text = "Article 1\n\nFire it.\n\na | b\nx | 2\ny | 4\n\nArticle 2\n\nTurn it.\n"
    boundaries = read_plain_text(text).boundaries
    assert boundaries[text.index("Fire")] == Strength.WORD
    assert boundaries[text.index("Article 2")] == Strength.BLOCK
    assert boundaries[text.index("x |")] == Strength.WORD
    assert boundaries[text.index("y |")] == Strength.LINE


def test_marks_of_wikitext_as_they_are() -> None:
    folder = data_set("wikitext2") / "docs"
    found = gold = both = 0
    for path in sorted(folder.glob("*.md"))[:30]:
        text = path.read_bytes().decode()
        expected, offset = set(), 0
        for line in text.splitlines(keepends=True):
            if line.startswith("#"):
                expected.add((offset, len(line) - len(line.lstrip("#"))))
            offset += len(line)
        ours = {(offset, level) for offset, level, _ in plain_headings(text)}
        found, gold, both = found + len(ours), gold + len(expected), both + len(ours & expected)
    assert both / found > 0.98
    assert both / gold > 0.98


def test_chroma_as_it_is() -> None:
    folder = data_set("chroma") / "docs"
    heads = plain_headings((folder / "wikitexts.md").read_bytes().decode())
    assert heads[:3] == [(0, 1, "Valkyria Chronicles III"), (1826, 2, "Gameplay"), (5171, 2, "Plot")]
    # A speech and lower-case prose have none.
    assert plain_headings((folder / "state_of_the_union.md").read_bytes().decode()) == []
    assert plain_headings((folder / "finance.md").read_bytes().decode()) == []


@given(
    st.lists(
        st.sampled_from(["1 A\n", "1.1 B\n", "\n", "§ 2\n", "AB CD\n", "---\n", "x | y\n", BODY, "I. X\n", "\f"])
    ).map("".join)
)
def test_any_text(text: str) -> None:
    offsets = [offset for offset, level, _ in plain_headings(text) if level >= 1]
    assert offsets == sorted(set(offsets))
    assert all(0 <= offset < len(text) for offset in offsets)
