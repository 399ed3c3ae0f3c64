# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import pytest
from haystack import Document

from hichunk_haystack.components.preprocessors import AutoHierarchicalSplitter, MarkdownHierarchicalSplitter
from tests.plain_documents import DOCUMENTS
from tests.word_embedder import WordEmbedder

PROSE = "The kiln is fired slowly, over eight hours, and then it cools for a day.\n\n"
MARKDOWN = f"# Kiln\n\n{PROSE}## Cooling\n\n{PROSE}"
PLAIN = DOCUMENTS["treaty with articles"][0]


def roots(texts: list[str], **options: object) -> list[Document]:
    splitter = AutoHierarchicalSplitter(min_leaf_tokens=1, **options)  # type: ignore[arg-type]
    nodes = splitter.run([Document(content=text) for text in texts])["documents"]
    assert all(("splitter" in node.meta) == (node.meta["__level"] == 0) for node in nodes)
    return [node for node in nodes if node.meta["__level"] == 0]


def chosen(texts: list[str], **options: object) -> list[str]:
    return [root.meta["splitter"]["chosen"] for root in roots(texts, **options)]


def test_each_document_gets_its_own() -> None:
    texts = [MARKDOWN, PLAIN, PROSE * 20]
    assert chosen(texts) == ["markdown", "plain text", "token"]
    assert chosen(texts, embedder=WordEmbedder()) == ["markdown", "plain text", "semantic"]


def test_the_reason_is_told() -> None:
    markdown, plain, token = (root.meta["splitter"]["why"] for root in roots([MARKDOWN, PLAIN, PROSE]))
    assert markdown == f"2 Markdown headings in {len(MARKDOWN)} characters"
    assert plain == f"0 Markdown headings are too few for {len(PLAIN)} characters; 6 headings of plain text"
    assert token.endswith("and so are 0 headings of plain text; no embedder is given")


def test_headings_that_are_too_few() -> None:
    # A title over a short text is structure; two headings over 50,000 characters, at one in 20,000 at least, are not.
    short, long = f"# Kiln\n\n{PROSE}", f"# Kiln\n\n{PROSE * 400}# Wheel\n\n{PROSE * 300}"
    assert chosen([short, long]) == ["markdown", "token"]
    assert chosen([short], min_headings=2) == ["token"]
    assert chosen([MARKDOWN], max_characters_per_heading=10) == ["token"]
    assert chosen([f"Article 1\n\n{PROSE}"]) == ["token"]  # of plain text, one is none


def test_headings_that_are_too_few_still_name_what_stands_under_them() -> None:
    assert roots([f"# Kiln\n\n{PROSE}"], min_headings=2)[0].meta["headings"] == ["Kiln"]


def test_markdown_gets_the_tree_of_the_markdown_splitter() -> None:
    source = [Document(content=MARKDOWN)]
    ours = AutoHierarchicalSplitter(leaf_tokens=15, min_leaf_tokens=1).run(source)["documents"]
    theirs = MarkdownHierarchicalSplitter(leaf_tokens=15, min_leaf_tokens=1).run(source)["documents"]
    assert [(n.content, n.meta["headings"]) for n in ours] == [(n.content, n.meta["headings"]) for n in theirs]


@pytest.mark.parametrize("name", ["min_headings", "max_characters_per_heading"])
def test_numbers_that_make_no_sense(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is 0"):
        AutoHierarchicalSplitter(**{name: 0})


def test_round_trip() -> None:
    data = AutoHierarchicalSplitter(leaf_tokens=99).to_dict()
    assert data == {
        "type": "hichunk_haystack.components.preprocessors.AutoHierarchicalSplitter",
        "init_parameters": {
            "embedder": None,
            "min_headings": 1,
            "max_characters_per_heading": 20000,
            "leaf_tokens": 99,
            "min_leaf_tokens": 20,
            "max_level": 10,
            "inner_tokens": None,
            "language": "en",
            "token_counter": None,
            "preset": None,
        },
    }
    assert AutoHierarchicalSplitter.from_dict(data).to_dict() == data
