# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Collections of flat chunks, made by stock Haystack components, become trees."""

import math
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from haystack import Document
from haystack.components.preprocessors import DocumentSplitter
from haystack.document_stores.errors import DocumentStoreError
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.document_stores.types import DocumentStore, DuplicatePolicy
from haystack_integrations.document_stores.qdrant import QdrantDocumentStore
from hypothesis import given, settings
from hypothesis import strategies as st
from qdrant_client import QdrantClient

from hichunk_haystack import integrity
from hichunk_haystack.components.retrievers import BudgetAutoMergingRetriever
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from hichunk_haystack.flat_chunks import lay_out
from hichunk_haystack.migration import MigrationReport, build_hierarchy
from hichunk_haystack.stored_sources import list_sources
from tests.document_stores.conftest import REAL_KEY, REAL_SERVER
from tests.word_embedder import WordEmbedder

SECTION = "Fire the kiln slowly up to two hundred degrees, so that the water in the clay has time to leave. "
COOLING = "Leave the door shut for a whole day. " * 8
KILN = f"# Kiln\n\n{SECTION * 4}\n\n## Cooling\n\n{COOLING}\n\n# Wheel\n\n{SECTION * 5}"
BEES = "Give the bees twelve kilograms of sugar syrup before September ends. " * 20


def chunks_of(*texts: str, overlap: int = 5, length: int = 20) -> list[Document]:
    splitter = DocumentSplitter(split_by="word", split_length=length, split_overlap=overlap)
    sources = [Document(content=text, meta={"file_path": f"{n}.md", "lang": "en"}) for n, text in enumerate(texts)]
    embedded_chunks = WordEmbedder().run(splitter.run(sources)["documents"])["documents"]
    return [replace(chunk, embedding=_unit(chunk.embedding)) for chunk in embedded_chunks]


def _unit(vector: list[float]) -> list[float]:
    """Of length 1, as Qdrant keeps vectors that are compared by cosine."""
    length = math.hypot(*vector)
    return [number / length for number in vector]


def in_memory(folder: Path, chunks: list[Document]) -> DocumentStore:
    store = InMemoryDocumentStore()
    store.write_documents(chunks)
    return store


def embedded(folder: Path, chunks: list[Document]) -> DocumentStore:
    stock = QdrantDocumentStore(path=str(folder / "qdrant"), index="flat", embedding_dim=32, recreate_index=True)
    stock.write_documents(chunks)
    stock.close()
    return HierarchyQdrantDocumentStore(path=str(folder / "qdrant"), index="flat", embedding_dim=32)


def on_a_server(folder: Path, chunks: list[Document]) -> DocumentStore:
    """A collection of its own on the server of QDRANT_URL; `clean_surroundings` removes it."""
    if not REAL_SERVER:
        pytest.skip("QDRANT_URL names no server")
    where = {"url": REAL_SERVER, "index": _SERVER_INDEX, "embedding_dim": 32}
    stock = QdrantDocumentStore(**where, recreate_index=True)
    stock.write_documents(chunks)
    stock.close()
    return HierarchyQdrantDocumentStore(**where)


_SERVER_INDEX = f"hichunk-test-{uuid.uuid4()}"

both = pytest.mark.parametrize("make", [in_memory, embedded, pytest.param(on_a_server, marks=pytest.mark.integration)])
Make = Callable[[Path, list[Document]], Any]


@pytest.fixture(autouse=True)
def clean_surroundings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("QDRANT_URL", "QDRANT_PATH"):
        monkeypatch.delenv(name, raising=False)
    yield
    if REAL_SERVER:
        QdrantClient(url=REAL_SERVER, api_key=REAL_KEY).delete_collection(_SERVER_INDEX)


def nodes_of(store: Any) -> dict[str, Document]:
    if isinstance(store, InMemoryDocumentStore):
        return dict(store.storage)
    ids = [document.id for document in store.filter_documents()]
    return {document.id: document for document in store.get_nodes_by_id(ids, with_embeddings=True)}


def roots_of(nodes: dict[str, Document]) -> list[Document]:
    return [node for node in nodes.values() if node.meta.get("__level") == 0]


def build(store: Any, **options: Any) -> MigrationReport:
    return build_hierarchy(store, progress_bar=False, **options)


