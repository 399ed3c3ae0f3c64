# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from haystack import Document, Pipeline
from haystack.components.preprocessors import DocumentSplitter
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack_integrations.document_stores.qdrant import QdrantDocumentStore

from hichunk_haystack.commits import COMPLETE, FINGERPRINT, STATE, SUPERSEDED
from hichunk_haystack.components.embedders import LeafEmbedder
from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.components.routers import UnchangedSourceFilter
from hichunk_haystack.components.writers import HierarchyDeleter, HierarchyWriter
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from hichunk_haystack.stored_sources import list_sources
from hichunk_haystack.tree import is_leaf
from tests.word_embedder import WordEmbedder

SPLITTER = MarkdownHierarchicalSplitter(leaf_tokens=20, min_leaf_tokens=1)


def page(path: str, sections: int, **meta: Any) -> Document:
    text = "".join(f"# Section {number}\n\nAbout clay number {number}.\n\n" for number in range(sections))
    return Document(content=text, meta={"file_path": path, **meta})


def tree(*pages: Document, splitter: MarkdownHierarchicalSplitter = SPLITTER) -> list[Document]:
    nodes = splitter.run(list(pages))["documents"]
    return [replace(node, embedding=[1.0, 0.5]) if is_leaf(node) else node for node in nodes]


def paths(result: dict[str, Any]) -> set[str]:
    return {node.meta["file_path"] for node in result["documents"]}


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


@pytest.fixture
def write(store: Any) -> Callable[..., dict[str, int]]:
    return HierarchyWriter(store, progress_bar=False).run


def test_new_and_changed_sources_pass_and_the_others_do_not(store: Any, write: Callable[..., dict[str, int]]) -> None:
    changed = UnchangedSourceFilter(store)
    first = tree(page("a.md", 3), page("b.md", 2))
    found = changed.run(first)
    assert [node.id for node in found["documents"]] == [node.id for node in first]
    assert (found["unchanged"], found["missing"]) == (0, [])
    write(found["documents"])

    second = tree(page("a.md", 3), page("b.md", 4), page("c.md", 2))
    found = changed.run(second)
    assert (paths(found), found["unchanged"]) == ({"b.md", "c.md"}, 1)
    answer = write(found["documents"])
    assert (answer["added"], answer["replaced"], answer["deleted"]) == (1, 1, 3)  # root and two leaves of the old b.md
    assert changed.run(second)["unchanged"] == 3
    assert changed.run([])["unchanged"] == 0


@pytest.mark.parametrize(
    "other",
    [
        {"version": "another model"},
        {"nodes": tree(page("a.md", 3, author="Ada"))},
        {"nodes": tree(page("a.md", 3), splitter=MarkdownHierarchicalSplitter(leaf_tokens=21, min_leaf_tokens=1))},
    ],
    ids=["version", "meta", "settings"],
)
def test_what_the_index_depends_on_counts_as_a_change(
    store: Any, write: Callable[..., dict[str, int]], other: dict[str, Any]
) -> None:
    nodes = tree(page("a.md", 3))
    write(UnchangedSourceFilter(store).run(nodes)["documents"])
    changed = UnchangedSourceFilter(store, version=other.get("version", ""))
    nodes = other.get("nodes", nodes)
    assert changed.run(nodes)["unchanged"] == 0
    write(changed.run(nodes)["documents"])
    assert changed.run(nodes)["unchanged"] == 1


def test_meta_of_a_document_whose_id_the_caller_sets(store: Any, write: Callable[..., dict[str, int]]) -> None:
    """Its tree's id does not tell that its meta has changed."""
    old, new = (
        Document(id="mine", content="# Kiln\n\nFire it.\n", meta={"tags": tags}) for tags in ({"a", "b"}, {"a"})
    )
    changed = UnchangedSourceFilter(store)
    nodes = [replace(node, meta={**node.meta, "tags": list(node.meta["tags"])}) for node in tree(old)]
    write(changed.run(nodes)["documents"])
    assert changed.run(nodes)["unchanged"] == 1
    assert changed.run(tree(new))["unchanged"] == 0


def test_a_file_of_several_documents_is_unchanged_as_a_whole_only(
    store: Any, write: Callable[..., dict[str, int]]
) -> None:
    one, two, three = (page("a.pdf", count, page_number=count) for count in (1, 2, 3))
    changed = UnchangedSourceFilter(store)
    write(changed.run(tree(one, two, three))["documents"])
    assert changed.run(tree(three, one, two))["unchanged"] == 1
    fewer = changed.run(tree(one, two))  # a page is gone: what is left of it must be removed
    assert fewer["unchanged"] == 0
    assert write(fewer["documents"])["deleted"] == 4
    assert changed.run(tree(one, two))["unchanged"] == 1


