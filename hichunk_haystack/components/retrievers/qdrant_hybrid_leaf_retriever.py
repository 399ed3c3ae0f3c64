# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from typing import Any

from haystack import Document, component, default_from_dict
from haystack.dataclasses import SparseEmbedding
from haystack.document_stores.types import FilterPolicy
from haystack_integrations.components.retrievers.qdrant import QdrantHybridRetriever
from qdrant_client.http import models

from hichunk_haystack.components.retrievers.leaves_only import for_leaves, has_inner_nodes


@component
class QdrantHybridLeafRetriever(QdrantHybridRetriever):
    """
    Haystack's `QdrantHybridRetriever`, which can also be loaded from YAML with a `HierarchyQdrantDocumentStore`.

    It searches leaves by their dense and by their sparse vectors, each for `top_k`, and has Qdrant fuse the two lists
    by rank (RRF). With the stock store either list ends after 10, whatever `top_k`; ours sees to that.

    Scores are those of the fusion: below 1, and good for comparing the hits of one query only.

    ```python
    from haystack import Document

    from hichunk_haystack.components.embedders import Bm25DocumentEmbedder, Bm25TextEmbedder
    from hichunk_haystack.components.retrievers import QdrantHybridLeafRetriever
    from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore

    store = HierarchyQdrantDocumentStore(
        location=":memory:", embedding_dim=2, use_sparse_embeddings=True, sparse_idf=True
    )
    leaves = [
        Document(content="Fire the kiln slowly.", embedding=[1.0, 0.0]),
        Document(content="E1047: call the service.", embedding=[0.0, 1.0]),
    ]
    store.write_documents(Bm25DocumentEmbedder().run(leaves)["documents"])
    words = Bm25TextEmbedder().run("What does E1047 mean?")["sparse_embedding"]
    retriever = QdrantHybridLeafRetriever(document_store=store, top_k=2)
    print(retriever.run(query_embedding=[0.5, 0.5], query_sparse_embedding=words)["documents"][0].content)
    ```
    """

    __module__ = "hichunk_haystack.components.retrievers"

    @component.output_types(documents=list[Document])
    def run(
        self,
        query_embedding: list[float],
        query_sparse_embedding: SparseEmbedding,
        filters: dict[str, Any] | models.Filter | None = None,
        top_k: int | None = None,
        return_embedding: bool | None = None,
        score_threshold: float | None = None,
        group_by: str | None = None,
        group_size: int | None = None,
        rrf_k: int | None = None,
        rrf_weights: list[float] | None = None,
    ) -> dict[str, list[Document]]:
        """
        Find leaves.

        :param query_embedding: The query's dense embedding.
        :param query_sparse_embedding: The query's sparse embedding.
        :param filters: A filter; how it goes with that of the constructor, `filter_policy` says.
        :param top_k: The most leaves, or groups.
        :param return_embedding: Whether to return the embeddings too.
        :param score_threshold: The lowest score, of the fusion.
        :param group_by: Field of the payload to group by.
        :param group_size: The most leaves of a group.
        :param rrf_k: The constant of the fusion.
        :param rrf_weights: Weights of the sparse and the dense list.
        :returns: A dictionary with `documents`.
        :raises ValueError: If filters of Qdrant's own are to be merged.
        """
        asked = (top_k, return_embedding, score_threshold, group_by, group_size, rrf_k, rrf_weights)
        search = QdrantHybridRetriever.run
        found = search(self, query_embedding, query_sparse_embedding, filters, *asked)
        if has_inner_nodes(found["documents"]):
            again, narrowed = for_leaves(self, filters)
            found = search(again, query_embedding, query_sparse_embedding, narrowed, *asked)
        return found

    @component.output_types(documents=list[Document])
    async def run_async(
        self,
        query_embedding: list[float],
        query_sparse_embedding: SparseEmbedding,
        filters: dict[str, Any] | models.Filter | None = None,
        top_k: int | None = None,
        return_embedding: bool | None = None,
        score_threshold: float | None = None,
        group_by: str | None = None,
        group_size: int | None = None,
        rrf_k: int | None = None,
        rrf_weights: list[float] | None = None,
    ) -> dict[str, list[Document]]:
        """
        Find leaves without blocking.

        :param query_embedding: The query's dense embedding.
        :param query_sparse_embedding: The query's sparse embedding.
        :param filters: A filter; how it goes with that of the constructor, `filter_policy` says.
        :param top_k: The most leaves, or groups.
        :param return_embedding: Whether to return the embeddings too.
        :param score_threshold: The lowest score, of the fusion.
        :param group_by: Field of the payload to group by.
        :param group_size: The most leaves of a group.
        :param rrf_k: The constant of the fusion.
        :param rrf_weights: Weights of the sparse and the dense list.
        :returns: A dictionary with `documents`.
        :raises ValueError: If filters of Qdrant's own are to be merged.
        """
        asked = (top_k, return_embedding, score_threshold, group_by, group_size, rrf_k, rrf_weights)
        search = QdrantHybridRetriever.run_async
        found = await search(self, query_embedding, query_sparse_embedding, filters, *asked)
        if has_inner_nodes(found["documents"]):
            again, narrowed = for_leaves(self, filters)
            found = await search(again, query_embedding, query_sparse_embedding, narrowed, *asked)
        return found

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "QdrantHybridLeafRetriever":
        """
        Revive the component, with whatever class of store the data names.

        :param data: What `to_dict` gave.
        :returns: The component.
        """
        parameters = dict(data["init_parameters"])
        if "filter_policy" in parameters:
            parameters["filter_policy"] = FilterPolicy.from_str(parameters["filter_policy"])
        return default_from_dict(cls, {**data, "init_parameters": parameters})