def check_trees(nodes: dict[str, Document]) -> None:
    """Every node's text is what its span says, its children cover it, and its leaves know what is above them."""
    for root in roots_of(nodes):
        base = root.meta["split_idx_start"]
        members = [node for node in nodes.values() if node.meta.get("__tree_id") == root.meta["__tree_id"]]
        for node in members:
            start, end = node.meta["split_idx_start"], node.meta["split_idx_end"]
            assert node.content == root.content[start - base : end - base]
            children = [nodes[child] for child in node.meta["__children_ids"]]
            if children:
                assert start == children[0].meta["split_idx_start"]
                assert end == max(child.meta["split_idx_end"] for child in children)
            chain, above = [], node.meta["__parent_id"]
            while above:
                chain.append(above)
                above = nodes[above].meta["__parent_id"]
            assert [link["id"] for link in node.meta["__ancestors"]] == chain
            for link in node.meta["__ancestors"]:
                there = nodes[link["id"]]
                assert (link["tokens"], link["children"]) == (
                    there.meta["token_count"], len(there.meta["__children_ids"]),
                )  # fmt: skip


@both
@pytest.mark.parametrize("overlap", [0, 5])
def test_a_collection_of_stock_components_becomes_trees(make: Make, overlap: int, tmp_path: Path) -> None:
    chunks = chunks_of(KILN, BEES, overlap=overlap)
    store = make(tmp_path, chunks)
    before = nodes_of(store)
    report = build(store)
    assert (report.sources, report.chunks, report.gaps, report.problems) == (2, len(chunks), 0, {})
    nodes = nodes_of(store)
    assert len(nodes) == len(chunks) + report.inner_nodes
    assert sorted(root.content for root in roots_of(nodes)) == sorted([KILN, BEES])
    check_trees(nodes)
    for chunk in before.values():
        leaf = nodes[chunk.id]
        assert (leaf.content, leaf.meta["split_id"]) == (chunk.content, chunk.meta["split_id"])
        assert leaf.embedding == pytest.approx(chunk.embedding, abs=1e-6)
        assert leaf.meta["source_id"] == chunk.meta["source_id"]
    assert integrity.check(store).sound
    assert [(one.name, one.leaves, one.complete) for one in list_sources(store)] == [
        (name, sum(chunk.meta["file_path"] == name for chunk in chunks), True) for name in ("0.md", "1.md")
    ]
    kiln = next(root for root in roots_of(nodes) if root.content == KILN)
    assert kiln.meta["lang"] == "en"
    titles = [nodes[child].meta["headings"] for child in kiln.meta["__children_ids"]]
    assert titles == [["Kiln"], ["Wheel"]]
    # Again: nothing is left to do.
    again = build(store)
    assert (again.sources, again.unchanged, nodes_of(store)) == (0, 2, nodes)


@both
def test_a_merge_repeats_nothing(make: Make, tmp_path: Path) -> None:
    store = make(tmp_path, chunks_of(KILN, overlap=8))
    build(store)
    hits = [replace(node, score=1.0) for node in nodes_of(store).values() if not node.meta["__children_ids"]]
    hits.sort(key=lambda hit: hit.meta["split_id"])
    merged = BudgetAutoMergingRetriever(store, token_budget=4000).run(hits)["documents"]
    assert [document.content for document in merged] == [KILN]


def test_long_runs_without_headings_are_grouped(tmp_path: Path) -> None:
    store = in_memory(tmp_path, chunks_of(BEES * 5, overlap=0))
    build(store)
    nodes = nodes_of(store)
    (root,) = roots_of(nodes)
    groups = [nodes[child] for child in root.meta["__children_ids"]]
    assert all(group.meta["__children_ids"] for group in groups)
    leaf = max(node.meta["token_count"] for node in nodes.values() if not node.meta["__children_ids"])
    assert all(group.meta["token_count"] <= 16 * leaf for group in groups)


