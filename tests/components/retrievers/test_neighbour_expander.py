# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from copy import deepcopy
from itertools import pairwise
from typing import Any

import pytest
from haystack import Document
from haystack.components.preprocessors import HierarchicalDocumentSplitter
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.document_stores.types import DuplicatePolicy
from hypothesis import given
from hypothesis import strategies as st

from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.components.retrievers import BudgetAutoMergingRetriever, NeighbourExpander
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from hichunk_haystack.leaf_texts import without_inner_text
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
    assert NeighbourExpander(store).run([hit]) == {"documents": [hit], "climbed": 0, "added": 0}
    store.write_documents([node for node in nodes if node.id == hit.meta["__parent_id"] or node.id == other.id])
    assert firsts(NeighbourExpander(store).run([hit])) == ["Two", "Three"]


def test_what_a_joined_result_holds_is_not_taken_again(nodes: list[Document], store: Any) -> None:
    hits = [leaf(nodes, "One", 0.9), leaf(nodes, "Three", 0.8), leaf(nodes, "Four", 0.7)]
    passages = BudgetAutoMergingRetriever(store, token_budget=15, order="document").run(hits)["documents"]
    assert [(passage.content or "").count("number") for passage in passages] == [1, 2]
    for siblings, levels in ((2, 0), (0, 2), (9, 9)):
        result = NeighbourExpander(store, token_budget=99, siblings=siblings, levels=levels).run(passages)
        text = "".join(node.content or "" for node in result["documents"])
        assert [text.count(f"{word} is") for word in ("One", "Three", "Four")] == [1, 1, 1]
    assert "Two is" in text
    # A key of that name that is not ours says nothing.
    odd = leaf(nodes, "One")
    odd.meta["joined"] = "2024-02-29"
    assert NeighbourExpander(store, token_budget=10).run([odd])["added"] == 1


def test_documents_without_a_tree_and_trees_of_haystack() -> None:
    plain = Document(content="No tree.")
    assert NeighbourExpander(InMemoryDocumentStore()).run([plain]) == {"documents": [plain], "climbed": 0, "added": 0}
    assert NeighbourExpander(InMemoryDocumentStore()).run([]) == {"documents": [], "climbed": 0, "added": 0}
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


# -- levels


PAGES = """\
# Pottery

Clay comes from the river bed.

## Kiln

Load the kiln first.

Then fire it slowly.

Let it cool.

## Wheel

Centre the clay.

Open it with both thumbs.
"""


@pytest.fixture(scope="module")
def page() -> list[Document]:
    """A page, its two sections, and their headings and paragraphs as leaves."""
    splitter = MarkdownHierarchicalSplitter(leaf_tokens=9, min_leaf_tokens=1, inner_tokens=[])
    return splitter.run([Document(content=PAGES, meta={"file_path": "p.md"})])["documents"]


@pytest.fixture(scope="module")
def shelf(page: list[Document]) -> InMemoryDocumentStore:
    store = InMemoryDocumentStore()
    store.write_documents(page)
    return store


def section(nodes: list[Document], title: str) -> Document:
    return next(node for node in nodes if not is_leaf(node) and node.meta["headings"][-1:] == [title])


def tokens(*nodes: Document) -> int:
    return sum(node.meta["token_count"] for node in nodes)


def test_a_result_gives_way_to_the_node_above_it_where_that_fits(page: list[Document], shelf: Any) -> None:
    kiln, hit = section(page, "Kiln"), leaf(page, "slowly", 0.7)
    before = deepcopy(hit)
    expander = NeighbourExpander(shelf, token_budget=tokens(kiln), siblings=0, levels=1)
    result = expander.run([hit])
    (node,) = result["documents"]
    assert (node.id, node.content, node.score) == (kiln.id, kiln.content, 0.7)
    assert node.meta["expanded_from"] == [hit.id]
    assert (result["climbed"], result["added"]) == (1, 0)
    assert hit == before
    assert "expanded_from" not in shelf.storage[kiln.id].meta
    # One token less, and it does not.
    assert expander.run([hit], token_budget=tokens(kiln) - 1) == {"documents": [hit], "climbed": 0, "added": 0}
    assert expander.run([hit], token_budget=1) == {"documents": [hit], "climbed": 0, "added": 0}


def test_results_of_one_section_become_it_together(page: list[Document], shelf: Any) -> None:
    kiln, first, other = section(page, "Kiln"), leaf(page, "cool", 0.5), leaf(page, "Load", 0.9)
    wheel = leaf(page, "Centre", 0.4)
    budget = tokens(kiln, wheel) + 2 * 3
    expander = NeighbourExpander(shelf, token_budget=budget, siblings=0, levels=1, document_overhead=3)
    result = expander.run([first, wheel, other])
    assert [node.id for node in result["documents"]] == [kiln.id, wheel.id]
    assert result["documents"][0].score == 0.9
    assert result["documents"][0].meta["expanded_from"] == [first.id, other.id]


def test_two_levels_and_the_siblings_of_what_stands_there_then(page: list[Document], shelf: Any) -> None:
    hit, root, kiln, clay = leaf(page, "slowly"), page[0], section(page, "Kiln"), leaf(page, "Clay")
    expander = NeighbourExpander(shelf, siblings=1, levels=2)
    whole = expander.run([hit], token_budget=tokens(root))
    assert [node.id for node in whole["documents"]] == [root.id]
    # One token less, and the page does not fit; what stands in front of the section does, and no section behind.
    result = expander.run([hit], token_budget=tokens(root) - 1)
    assert [node.id for node in result["documents"]] == [clay.id, kiln.id]
    assert [node.meta.get("neighbour_of") for node in result["documents"]] == [kiln.id, None]
    assert (result["climbed"], result["added"]) == (1, 1)
    # One level is one level.
    assert NeighbourExpander(shelf, siblings=0, levels=1).run([hit])["documents"][0].id == kiln.id


