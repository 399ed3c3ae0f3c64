# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Looks for trees that are not whole in a document store, and repairs it on request."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from sys import intern
from typing import Any, NamedTuple

from haystack import Document
from haystack.document_stores.types import DocumentStore

from hichunk_haystack.commits import COMPLETE, FINGERPRINT, STATE, SUPERSEDED
from hichunk_haystack.front_matter import FRONT_MATTER, is_searched
from hichunk_haystack.nodes import CHILDREN, LEVEL, PARENT, TREE_ID
from hichunk_haystack.store_work import StoreCall, StoreWork, run_work, scan
from hichunk_haystack.stored_sources import source_name

# Documents of one call that deletes.
_MOST_IDS = 1000


@dataclass
class IntegrityReport:
    """
    What a store holds, and what is wrong with it. Lists are sorted.

    :param documents: How many documents there are.
    :param leaves: How many of them are leaves, or belong to no tree.
    :param sources: How many sources they are of.
    :param orphans: Ids of nodes whose parent is not in the store, or is of another version of the source.
    :param missing_parents: Ids of those parents.
    :param missing_children: Ids of nodes that their parent names, but that are not there.
    :param doubled: Sources with two versions: trees of two runs, or a tree beside flat chunks.
    :param unfinished: Sources with a tree that is not marked as complete: a run was interrupted, or the tree was not
        written by a `HierarchyWriter` that marks them, or not as a whole.
    :param without_vector: Ids of leaves that no vector search finds.
    :param wrong_size: Ids of documents whose vector has not `embedding_dim` numbers.
    :param embedding_dim: The right size; `None` where there is no vector.
    :param vectors_checked: `False` where it was not asked for, or the store does not give vectors away.
    """

    documents: int = 0
    leaves: int = 0
    sources: int = 0
    orphans: list[str] = field(default_factory=list)
    missing_parents: list[str] = field(default_factory=list)
    missing_children: list[str] = field(default_factory=list)
    doubled: list[str | int] = field(default_factory=list)
    unfinished: list[str | int] = field(default_factory=list)
    without_vector: list[str] = field(default_factory=list)
    wrong_size: list[str] = field(default_factory=list)
    embedding_dim: int | None = None
    vectors_checked: bool = True

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not (
            self.orphans or self.missing_children or self.doubled or self.unfinished or self.without_vector
            or self.wrong_size
        )  # fmt: skip


@dataclass
class RepairReport:
    """
    What was repaired.

    :param found: What was wrong before.
    :param removed: How many nodes were removed.
    :param index_again: Names of the sources that have to be indexed again, sorted: something of them is missing, or
        nobody knows whether it is.
    """

    found: IntegrityReport
    removed: int
    index_again: list[str | int]


def check(
    document_store: DocumentStore,
    *,
    source_key: str = "file_path",
    embedding_dim: int | None = None,
    vectors: bool = True,
) -> IntegrityReport:
    """
    Look for trees that are not whole.

    All documents are read once, page by page and without their texts where the store knows how; about half a kilobyte
    of memory is kept for each. Not while something is being written: a tree on its way looks unfinished.

    ```python
    from haystack import Document
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
    from hichunk_haystack.integrity import check, repair

    text = "# Kiln\\n\\nFire it slowly.\\n\\n# Wheel\\n\\nCentre the clay.\\n"
    page = Document(content=text, meta={"file_path": "a.md"})
    root, *leaves = MarkdownHierarchicalSplitter(leaf_tokens=12, min_leaf_tokens=1).run([page])["documents"]
    store = InMemoryDocumentStore()
    store.write_documents(leaves)
    print(check(store).missing_parents == [root.id])  # True
    print(repair(store).index_again, store.count_documents())  # ['a.md'] 0
    ```

    :param document_store: The store.
    :param source_key: Name of the meta field that identifies a source, as in the writer.
    :param embedding_dim: How many numbers a vector must have. Default: what the store is set to, else what most have.
    :param vectors: Whether to look at vectors, which takes the most time.
    :returns: What is wrong.
    """
    return _survey(document_store, source_key, embedding_dim, vectors).report()


