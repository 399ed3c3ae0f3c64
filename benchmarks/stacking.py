# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""
What each technique of docs/stacking.md gains, on the questions of a data set.

    python benchmarks/stacking.py DATASET ... [--only GROUP ...] [--documents NAME ...] [--questions N]
                                  [--output FOLDER] [--late] [--cross-encoder MODEL] [--llm]

A data set is what `python -m hichunk_haystack.evaluation` takes; embeddings are shared with it when `--output` is the
same. All rows have the same trees and merge with the same thresholds; a row that starts with + is the one above it
without + with the technique added. Groups are hybrid, ranking, levels, queries, neighbours, and:

late        needs `--late`, and reads every document again with late chunking.
reranking   needs `--cross-encoder`, a model of Sentence Transformers (a folder, or a name on the model hub); it reads
            the best 48 leaves of each question, which takes a second or two for each.
variants    wordings of each question written by a language model, and
contexts    sentences in front of each leaf written by one. Both need `--llm` and an endpoint that speaks OpenAI's
            protocol, named by HICHUNK_BASE_URL, HICHUNK_MODEL and, where there is a key, HICHUNK_API_KEY. Answers are
            kept in the output folder: a run that was killed goes on where it stopped. A question is one request, a leaf
            is another one, with `--section-tokens` of its section; what is asked is cheap for a hosted model, and takes
            hours on a machine of one's own without a graphics card: name some `--documents`.

With `--documents` these documents alone are searched, and their questions asked.
"""

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import log
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
from haystack import Document

from hichunk_haystack.bm25 import document_vector, query_vector
from hichunk_haystack.components.embedders import LateChunkingEmbedder
from hichunk_haystack.components.embedders.leaf_text import text_to_embed, with_context
from hichunk_haystack.components.generators import EndpointChatGenerator
from hichunk_haystack.components.preprocessors import AutoHierarchicalSplitter, ContextualLeafEnricher
from hichunk_haystack.evaluation.benchmark import BUDGETS, score
from hichunk_haystack.evaluation.command import read_questions
from hichunk_haystack.evaluation.contenders.corpus import Corpus
from hichunk_haystack.evaluation.contenders.flat import best
from hichunk_haystack.evaluation.contenders.lineup import POLICIES, Contender, splitters
from hichunk_haystack.evaluation.contenders.reranked import load_cross_encoder
from hichunk_haystack.evaluation.contenders.stacked import (
    CoarseToFine,
    Expanded,
    Grove,
    RankedAnew,
    SeveralQueries,
    SideBySide,
)
from hichunk_haystack.evaluation.contenders.trees import Forest, Trees
from hichunk_haystack.evaluation.datasets import Dataset
from hichunk_haystack.evaluation.embedding_cache import Vectors
from hichunk_haystack.evaluation.variants import given_variants, response_format, written_variants
from hichunk_haystack.presets import PRESETS
from hichunk_haystack.query_votes import MODES
from hichunk_haystack.tree import is_leaf

MERGING = POLICIES["hichunk"]
_RERANKED = 48
# Qdrant's constant of reciprocal rank fusion.
_RRF = 2
_DOCUMENTS = 8
# Share of the budget for the merge, siblings on either side, levels.
_NEIGHBOURS = ((1, 1, 1), (0.75, 1, 0), (0.75, 0, 1), (0.75, 1, 1), (0.5, 2, 0), (0.5, 0, 2))

Rows = Iterator[tuple[str, Contender]]


@dataclass(frozen=True)
class Run:
    """What the rows of a table share."""

    corpus: Corpus
    grove: Grove
    options: argparse.Namespace


class Ranked(Forest):
    """The leaves of another forest, in an order of one's own."""

    def __init__(self, forest: Forest, similarities: Callable[[], Vectors]) -> None:
        super().__init__(forest.corpus, forest.splitter)
        self.forest = forest
        self.similarities = similarities

    @property
    def leaves(self) -> list[Document]:
        return self.forest.leaves

    def rows(self) -> Vectors:
        return self.similarities()


def bm25(forest: Forest) -> Vectors:
    """BM25 over leaves with their headings, as the sparse vectors of a hybrid collection have it."""
    texts = [with_context(leaf, text_to_embed(leaf, 200)) or "" for leaf in forest.leaves]
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


def reranked(forest: Forest, similarities: Vectors, model: str) -> Vectors:
    """The best leaves in the order of a cross-encoder; it reads them with their headings."""
    scores = load_cross_encoder(model)
    total = np.full_like(similarities, -1e9)
    questions = forest.corpus.dataset.questions
    for row, question, ranked in zip(total, questions, best(similarities, _RERANKED), strict=True):
        row[ranked] = scores(question.text, [text_to_embed(forest.leaves[number], 200) or "" for number in ranked])
    return total


class Enriched:
    """A splitter with an enricher behind it, as in `indexing_contextual.yml`."""

    def __init__(self, splitter: Any, enricher: ContextualLeafEnricher) -> None:
        self.splitter = splitter
        self.enricher = enricher

    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        start = time.perf_counter()
        result = self.enricher.run(self.splitter.run(documents)["documents"])
        for report in result["report"]:
            told = {name: len(value) if name == "failed" else value for name, value in report.items()}
            print(f"<!-- {told}, {time.perf_counter() - start:.0f} s -->", flush=True)
        return {"documents": result["documents"]}


