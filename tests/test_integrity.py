# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from haystack import Document
from haystack.components.preprocessors import DocumentSplitter, HierarchicalDocumentSplitter
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack_integrations.document_stores.qdrant import QdrantDocumentStore

from hichunk_haystack.commits import STATE
from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.components.writers import HierarchyWriter
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from hichunk_haystack.integrity import check, repair
from hichunk_haystack.tree import is_leaf

SPLITTER = MarkdownHierarchicalSplitter(leaf_tokens=20, min_leaf_tokens=1)


def tree(count: int, path: str, word: str = "clay", **fields: Any) -> list[Document]:
    """A root and as many leaves."""
    text = "".join(f"# Section {number}\n\nAbout {word} number {number}.\n\n" for number in range(count))
    nodes = SPLITTER.run([Document(content=text, meta={"file_path": path}, **fields)])["documents"]
    return [replace(node, embedding=[1.0, 0.5]) if is_leaf(node) else node for node in nodes]


def ids(documents: list[Document]) -> list[str]:
    return sorted(document.id for document in documents)


@pytest.fixture(params=["embedded", "in_memory", "stock_qdrant"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """Each kind of store in turn."""
    makers: dict[str, Callable[[], Any]] = {
        "embedded": lambda: HierarchyQdrantDocumentStore(path=str(tmp_path / "qdrant"), embedding_dim=2),
        "in_memory": InMemoryDocumentStore,
        "stock_qdrant": lambda: QdrantDocumentStore(":memory:", embedding_dim=2, return_embedding=True),
    }
    made = makers[request.param]()
    yield made
    if hasattr(made, "close"):
        made.close()


@pytest.fixture
def write(store: Any) -> Callable[..., dict[str, int]]:
    return HierarchyWriter(store, progress_bar=False).run


def test_what_the_writer_wrote_is_sound(store: Any, write: Callable[..., dict[str, int]]) -> None:
    write([*tree(3, "a.md"), *tree(1, "b.md"), *tree(2, "c.md"), *tree(3, "c.md", "glaze")])
    write(tree(4, "a.md"))
    report = check(store)
    assert (report.documents, report.leaves, report.sources, report.embedding_dim) == (5 + 1 + 3 + 4, 10, 3, 2)
    assert report.sound
    assert report.vectors_checked
    done = repair(store)
    assert (done.removed, done.index_again) == (0, [])


def test_nothing_is_sound(store: Any) -> None:
    assert check(store).sound
    assert repair(store).removed == 0


def test_a_missing_inner_node(store: Any, write: Callable[..., dict[str, int]]) -> None:
    # A root, two sections, two leaves below each.
    text = "".join(f"# {name}\n\nOne.\n\n## {name} a\n\nTwo.\n\n## {name} b\n\nThree.\n\n" for name in "AB")
    nodes = SPLITTER.run([Document(content=text, meta={"file_path": "deep.md"})])["documents"]
    nodes = [replace(node, embedding=[1.0, 0.5]) if is_leaf(node) else node for node in nodes]
    sound = tree(3, "a.md")
    write([*nodes, *sound])
    section = next(node for node in nodes if node.meta["__level"] == 1)
    store.delete_documents([section.id])
    report = check(store)
    assert report.orphans == sorted(section.meta["__children_ids"])
    assert report.missing_parents == report.missing_children == [section.id]
    assert not report.sound

    done = repair(store)
    assert (done.removed, done.index_again) == (len(nodes) - 1, ["deep.md"])
    assert ids(store.filter_documents()) == ids(sound)
    assert check(store).sound


def test_a_missing_leaf(store: Any, write: Callable[..., dict[str, int]]) -> None:
    nodes = tree(3, "a.md")
    write(nodes)
    store.delete_documents([nodes[2].id])
    report = check(store)
    assert (report.missing_children, report.orphans, report.missing_parents) == ([nodes[2].id], [], [])
    done = repair(store)
    assert (done.removed, done.index_again, store.count_documents()) == (3, ["a.md"], 0)


def test_an_older_version_that_was_not_removed(store: Any, write: Callable[..., dict[str, int]]) -> None:
    old, new, other = tree(3, "a.md"), tree(4, "a.md"), tree(2, "b.md")
    write([*old, *other])
    kept = [node for node in store.filter_documents() if node.meta["file_path"] == "a.md"]
    with_vectors = {node.id: node for node in old}
    write(new)
    store.write_documents([replace(node, embedding=with_vectors[node.id].embedding) for node in kept])
    assert check(store).doubled == ["a.md"]
    store.delete_documents([old[1].id])  # the newer one is whole, the older one is not
    report = check(store)
    assert (report.doubled, report.missing_children) == (["a.md"], [old[1].id])

    done = repair(store)
    assert (done.removed, done.index_again) == (3, [])
    assert ids(store.filter_documents()) == ids([*new, *other])
    assert check(store).sound


def test_half_of_a_newer_version_beside_the_older_one(store: Any, write: Callable[..., dict[str, int]]) -> None:
    old, new = tree(3, "a.md"), tree(5, "a.md")
    write(old)
    store.write_documents(new[:3])  # where a run was killed
    report = check(store)
    assert (report.doubled, report.unfinished) == (["a.md"], ["a.md"])
    assert report.missing_children == ids(new[3:])
    done = repair(store)
    # The older one is whole, so it goes on answering.
    assert done.removed == 3
    assert ids(store.filter_documents()) == ids(old)


def test_leaves_of_an_older_version_under_the_newer_ones_root(store: Any, write: Callable[..., dict[str, int]]) -> None:
    """The caller's own ids: both versions have the same root."""
    old, new = tree(3, "a.md", id="mine"), tree(4, "a.md", id="mine")
    write(new)
    store.write_documents(old[1:])
    report = check(store)
    assert (report.orphans, report.missing_parents) == (ids(old[1:]), [])
    done = repair(store)
    assert (done.removed, done.index_again) == (3, [])
    assert ids(store.filter_documents()) == ids(new)
    assert check(store).sound


def test_an_unfinished_source_that_is_whole_stays_and_is_named(
    store: Any, write: Callable[..., dict[str, int]]
) -> None:
    nodes, sound = tree(3, "a.md"), tree(3, "b.md")
    write(sound)
    store.write_documents(nodes)  # no writer of ours says that this is all
    assert check(store).unfinished == ["a.md"]
    done = repair(store)
    assert (done.removed, done.index_again, store.count_documents()) == (0, ["a.md"], 8)
    write(nodes)
    assert check(store).sound


def test_missing_vectors(store: Any, write: Callable[..., dict[str, int]]) -> None:
    nodes = tree(3, "a.md")
    nodes[2] = replace(nodes[2], embedding=None)
    write([*nodes, *tree(2, "b.md")])
    report = check(store)
    assert (report.without_vector, report.sound) == ([nodes[2].id], False)
    assert check(store, vectors=False).sound
    assert not check(store, vectors=False).vectors_checked
    done = repair(store)
    assert (done.removed, done.index_again) == (0, ["a.md"])


def test_vectors_of_the_wrong_size() -> None:
    store = InMemoryDocumentStore()
    nodes = tree(4, "a.md")
    nodes[1] = replace(nodes[1], embedding=[1.0, 2.0, 3.0])
    HierarchyWriter(store, progress_bar=False).run(nodes)
    report = check(store)  # the first vector that is looked at is the odd one
    assert (report.wrong_size, report.embedding_dim) == ([nodes[1].id], 2)
    assert check(store, embedding_dim=3).wrong_size == ids(nodes[2:])
    assert repair(store).index_again == ["a.md"]


def test_a_store_that_keeps_vectors_to_itself_is_not_blamed_for_it() -> None:
    store = QdrantDocumentStore(":memory:", embedding_dim=2)
    HierarchyWriter(store, progress_bar=False).run(tree(3, "a.md"))
    report = check(store)
    assert (report.sound, report.vectors_checked) == (True, False)


def test_what_is_not_ours_is_looked_at_but_never_removed(store: Any, write: Callable[..., dict[str, int]]) -> None:
    flat = DocumentSplitter(split_by="word", split_length=2)
    flat.warm_up()
    chunks = flat.run([Document(content="one two three four", meta={"file_path": "a.md"})])["documents"]
    stock = HierarchicalDocumentSplitter(block_sizes={4, 2}, split_by="word")
    blocks = stock.run([Document(content="one two three four five six", meta={"file_path": "b.md"})])["documents"]
    loose = Document(content="alone")
    nodes = [replace(node, embedding=[1.0, 0.5]) for node in [*chunks, *blocks, loose]]
    store.write_documents(nodes)
    assert check(store).sound
    store.delete_documents([blocks[0].id])
    report = check(store)
    assert report.missing_parents == [blocks[0].id]
    done = repair(store)
    assert (done.removed, store.count_documents()) == (0, len(nodes) - 1)


def test_flat_chunks_beside_a_tree_are_two_versions(store: Any, write: Callable[..., dict[str, int]]) -> None:
    nodes = tree(3, "a.md")
    write(nodes)
    store.write_documents([Document(content="old", meta={"file_path": "a.md"}, embedding=[1.0, 0.0])])
    assert check(store).doubled == ["a.md"]
    assert repair(store).index_again == ["a.md"]
    assert write(nodes)["deleted"] == 1
    assert check(store).sound


def test_a_big_collection_is_read_in_pages_and_without_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    store = HierarchyQdrantDocumentStore(location=":memory:", embedding_dim=2)
    nodes = [node for number in range(30) for node in tree(4, f"{number}.md")]
    HierarchyWriter(store, progress_bar=False).run(nodes)
    monkeypatch.setattr("hichunk_haystack.document_stores._maintained_store._PAGE_WITH_VECTORS", 40)
    pages: list[list[Document]] = []
    read = store.get_nodes_page

    def noting(*args: Any, **kwargs: Any) -> Any:
        page, after = read(*args, **kwargs)
        pages.append(page)
        return page, after

    monkeypatch.setattr(store, "get_nodes_page", noting)
    store.delete_documents([nodes[0].id])
    assert check(store).missing_parents == [nodes[0].id]
    assert [len(page) for page in pages] == [40, 40, 40, 29]
    assert {node.content for page in pages for node in page} == {None}
    assert all(STATE in node.meta for page in pages for node in page if node.meta["__level"] == 0)
    store.close()
