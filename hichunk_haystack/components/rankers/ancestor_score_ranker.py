# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from haystack import Document, component, default_from_dict, default_to_dict
from haystack.document_stores.types import DocumentStore

from hichunk_haystack.context_vectors import REACH, ContextWeights, Vector, in_context, surroundings, unit
from hichunk_haystack.nodes import ANCESTORS, TREE_ID, leaf_id
from hichunk_haystack.reading import Reads, with_reads, with_reads_async


@component
class AncestorScoreRanker:
    """
    Ranks retrieved leaves anew by what they say and by what stands around them.

    A leaf's score becomes the similarity of the query to the mix of its own vector with those of the passages, sections
    and document above it and of its neighbours. It is the ranking that a `HierarchyEmbedder` bakes into the leaves, but
    decided at query time, so that the weights can be turned without indexing again. For that the vectors of the inner
    nodes must be in the store: index with `HierarchyEmbedder(..., context=False, inner="both")`.

    It can only reorder what the retriever found: hand it several times as many leaves as are needed. The store is read
    once per query, with vectors.

    ```python
    from haystack import Document
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    from hichunk_haystack.components.embedders import (
        HierarchyEmbedder,
        OfflineSentenceTransformersDocumentEmbedder,
        OfflineSentenceTransformersTextEmbedder,
    )
    from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
    from hichunk_haystack.components.rankers import AncestorScoreRanker

    text = "# Kiln\\n\\nFire it slowly. Then let it cool for a day.\\n\\n# Wheel\\n\\nCentre the clay first.\\n"
    nodes = MarkdownHierarchicalSplitter(leaf_tokens=12, min_leaf_tokens=1).run([Document(content=text)])["documents"]
    embedder = HierarchyEmbedder(OfflineSentenceTransformersDocumentEmbedder(), context=False, inner="both")
    store = InMemoryDocumentStore()
    store.write_documents(embedder.run(nodes)["documents"])

    query = OfflineSentenceTransformersTextEmbedder().run("How fast does the kiln cool?")["embedding"]
    leaves = [node for node in nodes if not node.meta["__children_ids"]]
    for leaf in AncestorScoreRanker(store).run(leaves, query)["documents"]:
        print(round(leaf.score, 2), leaf.meta["headings"])
    ```
    """

    __module__ = "hichunk_haystack.components.rankers"

    def __init__(
        self,
        document_store: DocumentStore,
        *,
        weights: Mapping[str, float] | bool = True,
        reading_tokens: int = 256,
        top_k: int | None = None,
    ) -> None:
        """
        Create the component.

        :param document_store: Where the nodes are, with vectors.
        :param weights: Weights of what stands around a leaf, beside 1 for the leaf itself: `passages`, `sections`,
            `document` and `neighbours`; what is not named counts 1.0.
        :param reading_tokens: What the embedding model reads at once, in tokens: nodes up to this length are passages.
        :param top_k: How many documents to return; all by default.
        :raises ValueError: If an option makes no sense; the message names it.
        """
        if reading_tokens < 1:
            msg = f"reading_tokens is {reading_tokens}; it must be at least 1 (256 for all-MiniLM-L6-v2)."
            raise ValueError(msg)
        self.document_store = document_store
        self.weights = weights
        self.reading_tokens = reading_tokens
        self.top_k = _check_top_k(top_k)
        self._weights = ContextWeights.of(weights)

    @component.output_types(documents=list[Document])
    def run(
        self, documents: list[Document], query_embedding: list[float], top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """
        Rank leaves.

        :param documents: Retrieved leaves. They are not changed. Documents whose vector neither they nor the store
            have keep their score, and stand behind the others in the order in which they came.
        :param query_embedding: The query's vector, of the same model.
        :param top_k: How many documents to return, instead of the component's.
        :returns: A dictionary with `documents`: best first, `score` being a cosine similarity.
        :raises ValueError: If the query's vector has another dimension, or `top_k` is below 1.
        """
        return with_reads(self._rank(documents, query_embedding, top_k), self.document_store, with_embeddings=True)

    @component.output_types(documents=list[Document])
    async def run_async(
        self, documents: list[Document], query_embedding: list[float], top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """
        Rank leaves without blocking the event loop.

        :param documents: Retrieved leaves. They are not changed.
        :param query_embedding: The query's vector, of the same model.
        :param top_k: How many documents to return, instead of the component's.
        :returns: What `run` returns.
        :raises ValueError: If the query's vector has another dimension, or `top_k` is below 1.
        """
        work = self._rank(documents, query_embedding, top_k)
        return await with_reads_async(work, self.document_store, with_embeddings=True)

    def _rank(
        self, documents: list[Document], query_embedding: list[float], top_k: int | None
    ) -> Reads[dict[str, list[Document]]]:
        most = _check_top_k(top_k) or self.top_k
        leaves = list({document.id: document for document in reversed(documents)}.values())[::-1]
        near = {leaf.id: _neighbours(leaf) for leaf in leaves}
        wanted = {
            key
            for leaf in leaves
            for key in (leaf.id, *(link["id"] for link in leaf.meta.get(ANCESTORS) or ()), *near[leaf.id])
        }
        known = {leaf.id: leaf for leaf in leaves if leaf.embedding is not None}
        read = yield sorted(wanted.difference(known))
        query = unit(np.asarray(query_embedding, dtype=np.float64))
        vectors = _vectors({**read, **known}, query)
        scored, rest = [], []
        for leaf in leaves:
            own = vectors.get(leaf.id)
            if own is None:
                rest.append(leaf)
                continue
            mixed = in_context(own, surroundings(leaf, self.reading_tokens, near[leaf.id]), vectors, self._weights)
            scored.append(replace(leaf, score=float(mixed @ query)))
        scored.sort(key=lambda leaf: leaf.score or 0.0, reverse=True)
        return {"documents": [*scored, *rest][:most]}

    def to_dict(self) -> dict[str, Any]:
        """
        Serialise the component.

        :returns: Dictionary with the type and the init parameters.
        """
        return default_to_dict(
            self,
            document_store=self.document_store,
            weights=dict(self.weights) if isinstance(self.weights, Mapping) else self.weights,
            reading_tokens=self.reading_tokens,
            top_k=self.top_k,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "AncestorScoreRanker":
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


def _neighbours(leaf: Document) -> list[str]:
    """Ids of the leaves before and behind, which follow from its own place; those that are not there are not found."""
    links = leaf.meta.get(ANCESTORS) or ()
    tree = leaf.meta.get(TREE_ID)
    if not links or tree is None or "first_leaf" not in links[0]:
        return []
    first, last = links[0]["first_leaf"], links[-1]["first_leaf"] + links[-1]["leaves"]
    own = next((place for place in range(first, first + links[0]["leaves"]) if leaf_id(tree, place) == leaf.id), None)
    if own is None:
        return []
    return [leaf_id(tree, place) for place in range(max(0, own - REACH), min(last, own + REACH + 1)) if place != own]


def _vectors(nodes: Mapping[str, Document], query: Vector) -> dict[str, Vector]:
    """Vectors of length 1 by id; one with NaN in it is none, or it would spoil those of all leaves around it."""
    vectors = {}
    for key, node in nodes.items():
        if node.embedding is None:
            continue
        vector = np.asarray(node.embedding, dtype=np.float64)
        if vector.shape != query.shape:
            msg = (
                f"The query's vector has {query.size} dimensions, that of node '{key}' has {vector.size}. "
                "Embed the query with the model that the documents were embedded with."
            )
            raise ValueError(msg)
        if np.isfinite(vector).all():
            vectors[key] = unit(vector)
    return vectors


def _check_top_k(top_k: int | None) -> int | None:
    if top_k is not None and top_k < 1:
        msg = f"top_k is {top_k}; it must be at least 1, or None for all."
        raise ValueError(msg)
    return top_k
