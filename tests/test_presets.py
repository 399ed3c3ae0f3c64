# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from typing import Any

import pytest
from haystack import Document, Pipeline

from hichunk_haystack.components.preprocessors import (
    AutoHierarchicalSplitter,
    MarkdownHierarchicalSplitter,
    PlainTextHierarchicalSplitter,
)
from hichunk_haystack.presets import Preset, resolve_preset
from hichunk_haystack.tokens import HuggingFaceTokenCounter
from hichunk_haystack.tree import from_documents, is_leaf
from tests.test_tree import check_contract

SPLITTERS = [AutoHierarchicalSplitter, MarkdownHierarchicalSplitter, PlainTextHierarchicalSplitter]
each = pytest.mark.parametrize("splitter", SPLITTERS)

# Sentences of 12 to 14 tokens, and one list.
TEXT = """\
# Firing

Fire it slowly over eight hours and never open the lid. Then let it cool for a whole day and one night.

The next day you may open it without any gloves on. Look for cracks in all of the shelves before you load them.

# Wheel

Centre the clay before you open it with both of your thumbs. Lift the wall in three even pulls, and no more.

- one item of a list that is long enough to stay alone
- another item of that list, as long as the first one is
"""
FIRST = "# Firing\n\nFire it slowly over eight hours and never open the lid. "


def outline(nodes: list[Document]) -> list[tuple[int, list[str], str]]:
    """Level, headings and the first words of each node."""
    return [(node.meta["__level"], node.meta["headings"], (node.content or "")[:12]) for node in nodes]


@each
def test_kohaku_has_documents_sections_paragraphs_and_sentences(splitter: Any) -> None:
    nodes = splitter(preset="kohaku").run([Document(content=TEXT)])["documents"]
    firing, wheel = ["Firing"], ["Wheel"]
    assert outline(nodes) == [
        (0, [], "# Firing\n\nFi"),
        (1, firing, "# Firing\n\nFi"),
        (2, firing, "# Firing\n\nFi"),
        (3, firing, "# Firing\n\nFi"),
        (3, firing, "Then let it "),
        (2, firing, "The next day"),
        (3, firing, "The next day"),
        (3, firing, "Look for cra"),
        (1, wheel, "# Wheel\n\nCen"),
        (2, wheel, "# Wheel\n\nCen"),
        (3, wheel, "# Wheel\n\nCen"),
        (3, wheel, "Lift the wal"),
        (2, wheel, "- one item o"),
        (3, wheel, "- one item o"),
        (3, wheel, "- another it"),
    ]
    # A title is no leaf of its own, and stands with the first sentence below it.
    assert nodes[3].content == FIRST


@each
def test_kohaku_keeps_the_contract_on_a_book(
    splitter: Any, rust_book: dict[str, str], counter: HuggingFaceTokenCounter
) -> None:
    text = rust_book["ch04-01-what-is-ownership.md"]
    nodes = splitter(preset="kohaku").run([Document(id="chapter", content=text)])["documents"]
    check_contract(text, from_documents(nodes), counter, 100)
    leaves = [node.meta["token_count"] for node in nodes if is_leaf(node)]
    assert 15 < sum(leaves) / len(leaves) < 50


def test_hc200_hangs_leaves_of_200_tokens_right_under_their_sections(rust_book: dict[str, str]) -> None:
    text = rust_book["ch04-01-what-is-ownership.md"]
    nodes = MarkdownHierarchicalSplitter(preset="hc200").run([Document(content=text)])["documents"]
    by_id = {node.id: node for node in nodes}
    leaves = [node for node in nodes if is_leaf(node)]
    assert max(leaf.meta["token_count"] for leaf in leaves) <= 200
    # Above a leaf there are sections only: no group has a bound of its own.
    assert {by_id[leaf.meta["__parent_id"]].meta["__block_size"] for leaf in leaves} == {0}


def test_llamaindex_groups_by_its_sizes() -> None:
    text = "".join(f"Sentence number {number} is about a kiln of its own.\n\n" for number in range(300))
    nodes = MarkdownHierarchicalSplitter(preset="llamaindex").run([Document(content=text)])["documents"]
    assert {node.meta["__block_size"] for node in nodes} == {0, 2048, 512, 128}


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        (None, (200, 20, None), Preset(200, 20, None)),
        (None, (50, 5, [100]), Preset(50, 5, (100,))),
        ("hc200", (200, 20, None), Preset(200, 20, ())),
        ("llamaindex", (200, 20, None), Preset(128, 20, (512, 2048))),
        # What is given besides goes before.
        ("llamaindex", (64, 10, None), Preset(64, 10, (512, 2048))),
        ("llamaindex", (600, 20, None), Preset(600, 20, (2048,))),
        ("llamaindex", (200, 20, [1000]), Preset(128, 20, (1000,))),
        ("kohaku", (200, 20, None), Preset(100, 12, (), by_content=True)),
        ("kohaku", (8, 20, None), Preset(8, 8, (), by_content=True)),
        ("kohaku", (200, 0, [300]), Preset(100, 0, (300,), by_content=True)),
    ],
)
def test_sizes(name: str | None, given: tuple[int, int, list[int] | None], expected: Preset) -> None:
    assert resolve_preset(name, *given) == expected


@each
def test_a_preset_that_is_not_known_is_named(splitter: Any) -> None:
    with pytest.raises(ValueError, match="preset is 'kohakurag'; there are hc200, kohaku, llamaindex, and None"):
        splitter(preset="kohakurag")


@each
def test_yaml_and_back(splitter: Any) -> None:
    made = splitter(preset="kohaku", leaf_tokens=60)
    pipeline = Pipeline()
    pipeline.add_component("splitter", made)
    text = pipeline.dumps()
    again = Pipeline.loads(text, allowed_modules=["hichunk_haystack"])
    assert again.dumps() == text
    parameters = again.to_dict()["components"]["splitter"]["init_parameters"]
    assert (parameters["preset"], parameters["leaf_tokens"], parameters["min_leaf_tokens"]) == ("kohaku", 60, 20)
    sources = [Document(content=TEXT)]
    assert again.get_component("splitter").run(sources) == made.run(sources)


@each
def test_max_level_keeps_headings_out_and_paragraphs_in(splitter: Any) -> None:
    text = TEXT.replace("# Wheel", "## Wheel")
    nodes = splitter(preset="kohaku", max_level=1).run([Document(content=text)])["documents"]
    assert not any("Wheel" in node.meta["headings"] for node in nodes)
    assert any((node.content or "").startswith("Look for") for node in nodes if is_leaf(node))


def test_ids_depend_on_the_preset_and_not_on_its_absence() -> None:
    def ids(**options: Any) -> set[str]:
        nodes = MarkdownHierarchicalSplitter(**options).run([Document(id="page", content=TEXT)])["documents"]
        return {node.id for node in nodes if node.id != "page"}

    assert ids(leaf_tokens=128, inner_tokens=[512, 2048]) == ids(preset="llamaindex")
    assert not ids(preset="kohaku") & ids(leaf_tokens=100, min_leaf_tokens=12, inner_tokens=[])


@each
@pytest.mark.parametrize(
    "text", ["Alone.", "# Title only", "a\n\n" * 30, "字。" * 200, "```\ncode\n```\n", "| a |\n|---|\n| 1 |\n"]
)
def test_odd_texts_come_through_whole(splitter: Any, text: str) -> None:
    nodes = splitter(preset="kohaku").run([Document(content=text)])["documents"]
    assert "".join(node.content or "" for node in nodes if is_leaf(node)) == text
