# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""
Index files and answer questions through the two YAML pipelines, on an embedded Qdrant.

Reads the variables DOCS (a file or folder) and Q (a question); without them the sample handbook is indexed and three
questions are asked. `make demo` runs it.
"""

import hashlib
import os
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
DOCS = os.environ.get("DOCS") or str(REPOSITORY / "examples" / "handbook")
# A collection for each set of documents, so that answers do not mix.
FOLDER = hashlib.sha256(os.path.realpath(DOCS).encode()).hexdigest()[:12]
os.environ.setdefault("QDRANT_PATH", str(REPOSITORY / ".demo" / FOLDER))
os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")

from haystack import Pipeline

from hichunk_haystack import load_pipeline

QUESTIONS = [
    "How long may the wood lathe be booked and what does it cost per hour?",
    "Somebody was hurt at a machine in the Slipway. What do I do?",
    "What happens to a library book that fell into the water?",
]


def index(pipeline: Pipeline, docs: str) -> None:
    answer = pipeline.run({"converter": {"paths": [docs]}})["answer"]
    print(f"Indexed {answer['sources']} sources as {answer['leaves']} leaves, from {docs}")
    if answer["unchanged"]:
        print(f"  unchanged since the last time: {answer['unchanged']} sources")
    for failure in answer["failed"]:
        print(f"  left out {failure['path']}: {failure['error']}")


def ask(pipeline: Pipeline, question: str) -> None:
    answer = pipeline.run({"embedder": {"text": question}})["answer"]
    trace = answer["trace"]
    print(f"\n{'=' * 100}\n{question}\n{'=' * 100}\n")
    print(answer["context"])
    print(f"\n{'-' * 100}")
    for node in trace["nodes"]:
        if node["merged"]:
            print(f"merged: {len(node['hits'])} leaves found, returned as one node of {node['tokens']} tokens")
    print(f"{len(trace['hits'])} leaves found, {len(answer['documents'])} passages returned, ", end="")
    print(f"{answer['tokens_used']} of {trace['token_budget']} tokens used")


def main() -> None:
    if not Path(DOCS).exists():
        sys.exit(f"There is no '{DOCS}'. Name a file or a folder: make demo DOCS=folder Q='...'")
    indexing = load_pipeline(REPOSITORY / "pipelines" / "indexing.yml")
    query = load_pipeline(REPOSITORY / "pipelines" / "query.yml")
    index(indexing, DOCS)
    for question in [os.environ["Q"]] if os.environ.get("Q") else QUESTIONS:
        ask(query, question)


if __name__ == "__main__":
    main()
