# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""
Speed of splitting, beside the tokenizer alone and the rivals, in one run.

    python benchmarks/splitting.py [FOLDER] [--rounds 3] [--json FILE]

FOLDER holds Markdown files (default: the rust_rfcs set beside the repository). The rivals need the extra `compare`.
Rounds take turns, so that a noisy machine is noisy for all; the table shows medians and ratios. Memory is the peak of
the whole process, read from a child that splits document by document and keeps nothing: the first quarter of the
documents, then all of them.
"""

import argparse
import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from haystack import Document

from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.components.preprocessors.splitting import TreeSplitter
from hichunk_haystack.models import resolve_model
from hichunk_haystack.tokens import DEFAULT_TOKENIZER, HuggingFaceTokenCounter

DEFAULT_FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "rust_rfcs" / "docs"


def read(folder: Path) -> list[Document]:
    return [Document(content=path.read_bytes().decode()) for path in sorted(folder.glob("*.md"))]


Run = Callable[[], int]
"""What is timed; gives the number of nodes."""


def contenders(sources: list[Document]) -> dict[str, Callable[[], Run]]:
    """Name -> what makes it ready for a round."""
    texts = [source.content or "" for source in sources]
    found: dict[str, Callable[[], Run]] = {
        "tokenizer alone": lambda: tokenizer_alone(texts),
        "MarkdownHierarchicalSplitter": lambda: splitter(MarkdownHierarchicalSplitter(), sources),
    }
    try:
        theirs = llama_index(texts)
        found["LlamaIndex HierarchicalNodeParser"] = lambda: theirs
    except ImportError:
        print("llama-index-core is not installed: pip install 'hichunk-haystack[compare]'", file=sys.stderr)
    from haystack.components.preprocessors import HierarchicalDocumentSplitter

    stock = HierarchicalDocumentSplitter(block_sizes={1500, 400, 100})
    found["Haystack HierarchicalDocumentSplitter (words)"] = lambda: lambda: len(stock.run(sources)["documents"])
    return found


def tokenizer_alone(texts: list[str]) -> Run:
    tokenizer = HuggingFaceTokenCounter().tokenizer

    def run() -> int:
        tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return 0

    return run


def splitter(made: TreeSplitter, sources: list[Document]) -> Run:
    """One of ours, new, so that its token counter has seen no word yet."""
    made.warm_up()
    return lambda: len(made.run(sources)["documents"])


def time_rounds(ready: dict[str, Callable[[], Run]], rounds: int) -> tuple[dict[str, list[float]], dict[str, int]]:
    """Seconds of each round, and the number of nodes, of each contender; all of them in each round."""
    seconds: dict[str, list[float]] = {name: [] for name in ready}
    nodes: dict[str, int] = {}
    for _ in range(rounds):
        for name, make_ready in ready.items():
            run = make_ready()
            # What other contenders and rounds have left on the heap is nothing that this one should have collected.
            gc.unfreeze()
            gc.collect()
            gc.freeze()
            start = time.perf_counter()
            nodes[name] = run()
            seconds[name].append(time.perf_counter() - start)
    return seconds, nodes


def llama_index(texts: list[str]) -> Run:
    """Sizes 2048, 512, 128 in tokens of the same tokenizer."""
    from llama_index.core import Document as LlamaDocument
    from llama_index.core.node_parser import HierarchicalNodeParser, SentenceSplitter
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(
        str(Path(resolve_model(DEFAULT_TOKENIZER, probe="tokenizer.json")) / "tokenizer.json")
    )
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def tokenize(text: str) -> list[int]:
        return tokenizer.encode(text, add_special_tokens=False).ids

    sizes = [2048, 512, 128]
    parsers = {
        f"chunk_size_{size}": SentenceSplitter(chunk_size=size, chunk_overlap=20, tokenizer=tokenize) for size in sizes
    }
    parser = HierarchicalNodeParser.from_defaults(
        node_parser_ids=list(parsers), node_parser_map=parsers, include_prev_next_rel=True
    )
    documents = [LlamaDocument(text=text) for text in texts]
    return lambda: len(parser.get_nodes_from_documents(documents))


def peak_memory(folder: Path, share: float) -> float:
    """Peak of a process that splits a share of the documents one by one, in MiB."""
    code = [sys.executable, __file__, str(folder), "--memory-of", str(share)]
    return float(subprocess.run(code, check=True, capture_output=True, text=True).stdout)


def split_one_by_one(folder: Path, share: float) -> None:
    paths = sorted(folder.glob("*.md"), key=lambda path: -path.stat().st_size)
    splitter = MarkdownHierarchicalSplitter()
    # The largest document comes first, so that both runs have seen it.
    for path in paths[: max(1, int(len(paths) * share))]:
        splitter.run([Document(content=path.read_bytes().decode())])
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=DEFAULT_FOLDER)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--memory-of", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of is not None:
        split_one_by_one(arguments.folder, arguments.memory_of)
        return
    sources = read(arguments.folder)
    if not sources:
        sys.exit(f"No .md files in {arguments.folder}. Name a folder of Markdown files.")
    characters = sum(len(source.content or "") for source in sources)
    print(f"{len(sources)} documents, {characters:,} characters, medians of {arguments.rounds} rounds\n")
    seconds, nodes = time_rounds(contenders(sources), arguments.rounds)
    limit = statistics.median(seconds["tokenizer alone"])
    print(f"{'':46}{'s':>8}{'MB/s':>8}{'nodes':>9}{'nodes/s':>10}{'x tokenizer':>13}")
    rows = []
    for name, times in seconds.items():
        median = statistics.median(times)
        rate = nodes[name] / median
        print(
            f"{name:46}{median:8.2f}{characters / median / 1e6:8.2f}{nodes[name] or '':>9}"
            f"{f'{rate:,.0f}' if nodes[name] else '':>10}{median / limit:13.2f}"
        )
        rows.append({"name": name, "seconds": median, "nodes": nodes[name], "ratio_to_tokenizer": median / limit})
    memory = {share: peak_memory(arguments.folder, share) for share in (0.25, 1.0)}
    print(f"\npeak memory, a quarter of the documents: {memory[0.25]:.0f} MiB; all: {memory[1.0]:.0f} MiB")
    if arguments.json:
        arguments.json.write_text(json.dumps({"rows": rows, "peak_memory_mib": memory}, indent=2))


if __name__ == "__main__":
    main()
