# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.document_stores.types import DocumentStore

from hichunk_haystack.commits import FINGERPRINT, STATE, fingerprint, is_committed, is_root
from hichunk_haystack.nodes import TREE_ID
from hichunk_haystack.sources import Source, group_by_source
from hichunk_haystack.storable import UnstorableError
from hichunk_haystack.store_work import StoreWork, get_meta, run_work, run_work_async
from hichunk_haystack.stored_sources import find_sources


@component
class UnchangedSourceFilter:
    """
    Lets only new and changed sources through, so that nothing is embedded twice.

    It stands behind the splitter and in front of the embedder (and of whatever else is slow), over the store that a
    `HierarchyWriter` writes to. A source is unchanged when the store holds all of its trees, each written to the end,
    and they were made from the same: the same text, meta and splitter settings, and the same `version`. Sources are
    known as the writer knows them. Documents that belong to no tree of ours always pass.

    Splitting takes a few hundredths of the time that embedding takes, and only behind it is it known what the tree
    would be; so a file that was saved again without a change costs a split and one look into the store, and so does one
    that was touched only.

    ```python
    from haystack import Document
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
    from hichunk_haystack.components.routers import UnchangedSourceFilter
    from hichunk_haystack.components.writers import HierarchyWriter

    store = InMemoryDocumentStore()
    splitter = MarkdownHierarchicalSplitter(leaf_tokens=12, min_leaf_tokens=1)
    changed, writer = UnchangedSourceFilter(store), HierarchyWriter(store, progress_bar=False)
    page = Document(content="# Kiln\\n\\nFire it slowly.\\n", meta={"file_path": "kiln.md"})
    for _ in range(2):
        found = changed.run(splitter.run([page])["documents"])
        print(len(found["documents"]), found["unchanged"])  # 1 0, then 0 1
        writer.run(found["documents"])
    ```
    """

    __module__ = "hichunk_haystack.components.routers"

    def __init__(
        self,
        document_store: DocumentStore,
        *,
        source_key: str = "file_path",
        version: str = "",
        report_missing: bool = False,
    ) -> None:
        """
        Create the component.

        :param document_store: Where the writer behind writes.
        :param source_key: Name of the meta field that identifies a source, as in the writer.
        :param version: What vectors and texts depend on besides source and splitter: the embedding model, its prompts,
            whether headings are embedded. Change it, and every source counts as changed.
        :param report_missing: Whether to look for sources that are in the store, but not among those of a run.
        :raises ValueError: If `source_key` is empty.
        """
        if not source_key:
            msg = "source_key is empty; name the meta field that identifies a source, such as 'file_path'."
            raise ValueError(msg)
        self.document_store = document_store
        self.source_key = source_key
        self.version = version
        self.report_missing = report_missing

    @component.output_types(documents=list[Document], unchanged=int, missing=list[str | int])
    def run(self, documents: list[Document], report_missing: bool | None = None) -> dict[str, Any]:
        """
        Tell new and changed sources from unchanged ones.

        :param documents: Nodes of whole sources, in any order. They are not changed.
        :param report_missing: For this run instead of the component's.
        :returns: A dictionary with:
            - `documents`: the nodes of new and changed sources, in the same order. Their roots carry what the writer
              is to remember.
            - `unchanged`: number of sources left out.
            - `missing`: where asked for, names of sources in the store that are not among the given ones, sorted. A
              file that could not be read, or was not given this time, is among them as well as one that is gone: look
              before you hand them to a `HierarchyDeleter`.
        """
        return run_work(self._split(documents, report_missing), self.document_store)

    @component.output_types(documents=list[Document], unchanged=int, missing=list[str | int])
    async def run_async(self, documents: list[Document], report_missing: bool | None = None) -> dict[str, Any]:
        """
        Tell new and changed sources from unchanged ones without blocking the event loop.

        :param documents: Nodes of whole sources, in any order. They are not changed.
        :param report_missing: For this run instead of the component's.
        :returns: What `run` returns.
        """
        return await run_work_async(self._split(documents, report_missing), self.document_store)

    def _split(self, documents: list[Document], report_missing: bool | None) -> StoreWork[dict[str, Any]]:
        sources = group_by_source(documents, self.source_key)
        roots = {number: _roots(source) for number, source in enumerate(sources)}
        marks = {number: mark for number, found in roots.items() if (mark := self._mark(found)) is not None}
        wanted = [root.id for found in roots.values() for root in found]
        stored = yield from get_meta(self.document_store, wanted, [FINGERPRINT, STATE])
        unchanged: set[str] = set()
        signed: dict[str, Document] = {}
        left_out = 0
        for number, mark in marks.items():
            if all(is_committed(stored.get(root.id), mark) for root in roots[number]):
                left_out += 1
                unchanged.update(node.id for node in sources[number].nodes)
            else:
                for root in roots[number]:
                    signed[root.id] = replace(root, meta={**root.meta, FINGERPRINT: mark})
        missing = yield from self._missing(sources, self.report_missing if report_missing is None else report_missing)
        passed = [signed.get(node.id, node) for node in documents if node.id not in unchanged]
        return {"documents": passed, "unchanged": left_out, "missing": missing}

    def _mark(self, roots: list[Document]) -> str | None:
        try:
            return fingerprint(roots, self.version) if roots else None
        except UnstorableError:  # the writer tells
            return None

    def _missing(self, sources: list[Source], asked: bool) -> StoreWork[list[str | int]]:
        if not asked:
            return []
        given = {name for source in sources for name in (*source.keys, *source.roots)}
        stored = yield from find_sources(self.document_store, self.source_key)
        return [source.name for source in stored if source.name not in given]

    def to_dict(self) -> dict[str, Any]:
        """
        Serialise the component.

        :returns: Dictionary with the type and the init parameters.
        """
        return default_to_dict(
            self,
            document_store=self.document_store,
            source_key=self.source_key,
            version=self.version,
            report_missing=self.report_missing,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "UnchangedSourceFilter":
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


def _roots(source: Source) -> list[Document]:
    """The roots of a source's trees; none where it has something besides whole trees, and so has to pass."""
    roots = [node for node in source.nodes if is_root(node)]
    complete = {root.meta[TREE_ID] for root in roots} == source.trees
    return roots if complete and not source.loose else []
