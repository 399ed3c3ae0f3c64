# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""
Speed of token trees: TokenHierarchicalSplitter, LlamaIndex's HierarchicalNodeParser, and the tokenizer alone.

    python benchmarks/token_trees.py [FOLDER] [--characters 1000000] [--rounds 3]

Sizes 2048, 512 and 128 in tokens of the same tokenizer, over the same text. Our token counter starts each round without
having seen a word. Needs the extra `compare`.
"""

import argparse
import os
import statistics
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from haystack import Document
from splitting import DEFAULT_FOLDER, llama_index, read, splitter, time_rounds, tokenizer_alone

from hichunk_haystack.components.preprocessors import TokenHierarchicalSplitter


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=DEFAULT_FOLDER)
    parser.add_argument("--characters", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    sources: list[Document] = []
    length = 0
    for source in read(arguments.folder):
        if length < arguments.characters:
            sources.append(source)
            length += len(source.content or "")
    texts = [source.content or "" for source in sources]
    theirs = llama_index(texts)
    ready = {
        "tokenizer alone": lambda: tokenizer_alone(texts),
        "TokenHierarchicalSplitter": lambda: splitter(TokenHierarchicalSplitter([2048, 512, 128]), sources),
        "LlamaIndex HierarchicalNodeParser": lambda: theirs,
    }
    seconds, nodes = time_rounds(ready, arguments.rounds)
    alone = statistics.median(seconds["tokenizer alone"])
    print(f"{len(texts)} documents, {length:,} characters, medians of {arguments.rounds} rounds")
    for name, times in seconds.items():
        median = statistics.median(times)
        print(f"{name:36}{median:8.2f} s{nodes[name] / median:10,.0f} nodes/s{median / alone:8.2f} x tokenizer")


if __name__ == "__main__":
    main()
