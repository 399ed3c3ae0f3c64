# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from typing import Any

from haystack import Document, component, default_from_dict
from haystack.document_stores.types import FilterPolicy
from haystack_integrations.components.retrievers.qdrant import QdrantEmbeddingRetriever
from qdrant_client.http import models

from hichunk_haystack.components.retrievers.leaves_only import for_leaves, has_inner_nodes


@component
class QdrantLeafRetriever(QdrantEmbeddingRetriever):
    """
    Haystack's `QdrantEmbeddingRetriever`, which can also be loaded from YAML with a `HierarchyQdrantDocumentStore`.

    Haystack's own always makes a `QdrantDocumentStore` out of the YAML and refuses any other; in Python it takes ours
    just as well, and all parameters and outputs are the same.

    Leaves are what it finds. As a rule inner nodes have no embeddings, or, with `inner_embeddings=True` of the store,
    have them apart. Where they have them among those of the leaves, it searches again with a filter.

    ```python
    from haystack import Document

    from hichunk_haystack.components.retrievers import QdrantLeafRetriever
    from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore

    store = HierarchyQdrantDocumentStore(location=":memory:", embedding_dim=2)
    store.write_documents([Document(content="Fire the kiln slowly.", embedding=[1.0, 0.0])])
    retriever = QdrantLeafRetriever(document_store=store, top_k=1)
    print(retriever.run(query_embedding=[1.0, 0.1])["documents"][0].content)  # Fire the kiln slowly.
    ```
    """

    __module__ = "hichunk_haystack.components.retrievers"

    @component.output_types(documents=list[Document])
    def run(
        self,
        query_embedding: list[float],
        filters: dict[str, Any] | models.Filter | None = None,
        top_k: int | None = None,
        scale_score: bool | None = None,
        return_embedding: bool | None = None,
        score_threshold: float | None = None,
        group_by: str | None = None,
        group_size: int | None = None,
    ) -> dict[str, list[Document]]:
        """
        Find leaves.

        :param query_embedding: The query's embedding.
        :param filters: A filter; how it goes with that of the constructor, `filter_policy` says.
        :param top_k: The most leaves, or groups.
        :param scale_score: Whether to bring scores between 0 and 1.
        :param return_embedding: Whether to return the embeddings too.
        :param score_threshold: The lowest score.
        :param group_by: Field of the payload to group by.
        :param group_size: The most leaves of a group.
        :returns: A dictionary with `documents`.
        :raises ValueError: If filters of Qdrant's own are to be merged.
        """
        asked = (top_k, scale_score, return_embedding, score_threshold, group_by, group_size)
        found = QdrantEmbeddingRetriever.run(self, query_embedding, filters, *asked)
        if has_inner_nodes(found["documents"]):
            again, narrowed = for_leaves(self, filters)
            found = QdrantEmbeddingRetriever.run(again, query_embedding, narrowed, *asked)
        return found

    @component.output_types(documents=list[Document])
    async def run_async(
        self,
        query_embedding: list[float],
        filters: dict[str, Any] | models.Filter | None = None,
        top_k: int | None = None,
        scale_score: bool | None = None,
        return_embedding: bool | None = None,
        score_threshold: float | None = None,
        group_by: str | None = None,
        group_size: int | None = None,
    ) -> dict[str, list[Document]]:
        """
        Find leaves without blocking.

        :param query_embedding: The query's embedding.
        :param filters: A filter; how it goes with that of the constructor, `filter_policy` says.
        :param top_k: The most leaves, or groups.
        :param scale_score: Whether to bring scores between 0 and 1.
        :param return_embedding: Whether to return the embeddings too.
        :param score_threshold: The lowest score.
        :param group_by: Field of the payload to group by.
        :param group_size: The most leaves of a group.
        :returns: A dictionary with `documents`.
        :raises ValueError: If filters of Qdrant's own are to be merged.
        """
        asked = (top_k, scale_score, return_embedding, score_threshold, group_by, group_size)
        found = await QdrantEmbeddingRetriever.run_async(self, query_embedding, filters, *asked)
        if has_inner_nodes(found["documents"]):
            again, narrowed = for_leaves(self, filters)
            found = await QdrantEmbeddingRetriever.run_async(again, query_embedding, narrowed, *asked)
        return found

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "QdrantLeafRetriever":
        """
        Revive the component, with whatever class of store the data names.

        :param data: What `to_dict` gave.
        :returns: The component.
        """
        parameters = dict(data["init_parameters"])
        if "filter_policy" in parameters:
            parameters["filter_policy"] = FilterPolicy.from_str(parameters["filter_policy"])
        return default_from_dict(cls, {**data, "init_parameters": parameters})
