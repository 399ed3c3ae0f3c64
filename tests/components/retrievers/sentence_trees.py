# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Trees of sentences whose words are a token each, and merges of them."""

from dataclasses import replace
from typing import Any

from haystack import Document
from haystack.components.preprocessors import HierarchicalDocumentSplitter
from haystack.document_stores.in_memory import InMemoryDocumentStore

from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.components.retrievers import BudgetAutoMergingRetriever
from hichunk_haystack.tokens import HuggingFaceTokenCounter

WORDS = ["amber", "birch", "cedar", "delta", "eagle", "glass", "grove", "house"]


COUNTER = HuggingFaceTokenCounter()


def sentence(number: int) -> str:
    """Five tokens: each of these words is one, and the full stop."""
    word = WORDS[number % len(WORDS)]
    return f"The {word} is old. "


def source(name: str, sections: int = 3, leaves: int = 3) -> Document:
    """Sections of a heading of 3 tokens and paragraphs of three sentences of 5."""
    parts = []
    for section in range(sections):
        parts.append(f"# {name} {section}\n\n")
        parts += ["".join(sentence(3 * leaf + number) for number in range(3)) + "\n\n" for leaf in range(leaves)]
    return Document(id=name, content="".join(parts), meta={"file_path": f"{name}.md"})


def tree(name: str = "alpha", sections: int = 3, leaves: int = 3) -> list[Document]:
    splitter = MarkdownHierarchicalSplitter(leaf_tokens=18, min_leaf_tokens=1, inner_tokens=[])
    return splitter.run([source(name, sections, leaves)])["documents"]


def leaves_of(nodes: list[Document]) -> list[Document]:
    return [node for node in nodes if not node.meta["__children_ids"]]


def ranked(*documents: Document) -> list[Document]:
    """With scores 0.9, 0.8, ..."""
    return [replace(document, score=(90 - 10 * rank) / 100) for rank, document in enumerate(documents)]


def store_of(*documents: Document) -> InMemoryDocumentStore:
    store = InMemoryDocumentStore()
    store.write_documents(list(documents))
    return store


def run(nodes: list[Document], hits: list[Document], budget: int = 1000, **options: Any) -> dict[str, Any]:
    # The default counter, loaded once.
    options = {"token_counter": COUNTER, **options}
    return BudgetAutoMergingRetriever(store_of(*nodes), token_budget=budget, **options).run(hits)


def ids(result: dict[str, Any]) -> list[str]:
    return [document.id for document in result["documents"]]


def tokens(text: str | None) -> int:
    return COUNTER.count_texts([text or ""])[0]


def stock(name: str) -> list[Document]:
    """A tree of Haystack's own splitter: 32 words, blocks of 16, leaves of 4."""
    text = "".join(f"{WORDS[number % 8]} " for number in range(32))
    splitter = HierarchicalDocumentSplitter(block_sizes={16, 4}, split_overlap=0, split_by="word")
    return splitter.run([Document(id=name, content=text)])["documents"]
