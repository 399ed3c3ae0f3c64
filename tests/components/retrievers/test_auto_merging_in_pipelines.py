# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""The merger behind each kind of retriever, joiner and ranker, on each store, and trees in both directions."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from haystack import Document, Pipeline
from haystack.components.joiners import DocumentJoiner
from haystack.components.preprocessors import HierarchicalDocumentSplitter
from haystack.components.rankers import MetaFieldRanker
from haystack.components.retrievers import AutoMergingRetriever
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
from haystack.dataclasses import SparseEmbedding
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack_integrations.components.retrievers.qdrant import (
    QdrantEmbeddingRetriever,
    QdrantHybridRetriever,
    QdrantSparseEmbeddingRetriever,
)
from haystack_integrations.document_stores.qdrant import QdrantDocumentStore

from hichunk_haystack.components.embedders import (
    OfflineSentenceTransformersDocumentEmbedder,
    OfflineSentenceTransformersTextEmbedder,
)
from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.components.retrievers import BudgetAutoMergingRetriever
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from hichunk_haystack.tokens import HuggingFaceTokenCounter

REPOSITORY = Path(__file__).resolve().parents[3]
COUNTER = HuggingFaceTokenCounter()

# Two sources of three sections of three leaves each: 18 leaves.
TEXTS = {
    name: "".join(
        f"# {name} {section}\n\n"
        + "".join(f"The {word} of {name} {section} is old.\n\n" for word in ("cup", "jug", "pot"))
        for section in ("one", "two", "three")
    )
    for name in ("clay", "wheel")
}
DIMENSION = 18


def is_leaf(node: Document) -> bool:
    return not node.meta["__children_ids"]


def with_vectors(nodes: list[Document], sparse: bool = False) -> list[Document]:
    """Leaf number n has the n-th unit vector, so that a query's numbers are the leaves' scores."""
    result = []
    for node in nodes:
        if is_leaf(node):
            number = sum(map(is_leaf, result))
            vector = [float(number == place) for place in range(DIMENSION)]
            node = replace(node, embedding=vector)  # noqa: PLW2901
            if sparse:
                node = replace(node, sparse_embedding=SparseEmbedding(indices=[number], values=[1.0]))  # noqa: PLW2901
        result.append(node)
    return result


def query(**scores: float) -> list[float]:
    """`query(n3=0.9)`: leaf number 3 scores 0.9."""
    return [scores.get(f"n{number}", 0.0) for number in range(DIMENSION)]


@pytest.fixture(scope="module")
def ours() -> list[Document]:
    sources = [Document(id=name, content=text) for name, text in TEXTS.items()]
    nodes = MarkdownHierarchicalSplitter(leaf_tokens=12, min_leaf_tokens=1, inner_tokens=[]).run(sources)["documents"]
    assert [node.meta["__level"] for node in nodes] == 2 * [0, *(3 * [1, 2, 2, 2])]
    return nodes


