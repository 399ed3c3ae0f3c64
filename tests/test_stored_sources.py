# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from haystack import Document
from haystack.document_stores.in_memory import InMemoryDocumentStore

from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.components.writers import HierarchyWriter
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from hichunk_haystack.stored_sources import StoredSource, list_sources, list_sources_async
from hichunk_haystack.tree import is_leaf

SPLITTER = MarkdownHierarchicalSplitter(leaf_tokens=20, min_leaf_tokens=1)


def tree(count: int, **meta: Any) -> list[Document]:
    text = "".join(f"# Section {number}\n\nAbout clay number {number}.\n\n" for number in range(count))
    nodes = SPLITTER.run([Document(content=text, meta=meta)])["documents"]
    return [replace(node, embedding=[1.0, 0.5]) if is_leaf(node) else node for node in nodes]


@pytest.fixture(params=["embedded", "in_memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "in_memory":
        return InMemoryDocumentStore()
    return HierarchyQdrantDocumentStore(path=str(tmp_path / "qdrant"), embedding_dim=2)


async def test_sources_are_listed_with_what_there_is_of_them(store: Any) -> None:
    assert list_sources(store) == []
    a, one, two, plain, half = (
        tree(3, file_path="a.md"),
        tree(1, file_path="b.pdf", page=1),
        tree(2, file_path="b.pdf", page=2),
        tree(4),
        tree(2, file_path="half.md"),
    )
    flat = [Document(content=f"chunk {n}", meta={"file_path": "c.txt", "token_count": 2}) for n in range(3)]
    loose = Document(content="of no source")
    HierarchyWriter(store, progress_bar=False).run([*a, *one, *two, *plain, *flat, loose])
    store.write_documents(half[:2])
    # The two documents of b.pdf have as many sections together as a.md.
    expected = [
        StoredSource("a.md", [a[0].id], 3, a[0].meta["token_count"], True),
        StoredSource("b.pdf", sorted([one[0].id, two[0].id]), 3, a[0].meta["token_count"], True),
        StoredSource("c.txt", [], 3, 6, True),
        StoredSource("half.md", [half[0].id], None, half[0].meta["token_count"], False),
        StoredSource(plain[0].id, [plain[0].id], 4, plain[0].meta["token_count"], True),
    ]
    expected.sort(key=lambda source: str(source.name))
    found = [replace(source, roots=sorted(source.roots)) for source in list_sources(store)]
    assert found == expected
    assert await list_sources_async(store) == list_sources(store)
    if hasattr(store, "close"):
        store.close()


def test_numbers_name_sources(store: Any) -> None:
    HierarchyWriter(store, source_key="number", progress_bar=False).run([*tree(2, number=7), *tree(3, number=30)])
    assert [(source.name, source.leaves) for source in list_sources(store, "number")] == [(30, 3), (7, 2)]


def test_two_versions_are_not_complete(store: Any) -> None:
    HierarchyWriter(store, progress_bar=False).run(tree(3, file_path="a.md"))
    store.write_documents([Document(content="old", meta={"file_path": "a.md"})])
    (source,) = list_sources(store)
    assert not source.complete
