# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from haystack import Document
from haystack.components.preprocessors import DocumentSplitter
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack_integrations.document_stores.qdrant import QdrantDocumentStore

from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.components.routers import UnchangedSourceFilter
from hichunk_haystack.components.writers import HierarchyDeleter, HierarchyWriter
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from hichunk_haystack.tree import is_leaf

SPLITTER = MarkdownHierarchicalSplitter(leaf_tokens=20, min_leaf_tokens=1)


def tree(count: int, path: str | None = None, **meta: Any) -> list[Document]:
    text = "".join(f"# Section {number}\n\nAbout clay number {number}.\n\n" for number in range(count))
    source = Document(content=text, meta={"file_path": path, **meta} if path else meta)
    nodes = SPLITTER.run([source])["documents"]
    return [replace(node, embedding=[1.0, 0.5]) if is_leaf(node) else node for node in nodes]


def chunks(path: str) -> list[Document]:
    splitter = DocumentSplitter(split_by="word", split_length=2)
    splitter.warm_up()
    return splitter.run([Document(content="One two three four five six.", meta={"file_path": path})])["documents"]


def ids(documents: list[Document]) -> set[str]:
    return {document.id for document in documents}


def where(field: str, value: Any) -> dict[str, Any]:
    return {"field": f"meta.{field}", "operator": "==", "value": value}