@pytest.fixture(scope="module")
def stock() -> list[Document]:
    """Haystack's own tree of 72 words: six blocks of 12, each of three leaves of 4."""
    splitter = HierarchicalDocumentSplitter(block_sizes={12, 4}, split_overlap=0, split_by="word")
    text = "".join(f"w{number:02d} " for number in range(72))
    return splitter.run([Document(id="stock", content=text)])["documents"]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the calls that read from Qdrant stores by id or by filter."""
    made: list[str] = []

    def count(store: type, name: str) -> None:
        original = getattr(store, name)

        def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
            made.append(name)
            return original(self, *args, **kwargs)

        monkeypatch.setattr(store, name, counted)

    for name in ("get_documents_by_id", "filter_documents"):
        count(QdrantDocumentStore, name)
    count(HierarchyQdrantDocumentStore, "get_nodes_by_id")
    return made


def leaves(nodes: list[Document]) -> list[Document]:
    return [node for node in nodes if is_leaf(node)]


def merger(store: Any, **options: Any) -> BudgetAutoMergingRetriever:
    return BudgetAutoMergingRetriever(store, **{"token_budget": 1000, "token_counter": COUNTER, **options})


def pipeline(retriever: Any, store: Any, **options: Any) -> Pipeline:
    made = Pipeline()
    made.add_component("retriever", retriever)
    made.add_component("merger", merger(store, **options))
    made.connect("retriever.documents", "merger.documents")
    return made


# Leaves 3, 4 and 16, in this order: two of the second section of the clay, one of the last section of the wheel.
FOUND = query(n3=0.9, n4=0.8, n16=0.7)


def check(result: dict[str, Any], nodes: list[Document], scores: bool = True) -> None:
    """The section of leaves 3 and 4, then leaf 16."""
    section = nodes[5]
    documents = result["merger"]["documents"]
    assert [document.id for document in documents] == [section.id, leaves(nodes)[16].id]
    assert documents[0].content == section.content
    if scores:
        # Half precision is enough: the vectors of a query are normalised somewhere on the way.
        assert documents[0].score > documents[1].score > 0


@pytest.mark.parametrize("store_class", [QdrantDocumentStore, HierarchyQdrantDocumentStore])
@pytest.mark.parametrize("tree", ["ours", "stock"])
def test_behind_the_embedding_retriever(
    store_class: type, tree: str, calls: list[str], request: pytest.FixtureRequest
) -> None:
    nodes = request.getfixturevalue(tree)
    store = store_class(location=":memory:", embedding_dim=DIMENSION)
    store.write_documents(with_vectors(nodes))
    calls.clear()
    result = pipeline(QdrantEmbeddingRetriever(document_store=store, top_k=3), store).run(
        {"retriever": {"query_embedding": FOUND}}
    )
    if tree == "ours":
        check(result, nodes)
        assert len(calls) == 1
    else:
        # Leaves 3 and 4 are in the second block, leaf 16 in the last one.
        assert [document.id for document in result["merger"]["documents"]] == [nodes[2].id, leaves(nodes)[16].id]
        # One read for the blocks, one for the source above them.
        assert len(calls) == 2
    assert "filter_documents" not in calls


def test_nothing_merges_nothing_is_read(ours: list[Document], calls: list[str]) -> None:
    store = HierarchyQdrantDocumentStore(location=":memory:", embedding_dim=DIMENSION)
    store.write_documents(with_vectors(ours))
    calls.clear()
    result = pipeline(QdrantEmbeddingRetriever(document_store=store, top_k=3), store).run(
        {"retriever": {"query_embedding": query(n0=0.9, n4=0.8, n16=0.7)}}
    )
    assert len(result["merger"]["documents"]) == 3
    assert calls == []


async def test_behind_the_embedding_retriever_without_blocking(ours: list[Document]) -> None:
    store = HierarchyQdrantDocumentStore(location=":memory:", embedding_dim=DIMENSION)
    store.write_documents(with_vectors(ours))
    made = pipeline(QdrantEmbeddingRetriever(document_store=store, top_k=3), store)
    check(await made.run_async({"retriever": {"query_embedding": FOUND}}), ours)
    store.close()


@pytest.mark.parametrize("store_class", [QdrantDocumentStore, HierarchyQdrantDocumentStore])
def test_behind_the_sparse_and_the_hybrid_retriever(ours: list[Document], store_class: type) -> None:
    store = store_class(location=":memory:", embedding_dim=DIMENSION, use_sparse_embeddings=True)
    store.write_documents(with_vectors(ours, sparse=True))
    sparse = SparseEmbedding(indices=[3, 4, 16], values=[0.9, 0.8, 0.7])
    result = pipeline(QdrantSparseEmbeddingRetriever(document_store=store, top_k=3), store).run(
        {"retriever": {"query_sparse_embedding": sparse}}
    )
    check(result, ours)
    result = pipeline(QdrantHybridRetriever(document_store=store, top_k=3), store).run(
        {"retriever": {"query_embedding": FOUND, "query_sparse_embedding": sparse}}
    )
    check(result, ours)


@pytest.mark.parametrize("tree", ["ours", "stock"])
def test_behind_in_memory_retrievers(tree: str, request: pytest.FixtureRequest) -> None:
    nodes = request.getfixturevalue(tree)
    store = InMemoryDocumentStore(embedding_similarity_function="dot_product")
    store.write_documents(with_vectors(nodes))
    result = pipeline(InMemoryEmbeddingRetriever(store, top_k=3), store).run({"retriever": {"query_embedding": FOUND}})
    if tree == "ours":
        check(result, nodes)
    else:
        assert [document.id for document in result["merger"]["documents"]] == [nodes[2].id, leaves(nodes)[16].id]
    # BM25 finds inner nodes as well; all that is found comes out once.
    words = "wheel two" if tree == "ours" else "w13 w14"
    result = pipeline(InMemoryBM25Retriever(store, top_k=10), store).run({"retriever": {"query": words}})
    contents = [document.content for document in result["merger"]["documents"]]
    assert contents
    for number, content in enumerate(contents):
        assert not any(content in other for other in contents[:number] + contents[number + 1 :])


@pytest.mark.parametrize(
    "join_mode", ["concatenate", "merge", "reciprocal_rank_fusion", "distribution_based_rank_fusion"]
)
def test_behind_a_joiner(ours: list[Document], join_mode: str) -> None:
    store = HierarchyQdrantDocumentStore(location=":memory:", embedding_dim=DIMENSION)
    store.write_documents(with_vectors(ours))
    made = Pipeline()
    for name in ("first", "second"):
        made.add_component(name, QdrantEmbeddingRetriever(document_store=store, top_k=2))
    made.add_component("joiner", DocumentJoiner(join_mode=join_mode))
    made.add_component("merger", merger(store))
    for name in ("first", "second"):
        made.connect(f"{name}.documents", "joiner.documents")
    made.connect("joiner.documents", "merger.documents")
    result = made.run(
        {"first": {"query_embedding": query(n3=0.9, n16=0.3)}, "second": {"query_embedding": query(n4=0.9, n3=0.8)}}
    )
    # Leaves 3, 4 and 16 whatever the order; 3 was found twice.
    trace = result["merger"]["trace"]
    assert len(trace["hits"]) == 3
    assert {document.id for document in result["merger"]["documents"]} == {ours[5].id, leaves(ours)[16].id}
    assert sorted(trace["nodes"][0]["hits"] + trace["nodes"][1]["hits"]) == sorted(hit["id"] for hit in trace["hits"])


def test_a_list_that_was_not_joined_counts_duplicates_once(ours: list[Document]) -> None:
    leaf = leaves(ours)[3]
    hits = [replace(leaf, score=0.2), replace(leaves(ours)[16], score=0.5), replace(leaf, score=0.9)]
    documents = merger(InMemoryDocumentStore()).run(hits)["documents"]
    assert [(document.id, document.score) for document in documents] == [(leaf.id, 0.9), (hits[1].id, 0.5)]


def test_behind_a_ranker(ours: list[Document]) -> None:
    store = HierarchyQdrantDocumentStore(location=":memory:", embedding_dim=DIMENSION)
    store.write_documents(with_vectors(ours))
    made = Pipeline()
    made.add_component("retriever", QdrantEmbeddingRetriever(document_store=store, top_k=3))
    # By position in the source, the last first: leaf 16, then 4, then 3; scores stay as the retriever gave them.
    made.add_component("ranker", MetaFieldRanker(meta_field="split_idx_start", weight=1.0, sort_order="descending"))
    made.add_component("merger", merger(store))
    made.connect("retriever.documents", "ranker.documents")
    made.connect("ranker.documents", "merger.documents")
    result = made.run({"retriever": {"query_embedding": FOUND}})
    documents = result["merger"]["documents"]
    assert [document.id for document in documents] == [leaves(ours)[16].id, ours[5].id]
    # The section has the best score of its two leaves, which is not that of the first.
    scores = {hit["id"]: hit["score"] for hit in result["merger"]["trace"]["hits"]}
    assert documents[1].score == max(scores[leaves(ours)[3].id], scores[leaves(ours)[4].id])


@pytest.mark.parametrize(
    "make_store", [InMemoryDocumentStore, lambda: QdrantDocumentStore(location=":memory:", embedding_dim=2)]
)
def test_our_trees_in_haystacks_own_merger(ours: list[Document], make_store: Any) -> None:
    store = make_store()
    store.write_documents([node for node in ours if not is_leaf(node)])
    stock_merger = AutoMergingRetriever(store, threshold=0.5)
    # Two of three leaves of a section; one of another; all of the three sections below.
    documents = stock_merger.run(documents=leaves(ours)[3:5] + leaves(ours)[16:17])["documents"]
    assert {document.id for document in documents} == {ours[5].id, leaves(ours)[16].id}
    documents = stock_merger.run(documents=leaves(ours)[:9])["documents"]
    assert [(document.id, document.content) for document in documents] == [("clay", TEXTS["clay"])]


@pytest.mark.parametrize("tree", ["ours", "stock"])
def test_the_ratio_policy_agrees_with_haystacks_own_merger_where_that_one_is_right(
    tree: str, request: pytest.FixtureRequest
) -> None:
    nodes = request.getfixturevalue(tree)
    store = InMemoryDocumentStore()
    store.write_documents(nodes)
    parents = {node.id: node.meta["__parent_id"] for node in nodes}

    def above(node_id: str) -> list[str]:
        parent = parents[node_id]
        return [parent, *above(parent)] if parent else []

    # Each hit comes once, and no share is exactly 0.6 (it merges above, we from it).
    theirs = AutoMergingRetriever(store, threshold=0.6)
    mine = merger(store, policy="ratio", threshold=0.6, token_budget=100_000)
    pick = Random(3)
    merged = repeated = 0
    for _ in range(40):
        hits = pick.sample(leaves(nodes), pick.randint(1, 18))
        found = {document.id for document in theirs.run(documents=hits)["documents"]}
        # Where it returns a node and its own descendant, the descendant is too much.
        expected = {node_id for node_id in found if not found.intersection(above(node_id))}
        assert {document.id for document in mine.run(hits)["documents"]} == expected
        merged += len(expected) < len(hits)
        repeated += expected != found
    assert merged > 20
    assert repeated


def test_a_real_embedding_model_finds_and_merges_within_the_budget() -> None:
    names = ["06-slipway-safety.md", "07-slipway-equipment.md", "08-book-boat.md"]
    texts = {name: (REPOSITORY / "examples" / "handbook" / name).read_text(encoding="utf-8") for name in names}
    sources = [Document(id=name, content=text, meta={"file_path": name}) for name, text in texts.items()]
    nodes = MarkdownHierarchicalSplitter(leaf_tokens=120).run(sources)["documents"]
    embedder = OfflineSentenceTransformersDocumentEmbedder(progress_bar=False)
    store = HierarchyQdrantDocumentStore(location=":memory:", embedding_dim=384)
    store.write_documents(embedder.run(leaves(nodes))["documents"] + [node for node in nodes if not is_leaf(node)])
    embedding = OfflineSentenceTransformersTextEmbedder().run("Who needs an induction for a machine?")["embedding"]
    hits = QdrantEmbeddingRetriever(document_store=store, top_k=20).run(query_embedding=embedding)["documents"]
    for budget in (300, 900):
        for policy in ("hichunk", "ratio", "parent", "none"):
            result = merger(store, policy=policy).run(hits, budget)
            documents = result["documents"]
            assert documents[0].meta["source_id"] == "06-slipway-safety.md"
            used = sum(COUNTER.count_texts([document.content or "" for document in documents]))
            assert budget / 2 < used <= budget
            assert used == result["trace"]["tokens_used"]
            for document in documents:
                start, end = document.meta["split_idx_start"], document.meta["split_idx_end"]
                assert texts[document.meta["source_id"]][start:end] == document.content
            assert any(node["merged"] for node in result["trace"]["nodes"]) is (policy != "none")
