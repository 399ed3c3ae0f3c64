# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from haystack import Document, Pipeline

from hichunk_haystack.components.embedders import (
    LeafEmbedder,
    OfflineSentenceTransformersDocumentEmbedder,
    OfflineSentenceTransformersTextEmbedder,
)
from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.components.retrievers import BudgetAutoMergingRetriever, MultiLevelRetriever
from hichunk_haystack.components.writers import HierarchyWriter
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from hichunk_haystack.tree import is_leaf
from tests.conftest import REPOSITORY

PAGES = ("05-24-7-desk.md", "06-slipway-safety.md", "07-slipway-equipment.md", "09-storms-and-emergencies.md")


def with_means(nodes: list[Document]) -> list[Document]:
    """Give inner nodes the normalised mean of their leaves' embeddings."""
    below: dict[str, list[list[float]]] = {}
    for node in filter(is_leaf, nodes):
        for link in node.meta["__ancestors"]:
            below.setdefault(link["id"], []).append(node.embedding or [])
    means = {name: np.mean(vectors, axis=0) for name, vectors in below.items()}
    return [
        replace(node, embedding=(means[node.id] / np.linalg.norm(means[node.id])).tolist())
        if node.id in means
        else node
        for node in nodes
    ]


def make(location: str = ":memory:", **options: Any) -> HierarchyQdrantDocumentStore:
    return HierarchyQdrantDocumentStore(
        **{"location": location, "embedding_dim": 2, "inner_embeddings": True, **options}
    )


# Of a kiln page with two sections, a wheel page with one leaf above its sections, and a page that is a single leaf.
VECTORS = {
    "Fire it.": [1.0, 0.2], "Let it cool.": [1.0, 0.4], "Sieve it.": [0.9, 0.5], "Dip the pot.": [0.8, 0.6],
    "On wheels.": [0.3, 1.0], "Centre it.": [0.2, 1.0], "Open it.": [0.1, 1.0], "Alone.": [0.5, 0.5],
}  # fmt: skip
TEXTS = {
    "kiln": "# Kiln\n\nFire it.\n\nLet it cool.\n\n# Glaze\n\nSieve it.\n\nDip the pot.\n",
    "wheel": "On wheels.\n\n# Throwing\n\nCentre it.\n\nOpen it.\n",
    "alone": "Alone.\n",
}


@pytest.fixture(scope="module")
def nodes() -> list[Document]:
    splitter = MarkdownHierarchicalSplitter(leaf_tokens=7, min_leaf_tokens=1)
    found = splitter.run([Document(content=text, meta={"page": page}) for page, text in TEXTS.items()])["documents"]
    return with_means(
        [
            replace(node, embedding=next(VECTORS[text] for text in VECTORS if text in (node.content or "")))
            if is_leaf(node)
            else node
            for node in found
        ]
    )


@pytest.fixture(scope="module")
def store(nodes: list[Document]) -> HierarchyQdrantDocumentStore:
    store = make()
    store.write_documents(nodes)
    return store


def texts(documents: list[Document]) -> list[str]:
    """The last line of each, which tells which it is."""
    return [(document.content or "").strip().splitlines()[-1] for document in documents]


def find(store: HierarchyQdrantDocumentStore, query: list[float], **options: Any) -> list[Document]:
    filters = options.pop("run_filters", None)
    return MultiLevelRetriever(store, **options).run(query_embedding=query, filters=filters)["documents"]


def test_the_tree_is_as_the_tests_take_it(nodes: list[Document]) -> None:
    shape = [(node.meta["__level"], is_leaf(node), texts([node])[0]) for node in nodes]
    assert shape == [
        (0, False, "Dip the pot."), (1, False, "Let it cool."), (2, True, "Fire it."), (2, True, "Let it cool."),
        (1, False, "Dip the pot."), (2, True, "Sieve it."), (2, True, "Dip the pot."),
        (0, False, "Open it."), (1, True, "On wheels."), (1, False, "Open it."), (2, True, "Centre it."),
        (2, True, "Open it."), (0, True, "Alone."),
    ]  # fmt: skip


# -- side by side