@pytest.fixture(params=["embedded", "in_memory", "stock_qdrant"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """Each kind of store in turn."""
    makers: dict[str, Callable[[], Any]] = {
        "embedded": lambda: HierarchyQdrantDocumentStore(path=str(tmp_path / "qdrant"), embedding_dim=2),
        "in_memory": InMemoryDocumentStore,
        "stock_qdrant": lambda: QdrantDocumentStore(":memory:", embedding_dim=2),
    }
    made = makers[request.param]()
    yield made
    if hasattr(made, "close"):
        made.close()


def test_sources_by_name(store: Any) -> None:
    a, b, c, loose = tree(3, "a.md"), tree(4, "b.md"), tree(2), Document(content="alone")
    HierarchyWriter(store, progress_bar=False).run([*a, *b, *c, *chunks("d.md"), loose])
    deleter = HierarchyDeleter(store)
    assert deleter.run(sources=["a.md", c[0].id, "none.md", "d.md", "a.md"]) == {"sources": 3, "deleted": 4 + 3 + 3}
    assert ids(store.filter_documents()) == ids([*b, loose])
    assert deleter.run(sources=["a.md", c[0].id]) == {"sources": 0, "deleted": 0}
    assert deleter.run(sources=[]) == {"sources": 0, "deleted": 0}
    assert ids(store.filter_documents()) == ids([*b, loose])


def test_by_a_filter_that_finds_one_leaf_the_whole_tree_goes(store: Any) -> None:
    a, b, same = tree(3, "a.md"), tree(4, "b.md"), tree(5, "a.md")
    HierarchyWriter(store, progress_bar=False).run([*a, *b, *same])
    leaf = {"field": "id", "operator": "==", "value": a[-1].id}
    # The other document of the same file is another tree.
    assert HierarchyDeleter(store).run(filters=leaf) == {"sources": 1, "deleted": 4}
    assert ids(store.filter_documents()) == ids([*b, *same])


def test_by_a_filter_on_meta(store: Any) -> None:
    german, english = tree(3, "a.md", language="de"), tree(3, "b.md", language="en")
    flat = [replace(chunk, meta={**chunk.meta, "language": "de"}) for chunk in chunks("c.md")[:1]]
    rest = chunks("c.md")[1:]
    loose = [Document(content="eins", meta={"language": "de"}), Document(content="one", meta={"language": "en"})]
    HierarchyWriter(store, progress_bar=False).run([*german, *english, *flat, *rest, *loose])
    # The chunk takes its neighbours along, which name the same file; the document without a source goes alone.
    assert HierarchyDeleter(store).run(filters=where("language", "de")) == {"sources": 3, "deleted": 4 + 3 + 1}
    assert ids(store.filter_documents()) == ids([*english, loose[1]])
    assert HierarchyDeleter(store).run(filters=where("language", "de")) == {"sources": 0, "deleted": 0}


def test_numbers_and_other_fields_can_name_sources(store: Any) -> None:
    one, two = tree(3, number=1), tree(3, number=2, kind="x")
    HierarchyWriter(store, source_key="number", progress_bar=False).run([*one, *two])
    assert HierarchyDeleter(store, source_key="number").run(sources=[1])["deleted"] == 4
    assert ids(store.filter_documents()) == ids(two)


@pytest.mark.parametrize("store", ["embedded", "in_memory"], indirect=True)
def test_many_sources_at_once(store: Any) -> None:
    sources = [Document(content="# Kiln\n", meta={"file_path": f"{number}.md"}) for number in range(1100)]
    nodes = SPLITTER.run(sources)["documents"]
    store.write_documents(nodes)
    names = [f"{number}.md" for number in range(1, 1100)]
    assert HierarchyDeleter(store).run(sources=names) == {"sources": 1099, "deleted": 1099}
    assert ids(store.filter_documents()) == ids(nodes[:1])


def test_dying_half_way_then_again_leaves_nothing_of_it_and_all_of_the_rest(store: Any) -> None:
    a, b = tree(6, "a.md"), tree(4, "b.md")
    HierarchyWriter(store, progress_bar=False).run([*a, *b])
    deleter, changed = HierarchyDeleter(store), UnchangedSourceFilter(store)

    class Dying:
        """Deletes some, as a server may that is stopped at a filter, and then says no more."""

        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def delete_by_filter(self, filters: dict[str, Any]) -> int:
            store.delete_documents([a[1].id, a[4].id])
            msg = "connection lost"
            raise ConnectionError(msg)

    with pytest.raises(ConnectionError):
        HierarchyDeleter(Dying()).run(sources=["a.md"])
    # What is left is not taken for the whole: indexing the file again brings it back.
    found = changed.run([*a, *b])
    assert (found["unchanged"], ids(found["documents"])) == (1, ids(a))

    assert deleter.run(sources=["a.md"]) == {"sources": 1, "deleted": 5}
    assert ids(store.filter_documents()) == ids(b)
    assert changed.run(b)["unchanged"] == 1


def test_leaves_whose_root_is_gone_are_deleted_too(store: Any) -> None:
    nodes = tree(3, "a.md")
    store.write_documents(nodes[1:])
    assert HierarchyDeleter(store).run(sources=["a.md"])["deleted"] == 3
    assert store.count_documents() == 0


@pytest.mark.parametrize(
    "arguments", [{}, {"filters": {}}, {"sources": ["a.md"], "filters": where("a", 1)}, {"sources": [], "filters": {}}]
)
def test_what_to_delete_must_be_said(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="either `sources`, a list of names, or `filters`, which must not be empty"):
        HierarchyDeleter(InMemoryDocumentStore()).run(**arguments)


def test_a_name_in_the_place_of_a_list_is_not_read_letter_by_letter() -> None:
    with pytest.raises(ValueError, match=r"pass a list of names, such as \['a.md'\]"):
        HierarchyDeleter(InMemoryDocumentStore()).run(sources="a.md")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [None, True, 1.5, ["a.md"]])
def test_names_are_texts_or_whole_numbers(name: Any) -> None:
    store = InMemoryDocumentStore()
    store.write_documents([Document(content="of no file", id="loose"), Document(content="x", meta={"file_path": 1})])
    with pytest.raises(ValueError, match="the names of sources are texts, paths or whole numbers"):
        HierarchyDeleter(store).run(sources=["a.md", name])
    assert store.count_documents() == 2


@pytest.mark.parametrize("kind", ["embedded", "in_memory"])
async def test_async_does_the_same(kind: str, tmp_path: Path) -> None:
    store: Any = InMemoryDocumentStore()
    if kind == "embedded":
        store = HierarchyQdrantDocumentStore(path=str(tmp_path / "qdrant"), embedding_dim=2)
    a, b, c = tree(3, "a.md"), tree(4, "b.md"), tree(4, "c.md")
    await HierarchyWriter(store, progress_bar=False).run_async([*a, *b, *c])
    deleter = HierarchyDeleter(store)
    assert await deleter.run_async(sources=["a.md"]) == {"sources": 1, "deleted": 4}
    assert await deleter.run_async(filters=where("file_path", "c.md")) == {"sources": 1, "deleted": 5}
    assert ids(store.filter_documents()) == ids(b)
    await deleter.close_async()
    deleter.close()


def test_serialisation() -> None:
    store = InMemoryDocumentStore(index="pottery")
    data = HierarchyDeleter(store, source_key="url").to_dict()
    assert data == {
        "type": "hichunk_haystack.components.writers.HierarchyDeleter",
        "init_parameters": {"document_store": store.to_dict(), "source_key": "url"},
    }
    assert HierarchyDeleter.from_dict(data).to_dict() == data
    with pytest.raises(ValueError, match="source_key is empty"):
        HierarchyDeleter(store, source_key="")
