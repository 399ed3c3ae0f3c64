# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Which sources a document store holds."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from haystack import Document
from haystack.document_stores.types import DocumentStore

from hichunk_haystack.commits import COMPLETE, FINGERPRINT, LEAVES, STATE, is_root
from hichunk_haystack.nodes import CHILDREN, LEVEL, PARENT, TREE_ID
from hichunk_haystack.sources import TOP, source_id_of, source_key_of
from hichunk_haystack.store_work import StoreWork, run_work, run_work_async, scan

_FIELDS = ("source_id", "token_count", LEVEL, PARENT, TREE_ID, FINGERPRINT, STATE, LEAVES)


@dataclass
class StoredSource:
    """
    A source as it is in a store.

    :param name: Its value of the meta field that identifies sources, else its root's id.
    :param roots: Ids of its trees' roots; empty for flat chunks.
    :param leaves: How many leaves its trees have, flat chunks among them; `None` where a tree does not say.
    :param tokens: Length of its trees in tokens; `None` where a tree does not say.
    :param complete: Whether all of it was written, and nothing older is left.
    """

    name: str | int
    roots: list[str] = field(default_factory=list)
    leaves: int | None = 0
    tokens: int | None = 0
    complete: bool = True


def list_sources(document_store: DocumentStore, source_key: str = "file_path") -> list[StoredSource]:
    """
    List the sources that a store holds.

    Only roots and flat documents are read, without their texts and page by page where the store knows how. Documents
    that name no source (neither in the field nor by a `source_id`) are left out, and so are trees without a root:
    `hichunk_haystack.integrity` finds them.

    ```python
    from haystack import Document
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
    from hichunk_haystack.components.writers import HierarchyWriter
    from hichunk_haystack.stored_sources import list_sources

    store = InMemoryDocumentStore()
    page = Document(content="# Kiln\\n\\nFire it slowly.\\n", meta={"file_path": "kiln.md"})
    HierarchyWriter(store, progress_bar=False).run(MarkdownHierarchicalSplitter().run([page])["documents"])
    source, = list_sources(store)
    print(source.name, source.leaves, source.complete)  # kiln.md 1 True
    ```

    :param document_store: The store.
    :param source_key: Name of the meta field that identifies a source.
    :returns: The sources, sorted by name.
    """
    return run_work(find_sources(document_store, source_key), document_store)


async def list_sources_async(document_store: DocumentStore, source_key: str = "file_path") -> list[StoredSource]:
    """
    List the sources that a store holds, without blocking the event loop.

    :param document_store: The store.
    :param source_key: Name of the meta field that identifies a source.
    :returns: The sources, sorted by name.
    """
    return await run_work_async(find_sources(document_store, source_key), document_store)


def find_sources(document_store: DocumentStore, source_key: str) -> StoreWork[list[StoredSource]]:
    """
    Do what `list_sources` does, as work.

    :param document_store: The store.
    :param source_key: Name of the meta field that identifies a source.
    :returns: Work that returns the sources, sorted by name.
    """
    found: dict[str | int, list[Document]] = {}

    def take(document: Document) -> None:
        name = source_name(document, source_key)
        if name is not None:
            found.setdefault(name, []).append(Document(id=document.id, meta=document.meta))

    yield from scan(document_store, TOP, [*_FIELDS, CHILDREN, source_key], take)
    return [_source(name, found[name]) for name in sorted(found, key=lambda name: (str(name), isinstance(name, int)))]


def source_name(document: Document, source_key: str) -> str | int | None:
    """
    Name the source of a node, as `StoredSource.name` does.

    :param document: A node.
    :param source_key: Name of the meta field that identifies a source.
    :returns: The value of that field, else the root's id, else `None`.
    """
    key = source_key_of(document, source_key)
    return source_id_of(document) if key is None else key


def _source(name: str | int, documents: Iterable[Document]) -> StoredSource:
    source = StoredSource(name)
    versions: set[str | None] = set()
    for document in documents:
        if not is_root(document):
            leaves = None if document.meta.get(CHILDREN) else 1
            source.leaves, source.tokens = _add(source.leaves, leaves), _add(source.tokens, _tokens(document))
            versions.add("")
            continue
        source.roots.append(document.id)
        source.leaves = _add(source.leaves, document.meta.get(LEAVES))
        source.tokens = _add(source.tokens, _tokens(document))
        source.complete &= document.meta.get(STATE) == COMPLETE
        versions.add(document.meta.get(FINGERPRINT))
    source.complete &= len(versions) == 1
    return source


def _tokens(document: Document) -> int | None:
    tokens = document.meta.get("token_count")
    return tokens if isinstance(tokens, int) else None


def _add(total: int | None, more: int | None) -> int | None:
    return None if total is None or more is None else total + more
