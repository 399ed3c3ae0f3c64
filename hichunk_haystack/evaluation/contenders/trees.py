# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Our own components: a splitter, an embedder of leaves, and the merge."""

from collections.abc import Iterator
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np
from haystack import Document

from hichunk_haystack.components.embedders import HierarchyEmbedder
from hichunk_haystack.evaluation.contenders.corpus import Corpus, Piece
from hichunk_haystack.evaluation.contenders.flat import best
from hichunk_haystack.evaluation.embedding_cache import Vectors
from hichunk_haystack.merging import merge
from hichunk_haystack.plans import Ancestor, Hit
from hichunk_haystack.policies import MergeOptions
from hichunk_haystack.tree import ANCESTORS, TreeBuilder, is_leaf, to_documents

# Hits are given for so many times the budget: what is merged or skipped makes room for more.
_SURPLUS = 2.5


class Forest:
    """The trees of a corpus by one splitter, with one kind of vectors: what all policies of merging share."""

    def __init__(self, corpus: Corpus, splitter: Any, **embedder: Any) -> None:
        """
        Set up; nothing is split or embedded yet.

        :param corpus: Documents and questions.
        :param splitter: Any splitter of ours.
        :param embedder: Options of the `HierarchyEmbedder`.
        """
        self.corpus = corpus
        self.splitter = splitter
        self.options = {"leaves_per_call": 100_000, "progress_bar": False, "embed_front_matter": True, **embedder}

    @cached_property
    def leaves(self) -> list[Document]:
        """The leaves that have a word, with vectors."""
        return [node for node in self.embedded() if is_leaf(node) and node.meta["token_count"]]

    def embedded(self) -> list[Document]:
        """
        Split and embed the documents.

        :returns: All nodes of their trees.
        """
        documents = [
            Document(id=name, content=text, meta={"name": name}) for name, text in self.corpus.dataset.documents.items()
        ]
        nodes = self.splitter.run(documents)["documents"]
        cached: Any = self.corpus.embedder
        embedder = HierarchyEmbedder(cached, **self.options)
        return embedder.run(nodes)["documents"]

    @cached_property
    def ranking(self) -> list[list[tuple[int, float]]]:
        """For each question the numbers and similarities of the best leaves, best first."""
        similarities = self.rows()
        return [
            list(zip(ranked, row[ranked].tolist(), strict=True))
            for row, ranked in zip(similarities, best(similarities), strict=True)
        ]

    def hits(self, budget: int) -> Iterator[list[Hit]]:
        """
        Give for each question enough hits to fill a budget, best first.

        :param budget: Tokens.
        :returns: Hits.
        """
        enough = self.enough(budget)
        for ranked in self.ranking:
            yield [self.all_hits[number]._replace(score=score) for number, score in ranked[:enough]]

    def enough(self, budget: int) -> int:
        """
        Tell how many leaves fill a budget, whatever is merged or skipped.

        :param budget: Tokens.
        :returns: How many.
        """
        mean = sum(leaf.meta["token_count"] for leaf in self.leaves) / len(self.leaves)
        return ceil(_SURPLUS * budget / mean) + 10

    @cached_property
    def all_hits(self) -> list[Hit]:
        """A hit for each leaf, without a score."""
        return [hit_of(leaf) for leaf in self.leaves]

    def rows(self) -> Vectors:
        """
        Compare questions and leaves.

        :returns: A row for each question, a column for each leaf.
        """
        return self.corpus.questions @ np.array([leaf.embedding for leaf in self.leaves], dtype=np.float32).T


class Trees:
    """Ranks leaves by their vectors and merges them within the budget."""

    def __init__(self, name: str, forest: Forest, merging: MergeOptions) -> None:
        """
        Set up.

        :param name: What the table calls it.
        :param forest: The trees.
        :param merging: How to merge.
        """
        self.name = name
        self.forest = forest
        self.merging = merging

    def retrieve(self, budget: int) -> Iterator[list[Piece]]:
        """
        Merge within the budget for each question.

        :param budget: Tokens.
        :returns: Pieces in rank order.
        """
        for hits in self.forest.hits(budget):
            nodes = merge(hits, budget, self.merging).nodes
            # Where no leaf fits, the best one has been cut to the budget, which `fill` does as well.
            yield self.forest.corpus.fill(
                (Piece(node.source_id, node.start or 0, node.end or 0) for node in nodes), budget
            )


class ParentDocuments:
    """Finds leaves and returns the nodes above them, whole: LangChain's ParentDocumentRetriever."""

    def __init__(self, name: str, forest: Forest) -> None:
        """
        Set up.

        :param name: What the table calls it.
        :param forest: Trees of two levels.
        """
        self.name = name
        self.forest = forest

    def retrieve(self, budget: int) -> Iterator[list[Piece]]:
        """
        Fill the budget for each question.

        :param budget: Tokens.
        :returns: Pieces in the order of the best hit in each.
        """
        for hits in self.forest.hits(budget):
            parents = dict.fromkeys(_parent(hit) for hit in hits)
            yield self.forest.corpus.fill(parents, budget)


class KnownSections:
    """A splitter for texts without headings, which is told where sections start, but not what they are called."""

    def __init__(self, corpus: Corpus, **bounds: Any) -> None:
        """
        Set up.

        :param corpus: Documents, with cut points.
        :param bounds: Options of the `TreeBuilder`.
        """
        self.cut_points = corpus.cut_points or {}
        self.builder = TreeBuilder(corpus.counter, **bounds)

    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """
        Split documents.

        :param documents: Documents.
        :returns: A dictionary with `documents`: the nodes of their trees.
        """
        nodes: list[Document] = []
        for document in documents:
            cut_points = self.cut_points.get(document.meta["name"], ())
            nodes += to_documents(self.builder.build(document.content or "", cut_points), document, "known sections")
        return {"documents": nodes}


def _parent(hit: Hit) -> Piece:
    node = hit.ancestors[0] if hit.ancestors else hit
    return Piece(hit.source_id, node.start or 0, node.end or 0)


def hit_of(node: Document) -> Hit:
    """
    Make a hit of a node.

    :param node: A node of ours.
    :returns: A hit without a score.
    """
    meta = node.meta
    above = tuple(
        Ancestor(link["id"], link["tokens"], link["children"], link["level"], link["start"], link["end"])
        for link in meta[ANCESTORS]
    )
    return Hit(
        node.id, meta["token_count"], None, meta["source_id"], above, meta["split_idx_start"], meta["split_idx_end"]
    )
