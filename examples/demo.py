# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""
Index files and answer questions through the two YAML pipelines, on an embedded Qdrant.

Reads the variables DOCS (a file or folder) and Q (a question); without them the sample handbook is indexed and three
questions are asked. Files of one's own are only indexed where no question comes with them. `make demo` runs it.
"""

import hashlib
import logging
import os
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
HANDBOOK = str(REPOSITORY / "examples" / "handbook")
DOCS = os.environ.get("DOCS") or HANDBOOK
# A collection for each set of documents, so that answers do not mix.
FOLDER = hashlib.sha256(os.path.realpath(DOCS).encode()).hexdigest()[:12]
os.environ.setdefault("QDRANT_PATH", str(REPOSITORY / ".demo" / FOLDER))
os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")

from haystack import Pipeline

from hichunk_haystack import load_pipeline
from hichunk_haystack.cli.screen import amount, passed_over

# What it warns of is in its output too, and printed from there.
logging.getLogger("hichunk_haystack.components.converters").setLevel(logging.ERROR)

QUESTIONS = [
    "How long may the wood lathe be booked and what does it cost per hour?",
    "Somebody was hurt at a machine in the Slipway. What do I do?",
    "What happens to a library book that fell into the water?",
]


def index(pipeline: Pipeline, docs: str) -> None:
    result = pipeline.run({"converter": {"paths": [docs]}})
    answer, skipped = result["answer"], result["converter"]["skipped"]
    if not (answer["sources"] or answer["unchanged"]):
        reasons = [f"{failure['path']}: {failure['error']}" for failure in answer["failed"]]
        sys.exit("Nothing to index: " + "\n".join(reasons + ([passed_over(skipped)] if skipped else [])))
    print(f"Indexed {amount(answer['sources'], 'source')} as {amount(answer['leaves'], 'leaf')}, from {docs}")
    if answer["unchanged"]:
        print(f"  unchanged since the last time: {amount(answer['unchanged'], 'source')}")
    if skipped:
        print(f"  {passed_over(skipped)}")
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
            hits = amount(len(node["hits"]), "leaf")
            print(f"merged: {hits} found, returned as one node of {node['tokens']} tokens")
    found, returned = amount(len(trace["hits"]), "leaf"), amount(len(answer["documents"]), "passage")
    print(f"{found} found, {returned} returned, ", end="")
    print(f"{answer['tokens_used']} of {trace['token_budget']} tokens used")


def main() -> None:
    if not Path(DOCS).exists():
        sys.exit(f"There is no '{DOCS}'. Name a file or a folder: make demo DOCS=folder Q='...'")
    index(load_pipeline(REPOSITORY / "pipelines" / "indexing.yml"), DOCS)
    own = os.environ.get("Q", "").strip()
    if not own and not os.path.samefile(DOCS, HANDBOOK):
        print("Ask with Q='...': make demo DOCS=folder Q='What does the warranty cover?'")
        return
    query = load_pipeline(REPOSITORY / "pipelines" / "query.yml")
    for question in [own] if own else QUESTIONS:
        ask(query, question)


if __name__ == "__main__":
    main()
