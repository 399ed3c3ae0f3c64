# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

import pytest
from haystack import Document
from haystack.components.preprocessors import HierarchicalDocumentSplitter

from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.evaluation.structure import (
    as_row,
    cut_points_of_nodes,
    cut_points_of_pieces,
    hidden_case,
    hidden_sources,
    measure,
    score_case,
    structure_texts,
)
from hichunk_haystack.sections import CutPoint
from hichunk_haystack.tokens import HuggingFaceTokenCounter
from hichunk_haystack.tree import TreeBuilder, to_documents

PAGE = """\
# Pottery

From clay to cup.

## Kiln

Fire it slowly. Let it cool.

#### Glaze firing

Cone 6 takes nine hours.

## Wheel

Centre the clay.
"""


def starts(text: str, *passages: str) -> list[int]:
    return [text.index(passage) for passage in passages]


def test_headings_shown_without_marks() -> None:
    case = hidden_case(PAGE)
    assert "#" not in case.text
    assert "\nKiln\n" in case.text
    units = [case.text[unit.start : unit.end].strip() for unit in case.units]
    assert units == [
        "Pottery", "From clay to cup.", "Kiln", "Fire it slowly.", "Let it cool.", "Glaze firing",
        "Cone 6 takes nine hours.", "Wheel", "Centre the clay.",
    ]  # fmt: skip
    # The title of the whole is no cut; of levels 2 and 4 become 1 and 2.
    assert case.right == {2: 1, 5: 2, 7: 1}


def test_headings_removed() -> None:
    case = hidden_case(PAGE, removed=True)
    units = [case.text[unit.start : unit.end].strip() for unit in case.units]
    assert units == [
        "From clay to cup.", "Fire it slowly.", "Let it cool.", "Cone 6 takes nine hours.", "Centre the clay.",
    ]  # fmt: skip
    assert case.right == {1: 1, 3: 2, 4: 1}


@pytest.mark.parametrize("text", ["", " \n", "# Only a title\n", "# Title\n\nText.\n", "Text without headings."])
def test_nothing_to_find(text: str) -> None:
    for removed in (False, True):
        assert hidden_case(text, removed=removed).right == {}


def test_scores_of_a_case() -> None:
    case = hidden_case(PAGE)
    kiln, glaze, wheel, cup = starts(case.text, "Kiln", "Glaze", "Wheel", "From")
    # Levels 5 and 7 are compressed to 1 and 2. Found: Kiln (1), Glaze (2), and one too many (1); Wheel is missing.
    scores = score_case(case, [CutPoint(kiln, 5), CutPoint(glaze, 7), CutPoint(cup, 5)])
    l1, l2, lall = scores.levels["L1"], scores.levels["L2"], scores.levels["Lall"]
    assert l1 is not None
    assert l2 is not None
    assert lall is not None
    assert (l1.precision, l1.recall, l1.f1) == (0.5, 0.5, 0.5)
    assert l2.f1 == 1.0
    assert lall.f1 == pytest.approx(2 / 3)
    # 9 units in 4 segments: the window is 1, and of 8 places two differ.
    assert scores.windows is not None
    assert scores.windows.pk == scores.windows.window_diff == 2 / 8
    assert score_case(case, [CutPoint(wheel, 1)], windows=False).windows is None


def test_means_leave_out_what_has_no_cut() -> None:
    cases = [hidden_case(PAGE), hidden_case("No heading."), hidden_case("# A\n\nOne.\n\n# B\n\nTwo.\n")]
    means = measure(cases, lambda text, units: [CutPoint(text.find("Kiln"), 1)] if "Kiln" in text else [])
    assert means.documents == 2
    # Page: 1 of 2 of level 1, F1 2/3; level 2 F1 0; all 1 of 3, F1 0.5. The other page: nothing of one cut.
    assert means.f1 == pytest.approx({"L1": 1 / 3, "L2": 0.0, "Lall": 0.25})
    assert means.over_all["Lall"] == pytest.approx((1.0, 0.25, 0.4, 1, 4, 1))
    row = as_row(means)
    assert (row["precision"], row["recall"], row["documents"]) == (1.0, 0.25, 2)
    empty = measure([hidden_case("No heading.")], lambda text, units: [])
    assert (empty.documents, empty.f1, empty.pk) == (0, {}, None)


