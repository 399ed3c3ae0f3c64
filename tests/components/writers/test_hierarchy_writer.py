# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from haystack import Document, Pipeline
from haystack.components.preprocessors import DocumentSplitter
from haystack.document_stores.errors import DocumentStoreError
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.document_stores.types import DuplicatePolicy
from haystack_integrations.components.retrievers.qdrant import QdrantEmbeddingRetriever

from hichunk_haystack.commits import COMPLETE, FINGERPRINT, LEAVES, STATE, is_root
from hichunk_haystack.components.embedders import (
    LeafEmbedder,
    OfflineSentenceTransformersDocumentEmbedder,
    OfflineSentenceTransformersTextEmbedder,
)
from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.components.writers import HierarchyWriter
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from hichunk_haystack.tree import is_leaf
from tests.components.writers.stores import (
    MODEL,
    SPLITTER,
    RecordingStore,
    SyncStore,
    counts,
    ids,
    sections,
    stored,
    tree,
)

# -- a source that is written again


def test_24_chunks_then_6(store: Any, write: Callable[..., dict[str, int]]) -> None:
    old, new, other = tree(sections(24), "a.md"), tree(sections(6), "a.md"), tree(sections(3), "b.md")
    assert len([node for node in old if is_leaf(node)]) == 24

    assert write([*old, *other]) == counts(29, 27, added=2)
    assert stored(store) == ids([*old, *other])
    assert write(new) == counts(7, 6, replaced=1, deleted=25)
    assert stored(store) == ids([*new, *other])
    assert write(new) == counts(7, 6, replaced=1)
    assert stored(store) == ids([*new, *other])


def test_several_documents_of_one_file_stay_side_by_side(store: Any, write: Callable[..., dict[str, int]]) -> None:
    first, second = tree(sections(3), "a.pdf"), tree(sections(4, "glaze"), "a.pdf")
    assert write([*first, *second])["sources"] == 1
    assert stored(store) == ids([*first, *second])
    assert write([*first, *second])["deleted"] == 0
    third = tree(sections(2, "kiln"), "a.pdf")
    assert write([*first, *third])["deleted"] == len(second)
    assert stored(store) == ids([*first, *third])


def test_a_source_without_a_path_is_known_by_its_root(store: Any, write: Callable[..., dict[str, int]]) -> None:
    write([*tree(sections(5), id="mine"), *tree(sections(4), id="other")])
    new = tree(sections(2, "glaze"), id="mine")
    assert write(new)["deleted"] == 5  # the root was overwritten, the five leaves are left over
    assert stored(store) == ids([*new, *tree(sections(4), id="other")])


def test_documents_without_a_path_whose_path_is_none_do_not_replace_each_other(
    store: Any, write: Callable[..., dict[str, int]]
) -> None:
    first = SPLITTER.run([Document(content=sections(3), meta={"file_path": None})])["documents"]
    second = SPLITTER.run([Document(content=sections(2), meta={"file_path": None})])["documents"]
    write(first)
    assert write(second)["deleted"] == 0
    assert stored(store) == ids([*first, *second])


def test_a_root_that_moves_to_another_path_takes_its_leaves_along(
    store: Any, write: Callable[..., dict[str, int]]
) -> None:
    write(tree(sections(5), "old.md", id="mine"))
    new = tree(sections(3), "new.md", id="mine")
    assert write(new)["deleted"] == 5
    assert stored(store) == ids(new)


def test_other_settings_make_another_tree_of_the_same_source(store: Any, write: Callable[..., dict[str, int]]) -> None:
    source = Document(content=sections(6), meta={"file_path": "a.md"})
    coarse = MarkdownHierarchicalSplitter(leaf_tokens=40, min_leaf_tokens=30).run([source])["documents"]
    write(SPLITTER.run([source])["documents"])
    write(coarse)
    assert stored(store) == ids(coarse)


def test_any_field_can_identify_a_source(store: Any) -> None:
    writer = HierarchyWriter(store, source_key="number", progress_bar=False)

    def numbered(count: int, number: int) -> list[Document]:
        return SPLITTER.run([Document(content=sections(count), meta={"number": number})])["documents"]

    writer.run([*numbered(4, 1), *numbered(3, 2)])
    assert writer.run(numbered(2, 1))["deleted"] == 5
    assert stored(store) == ids([*numbered(2, 1), *numbered(3, 2)])


