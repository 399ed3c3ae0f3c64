# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Reading and setting meta without touching texts and vectors."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from haystack import Document
from haystack.dataclasses import SparseEmbedding

from hichunk_haystack.components.writers import HierarchyWriter
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from hichunk_haystack.integrity import check

ROOTS = {"operator": "NOT", "conditions": [{"field": "meta.__level", "operator": ">", "value": 0}]}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[HierarchyQdrantDocumentStore]:
    made = HierarchyQdrantDocumentStore(path=str(tmp_path / "qdrant"), embedding_dim=2)
    made.write_documents(
        [
            Document(
                id=f"{number}",
                content=f"text {number}",
                meta={"__level": number % 2, "two words": number, "deep": {"a": 1}},
                embedding=[1.0, float(number)] if number % 2 else None,
            )
            for number in range(10)
        ]
    )
    made.write_documents([Document(id="plain", content="no meta")])
    yield made
    made.close()


async def test_setting_meta_leaves_everything_else_as_it_is(store: HierarchyQdrantDocumentStore) -> None:
    before = store.get_nodes_by_id(["1", "2"], with_embeddings=True)
    store.set_meta_by_id(["1", "plain"], {"__state": "complete"})
    await store.set_meta_by_id_async(["2"], {"__state": "new", "__level": 7})
    store.set_meta_by_id([], {"__state": "x"})
    one, two, plain = store.get_nodes_by_id(["1", "2", "plain"], with_embeddings=True)
    assert (one.content, one.embedding) == (before[0].content, before[0].embedding)
    assert one.meta == {**before[0].meta, "__state": "complete"}
    assert two.meta == {**before[1].meta, "__state": "new", "__level": 7}
    assert (plain.content, plain.meta) == ("no meta", {"__state": "complete"})


def test_what_was_set_is_on_the_disk(store: HierarchyQdrantDocumentStore) -> None:
    store.set_meta_by_id(["3"], {"__state": "complete"})
    store.close()
    assert store.get_meta_by_id(["3"], ["__state"]) == {"3": {"__state": "complete"}}


async def test_meta_by_id(store: HierarchyQdrantDocumentStore) -> None:
    expected = {"3": {"__level": 1, "two words": 3}, "plain": {}}
    fields = ["__level", "two words", "nowhere"]
    assert store.get_meta_by_id(["3", "plain", "none"], fields) == expected
    assert await store.get_meta_by_id_async(["3", "plain", "none"], fields) == expected
    assert store.get_meta_by_id([], fields) == await store.get_meta_by_id_async([], fields) == {}


async def test_pages(store: HierarchyQdrantDocumentStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hichunk_haystack.document_stores._maintained_store._PAGE", 4)
    after: Any = None
    found: list[Document] = []
    sizes = []
    while True:
        page, following = store.get_nodes_page(None, fields=["__level"], after=after)
        assert await store.get_nodes_page_async(None, fields=["__level"], after=after) == (page, following)
        found += page
        sizes.append(len(page))
        after = following
        if after is None:
            break
    assert sizes == [4, 4, 3]
    assert {node.id for node in found} == {*map(str, range(10)), "plain"}
    assert {(node.content, node.embedding) for node in found} == {(None, None)}
    assert {tuple(node.meta) for node in found} == {("__level",), ()}


def test_a_page_with_a_filter_and_vectors(store: HierarchyQdrantDocumentStore) -> None:
    found, after = store.get_nodes_page(ROOTS, fields=["__level"], with_embeddings=True)
    assert after is None
    assert {node.id for node in found} == {"0", "2", "4", "6", "8", "plain"}
    odd = {"field": "meta.__level", "operator": "==", "value": 1}
    found, _ = store.get_nodes_page(odd, fields=[], with_embeddings=True)
    assert [len(node.embedding or ()) for node in found] == [2] * 5


def test_a_leaf_with_a_sparse_vector_only_is_no_leaf_without_a_vector(tmp_path: Path) -> None:
    store = HierarchyQdrantDocumentStore(path=str(tmp_path / "sparse"), embedding_dim=2, use_sparse_embeddings=True)
    sparse = Document(content="a", meta={"file_path": "a"}, sparse_embedding=SparseEmbedding([1, 5], [0.5, 0.5]))
    both = Document(
        content="b", meta={"file_path": "b"}, embedding=[1.0, 0.0], sparse_embedding=SparseEmbedding([1], [1])
    )
    none = Document(content="c", meta={"file_path": "c"})
    HierarchyWriter(store, progress_bar=False).run([sparse, both, none])
    report = check(store)
    assert (report.without_vector, report.wrong_size) == ([none.id], [])
    store.close()