@both
def test_no_merge_goes_across_a_missing_chunk(make: Make, tmp_path: Path) -> None:
    chunks = chunks_of(BEES, overlap=0)
    left = [chunk for chunk in chunks if chunk.meta["split_id"] != 4]
    store = make(tmp_path, left)
    report = build(store)
    assert (report.sources, report.gaps) == (1, 1)
    nodes = nodes_of(store)
    check_trees(nodes)
    first, second = sorted(roots_of(nodes), key=lambda root: root.meta["split_idx_start"])
    missing = chunks[4].meta["split_idx_start"]
    assert first.content == BEES[:missing]
    assert second.content == BEES[missing + len(chunks[4].content) :]
    assert second.meta["split_idx_start"] == missing + len(chunks[4].content)
    assert first.id == chunks[0].meta["source_id"]
    assert [(one.name, one.complete) for one in list_sources(store)] == [("0.md", True)]
    assert build(store).unchanged == 1
    # The chunk comes back: one tree, and nothing of the two.
    store.write_documents([chunks[4]])
    assert build(store).sources == 1
    nodes = nodes_of(store)
    assert [root.content for root in roots_of(nodes)] == [BEES]
    assert integrity.check(store).sound
    assert {node.meta["__tree_id"] for node in nodes.values()} == {roots_of(nodes)[0].meta["__tree_id"]}


@pytest.mark.parametrize("overlap", [0, 5])
def test_chunks_without_offsets(overlap: int, tmp_path: Path) -> None:
    chunks = [
        replace(chunk, meta={name: value for name, value in chunk.meta.items() if name != "split_idx_start"})
        for chunk in chunks_of(KILN, overlap=overlap)
    ]
    store = in_memory(tmp_path, chunks)
    assert build(store).gaps == 0
    assert [root.content for root in roots_of(nodes_of(store))] == [KILN]
    check_trees(nodes_of(store))


def test_chunks_that_were_stripped_are_joined_by_white_space(tmp_path: Path) -> None:
    text = "Fire it slowly.\n\nLet it cool for a day.\n\n\nThen open the door."
    parts = [("Fire it slowly.", 0), ("Let it cool for a day.", 17), ("Then open the door.", 42)]
    assert [text[start : start + len(part)] for part, start in parts] == [part for part, _ in parts]
    chunks = [
        Document(content=part, meta={"source_id": "s", "split_id": n, "split_idx_start": start})
        for n, (part, start) in enumerate(parts)
    ]
    store = in_memory(tmp_path, chunks)
    build(store)
    (root,) = roots_of(nodes_of(store))
    assert root.content == "Fire it slowly.\n\nLet it cool for a day.\n\n Then open the door."
    check_trees(nodes_of(store))


def test_offsets_that_the_texts_do_not_bear_out_are_not_believed() -> None:
    texts = ["one two three ", "four five six ", "seven"]
    chunks = [
        Document(content=text, meta={"source_id": "s", "split_id": n, "split_idx_start": n * 3})
        for n, text in enumerate(texts)
    ]
    (run,) = lay_out(chunks)
    assert run.text == "one two three four five six seven"


@both
def test_what_is_no_flat_chunk_stays_as_it_is(make: Make, tmp_path: Path) -> None:
    foreign = [
        Document(content="alone", meta={"file_path": "alone.md"}, embedding=[1.0] * 32),
        Document(content="leaf", meta={"__parent_id": "p", "__level": 1, "source_id": "p", "split_id": 0}),
        Document(content="number", meta={"source_id": 7, "split_id": 0}),
    ]
    store = make(tmp_path, [*chunks_of(BEES), *foreign])
    before = nodes_of(store)
    report = build(store)
    assert (report.sources, report.foreign) == (1, 3)
    nodes = nodes_of(store)
    assert [nodes[one.id] for one in foreign] == [before[one.id] for one in foreign]
    assert build(store).foreign == 3


def test_sources_that_cannot_be_laid_out_are_named_and_the_others_are_done(tmp_path: Path) -> None:
    twice = chunks_of(BEES, overlap=0) + chunks_of(BEES, overlap=0, length=7)
    whole = Document(content="whole", meta={"file_path": "whole.md"})
    taken = [Document(content=f"part {n}", meta={"source_id": whole.id, "split_id": n}) for n in (0, 1)]
    store = in_memory(tmp_path, [*twice, whole, *taken, *chunks_of(KILN, "other")[:-1]])
    before = nodes_of(store)
    report = build(store)
    assert report.sources == 1
    assert "two versions" in report.problems[twice[0].meta["source_id"]]
    assert "id of another document" in report.problems[whole.id]
    nodes = nodes_of(store)
    assert [nodes[one.id] for one in (*twice, whole, *taken)] == [before[one.id] for one in (*twice, whole, *taken)]


