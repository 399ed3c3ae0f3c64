# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Merging in a store that holds the text of leaves only: byte for byte what it is with all texts stored."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from haystack import Document
from haystack.document_stores.errors import MissingDocumentError
from haystack.document_stores.in_memory import InMemoryDocumentStore
from hypothesis import given
from hypothesis import strategies as st

from hichunk_haystack.components.builders import ContextBuilder
from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter, TokenHierarchicalSplitter
from hichunk_haystack.components.retrievers import BudgetAutoMergingRetriever, QdrantLeafRetriever
from hichunk_haystack.components.writers import HierarchyWriter
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from hichunk_haystack.integrity import check
from hichunk_haystack.leaf_texts import DERIVED, INNER_TEXT
from hichunk_haystack.tree import CHILDREN, is_leaf
from tests.word_embedder import WordEmbedder

TEXT = "Before the first heading: ä😀字.\r\n\r\n" + "".join(
    f"# Part {part}\n\nAbout part {part}.\n\n"
    + "".join(
        f"## Section {part}.{section}\n\n" + f"Fire the kiln slowly, number {section}. Then let it cool. " * 6 + "\n\n"
        for section in range(4)
    )
    for part in range(3)
)
SPLITTER = MarkdownHierarchicalSplitter(leaf_tokens=30, min_leaf_tokens=1)
OVERLAPPING = TokenHierarchicalSplitter([32, 128], overlap=8)


def tree(splitter: Any = SPLITTER, text: str = TEXT, path: str = "kiln.md") -> list[Document]:
    nodes = splitter.run([Document(content=text, meta={"file_path": path})])["documents"]
    embedder = WordEmbedder(16)
    return [replace(node, embedding=embedder.embed(node.content or "")) if is_leaf(node) else node for node in nodes]


