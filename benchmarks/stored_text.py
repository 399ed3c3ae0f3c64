# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""
What it costs to store the text of every node, and what it costs not to.

    python benchmarks/stored_text.py [FOLDER] [--files 150] [--rounds 100] [--json FILE]

1. Bytes of text stored over bytes of source, of all Markdown files of FOLDER (default: the rust_rfcs set beside the
   repository), with `inner_text="stored"` and `"derived"`.
2. Time of a merge behind the search, in an embedded Qdrant of the first `--files` files: 48 hits that lie close
   together, half of the leaves of stretches of four sources, and a budget of 4,096 tokens. Both stores take their turn
   at each query; every answer of one is compared to that of the other.
"""

import argparse
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")

from haystack import Document

from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.components.retrievers import BudgetAutoMergingRetriever
from hichunk_haystack.components.writers import HierarchyWriter
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from hichunk_haystack.leaf_texts import without_inner_text
from hichunk_haystack.tree import is_leaf

REPOSITORY = Path(__file__).resolve().parents[1]
DEFAULT_FOLDER = REPOSITORY.parent / "shared" / "data" / "rust_rfcs" / "docs"
KINDS = ("stored", "derived")
HITS = 48
STRETCHES = 4
BUDGET = 4096


def text_bytes(nodes: Sequence[Document]) -> int:
    return sum(len((node.content or "").encode()) for node in nodes)


def clustered(leaves: Sequence[Sequence[Document]], pick: random.Random) -> list[str]:
    """Ids of half of the leaves of a stretch of each of some sources, in any order."""
    found: list[str] = []
    each = HITS // STRETCHES
    for source in pick.sample([source for source in leaves if len(source) >= 2 * each], STRETCHES):
        start = pick.randrange(len(source) - 2 * each + 1)
        found += [leaf.id for leaf in pick.sample(source[start : start + 2 * each], each)]
    pick.shuffle(found)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=DEFAULT_FOLDER)
    parser.add_argument("--files", type=int, default=150)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    paths = sorted(arguments.folder.glob("**/*.md"))
    if not paths:
        sys.exit(f"No .md files in {arguments.folder}. Name a folder of Markdown files.")

    splitter = MarkdownHierarchicalSplitter(leaf_tokens=100)
    splitter.warm_up()
    size, bytes_stored = 0, dict.fromkeys(KINDS, 0)
    kept: list[Document] = []
    for number, path in enumerate(paths):
        nodes = splitter.run([Document(content=path.read_bytes().decode(), meta={"file_path": path.name})])["documents"]
        size += path.stat().st_size
        bytes_stored["stored"] += text_bytes(nodes)
        bytes_stored["derived"] += text_bytes(without_inner_text(nodes))
        if number < arguments.files:
            kept += [replace(node, embedding=[1.0, 0.0]) if is_leaf(node) else node for node in nodes]
    ratios = {kind: bytes_stored[kind] / size for kind in KINDS}
    print(f"{len(paths)} files, {size / 1e6:.1f} MB of source\n")
    print(f"{'inner_text':12}{'MB of text':>12}{'over source':>14}")
    for kind in KINDS:
        print(f"{kind:12}{bytes_stored[kind] / 1e6:12.1f}{ratios[kind]:14.3f}")

    stores = {kind: HierarchyQdrantDocumentStore(location=":memory:", embedding_dim=2) for kind in KINDS}
    for kind, store in stores.items():
        HierarchyWriter(store, inner_text=kind, progress_bar=False).run(kept)
    mergers = {kind: BudgetAutoMergingRetriever(store, token_budget=BUDGET) for kind, store in stores.items()}
    by_source: dict[str, list[Document]] = {}
    for node in filter(is_leaf, kept):
        by_source.setdefault(node.meta["source_id"], []).append(node)
    pick = random.Random(5)
    seconds: dict[str, list[float]] = {kind: [] for kind in KINDS}
    merged = 0
    for _ in range(arguments.rounds):
        ids = clustered(list(by_source.values()), pick)
        answers = {}
        for kind in pick.sample(KINDS, len(KINDS)):
            hits = [replace(leaf, score=1 - rank / 1000) for rank, leaf in enumerate(stores[kind].get_nodes_by_id(ids))]
            start = time.perf_counter()
            answers[kind] = mergers[kind].run(hits)["documents"]
            seconds[kind].append(time.perf_counter() - start)
        stored, derived = ([(node.id, node.content) for node in answers[kind]] for kind in KINDS)
        assert stored == derived, "the answers differ"
        merged += sum(not is_leaf(node) for node in answers["stored"])
    print(f"\n{len(kept)} nodes, {arguments.rounds} queries, {merged / arguments.rounds:.1f} merged nodes a query\n")
    print(f"{'inner_text':12}{'p50':>10}{'p95':>10}")
    for kind in KINDS:
        p95 = statistics.quantiles(seconds[kind], n=20)[-1]
        print(f"{kind:12}{statistics.median(seconds[kind]) * 1e3:7.2f} ms{p95 * 1e3:7.2f} ms")
    if arguments.json:
        arguments.json.write_text(json.dumps({"ratios": ratios, "bytes": bytes_stored, "seconds": seconds}, indent=2))


if __name__ == "__main__":
    main()
