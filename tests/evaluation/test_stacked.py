# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What the benchmark has in memory finds what the components find in a store."""

from math import ceil
from typing import Any

import pytest
from haystack import Document
from haystack.document_stores.in_memory import InMemoryDocumentStore

from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.components.rankers import AncestorScoreRanker
from hichunk_haystack.components.retrievers import (
    BudgetAutoMergingRetriever,
    MultiLevelRetriever,
    MultiQueryRetriever,
    NeighbourExpander,
    QdrantLeafRetriever,
)
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from hichunk_haystack.evaluation.benchmark import score
from hichunk_haystack.evaluation.contenders.corpus import Corpus
from hichunk_haystack.evaluation.contenders.stacked import (
    LEAVES_PER_INNER,
    CoarseToFine,
    Expanded,
    Grove,
    RankedAnew,
    SeveralQueries,
    SideBySide,
)
from hichunk_haystack.evaluation.contenders.trees import Trees
from hichunk_haystack.evaluation.datasets import Dataset, Question
from hichunk_haystack.evaluation.variants import given_variants
from hichunk_haystack.plans import Hit
from hichunk_haystack.policies import MergeOptions
from hichunk_haystack.tree import is_leaf
from tests.evaluation.corpora import COUNTER, corpus

BUDGETS = (40, 150)


@pytest.fixture(scope="module")
def small() -> Corpus:
    return corpus()


@pytest.fixture(scope="module")
def grove(small: Corpus) -> Grove:
    bounds: dict[str, Any] = {"leaf_tokens": 24, "min_leaf_tokens": 4, "inner_tokens": [60]}
    return Grove(small, MarkdownHierarchicalSplitter(**bounds, token_counter=COUNTER))


@pytest.fixture(scope="module")
def store(grove: Grove) -> HierarchyQdrantDocumentStore:
    store = HierarchyQdrantDocumentStore(location=":memory:", embedding_dim=32, inner_embeddings=True)
    store.write_documents(grove.nodes)
    return store


def told(hits: list[Hit]) -> list[tuple[str, float]]:
    return [(hit.id, round(hit.score or 0.0, 4)) for hit in hits]


def shown(documents: list[Document]) -> list[tuple[str, float]]:
    return [(node.id, round(node.score or 0.0, 4)) for node in documents]


def test_a_grove_is_a_forest_with_inner_nodes(grove: Grove) -> None:
    assert {len(node.embedding or ()) for node in grove.nodes} == {32}
    assert len(grove.leaves) + len(grove.inner) == len(grove.nodes)
    root = grove.inner[0]
    assert len(grove.leaves_below[root.id]) == sum(leaf.meta["source_id"] == root.id for leaf in grove.leaves)


@pytest.mark.parametrize("times", [1, 3])
def test_leaves_ranked_anew(small: Corpus, grove: Grove, times: int) -> None:
    alone = Grove(small, grove.splitter, context=False)
    store = HierarchyQdrantDocumentStore(location=":memory:", embedding_dim=32, inner_embeddings=True)
    store.write_documents(alone.nodes)
    enough = alone.enough(40)
    retriever, ranker = QdrantLeafRetriever(store, top_k=times * enough), AncestorScoreRanker(store, top_k=enough)
    for vector, hits in zip(small.questions, RankedAnew(alone, grove, times).hits(40), strict=True):
        query = vector.tolist()
        assert told(hits) == shown(ranker.run(retriever.run(query)["documents"], query)["documents"])


