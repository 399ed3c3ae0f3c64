# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Settings of a run, and where they end up in a pipeline."""

import os
from pathlib import Path

import pytest

from hichunk_haystack.cli.errors import UserError
from hichunk_haystack.cli.settings import check_settings, label_of, parse_settings, with_settings
from hichunk_haystack.cli.specs import PipelineSpec, filled_by, read_spec, typed


def test_settings_are_read_as_yaml_reads_values() -> None:
    found = parse_settings(["order=document,threshold=0.25", " top-k = 7", "top_parents=null"], budget=300, policy=None)
    assert found == {"order": "document", "threshold": 0.25, "top_k": 7, "top_parents": None, "token_budget": 300}
    assert label_of(found) == "order=document, threshold=0.25, top_k=7, top_parents=None, token_budget=300"
    assert label_of({}) == "as in the YAML"


@pytest.mark.parametrize("text", ["", "order", "=1", "order=", "order= "])
def test_a_text_that_is_no_setting(text: str) -> None:
    with pytest.raises(UserError, match="write NAME=VALUE") as caught:
        parse_settings([text])
    assert caught.value.code == 2


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"speed": 9}, "There is no setting 'speed'; there are top_k, budget, token_budget, policy"),
        ({"document_store": 1}, "There is no setting 'document_store'"),
        ({"policy": "best"}, "policy is 'best'"),
        ({"token_budget": 0}, "token_budget is 0"),
        ({"top_k": "many"}, "top_k is many"),
        ({"threshold": "half"}, "threshold"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, object], says: str) -> None:
    with pytest.raises(UserError, match=says) as caught:
        check_settings(settings)
    assert caught.value.code == 2


def test_settings_that_make_sense() -> None:
    check_settings({"policy": "parent", "parent_levels": 2, "top_k": 5, "token_budget": 1, "max_share_per_source": 0.5})


@pytest.mark.parametrize(
    ("name", "hits"), [("query", 1), ("query_hybrid", 1), ("query_variants", 2), ("query_rerank", 2)]
)
def test_budget_and_number_of_hits_reach_all_whom_they_concern(name: str, hits: int) -> None:
    spec = read_spec(name, "query")
    changed = with_settings(spec, {"token_budget": 77, "top_k": 5, "policy": "none"})
    parameters = {name: each["init_parameters"] for name, each in changed.components.items()}
    for component in changed.find("BudgetAutoMergingRetriever", "ContextBuilder"):
        assert parameters[component]["token_budget"] == 77
    (merger,) = changed.find("BudgetAutoMergingRetriever")
    assert parameters[merger]["policy"] == "none"
    assert "top_k" not in parameters[merger]
    # Those in front of the merge; what sorts its passages behind it takes as many as there are.
    before, after = (
        [each["init_parameters"]["top_k"] for name in spec.above(merger) for each in typed(one.components[name])
         if "top_k" in each["init_parameters"]] for one in (spec, changed)
    )  # fmt: skip
    assert after == [5] * len(before)
    assert len(before) == hits
    assert 5 not in before  # the pipeline that was given is as it was


def test_a_part_keeps_the_connections_inside_of_it() -> None:
    spec = read_spec("indexing", "indexing")
    assert spec.above("splitter") == ["converter", "splitter"]
    part = spec.part(["converter", "splitter"])
    assert list(part.components) == ["converter", "splitter"]
    assert part.data["connections"] == [{"sender": "converter.documents", "receiver": "splitter.documents"}]
    assert part.declared("paths") == [("converter", "paths")]
    assert spec.part(["splitter"]).declared("paths") == []


def test_a_store_is_moved_to_a_folder_or_a_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("QDRANT_URL", "http://old:6333")
    monkeypatch.setenv("QDRANT_PATH", "old")
    spec = read_spec("query", "query", str(tmp_path))
    assert "QDRANT_URL" not in os.environ
    assert os.environ["QDRANT_PATH"] == str(tmp_path)
    places = [each["init_parameters"] for each in typed(spec.data) if each["type"].endswith("QdrantDocumentStore")]
    assert places == [{"index": "hichunk", "embedding_dim": 384}] * 2
    read_spec("query", "query", "https://new:6333")
    assert os.environ["QDRANT_URL"] == "https://new:6333"


@pytest.mark.parametrize(
    ("query", "indexing"),
    [
        ("query", "indexing"),
        ("rag", "indexing"),
        ("query_ranked", "indexing_ranked"),
        ("query_hybrid", "indexing_hybrid"),
        ("baseline", "indexing_baseline"),
    ],
)
def test_the_indexing_pipeline_that_belongs_to_a_query(query: str, indexing: str) -> None:
    assert filled_by(read_spec(query, "query")) == indexing


def test_no_indexing_pipeline_belongs_to_another_collection() -> None:
    spec = read_spec("query", "query")
    for each in typed(spec.components):
        if "index" in each["init_parameters"]:
            each["init_parameters"]["index"] = "own"
    assert filled_by(spec) is None
    assert filled_by(PipelineSpec(spec.path, {"components": {}})) is None