def repair(
    document_store: DocumentStore,
    *,
    source_key: str = "file_path",
    embedding_dim: int | None = None,
    vectors: bool = True,
) -> RepairReport:
    """
    Remove what is left over and what is not whole, and tell which sources have to be indexed again.

    Of a source with two versions the one that is whole stays, and of two that are whole the one that is marked as
    complete. Trees of which a node is missing are removed. What belongs to no tree of ours is never removed, and
    neither is a leaf for its vector's sake. Not while something is being written.

    :param document_store: The store.
    :param source_key: Name of the meta field that identifies a source, as in the writer.
    :param embedding_dim: As for `check`.
    :param vectors: As for `check`.
    :returns: What was wrong, and what was done about it.
    """
    survey = _survey(document_store, source_key, embedding_dim, vectors)
    found = survey.report()
    kept, index_again = survey.choose(found)
    ids = [node_id for node_id, node in survey.nodes.items() if node.tree is not None and node.tree not in kept]

    def remove() -> StoreWork[None]:
        for start in range(0, len(ids), _MOST_IDS):
            yield StoreCall("delete_documents", {"document_ids": ids[start : start + _MOST_IDS]})

    run_work(remove(), document_store)
    return RepairReport(found, len(ids), index_again)


class _Node(NamedTuple):
    """What is remembered of a document."""

    tree: str | None
    parent: str | None
    source: str | int | None


@dataclass
class _Root:
    """What is remembered of the root of a tree of ours."""

    id: str
    state: str | None
    fingerprint: str | None


