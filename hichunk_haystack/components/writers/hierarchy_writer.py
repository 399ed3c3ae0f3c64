# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace
from itertools import accumulate
from typing import Any, Literal

from haystack import Document, component, default_from_dict, default_to_dict, logging
from haystack.document_stores.errors import DocumentStoreError
from haystack.document_stores.types import DocumentStore, DuplicatePolicy
from tqdm import tqdm

from hichunk_haystack.commits import COMPLETE, STATE, SUPERSEDED, sign
from hichunk_haystack.components.preprocessors.splitting import describe
from hichunk_haystack.components.writers.batches import batches
from hichunk_haystack.front_matter import is_searched
from hichunk_haystack.leaf_texts import without_inner_text
from hichunk_haystack.nodes import PARENT, TREE_ID, is_leaf
from hichunk_haystack.sources import (
    Source,
    group_by_source,
    source_id_of,
    source_key_of,
    stale_filters,
    top_filters,
)
from hichunk_haystack.storable import UnstorableError, storable
from hichunk_haystack.store_work import (
    StoreCall,
    StoreWork,
    delete_by_filter,
    run_work,
    run_work_async,
    scan,
    set_meta,
)

logger = logging.getLogger(__name__)

# Names in a message; more would hide what it says.
_MOST_NAMES = 5

_AGAIN = "Write the same again"


