# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""
What each technique of docs/stacking.md gains, on the questions of a data set, one added at a time.

    python benchmarks/stacking.py DATASET ... [--questions N] [--output FOLDER] [--late] [--cross-encoder FOLDER]

A data set is what `python -m hichunk_haystack.evaluation` takes; embeddings are shared with it when `--output` is the
same. All rows have the same trees and merge with the same thresholds. `--late` reads every document again with late
chunking. `--cross-encoder` is a folder with the ONNX model ms-marco-MiniLM-L-12-v2 and its configuration, for
fastembed; it reads the best 48 leaves of each question, which takes a second or two for each.
"""

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from math import log
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
from haystack import Document

from hichunk_haystack.bm25 import document_vector, query_vector
from hichunk_haystack.components.embedders import LateChunkingEmbedder
from hichunk_haystack.components.embedders.leaf_text import text_to_embed
from hichunk_haystack.evaluation.benchmark import BUDGETS, score
from hichunk_haystack.evaluation.command import read_questions
from hichunk_haystack.evaluation.contenders.corpus import Corpus
from hichunk_haystack.evaluation.contenders.flat import best
from hichunk_haystack.evaluation.contenders.lineup import POLICIES, splitters
from hichunk_haystack.evaluation.contenders.reranked import fastembed_cross_encoder
from hichunk_haystack.evaluation.contenders.trees import Forest, Trees
from hichunk_haystack.evaluation.embedding_cache import Vectors
from hichunk_haystack.tree import is_leaf

_RERANKED = 48
# Qdrant's constant of reciprocal rank fusion.
_RRF = 2


class Ranked(Forest):
    """The leaves of another forest, in an order of one's own."""

    def __init__(self, forest: Forest, similarities: Callable[[], Vectors]) -> None:
        super().__init__(forest.corpus, forest.splitter)
        self.forest = forest
        self.similarities = similarities

    @property
    def leaves(self) -> list[Document]:  # type: ignore[override]
        return self.forest.leaves

    def rows(self) -> Vectors:
        return self.similarities()


def bm25(forest: Forest) -> Vectors:
    """BM25 over leaves with their headings, as the sparse vectors of a hybrid collection have it."""
    texts = [text_to_embed(leaf, 200) or "" for leaf in forest.leaves]
    postings: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for number, text in enumerate(texts):
        for index, weight in zip(*document_vector(text, 1.2, 0.75, 80.0), strict=True):
            postings[index].append((number, weight))
    scores = np.zeros((len(forest.corpus.dataset.questions), len(texts)), dtype=np.float32)
    for row, question in zip(scores, forest.corpus.dataset.questions, strict=True):
        for index in query_vector(question.text)[0]:
            found = postings.get(index, ())
            idf = log(1 + (len(texts) - len(found) + 0.5) / (len(found) + 0.5))
            for number, weight in found:
                row[number] += idf * weight
    return scores


def fused(*rankings: Vectors) -> Vectors:
    """Reciprocal rank fusion, as Qdrant does it, of the best 1,000 of each."""
    total = np.zeros_like(rankings[0])
    for similarities in rankings:
        for row, ranked in zip(total, best(similarities, 1000), strict=True):
            row[ranked] += 1 / (_RRF + np.arange(len(ranked)))
    return total


def late(forest: Forest) -> Vectors:
    embedder = LateChunkingEmbedder(model_kwargs={"dtype": "bfloat16"})
    embedder.warm_up()
    documents = [
        Document(id=name, content=text, meta={"name": name}) for name, text in forest.corpus.dataset.documents.items()
    ]
    nodes = embedder.run(forest.splitter.run(documents)["documents"])["documents"]
    vectors = {node.id: node.embedding for node in nodes if is_leaf(node)}
    matrix = np.array([vectors[leaf.id] for leaf in forest.leaves], dtype=np.float32)
    return forest.corpus.questions @ matrix.T


def reranked(forest: Forest, similarities: Vectors, folder: str) -> Vectors:
    """The best leaves in the order of a cross-encoder; it reads them with their headings."""
    scores = fastembed_cross_encoder(folder)
    total = np.full_like(similarities, -1e9)
    questions = forest.corpus.dataset.questions
    for row, question, ranked in zip(total, questions, best(similarities, _RERANKED), strict=True):
        row[ranked] = scores(question.text, [text_to_embed(forest.leaves[number], 200) or "" for number in ranked])
    return total


def rows(corpus: Corpus, options: argparse.Namespace) -> Iterator[tuple[str, Any]]:
    splitter = splitters(corpus)["Auto"]
    alone = Forest(corpus, splitter, context=False)
    in_context = Forest(corpus, splitter)
    embedded = Forest(corpus, splitter, passages="embed")
    words = bm25(alone)
    merging = POLICIES["hichunk"]
    yield "leaves alone, nothing merges", Trees("", alone, POLICIES["none"])
    yield "+ merging", Trees("", alone, merging)
    yield "+ hybrid", Trees("", Ranked(alone, lambda: fused(alone.rows(), words)), merging)
    yield "leaves in context, merging", Trees("", in_context, merging)
    yield "+ hybrid", Trees("", Ranked(in_context, lambda: fused(in_context.rows(), words)), merging)
    yield "+ passages embedded", Trees("", embedded, merging)
    yield "+ passages embedded, hybrid", Trees("", Ranked(embedded, lambda: fused(embedded.rows(), words)), merging)
    if options.late:
        yield "late chunking, merging", Trees("", Ranked(alone, lambda: late(alone)), merging)
    if options.cross_encoder:
        ranking = Ranked(in_context, lambda: reranked(in_context, in_context.rows(), options.cross_encoder))
        yield f"leaves in context, best {_RERANKED} reranked, merging", Trees("", ranking, merging)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="+", type=Path, metavar="DATASET")
    parser.add_argument("--questions", type=int)
    parser.add_argument("--output", type=Path, default=Path("evaluation"))
    parser.add_argument("--late", action="store_true")
    parser.add_argument("--cross-encoder")
    options = parser.parse_args()
    for folder in options.datasets:
        corpus = read_questions(folder, options.output, most=options.questions)
        print(f"\n{corpus.dataset.name}: {len(corpus.dataset.questions)} questions, ERec in percent\n")
        print("| | " + " | ".join(f"{budget:,}" for budget in BUDGETS) + " |")
        print("| --- |" + " ---: |" * len(BUDGETS))
        for name, contender in rows(corpus, options):
            start = time.perf_counter()
            found = [f"{score(corpus, contender, budget)['erec']:.1f}" for budget in BUDGETS]
            print(f"| {name} | " + " | ".join(found) + f" |  <!-- {time.perf_counter() - start:.0f} s -->", flush=True)


if __name__ == "__main__":
    main()
