# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""From a collection of flat chunks to trees, without embedding anything again."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from haystack import Document
from haystack.document_stores.errors import DocumentStoreError
from haystack.document_stores.types import DocumentStore, DuplicatePolicy
from haystack.token_counters.types import TokenCounter
from tqdm import tqdm

from hichunk_haystack.chunk_trees import tree_over
from hichunk_haystack.commits import COMMIT_FIELDS, COMPLETE, STATE, sign
from hichunk_haystack.components.writers.batches import batches
from hichunk_haystack.flat_chunks import FLAT_SOURCE, Run, UnusableChunksError, flat_source, lay_out
from hichunk_haystack.reading import read_documents
from hichunk_haystack.sources import Source, source_key_of
from hichunk_haystack.store_work import StoreCall, StoreWork, delete_by_filter, get_meta, run_work, scan, set_meta
from hichunk_haystack.tokens import HuggingFaceTokenCounter, counter_key, warm_up_counter
from hichunk_haystack.tree import (
    ANCESTORS,
    BLOCK_SIZE,
    CHILDREN,
    LEAF_RANGE,
    LEVEL,
    PARENT,
    TREE_ID,
    to_documents,
)

FLAT_CHUNKS = "__flat_chunks"
"""Meta key of the root of a migrated tree: how many chunks its source had."""

_MAX_BATCH_DOCUMENTS = 500
_MAX_BATCH_BYTES = 16 * 1024 * 1024

# What differs between the chunks of a source by its nature; all the rest may be the source's own meta.
_OF_A_CHUNK = {"split_id", "split_idx_start", "_split_overlap", "page_number"}
_OF_A_TREE = {
    LEVEL, PARENT, CHILDREN, BLOCK_SIZE, TREE_ID, ANCESTORS, LEAF_RANGE, FLAT_CHUNKS, FLAT_SOURCE, *COMMIT_FIELDS,
    "source_id", "split_idx_start", "split_idx_end", "token_count", "headings",
}  # fmt: skip


@dataclass
class MigrationReport:
    """
    What a migration has done, or would do.

    :param sources: Sources that got a tree.
    :param chunks: Their chunks, now leaves.
    :param inner_nodes: Nodes that were made over them.
    :param unchanged: Sources that had a tree already, from a run before.
    :param gaps: Places where chunks are missing: no merge goes across one.
    :param foreign: Documents that are no flat chunks; they are left alone.
    :param problems: Sources that were left alone, and why.
    :param dry_run: Whether nothing was written.
    """

    sources: int = 0
    chunks: int = 0
    inner_nodes: int = 0
    unchanged: int = 0
    gaps: int = 0
    foreign: int = 0
    problems: dict[str, str] = field(default_factory=dict)
    dry_run: bool = False


def build_hierarchy(
    document_store: DocumentStore,
    *,
    target_store: DocumentStore | None = None,
    source_key: str = "file_path",
    token_counter: TokenCounter | None = None,
    max_level: int = 10,
    chunks_per_page: int = 2000,
    dry_run: bool = False,
    progress_bar: bool = True,
) -> MigrationReport:
    """
    Build trees over the flat chunks of a collection; chunks keep their ids, texts, vectors and meta.

    Flat chunks are those of Haystack's `DocumentSplitter`, known by `source_id` and `split_id` (or `split_idx_start`).
    The chunks of a source are laid out along its text, sections are found by the headings in it, else by size, and
    inner nodes are written over them, from the root down; then the chunks again, with what a merge has to know. What
    neighbours repeat of each other stands once in an inner node. Where chunks are missing, each part gets a tree.

    Page by page, sources are finished and marked: a run that was interrupted goes on with the page where it stopped,
    and queries go on meanwhile. Only meta is held in memory for the whole collection; texts and vectors are
    read in pages (with a `HierarchyQdrantDocumentStore`; others give everything at once when they are listed).

    ```python
    from haystack import Document
    from haystack.components.preprocessors import DocumentSplitter
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    from hichunk_haystack.migration import build_hierarchy

    page = Document(content="# Kiln\\n\\nFire it slowly. Let it cool.\\n\\n# Wheel\\n\\nCentre the clay.\\n")
    store = InMemoryDocumentStore()
    splitter = DocumentSplitter(split_by="word", split_length=6, split_overlap=2)
    store.write_documents(splitter.run([page])["documents"])
    report = build_hierarchy(store, progress_bar=False)
    print(report.sources, report.problems)  # 1 {}
    root, = (node for node in store.filter_documents() if node.meta["__level"] == 0)
    print(root.content == page.content)  # True
    ```

    :param document_store: Where the chunks are.
    :param target_store: Where the trees go; by default the same store, in which the chunks are overwritten in place.
    :param source_key: Name of the meta field that identifies a source, as in the `HierarchyWriter`.
    :param token_counter: Counts tokens; by default the tokenizer of all-MiniLM-L6-v2.
    :param max_level: Headings of deeper levels do not start a section.
    :param chunks_per_page: Chunks that are read and written at once; a file with more of them goes by itself.
    :param dry_run: Whether to do everything but write.
    :param progress_bar: Whether to show a progress bar over the chunks.
    :returns: What was done.
    :raises ValueError: If `chunks_per_page` is below 1.
    :raises DocumentStoreError: If a store fails; the message tells how far it came.
    """
    if chunks_per_page < 1:
        msg = f"chunks_per_page is {chunks_per_page}; it must be at least 1."
        raise ValueError(msg)
    counter = token_counter or HuggingFaceTokenCounter()
    warm_up_counter(counter)
    report = MigrationReport(dry_run=dry_run)
    migration = _Migration(document_store, target_store or document_store, counter, max_level, report)
    files = migration.find(source_key)
    total = sum(len(ids) for file in files for ids in file.values())
    with tqdm(total=total, desc="Migrating", unit="chunk", disable=not progress_bar) as progress:
        for page in _pages(files, chunks_per_page):
            try:
                migration.migrate(migration.read(page))
            except Exception as error:
                msg = (
                    f"The migration stopped after {report.sources} sources and {report.chunks} chunks: "
                    f"{type(error).__name__}: {error}. What is done stays, and the same call goes on from there."
                )
                raise DocumentStoreError(msg) from error
            progress.update(sum(len(ids) for file in page for ids in file.values()))
    return report