# -- documents that belong to no tree of ours


def chunks(text: str, path: str, size: int) -> list[Document]:
    splitter = DocumentSplitter(split_by="word", split_length=size)
    splitter.warm_up()
    return splitter.run([Document(content=text, meta={"file_path": path})])["documents"]


def test_flat_chunks_give_way_to_a_tree(store: Any, write: Callable[..., dict[str, int]]) -> None:
    flat, kept, new = chunks(sections(8), "a.md", 5), chunks(sections(8), "b.md", 5), tree(sections(8), "a.md")
    store.write_documents([*flat, *kept])
    assert write(new)["deleted"] == len(flat) > 5
    assert stored(store) == ids([*new, *kept])


def test_flat_chunks_replace_flat_chunks_and_trees(store: Any, write: Callable[..., dict[str, int]]) -> None:
    write([*tree(sections(8), "a.md"), *chunks(sections(8), "b.md", 5)])
    new = [*chunks(sections(8), "a.md", 7), *chunks(sections(8), "b.md", 7)]
    assert write(new)["sources"] == 2
    assert stored(store) == ids(new)


def test_documents_of_no_source_stay(store: Any, write: Callable[..., dict[str, int]]) -> None:
    first, second = Document(content="one"), Document(content="two")
    assert write([first]) == counts(1, 1, added=1)
    assert write([second, replace(second, content="two")])["documents_written"] == 1
    assert write(tree(sections(2), "a.md"))["deleted"] == 0
    assert {first.id, second.id} < stored(store)


# -- what is asked of the store


def test_parents_are_written_before_leaves_source_by_source(recording: RecordingStore) -> None:
    first, second = tree(sections(30), "a.md"), tree(sections(5), "b.md")
    mixed = [node for pair in zip(reversed(first), [*second, *first], strict=False) for node in pair]
    result = HierarchyWriter(recording, max_batch_documents=7, progress_bar=False).run(mixed)

    assert result["documents_written"] == len(first) + len(second)
    assert [len(batch) for batch in recording.writes] == [7] * 5 + [2]
    assert recording.policies == {DuplicatePolicy.OVERWRITE}
    written = [node for batch in recording.writes for node in batch]
    places = {node.id: place for place, node in enumerate(written)}
    assert all(places[node.meta["__parent_id"]] < places[node.id] for node in written if node.meta["__parent_id"])
    assert [node.meta["file_path"] for node in written] == ["a.md"] * len(first) + ["b.md"] * len(second)


def test_one_delete_per_call_and_none_when_there_was_nothing(recording: RecordingStore) -> None:
    writer = HierarchyWriter(recording, progress_bar=False)
    nodes = [node for number in range(20) for node in tree(sections(2), f"{number}.md")]
    writer.run(nodes)
    assert recording.calls == ["write"]
    writer.run(nodes)
    assert recording.calls == ["write", "write", "delete"]
    writer.run([])
    assert recording.calls == ["write", "write", "delete"]


def test_100_inner_nodes_of_a_megabyte(tmp_path: Path) -> None:
    store = RecordingStore(location=":memory:", embedding_dim=2)
    text = "x" * 1_000_000
    nodes = [Document(id=str(n), content=text, meta={"__children_ids": ["leaf"], "__level": n}) for n in range(100)]
    nodes.append(Document(id="leaf", content="leaf", embedding=[1.0, 0.0]))
    result = HierarchyWriter(store, max_batch_bytes=8_000_000, progress_bar=False).run(nodes)
    assert result["documents_written"] == 101
    # Seven megabytes and a little: the eighth would go over the bound.
    assert [len(batch) for batch in store.writes] == [7] * 14 + [3]
    store.close()


