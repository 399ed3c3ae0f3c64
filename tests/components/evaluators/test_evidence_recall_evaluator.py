# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import json
from typing import Any

import pytest
from haystack import Document, Pipeline
from haystack.components.preprocessors import HierarchicalDocumentSplitter
from haystack.evaluation import EvaluationRunResult

from hichunk_haystack.components.builders import ContextBuilder
from hichunk_haystack.components.evaluators import EvidenceRecallEvaluator
from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter

TEXT = "Fire the kiln slowly. Let it cool for a day. Then open it."
FIRE, COOL, OPEN = (0, 21), (22, 44), (45, 58)


def hit(start: int, end: int, source: str = "kiln", **meta: Any) -> Document:
    place = {"source_id": source, "split_idx_start": start, "split_idx_end": end}
    return Document(content=TEXT[start:end], meta={**place, **meta})


def test_text_and_characters() -> None:
    result = EvidenceRecallEvaluator().run(
        evidences=[[TEXT[slice(*FIRE)], TEXT[slice(*COOL)]], [TEXT[slice(*OPEN)]]],
        # 16 characters of another source; then all of the right one.
        retrieved_documents=[[hit(*FIRE), hit(0, 16, "wheel")], [hit(0, 58)]],
        evidence_spans=[[list(FIRE), list(COOL)], [list(OPEN)]],
        evidence_sources=["kiln", "kiln"],
    )
    # 21 of 21 + 22 characters of evidence; retrieved are 21 + 16.
    first, second = result["results"]
    assert first == pytest.approx(
        {"erec": 21 / 43, "recall": 21 / 43, "precision": 21 / 37, "iou": 21 / 59, "reason": None}
    )
    assert second == pytest.approx({"erec": 1.0, "recall": 1.0, "precision": 13 / 58, "iou": 13 / 58, "reason": None})
    assert result["individual_scores"] == pytest.approx([21 / 43, 1.0])
    assert result["score"] == pytest.approx((21 / 43 + 1) / 2)
    assert result["precision"] == pytest.approx((21 / 37 + 13 / 58) / 2)


def test_questions_without_evidence_are_left_out() -> None:
    result = EvidenceRecallEvaluator().run(evidences=[[], ["Fire the kiln slowly."], [""]], contexts=[TEXT, TEXT, TEXT])
    assert result["individual_scores"] == [None, 1.0, None]
    assert result["score"] == 1.0
    assert result["results"][0]["reason"] == "there is no evidence"
    assert result["recall"] is None
    assert EvidenceRecallEvaluator().run(evidences=[[]], contexts=[""])["score"] is None
    assert EvidenceRecallEvaluator().run(evidences=[], contexts=[])["score"] is None


def test_contexts_decide_on_the_text_and_documents_on_the_places() -> None:
    result = EvidenceRecallEvaluator().run(
        evidences=[["Then open it."]],
        retrieved_documents=[[hit(*OPEN)]],
        contexts=["[1] kiln\nFire the kiln slowly."],
        evidence_spans=[[list(OPEN)]],
        evidence_sources=["kiln"],
    )
    assert (result["score"], result["recall"]) == (0.0, 1.0)


def test_nothing_retrieved_is_nothing_found() -> None:
    result = EvidenceRecallEvaluator().run([["Then open it."]], [[]], None, [[list(OPEN)]], ["kiln"])
    assert (result["score"], result["recall"], result["precision"], result["iou"]) == (0.0, 0.0, 0.0, 0.0)


def test_places_that_are_not_known() -> None:
    evaluator = EvidenceRecallEvaluator()

    def run(document: Document, spans: list[list[int]]) -> dict[str, Any]:
        return evaluator.run([["Then open it."]], [[document]], None, [spans], ["kiln"])["results"][0]

    assert run(hit(*OPEN), [])["reason"] == "the place of the evidence is not known"
    lost = run(Document(id="x", content=TEXT, meta={"source_id": "kiln"}), [list(OPEN)])
    assert lost == {
        "erec": 1.0, "recall": None, "precision": None, "iou": None,
        "reason": "document 'x' does not tell its place in its source",
    }  # fmt: skip
    # Without an end, the content tells how far it goes. A document that was never split is its own source.
    assert (
        run(Document(content="Then", meta={"source_id": "kiln", "split_idx_start": 45}), [list(OPEN)])["iou"] == 4 / 13
    )
    assert run(Document(id="kiln", content=TEXT), [list(OPEN)])["recall"] == 1.0
    # Places of Haystack's own trees count from the parent.
    splitter = HierarchicalDocumentSplitter(block_sizes={6, 2}, split_overlap=0, split_by="word")
    leaf = splitter.run([Document(id="kiln", content=TEXT)])["documents"][-1]
    assert run(leaf, [list(OPEN)])["recall"] is None