@dataclass
class _Migration:
    """One run."""

    store: DocumentStore
    target: DocumentStore
    counter: TokenCounter
    max_level: int
    report: MigrationReport

    def find(self, source_key: str) -> list[dict[str, list[str]]]:
        """Find the chunks: for each file (or what else the key names) source_id -> ids."""
        files: dict[Any, dict[str, list[str]]] = {}

        def take(document: Document) -> None:
            source = flat_source(document)
            if source is not None:
                key = source_key_of(document, source_key)
                name = ("source", source) if key is None else ("key", key)
                files.setdefault(name, {}).setdefault(source, []).append(document.id)
            elif FLAT_SOURCE not in document.meta:
                self.report.foreign += 1

        fields = [
            source_key, "source_id", "split_id", "split_idx_start", TREE_ID, PARENT, CHILDREN, FLAT_SOURCE,
        ]  # fmt: skip
        run_work(scan(self.store, None, fields, take), self.store)
        return list(files.values())

    def read(self, page: Sequence[dict[str, list[str]]]) -> Iterator[dict[str, list[Document]]]:
        """Read the chunks of some files, without those of sources that are finished."""
        roots = [source for file in page for source in file]
        there = run_work(get_meta(self.target, roots, [FLAT_SOURCE, FLAT_CHUNKS, STATE]), self.target)
        todo = []
        for file in page:
            for source in file:
                if source in there and there[source].get(FLAT_SOURCE) != source:
                    self.report.problems[source] = "its source_id is the id of another document in the store"
            usable = {source: ids for source, ids in file.items() if source not in self.report.problems}
            if all(_is_done(there.get(source), len(ids)) for source, ids in usable.items()):
                self.report.unchanged += len(usable)
            else:
                todo.append(usable)
        ids = [chunk for file in todo for ids in file.values() for chunk in ids]
        documents = read_documents(self.store, ids, with_embeddings=True)
        for file in todo:
            found = {source: [documents[each] for each in ids if each in documents] for source, ids in file.items()}
            yield {source: chunks for source, chunks in found.items() if chunks}

    def migrate(self, files: Iterable[dict[str, list[Document]]]) -> None:
        """Build and write the trees of some files."""
        more = MigrationReport()
        trees: list[list[Document]] = []
        sources: list[str] = []
        for file in files:
            nodes: list[Document] = []
            for source, chunks in file.items():
                try:
                    runs = lay_out(chunks)
                except UnusableChunksError as error:
                    self.report.problems[source] = str(error)
                    continue
                sources.append(source)
                more.chunks += len(chunks)
                more.gaps += len(runs) - 1
                meta = {**_shared_meta(chunks), FLAT_SOURCE: source}
                for number, run in enumerate(runs):
                    root = source if number == 0 else _root_id(source, run.start)
                    nodes += self._tree(run, root, meta, len(chunks))
            trees.append(nodes)
        if sources and not self.report.dry_run:
            run_work(_write(self.target, trees, sources), self.target)
        self.report.sources += len(sources)
        self.report.chunks += more.chunks
        self.report.inner_nodes += sum(map(len, trees)) - more.chunks
        self.report.gaps += more.gaps

    def _tree(self, run: Run, root: str, meta: dict[str, Any], chunks: int) -> list[Document]:
        tree = tree_over(run.text, run.spans, self.counter, self.max_level)
        settings = f"migration {self.max_level} {counter_key(self.counter)} {[chunk.id for chunk in run.chunks]}"
        documents = to_documents(tree, Document(id=root, content=run.text, meta=meta), settings)
        leaves = [document for node, document in zip(tree, documents, strict=True) if not node.children]
        by_leaf = {leaf.id: chunk for leaf, chunk in zip(leaves, run.chunks, strict=True)}
        ids = {leaf: chunk.id for leaf, chunk in by_leaf.items()}
        nodes = []
        for document in documents:
            tree_meta = _moved(document.meta, run.start, ids)
            chunk = by_leaf.get(document.id)
            if chunk is None:
                tree_meta = {**tree_meta, FLAT_CHUNKS: chunks} if document.id == root else tree_meta
                nodes.append(replace(document, meta=tree_meta))
            else:
                page = {"page_number": chunk.meta["page_number"]} if "page_number" in chunk.meta else {}
                nodes.append(replace(chunk, meta={**chunk.meta, **tree_meta, **page}, score=None))
        return nodes


