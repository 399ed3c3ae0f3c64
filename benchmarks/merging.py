# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""
Speed of merging, beside the rivals and beside tokenising the context again at each step, in one run.

    python benchmarks/merging.py [--rounds 60] [--json FILE]

1. A whole query: 48 hits over 5,060 inner nodes (44 sources of 19 chapters of 5 sections of 4 leaves), each in another
   section ("scattered") or 12 of the 20 leaves of each of 4 chapters ("clustered"). Haystack's AutoMergingRetriever
   reads the same stores; LlamaIndex's reads a dictionary in its process. Each contender takes its turn at each query.
2. The plan alone: 200 hits over 2,000 leaves, a budget of 4,096 tokens, beside the same rule with the joined context
   tokenised again at each step, as HiChunk's reference code does.
3. The plan alone for 10 to 10,000 hits.

LlamaIndex needs the extra `compare`. Times are processor time, so that other work on the machine matters less; the
tables show medians and the best of all rounds, ratios are of medians.
"""

import argparse
import json
import logging
import math
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")

from haystack import Document
from haystack.components.retrievers import AutoMergingRetriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

from hichunk_haystack.chains import Lengths, resolve_hits
from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.components.retrievers import BudgetAutoMergingRetriever
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from hichunk_haystack.merging import Hit, merge
from hichunk_haystack.reading import with_reads
from hichunk_haystack.tokens import HuggingFaceTokenCounter

COUNTER = HuggingFaceTokenCounter()
WORDS = [
    "time", "water", "house", "light", "stone", "river", "paper", "glass", "table", "music", "garden", "winter",
    "summer", "bridge", "market", "letter", "window", "doctor", "forest", "island", "kitchen", "morning", "evening",
]  # fmt: skip
HITS = 48
# Takes all hits and all that they can merge into, so that nothing is saved by leaving things out.
QUERY_BUDGET = 16_384
SLOW = 3  # rounds of a contender that takes seconds


def tree(name: str, chapters: int, pick: random.Random) -> list[Document]:
    """Chapters of 5 sections of 4 paragraphs of 58 tokens; each paragraph is a leaf, the first ones with headings."""
    parts = []
    for chapter in range(chapters):
        for section in range(5):
            parts.append(f"# Chapter {chapter}\n\n" if not section else "")
            parts.append(f"## Section {section}\n\n")
            parts += [" ".join(pick.choices(WORDS, k=57)) + ".\n\n" for _ in range(4)]
    splitter = MarkdownHierarchicalSplitter(leaf_tokens=70, min_leaf_tokens=8, inner_tokens=[], token_counter=COUNTER)
    return splitter.run([Document(id=name, content="".join(parts))])["documents"]


def is_leaf(node: Document) -> bool:
    return not node.meta["__children_ids"]


def by_parent(nodes: Sequence[Document]) -> dict[str, list[Document]]:
    groups: dict[str, list[Document]] = {}
    for node in nodes:
        groups.setdefault(node.meta["__parent_id"], []).append(node)
    return groups


def scored(leaves: Sequence[Document]) -> list[Document]:
    return [
        Document(id=leaf.id, content=leaf.content, meta=leaf.meta, score=1 - rank / 1000)
        for rank, leaf in enumerate(leaves)
    ]


def scattered(nodes: Sequence[Document], count: int, pick: random.Random) -> list[Document]:
    """Each hit in another section."""
    sections = list(by_parent([node for node in nodes if is_leaf(node)]).values())
    return scored([pick.choice(section) for section in pick.sample(sections, count)])


def clustered(nodes: Sequence[Document], count: int, pick: random.Random) -> list[Document]:
    """12 of the 20 leaves of each of some chapters, in any order."""
    leaves = by_parent([node for node in nodes if is_leaf(node)])
    chapters = list(by_parent([node for node in nodes if node.id in leaves]).values())
    found = []
    for chapter in pick.sample(chapters, math.ceil(count / 12)):
        found += pick.sample([leaf for section in chapter for leaf in leaves[section.id]], 12)
    pick.shuffle(found)
    return scored(found[:count])


Contender = Callable[[list[Document]], int]
"""Answers a query's hits and returns how many documents come out."""


def ours(store: Any) -> Contender:
    retriever = BudgetAutoMergingRetriever(store, token_budget=QUERY_BUDGET, token_counter=COUNTER)
    return lambda hits: len(retriever.run(hits)["documents"])


def haystack(store: Any) -> Contender:
    retriever = AutoMergingRetriever(store, threshold=0.5)
    return lambda hits: len(retriever.run(documents=hits)["documents"])


