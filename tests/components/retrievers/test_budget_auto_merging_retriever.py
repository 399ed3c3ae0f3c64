# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import json
import logging
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from haystack import Document, Pipeline
from haystack.components.preprocessors import HierarchicalDocumentSplitter
from haystack.document_stores.errors import MissingDocumentError
from haystack.document_stores.in_memory import InMemoryDocumentStore

from hichunk_haystack.components.retrievers import BudgetAutoMergingRetriever
from hichunk_haystack.tokens import HuggingFaceTokenCounter
from tests.components.retrievers.sentence_trees import (
    WORDS,
    ids,
    leaves_of,
    ranked,
    run,
    source,
    stock,
    store_of,
    tokens,
    tree,
)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The ids of each read, of any store."""
    asked: list[list[str]] = []
    from hichunk_haystack import reading

    def counted(store: Any, ids: Any) -> Any:
        asked.append(sorted(ids))
        return original(store, ids)

    original = reading._in_memory
    monkeypatch.setattr(reading, "_in_memory", counted)
    return asked


def test_the_trees_of_these_tests() -> None:
    nodes = tree()
    # The source, three sections, and in each three leaves of three sentences, the first one with the heading.
    assert [node.meta["__level"] for node in nodes] == [0, *(3 * [1, 2, 2, 2])]
    assert [node.meta["token_count"] for node in nodes] == [144, *(3 * [48, 18, 15, 15])]


def test_two_leaves_of_a_section_give_the_section_with_the_best_score() -> None:
    nodes = tree()
    first, second, third = nodes[2:5]
    result = run(nodes, ranked(third, second))
    # After two leaves 30 of 1000 are used: 30 >= 48/3 * 1.03.
    (document,) = result["documents"]
    assert (document.id, document.content, document.score) == (nodes[1].id, nodes[1].content, 0.9)
    assert document.meta == nodes[1].meta
    assert document.embedding is None
    assert result["trace"]["tokens_used"] == 48
    assert result["trace"]["nodes"][0]["hits"] == [third.id, second.id]
    assert first.id not in [hit["id"] for hit in result["trace"]["hits"]]


def test_one_read_whatever_merges_and_none_when_nothing_does(reads: list[list[str]]) -> None:
    nodes = tree(sections=8)
    sections = [node for node in nodes if node.meta["__level"] == 1]
    store = store_of(*nodes)
    retriever = BudgetAutoMergingRetriever(store, token_budget=10_000, max_merge_level=1)
    scattered = [nodes[nodes.index(section) + 2] for section in sections]
    assert ids(retriever.run(scattered)) == [leaf.id for leaf in scattered]
    assert reads == []
    result = retriever.run(leaves_of(nodes))
    assert ids(result) == [section.id for section in sections]
    assert reads == [sorted(section.id for section in sections)]
    # Hits that are sections themselves are there already.
    reads.clear()
    retriever.run([*sections, *leaves_of(nodes)])
    assert reads == []


def test_forty_hits_under_twenty_parents_of_a_stock_tree_take_a_read_a_level(reads: list[list[str]]) -> None:
    text = "".join(f"{WORDS[number % 8]} " for number in range(1280))
    splitter = HierarchicalDocumentSplitter(block_sizes={256, 64, 16}, split_overlap=0, split_by="word")
    nodes = splitter.run([Document(id="source", content=text)])["documents"]
    blocks = [node for node in nodes if node.meta["__level"] == 2]
    # Two of the four leaves of each of the twenty blocks; five blocks of 256 words above them, and the source.
    hits = [node for block in blocks for node in nodes if node.id in block.meta["__children_ids"][:2]]
    assert (len(blocks), len(hits)) == (20, 40)
    result = run(nodes, hits, budget=400)
    assert [len(read) for read in reads] == [20, 5, 1]
    assert any(node["merged"] for node in result["trace"]["nodes"])
    assert result["trace"]["tokens_used"] <= 400


def test_all_leaves_give_the_root_once() -> None:
    nodes = tree()
    result = run(nodes, leaves_of(nodes))
    assert ids(result) == ["alpha"]
    assert result["documents"][0].content == source("alpha").content


def test_the_same_leaf_twice_counts_once_with_its_best_score() -> None:
    nodes = tree()
    leaf = nodes[3]
    result = run(nodes, [replace(leaf, score=0.9), replace(leaf, score=0.2)])
    assert [(document.id, document.score) for document in result["documents"]] == [(leaf.id, 0.9)]
    result = run(nodes, [replace(leaf, score=0.2), replace(leaf, score=0.9)])
    assert [(document.id, document.score) for document in result["documents"]] == [(leaf.id, 0.9)]
    assert result["trace"]["tokens_used"] == 15
    assert len(result["trace"]["hits"]) == 1


def test_an_ancestor_and_its_descendant_come_out_as_one() -> None:
    nodes = tree()
    for hits in ([nodes[1], nodes[3]], [nodes[3], nodes[1]]):
        assert ids(run(nodes, hits)) == [nodes[1].id]


def test_a_deleted_parent_costs_nothing_but_its_own_merge(caplog: pytest.LogCaptureFixture) -> None:
    nodes = tree()
    gone = nodes[5]
    hits = [node for section in (1, 5, 9) for node in nodes[section + 1 : section + 3]]
    retriever = BudgetAutoMergingRetriever(store_of(*[node for node in nodes if node is not gone]), max_merge_level=1)
    with caplog.at_level(logging.WARNING):
        result = retriever.run(hits)
        # A second time it is not told again.
        retriever.run(hits)
    assert ids(result) == [nodes[1].id, hits[2].id, hits[3].id, nodes[9].id]
    assert result["trace"]["missing"] == [gone.id]
    warnings = [record.getMessage() for record in caplog.records if gone.id in record.getMessage()]
    assert len(warnings) == 1
    # The trace tells why they stand alone.
    (refused,) = [step for step in result["trace"]["steps"] if step["node"] == gone.id and step["hit"] == hits[3].id]
    assert [condition["name"] for condition in refused["conditions"] if not condition["met"]] == ["in_store"]


def test_a_deleted_parent_may_raise() -> None:
    nodes = tree()
    retriever = BudgetAutoMergingRetriever(store_of(*nodes[:1], *nodes[2:]), max_merge_level=1, missing_parent="raise")
    with pytest.raises(MissingDocumentError, match=f"parent node {nodes[1].id}. Index"):
        retriever.run(nodes[3:5])
    # What is not wanted is not missed.
    assert ids(retriever.run(nodes[3:4])) == [nodes[3].id]


@pytest.mark.parametrize("missing_parent", ["keep", "raise"])
def test_a_deleted_parent_in_a_stock_tree(missing_parent: Any, caplog: pytest.LogCaptureFixture) -> None:
    nodes = stock("alpha")
    gone = nodes[1]
    orphans = [node for node in nodes if node.meta["__parent_id"] == gone.id][:2]
    retriever = BudgetAutoMergingRetriever(store_of(*nodes[:1], *nodes[2:]), missing_parent=missing_parent)
    if missing_parent == "raise":
        with pytest.raises(MissingDocumentError, match=gone.id):
            retriever.run(orphans)
        return
    result = retriever.run(orphans)
    assert ids(result) == [orphan.id for orphan in orphans]
    assert result["trace"]["missing"] == [gone.id]
    assert gone.id in caplog.text


def test_a_root_that_belongs_to_a_newer_tree_is_not_merged_into() -> None:
    nodes = tree()
    newer = replace(nodes[0], content="Something else.", meta={**nodes[0].meta, "__tree_id": "newer"})
    result = run([newer, *nodes[1:]], leaves_of(nodes))
    assert "Something else." not in [document.content for document in result["documents"]]
    assert ids(result) == [leaf.id for leaf in leaves_of(nodes)]


def test_all_kinds_of_documents_in_one_list_come_through() -> None:
    ours, theirs = tree(), stock("beta")
    unsplit = HierarchicalDocumentSplitter(block_sizes={16}, split_overlap=0).run([Document(content="One short text.")])
    hits = [
        Document(id="plain", content="No tree at all."),
        ours[3],
        *leaves_of(theirs)[:2],
        unsplit["documents"][0],
        ours[4],
    ]
    result = run([*ours, *theirs], hits, budget=1000, max_merge_level=1)
    assert ids(result) == ["plain", ours[1].id, theirs[1].id, unsplit["documents"][0].id]
    # 5 + 48 + 16 words + 4 tokens: all of them count.
    assert result["trace"]["tokens_used"] == 5 + 48 + tokens(theirs[1].content) + 4
    assert sum(tokens(document.content) for document in result["documents"]) == result["trace"]["tokens_used"]


def test_rank_order_by_default_document_order_on_request() -> None:
    nodes = tree()
    hits = ranked(nodes[4], nodes[2], nodes[3])
    assert ids(run(nodes, hits, policy="none")) == [nodes[4].id, nodes[2].id, nodes[3].id]
    result = run(nodes, hits, policy="none", order="document")
    (document,) = result["documents"]
    # The three leaves touch: they are the section.
    assert document.content == nodes[1].content
    assert document.meta["joined"] == [nodes[2].id, nodes[3].id, nodes[4].id]
    assert (document.score, document.meta["token_count"]) == (0.9, 48)
    assert document.meta["file_path"] == "alpha.md"
    assert "__parent_id" not in document.meta
    assert result["trace"]["documents"][0]["nodes"] == document.meta["joined"]


def test_document_order_of_two_sources() -> None:
    first, second = tree("alpha"), tree("beta")
    hits = ranked(second[10], first[4], second[3], first[2])
    result = run([*first, *second], hits, policy="none", order="document")
    assert ids(result) == [second[3].id, second[10].id, first[2].id, first[4].id]


async def test_run_and_run_async_give_the_same() -> None:
    ours, theirs = tree(), stock("beta")
    hits = ranked(ours[3], leaves_of(theirs)[0], ours[4], leaves_of(theirs)[1], Document(id="plain", content="Words."))
    for options in ({}, {"policy": "parent", "order": "document"}, {"policy": "ratio", "overflow": "truncate"}):
        retriever = BudgetAutoMergingRetriever(store_of(*ours, *theirs), token_budget=60, **options)
        assert retriever.run(hits) == await retriever.run_async(hits)
        assert retriever.run(hits, 20) == await retriever.run_async(hits, token_budget=20)


def test_the_callers_documents_are_not_changed() -> None:
    ours, theirs = tree(), stock("beta")
    hits = ranked(ours[3], ours[4], leaves_of(theirs)[0], replace(ours[8], embedding=[1.0, 2.0]), ours[1])
    before = deepcopy(hits)
    for policy in ("hichunk", "ratio", "parent", "none"):
        for order in ("rank", "document"):
            run([*ours, *theirs], hits, budget=60, policy=policy, order=order, overflow="truncate")
    assert hits == before


def test_the_stores_documents_are_not_changed() -> None:
    nodes = [replace(node, embedding=[1.0, 2.0]) for node in tree()]
    store = store_of(*nodes)
    before = deepcopy(store.storage)
    result = BudgetAutoMergingRetriever(store).run(leaves_of(nodes))
    assert result["documents"][0].embedding is None
    assert store.storage == before


def test_the_trace_is_plain_and_complete() -> None:
    nodes = tree()
    hits = [*ranked(nodes[3], nodes[4], nodes[7], nodes[8]), Document(id="plain", content="Words. " * 50)]
    result = run(nodes, hits, budget=80, document_overhead=2)
    trace = json.loads(json.dumps(result["trace"]))
    assert (trace["schema"], trace["token_budget"], trace["tokens_used"]) == (1, 80, 67)
    assert trace["options"]["policy"] == "hichunk"
    assert trace["options"]["missing_parent"] == "keep"
    # nodes[3] and nodes[4] give the section nodes[1]: 48 + 2. nodes[7]: 15 + 2 more. nodes[8] and "plain" do not fit.
    assert [(hit["rank"], hit["id"], hit["outcome"], hit["reason"], hit["node"]) for hit in trace["hits"]] == [
        (1, nodes[3].id, "merged", None, nodes[1].id),
        (2, nodes[4].id, "merged", None, nodes[1].id),
        (3, nodes[7].id, "returned", None, nodes[7].id),
        (4, nodes[8].id, "left_out", "budget", None),
        (5, "plain", "left_out", "budget", None),
    ]
    first = trace["hits"][0]
    assert (first["score"], first["tokens"], first["source_id"], first["level"]) == (0.9, 15, "alpha", 2)
    assert first["headings"] == ["alpha 0"]
    assert first["excerpt"] == nodes[3].content
    assert first["ancestors"] == [nodes[1].id, "alpha"]
    section = trace["ancestors"][nodes[1].id]
    assert section == {
        "level": 1, "tokens": 48, "children": 3, "parent": "alpha", "headings": ["alpha 0"],
        "start": nodes[1].meta["split_idx_start"], "end": nodes[1].meta["split_idx_end"],
    }  # fmt: skip
    assert trace["ancestors"]["alpha"]["headings"] == []
    assert trace["sources"] == {"alpha": "alpha.md", "plain": ""}
    assert [step["action"] for step in trace["steps"]] == [
        "held", "not_merged", "held", "merged", "not_merged", "held", "not_merged", "does_not_fit", "does_not_fit",
    ]  # fmt: skip
    assert [step["used"] for step in trace["steps"]] == [17, 17, 34, 50, 50, 67, 67, 67, 67]
    assert [(node["id"], node["merged"], node["rank"]) for node in trace["nodes"]] == [
        (nodes[1].id, True, 1),
        (nodes[7].id, False, 3),
    ]
    assert trace["nodes"][0]["excerpt"] == (nodes[1].content or "")[:160]


def test_an_empty_list_gives_an_empty_answer() -> None:
    result = run([], [])
    assert result["documents"] == []
    assert result["trace"]["tokens_used"] == 0


@pytest.mark.parametrize("budget", [0, -1])
def test_a_budget_that_makes_no_sense(budget: int) -> None:
    with pytest.raises(ValueError, match=f"token_budget is {budget}"):
        BudgetAutoMergingRetriever(InMemoryDocumentStore(), token_budget=budget)
    with pytest.raises(ValueError, match=f"token_budget is {budget}"):
        BudgetAutoMergingRetriever(InMemoryDocumentStore()).run([], budget)


def test_an_option_that_makes_no_sense() -> None:
    with pytest.raises(ValueError, match="missing_parent is 'ignore'; it must be 'keep' or 'raise'"):
        BudgetAutoMergingRetriever(InMemoryDocumentStore(), missing_parent="ignore")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="policy is 'best'"):
        BudgetAutoMergingRetriever(InMemoryDocumentStore(), policy="best")


DEFAULTS = {
    "token_budget": 4096,
    "policy": "hichunk",
    "budget_check": "net",
    "min_children": 2,
    "theta_start": 1 / 3,
    "theta_end": 2 / 3,
    "threshold": 0.5,
    "parent_levels": 1,
    "min_node_tokens": 0,
    "max_merge_level": 0,
    "overflow": "skip",
    "order": "rank",
    "top_parents": None,
    "max_share_per_source": None,
    "missing_parent": "keep",
    "document_overhead": 0,
    "token_counter": None,
}


CHANGED = {
    "token_budget": 100,
    "policy": "ratio",
    "budget_check": "paper",
    "min_children": 3,
    "theta_start": 0.2,
    "theta_end": 0.9,
    "threshold": 0.75,
    "parent_levels": 2,
    "min_node_tokens": 40,
    "max_merge_level": 1,
    "overflow": "truncate",
    "order": "document",
    "top_parents": 5,
    "max_share_per_source": 0.5,
    "missing_parent": "raise",
    "document_overhead": 12,
}


def test_to_dict_tells_all_and_from_dict_gives_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAYSTACK_DESERIALIZATION_ALLOWLIST", "hichunk_haystack")
    store = InMemoryDocumentStore()
    assert BudgetAutoMergingRetriever(store).to_dict() == {
        "type": "hichunk_haystack.components.retrievers.BudgetAutoMergingRetriever",
        "init_parameters": {"document_store": store.to_dict(), **DEFAULTS},
    }
    counter = HuggingFaceTokenCounter("some/model")
    data = BudgetAutoMergingRetriever(store, **CHANGED, token_counter=counter).to_dict()
    assert data["init_parameters"] == {
        "document_store": store.to_dict(), **CHANGED, "token_counter": counter.to_dict(),
    }  # fmt: skip
    assert set(DEFAULTS) == set(data["init_parameters"]) - {"document_store"}
    assert BudgetAutoMergingRetriever.from_dict(deepcopy(data)).to_dict() == data


def test_it_survives_yaml() -> None:
    pipeline = Pipeline()
    pipeline.add_component("merger", BudgetAutoMergingRetriever(InMemoryDocumentStore(index="x"), **CHANGED))
    text = pipeline.dumps()
    loaded = Pipeline.loads(text, allowed_modules=["hichunk_haystack"])
    assert loaded.dumps() == text
    result = loaded.run({"merger": {"documents": [Document(id="a", content="Words.")], "token_budget": 50}})
    assert [document.id for document in result["merger"]["documents"]] == ["a"]
