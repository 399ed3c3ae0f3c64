# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""The YAML pipelines on a real book of 112 chapters, with the real embedding model: minutes, most of them embedding."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from haystack import Document, Pipeline

from hichunk_haystack import load_pipeline
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from hichunk_haystack.tokens import HuggingFaceTokenCounter
from hichunk_haystack.tree import CHILDREN
from tests.conftest import data_set
from tests.pipeline_files import INDEXING, QUERY, ask, index

# Seconds; about 4,500 leaves at 30 to 40 in a second on two idle cores, at 5 on busy ones.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

LEAF_TOKENS, BUDGET = 100, 1024  # as in the YAML files


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What the indexing pipeline says of the book; its folder stays the one that stores open."""
    folder = data_set("rust_book") / "docs"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("QDRANT_URL", raising=False)
        patch.setenv("QDRANT_PATH", str(tmp_path_factory.mktemp("book") / "qdrant"))
        pipeline = load_pipeline(INDEXING)
        yield index(pipeline, folder)
        pipeline.close()


@pytest.fixture(scope="module")
def stored(indexed: dict[str, Any]) -> dict[str, list[Document]]:
    """All nodes read back from the store: file name -> nodes."""
    store = HierarchyQdrantDocumentStore(index="hichunk", embedding_dim=384)
    nodes = defaultdict(list)
    for node in store.filter_documents():
        nodes[Path(node.meta["file_path"]).name].append(node)
    store.close()
    return nodes


@pytest.fixture(scope="module")
def query(indexed: dict[str, Any]) -> Iterator[Pipeline]:
    pipeline = load_pipeline(QUERY)
    yield pipeline
    pipeline.close()


def leaves_of(nodes: list[Document]) -> list[Document]:
    leaves = [node for node in nodes if not node.meta[CHILDREN]]
    return sorted(leaves, key=lambda leaf: leaf.meta["split_idx_start"])


def test_every_chapter_is_indexed(
    indexed: dict[str, Any], stored: dict[str, list[Document]], rust_book: dict[str, str]
) -> None:
    assert (indexed["sources"], indexed["failed"]) == (112, [])
    assert stored.keys() == rust_book.keys()
    assert indexed["leaves"] == sum(len(leaves_of(nodes)) for nodes in stored.values())


def test_the_leaves_of_every_chapter_join_to_its_text_as_read_back_from_the_store(
    stored: dict[str, list[Document]], rust_book: dict[str, str]
) -> None:
    for name, text in rust_book.items():
        assert "".join(leaf.content or "" for leaf in leaves_of(stored[name])) == text, name
        for node in stored[name]:
            assert node.content == text[node.meta["split_idx_start"] : node.meta["split_idx_end"]], name


def test_every_leaf_keeps_its_bound_and_has_a_vector_and_no_inner_node_has_one(
    stored: dict[str, list[Document]], counter: HuggingFaceTokenCounter
) -> None:
    for name, nodes in stored.items():
        leaves = leaves_of(nodes)
        counts = counter.count_texts([leaf.content or "" for leaf in leaves])
        assert counts == [leaf.meta["token_count"] for leaf in leaves]
        assert max(counts) <= LEAF_TOKENS, name
        assert all(leaf.embedding is not None and len(leaf.embedding) == 384 for leaf in leaves), name
        assert all(not node.embedding for node in nodes if node.meta[CHILDREN]), name


@pytest.mark.parametrize(
    ("question", "chapters"),
    [
        ("How do I share state between threads?", ("ch16-",)),
        ("What does the borrow checker do with a mutable reference?", ("ch04-", "ch15-")),
        ("How do I write tests and run them with cargo?", ("ch11-",)),
    ],
)
def test_a_question_is_answered_first_from_the_chapter_on_it(
    query: Pipeline, counter: HuggingFaceTokenCounter, question: str, chapters: tuple[str, ...]
) -> None:
    answer = ask(query, question)
    first = answer["citations"][0]
    assert Path(first["source"]).name.startswith(chapters)
    assert answer["context"].startswith(f"[1] docs/{Path(first['source']).name}")
    (used,) = counter.count_texts([answer["context"]])
    # Leaves have up to 100 tokens and citation lines about 20, so that no more than that is left over.
    assert BUDGET - 120 < used <= BUDGET
    assert used == answer["tokens_used"]


def test_what_a_citation_names_is_in_the_chapter_where_it_says(query: Pipeline, rust_book: dict[str, str]) -> None:
    answer = ask(query, "How do I share state between threads?")
    for citation in answer["citations"]:
        shown = rust_book[Path(citation["source"]).name][citation["start"] : citation["end"]]
        assert shown in answer["context"]