def test_a_tree_gives_back_its_headings(counter: HuggingFaceTokenCounter) -> None:
    text = PAGE + "\n### Lifting\n\n" + "Lift the wall in three even pulls. " * 60 + "\n\n## Shelf\n\nDry it.\n"
    for leaf_tokens in (20, 40, 10_000):
        splitter = MarkdownHierarchicalSplitter(leaf_tokens=leaf_tokens, min_leaf_tokens=1, token_counter=counter)
        nodes = splitter.run([Document(content=text)])["documents"]
        found = cut_points_of_nodes(reversed(nodes))
        titles = ["# Pottery", "## Kiln", "#### Glaze", "## Wheel", "### Lifting", "## Shelf"]
        assert [cut.offset for cut in found] == starts(text, *titles)
        # The one title at the top is the root's; level 4 directly below level 2 is one further down.
        assert [cut.level for cut in found[1:]] == [1, 2, 1, 2, 1]


def test_a_tree_without_titles(counter: HuggingFaceTokenCounter) -> None:
    text = "One is short.\n\nTwo is short.\n\n" + "Three is long. " * 30
    offsets = starts(text, "Two", "Three")
    source = Document(content=text)

    def found(leaf_tokens: int) -> list[int]:
        builder = TreeBuilder(counter, leaf_tokens=leaf_tokens, min_leaf_tokens=1)
        nodes = builder.build(text, [CutPoint(offset, 1) for offset in offsets])
        return [cut.offset for cut in cut_points_of_nodes(to_documents(nodes, source)) if cut.offset]

    assert found(10_000) == offsets
    # The long section is a node with leaves, whose siblings must be sections too.
    assert found(20) == offsets
    # Without any cut point, the leaves are parts cut by length.
    nodes = TreeBuilder(counter, leaf_tokens=20).build(text, [])
    assert len(nodes) > 3
    assert cut_points_of_nodes(to_documents(nodes, source)) == []


def test_plain_chunks_are_sections_of_level_one() -> None:
    chunks = [Document(content="x", meta={"source_id": "a", "split_idx_start": start}) for start in (0, 7, 7, 3)]
    assert cut_points_of_nodes(chunks) == [CutPoint(0, 1), CutPoint(3, 1), CutPoint(7, 1)]
    assert cut_points_of_nodes([Document(content="whole")]) == []
    with pytest.raises(ValueError, match="does not tell where in its source it starts"):
        cut_points_of_nodes([Document(content="x", meta={"source_id": "a"})])


def test_trees_whose_places_are_relative_are_refused() -> None:
    splitter = HierarchicalDocumentSplitter(block_sizes={4, 2}, split_overlap=0, split_by="word")
    nodes = splitter.run([Document(content="one two three four five six")])["documents"]
    with pytest.raises(ValueError, match="counts from its parent's start"):
        cut_points_of_nodes(nodes)


def test_pieces_are_found_in_their_text() -> None:
    text = "Same. Same. Other one.\nLast."
    assert [cut.offset for cut in cut_points_of_pieces(text, ["Same.", "Same.", "Other one.", "Last."])] == [
        0,
        6,
        12,
        23,
    ]


def test_sources_with_hidden_headings() -> None:
    source = Document(id="page", content=PAGE, meta={"file_path": "page.md"}, embedding=[1.0])
    for removed, line in ((False, "Kiln"), (True, "Fire it slowly.")):
        (hidden,), (cuts,) = hidden_sources([source], removed=removed)
        assert (hidden.id, hidden.meta, hidden.embedding) == ("page", {"file_path": "page.md"}, None)
        assert [level for _, level in cuts] == [1, 2, 4, 2]
        assert (hidden.content or "")[cuts[1][0] :].strip().startswith(line)
    assert source.content == PAGE


def test_texts_of_a_set(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for number in range(10):
        (tmp_path / "docs" / f"{number}.md").write_text("word " * number + "\nend", encoding="utf-8")
    assert len(structure_texts(tmp_path, least_words=6)) == 5
    assert [len(text.split()) for text in structure_texts(tmp_path, documents=3)] == [1, 4, 7, 10]
    assert structure_texts(tmp_path, lines_are_paragraphs=True)[2] == "word word \n\nend"
