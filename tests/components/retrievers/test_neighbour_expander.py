# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from copy import deepcopy
from typing import Any

import pytest
from haystack import Document
from haystack.components.preprocessors import HierarchicalDocumentSplitter
from haystack.document_stores.in_memory import InMemoryDocumentStore
from hypothesis import given
from hypothesis import strategies as st

from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.components.retrievers import BudgetAutoMergingRetriever, NeighbourExpander
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from hichunk_haystack.tree import is_leaf

WORDS = ("One", "Two", "Three", "Four", "Five", "Six")
TEXT = "".join(f"{word} is the number.\n\n" for word in WORDS) + "# Kiln\n\nFire it.\n\nCool it.\n"


@pytest.fixture(scope="module")
def nodes() -> list[Document]:
    """Leaves of five tokens (a word, three more, a full stop) in a row, then a section of two."""
    splitter = MarkdownHierarchicalSplitter(leaf_tokens=5, min_leaf_tokens=1, inner_tokens=[])
    return splitter.run([Document(content=TEXT, meta={"file_path": "a.md"})])["documents"]


@pytest.fixture(scope="module")
def store(nodes: list[Document]) -> InMemoryDocumentStore:
    store = InMemoryDocumentStore()
    store.write_documents(nodes)
    return store


def leaf(nodes: list[Document], word: str, score: float | None = None) -> Document:
    found = next(node for node in nodes if is_leaf(node) and word in (node.content or ""))
    return Document.from_dict({**found.to_dict(flatten=False), "score": score})


def firsts(result: dict[str, Any]) -> list[str]:
    return [(node.content or "").split()[0] for node in result["documents"]]


def test_siblings_are_as_the_tests_take_them(nodes: list[Document]) -> None:
    parents = {leaf(nodes, word).meta["__parent_id"] for word in WORDS}
    assert len(parents) == 1
    assert {leaf(nodes, word).meta["token_count"] for word in WORDS} == {5}


def test_the_nearest_siblings_of_the_best_results_come_first(nodes: list[Document], store: Any) -> None:
    hits = [leaf(nodes, "Five", 0.9), leaf(nodes, "Two", 0.8)]

    def expand(budget: int, siblings: int = 2) -> list[str]:
        return firsts(NeighbourExpander(store, token_budget=budget, siblings=siblings).run(hits))

    assert expand(10) == ["Five", "Two"]
    assert expand(14) == ["Five", "Two"]
    assert expand(15) == ["Four", "Five", "Two"]
    assert expand(20) == ["Four", "Five", "Six", "Two"]
    assert expand(25) == ["Four", "Five", "Six", "One", "Two"]
    # At distance 2 of "Five" is "Three", which "Two" has taken at distance 1.
    assert expand(30) == ["Four", "Five", "Six", "One", "Two", "Three"]
    assert expand(100, siblings=1) == ["Four", "Five", "Six", "One", "Two", "Three"]
    assert expand(100, siblings=0) == ["Five", "Two"]


def test_neighbours_tell_whose_they_are(nodes: list[Document], store: Any) -> None:
    hit = leaf(nodes, "Two", 0.8)
    before = deepcopy(hit)
    result = NeighbourExpander(store, token_budget=100).run([hit])
    assert result["added"] == 2
    assert [node.meta.get("neighbour_of") for node in result["documents"]] == [hit.id, None, hit.id]
    assert [node.score for node in result["documents"]] == [0.8, 0.8, 0.8]
    assert hit == before
    assert "neighbour_of" not in store.filter_documents()[0].meta


def test_the_overhead_of_a_document_counts(nodes: list[Document], store: Any) -> None:
    expander = NeighbourExpander(store, token_budget=24, document_overhead=3)
    assert firsts(expander.run([leaf(nodes, "Two")])) == ["One", "Two", "Three"]
    assert firsts(expander.run([leaf(nodes, "Two")], token_budget=23)) == ["One", "Two"]