@dataclass
class _Survey:
    """All documents of a store, as far as their place in a tree goes."""

    nodes: dict[str, _Node] = field(default_factory=dict)
    roots: dict[str, _Root] = field(default_factory=dict)
    """By tree."""
    named: dict[str, str] = field(default_factory=dict)
    """Child -> parent, as parents have it."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Of vectors that are not of the size that is usual."""
    size_counts: Counter[int] = field(default_factory=Counter)
    usual: int | None = None
    without_vector: list[str] = field(default_factory=list)
    leaves: int = 0
    vectors: bool = True

    def take(self, document: Document, source_key: str) -> None:
        """Remember a document."""
        meta = document.meta
        tree, parent, children = meta.get(TREE_ID), meta.get(PARENT), meta.get(CHILDREN) or ()
        name = source_name(document, source_key)
        if isinstance(name, str):
            name = intern(name)
        self.nodes[document.id] = _Node(tree and intern(tree), parent and intern(parent), name)
        if tree is not None and parent is None:
            self.roots[tree] = _Root(document.id, meta.get(STATE), meta.get(FINGERPRINT))
        for child in children:
            self.named[child] = document.id
        self.leaves += not children
        if not self.vectors:
            return
        size = 0 if document.embedding is None else len(document.embedding)
        if size:
            self.size_counts[size] += 1
            self.usual = self.usual or size
            if size != self.usual:
                self.sizes[document.id] = size
        elif is_searched(document) and document.sparse_embedding is None:
            self.without_vector.append(document.id)

    def orphans(self) -> Iterator[tuple[str, str]]:
        """Nodes and their parents, where the parent is not in the store or of another tree."""
        for node_id, node in self.nodes.items():
            if node.parent is not None:
                parent = self.nodes.get(node.parent)
                if parent is None or parent.tree != node.tree:
                    yield node_id, node.parent
            elif node.tree is not None and self.roots[node.tree].id != node_id:
                yield node_id, self.roots[node.tree].id

    def missing_children(self) -> Iterator[tuple[str, str]]:
        """Nodes that are named as children but not in the store, or of another tree, and their parents."""
        for child, parent in self.named.items():
            node = self.nodes.get(child)
            if node is None or node.tree != self.nodes[parent].tree:
                yield child, parent

    def versions(self) -> dict[str | int, dict[str | None, list[str]]]:
        """Source -> fingerprint -> trees; what was written in one call has the same fingerprint."""
        found: dict[str | int, dict[str | None, list[str]]] = {}
        for tree, root in self.roots.items():
            source = self.nodes[root.id].source
            if source is not None:
                found.setdefault(source, {}).setdefault(root.fingerprint, []).append(tree)
        return found

    def flat(self) -> set[str | int]:
        """Sources that have documents without a tree of ours."""
        return {node.source for node in self.nodes.values() if node.tree is None and node.source is not None}

    def report(self) -> IntegrityReport:
        """Tell what is wrong."""
        orphans = list(self.orphans())
        versions, flat = self.versions(), self.flat()
        doubled = [name for name, found in versions.items() if len(found) > 1 or name in flat]
        unfinished = {self.nodes[root.id].source for root in self.roots.values() if root.state != COMPLETE}
        return IntegrityReport(
            documents=len(self.nodes),
            leaves=self.leaves,
            sources=len({node.source for node in self.nodes.values()} - {None}),
            orphans=sorted(node_id for node_id, _ in orphans),
            missing_parents=sorted({parent for _, parent in orphans if parent not in self.nodes}),
            missing_children=sorted(child for child, _ in self.missing_children() if child not in self.nodes),
            doubled=sorted(doubled, key=str),
            unfinished=sorted((name for name in unfinished if name is not None), key=str),
            without_vector=sorted(self.without_vector),
            wrong_size=sorted(self.sizes),
            embedding_dim=self.usual if self.size_counts else None,
            vectors_checked=self.vectors,
        )

    def choose(self, found: IntegrityReport) -> tuple[set[str], list[str | int]]:
        """Which trees stay, and which sources have to be indexed again."""
        broken = {self.nodes[node_id].tree for node_id, _ in self.orphans()}
        broken |= {self.nodes[parent].tree for _, parent in self.missing_children()}
        kept: set[str] = set()
        # Trees without a root go.
        again = {node.source for node in self.nodes.values() if node.tree is not None and node.tree not in self.roots}
        for source, versions in self.versions().items():
            best = versions[max(versions, key=lambda mark: self._rank(mark, versions[mark], broken))]
            kept.update(tree for tree in best if tree not in broken)
            if any(tree in broken or self.roots[tree].state != COMPLETE for tree in best):
                again.add(source)
            else:
                # Leaves of an older version, whose root is gone or belongs to the newer one, are no loss.
                again.discard(source)
        again |= {self.nodes[node_id].source for node_id in (*found.without_vector, *found.wrong_size)}
        again |= set(found.doubled) & self.flat()
        return kept, sorted((name for name in again if name is not None), key=str)

    def _rank(self, mark: str | None, trees: list[str], broken: set[str | None]) -> tuple[Any, ...]:
        states = {self.roots[tree].state for tree in trees}
        return not broken.intersection(trees), states == {COMPLETE}, SUPERSEDED not in states, mark or ""


def _survey(document_store: DocumentStore, source_key: str, embedding_dim: int | None, vectors: bool) -> _Survey:
    dim = getattr(document_store, "embedding_dim", None) if embedding_dim is None else embedding_dim
    pages = hasattr(document_store, "get_nodes_page")
    given = pages or getattr(document_store, "return_embedding", True)
    fields = [source_key, "source_id", LEVEL, PARENT, CHILDREN, TREE_ID, STATE, FINGERPRINT, FRONT_MATTER]

    def survey(usual: int | None) -> _Survey:
        result = _Survey(usual=usual, vectors=vectors and bool(given))
        run_work(
            scan(document_store, None, fields, lambda each: result.take(each, source_key), with_embeddings=vectors),
            document_store,
        )
        return result

    result = survey(dim)
    if dim is None and result.size_counts and result.size_counts.most_common(1)[0][0] != result.usual:
        # The first one was of the wrong size.
        return survey(result.size_counts.most_common(1)[0][0])
    return result
