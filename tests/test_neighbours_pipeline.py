# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""`query_neighbours.yml` and the two `_ranked.yml`, run as they are on real models."""

from itertools import pairwise
from pathlib import Path

import pytest

from hichunk_haystack import load_pipeline
from hichunk_haystack.cli.querying import run_query
from hichunk_haystack.cli.settings import with_settings
from hichunk_haystack.cli.specs import read_spec
from hichunk_haystack.pipeline_files import pipeline_file
from hichunk_haystack.serving import ServedPipeline
from tests.conftest import REPOSITORY
from tests.pipeline_files import data, served

HANDBOOK = REPOSITORY / "examples" / "handbook"
PAGES = ("06-slipway-safety.md", "07-slipway-equipment.md")
QUESTION = "How long may the wood lathe be booked and what does it cost per hour?"


@pytest.fixture(autouse=True)
def embedded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QDRANT_URL", raising=False)
    monkeypatch.setenv("QDRANT_PATH", str(tmp_path / "qdrant"))
    monkeypatch.chdir(tmp_path)


def index(name: str) -> None:
    file = pipeline_file(name)
    pipeline = load_pipeline(file)
    try:
        paths = [str(HANDBOOK / page) for page in PAGES]
        assert served(file, pipeline.run(data(file, paths=paths)))["sources"] == 2
    finally:
        pipeline.close()


def test_what_is_found_stands_among_its_neighbours() -> None:
    index("indexing")
    file = pipeline_file("query_neighbours")
    pipeline = load_pipeline(file)
    try:
        result = pipeline.run(data(file, query=QUESTION), include_outputs_from={"merger", "neighbours"})
    finally:
        pipeline.close()
    answer, merged, around = served(file, result), result["merger"]["documents"], result["neighbours"]
    assert "| Wood lathe" in answer["context"]
    assert 0 < answer["tokens_used"] <= 1024
    # The merge has its part, and something comes on top of it.
    assert 0 < answer["trace"]["tokens_used"] <= answer["trace"]["token_budget"] == 768
    assert around["climbed"] + around["added"] > 0
    assert sum(node.meta["token_count"] + 10 for node in around["documents"]) <= 1024
    # All of what was found is there still, none of it twice.
    spans = sorted(
        (node.meta["source_id"], node.meta["split_idx_start"], node.meta["split_idx_end"])
        for node in around["documents"]
    )
    for one, two in pairwise(spans):
        assert one[0] != two[0] or one[2] <= two[1]
    for node in merged:
        source, start = node.meta["source_id"], node.meta["split_idx_start"]
        assert any(source == other and first <= start < last for other, first, last in spans)
    # What `hichunk ask` tells is the budget of all, not the merge's part.
    told = run_query(read_spec("query_neighbours", "query"), QUESTION)
    assert (told.tokens_used, told.token_budget) == (answer["tokens_used"], 1024)


def test_a_budget_of_the_command_line_reaches_it() -> None:
    changed = with_settings(read_spec("query_neighbours", "query"), {"token_budget": 77})
    budgets = {name: each["init_parameters"].get("token_budget") for name, each in changed.components.items()}
    # The merge keeps three quarters: 57.75.
    assert {name: budget for name, budget in budgets.items() if budget} == {
        "context_builder": 77, "merger": 57, "neighbours": 77,
    }  # fmt: skip


async def test_a_budget_for_one_question_is_shared_in_the_same_way() -> None:
    index("indexing")
    query = ServedPipeline(pipeline_file("query_neighbours"))
    try:
        answer = await query.run({"query": QUESTION}, token_budget=400)
    finally:
        query.pipeline.close()
    assert answer["trace"]["token_budget"] == 300
    assert 300 < answer["tokens_used"] <= 400


def test_leaves_are_ranked_by_what_stands_around_them() -> None:
    index("indexing_ranked")
    file = pipeline_file("query_ranked")
    pipeline = load_pipeline(file)
    try:
        result = pipeline.run(data(file, query=QUESTION), include_outputs_from={"retriever", "ranker"})
    finally:
        pipeline.close()
    answer, found, ranked = served(file, result), *(result[name]["documents"] for name in ("retriever", "ranker"))
    assert "| Wood lathe" in answer["context"]
    assert 0 < answer["tokens_used"] <= 1024
    assert len(found) > 40
    assert len(ranked) == min(64, len(found))
    assert {leaf.id for leaf in ranked} <= {leaf.id for leaf in found}
    assert [leaf.id for leaf in ranked] != [leaf.id for leaf in found][: len(ranked)]
    scores = [leaf.score or 0.0 for leaf in ranked]
    assert scores == sorted(scores, reverse=True)
