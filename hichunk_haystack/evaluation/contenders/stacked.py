# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""
Techniques of docs/stacking.md in memory: ranking anew, several levels, several queries, neighbours.

They follow the components' own rules, over the trees and vectors that all other contenders of ours have.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np
from haystack import Document

from hichunk_haystack.collapsing import COVERAGE, MOST_TOKENS, collapse
from hichunk_haystack.evaluation.contenders.corpus import Corpus, Piece
from hichunk_haystack.evaluation.contenders.flat import best
from hichunk_haystack.evaluation.contenders.trees import Forest, hit_of
from hichunk_haystack.evaluation.embedding_cache import Vectors
from hichunk_haystack.expanding import choose, climb, siblings
from hichunk_haystack.merging import merge
from hichunk_haystack.nodes import CHILDREN, LEVEL, is_leaf
from hichunk_haystack.plans import Hit
from hichunk_haystack.policies import MergeOptions
from hichunk_haystack.query_votes import count_votes, different_queries

# One inner node for so many leaves, as in `query_levels.yml`.
LEAVES_PER_INNER = 6
# Leaves that are ranked for a query; enough to fill any budget here.
_RANKED = 1024


class Grove(Forest):
    """Trees whose inner nodes are at hand as well, each with the mean of what is below it."""

    def __init__(self, corpus: Corpus, splitter: Any, **embedder: Any) -> None:
        """
        Set up; nothing is split or embedded yet.

        :param corpus: Documents and questions.
        :param splitter: Any splitter of ours.
        :param embedder: Options of the `HierarchyEmbedder`.
        """
        super().__init__(corpus, splitter, **{"inner": "mean", **embedder})

    @cached_property
    def nodes(self) -> list[Document]:
        """All nodes, with vectors."""
        return self.embedded()

    @cached_property
    def leaves(self) -> list[Document]:
        """The leaves that have a word, with vectors."""
        return [node for node in self.nodes if is_leaf(node) and node.meta["token_count"]]

    @cached_property
    def inner(self) -> list[Document]:
        """The inner nodes, with vectors."""
        return [node for node in self.nodes if not is_leaf(node)]

    @cached_property
    def inner_hits(self) -> list[Hit]:
        """A hit for each inner node, without a score."""
        return [hit_of(node) for node in self.inner]

    @cached_property
    def similarities(self) -> Vectors:
        """A row for each question, a column for each leaf."""
        return self.rows()

    @cached_property
    def inner_similarities(self) -> Vectors:
        """A row for each question, a column for each inner node."""
        questions = self.corpus.questions
        inner = np.array([node.embedding for node in self.inner], dtype=np.float32)
        # There are none where every document is a leaf.
        return questions @ inner.reshape(-1, questions.shape[1]).T

    @cached_property
    def children(self) -> dict[str, list[str]]:
        """Ids of the children of each inner node."""
        return {node.id: node.meta[CHILDREN] for node in self.inner}

    @cached_property
    def places(self) -> dict[str, Hit]:
        """Every node as a hit, by id."""
        return {node.id: hit_of(node) for node in self.nodes}

    @cached_property
    def leaves_below(self) -> dict[str, list[int]]:
        """Numbers of the leaves below each inner node."""
        below: dict[str, list[int]] = {}
        for number, hit in enumerate(self.all_hits):
            for node in hit.ancestors:
                below.setdefault(node.id, []).append(number)
        return below


class _Ranking(Forest):
    """Hits of one's own over the trees of a grove."""

    def __init__(self, grove: Grove) -> None:
        super().__init__(grove.corpus, grove.splitter)
        self.grove = grove

    @property
    def leaves(self) -> list[Document]:
        return self.grove.leaves

    def _hits(self, numbers: Sequence[int], row: Vectors) -> list[Hit]:
        return [self.grove.all_hits[number]._replace(score=float(row[number])) for number in numbers]


class RankedAnew(_Ranking):
    """Leaves found by their own vectors, in the order of those that know their context: an `AncestorScoreRanker`."""

    def __init__(self, grove: Grove, context: Forest, times: int = 4) -> None:
        """
        Set up.

        :param grove: The trees, with leaves that know nothing but themselves.
        :param context: The same trees, with leaves that know their context.
        :param times: So many times the leaves that are needed are found.
        """
        super().__init__(grove)
        self.context = context
        self.times = times

    def hits(self, budget: int) -> Iterator[list[Hit]]:
        """
        Give for each question enough hits to fill a budget, best first.

        :param budget: Tokens.
        :returns: Hits.
        """
        enough = self.enough(budget)
        found = best(self.grove.similarities, self.times * enough)
        for numbers, row in zip(found, self.context.rows(), strict=True):
            ranked = sorted(numbers, key=row.__getitem__, reverse=True)
            yield self._hits(ranked[:enough], row)


class SideBySide(_Ranking):
    """Leaves and inner nodes, each level with a quota, as a `MultiLevelRetriever` finds them."""

    def __init__(self, grove: Grove, coverage: float = COVERAGE, max_collapse_tokens: int | None = MOST_TOKENS) -> None:
        """
        Set up.

        :param grove: The trees.
        :param coverage: Share of a node's text that must have been found below it for the node to stand for it.
        :param max_collapse_tokens: A node of more tokens never does.
        """
        super().__init__(grove)
        self.coverage = coverage
        self.max_collapse_tokens = max_collapse_tokens

    def hits(self, budget: int) -> Iterator[list[Hit]]:
        """
        Give for each question enough hits to fill a budget, best first.

        :param budget: Tokens.
        :returns: Hits of which none lies in another.
        """
        grove, quota = self.grove, self.enough(budget)
        leaves = best(grove.similarities, quota)
        inner = best(grove.inner_similarities, ceil(quota / LEAVES_PER_INNER))
        for number, (low, high) in enumerate(zip(leaves, inner, strict=True)):
            above = [
                grove.inner_hits[each]._replace(score=float(grove.inner_similarities[number, each])) for each in high
            ]
            found = [*above, *self._hits(low, grove.similarities[number])]
            yield collapse(found, self.coverage, self.max_collapse_tokens)