def test_quotas_a_level(store: HierarchyQdrantDocumentStore) -> None:
    query = [1.0, 0.0]
    assert texts(find(store, query, quotas={"leaf": 2})) == ["Fire it.", "Let it cool."]
    found = find(store, query, quotas={1: 3})
    assert [node.meta["__level"] for node in found] == [1, 1, 1]
    assert texts(find(store, query, quotas={"0": 1})) == ["Dip the pot."]
    # Any inner node: the section on kilns is nearer than the page.
    assert texts(find(store, query, quotas={"inner": 1})) == ["Let it cool."]


def test_of_nested_nodes_one_comes_out_by_coverage(store: HierarchyQdrantDocumentStore) -> None:
    # Both leaves of the section on kilns were found, and stand together as the section.
    found = find(store, [1.0, 0.0], quotas={"leaf": 2, 1: 1})
    assert [(node.meta["__level"], texts([node])[0]) for node in found] == [(1, "Let it cool.")]
    # One leaf of the page is too little of it; it takes the page's score where that is better.
    (leaf,) = find(store, [1.0, 0.0], quotas={"leaf": 1, 0: 1})
    assert (is_leaf(leaf), texts([leaf])) == (True, ["Fire it."])


def test_a_node_that_is_too_long_does_not_stand_for_what_was_found(store: HierarchyQdrantDocumentStore) -> None:
    found = find(store, [1.0, 0.0], quotas={"leaf": 2, 1: 1}, max_collapse_tokens=3)
    assert texts(found) == ["Fire it.", "Let it cool."]


def test_filters_are_qdrants_work_at_every_level(store: HierarchyQdrantDocumentStore) -> None:
    wheel = {"field": "meta.page", "operator": "==", "value": "wheel"}
    found = find(store, [1.0, 0.0], quotas={"leaf": 1, "inner": 1}, coverage=2, run_filters=wheel)
    assert {node.meta["page"] for node in found} == {"wheel"}
    found = find(store, [1.0, 0.0], quotas={"leaf": 1, 0: 1}, coverage=2, filters=wheel)
    assert {node.meta["page"] for node in found} == {"wheel"}
    kiln = {"field": "meta.page", "operator": "==", "value": "kiln"}
    both = {"operator": "AND", "conditions": [wheel]}, {"operator": "AND", "conditions": [kiln]}
    assert find(store, [1.0, 0.0], filters=both[0], run_filters=both[1], filter_policy="merge") == []


# -- from coarse to fine


def test_leaves_come_from_the_sections_found(store: HierarchyQdrantDocumentStore) -> None:
    # The glaze leaves are nearer to the query than the second leaf on throwing, but stand in another section.
    query = [0.0, 1.0]
    options: dict[str, Any] = {"coarse_to_fine": True}
    found = find(store, query, quotas={"inner": 1, "leaf": 10}, **options)
    assert texts(found) == ["Open it.", "Centre it.", "Alone."]
    # Level by level. "On wheels." stands above the sections of the page that was found, and is not lost.
    found = find(store, query, quotas={"leaf": 10, 0: 1, 1: 1}, **options)
    assert texts(found) == ["Open it.", "Centre it.", "On wheels.", "Alone."]
    found = find(store, query, quotas={"leaf": 10, 0: 1}, **options)
    assert texts(found) == ["Open it.", "Centre it.", "On wheels.", "Alone."]
    # The best section inside of the best page, although the best of all sections stands in another page.
    found = find(store, [1.0, 0.0], quotas={0: 1, 1: 1, "leaf": 2}, **options)
    assert texts(found) == ["Fire it.", "Let it cool."]


def test_filters_hold_from_coarse_to_fine(store: HierarchyQdrantDocumentStore) -> None:
    wheel = {"field": "meta.page", "operator": "==", "value": "wheel"}
    found = find(store, [1.0, 0.0], quotas={1: 1, "leaf": 10}, coarse_to_fine=True, run_filters=wheel)
    assert sorted(texts(found)) == ["Centre it.", "On wheels.", "Open it."]


@pytest.mark.parametrize("coarse_to_fine", [False, True])
async def test_run_and_run_async_give_the_same(store: HierarchyQdrantDocumentStore, coarse_to_fine: bool) -> None:
    retriever = MultiLevelRetriever(store, quotas={1: 2, "leaf": 3}, coarse_to_fine=coarse_to_fine)
    for quotas in (None, {0: 1, "leaf": 2}):
        query: dict[str, Any] = {"query_embedding": [0.7, 0.7], "quotas": quotas}
        found = retriever.run(**query)["documents"]
        assert found
        assert (await retriever.run_async(**query))["documents"] == found