def test_several_sources_of_one_file_stay_side_by_side(tmp_path: Path) -> None:
    splitter = DocumentSplitter(split_by="word", split_length=10, split_overlap=0)
    pages = [
        Document(content=text, meta={"file_path": "book.pdf", "page_number": n}) for n, text in ((1, KILN), (2, BEES))
    ]
    store = in_memory(tmp_path, splitter.run(pages)["documents"])
    assert build(store, chunks_per_page=1).sources == 2
    (book,) = list_sources(store)
    assert (book.name, len(book.roots), book.complete) == ("book.pdf", 2, True)
    assert sorted(root.content for root in roots_of(nodes_of(store))) == sorted([KILN, BEES])


@both
def test_a_dry_run_reports_the_same_and_writes_nothing(make: Make, tmp_path: Path) -> None:
    store = make(tmp_path, chunks_of(KILN, BEES))
    before = nodes_of(store)
    dry = build(store, dry_run=True)
    assert nodes_of(store) == before
    assert dry.dry_run
    assert replace(dry, dry_run=False) == build(store)


class Failing(InMemoryDocumentStore):
    """A store that fails at its n-th write, as one whose server goes away."""

    writes = 0
    fails_at = -1

    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
        self.writes += 1
        if self.writes == self.fails_at:
            super().write_documents(documents[: len(documents) // 2], policy)
            msg = "the server has gone"
            raise ConnectionError(msg)
        return super().write_documents(documents, policy)


@pytest.mark.parametrize("fails_at", [1, 2])
def test_a_run_that_was_interrupted_goes_on(fails_at: int) -> None:
    store = Failing()
    chunks = chunks_of(KILN, BEES)
    store.write_documents(chunks)
    store.writes, store.fails_at = 0, fails_at
    with pytest.raises(DocumentStoreError, match=rf"after {fails_at - 1} sources.*the server has gone"):
        build(store, chunks_per_page=5)
    report = build(store, chunks_per_page=5)
    assert (report.sources, report.unchanged) == (3 - fails_at, fails_at - 1)
    nodes = nodes_of(store)
    check_trees(nodes)
    assert integrity.check(store).sound
    assert sorted(root.content for root in roots_of(nodes)) == sorted([KILN, BEES])
    fresh = in_memory(Path(), chunks)
    build(fresh)
    assert nodes.keys() == nodes_of(fresh).keys()


def test_trees_can_go_to_another_store(tmp_path: Path) -> None:
    store = embedded(tmp_path, chunks_of(KILN))
    before = nodes_of(store)
    target = InMemoryDocumentStore()
    report = build(store, target_store=target)
    assert nodes_of(store) == before
    assert [root.content for root in roots_of(nodes_of(target))] == [KILN]
    assert target.count_documents() == report.chunks + report.inner_nodes
    assert build(store, target_store=target).unchanged == 1


def test_an_empty_store_and_a_bad_option() -> None:
    assert build(InMemoryDocumentStore()) == MigrationReport()
    with pytest.raises(ValueError, match="chunks_per_page is 0"):
        build(InMemoryDocumentStore(), chunks_per_page=0)


@settings(max_examples=40)
@given(
    text=st.text(alphabet="ab. \n\t#é😀", min_size=1, max_size=300).filter(lambda text: text.strip()),
    split_by=st.sampled_from(["word", "period", "line", "passage", "page"]),
    length=st.integers(1, 8),
    data=st.data(),
)
def test_whatever_a_stock_splitter_gives_is_laid_out_as_it_was(
    text: str, split_by: Any, length: int, data: Any
) -> None:
    overlap = data.draw(st.integers(0, length - 1))
    chunks = DocumentSplitter(split_by=split_by, split_length=length, split_overlap=overlap).run(
        [Document(content=text)]
    )["documents"]
    store = InMemoryDocumentStore()
    store.write_documents(chunks, policy=DuplicatePolicy.OVERWRITE)
    build(store)
    nodes = nodes_of(store)
    check_trees(nodes)
    start = min(chunk.meta["split_idx_start"] for chunk in chunks)
    assert [root.content for root in roots_of(nodes)] == [text[start:]]