def hybrid(forest: Forest) -> Ranked:
    return Ranked(forest, lambda: fused(forest.rows(), bm25(forest)))


def hybrid_rows(run: Run) -> Rows:
    alone = Forest(run.corpus, run.grove.splitter, context=False)
    embedded = Forest(run.corpus, run.grove.splitter, passages="embed")
    yield "leaves alone, nothing merges", Trees("", alone, POLICIES["none"])
    yield "leaves alone, merging", Trees("", alone, MERGING)
    yield "leaves alone, hybrid, merging", Trees("", hybrid(alone), MERGING)
    yield "+ hybrid", Trees("", hybrid(run.grove), MERGING)
    yield "+ passages embedded", Trees("", embedded, MERGING)
    yield "+ passages embedded, hybrid", Trees("", hybrid(embedded), MERGING)


def ranking_rows(run: Run) -> Rows:
    alone = Grove(run.corpus, run.grove.splitter, context=False)
    yield "leaves alone, merging", Trees("", alone, MERGING)
    for times in (1, 4):
        name = (
            f"+ {times} times the leaves needed, ranked by their context" if times > 1 else "+ ranked by their context"
        )
        yield name, Trees("", RankedAnew(alone, run.grove, times), MERGING)


def level_rows(run: Run) -> Rows:
    yield "+ levels side by side", Trees("", SideBySide(run.grove), MERGING)
    yield "+ inner nodes, then leaves in them", Trees("", CoarseToFine(run.grove), MERGING)
    yield "+ top sections, then leaves in them", Trees("", CoarseToFine(run.grove, 1), MERGING)
    if len(run.corpus.dataset.documents) > _DOCUMENTS:
        name = f"+ {_DOCUMENTS} documents, then leaves in them"
        yield name, Trees("", CoarseToFine(run.grove, 0, _DOCUMENTS), MERGING)
    # As in KohakuRAG, where no vector of a leaf knows of what is above it.
    alone = Grove(run.corpus, run.grove.splitter, context=False)
    yield "leaves alone, merging", Trees("", alone, MERGING)
    yield "+ levels side by side", Trees("", SideBySide(alone), MERGING)
    yield "+ inner nodes, then leaves in them", Trees("", CoarseToFine(alone), MERGING)


def preset_rows(run: Run) -> Rows:
    for preset in PRESETS:
        splitter = AutoHierarchicalSplitter(preset=preset, token_counter=run.corpus.counter)
        yield f"preset {preset}, leaves in context, merging", Trees("", Forest(run.corpus, splitter), MERGING)
        yield f"preset {preset}, leaves alone, merging", Trees("", Forest(run.corpus, splitter, context=False), MERGING)
    # Sentences are searched, and nothing smaller than our leaves is read.
    sentences = Forest(run.corpus, AutoHierarchicalSplitter(preset="kohaku", token_counter=run.corpus.counter))
    larger = replace(MERGING, min_node_tokens=64)
    yield "preset kohaku, leaves in context, merging to 64 tokens or more", Trees("", sentences, larger)


def query_rows(run: Run) -> Rows:
    queries = [given_variants(question.text) for question in run.corpus.dataset.questions]
    for mode in MODES:
        yield f"+ wordings by rule, {mode}", Trees("", SeveralQueries(run.grove, queries, mode), MERGING)


def neighbour_rows(run: Run) -> Rows:
    for share, reach, levels in _NEIGHBOURS:
        parts = [f"{levels} level{'s' * (levels > 1)} up"] * bool(levels) + [f"{reach} on either side"] * bool(reach)
        name = f"+ {' and '.join(parts)}, {share:.0%} merged"
        yield name, Expanded(name, run.grove, MERGING, share=share, reach=reach, levels=levels)


def variant_rows(run: Run) -> Rows:
    # In the body only: the client would throw an answer away that is cut off.
    form = {"response_format": response_format(3)}
    generator = EndpointChatGenerator(generation_kwargs={"temperature": 0, "max_tokens": 200, "extra_body": form})
    questions = [question.text for question in run.corpus.dataset.questions]
    queries = written_variants(questions, generator, run.options.output / "variants", workers=run.options.workers)
    print(f"<!-- {sum(len(each) > 1 for each in queries)} of {len(queries)} questions have variants -->", flush=True)
    for mode in MODES:
        yield f"+ wordings by a model, {mode}", Trees("", SeveralQueries(run.grove, queries, mode), MERGING)


