# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from typing import Any

from haystack import Document
from haystack_integrations.document_stores.qdrant.document_store import QdrantStoreError
from qdrant_client.http import models as rest

from hichunk_haystack.nodes import ANCESTORS

from ._filters import compact_filter
from ._level_vectors import INNER_VECTORS_NAME
from ._maintained_store import MaintainedQdrantDocumentStore


class LevelQdrantDocumentStore(MaintainedQdrantDocumentStore):
    """The part of the store that keeps embeddings of inner nodes and searches them."""

    inner_embeddings: bool

    def query_inner_nodes(
        self,
        query_embedding: list[float],
        *,
        filters: dict[str, Any] | rest.Filter | None = None,
        top_k: int = 10,
        return_embedding: bool = False,
    ) -> list[Document]:
        """
        Searches inner nodes by their embeddings.

        :param query_embedding: The query's embedding.
        :param filters: A Haystack filter, or one of Qdrant's own. Qdrant applies it before it takes the best.
        :param top_k: The most nodes.
        :param return_embedding: Whether to return the embeddings too.
        :returns: The nodes, the most similar first.
        :raises QdrantStoreError: If the store was made without `inner_embeddings`, or the query does not fit it.
        """
        self._check_inner()
        self._initialize_client()
        assert self._client is not None
        answer = self._client.query_points(
            collection_name=self.index,
            query=query_embedding,
            using=INNER_VECTORS_NAME,
            query_filter=compact_filter(filters),
            limit=top_k,
            with_payload=True,
            with_vectors=return_embedding,
        )
        return self._process_query_point_results(answer.points)

    async def query_inner_nodes_async(
        self,
        query_embedding: list[float],
        *,
        filters: dict[str, Any] | rest.Filter | None = None,
        top_k: int = 10,
        return_embedding: bool = False,
    ) -> list[Document]:
        """
        Does the same for asynchronous callers.

        :param query_embedding: The query's embedding.
        :param filters: A Haystack filter, or one of Qdrant's own. Qdrant applies it before it takes the best.
        :param top_k: The most nodes.
        :param return_embedding: Whether to return the embeddings too.
        :returns: The nodes, the most similar first.
        :raises QdrantStoreError: If the store was made without `inner_embeddings`, or the query does not fit it.
        """
        self._check_inner()
        await self._initialize_async_client()
        assert self._async_client is not None
        answer = await self._async_client.query_points(
            collection_name=self.index,
            query=query_embedding,
            using=INNER_VECTORS_NAME,
            query_filter=compact_filter(filters),
            limit=top_k,
            with_payload=True,
            with_vectors=return_embedding,
        )
        return self._process_query_point_results(answer.points)

    def _check_inner(self) -> None:
        if not self.inner_embeddings:
            msg = (
                f"The store of collection '{self.index}' keeps no embeddings of inner nodes apart: make it with "
                "`inner_embeddings=True`, in indexing and in querying."
            )
            raise QdrantStoreError(msg)

    # -- the collection

    def _default_payload_indexes(self) -> tuple[dict[str, Any], ...]:
        above = {"field_name": f"meta.{ANCESTORS}[].id", "field_schema": "keyword"}
        return (*super()._default_payload_indexes(), *([above] if self.inner_embeddings else []))

    def _prepare_collection_config(
        self,
        embedding_dim: int,
        distance: rest.Distance,
        on_disk: bool | None = None,
        use_sparse_embeddings: bool | None = None,
        sparse_idf: bool = False,
    ) -> Any:
        vectors, sparse_vectors = super()._prepare_collection_config(
            embedding_dim, distance, on_disk, use_sparse_embeddings, sparse_idf
        )
        if self.inner_embeddings and isinstance(vectors, dict):
            (dense,) = vectors.values()
            vectors = {**vectors, INNER_VECTORS_NAME: dense}
        return vectors, sparse_vectors

    def _validate_collection_compatibility(
        self, collection_name: str, collection_info: rest.CollectionInfo, distance: rest.Distance, embedding_dim: int
    ) -> None:
        super()._validate_collection_compatibility(collection_name, collection_info, distance, embedding_dim)
        vectors = collection_info.config.params.vectors
        there = isinstance(vectors, dict) and INNER_VECTORS_NAME in vectors
        if there != self.inner_embeddings:
            state = ("with", "set `inner_embeddings=True`") if there else ("without", "set `inner_embeddings=False`")
            msg = (
                f"Collection '{collection_name}' was made {state[0]} a place for embeddings of inner nodes: "
                f"{state[1]}, use another `index`, or set `recreate_index=True` to lose what is in this one."
            )
            raise QdrantStoreError(msg)
