# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import pytest
from haystack import Document
from hypothesis import given
from hypothesis import strategies as st

from hichunk_haystack.components.embedders.leaf_text import text_to_embed, with_context, with_table_header


def leaf(content: str | None, *headings: str) -> Document:
    return Document(content=content, meta={"headings": list(headings)})


@pytest.mark.parametrize(
    ("content", "headings", "expected"),
    [
        ("Dip it.", ["Kiln", "Glaze"], "Kiln > Glaze\nDip it."),
        ("Dip it.", [], "Dip it."),
        # The leaf begins with its own heading, ATX or setext, decorated or not.
        ("## Glaze\n\nDip it.", ["Kiln", "Glaze"], "Kiln\n## Glaze\n\nDip it."),
        ("\nGlaze\n=====\nDip it.", ["Kiln", "Glaze"], "Kiln\n\nGlaze\n=====\nDip it."),
        ("## The *best* `glaze` ##\nDip it.", ["Kiln", "The best glaze"], "Kiln\n## The *best* `glaze` ##\nDip it."),
        # All headings of the path are there, so nothing is put in front.
        ("# Kiln\n\n## Glaze\n\nDip it.", ["Kiln", "Glaze"], "# Kiln\n\n## Glaze\n\nDip it."),
        # A title above that comes up as a line of text is no heading of this leaf.
        ("Kiln\n\nDip it.", ["Kiln", "Glaze"], "Kiln > Glaze\nKiln\n\nDip it."),
        # A line that only starts like the title is not the title.
        ("Glaze it well.", ["Glaze"], "Glaze\nGlaze it well."),
        # Titles are a list: what looks like a separator inside them stays.
        ("Open.", ["24/7 desk", "Set-up / tear-down"], "24/7 desk > Set-up / tear-down\nOpen."),
        ("Dip it.", ["Two\nlines", "", "Glaze"], "Two lines > Glaze\nDip it."),
        ("焼く。", ["窯"], "窯\n焼く。"),
        ("窯\n===\n焼く。", ["窯"], "窯\n===\n焼く。"),
    ],
)
def test_heading_path(content: str, headings: list[str], expected: str) -> None:
    assert text_to_embed(leaf(content, *headings), 200) == expected


def test_no_headings_at_all() -> None:
    assert text_to_embed(Document(content="Dip it."), 200) == "Dip it."
    assert text_to_embed(leaf(None, "Kiln"), 200) is None


@pytest.mark.parametrize(
    ("limit", "path"),
    [(19, "aaaa > bbbb > cccc"), (18, "aaaa > bbbb > cccc"), (17, "aaaa > cccc"), (10, "cccc"), (3, "ccc")],
)
def test_long_paths_lose_the_middle_then_the_top(limit: int, path: str) -> None:
    assert text_to_embed(leaf("text", "aaaa", "bbbb", "cccc"), limit) == f"{path}\ntext"


@given(st.text(min_size=1), st.lists(st.text(max_size=30), max_size=5), st.integers(1, 40))
def test_the_content_is_whole_and_the_path_is_one_bounded_line(content: str, headings: list[str], limit: int) -> None:
    text = text_to_embed(leaf(content, *headings), limit)
    assert text is not None
    assert text.endswith(content)
    path = text[: len(text) - len(content)]
    assert path == "" or (path.endswith("\n") and "\n" not in path[:-1] and 0 < len(path) - 1 <= limit)


def test_the_header_of_a_table_comes_in_front_of_its_rows() -> None:
    rows = Document(content="| 3 | 8 h |\n", meta={"table_header": "| day | hours |\n|---|---|"})
    assert with_table_header(rows, "Kiln\n| 3 | 8 h |\n", 200) == "| day | hours |\nKiln\n| 3 | 8 h |\n"
    assert with_table_header(rows, "| 3 | 8 h |\n", 5) == "| day\n| 3 | 8 h |\n"
    assert with_table_header(Document(content="text"), "text", 200) == "text"
    assert with_table_header(rows, None, 200) is None


@pytest.mark.parametrize(
    ("context", "text", "expected"),
    [
        ("It is on\nkilns.", "Fire it.", "It is on kilns.\nFire it."),
        (" ", "Fire it.", "Fire it."),
        (7, "Fire it.", "Fire it."),
        ("It is on kilns.", None, None),
    ],
)
def test_context(context: object, text: str | None, expected: str | None) -> None:
    assert with_context(Document(content=text, meta={"leaf_context": context}), text) == expected
    assert with_context(Document(content=text), text) == text