@component
class HierarchyWriter:
    """
    Writes trees into a document store, and lets a source that is written again replace its older self.

    A source is known by a meta field (`source_key`, the file's path by default), or by its root's id where it has none.
    Source by source, inner nodes are written from the root down, then leaves; documents with the same id are
    overwritten. Once everything is written, one delete by filter removes what is left of older versions, and a last
    call marks the roots as complete. So a crash at any point leaves a store in which the old or the new version is
    found (or both), and writing the same again repairs it. By the mark, an `UnchangedSourceFilter` in front of the
    embedder knows what need not be written again.

    All documents of one source must come in one call: several documents made from one file stay side by side, but those
    of an earlier call are taken for its older version. Part of a tree may come without the rest: what is already there
    of the same tree stays. Such a tree is not marked as complete.

    Documents that belong to no tree of ours (flat chunks, trees of Haystack's `HierarchicalDocumentSplitter`) are
    written too and replace by the same rule: whatever the store holds of their source besides them is removed.
    Without the meta field they are known by their `source_id`, and where that says nothing either, they only overwrite
    what has their id.

    What is stored of meta is JSON, the same in every store: paths, times, sets and numbers of NumPy are written as
    `hichunk_haystack.storable` says. A source with something that has no such form, or with NaN in an embedding, is
    left as it was; the others are written, and an error at the end names it.

    An embedded Qdrant has no index for the delete, so it looks at every point, once for all sources of a call: index
    many sources in one call rather than in many calls. Nothing is deleted when the store was empty before.

    ```python
    from haystack import Document
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
    from hichunk_haystack.components.writers import HierarchyWriter

    splitter = MarkdownHierarchicalSplitter(leaf_tokens=12, min_leaf_tokens=1)
    writer = HierarchyWriter(InMemoryDocumentStore(), progress_bar=False)
    for text in ("# Kiln\\n\\nFire it slowly.\\n\\n# Wheel\\n\\nCentre the clay.\\n", "# Kiln\\n\\nFire it slowly.\\n"):
        source = Document(content=text, meta={"file_path": "pottery.md"})
        # first no leaf has an embedding: a warning says so
        print(writer.run(splitter.run([source])["documents"]))
    # {'documents_written': 3, 'sources': 1, 'leaves': 2, 'added': 1, 'replaced': 0, 'deleted': 0}
    # {'documents_written': 1, 'sources': 1, 'leaves': 1, 'added': 0, 'replaced': 1, 'deleted': 3}
    ```
    """

    __module__ = "hichunk_haystack.components.writers"

    def __init__(
        self,
        document_store: DocumentStore,
        *,
        source_key: str = "file_path",
        inner_text: Literal["stored", "derived"] = "stored",
        max_batch_documents: int = 500,
        max_batch_bytes: int = 16 * 1024 * 1024,
        progress_bar: bool = True,
    ) -> None:
        """
        Create the component.

        :param document_store: Where to write.
        :param source_key: Name of the meta field that identifies a source. Its values are texts or whole numbers; where
            it is missing, or something else, the root's id counts. A Qdrant server may ask for a payload index on it.
        :param inner_text: "stored" writes the text of every node, so about as many times the source's as a leaf has
            nodes above it; Haystack's own retrievers need that. "derived" writes the text of leaves only: the
            `BudgetAutoMergingRetriever` builds that of a node from its leaves. It holds for what is written from then
            on; sources of both kinds can stand side by side.
        :param max_batch_documents: The most nodes in one call of the store.
        :param max_batch_bytes: The most bytes in one call of the store, as an estimate of their JSON. A Qdrant server
            takes 32 MB. A single node that is bigger goes alone.
        :param progress_bar: Whether to show a progress bar over the nodes.
        :raises ValueError: If an option makes no sense; the message names it.
        """
        if not source_key:
            msg = "source_key is empty; name the meta field that identifies a source, such as 'file_path'."
            raise ValueError(msg)
        if inner_text not in ("stored", "derived"):
            msg = f"inner_text is '{inner_text}'; it must be 'stored' or 'derived'."
            raise ValueError(msg)
        for name, bound in (("max_batch_documents", max_batch_documents), ("max_batch_bytes", max_batch_bytes)):
            if bound < 1:
                msg = f"{name} is {bound}; it must be at least 1."
                raise ValueError(msg)
        self.document_store = document_store
        self.source_key = source_key
        self.inner_text = inner_text
        self.max_batch_documents = max_batch_documents
        self.max_batch_bytes = max_batch_bytes
        self.progress_bar = progress_bar

    @component.output_types(documents_written=int, sources=int, leaves=int, added=int, replaced=int, deleted=int)
    def run(self, documents: list[Document]) -> dict[str, int]:
        """
        Write nodes, and remove what is left of older versions of their sources.

        :param documents: Nodes in any order, usually the leaves with embeddings; a warning tells how many have none.
            They are not changed.
        :returns: A dictionary with:
            - `documents_written`: nodes written.
            - `sources`: sources that they belong to.
            - `leaves`: nodes among them that are leaves, or belong to no tree.
            - `added`: sources of which the store held nothing.
            - `replaced`: the others, the same text written again among them.
            - `deleted`: nodes of older versions that were removed.
        :raises TypeError: If something in the list is not a `Document`.
        :raises DocumentStoreError: If the store fails on the way, or sources can't be stored, which does not keep the
            others from being written; the message tells what was written and what not.
        """
        return run_work(self._write(documents), self.document_store)

    @component.output_types(documents_written=int, sources=int, leaves=int, added=int, replaced=int, deleted=int)
    async def run_async(self, documents: list[Document]) -> dict[str, int]:
        """
        Write nodes without blocking the event loop; in a thread if the store knows only the synchronous way.

        :param documents: Nodes in any order. They are not changed.
        :returns: What `run` returns.
        :raises TypeError: If something in the list is not a `Document`.
        :raises DocumentStoreError: If the store fails on the way, or sources can't be stored, which does not keep the
            others from being written; the message tells what was written and what not.
        """
        return await run_work_async(self._write(documents), self.document_store)

    def _write(self, documents: list[Document]) -> StoreWork[dict[str, int]]:
        for document in documents:
            if not isinstance(document, Document):
                msg = f"HierarchyWriter takes Haystack Documents, but got a {type(document).__name__}."
                raise TypeError(msg)
        sources, roots, refused = self._storable(group_by_source(documents, self.source_key))
        nodes = [node for source in sources for node in source.in_writing_order()]
        leaves = [node for node in nodes if is_leaf(node)]
        _warn_of_missing_embeddings(leaves)
        counts = {
            "documents_written": 0, "sources": len(sources), "leaves": len(leaves),
            "added": len(sources), "replaced": 0, "deleted": 0,
        }  # fmt: skip
        if not nodes:
            _raise_refused(refused, sources)
            return counts
        was_empty = (yield StoreCall("count_documents", {})) == 0
        if not was_empty:
            counts["replaced"] = yield from self._supersede(sources)
            counts["added"] -= counts["replaced"]
        with tqdm(total=len(nodes), desc="Writing", unit="node", disable=not self.progress_bar) as progress:
            for batch in batches(nodes, self.max_batch_documents, self.max_batch_bytes):
                try:
                    yield StoreCall("write_documents", {"documents": batch, "policy": DuplicatePolicy.OVERWRITE})
                except Exception as error:
                    raise DocumentStoreError(_stopped(sources, counts["documents_written"], error)) from error
                counts["documents_written"] += len(batch)
                progress.update(len(batch))
        if not was_empty:
            for filters in stale_filters(sources, self.source_key):
                try:
                    counts["deleted"] += yield from delete_by_filter(self.document_store, filters)
                except Exception as error:
                    done = f"All {len(nodes)} nodes of {len(sources)} sources are written, but older versions of them "
                    msg = f"{done}could not be removed and are still found: {_tell(error)}. {_AGAIN} to remove them."
                    raise DocumentStoreError(msg) from error
        try:
            yield from self._mark_complete(roots)
        except Exception as error:
            done = f"All {len(nodes)} nodes of {len(sources)} sources are written, but could not be marked as complete"
            msg = f"{done}: {_tell(error)}. {_AGAIN}, or an unchanged source will be taken for a changed one."
            raise DocumentStoreError(msg) from error
        _raise_refused(refused, sources)
        return counts

    def _storable(self, sources: list[Source]) -> tuple[list[Source], list[Document], list[str]]:
        """Give the sources as they can be stored, the roots to mark, and what can't be stored, each with the reason."""
        good: list[Source] = []
        roots: list[Document] = []
        refused: list[str] = []
        for source in sources:
            try:
                signed = sign(source.nodes)
                nodes = [storable(node) for node in signed.nodes]
            except UnstorableError as error:
                refused.append(f"{source.name}: {error}")
                continue
            source.nodes = without_inner_text(nodes) if self.inner_text == "derived" else nodes
            marked = {root.id for root in signed.roots}
            roots += [node for node in source.nodes if node.id in marked]
            good.append(source)
        return good, roots, refused

    def _supersede(self, sources: list[Source]) -> StoreWork[int]:
        """
        Find older versions of the sources, and take back their mark, before anything is written.

        Were it left, a crash from here on followed by a return to the older text would find that text complete, with
        part of the newer one beside it.
        """
        by_name: dict[str | int, int] = {}
        for number, source in enumerate(sources):
            by_name.update(dict.fromkeys([*source.roots, *source.keys], number))
        written = {tree for source in sources for tree in source.trees}
        replaced: set[int] = set()
        older: list[str] = []

        def take(document: Document) -> None:
            for name in (source_key_of(document, self.source_key), source_id_of(document)):
                if name is not None and name in by_name:
                    replaced.add(by_name[name])
            # A root of the same tree is overwritten, or its tree is being mended in part.
            if document.meta.get(STATE) == COMPLETE and document.meta.get(TREE_ID) not in written:
                older.append(document.id)

        fields = [self.source_key, "source_id", TREE_ID, PARENT, STATE]
        for filters in top_filters(sources, self.source_key):
            yield from scan(self.document_store, filters, fields, take)
        yield from set_meta(self.document_store, older, {STATE: SUPERSEDED})
        return len(replaced)

    def _mark_complete(self, roots: list[Document]) -> StoreWork[None]:
        """The second part of the commit record, in one call; a store that cannot set a field gets the roots again."""
        if (yield from set_meta(self.document_store, [root.id for root in roots], {STATE: COMPLETE})):
            return
        marked = [replace(root, meta={**root.meta, STATE: COMPLETE}) for root in roots]
        for batch in batches(marked, self.max_batch_documents, self.max_batch_bytes):
            yield StoreCall("write_documents", {"documents": batch, "policy": DuplicatePolicy.OVERWRITE})

    def to_dict(self) -> dict[str, Any]:
        """
        Serialise the component.

        :returns: Dictionary with the type and the init parameters.
        """
        return default_to_dict(
            self,
            document_store=self.document_store,
            source_key=self.source_key,
            inner_text=self.inner_text,
            max_batch_documents=self.max_batch_documents,
            max_batch_bytes=self.max_batch_bytes,
            progress_bar=self.progress_bar,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "HierarchyWriter":
        """
        Revive the component.

        :param data: What `to_dict` gave.
        :returns: The component.
        """
        return default_from_dict(cls, data)

    def close(self) -> None:
        """Release what the document store holds open."""
        if hasattr(self.document_store, "close"):
            self.document_store.close()

    async def close_async(self) -> None:
        """Release what the document store's asynchronous side holds open."""
        if hasattr(self.document_store, "close_async"):
            await self.document_store.close_async()


def _raise_refused(refused: list[str], good: list[Source]) -> None:
    """Last of all, so that one source that can't be stored does not keep the others from being written."""
    if not refused:
        return
    reasons = "; ".join(refused[:_MOST_NAMES])
    more = f"; and {len(refused) - _MOST_NAMES} more" if len(refused) > _MOST_NAMES else ""
    rest = f"The other {len(good)} are written" if good else "Nothing was written"
    msg = (
        f"{len(refused)} of {len(refused) + len(good)} sources can't be stored, and what the store has of them is left "
        f"as it was: {reasons}{more}. {rest}."
    )
    raise DocumentStoreError(msg)


def _warn_of_missing_embeddings(leaves: list[Document]) -> None:
    without = [
        leaf for leaf in leaves if is_searched(leaf) and leaf.embedding is None and leaf.sparse_embedding is None
    ]
    if without:
        logger.warning(
            "{count} of {total} leaves have no embedding (the first is of {source}): no vector search will find them. "
            "Put a LeafEmbedder in front of the writer.",
            count=len(without),
            total=len(leaves),
            source=describe(without[0]),
        )


def _stopped(sources: list[Source], written: int, error: Exception) -> str:
    """Tell what is written and what not. Sources are written one after another."""
    ends = list(accumulate(len(source.nodes) for source in sources))
    complete = sum(end <= written for end in ends)
    missing = [source.name for source in sources[complete:]]
    names = ", ".join(missing[:_MOST_NAMES])
    more = f" and {len(missing) - _MOST_NAMES} more" if len(missing) > _MOST_NAMES else ""
    return (
        f"Writing stopped after {written} of {ends[-1]} nodes: {_tell(error)}. "
        f"What is written stays: {complete} of {len(sources)} sources are complete; missing in whole or in part: "
        f"{names}{more}. Nothing old has been removed. {_AGAIN} to finish."
    )


def _tell(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).rstrip('.')}"