def test_a_node_above_the_bound_goes_alone() -> None:
    store = RecordingStore(location=":memory:", embedding_dim=2)
    nodes = tree(sections(40), "a.md")
    HierarchyWriter(store, max_batch_bytes=2000, progress_bar=False).run(nodes)
    assert [node.id for node in store.writes[0]] == [nodes[0].id]  # the root holds the text of all 40 sections
    assert all(1 < len(batch) < 4 for batch in store.writes[1:-1])
    store.close()


def test_leaves_of_any_level_are_found_by_their_source(recording: RecordingStore) -> None:
    text = "# A\n\nOne.\n\n## B\n\nTwo.\n\n### C\n\nThree.\n\n### D\n\nFour.\n\n## E\n\nFive.\n\n# F\n\nSix.\n"
    nodes = tree(text, id="source")
    HierarchyWriter(recording, progress_bar=False).run(nodes)
    found = recording.filter_documents({"field": "meta.source_id", "operator": "==", "value": "source"})
    assert ids(found) == ids(nodes)
    assert max(node.meta["__level"] for node in found) == 3


def test_the_nodes_of_the_caller_are_unchanged(write: Callable[..., dict[str, int]]) -> None:
    nodes = tree(sections(5), "a.md")
    before = deepcopy(nodes)
    write(nodes)
    write(nodes)
    assert nodes == before


def test_a_tree_may_come_in_parts(store: Any, write: Callable[..., dict[str, int]]) -> None:
    nodes = tree(sections(5), "a.md")
    write([node for node in nodes if not is_leaf(node)])
    assert write([node for node in nodes if is_leaf(node)])["deleted"] == 0
    assert stored(store) == ids(nodes)


# -- the commit record


def states(store: Any) -> dict[str, str | None]:
    """The state of each root, by its source."""
    return {node.meta["file_path"]: node.meta.get(STATE) for node in store.filter_documents() if is_root(node)}


def test_roots_are_marked_when_everything_is_written(store: Any, write: Callable[..., dict[str, int]]) -> None:
    write([*tree(sections(3), "a.md"), *tree(sections(1), "b.md")])
    assert states(store) == {"a.md": COMPLETE, "b.md": COMPLETE}
    roots = [node for node in store.filter_documents() if is_root(node)]
    assert {node.meta["file_path"]: node.meta[LEAVES] for node in roots} == {"a.md": 3, "b.md": 1}
    assert len({node.meta[FINGERPRINT] for node in roots}) == 2


def test_a_tree_in_parts_is_not_marked(store: Any, write: Callable[..., dict[str, int]]) -> None:
    nodes = tree(sections(3), "a.md")
    write(nodes[:2])
    write(nodes[2:])
    assert states(store) == {"a.md": None}
    write(nodes)
    assert states(store) == {"a.md": COMPLETE}
    write(nodes[1:])  # leaves alone leave the root as it is
    assert states(store) == {"a.md": COMPLETE}


def test_nodes_read_from_a_store_do_not_bring_their_mark_along(write: Callable[..., dict[str, int]]) -> None:
    write(tree(sections(3), "a.md"))
    first = InMemoryDocumentStore()
    HierarchyWriter(first, progress_bar=False).run(tree(sections(3), "a.md"))
    nodes = sorted(first.filter_documents(), key=lambda node: node.meta["__level"])

    class Full(InMemoryDocumentStore):
        def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
            if self.count_documents():
                msg = "disk full"
                raise OSError(msg)
            return super().write_documents(documents, policy)

    second = Full()
    with pytest.raises(DocumentStoreError):
        HierarchyWriter(second, max_batch_documents=1, progress_bar=False).run(nodes)
    assert states(second) == {"a.md": None}