def context_rows(run: Run) -> Rows:
    enricher = ContextualLeafEnricher(
        EndpointChatGenerator(generation_kwargs={"temperature": 0, "max_tokens": 100}, timeout=120),
        section_tokens=run.options.section_tokens,
        cache_dir=run.options.output / "leaf_contexts",
        max_workers=run.options.workers,
        token_counter=run.corpus.counter,
    )
    chain = Enriched(run.grove.splitter, enricher)
    told = Forest(run.corpus, chain)
    yield "+ contexts by a model", Trees("", told, MERGING)
    yield "leaves in context, hybrid, merging", Trees("", hybrid(run.grove), MERGING)
    yield "+ contexts by a model", Trees("", hybrid(told), MERGING)
    yield "leaves alone, merging", Trees("", Forest(run.corpus, run.grove.splitter, context=False), MERGING)
    yield "+ contexts by a model", Trees("", Forest(run.corpus, chain, context=False), MERGING)


def late_rows(run: Run) -> Rows:
    alone = Forest(run.corpus, run.grove.splitter, context=False)
    yield "late chunking, merging", Trees("", Ranked(alone, lambda: late(alone)), MERGING)


def reranking_rows(run: Run) -> Rows:
    ranking = Ranked(run.grove, lambda: reranked(run.grove, run.grove.rows(), run.options.cross_encoder))
    yield f"+ best {_RERANKED} reranked", Trees("", ranking, MERGING)


GROUPS: dict[str, Callable[[Run], Rows]] = {
    "hybrid": hybrid_rows,
    "ranking": ranking_rows,
    "levels": level_rows,
    "presets": preset_rows,
    "queries": query_rows,
    "neighbours": neighbour_rows,
    "late": late_rows,
    "reranking": reranking_rows,
    "variants": variant_rows,
    "contexts": context_rows,
}
# What has to be given for a group to be measured.
_NEEDING = {"late": "late", "reranking": "cross_encoder", "variants": "llm", "contexts": "llm"}


def rows(corpus: Corpus, options: argparse.Namespace) -> Rows:
    run = Run(corpus, Grove(corpus, splitters(corpus)["Auto"]), options)
    yield "leaves in context, merging", Trees("", run.grove, MERGING)
    for group, made in GROUPS.items():
        if group in options.only:
            yield from made(run)


def read(folder: Path, options: argparse.Namespace) -> Corpus:
    """The data set, or some documents of it."""
    try:
        corpus = read_questions(folder, options.output, most=None if options.documents else options.questions)
    except (FileNotFoundError, ValueError) as error:
        raise SystemExit(str(error)) from None
    if not options.documents:
        return corpus
    dataset = corpus.dataset
    unknown = set(options.documents) - set(dataset.documents)
    if unknown:
        msg = f"{dataset.name} has no document {', '.join(sorted(unknown))}; it has {', '.join(dataset.documents)}."
        raise SystemExit(msg)
    documents = {name: dataset.documents[name] for name in options.documents}
    questions = [question for question in dataset.questions if question.document in documents]
    step = max(1.0, len(questions) / (options.questions or len(questions)))
    questions = [questions[int(number * step)] for number in range(int(len(questions) / step))]
    part = Dataset(f"{dataset.name} ({', '.join(documents)})", documents, questions)
    return Corpus(part, corpus.embedder, corpus.counter, corpus.cut_points)


def positive(text: str) -> int:
    """A whole number from 1 on."""
    number = int(text)
    if number < 1:
        msg = f"{number} is less than 1"
        raise argparse.ArgumentTypeError(msg)
    return number


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="+", type=Path, metavar="DATASET")
    parser.add_argument("--only", nargs="+", choices=GROUPS, metavar="GROUP")
    parser.add_argument("--documents", nargs="+", metavar="NAME")
    parser.add_argument("--questions", type=positive)
    parser.add_argument("--output", type=Path, default=Path("evaluation"))
    parser.add_argument("--late", action="store_true")
    parser.add_argument("--cross-encoder", metavar="MODEL")
    parser.add_argument("--llm", action="store_true")
    parser.add_argument("--section-tokens", type=positive, default=2000)
    parser.add_argument("--workers", type=positive, default=4, help="requests to the language model at once")
    options = parser.parse_args()
    lacking = {group: needed for group, needed in _NEEDING.items() if not getattr(options, needed)}
    for group in options.only or ():
        if group in lacking:
            parser.error(f"the group {group} needs --{lacking[group].replace('_', '-')}")
    options.only = options.only or [group for group in GROUPS if group not in lacking]
    if any(_NEEDING.get(group) == "llm" for group in options.only):
        try:
            EndpointChatGenerator().warm_up()
        except ValueError as error:
            parser.error(str(error))
    return options


def main() -> None:
    options = arguments()
    for folder in options.datasets:
        corpus = read(folder, options)
        print(f"\n{corpus.dataset.name}: {len(corpus.dataset.questions)} questions, ERec in percent\n")
        print("| | " + " | ".join(f"{budget:,}" for budget in BUDGETS) + " |")
        print("| --- |" + " ---: |" * len(BUDGETS))
        for name, contender in rows(corpus, options):
            start = time.perf_counter()
            found = [f"{score(corpus, contender, budget)['erec']:.1f}" for budget in BUDGETS]
            print(f"| {name} | " + " | ".join(found) + f" |  <!-- {time.perf_counter() - start:.0f} s -->", flush=True)


if __name__ == "__main__":
    main()
