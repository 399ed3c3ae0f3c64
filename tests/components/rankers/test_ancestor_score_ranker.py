# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from haystack import Document
from haystack.document_stores.in_memory import InMemoryDocumentStore

from hichunk_haystack.components.embedders import HierarchyEmbedder
from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.components.rankers import AncestorScoreRanker
from hichunk_haystack.components.writers import HierarchyWriter
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from hichunk_haystack.tree import is_leaf
from tests.word_embedder import WordEmbedder

TEXT = "\n\n".join(
    f"# Part {part}\n\n" + " ".join(f"The {noun} of part {part} is kept dry and cool." for noun in nouns)
    for part, nouns in enumerate((["kiln", "wheel", "clay", "glaze"], ["boat", "oar", "net"], ["loom", "yarn"]), 1)
)
QUERY = WordEmbedder().embed("how is the oar of part 2 kept")


def split() -> list[Document]:
    splitter = MarkdownHierarchicalSplitter(leaf_tokens=16, min_leaf_tokens=1, inner_tokens=[32])
    return splitter.run([Document(content=TEXT, meta={"file_path": "crafts.md"})])["documents"]


def embedded(**options: Any) -> list[Document]:
    embedder = HierarchyEmbedder(WordEmbedder(), reading_tokens=40, progress_bar=False, **options)
    return embedder.run(split())["documents"]


def qdrant() -> HierarchyQdrantDocumentStore:
    return HierarchyQdrantDocumentStore(location=":memory:", embedding_dim=32, recreate_index=True)


def leaves_of(nodes: list[Document]) -> list[Document]:
    """As a retriever returns them: without vectors, in some order."""
    return [replace(node, embedding=None, score=0.1) for node in reversed(nodes) if is_leaf(node)]


@pytest.mark.parametrize("make_store", [InMemoryDocumentStore, qdrant])
def test_it_ranks_as_leaves_in_context_are_ranked(make_store: Any) -> None:
    """With all leaves as hits it is the search over the vectors that a `HierarchyEmbedder` mixes."""
    store = make_store()
    nodes = embedded(context=False, inner="both")
    HierarchyWriter(store, progress_bar=False).run(nodes)
    ranked = AncestorScoreRanker(store, reading_tokens=40).run(leaves_of(nodes), QUERY)["documents"]

    query = np.asarray(QUERY) / np.linalg.norm(QUERY)
    mixed = embedded(passages="embed")
    wanted = {node.id: float(np.asarray(node.embedding) @ query) for node in mixed if is_leaf(node)}
    assert {leaf.id: leaf.score for leaf in ranked} == pytest.approx(wanted, abs=1e-5)
    assert [leaf.id for leaf in ranked] == sorted(wanted, key=wanted.__getitem__, reverse=True)


@pytest.fixture(scope="module")
def store() -> InMemoryDocumentStore:
    store = InMemoryDocumentStore()
    store.write_documents(embedded(context=False, inner="both"))
    return store


def test_without_weights_a_score_is_the_similarity(store: InMemoryDocumentStore) -> None:
    nodes = embedded(context=False)
    query = np.asarray(QUERY) / np.linalg.norm(QUERY)
    for leaf in AncestorScoreRanker(store, weights=False).run(leaves_of(nodes), QUERY)["documents"]:
        assert leaf.score == pytest.approx(np.asarray(store.storage[leaf.id].embedding) @ query)


async def test_one_read_and_async_gives_the_same(store: InMemoryDocumentStore) -> None:
    class Counting:
        reads = 0

        def get_documents_by_id(self, ids: list[str]) -> list[Document]:
            self.reads += 1
            return [store.storage[one] for one in ids if one in store.storage]

    counting: Any = Counting()
    ranker = AncestorScoreRanker(counting, reading_tokens=40)
    hits = leaves_of(split())
    found = ranker.run(hits, QUERY)
    assert counting.reads == 1
    assert await ranker.run_async(hits, QUERY) == found
    assert counting.reads == 2