def _write(store: DocumentStore, trees: Sequence[list[Document]], sources: Sequence[str]) -> StoreWork[None]:
    """
    Write the trees of some files, file by file inner nodes, then leaves.

    Then what is left of an earlier migration is removed, and the roots are marked.
    """
    signed = [sign(nodes) for nodes in trees]
    roots = [root for each in signed for root in each.roots]
    there = yield from get_meta(store, sources, [FLAT_SOURCE])
    ordered = [node for each in signed for node in Source("", nodes=each.nodes).in_writing_order()]
    for batch in batches(ordered, _MAX_BATCH_DOCUMENTS, _MAX_BATCH_BYTES):
        yield StoreCall("write_documents", {"documents": batch, "policy": DuplicatePolicy.OVERWRITE})
    older = [source for source in sources if source in there]
    if older:  # from other chunks, or a run that was interrupted after the chunks had changed
        conditions = [
            {"field": f"meta.{FLAT_SOURCE}", "operator": "in", "value": older},
            {"field": f"meta.{TREE_ID}", "operator": "not in", "value": [root.meta[TREE_ID] for root in roots]},
        ]
        yield from delete_by_filter(store, {"operator": "AND", "conditions": conditions})
    if not (yield from set_meta(store, [root.id for root in roots], {STATE: COMPLETE})):
        marked = [replace(root, meta={**root.meta, STATE: COMPLETE}) for root in roots]
        yield StoreCall("write_documents", {"documents": marked, "policy": DuplicatePolicy.OVERWRITE})


def _moved(meta: dict[str, Any], by: int, ids: dict[str, str]) -> dict[str, Any]:
    """A node's meta with offsets in the source and the chunks' own ids. Which leaves it has can't be computed."""
    links = [
        {**{key: value for key, value in link.items() if key not in ("first_leaf", "leaves")},
         "start": link["start"] + by, "end": link["end"] + by}
        for link in meta[ANCESTORS]
    ]  # fmt: skip
    return {
        **{key: value for key, value in meta.items() if key != LEAF_RANGE},
        CHILDREN: [ids.get(child, child) for child in meta[CHILDREN]],
        ANCESTORS: links,
        "split_idx_start": meta["split_idx_start"] + by,
        "split_idx_end": meta["split_idx_end"] + by,
    }


def _shared_meta(chunks: Sequence[Document]) -> dict[str, Any]:
    """What all chunks of a source have in their meta: the source's own."""
    first, *others = (chunk.meta for chunk in chunks)
    return {
        key: value
        for key, value in first.items()
        if key not in _OF_A_CHUNK | _OF_A_TREE and all(key in other and other[key] == value for other in others)
    }


def _is_done(root: dict[str, Any] | None, chunks: int) -> bool:
    return root is not None and root.get(STATE) == COMPLETE and root.get(FLAT_CHUNKS) == chunks


def _root_id(source: str, start: int) -> str:
    return hashlib.blake2b(f"{source} {start}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _pages(files: Sequence[dict[str, list[str]]], most: int) -> Iterator[list[dict[str, list[str]]]]:
    page: list[dict[str, list[str]]] = []
    size = 0
    for file in files:
        chunks = sum(map(len, file.values()))
        if page and size + chunks > most:
            yield page
            page, size = [], 0
        page.append(file)
        size += chunks
    if page:
        yield page
