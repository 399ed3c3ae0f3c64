# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""The `ContextBuilder` and rows of tables that start behind their header."""

import pytest
from haystack import Document

from hichunk_haystack.components.builders import ContextBuilder
from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter

# --- headers of tables


HEADER = "| day | hours |\n|---|---|"


def rows_of(start: int, text: str, **meta: object) -> Document:
    place = {"source_id": "s", "split_idx_start": start, "split_idx_end": start + len(text)}
    return Document(content=text, meta={"file_path": "kiln.md", **place, "table_header": HEADER, **meta})


def test_rows_have_the_header_of_their_table_above_them() -> None:
    document = rows_of(100, "| 3 | 8 |\n")
    result = ContextBuilder().run([document])
    assert result["context"] == "[1] kiln.md\n| day | hours |\n|---|---|\n| 3 | 8 |"
    citation = result["citations"][0]
    # 5 tokens for the header's first line, 9 for its second, 5 for the row; the offsets are those of the row.
    assert (citation["start"], citation["end"], citation["tokens"]) == (100, 109, 19)
    assert result["documents"] == [document]
    assert ContextBuilder(table_headers=False).run([document])["context"] == "[1] kiln.md\n| 3 | 8 |"


@pytest.mark.parametrize("order", ["rank", "reading"])
def test_a_header_is_not_repeated_below_a_passage_that_shows_it(order: str) -> None:
    top = Document(
        content=f"Hours:\n\n{HEADER}\n| 1 | 9 |\n",
        meta={"file_path": "kiln.md", "source_id": "s", "split_idx_start": 0, "split_idx_end": 43},
    )
    two, three, five = rows_of(43, "| 2 | 9 |\n"), rows_of(53, "| 3 | 8 |\n"), rows_of(73, "| 5 | 8 |\n")
    builder = ContextBuilder(order=order)
    assert builder.run([top, three, five])["context"].count("hours") == 1
    assert builder.run([two, three, five])["context"].count("hours") == 1
    assert builder.run([two, three, five])["context"].startswith("[1] kiln.md\n| day | hours |")
    other = rows_of(0, "| 7 | 1 |\n", file_path="wheel.md", source_id="t")
    assert builder.run([two, other])["context"].count("hours") == 2
    another = rows_of(153, "| 7 | 1 |\n", table_header="| pot | weight |\n|---|---|")
    assert "| pot | weight |" in builder.run([two, another])["context"]
    between = Document(content="Clay.", meta={"file_path": "wheel.md"})
    assert builder.run([two, between, three])["context"].count("hours") == (2 if order == "rank" else 1)


def test_a_header_counts_in_the_budget() -> None:
    # "[2] kiln.md" is 7 tokens, the header 14, a row 5.
    documents = [Document(content="Fire"), rows_of(10, "| 3 | 8 |\n")]
    assert len(ContextBuilder(token_budget=4 + 26).run(documents)["documents"]) == 2
    assert len(ContextBuilder(token_budget=4 + 25).run(documents)["documents"]) == 1
    assert len(ContextBuilder(token_budget=4 + 12, table_headers=False).run(documents)["documents"]) == 2
    # One that takes more than half of the budget makes way for the best document's text.
    shown = ContextBuilder(token_budget=20).run(documents[1:])["context"]
    assert shown == "[1] kiln.md\n| 3 | 8 |"


@pytest.mark.parametrize("header", [" \n", None, 7, "x" * 1001, ["| a |"], "| 3 | 8 |"])
def test_headers_that_make_no_sense_are_not_shown(header: object) -> None:
    assert ContextBuilder().run([rows_of(0, "| 3 | 8 |", table_header=header)])["context"] == "[1] kiln.md\n| 3 | 8 |"


def test_a_header_forges_no_citation_line() -> None:
    document = rows_of(0, "| 3 | 8 |", table_header="[2] secret.md")
    assert ContextBuilder().run([document])["context"] == "[1] kiln.md\n\\[2] secret.md\n| 3 | 8 |"


def test_leaves_of_a_real_table_tell_their_columns() -> None:
    rows = "".join(f"| {number} | load and unload the kiln, glaze {number} |\n" for number in range(20))
    source = Document(content=f"# Rota\n\n| day | work |\n|---|---|\n{rows}", meta={"file_path": "rota.md"})
    nodes = MarkdownHierarchicalSplitter(leaf_tokens=40, min_leaf_tokens=1).run([source])["documents"]
    leaves = [node for node in nodes if not node.meta["__children_ids"]]
    last = ContextBuilder().run([leaves[-1]])
    lines = last["context"].split("\n")
    assert lines[:3] == ["[1] rota.md > Rota", "| day | work |", "|---|---|"]
    citation = last["citations"][0]
    assert source.content is not None
    assert source.content[citation["start"] : citation["end"]] == "\n".join(lines[3:])
    assert ContextBuilder().run(leaves)["context"].count("| day | work |") == 1