def test_few_hits_have_neighbours_that_were_not_found(store: InMemoryDocumentStore) -> None:
    hits = leaves_of(split())
    ranker = AncestorScoreRanker(store, reading_tokens=40)
    whole = {leaf.id: leaf.score for leaf in ranker.run(hits, QUERY)["documents"]}
    for hit in hits:
        assert ranker.run([hit], QUERY)["documents"][0].score == pytest.approx(whole[hit.id])


def test_what_has_no_vector_stays_behind_in_its_order(store: InMemoryDocumentStore) -> None:
    strangers = [Document(content=text, score=score) for text, score in (("a", 0.9), ("b", 0.95))]
    hits = leaves_of(split())
    ranked = AncestorScoreRanker(store).run([*strangers, *hits], QUERY)["documents"]
    assert [(leaf.content, leaf.score) for leaf in ranked[-2:]] == [("a", 0.9), ("b", 0.95)]
    assert len(ranked) == len(hits) + 2


def test_a_vector_with_nan_is_none(store: InMemoryDocumentStore) -> None:
    hits = leaves_of(split())
    hits[1] = replace(hits[1], embedding=[float("nan")] * 32)
    ranked = AncestorScoreRanker(store).run(hits, QUERY)["documents"]
    assert ranked[-1] == hits[1]
    assert not any(np.isnan(leaf.score) for leaf in ranked)


def test_vectors_of_another_dimension_nearby(store: InMemoryDocumentStore) -> None:
    hits = leaves_of(split())
    with pytest.raises(ValueError, match=r"has 2 dimensions, that of node .* has 32"):
        AncestorScoreRanker(store).run([replace(hits[0], embedding=[1.0, 0.0])], [1.0, 0.0])


def test_a_hit_that_comes_twice_counts_once_and_the_hits_are_not_changed(store: InMemoryDocumentStore) -> None:
    hits = leaves_of(split())
    before = deepcopy(hits)
    ranked = AncestorScoreRanker(store).run([*hits, *hits], QUERY)["documents"]
    assert len(ranked) == len(hits)
    assert hits == before


def test_top_k(store: InMemoryDocumentStore) -> None:
    hits = leaves_of(split())
    ranker = AncestorScoreRanker(store, top_k=3)
    assert len(ranker.run(hits, QUERY)["documents"]) == 3
    assert len(ranker.run(hits, QUERY, top_k=1)["documents"]) == 1
    with pytest.raises(ValueError, match="top_k is 0"):
        ranker.run(hits, QUERY, top_k=0)
    with pytest.raises(ValueError, match="top_k is -1"):
        AncestorScoreRanker(store, top_k=-1)


def test_nothing_in_nothing_out(store: InMemoryDocumentStore) -> None:
    assert AncestorScoreRanker(store).run([], QUERY) == {"documents": []}


def test_a_query_of_another_dimension(store: InMemoryDocumentStore) -> None:
    with pytest.raises(ValueError, match=r"has 2 dimensions, that of node .* has 32"):
        AncestorScoreRanker(store).run(leaves_of(split()), [1.0, 0.0])


def test_reading_tokens_that_make_no_sense(store: InMemoryDocumentStore) -> None:
    with pytest.raises(ValueError, match="reading_tokens is 0"):
        AncestorScoreRanker(store, reading_tokens=0)


def test_it_comes_back_from_a_dictionary() -> None:
    ranker = AncestorScoreRanker(InMemoryDocumentStore(), weights={"document": 2.0}, reading_tokens=128, top_k=9)
    data = ranker.to_dict()
    assert data["type"] == "hichunk_haystack.components.rankers.AncestorScoreRanker"
    parameters = {name: value for name, value in data["init_parameters"].items() if name != "document_store"}
    assert parameters == {"weights": {"document": 2.0}, "reading_tokens": 128, "top_k": 9}
    assert AncestorScoreRanker.from_dict(data).to_dict() == data