class CountingStore(HierarchyQdrantDocumentStore):
    """An embedded Qdrant that counts reads by id."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.reads: list[list[str]] = []

    def get_nodes_by_id(self, ids: Any, **options: Any) -> list[Document]:
        self.reads.append(list(ids))
        return super().get_nodes_by_id(ids, **options)


@pytest.fixture(params=["embedded", "in_memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    if request.param == "in_memory":
        yield InMemoryDocumentStore()
    else:
        made = CountingStore(path=str(tmp_path / "qdrant"), embedding_dim=16)
        yield made
        made.close()


def write(store: Any, nodes: list[Document], inner_text: Any = "derived") -> None:
    HierarchyWriter(store, inner_text=inner_text, progress_bar=False).run(nodes)


def hits(nodes: list[Document], *numbers: int) -> list[Document]:
    """Leaves as a retriever finds them in the store of derived texts."""
    leaves = [node for node in nodes if is_leaf(node)]
    return [
        replace(leaves[number], score=1 - place / 100, meta={**leaves[number].meta, INNER_TEXT: DERIVED})
        for place, number in enumerate(numbers)
    ]


def test_only_leaves_are_stored_with_their_text(store: Any) -> None:
    nodes = tree()
    write(store, nodes)
    found = {node.id: node for node in store.filter_documents()}
    assert found.keys() == {node.id for node in nodes}
    for node in nodes:
        kept = found[node.id]
        assert kept.content == (node.content if is_leaf(node) else "")
        assert kept.meta[CHILDREN] == node.meta[CHILDREN]
        assert (kept.meta["split_idx_start"], kept.meta["token_count"]) == (
            node.meta["split_idx_start"],
            node.meta["token_count"],
        )
    assert sum(len(node.content) for node in found.values()) == len(TEXT)
    assert check(store).sound


@pytest.mark.parametrize("splitter", [SPLITTER, OVERLAPPING], ids=["sections", "overlapping leaves"])
@pytest.mark.parametrize("budget", [60, 200, 500, 5000])
@pytest.mark.parametrize("order", ["rank", "document"])
def test_what_comes_out_is_what_stored_texts_give(store: Any, splitter: Any, budget: int, order: Any) -> None:
    nodes = tree(splitter)
    stored = InMemoryDocumentStore()
    write(stored, nodes, "stored")
    write(store, nodes)
    count = sum(map(is_leaf, nodes))
    ranked = hits(nodes, *range(0, count, 2), *range(1, count, 2))
    options: dict[str, Any] = {"token_budget": budget, "order": order}
    expected = BudgetAutoMergingRetriever(stored, **options).run(ranked)["documents"]
    found = BudgetAutoMergingRetriever(store, **options).run(ranked)["documents"]
    assert [(node.id, node.content, node.score) for node in found] == [
        (node.id, node.content, node.score) for node in expected
    ]
    for node in found:
        assert node.content == TEXT[node.meta["split_idx_start"] : node.meta["split_idx_end"]]
    if budget == 5000:
        assert [node.content for node in found] == [TEXT]


def test_one_read_a_query_and_none_for_what_was_found(tmp_path: Path) -> None:
    nodes = tree()
    store = CountingStore(path=str(tmp_path / "qdrant"), embedding_dim=16)
    write(store, nodes)
    retriever = BudgetAutoMergingRetriever(store, token_budget=5000)
    count = sum(map(is_leaf, nodes))
    # All leaves but one are hits: the root and that leaf are read.
    retriever.run(hits(nodes, *(number for number in range(count) if number != 3)))
    leaves = [node for node in nodes if is_leaf(node)]
    assert [set(ids) for ids in store.reads] == [{nodes[0].id, leaves[3].id}]
    store.reads.clear()
    retriever.run(hits(nodes, 5))
    assert store.reads == []
    store.close()


def test_from_a_real_search_to_a_context(store: Any) -> None:
    write(store, tree())
    if isinstance(store, InMemoryDocumentStore):
        leaves = [replace(node, score=1.0) for node in store.filter_documents() if is_leaf(node)]
    else:
        question = WordEmbedder(16).embed("Fire the kiln slowly")
        leaves = QdrantLeafRetriever(store, top_k=30).run(query_embedding=question)["documents"]
    merged = BudgetAutoMergingRetriever(store, token_budget=400).run(leaves)
    assert any(node.meta[CHILDREN] for node in merged["documents"])
    assert all(node.content for node in merged["documents"])
    assert all(node["excerpt"] for node in merged["trace"]["nodes"])
    context = ContextBuilder(token_budget=500).run(merged["documents"])["context"]
    assert "Fire the kiln slowly, number" in context


async def test_async_does_the_same(store: Any) -> None:
    nodes = tree()
    write(store, nodes)
    retriever = BudgetAutoMergingRetriever(store, token_budget=300)
    ranked = hits(nodes, *range(12))
    assert await retriever.run_async(ranked) == retriever.run(ranked)


def test_a_missing_leaf_leaves_the_hits_as_they_are(store: Any, caplog: pytest.LogCaptureFixture) -> None:
    nodes = tree()
    write(store, nodes)
    leaves = [node for node in nodes if is_leaf(node)]
    gone = leaves[2]
    store.delete_documents([gone.id])
    others = [number for number in range(len(leaves)) if number != 2]
    with caplog.at_level(logging.WARNING):
        answer = BudgetAutoMergingRetriever(store, token_budget=5000).run(hits(nodes, *others))
    assert answer["trace"]["missing"] == [nodes[0].id]
    assert "(or part of it) is not in the document store" in caplog.text
    found = answer["documents"]
    # Nothing above the missing leaf comes back, nothing is lost, and no text is empty.
    assert all(
        not node.meta["split_idx_start"] <= gone.meta["split_idx_start"] < node.meta["split_idx_end"] for node in found
    )
    assert sorted(each for node in answer["trace"]["nodes"] for each in node["hits"]) == sorted(
        leaves[number].id for number in others
    )
    assert all(node.content for node in found)


def test_a_hit_that_was_cut_on_the_way_is_not_taken_for_the_leafs_text(store: Any) -> None:
    nodes = tree()
    write(store, nodes)
    ranked = hits(nodes, *range(sum(map(is_leaf, nodes))))
    ranked[4] = replace(ranked[4], content=(ranked[4].content or "")[:10])
    (found,) = BudgetAutoMergingRetriever(store, token_budget=5000).run(ranked)["documents"]
    assert found.content == TEXT


def test_inner_nodes_as_hits_get_their_text(store: Any) -> None:
    nodes = tree()
    write(store, nodes)
    section = next(node for node in store.filter_documents() if node.meta[CHILDREN] and node.meta["__level"] == 2)
    expected = TEXT[section.meta["split_idx_start"] : section.meta["split_idx_end"]]
    retriever = BudgetAutoMergingRetriever(store, token_budget=5000)
    (found,) = retriever.run([replace(section, score=0.5)])["documents"]
    assert (found.content, found.score) == (expected, 0.5)
    (cut,) = retriever.run([replace(section, score=0.5)], token_budget=20)["documents"]
    assert cut.content
    assert expected.startswith(cut.content)

    store.delete_documents([node.id for node in nodes if is_leaf(node)][-1:])
    root = next(node for node in store.filter_documents() if node.meta["__level"] == 0)
    answer = retriever.run([root])
    assert (answer["documents"], answer["trace"]["missing"]) == ([], [root.id])


def test_sources_with_and_without_inner_texts_stand_side_by_side(store: Any) -> None:
    first, second = tree(path="a.md"), tree(path="b.md")
    write(store, first, "stored")
    write(store, second)
    by_id = {node.id: node for node in store.filter_documents()}
    ranked = [by_id[node.id] for node in (*first, *second) if is_leaf(node)]
    found = BudgetAutoMergingRetriever(store, token_budget=10_000).run(ranked)["documents"]
    assert [node.content for node in found] == [TEXT, TEXT]


def test_a_tree_that_is_one_leaf_and_documents_without_a_tree_keep_their_text(store: Any) -> None:
    write(store, [*tree(text="# Kiln\n\nFire it.\n"), Document(content="alone", embedding=[1.0] * 16)])
    assert sorted(node.content for node in store.filter_documents()) == ["# Kiln\n\nFire it.\n", "alone"]
    retriever = BudgetAutoMergingRetriever(store)
    assert len(retriever.run(store.filter_documents())["documents"]) == 2


def test_a_return_to_stored_texts(store: Any) -> None:
    nodes = tree()
    write(store, nodes)
    write(store, nodes, "stored")
    assert {node.id: node.content for node in store.filter_documents()} == {node.id: node.content for node in nodes}


@given(
    text=st.text(alphabet=st.sampled_from("a b.\n#ä😀\r\t字-"), min_size=1, max_size=300).filter(str.strip),
    overlap=st.sampled_from([0, 2]),
)
def test_any_text_comes_back_byte_for_byte(text: str, overlap: int) -> None:
    splitter: Any = MarkdownHierarchicalSplitter(leaf_tokens=6, min_leaf_tokens=1)
    if overlap:
        splitter = TokenHierarchicalSplitter([8, 20], overlap=overlap)
    nodes = splitter.run([Document(content=text)])["documents"]
    store = InMemoryDocumentStore()
    HierarchyWriter(store, inner_text="derived", progress_bar=False).run(nodes)
    retriever = BudgetAutoMergingRetriever(store, token_budget=10_000)
    by_id = {node.id: node for node in store.filter_documents()}
    for node in nodes:
        (found,) = retriever.run([by_id[node.id]])["documents"]
        assert found.content == node.content
    (whole,) = retriever.run([by_id[node.id] for node in nodes if is_leaf(node)])["documents"]
    assert whole.content == text


def test_a_hit_without_text_from_another_store_is_told_for_what_it_is(caplog: pytest.LogCaptureFixture) -> None:
    theirs, ours = InMemoryDocumentStore(), InMemoryDocumentStore()
    write(theirs, tree())
    write(ours, tree(text="# Wheel\n\nCentre the clay.\n", path="wheel.md"))
    root = next(node for node in theirs.filter_documents() if node.meta["__parent_id"] is None)
    (leaf,) = [node for node in ours.filter_documents() if is_leaf(node)]
    retriever = BudgetAutoMergingRetriever(ours, token_budget=500)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            found = retriever.run([root, leaf])
            assert [node.id for node in found["documents"]] == [leaf.id]
            assert found["trace"]["missing"] == [root.id]
    (record,) = [record for record in caplog.records if root.id in record.getMessage()]
    assert record.getMessage() == (
        f"The hit '{root.id}' of 'kiln.md' was stored without its text, which its leaves have (inner_text='derived'), "
        "and not all of these are in the document store: it is left out. Give the store that the hits come from, or "
        "index the source again."
    )
    strict = BudgetAutoMergingRetriever(ours, token_budget=500, missing_parent="raise")
    with pytest.raises(MissingDocumentError, match=r"of 'kiln\.md' was stored without its text"):
        strict.run([root, leaf])