@pytest.mark.parametrize("budget", BUDGETS)
def test_levels_side_by_side(small: Corpus, grove: Grove, store: HierarchyQdrantDocumentStore, budget: int) -> None:
    quota = grove.enough(budget)
    retriever = MultiLevelRetriever(store, quotas={"inner": ceil(quota / LEAVES_PER_INNER), "leaf": quota})
    collapsed = 0
    for vector, hits in zip(small.questions, SideBySide(grove).hits(budget), strict=True):
        assert told(hits) == shown(retriever.run(vector.tolist())["documents"])
        collapsed += sum(bool(grove.children.get(hit.id)) for hit in hits)
    assert collapsed > 0


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize(("level", "quota"), [(None, None), (1, 1), (0, 1), (2, 3)])
def test_from_coarse_to_fine(
    small: Corpus, grove: Grove, store: HierarchyQdrantDocumentStore, budget: int, level: int | None, quota: int | None
) -> None:
    most = grove.enough(budget)
    quotas: dict[str | int, int] = {
        ("inner" if level is None else level): quota or ceil(most / LEAVES_PER_INNER), "leaf": most
    }  # fmt: skip
    retriever = MultiLevelRetriever(store, quotas=quotas, coarse_to_fine=True)
    for vector, hits in zip(small.questions, CoarseToFine(grove, level, quota).hits(budget), strict=True):
        assert told(hits) == shown(retriever.run(vector.tolist())["documents"])


class Words:
    """The corpus's embedder for one text."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus

    def run(self, text: str) -> dict[str, list[float]]:
        return {"embedding": self.corpus.embedder.embed([text])[0].tolist()}


@pytest.mark.parametrize("mode", ["combined", "frequency", "score"])
def test_several_queries(small: Corpus, grove: Grove, store: HierarchyQdrantDocumentStore, mode: Any) -> None:
    queries = [given_variants(question.text) for question in small.dataset.questions]
    enough = grove.enough(40)
    assert enough < len(grove.leaves)
    retriever = MultiQueryRetriever(
        QdrantLeafRetriever(store, top_k=enough), text_embedder=Words(small), mode=mode, top_k=enough
    )
    for texts, hits in zip(queries, SeveralQueries(grove, queries, mode).hits(40), strict=True):
        assert told(hits) == shown(retriever.run(texts)["documents"])


@pytest.mark.parametrize(("share", "reach", "levels"), [(0.5, 2, 0), (0.5, 0, 1), (0.75, 1, 1), (1, 1, 0)])
def test_neighbours(small: Corpus, grove: Grove, share: float, reach: int, levels: int) -> None:
    store = InMemoryDocumentStore()
    store.write_documents(grove.nodes)
    merging = MergeOptions(order="document")
    budget, nodes = 150, {node.id: node for node in grove.nodes}
    merger = BudgetAutoMergingRetriever(store, token_budget=int(share * budget))
    expander = NeighbourExpander(store, token_budget=budget, siblings=reach, levels=levels)
    contender = Expanded("", grove, merging, share=share, reach=reach, levels=levels)
    more = 0
    for hits, pieces in zip(grove.hits(budget), contender.retrieve(budget), strict=True):
        documents = [Document.from_dict({**nodes[hit.id].to_dict(flatten=False), "score": hit.score}) for hit in hits]
        result = expander.run(merger.run(documents)["documents"])
        more += result["climbed"] + result["added"]
        assert [(piece.document, piece.start, piece.end) for piece in pieces] == [
            (node.meta["source_id"], node.meta["split_idx_start"], node.meta["split_idx_end"])
            for node in result["documents"]
        ]
    assert (more > 0) == (share < 1)


def test_documents_of_one_leaf_have_no_inner_nodes() -> None:
    texts = {"clay": "Clay is here.", "bees": "Bees live there."}
    alone = corpus(Dataset("tiny", texts, [Question("Where is clay?", "clay", (texts["clay"],), ((0, 13),))]))
    grove = Grove(alone, MarkdownHierarchicalSplitter(token_counter=COUNTER))
    assert grove.inner == []
    for ranking in (SideBySide(grove), CoarseToFine(grove)):
        (found,) = ranking.hits(64)
        assert len(found) == 2


def test_all_keep_the_budget(small: Corpus, grove: Grove) -> None:
    queries = [given_variants(question.text) for question in small.dataset.questions]
    merging = MergeOptions(order="document")
    for forest in (SideBySide(grove), CoarseToFine(grove), SeveralQueries(grove, queries)):
        assert score(small, Trees("", forest, merging), 64)["tokens"] > 32
    assert score(small, Expanded("", grove, merging, share=0.5, reach=1, levels=1), 64)["tokens"] > 32
    assert all(is_leaf(leaf) for leaf in grove.leaves)
