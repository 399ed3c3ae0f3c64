# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""
Where the time of indexing goes: splitting, embedding the leaves, writing to an embedded Qdrant folder.

    python benchmarks/indexing.py [FOLDER] [--files 30] [--json FILE]

FOLDER holds Markdown files (default: the rust_book set beside the repository). The embedding is the model's; all the
rest is ours.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from hichunk_haystack import load_pipeline

REPOSITORY = Path(__file__).resolve().parents[1]
DEFAULT_FOLDER = REPOSITORY.parent / "shared" / "data" / "rust_book" / "docs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=DEFAULT_FOLDER)
    parser.add_argument("--files", type=int, default=30)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    paths = [str(path) for path in sorted(arguments.folder.glob("*.md"))[: arguments.files]]
    if not paths:
        sys.exit(f"No .md files in {arguments.folder}. Name a folder of Markdown files.")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["QDRANT_PATH"] = folder
        pipeline = load_pipeline(REPOSITORY / "pipelines" / "indexing.yml")
        pipeline.warm_up()
        pipeline.get_component("embedder").run([])
        seconds = {}
        value = paths
        for name, argument in (("converter", "paths"), ("splitter", "documents"), ("embedder", "documents")):
            start = time.perf_counter()
            value = pipeline.get_component(name).run(**{argument: value})["documents"]
            seconds[name] = time.perf_counter() - start
        start = time.perf_counter()
        written = pipeline.get_component("writer").run(documents=value)
        seconds["writer"] = time.perf_counter() - start
    ours = seconds["splitter"] + seconds["writer"]
    print(f"\n{written['sources']} sources, {written['documents_written']} nodes, {written['leaves']} leaves\n")
    for name, taken in seconds.items():
        print(f"{name:12}{taken:8.2f} s{taken / seconds['embedder']:9.1%} of embedding")
    print(f"\nsplitting and writing together: {ours / seconds['embedder']:.1%} of embedding")
    if arguments.json:
        arguments.json.write_text(json.dumps({"seconds": seconds, **written}, indent=2))


if __name__ == "__main__":
    main()