def test_text_that_is_in_a_result_already_is_not_taken_again(nodes: list[Document], store: Any) -> None:
    root = nodes[0]
    assert NeighbourExpander(store).run([root])["documents"] == [root]
    (section,) = [node for node in nodes if not is_leaf(node) and "Kiln" in node.meta["headings"]]
    before = leaf(nodes, "Cool")
    # The sibling before the section is not in it; inside, the leaf's sibling is.
    found = NeighbourExpander(store, siblings=3).run([before])
    assert [node.content for node in found["documents"]][-1] == "Cool it.\n"
    assert section.id not in {node.id for node in found["documents"]}
    again = NeighbourExpander(store, siblings=3).run([section, before])
    assert "Fire it." not in "".join(node.content or "" for node in again["documents"] if node.id != section.id)


async def test_run_and_run_async_give_the_same_on_qdrant(nodes: list[Document]) -> None:
    store = HierarchyQdrantDocumentStore(location=":memory:", embedding_dim=2)
    store.write_documents(nodes)
    expander = NeighbourExpander(store, token_budget=60)
    merged = BudgetAutoMergingRetriever(store, token_budget=60).run([leaf(nodes, "Five", 0.9), leaf(nodes, "Two", 0.8)])
    result = expander.run(merged["documents"])
    assert result["added"] > 0
    assert await expander.run_async(merged["documents"]) == result


def test_a_parent_or_a_sibling_that_is_missing_is_passed_over(nodes: list[Document]) -> None:
    store = InMemoryDocumentStore()
    hit, other = leaf(nodes, "Two"), leaf(nodes, "Three")
    assert NeighbourExpander(store).run([hit]) == {"documents": [hit], "added": 0}
    store.write_documents([node for node in nodes if node.id == hit.meta["__parent_id"] or node.id == other.id])
    assert firsts(NeighbourExpander(store).run([hit])) == ["Two", "Three"]


def test_documents_without_a_tree_and_trees_of_haystack() -> None:
    plain = Document(content="No tree.")
    assert NeighbourExpander(InMemoryDocumentStore()).run([plain]) == {"documents": [plain], "added": 0}
    assert NeighbourExpander(InMemoryDocumentStore()).run([]) == {"documents": [], "added": 0}
    stock = HierarchicalDocumentSplitter(block_sizes={4, 2}).run([Document(content="a b c d e f g h")])["documents"]
    store = InMemoryDocumentStore()
    store.write_documents(stock)
    hit = next(node for node in stock if node.content == "e f ")
    assert [node.content for node in NeighbourExpander(store).run([hit])["documents"]] == ["e f ", "g h"]


@given(st.sets(st.sampled_from(WORDS), min_size=1), st.integers(1, 60), st.integers(0, 5), st.integers(0, 4))
def test_results_stay_in_order_within_the_budget_and_nothing_comes_twice(
    nodes: list[Document], store: Any, words: set[str], budget: int, siblings: int, overhead: int
) -> None:
    hits = [leaf(nodes, word) for word in sorted(words)]
    expander = NeighbourExpander(store, token_budget=budget, siblings=siblings, document_overhead=overhead)
    result = expander.run(hits)
    ids = [node.id for node in result["documents"]]
    assert len(set(ids)) == len(ids) == len(hits) + result["added"]
    assert [node.id for node in result["documents"] if "neighbour_of" not in node.meta] == [hit.id for hit in hits]
    if result["added"]:
        assert sum(node.meta["token_count"] + overhead for node in result["documents"]) <= budget


def test_to_dict_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAYSTACK_DESERIALIZATION_ALLOWLIST", "hichunk_haystack")
    expander = NeighbourExpander(HierarchyQdrantDocumentStore(path="data"), token_budget=9, siblings=2)
    data = expander.to_dict()
    assert data["type"] == "hichunk_haystack.components.retrievers.NeighbourExpander"
    assert {key: value for key, value in data["init_parameters"].items() if key != "document_store"} == {
        "token_budget": 9, "siblings": 2, "document_overhead": 0, "token_counter": None
    }  # fmt: skip
    assert NeighbourExpander.from_dict(data).to_dict() == data


@pytest.mark.parametrize(("option", "value"), [("token_budget", 0), ("siblings", -1), ("document_overhead", -1)])
def test_numbers_that_make_no_sense_are_named(option: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"{option} is {value}; it must be at least"):
        NeighbourExpander(InMemoryDocumentStore(), **{option: value})