class CoarseToFine(_Ranking):
    """Inner nodes first, then leaves inside of those found, as a `MultiLevelRetriever` finds them."""

    def __init__(self, grove: Grove, level: int | None = None, quota: int | None = None) -> None:
        """
        Set up.

        :param grove: The trees.
        :param level: The level searched first, 0 for documents; by default inner nodes of any level.
        :param quota: How many nodes of it; by default a share of the leaves that are found.
        """
        super().__init__(grove)
        self.level = level
        self.quota = quota

    def hits(self, budget: int) -> Iterator[list[Hit]]:
        """
        Give for each question enough hits to fill a budget, best first.

        :param budget: Tokens.
        :returns: Hits.
        """
        grove, most = self.grove, self.enough(budget)
        there = [number for number, node in enumerate(grove.inner) if self.level in (None, node.meta[LEVEL])]
        # A leaf that stands as high as what is searched has no such node above it, and stays within reach.
        high = [number for number, leaf in enumerate(grove.leaves) if leaf.meta[LEVEL] <= (self.level or 0)]
        found = best(grove.inner_similarities[:, there], self.quota or ceil(most / LEAVES_PER_INNER))
        for row, numbers in zip(grove.similarities, found, strict=True):
            inside = set(high)
            for number in numbers:
                inside.update(grove.leaves_below.get(grove.inner[there[number]].id, ()))
            reached = np.array(sorted(inside), dtype=np.int64)
            (ranked,) = best(row[reached][np.newaxis], most)
            yield self._hits(reached[ranked].tolist(), row)


class SeveralQueries(_Ranking):
    """Leaves by the votes of several wordings of a question, as a `MultiQueryRetriever` ranks them."""

    def __init__(
        self, grove: Grove, queries: Sequence[Sequence[str]], mode: str = "combined", frequency_weight: float = 0.4
    ) -> None:
        """
        Set up.

        :param grove: The trees.
        :param queries: For each question the queries that are searched for.
        :param mode: `frequency`, `score` or `combined`.
        :param frequency_weight: Weight of the frequency in `combined`.
        """
        super().__init__(grove)
        self.queries = [different_queries(each) for each in queries]
        self.mode = mode
        self.frequency_weight = frequency_weight

    @cached_property
    def found(self) -> list[list[list[tuple[int, float]]]]:
        """For each question and query the numbers and similarities of the best leaves, best first."""
        vectors = self.corpus.embedder.embed([query for each in self.queries for query in each], "Queries")
        leaves = np.array([leaf.embedding for leaf in self.leaves], dtype=np.float32).T
        found, first = [], 0
        for each in self.queries:
            rows = vectors[first : first + len(each)] @ leaves
            ranked = best(rows, _RANKED)
            found.append(
                [list(zip(one, row[one].tolist(), strict=True)) for one, row in zip(ranked, rows, strict=True)]
            )
            first += len(each)
        return found

    def hits(self, budget: int) -> Iterator[list[Hit]]:
        """
        Give for each question enough hits to fill a budget, best first.

        :param budget: Tokens.
        :returns: Hits.
        """
        enough, hits = self.enough(budget), self.grove.all_hits
        numbers = {hit.id: number for number, hit in enumerate(hits)}
        for each in self.found:
            lists = [[(hits[number].id, score) for number, score in ranked[:enough]] for ranked in each]
            votes = count_votes(lists, self.mode, self.frequency_weight)[:enough]
            yield [hits[numbers[name]]._replace(score=vote) for name, vote in votes]


class Expanded:
    """A merge that has a part of the budget, and neighbours in the rest, as a `NeighbourExpander` takes them."""

    def __init__(
        self, name: str, grove: Grove, merging: MergeOptions, *, share: float, reach: int = 0, levels: int = 0
    ) -> None:
        """
        Set up.

        :param name: What the table calls it.
        :param grove: The trees.
        :param merging: How to merge.
        :param share: The part of the budget that the merge has.
        :param reach: How many siblings on either side to go.
        :param levels: How many levels to go up.
        """
        self.name = name
        self.grove = grove
        self.merging = replace(merging, order="rank")
        self.share = share
        self.reach = reach
        self.levels = levels

    def retrieve(self, budget: int) -> Iterator[list[Piece]]:
        """
        Merge and expand within the budget for each question.

        :param budget: Tokens.
        :returns: Pieces in rank order.
        """
        grove = self.grove
        for hits in grove.hits(budget):
            plan = merge(hits, max(1, int(self.share * budget)), self.merging)
            found = [grove.places[node.id]._replace(score=node.score, tokens=node.tokens) for node in plan.nodes]
            places, room = climb(found, budget - plan.used, self.levels)
            held = [place.hit for place in places]
            wanted = list(siblings(held, grove.children, self.reach))
            chosen = choose(held, wanted, grove.places, room)
            pieces = []
            for number, hit in enumerate(held):
                steps = [step for step in range(-self.reach, self.reach + 1) if not step or (number, step) in chosen]
                pieces += [grove.places[chosen[number, step]] if step else hit for step in steps]
            yield grove.corpus.fill((Piece(node.source_id, node.start or 0, node.end or 0) for node in pieces), budget)
