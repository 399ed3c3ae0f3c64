# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import asyncio
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict, logging
from haystack.document_stores.types import FilterPolicy, apply_filter_policy

from hichunk_haystack.chains import Lengths, resolve_hits
from hichunk_haystack.collapsing import COVERAGE, MOST_TOKENS, collapse
from hichunk_haystack.components.retrievers.levels import LEAF, Level, inside_filter, level_filter, read_quotas
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from hichunk_haystack.leaf_texts import read_hits
from hichunk_haystack.reading import Reads, with_reads, with_reads_async
from hichunk_haystack.tokens import HuggingFaceTokenCounter

logger = logging.getLogger(__name__)

DEFAULT_QUOTAS: dict[str | int, int] = {"leaf": 40, "inner": 8}

# A search: its level, how many nodes, and Qdrant's filter.
_Search = tuple[Level, int, Any]
_Searches = Generator[list[_Search], list[list[Document]], list[Document]]


@component
class MultiLevelRetriever:
    """
    Searches leaves and inner nodes by their vectors, each level with a quota of its own.

    - Side by side (the default): each level is searched in the whole collection. Of a node and nodes below it that were
      both found, one comes out: the node, if what was found below it makes up `coverage` of its text, else what is
      below. So a bare title never displaces its paragraphs, nor a whole document its one fitting paragraph.
    - From coarse to fine (`coarse_to_fine=True`): nodes of each level are looked for inside of what was found on the
      level above, and the leaves inside the last are what comes out.

    Filters are Qdrant's work and are applied before the best are taken, at every level; so they should ask for meta
    that all nodes of a source share.

    The store must be made with `inner_embeddings=True`, in indexing and here, and inner nodes need embeddings: from a
    `HierarchyEmbedder`.

    ```python
    from dataclasses import replace

    from haystack import Document

    from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
    from hichunk_haystack.components.retrievers import MultiLevelRetriever
    from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore

    store = HierarchyQdrantDocumentStore(location=":memory:", embedding_dim=2, inner_embeddings=True)
    text = "# Kiln\\n\\nFire it slowly.\\n\\nLet it cool for a day.\\n\\n# Wheel\\n\\nCentre the clay.\\n"
    nodes = MarkdownHierarchicalSplitter(leaf_tokens=8, min_leaf_tokens=1).run([Document(content=text)])["documents"]
    vectors = [[1.0, 0.1] if "Kiln" in node.meta["headings"] else [0.1, 1.0] for node in nodes]  # of an embedder
    store.write_documents([replace(node, embedding=vector) for node, vector in zip(nodes, vectors)])

    retriever = MultiLevelRetriever(store, quotas={"inner": 1, "leaf": 10}, coarse_to_fine=True)
    for leaf in retriever.run(query_embedding=[1.0, 0.0])["documents"]:
        print(leaf.meta["headings"], repr(leaf.content))  # the two leaves on the kiln
    ```
    """

    __module__ = "hichunk_haystack.components.retrievers"

    def __init__(
        self,
        document_store: HierarchyQdrantDocumentStore,
        *,
        quotas: dict[str | int, int] | None = None,
        coarse_to_fine: bool = False,
        coverage: float = COVERAGE,
        max_collapse_tokens: int | None = MOST_TOKENS,
        filters: dict[str, Any] | None = None,
        filter_policy: str | FilterPolicy = FilterPolicy.REPLACE,
    ) -> None:
        """
        Create the component.

        :param document_store: Where leaves and inner nodes are, made with `inner_embeddings=True`.
        :param quotas: Level -> the most nodes to find there: `leaf`; `inner` for inner nodes of any level; or a level's
            number, 0 for the root's. By default 40 leaves and 8 inner nodes. In embedded mode `inner` is fast, and
            numbers cost a filter.
        :param coarse_to_fine: Whether each level is searched inside of what was found on the one above.
        :param coverage: Share of a node's text that must have been found below it for the node to stand for what was
            found; above 1 it never does. Without effect from coarse to fine.
        :param max_collapse_tokens: A node of more tokens never stands for what was found below it: it might not fit the
            budget of the merge behind, and would take along what was found exactly. `None`: no bound.
        :param filters: A filter for all queries.
        :param filter_policy: Whether a query's filter replaces that one or both must hold (`replace`, `merge`).
        :raises ValueError: If the store keeps no embeddings of inner nodes apart, or an option makes no sense.
        """
        if not isinstance(document_store, HierarchyQdrantDocumentStore) or not document_store.inner_embeddings:
            msg = (
                "document_store must be a HierarchyQdrantDocumentStore made with `inner_embeddings=True`, as only that "
                f"keeps the embeddings of inner nodes apart; this is a {type(document_store).__name__}."
            )
            raise ValueError(msg)
        if coverage <= 0:
            msg = f"coverage is {coverage}; it must be above 0 (0.5 is usual)."
            raise ValueError(msg)
        self.document_store = document_store
        self.quotas = DEFAULT_QUOTAS if quotas is None else quotas
        self.coarse_to_fine = coarse_to_fine
        self.coverage = coverage
        self.max_collapse_tokens = max_collapse_tokens
        self.filters = filters
        self.filter_policy = (
            filter_policy if isinstance(filter_policy, FilterPolicy) else FilterPolicy.from_str(filter_policy)
        )
        read_quotas(self.quotas, coarse_to_fine=coarse_to_fine)
        self._lengths = Lengths(HuggingFaceTokenCounter())
        self._told = False

    @component.output_types(documents=list[Document])
    def run(
        self,
        query_embedding: list[float],
        filters: dict[str, Any] | None = None,
        quotas: dict[str | int, int] | None = None,
    ) -> dict[str, list[Document]]:
        """
        Find nodes.

        :param query_embedding: The query's embedding.
        :param filters: A filter for this query.
        :param quotas: Quotas for this query.
        :returns: A dictionary with `documents`, the best first: nodes of which none lies in another.
        :raises ValueError: If the quotas make no sense.
        """
        work = self._searches(filters, quotas)
        searches = next(work)
        while True:
            found = [self._search(query_embedding, search) for search in searches]
            try:
                searches = work.send(found)
            except StopIteration as done:
                documents: list[Document] = done.value
                break
        if self.coarse_to_fine:
            return {"documents": documents}
        return {"documents": with_reads(self._collapsed(documents), self.document_store)}

    @component.output_types(documents=list[Document])
    async def run_async(
        self,
        query_embedding: list[float],
        filters: dict[str, Any] | None = None,
        quotas: dict[str | int, int] | None = None,
    ) -> dict[str, list[Document]]:
        """
        Find nodes without blocking; levels side by side are searched at once.

        :param query_embedding: The query's embedding.
        :param filters: A filter for this query.
        :param quotas: Quotas for this query.
        :returns: What `run` returns.
        :raises ValueError: If the quotas make no sense.
        """
        work = self._searches(filters, quotas)
        searches = next(work)
        while True:
            found = await asyncio.gather(*(self._search_async(query_embedding, search) for search in searches))
            try:
                searches = work.send(list(found))
            except StopIteration as done:
                documents: list[Document] = done.value
                break
        if self.coarse_to_fine:
            return {"documents": documents}
        return {"documents": await with_reads_async(self._collapsed(documents), self.document_store)}

    def _searches(self, filters: dict[str, Any] | None, quotas: dict[str | int, int] | None) -> _Searches:
        """What to search, step by step; it is sent what was found."""
        levels = read_quotas(self.quotas if quotas is None else quotas, coarse_to_fine=self.coarse_to_fine)
        asked = apply_filter_policy(self.filter_policy, self.filters, filters)
        if not self.coarse_to_fine:
            found = yield [(level, quota, level_filter(level, None, asked)) for level, quota in levels.items()]
            self._look_at(zip(levels, found, strict=True))
            return [document for documents in found for document in documents]
        steps: list[tuple[Level, list[str]]] = []
        within: list[str] | None = None
        for level, quota in levels.items():
            if level == LEAF:
                continue
            ((*documents,),) = yield [(level, quota, level_filter(level, within, asked))]
            self._look_at([(level, documents)])
            steps.append((level, [document.id for document in documents]))
            within = steps[-1][1] or within
        (leaves,) = yield [(LEAF, levels[LEAF], inside_filter(steps, asked))]
        return leaves

    def _search(self, query_embedding: list[float], search: _Search) -> list[Document]:
        level, quota, bounds = search
        if level == LEAF:
            return self.document_store._query_by_embedding(query_embedding, filters=bounds, top_k=quota)
        return self.document_store.query_inner_nodes(query_embedding, filters=bounds, top_k=quota)

    async def _search_async(self, query_embedding: list[float], search: _Search) -> list[Document]:
        level, quota, bounds = search
        store = self.document_store
        if level == LEAF:
            return await store._query_by_embedding_async(query_embedding, filters=bounds, top_k=quota)
        return await store.query_inner_nodes_async(query_embedding, filters=bounds, top_k=quota)

    def _look_at(self, found: Any) -> None:
        """Tell once when no inner node is found: as a rule none has an embedding."""
        empty = [level for level, documents in found if level != LEAF and not documents]
        if empty and not self._told:
            self._told = True
            logger.warning(
                "No inner node was found in collection '{index}' for {levels}. If that is not for the filter, inner "
                "nodes have no embeddings: put a HierarchyEmbedder into the indexing pipeline.",
                index=self.document_store.index,
                levels=", ".join(f"level {level}" if isinstance(level, int) else "any level" for level in empty),
            )

    def _collapsed(self, documents: Sequence[Document]) -> Reads[list[Document]]:
        # Where a writer has stored the text of leaves only, inner nodes get theirs from their leaves.
        documents, _ = yield from read_hits(documents)
        resolved = yield from resolve_hits(documents, self._lengths)
        by_id = {document.id: document for document in documents}
        left = collapse(resolved.hits, self.coverage, self.max_collapse_tokens)
        return [replace(by_id[hit.id], score=hit.score) for hit in left]

    def to_dict(self) -> dict[str, Any]:
        """
        Serialise the component.

        :returns: Dictionary with the type and the init parameters.
        """
        return default_to_dict(
            self,
            document_store=self.document_store,
            # Haystack and JSON know no keys but strings.
            quotas={str(level): quota for level, quota in self.quotas.items()},
            coarse_to_fine=self.coarse_to_fine,
            coverage=self.coverage,
            max_collapse_tokens=self.max_collapse_tokens,
            filters=self.filters,
            filter_policy=self.filter_policy.value,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "MultiLevelRetriever":
        """
        Revive the component.

        :param data: What `to_dict` gave.
        :returns: The component.
        """
        return default_from_dict(cls, data)

    def close(self) -> None:
        """Let go of the store."""
        self.document_store.close()

    async def close_async(self) -> None:
        """Let go of the store's asynchronous side."""
        await self.document_store.close_async()