def test_a_tree_that_was_not_written_to_the_end_is_written_again(store: Any) -> None:
    nodes = tree(page("a.md", 3))
    changed = UnchangedSourceFilter(store)
    signed = changed.run(nodes)["documents"]
    store.write_documents(signed)  # all of it, but nobody said so
    assert changed.run(nodes)["unchanged"] == 0


def test_a_return_to_the_older_text_after_a_crash_is_a_change(tmp_path: Path) -> None:
    class Breaking(HierarchyQdrantDocumentStore):
        broken = False

        def write_documents(self, documents: list[Document], *args: Any, **kwargs: Any) -> int:
            if self.broken and any(is_leaf(document) for document in documents):
                msg = "disk full"
                raise OSError(msg)
            return super().write_documents(documents, *args, **kwargs)

    store = Breaking(path=str(tmp_path / "qdrant"), embedding_dim=2)
    writer = HierarchyWriter(store, progress_bar=False, max_batch_documents=1)
    changed = UnchangedSourceFilter(store)
    old, new = tree(page("a.md", 3)), tree(page("a.md", 5))
    writer.run(changed.run(old)["documents"])
    store.broken = True
    with pytest.raises(Exception, match="disk full"):
        writer.run(changed.run(new)["documents"])
    store.broken = False
    states = {node.id: node.meta.get(STATE) for node in store.filter_documents() if node.meta["__level"] == 0}
    assert states == {old[0].id: SUPERSEDED, new[0].id: None}

    # Half of the new tree is there besides: the old one must be written again, or nobody would remove that half.
    again = changed.run(old)
    assert again["unchanged"] == 0
    assert writer.run(again["documents"])["deleted"] == 1
    assert {node.id for node in store.filter_documents()} == {node.id for node in old}
    assert changed.run(old)["unchanged"] == 1
    store.close()


def test_part_of_a_tree_and_flat_chunks_always_pass(store: Any, write: Callable[..., dict[str, int]]) -> None:
    nodes = tree(page("a.md", 3))
    splitter = DocumentSplitter(split_by="word", split_length=3)
    splitter.warm_up()
    flat = splitter.run([page("b.md", 2)])["documents"]
    write([*nodes, *flat])
    changed = UnchangedSourceFilter(store)
    found = changed.run([*nodes[1:], *flat])
    assert [node.id for node in found["documents"]] == [node.id for node in [*nodes[1:], *flat]]
    assert found["unchanged"] == 0
    assert changed.run([*nodes, *flat])["unchanged"] == 1


def test_missing_sources_are_named_where_asked_for(store: Any, write: Callable[..., dict[str, int]]) -> None:
    write(tree(page("a.md", 3), page("b.md", 2), Document(id="mine", content="# Kiln\n\nFire it.\n")))
    changed = UnchangedSourceFilter(store)
    assert changed.run(tree(page("b.md", 2)))["missing"] == []
    assert changed.run(tree(page("b.md", 2)), report_missing=True)["missing"] == ["a.md", "mine"]
    asking = UnchangedSourceFilter(store, report_missing=True)
    # A source that has changed is not missing.
    assert asking.run(tree(page("a.md", 7)))["missing"] == ["b.md", "mine"]
    assert asking.run([], report_missing=False)["missing"] == []


def test_the_nodes_of_the_caller_are_unchanged(store: Any, write: Callable[..., dict[str, int]]) -> None:
    nodes = tree(page("a.md", 3))
    before = deepcopy(nodes)
    write(UnchangedSourceFilter(store).run(nodes)["documents"])
    UnchangedSourceFilter(store).run(nodes)
    assert nodes == before


def test_one_call_of_the_store_and_no_text_read() -> None:
    class Noting(HierarchyQdrantDocumentStore):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.calls: list[str] = []

        def __getattribute__(self, name: str) -> Any:
            if name.startswith(("get_", "filter_", "count_")) and not name.startswith("get_distance"):
                object.__getattribute__(self, "calls").append(name)
            return super().__getattribute__(name)

    store = Noting(location=":memory:", embedding_dim=2)
    nodes = tree(*(page(f"{number}.md", 2) for number in range(30)))
    HierarchyWriter(store, progress_bar=False).run(nodes)
    store.calls.clear()
    assert UnchangedSourceFilter(store).run(nodes)["unchanged"] == 30
    assert set(store.calls) == {"get_meta_by_id"}
    roots = [node.id for node in nodes if node.meta["__level"] == 0]
    found = store.get_meta_by_id(roots, [FINGERPRINT, STATE])
    assert {tuple(sorted(meta)) for meta in found.values()} == {(FINGERPRINT, STATE)}
    assert {meta[STATE] for meta in found.values()} == {COMPLETE}
    store.close()