def test_a_node_that_is_not_there_is_passed_over(page: list[Document]) -> None:
    store, hit = InMemoryDocumentStore(), leaf(page, "slowly")
    kiln = section(page, "Kiln")
    store.write_documents([node for node in page if node.id != kiln.id])
    found = NeighbourExpander(store, siblings=0, levels=1).run([hit])
    assert found == {"documents": [hit], "climbed": 0, "added": 0}
    # Nor is the page, when it is of another version of the source: their roots have the same id.
    store.write_documents([kiln])
    assert NeighbourExpander(store, siblings=0, levels=9).run([hit])["documents"][0].id == page[0].id
    newer = Document.from_dict({**page[0].to_dict(flatten=False), "meta": {**page[0].meta, "__tree_id": "newer"}})
    store.write_documents([newer], policy=DuplicatePolicy.OVERWRITE)
    up = NeighbourExpander(store, siblings=0, levels=9).run([hit])["documents"]
    assert [node.id for node in up] == [kiln.id]


async def test_text_that_is_stored_once_is_built_from_the_leaves(page: list[Document]) -> None:
    store = HierarchyQdrantDocumentStore(location=":memory:", embedding_dim=2)
    store.write_documents(without_inner_text(page))
    hits = [node for node in store.filter_documents() if "slowly" in (node.content or "")]
    kiln = section(page, "Kiln")
    expander = NeighbourExpander(store, siblings=2, levels=1)
    result = expander.run(hits)
    assert [node.content for node in result["documents"]] == [
        leaf(page, "Clay").content, kiln.content, section(page, "Wheel").content
    ]  # fmt: skip
    assert await expander.run_async(hits) == result
    # A leaf of the section is gone, and with it the section's text.
    store.delete_documents([leaf(page, "Load").id])
    found = expander.run(hits)
    assert found["climbed"] == 0
    rest = (kiln.content or "").replace("Load the kiln first.\n\n", "")
    assert "".join(node.content for node in found["documents"]) == rest


def test_trees_of_haystack_go_up_too() -> None:
    stock = HierarchicalDocumentSplitter(block_sizes={4, 2}).run([Document(content="a b c d e f g h")])["documents"]
    store = InMemoryDocumentStore()
    store.write_documents(stock)
    hit = next(node for node in stock if node.content == "e f ")
    up = NeighbourExpander(store, siblings=0, levels=1).run([hit])["documents"]
    assert [node.content for node in up] == ["e f g h"]
    assert NeighbourExpander(store, siblings=0, levels=2, token_budget=8).run([hit])["documents"][0].id == stock[0].id


@given(st.data(), st.integers(1, 60), st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))
def test_with_levels_never_above_the_budget_and_no_text_twice(
    page: list[Document], shelf: Any, data: st.DataObject, budget: int, siblings: int, levels: int, overhead: int
) -> None:
    leaves = [node for node in page if is_leaf(node)]
    hits = data.draw(st.lists(st.sampled_from(leaves), min_size=1, unique_by=lambda node: node.id))
    expander = NeighbourExpander(
        shelf, token_budget=budget, siblings=siblings, levels=levels, document_overhead=overhead
    )
    result = expander.run(hits)
    before, after = (tokens(*nodes) + overhead * len(nodes) for nodes in (hits, result["documents"]))
    assert after <= budget or (result["documents"] == hits and before > budget)
    spans = sorted((node.meta["split_idx_start"], node.meta["split_idx_end"]) for node in result["documents"])
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    # Nothing that was there is lost.
    held = [range(start, end) for start, end in spans]
    assert all(any(hit.meta["split_idx_start"] in span for span in held) for hit in hits)
    # Around a result in the order of the source.
    group: list[int] = []
    for node in result["documents"]:
        if node.meta.get("neighbour_of") is None:
            continue
        place = next(each for each in result["documents"] if each.id == node.meta["neighbour_of"])
        order = [each.id for each in result["documents"]]
        first = order.index(node.id) < order.index(place.id)
        assert first == (node.meta["split_idx_start"] < place.meta["split_idx_start"])
        group.append(node.meta["split_idx_start"])
    assert len(group) == result["added"]


def test_to_dict_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAYSTACK_DESERIALIZATION_ALLOWLIST", "hichunk_haystack")
    expander = NeighbourExpander(HierarchyQdrantDocumentStore(path="data"), token_budget=9, siblings=2)
    data = expander.to_dict()
    assert data["type"] == "hichunk_haystack.components.retrievers.NeighbourExpander"
    assert {key: value for key, value in data["init_parameters"].items() if key != "document_store"} == {
        "token_budget": 9, "siblings": 2, "levels": 0, "document_overhead": 0, "token_counter": None
    }  # fmt: skip
    assert NeighbourExpander.from_dict(data).to_dict() == data


@pytest.mark.parametrize(
    ("option", "value"), [("token_budget", 0), ("siblings", -1), ("levels", -1), ("document_overhead", -1)]
)
def test_numbers_that_make_no_sense_are_named(option: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"{option} is {value}; it must be at least"):
        NeighbourExpander(InMemoryDocumentStore(), **{option: value})
