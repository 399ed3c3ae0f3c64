# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import json
from typing import Any

import pytest
from haystack import Document, Pipeline
from haystack.components.preprocessors import DocumentSplitter

from hichunk_haystack.components.evaluators import ChunkPointEvaluator
from hichunk_haystack.components.preprocessors import (
    MarkdownHierarchicalSplitter,
    PlainTextHierarchicalSplitter,
    TokenHierarchicalSplitter,
)
from hichunk_haystack.evaluation.structure import hidden_sources
from hichunk_haystack.tokens import HuggingFaceTokenCounter

PAGE = "# 1 Kiln\n\nFire it slowly. Let it cool.\n\n# 2 Wheel\n\nCentre the clay. Open it.\n\n# 3 Shelf\n\nDry it.\n"


def chunk(source: str, start: int) -> Document:
    return Document(content="x", meta={"source_id": source, "split_idx_start": start})


def test_scores_by_hand() -> None:
    # Sentences start at 0, 4, 9, 15, 20; sections at 4 (level 2), 9 (level 3) and 15 (level 2), which become 1, 2, 1.
    source = Document(id="page", content="One. Two. Three. Four. Five.")
    starts = [source.content.index(word) for word in ("One", "Two", "Three", "Four", "Five")]  # type: ignore[union-attr]
    assert starts == [0, 5, 10, 17, 23]
    result = ChunkPointEvaluator().run(
        # Chunks start at One, Two, Five: level 1 each.
        [chunk("page", 0), chunk("page", 5), chunk("page", 23)], [source], [[[5, 2], [10, 3], [17, 2]]]
    )  # fmt: skip
    # Found 2 cuts, right are 3, both have one.
    assert result["score"] == pytest.approx(0.4)
    assert result["individual_scores"] == pytest.approx([0.4])
    assert result["levels"]["Lall"] == pytest.approx({"f1": 0.4, "precision": 0.5, "recall": 1 / 3, "f1_of_all": 0.4})
    assert result["levels"]["L1"] == pytest.approx({"f1": 0.5, "precision": 0.5, "recall": 0.5, "f1_of_all": 0.5})
    assert result["levels"]["L2"] == pytest.approx({"f1": 0.0, "precision": 0.0, "recall": 0.0, "f1_of_all": 0.0})
    # 5 units in 4 segments, window 1: of the 4 places, those in front of 2, 3 and 4 differ.
    assert result["pk"] == result["window_diff"] == 3 / 4
    (told,) = result["results"]
    assert told["source_id"] == "page"
    assert told["reason"] is None
    assert (told["levels"]["L1"]["found"], told["levels"]["L1"]["right"], told["levels"]["L1"]["both"]) == (2, 2, 1)


def test_splitters_behind_hidden_headings(counter: HuggingFaceTokenCounter) -> None:
    sources, cut_points = hidden_sources([Document(id="page", content=PAGE)])
    evaluator = ChunkPointEvaluator()
    settings: dict[str, Any] = {"leaf_tokens": 10_000, "min_leaf_tokens": 1, "token_counter": counter}
    # Numbered lines are headings to the splitter for plain text. To the one for Markdown nothing is.
    plain = PlainTextHierarchicalSplitter(**settings).run(sources)["documents"]
    assert evaluator.run(plain, sources, cut_points)["score"] == 1.0
    markdown = MarkdownHierarchicalSplitter(**settings).run(sources)["documents"]
    assert evaluator.run(markdown, sources, cut_points)["score"] == 0.0
    # With its headings there to see, and by default what counts.
    seen = [Document(id="page", content=PAGE)]
    result = evaluator.run(MarkdownHierarchicalSplitter(**settings).run(seen)["documents"], seen)
    assert (result["score"], result["levels"]["L1"]["recall"], result["window_diff"]) == (1.0, 1.0, 0.0)
    by_length = TokenHierarchicalSplitter(chunk_sizes=[32, 8], token_counter=counter).run(seen)["documents"]
    assert len(by_length) > 3
    assert evaluator.run(by_length, seen)["score"] == 0.0


def test_chunks_of_haystacks_splitter() -> None:
    source = Document(id="page", content="One. Two.\n\nThree. Four.\n\nFive.")
    chunks = DocumentSplitter(split_by="passage", split_length=1).run([source])["documents"]
    result = ChunkPointEvaluator(levels=[1]).run(chunks, [source], [[[11, 1], [25, 1]]])
    assert result["score"] == 1.0
    assert list(result["levels"]) == ["L1", "Lall"]


def test_one_bad_source_leaves_the_others(counter: HuggingFaceTokenCounter) -> None:
    page, flat = Document(id="page", content=PAGE), Document(id="flat", content="No heading. None at all.")
    lost, gone, empty = (
        Document(id="lost", content=PAGE),
        Document(id="gone", content=PAGE),
        Document(id="empty", content=""),
    )
    nodes = MarkdownHierarchicalSplitter(min_leaf_tokens=1, token_counter=counter).run([page, flat])["documents"]
    nodes.append(Document(content="x", meta={"source_id": "lost"}))
    result = ChunkPointEvaluator().run(nodes, [page, flat, lost, gone, empty])
    # Of the one of which nothing came, no section was found.
    assert result["individual_scores"] == [1.0, None, None, 0.0, None]
    assert result["score"] == 0.5
    reasons = [one["reason"] for one in result["results"]]
    assert reasons[0] is None
    assert reasons[1] == reasons[4] == "there is no section to find"
    assert "does not tell where in its source it starts" in reasons[2]
    assert "nothing of this source" in reasons[3]


def test_inputs_that_make_no_sense() -> None:
    source = Document(id="page", content=PAGE)
    with pytest.raises(ValueError, match="different lengths: sources 1, cut_points 2"):
        ChunkPointEvaluator().run([], [source], [[], []])
    with pytest.raises(ValueError, match="1 of 1 documents belong to none of the sources"):
        ChunkPointEvaluator().run([chunk("other", 0)], [source])
    with pytest.raises(ValueError, match="levels start at 1"):
        ChunkPointEvaluator().run([], [source], [[[0, 0]]])
    with pytest.raises(ValueError, match=r"levels is \[0\]"):
        ChunkPointEvaluator([0])
    result = ChunkPointEvaluator().run([], [])
    assert (result["score"], result["individual_scores"], result["levels"], result["pk"]) == (None, [], {}, None)


def test_yaml_and_a_pipeline() -> None:
    pipeline = Pipeline()
    settings: dict[str, Any] = {"leaf_tokens": 10_000, "min_leaf_tokens": 1}
    pipeline.add_component("splitter", PlainTextHierarchicalSplitter(**settings))
    pipeline.add_component("evaluator", ChunkPointEvaluator([1, 2, 3], windows=False, language="de"))
    pipeline.connect("splitter.documents", "evaluator.documents")
    dump = pipeline.dumps()
    assert "type: hichunk_haystack.components.evaluators.ChunkPointEvaluator" in dump
    loaded = Pipeline.loads(dump, allowed_modules=["hichunk_haystack"])
    assert loaded.get_component("evaluator").to_dict()["init_parameters"] == {
        "levels": [1, 2, 3], "windows": False, "language": "de",
    }  # fmt: skip
    sources, cut_points = hidden_sources([Document(content=PAGE)])
    inputs = {"splitter": {"documents": sources}, "evaluator": {"sources": sources, "cut_points": cut_points}}
    result = loaded.run(inputs)["evaluator"]
    assert (result["score"], result["pk"], result["results"][0]["levels"]["L3"]) == (1.0, None, None)
    json.dumps(result)