def test_where_inner_nodes_have_no_embeddings_leaves_are_found_all_the_same(
    nodes: list[Document], caplog: pytest.LogCaptureFixture
) -> None:
    store = make()
    store.write_documents([node for node in nodes if is_leaf(node)])
    retriever = MultiLevelRetriever(store, quotas={0: 1, "leaf": 1}, coarse_to_fine=True)
    for _ in range(2):
        assert texts(retriever.run(query_embedding=[1.0, 0.0])["documents"]) == ["Fire it."]
    assert caplog.text.count("put a HierarchyEmbedder into the indexing pipeline") == 1


def test_an_empty_store_gives_nothing() -> None:
    for coarse_to_fine in (False, True):
        assert find(make(), [1.0, 0.0], coarse_to_fine=coarse_to_fine) == []


# -- options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quotas": {}}, "names no level"),
        ({"quotas": {"leaves": 3}}, "names level 'leaves'"),
        ({"quotas": {-1: 3}}, "names level -1"),
        ({"quotas": {True: 3}}, "names level True"),
        ({"quotas": {"leaf": 0}}, "gives 0 to level 'leaf'"),
        ({"quotas": {"leaf": "3"}}, "gives '3' to level 'leaf'"),
        ({"quotas": {1: 3, "1": 2}}, "names level '1' twice"),
        ({"quotas": {"leaf": 3}, "coarse_to_fine": True}, "a level above it"),
        ({"quotas": {1: 3}, "coarse_to_fine": True}, "there must be 'leaf'"),
        ({"quotas": {1: 3, "inner": 3, "leaf": 3}, "coarse_to_fine": True}, "stands alone"),
        ({"coverage": 0}, "coverage is 0"),
    ],
)
def test_options_that_make_no_sense_are_named(
    store: HierarchyQdrantDocumentStore, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        MultiLevelRetriever(store, **options)


def test_a_store_that_keeps_no_inner_embeddings_is_refused() -> None:
    with pytest.raises(ValueError, match="inner_embeddings=True"):
        MultiLevelRetriever(make(inner_embeddings=False))


def test_yaml_and_back() -> None:
    retriever = MultiLevelRetriever(make(), quotas={1: 8, "leaf": 40}, coarse_to_fine=True, filter_policy="merge")
    pipeline = Pipeline()
    pipeline.add_component("retriever", retriever)
    text = pipeline.dumps()
    again = Pipeline.loads(text, allowed_modules=["hichunk_haystack"])
    assert again.dumps() == text
    data = retriever.to_dict()
    assert data["type"] == "hichunk_haystack.components.retrievers.MultiLevelRetriever"
    parameters = {key: value for key, value in data["init_parameters"].items() if key != "document_store"}
    assert parameters == {
        "quotas": {"1": 8, "leaf": 40}, "coarse_to_fine": True, "coverage": 0.5, "max_collapse_tokens": 128,
        "filters": None, "filter_policy": "merge",
    }  # fmt: skip


# -- a real model


def test_with_a_real_model_and_a_merge_behind() -> None:
    pages = [
        Document(content=(REPOSITORY / "examples" / "handbook" / page).read_bytes().decode(), meta={"page": page})
        for page in PAGES
    ]
    found = MarkdownHierarchicalSplitter(leaf_tokens=60, min_leaf_tokens=10).run(pages)["documents"]
    embedder = LeafEmbedder(OfflineSentenceTransformersDocumentEmbedder(progress_bar=False), progress_bar=False)
    store = make(embedding_dim=384)
    HierarchyWriter(store).run(with_means(embedder.run(found)["documents"]))
    query = OfflineSentenceTransformersTextEmbedder().run("Somebody was hurt at a machine. What do I do?")["embedding"]
    for options in ({"quotas": {"leaf": 20, "inner": 5}}, {"quotas": {"inner": 4, "leaf": 20}, "coarse_to_fine": True}):
        hits = MultiLevelRetriever(store, **options).run(query_embedding=query)["documents"]
        assert "When somebody gets hurt" in hits[0].meta["headings"]
        merged = BudgetAutoMergingRetriever(store, token_budget=600).run(hits)["documents"]
        assert sum(node.meta["token_count"] for node in merged) <= 600
        assert "Ring 112" in "".join(node.content or "" for node in merged)
