# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import random
from dataclasses import replace
from pathlib import Path

import pytest
from haystack import Document

from hichunk_haystack.inspector.data import Run, query_data, tree_data
from tests.inspector.cases import HANDBOOK, POTS, leaves_of, merged, split


def test_a_tree_by_columns() -> None:
    data = tree_data(split(POTS))
    (source,) = data["sources"]
    assert (data["kind"], source["name"], source["id"], source["characters"]) == (
        "tree", "pots.md", "id of pots.md", len(POTS),
    )  # fmt: skip
    nodes = source["nodes"]
    # Pots > (its own line), Throwing > (its line, Bowls, Mugs), Firing of two leaves.
    assert "".join(source["texts"]) == POTS
    assert [titles for titles in nodes["titles"] if titles] == [["Pots"], ["Throwing"], ["Bowls"], ["Mugs"], ["Firing"]]
    throwing = nodes["titles"].index(["Throwing"])
    assert (
        "".join(source["texts"][nodes["first"][throwing] : nodes["last"][throwing] + 1])
        == (POTS[POTS.index("## Throwing") : POTS.index("## Firing")])
    )
    assert (nodes["first"][0], nodes["last"][0]) == (0, len(source["texts"]) - 1)
    assert nodes["parent"][0] is None


@pytest.mark.parametrize("path", HANDBOOK[:3], ids=lambda path: path.name)
def test_each_nodes_leaves_are_its_text(path: Path) -> None:
    documents = split(path.read_text(encoding="utf-8"), leaf_tokens=60)
    by_id = {document.id: document for document in documents}
    shuffled = random.Random(1).sample(documents, len(documents))
    (source,) = tree_data(shuffled)["sources"]
    nodes = source["nodes"]
    assert len(nodes["id"]) == len(documents)
    for place, node_id in enumerate(nodes["id"]):
        document = by_id[node_id]
        assert "".join(source["texts"][nodes["first"][place] : nodes["last"][place] + 1]) == document.content
        assert nodes["tokens"][place] == document.meta["token_count"]
        titles, above = [], place
        while above is not None:
            titles = nodes["titles"][above] + titles
            above = nodes["parent"][above]
        assert titles == document.meta["headings"]


def test_what_leaves_repeat_is_there_once() -> None:
    root = Document(
        id="r",
        content="one two three",
        meta={
            "__level": 0, "__parent_id": None, "__children_ids": ["a", "b"], "__block_size": 0, "source_id": "r",
            "split_idx_start": 0, "split_idx_end": 13, "token_count": 3, "headings": [],
        },
    )  # fmt: skip
    spans = {"a": (0, 7), "b": (4, 13)}
    leaves = [
        Document(
            id=name,
            content=root.content[start:end],
            meta={
                **root.meta, "__level": 1, "__parent_id": "r", "__children_ids": [], "token_count": 2,
                "split_idx_start": start, "split_idx_end": end,
            },
        )
        for name, (start, end) in spans.items()
    ]  # fmt: skip
    (source,) = tree_data([root, *leaves])["sources"]
    assert source["texts"] == ["one two", " three"]
    assert source["overlaps"] == {1: 3}


def test_sources_stand_by_name() -> None:
    trees = [*split(POTS, "b.md"), *split(POTS, "a.md")]
    assert [source["name"] for source in tree_data(trees)["sources"]] == ["a.md", "b.md"]


def test_what_is_no_tree_is_refused_with_a_way_out() -> None:
    with pytest.raises(ValueError, match=r"Document 'x' has no 'split_idx_start'.*Pass the `documents`"):
        tree_data([Document(id="x", content="Words.")])
    with pytest.raises(ValueError, match="no nodes to show"):
        tree_data([])
    with pytest.raises(ValueError, match="is not among the documents"):
        tree_data(split(POTS)[:-1])


def test_a_query_keeps_its_trace_and_the_texts() -> None:
    nodes = split(POTS)
    run = merged(nodes, leaves_of(nodes)[:2])
    data = query_data("How?", [run, (*run[:2], [document.to_dict() for document in run.documents])])
    assert (data["kind"], data["query"]) == ("query", "How?")
    assert data["runs"][0]["trace"] == run.trace
    assert data["runs"][0]["texts"] == {document.id: document.content for document in run.documents}
    assert data["runs"][1]["texts"] == data["runs"][0]["texts"]


def test_a_trace_of_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'old' has the schema 0; this page reads 1"):
        query_data("How?", [Run("old", {"schema": 0})])
    with pytest.raises(ValueError, match="at least one run"):
        query_data("How?", [])


def test_documents_are_not_changed() -> None:
    nodes = split(POTS)
    before = [replace(node, meta=dict(node.meta)) for node in nodes]
    tree_data(nodes)
    assert nodes == before