@pytest.mark.parametrize("kind", ["embedded", "in_memory"])
async def test_async_does_the_same(kind: str, tmp_path: Path) -> None:
    store: Any = InMemoryDocumentStore()
    if kind == "embedded":
        store = HierarchyQdrantDocumentStore(path=str(tmp_path / "qdrant"), embedding_dim=2)
    changed, writer = UnchangedSourceFilter(store, report_missing=True), HierarchyWriter(store, progress_bar=False)
    await writer.run_async((await changed.run_async(tree(page("a.md", 3), page("b.md", 2))))["documents"])
    nodes = tree(page("a.md", 3), page("c.md", 1))
    found = await changed.run_async(nodes)
    assert found == changed.run(nodes)
    assert (paths(found), found["unchanged"], found["missing"]) == ({"c.md"}, 1, ["b.md"])
    await changed.close_async()
    changed.close()


def test_in_a_pipeline_from_yaml_nothing_is_embedded_twice(tmp_path: Path) -> None:
    store = HierarchyQdrantDocumentStore(path=str(tmp_path / "qdrant"), embedding_dim=32)
    pipeline = Pipeline()
    pipeline.add_component("splitter", SPLITTER)
    pipeline.add_component("changed", UnchangedSourceFilter(store, version="words"))
    pipeline.add_component("embedder", LeafEmbedder(WordEmbedder(), progress_bar=False))
    pipeline.add_component("writer", HierarchyWriter(store, progress_bar=False))
    pipeline.connect("splitter", "changed")
    pipeline.connect("changed.documents", "embedder.documents")
    pipeline.connect("embedder", "writer")
    loaded = Pipeline.loads(pipeline.dumps(), allowed_modules=["hichunk_haystack", "tests"])
    embedder = loaded.get_component("embedder").document_embedder

    def run(*pages: Document) -> dict[str, Any]:
        return loaded.run({"splitter": {"documents": list(pages)}})

    run(page("a.md", 3), page("b.md", 2))
    assert embedder.seen == 5
    again = run(page("a.md", 3), page("b.md", 2))
    assert (embedder.seen, again["changed"]["unchanged"], again["writer"]["documents_written"]) == (5, 2, 0)
    run(page("a.md", 4), page("b.md", 2))
    assert embedder.seen == 9
    loaded.close()


def test_serialisation() -> None:
    store = InMemoryDocumentStore(index="pottery")
    changed = UnchangedSourceFilter(store, source_key="url", version="v2", report_missing=True)
    data = changed.to_dict()
    assert data == {
        "type": "hichunk_haystack.components.routers.UnchangedSourceFilter",
        "init_parameters": {
            "document_store": store.to_dict(),
            "source_key": "url",
            "version": "v2",
            "report_missing": True,
        },
    }
    assert UnchangedSourceFilter.from_dict(data).to_dict() == data
    with pytest.raises(ValueError, match="source_key is empty"):
        UnchangedSourceFilter(store, source_key="")


def test_a_path_names_a_source_as_its_text_does(store: Any, write: Callable[..., dict[str, int]]) -> None:
    changed = UnchangedSourceFilter(store, report_missing=True)
    given = Document(id="kiln", content="# Kiln\n\nFire it slowly.\n", meta={"file_path": Path("shelf/kiln.md")})
    write(changed.run(tree(given))["documents"])
    again = changed.run(tree(given))
    assert (again["documents"], again["unchanged"], again["missing"]) == ([], 1, [])
    named = replace(given, meta={"file_path": "shelf/kiln.md"})
    assert changed.run(tree(named))["unchanged"] == 1
    (source,) = list_sources(store)
    assert source.name == "shelf/kiln.md"
    assert changed.run([])["missing"] == ["shelf/kiln.md"]
    assert HierarchyDeleter(store).run(sources=[Path("shelf/kiln.md")]) == {"sources": 1, "deleted": 1}


@pytest.mark.parametrize("value", [object(), {1: "a", "b": 2}, {(1, 2): 3}, float("nan"), {"b", "a"}])
def test_meta_that_is_no_json_does_not_stop_the_others(store: Any, value: Any) -> None:
    odd = replace(page("odd.md", 2), id="odd", meta={"file_path": "odd.md", "owner": value})
    found = UnchangedSourceFilter(store).run(tree(page("a.md", 2), odd))
    assert paths(found) == {"a.md", "odd.md"}
