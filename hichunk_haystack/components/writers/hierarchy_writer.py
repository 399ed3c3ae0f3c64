# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from itertools import accumulate
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict, logging
from haystack.document_stores.errors import DocumentStoreError
from haystack.document_stores.types import DocumentStore, DuplicatePolicy
from tqdm import tqdm

from hichunk_haystack.components.preprocessors.splitting import describe
from hichunk_haystack.components.writers.batches import batches
from hichunk_haystack.components.writers.sources import Source, group_by_source, stale_filters
from hichunk_haystack.components.writers.store_work import StoreCall, StoreWork, run_work, run_work_async
from hichunk_haystack.tree import is_leaf

logger = logging.getLogger(__name__)

# Names in a message; more would hide what it says.
_MOST_NAMES = 5


@component
class HierarchyWriter:
    """
    Writes trees into a document store, and lets a source that is written again replace its older self.

    A source is known by a meta field (`source_key`, the file's path by default), or by its root's id where it has none.
    Source by source, inner nodes are written from the root down, then leaves; documents with the same id are
    overwritten. Once everything is written, one delete by filter removes what is left of older versions. So a crash at
    any point leaves a store in which the old or the new version is found (or both), and writing the same again repairs
    it.

    All documents of one source must come in one call: several documents made from one file stay side by side, but those
    of an earlier call are taken for its older version. Part of a tree may come without the rest: what is already there
    of the same tree stays.

    Documents that belong to no tree of ours (flat chunks, trees of Haystack's `HierarchicalDocumentSplitter`) are
    written too and replace by the same rule: whatever the store holds of their source besides them is removed.
    Without the meta field they are known by their `source_id`, and where that says nothing either, they only overwrite
    what has their id.

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
    # {'documents_written': 3, 'sources': 1, 'leaves': 2, 'deleted': 0}
    # {'documents_written': 1, 'sources': 1, 'leaves': 1, 'deleted': 3}
    ```
    """

    __module__ = "hichunk_haystack.components.writers"

    def __init__(
        self,
        document_store: DocumentStore,
        *,
        source_key: str = "file_path",
        max_batch_documents: int = 500,
        max_batch_bytes: int = 16 * 1024 * 1024,
        progress_bar: bool = True,
    ) -> None:
        """
        Create the component.

        :param document_store: Where to write.
        :param source_key: Name of the meta field that identifies a source. Its values are texts or whole numbers; where
            it is missing, or something else, the root's id counts. A Qdrant server may ask for a payload index on it.
        :param max_batch_documents: The most nodes in one call of the store.
        :param max_batch_bytes: The most bytes in one call of the store, as an estimate of their JSON. A Qdrant server
            takes 32 MB. A single node that is bigger goes alone.
        :param progress_bar: Whether to show a progress bar over the nodes.
        :raises ValueError: If a bound makes no sense, or `source_key` is empty; the message names it.
        """
        if not source_key:
            msg = "source_key is empty; name the meta field that identifies a source, such as 'file_path'."
            raise ValueError(msg)
        for name, bound in (("max_batch_documents", max_batch_documents), ("max_batch_bytes", max_batch_bytes)):
            if bound < 1:
                msg = f"{name} is {bound}; it must be at least 1."
                raise ValueError(msg)
        self.document_store = document_store
        self.source_key = source_key
        self.max_batch_documents = max_batch_documents
        self.max_batch_bytes = max_batch_bytes
        self.progress_bar = progress_bar

    @component.output_types(documents_written=int, sources=int, leaves=int, deleted=int)
    def run(self, documents: list[Document]) -> dict[str, int]:
        """
        Write nodes, and remove what is left of older versions of their sources.

        :param documents: Nodes in any order, usually the leaves with embeddings; a warning tells how many have none.
            They are not changed.
        :returns: A dictionary with:
            - `documents_written`: nodes written.
            - `sources`: sources that they belong to.
            - `leaves`: nodes among them that are leaves, or belong to no tree.
            - `deleted`: nodes of older versions that were removed.
        :raises TypeError: If something in the list is not a `Document`.
        :raises DocumentStoreError: If the store fails on the way; the message tells what was written and what not.
        """
        return run_work(self._write(documents), self.document_store)

    @component.output_types(documents_written=int, sources=int, leaves=int, deleted=int)
    async def run_async(self, documents: list[Document]) -> dict[str, int]:
        """
        Write nodes without blocking the event loop; in a thread if the store knows only the synchronous way.

        :param documents: Nodes in any order. They are not changed.
        :returns: What `run` returns.
        :raises TypeError: If something in the list is not a `Document`.
        :raises DocumentStoreError: If the store fails on the way; the message tells what was written and what not.
        """
        return await run_work_async(self._write(documents), self.document_store)

    def _write(self, documents: list[Document]) -> StoreWork[dict[str, int]]:
        for document in documents:
            if not isinstance(document, Document):
                msg = f"HierarchyWriter takes Haystack Documents, but got a {type(document).__name__}."
                raise TypeError(msg)
        sources = group_by_source(documents, self.source_key)
        nodes = [node for source in sources for node in source.in_writing_order()]
        leaves = [node for node in nodes if is_leaf(node)]
        _warn_of_missing_embeddings(leaves)
        counts = {"documents_written": 0, "sources": len(sources), "leaves": len(leaves), "deleted": 0}
        if not nodes:
            return counts
        was_empty = (yield StoreCall("count_documents", {})) == 0
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
                    counts["deleted"] += yield from self._delete(filters)
                except Exception as error:
                    msg = (
                        f"All {len(nodes)} nodes of {len(sources)} sources are written, but older versions of them "
                        f"could not be removed and are still found: {type(error).__name__}: {str(error).rstrip('.')}. "
                        "Write the same again to remove them."
                    )
                    raise DocumentStoreError(msg) from error
        return counts

    def _delete(self, filters: dict[str, Any]) -> StoreWork[int]:
        """Delete by one filter; where the store can't, find the nodes first."""
        if hasattr(self.document_store, "delete_by_filter"):
            return (yield StoreCall("delete_by_filter", {"filters": filters})) or 0
        stale = [document.id for document in (yield StoreCall("filter_documents", {"filters": filters}))]
        if stale:
            yield StoreCall("delete_documents", {"document_ids": stale})
        return len(stale)

    def to_dict(self) -> dict[str, Any]:
        """
        Serialise the component.

        :returns: Dictionary with the type and the init parameters.
        """
        return default_to_dict(
            self,
            document_store=self.document_store,
            source_key=self.source_key,
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


def _warn_of_missing_embeddings(leaves: list[Document]) -> None:
    without = [leaf for leaf in leaves if leaf.embedding is None and leaf.sparse_embedding is None]
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
        f"Writing stopped after {written} of {ends[-1]} nodes: {type(error).__name__}: {str(error).rstrip('.')}. "
        f"What is written stays: {complete} of {len(sources)} sources are complete; missing in whole or in part: "
        f"{names}{more}. Nothing old has been removed. Write the same again to finish."
    )