def llama_index(nodes: Sequence[Document]) -> Contender | None:
    """LlamaIndex over the same nodes in its own in-process document store."""
    try:
        from llama_index.core import StorageContext
        from llama_index.core.base.base_retriever import BaseRetriever
        from llama_index.core.retrievers import AutoMergingRetriever as LlamaAutoMergingRetriever
        from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
        from llama_index.core.storage.docstore import SimpleDocumentStore
    except ImportError:
        print("llama-index-core is not installed: pip install 'hichunk-haystack[compare]'", file=sys.stderr)
        return None
    logging.getLogger("llama_index").setLevel(logging.WARNING)

    made: dict[str, TextNode] = {}
    for node in nodes:
        made[node.id] = TextNode(id_=node.id, text=node.content or "")
        children = [RelatedNodeInfo(node_id=child) for child in node.meta["__children_ids"]]
        if children:
            made[node.id].relationships[NodeRelationship.CHILD] = children
        if node.meta["__parent_id"]:
            made[node.id].relationships[NodeRelationship.PARENT] = RelatedNodeInfo(node_id=node.meta["__parent_id"])
    store = SimpleDocumentStore()
    store.add_documents(list(made.values()))

    class Fixed(BaseRetriever):
        """Stands for the vector search: gives the hits it was told."""

        hits: list[NodeWithScore]

        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:  # noqa: ARG002 - LlamaIndex's signature
            return list(self.hits)

    base = Fixed()
    retriever = LlamaAutoMergingRetriever(base, StorageContext.from_defaults(docstore=store))

    def answer(hits: list[Document]) -> int:
        base.hits = [NodeWithScore(node=made[hit.id], score=hit.score) for hit in hits]
        # Not `retrieve`: it sends events for its callbacks, which are no part of merging.
        return len(retriever._retrieve(QueryBundle("")))

    return answer


def take_turns(
    contenders: dict[str, Contender], queries: Sequence[list[Document]], slow: Sequence[str]
) -> dict[str, dict[str, Any]]:
    times: dict[str, list[float]] = {name: [] for name in contenders}
    documents = {}
    for number, hits in enumerate(queries):
        for name, answer in contenders.items():
            if name in slow and number >= SLOW:
                continue
            start = time.process_time()
            documents[name] = answer(hits)
            times[name].append(1000 * (time.process_time() - start))
    return {
        name: {"median_ms": statistics.median(found), "best_ms": min(found), "documents": documents[name]}
        for name, found in times.items()
    }


