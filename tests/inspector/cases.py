# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Sources and merges to look at, and texts that mean harm."""

from dataclasses import replace
from random import Random
from typing import Any

from haystack import Document
from haystack.document_stores.in_memory import InMemoryDocumentStore

from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.components.retrievers import BudgetAutoMergingRetriever
from hichunk_haystack.inspector import Run
from hichunk_haystack.tokens import HuggingFaceTokenCounter
from tests.conftest import REPOSITORY

COUNTER = HuggingFaceTokenCounter()
HANDBOOK = sorted((REPOSITORY / "examples" / "handbook").glob("0*.md"))

POTS = (
    "# Pots\n\n## Throwing\n\n### Bowls\n\nOpen the clay, and keep it wet.\n\n"
    "### Mugs\n\nPull a handle from the lip.\n\n"
    "## Firing\n\nFire it slowly. Then let it cool for a day and a night, and open the door last.\n"
)

HOSTILE = [
    "</script><script>window.pwned = 1</script>",
    "<img src=x onerror='window.pwned = 2'><b>bold</b>",
    "<!-- --> ]]> &lt;i&gt; %%data%% ${1} {{x}}",
    "right \u202eto left\u202c and \u200bzero\u200d width\ufeff",
    "line\u2028and paragraph\u2029ends, tab\tand bell\x07",
    "emoji \U0001f469\u200d\U0001f680 and \u05e9\u05dc\u05d5\u05dd",
]


def split(text: str, name: str = "pots.md", **settings: Any) -> list[Document]:
    settings = {"leaf_tokens": 16, "min_leaf_tokens": 1, "inner_tokens": [], "token_counter": COUNTER, **settings}
    document = Document(id=f"id of {name}", content=text, meta={"file_path": f"docs/{name}"})
    return MarkdownHierarchicalSplitter(**settings).run([document])["documents"]


def leaves_of(nodes: list[Document]) -> list[Document]:
    return [node for node in nodes if not node.meta["__children_ids"]]


def merged(nodes: list[Document], hits: list[Document], label: str = "run", **options: Any) -> Run:
    store = InMemoryDocumentStore()
    store.write_documents(nodes)
    result = BudgetAutoMergingRetriever(store, token_counter=COUNTER, **options).run(hits)
    return Run(label, result["trace"], result["documents"])


def handbook_runs() -> list[Run]:
    """Merges of all kinds over some pages: the same hits, most of them leaves of two pages, and some inner nodes."""
    nodes = [
        node
        for path in HANDBOOK[:4]
        for node in split(path.read_text(encoding="utf-8"), path.name, leaf_tokens=80, min_leaf_tokens=15)
    ]
    random = Random(7)
    near = random.sample(leaves_of(nodes[: len(nodes) // 2]), 22)
    inner = random.sample([node for node in nodes if node.meta["__children_ids"] and node.meta["__level"] > 1], 3)
    found = [*near, *random.sample(leaves_of(nodes), 12), *inner]
    random.shuffle(found)
    hits = [replace(node, score=round(0.9 - 0.02 * place, 3)) for place, node in enumerate(found)]
    hits.append(Document(id="plain", content="A page without a tree. " * 4, score=0.01))
    settings: list[dict[str, Any]] = [
        {"token_budget": 700},
        {"token_budget": 700, "budget_check": "paper", "document_overhead": 20},
        {"token_budget": 700, "policy": "ratio", "threshold": 0.4},
        {"token_budget": 700, "policy": "parent", "parent_levels": 2, "overflow": "truncate"},
        {"token_budget": 700, "policy": "none", "overflow": "stop"},
        {"token_budget": 900, "max_share_per_source": 0.4, "order": "document"},
        {"token_budget": 900, "top_parents": 3, "max_merge_level": 2, "overflow": "truncate"},
        {"token_budget": 12},
        {"token_budget": 9000},
    ]
    return [merged(nodes, hits, f"run {number}", **options) for number, options in enumerate(settings)]


def replay(trace: dict[str, Any]) -> list[tuple[list[str], int]]:
    """What is held, in order, and the tokens used, after each step: the rule of the trace's documentation."""
    held: list[str] = []
    frames: list[tuple[list[str], int]] = [([], 0)]
    for step in trace["steps"]:
        if step["action"] in ("held", "truncated", "merged"):
            place = min((held.index(gone) for gone in step["replaced"]), default=len(held))
            held = [node for node in held[:place] if node not in step["replaced"]] + [
                step["node"],
                *(node for node in held[place:] if node not in step["replaced"]),
            ]
        frames.append((held, step["used"]))
    return frames
