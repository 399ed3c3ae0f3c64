# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.document_stores.types import DocumentStore

from hichunk_haystack.commits import COMPLETE, STATE, SUPERSEDED, is_root
from hichunk_haystack.nodes import CHILDREN, PARENT, TREE_ID
from hichunk_haystack.sources import MOST_VALUES, TOP, as_source_name, of_sources, source_key_of
from hichunk_haystack.store_work import StoreWork, delete_by_filter, run_work, run_work_async, scan, set_meta
from hichunk_haystack.stored_sources import source_name


@component
class HierarchyDeleter:
    """
    Deletes sources from a document store: whole trees, never part of one.

    Sources are named as a `HierarchyWriter` knows them, by a meta field (`source_key`) or by their root's id; or a
    filter finds documents, and the trees that these belong to are deleted. Flat chunks are deleted as well.

    Deleting what is not there deletes nothing and is no error, so a deletion that was interrupted is run again. Until
    it has been, queries go on with what is left, and an `UnchangedSourceFilter` takes the sources for changed.

    ```python
    from haystack import Document
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
    from hichunk_haystack.components.writers import HierarchyDeleter, HierarchyWriter

    store = InMemoryDocumentStore()
    pages = [Document(content=f"# {it}\\n\\nText.\\n", meta={"file_path": f"{it}.md"}) for it in ("kiln", "wheel")]
    HierarchyWriter(store, progress_bar=False).run(MarkdownHierarchicalSplitter().run(pages)["documents"])
    deleter = HierarchyDeleter(store)
    print(deleter.run(sources=["kiln.md", "glaze.md"]))  # {'sources': 1, 'deleted': 1}
    print(deleter.run(filters={"field": "meta.file_path", "operator": "==", "value": "wheel.md"}))  # the same
    ```
    """

    __module__ = "hichunk_haystack.components.writers"

    def __init__(self, document_store: DocumentStore, *, source_key: str = "file_path") -> None:
        """
        Create the component.

        :param document_store: Where to delete.
        :param source_key: Name of the meta field that identifies a source, as in the writer.
        :raises ValueError: If `source_key` is empty.
        """
        if not source_key:
            msg = "source_key is empty; name the meta field that identifies a source, such as 'file_path'."
            raise ValueError(msg)
        self.document_store = document_store
        self.source_key = source_key

    @component.output_types(sources=int, deleted=int)
    def run(
        self, sources: list[str | int | Path] | None = None, filters: dict[str, Any] | None = None
    ) -> dict[str, int]:
        """
        Delete sources.

        :param sources: Their names: values of the meta field `source_key`, or ids of roots. An empty list deletes
            nothing.
        :param filters: Instead of names, a Haystack filter: the trees of all documents that match are deleted.
            Documents without a tree of ours are deleted with their source where they name it in the field `source_key`,
            else alone.
        :returns: A dictionary with:
            - `sources`: how many sources were found.
            - `deleted`: how many documents were deleted.
        :raises ValueError: If neither or both are given, the filter is empty, or a name is neither a text nor a path
            nor a whole number.
        """
        return run_work(self._delete(sources, filters), self.document_store)

    @component.output_types(sources=int, deleted=int)
    async def run_async(
        self, sources: list[str | int | Path] | None = None, filters: dict[str, Any] | None = None
    ) -> dict[str, int]:
        """
        Delete sources without blocking the event loop.

        :param sources: As for `run`.
        :param filters: As for `run`.
        :returns: What `run` returns.
        :raises ValueError: As for `run`.
        """
        return await run_work_async(self._delete(sources, filters), self.document_store)

    def _delete(
        self, sources: Sequence[str | int | Path] | None, filters: dict[str, Any] | None
    ) -> StoreWork[dict[str, int]]:
        counts = {"sources": 0, "deleted": 0}
        if sources is not None and filters is None:
            if isinstance(sources, str):
                msg = f"sources is the text '{sources}'; pass a list of names, such as ['{sources}']."
                raise ValueError(msg)
            names: dict[str | int, None] = {}
            for given in sources:
                name = as_source_name(given)
                # A store may take None for "has no such field", and True for 1.
                if name is None:
                    msg = f"sources holds {given!r}; the names of sources are texts, paths or whole numbers."
                    raise ValueError(msg)
                names[name] = None
            wanted = [self._named(part) for part in _parts(list(names))]
        elif filters and sources is None:
            wanted = yield from self._matching(filters)
        else:
            msg = (
                "HierarchyDeleter takes either `sources`, a list of names, or `filters`, which must not be empty; "
                f"got sources={sources!r} and filters={filters!r}. To empty a store, call its delete_all_documents."
            )
            raise ValueError(msg)
        for part in wanted:
            counts["sources"] += yield from self._take_back_marks(part)
        for part in wanted:
            counts["deleted"] += yield from delete_by_filter(self.document_store, part)
        return counts

    def _named(self, names: Sequence[str | int]) -> dict[str, Any]:
        return of_sources(names, [name for name in names if isinstance(name, str)], self.source_key)

    def _matching(self, filters: dict[str, Any]) -> StoreWork[list[dict[str, Any]]]:
        """Filters for the trees of what matches a filter."""
        roots: dict[str, None] = {}
        keys: dict[str | int, None] = {}
        alone: dict[str, None] = {}

        def take(document: Document) -> None:
            key = source_key_of(document, self.source_key)
            if document.meta.get(TREE_ID) is not None:
                roots[document.meta["source_id"]] = None
            elif key is not None:
                keys[key] = None
            else:
                alone[document.id] = None

        yield from scan(self.document_store, filters, [self.source_key, "source_id", TREE_ID], take)
        return [
            *(of_sources([], part, self.source_key) for part in _parts(list(roots))),
            *(of_sources(part, [], self.source_key) for part in _parts(list(keys))),
            *({"field": "id", "operator": "in", "value": part} for part in _parts(list(alone))),
        ]

    def _take_back_marks(self, theirs: dict[str, Any]) -> StoreWork[int]:
        """Count the sources, and see to it that none is taken for complete while it is being deleted."""
        names: set[str | int] = set()
        complete: list[str] = []

        def take(document: Document) -> None:
            name = source_name(document, self.source_key)
            names.add(document.id if name is None else name)
            if is_root(document) and document.meta.get(STATE) == COMPLETE:
                complete.append(document.id)

        fields = [self.source_key, "source_id", TREE_ID, PARENT, CHILDREN, STATE]
        yield from scan(self.document_store, {"operator": "AND", "conditions": [TOP, theirs]}, fields, take)
        yield from set_meta(self.document_store, complete, {STATE: SUPERSEDED})
        return len(names)

    def to_dict(self) -> dict[str, Any]:
        """
        Serialise the component.

        :returns: Dictionary with the type and the init parameters.
        """
        return default_to_dict(self, document_store=self.document_store, source_key=self.source_key)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "HierarchyDeleter":
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


def _parts(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(values), MOST_VALUES):
        yield values[start : start + MOST_VALUES]