def test_a_failed_mark_is_told(recording: RecordingStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        msg = "connection lost"
        raise ConnectionError(msg)

    monkeypatch.setattr(recording, "set_meta_by_id", fail)
    with pytest.raises(DocumentStoreError, match=r"All 4 nodes .* could not be marked as complete: ConnectionError"):
        HierarchyWriter(recording, progress_bar=False).run(tree(sections(3), "a.md"))


def test_progress_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    HierarchyWriter(InMemoryDocumentStore()).run(tree(sections(3), "a.md"))
    assert "4/4" in capsys.readouterr().err


# -- asynchronous


@pytest.mark.parametrize("kind", ["embedded", "in_memory", "sync"])
async def test_async_does_the_same(kind: str, tmp_path: Path) -> None:
    makers: dict[str, Callable[[str], Any]] = {
        "embedded": lambda name: HierarchyQdrantDocumentStore(path=str(tmp_path / name), embedding_dim=2),
        "in_memory": lambda _: InMemoryDocumentStore(),
        "sync": lambda _: SyncStore(),
    }
    stores = [makers[kind]("one"), makers[kind]("two")]
    writers = [HierarchyWriter(store, progress_bar=False) for store in stores]
    flat = chunks(sections(5), "c.md", 4)
    for nodes in ([*tree(sections(24), "a.md"), *flat], tree(sections(6), "a.md"), tree(sections(2), "c.md"), []):
        assert await writers[1].run_async(nodes) == writers[0].run(nodes)
        assert stored(stores[1]) == stored(stores[0])
    assert stored(stores[1]) == ids([*tree(sections(6), "a.md"), *tree(sections(2), "c.md")])
    for writer in writers:
        writer.close()
        await writer.close_async()


# -- serialisation


def test_serialisation() -> None:
    store = InMemoryDocumentStore(index="pottery")
    writer = HierarchyWriter(
        store,
        source_key="url",
        inner_text="derived",
        max_batch_documents=5,
        max_batch_bytes=1000,
        progress_bar=False,
    )
    data = writer.to_dict()
    assert data == {
        "type": "hichunk_haystack.components.writers.HierarchyWriter",
        "init_parameters": {
            "document_store": store.to_dict(),
            "source_key": "url",
            "inner_text": "derived",
            "max_batch_documents": 5,
            "max_batch_bytes": 1000,
            "progress_bar": False,
        },
    }
    assert HierarchyWriter.from_dict(data).to_dict() == data
    assert HierarchyWriter(store).to_dict()["init_parameters"] == {
        "document_store": store.to_dict(),
        "source_key": "file_path",
        "inner_text": "stored",
        "max_batch_documents": 500,
        "max_batch_bytes": 16 * 1024 * 1024,
        "progress_bar": True,
    }


def test_a_pipeline_from_yaml_indexes_and_replaces(tmp_path: Path) -> None:
    store = HierarchyQdrantDocumentStore(path=str(tmp_path / "qdrant"), embedding_dim=384)
    pipeline = Pipeline()
    pipeline.add_component("splitter", MarkdownHierarchicalSplitter(leaf_tokens=20, min_leaf_tokens=1))
    embedder = OfflineSentenceTransformersDocumentEmbedder(model=MODEL, progress_bar=False)
    pipeline.add_component("embedder", LeafEmbedder(embedder, progress_bar=False))
    pipeline.add_component("writer", HierarchyWriter(store, progress_bar=False))
    pipeline.connect("splitter", "embedder")
    pipeline.connect("embedder", "writer")
    indexing = Pipeline.loads(pipeline.dumps(), allowed_modules=["hichunk_haystack"])
    assert indexing.to_dict()["components"] == pipeline.to_dict()["components"]
    assert Pipeline.loads(indexing.dumps(), allowed_modules=["hichunk_haystack"]) == indexing

    def index(content: str) -> dict[str, int]:
        source = Document(content=content, meta={"file_path": "pottery.md"})
        return indexing.run({"splitter": {"documents": [source]}})["writer"]

    kiln, wheel = "# Kiln\n\nFire it slowly for a day.\n\n", "# Wheel\n\nCentre the clay first.\n\n"
    assert index(kiln + wheel) == counts(3, 2, added=1)

    retriever = QdrantEmbeddingRetriever(store)
    query = OfflineSentenceTransformersTextEmbedder(model=MODEL).run("How long does the firing take?")["embedding"]
    found = retriever.run(query_embedding=query)["documents"]
    assert [document.content for document in found] == [kiln, wheel]

    assert index(wheel + "# Glaze\n\nDip the pot.\n\n")["deleted"] == 3
    found = retriever.run(query_embedding=query)["documents"]
    assert sorted(document.meta["headings"][0] for document in found) == ["Glaze", "Wheel"]
    indexing.close()
    store.close()