def count_calls(store: Any, names: Sequence[str], answer: Contender, hits: list[Document]) -> int:
    """How often an answer asks its store."""
    calls = 0

    def counted(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            return original(*args, **kwargs)

        return call

    for name in names:
        setattr(store, name, counted(getattr(store, name)))
    answer(hits)
    for name in names:
        delattr(store, name)
    return calls


def whole_queries(rounds: int, pick: random.Random) -> list[dict[str, Any]]:
    nodes = [node for number in range(44) for node in tree(f"source {number}", 19, pick)]
    inner = [node for node in nodes if not is_leaf(node)]
    print(f"1. A whole query: {HITS} hits, {len(inner):,} inner nodes, {len(nodes) - len(inner):,} leaves\n")
    qdrant = HierarchyQdrantDocumentStore(location=":memory:", embedding_dim=4)
    qdrant.write_documents(inner)
    memory = InMemoryDocumentStore()
    memory.write_documents(inner)
    contenders: dict[str, Contender] = {
        "ours, Qdrant in memory": ours(qdrant),
        "ours, InMemoryDocumentStore": ours(memory),
    }
    llama = llama_index(nodes)
    if llama is not None:
        contenders["LlamaIndex, dictionary"] = llama
    contenders["Haystack, Qdrant in memory"] = haystack(qdrant)
    contenders["Haystack, InMemoryDocumentStore"] = haystack(memory)
    rows = []
    for kind, make in (("scattered", scattered), ("clustered", clustered)):
        queries = [make(nodes, HITS, pick) for _ in range(rounds)]
        found = take_turns(contenders, queries, [name for name in contenders if name.startswith("Haystack")])
        reads = ["get_nodes_by_id", "get_documents_by_id", "filter_documents"]
        calls = {
            name: count_calls(qdrant, reads, contenders[name], queries[0])
            for name in ("ours, Qdrant in memory", "Haystack, Qdrant in memory")
        }
        rows += [
            {
                "hits": kind,
                "name": name,
                "store_calls": calls.get(name),
                **row,
                "ratio": row["median_ms"] / ours_of(found),
            }
            for name, row in found.items()
        ]
    print(f"{'':46}{'median ms':>11}{'best ms':>10}{'x ours':>10}{'documents':>11}{'store calls':>13}")
    for row in rows:
        print(
            f"{row['hits'] + ': ' + row['name']:46}{row['median_ms']:11.2f}{row['best_ms']:10.2f}{row['ratio']:10.1f}"
            f"{row['documents']:11}{'' if row['store_calls'] is None else row['store_calls']:>13}"
        )
    return rows


def ours_of(found: dict[str, dict[str, Any]]) -> float:
    return found["ours, Qdrant in memory"]["median_ms"]


def hits_of(documents: Sequence[Document]) -> list[Hit]:
    return with_reads(resolve_hits(documents, Lengths(COUNTER)), InMemoryDocumentStore()).hits


def tokenising_again(hits: Sequence[Document], by_id: dict[str, Document], budget: int) -> list[str]:
    """The rule of the paper with the context's length taken from its text whenever it is needed."""
    context: list[Document] = []

    def used() -> int:
        return COUNTER.count_texts(["\n".join(node.content or "" for node in context)])[0]

    def above(node: Document) -> list[Document]:
        return [by_id[link["id"]] for link in node.meta["__ancestors"]]

    def length(node: Document) -> int:
        return node.meta["token_count"]

    for hit in hits:
        if any(held.id == node.id for held in context for node in [hit, *above(hit)]):
            continue
        if length(hit) > budget - used():
            continue
        context.append(hit)
        for parent in above(hit):
            under = [held for held in context if any(node.id == parent.id for node in above(held))]
            children = [held for held in under if held.meta["__parent_id"] == parent.id]
            taken = used()
            enough = sum(map(length, children)) >= length(parent) / 3 * (1 + taken / budget)
            fits = budget - taken >= length(parent) - sum(map(length, under))
            if len(children) < 2 or not enough or not fits:
                break
            place = context.index(children[0])
            context[place] = parent
            context = [held for held in context if held is parent or held not in under]
    return [node.id for node in context]


def timed(work: Callable[[], Any], rounds: int) -> tuple[float, float]:
    """Median and best, in ms."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(1000 * (time.process_time() - start))
    return statistics.median(times), min(times)


def plan_alone(rounds: int, pick: random.Random) -> list[dict[str, Any]]:
    nodes = tree("book", 100, pick)
    by_id = {node.id: node for node in nodes}
    budget = 4096
    print(f"\n2. The plan alone: 200 hits, {sum(map(is_leaf, nodes)):,} leaves, a budget of {budget:,} tokens\n")
    print(f"{'':46}{'median ms':>11}{'best ms':>10}{'x ours':>10}{'documents':>11}")
    rows = []
    for kind, make in (("scattered", scattered), ("clustered", clustered)):
        documents = make(nodes, 200, pick)
        hits = hits_of(documents)
        plan = merge(hits, budget)
        again = tokenising_again(documents, by_id, budget)
        if [node.id for node in plan.nodes] != again:
            sys.exit("The two plans differ: the comparison means nothing.")
        fast = timed(partial(merge, hits, budget), 20 * rounds)
        slow = timed(partial(tokenising_again, documents, by_id, budget), SLOW)
        for name, (median, best) in (("ours", fast), ("context tokenised at each step", slow)):
            ratio = median / fast[0]
            rows.append({"hits": kind, "name": name, "median_ms": median, "best_ms": best, "ratio": ratio})
            print(f"{kind + ': ' + name:46}{median:11.2f}{best:10.2f}{ratio:10.1f}{len(again):11}")
    return rows


def scaling(pick: random.Random) -> list[dict[str, Any]]:
    nodes = [node for number in range(30) for node in tree(f"scale {number}", 20, pick)]
    leaves = [node for node in nodes if is_leaf(node)]
    print(f"\n3. The plan alone, by the number of hits, {len(leaves):,} leaves, everything fits\n")
    print(f"{'hits':>8}{'median ms':>11}{'best ms':>10}{'us a hit':>10}{'us / log2 n':>13}")
    rows = []
    for count in (10, 100, 1_000, 10_000):
        hits = hits_of(scored(pick.sample(leaves, count)))
        median, best = timed(partial(merge, hits, 10_000_000), max(5, 20_000 // count))
        rows.append({"hits": count, "median_ms": median, "best_ms": best})
        each = 1000 * best / count
        print(f"{count:8,}{median:11.3f}{best:10.3f}{each:10.1f}{each / math.log2(count):13.2f}")
    return rows


def versions() -> dict[str, str]:
    found = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "python": platform.python_version()}
    for name in ("haystack-ai", "qdrant-haystack", "qdrant-client", "llama-index-core"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    print(", ".join(f"{name} {value}" for name, value in versions().items()), end="\n\n")
    pick = random.Random(1)
    report = {
        "versions": versions(),
        "whole_query": whole_queries(arguments.rounds, pick),
        "plan_alone": plan_alone(arguments.rounds, pick),
        "scaling": scaling(pick),
    }
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