def test_another_field_may_name_the_source() -> None:
    evaluator = EvidenceRecallEvaluator(source_key="file_path")
    arguments: dict[str, Any] = {"evidence_spans": [[list(OPEN)]], "evidence_sources": ["docs/kiln.md"]}
    named = hit(*OPEN, "abc", file_path="docs/kiln.md")
    assert evaluator.run([["Then open it."]], [[named]], **arguments)["iou"] == 1.0
    whole = Document(content=TEXT, meta={"file_path": "docs/kiln.md"})
    assert evaluator.run([["Then open it."]], [[whole]], **arguments)["precision"] == 13 / 58
    assert evaluator.run([["Then open it."]], [[hit(*OPEN)]], **arguments)["iou"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"evidences": [["x"]]}, "Nothing that was retrieved is given"),
        ({"evidences": [["x"]], "contexts": ["x", "y"]}, "different lengths: evidences 1, contexts 2"),
        ({"evidences": [["x"]], "contexts": "x"}, "contexts is a str; it must be a list"),
        ({"evidences": ["x"], "contexts": ["x"]}, "is a list of texts, not one text"),
        ({"evidences": [["x"]], "contexts": ["x"], "evidence_spans": [[[0, 1]]]}, "evidence_spans need"),
        ({"evidences": [["x"]], "retrieved_documents": [[]], "evidence_spans": [[[0, 1]]]}, "evidence_sources to say"),
    ],
)
def test_inputs_that_make_no_sense(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EvidenceRecallEvaluator().run(**arguments)


def test_behind_our_splitter_and_context_builder() -> None:
    text = "# Kiln\n\nFire it slowly, over nine hours.\n\n# Wheel\n\nCentre the clay before you open it.\n"
    splitter = MarkdownHierarchicalSplitter(leaf_tokens=15, min_leaf_tokens=1)
    leaves = splitter.run([Document(id="page", content=text)])["documents"][1:]
    pipeline = Pipeline()
    pipeline.add_component("builder", ContextBuilder())
    pipeline.add_component("evaluator", EvidenceRecallEvaluator())
    built = pipeline.get_component("builder").run(leaves[:1])
    evidence = "Fire it slowly, over nine hours."
    span = [text.index(evidence), text.index(evidence) + len(evidence)]
    result = pipeline.get_component("evaluator").run(
        [[evidence], ["Centre the clay before you open it."]],
        [built["documents"]] * 2,
        [built["context"]] * 2,
        [[span], []],
        ["page", "page"],
    )
    assert result["individual_scores"] == [1.0, 0.0]
    assert (result["recall"], result["precision"]) == (1.0, len(evidence) / text.index("# Wheel"))


def test_yaml_and_haystacks_report() -> None:
    pipeline = Pipeline()
    pipeline.add_component("evaluator", EvidenceRecallEvaluator(source_key="file_path"))
    dump = pipeline.dumps()
    assert "type: hichunk_haystack.components.evaluators.EvidenceRecallEvaluator" in dump
    loaded = Pipeline.loads(dump, allowed_modules=["hichunk_haystack"])
    assert loaded.get_component("evaluator").to_dict() == {
        "type": "hichunk_haystack.components.evaluators.EvidenceRecallEvaluator",
        "init_parameters": {"source_key": "file_path"},
    }
    result = loaded.run({"evaluator": {"evidences": [["x"], []], "contexts": ["x", "y"]}})["evaluator"]
    json.dumps(result)
    report = EvaluationRunResult("run", inputs={"question": ["1", "2"]}, results={"erec": result})
    assert report.aggregated_report(output_format="json") == {"metrics": ["erec"], "score": [1.0]}
