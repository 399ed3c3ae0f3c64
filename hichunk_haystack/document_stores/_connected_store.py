# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import asyncio
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from haystack import logging
from haystack_integrations.document_stores.qdrant import QdrantDocumentStore
from haystack_integrations.document_stores.qdrant.converters import DENSE_VECTORS_NAME
from haystack_integrations.document_stores.qdrant.document_store import QdrantStoreError
from qdrant_client import AsyncQdrantClient, QdrantClient
from qdrant_client.http import models as rest

from ._connections import Connection, connect
from ._shared_places import SharedPlace, renew_on_fork
from ._store_clients import AsyncStoreClient, StoreClient

logger = logging.getLogger(__name__)

# What our own components filter on. A server may refuse to filter on a field that has no index. Haystack's filters on
# a document's id look at "id" in the payload, as the point's own id is another one.
DEFAULT_PAYLOAD_INDEXES: tuple[dict[str, Any], ...] = (
    {"field_name": "id", "field_schema": "keyword"},
    {"field_name": "meta.source_id", "field_schema": "keyword"},
    {"field_name": "meta.__tree_id", "field_schema": "keyword"},
    {"field_name": "meta.__level", "field_schema": "integer"},
    {"field_name": "meta.file_path", "field_schema": "keyword"},
)


class ConnectedQdrantDocumentStore(QdrantDocumentStore):
    """
    The part of the store that connects, sets up the collection and closes.

    The stock store opens a client for synchronous calls and another one for asynchronous calls, each of which sets up
    the collection. Here both lead over one connection, and the collection is set up once.
    """

    def __init__(self, **arguments: Any) -> None:
        """
        Creates the store without connecting.

        :param arguments: Those of `QdrantDocumentStore`.
        """
        super().__init__(**arguments)
        self._recreated = False
        self._start_unconnected()

    def _start_unconnected(self) -> None:
        self._client: QdrantClient | None = None
        self._async_client: AsyncQdrantClient | None = None
        self._connection: Connection | None = None
        self._set_up_lock = threading.RLock()
        self._setting_up = False
        self._ready = False
        renew_on_fork(self)

    def renew_after_fork(self) -> None:
        """Lets a forked child connect anew; only data in memory is kept."""
        if self._connection is None or not self._connection.survives_fork:
            self._start_unconnected()
        self._set_up_lock = threading.RLock()
        self._setting_up = False

    def __getstate__(self) -> dict[str, Any]:
        live = ("_client", "_async_client", "_connection", "_set_up_lock", "_setting_up", "_ready")
        return {name: value for name, value in self.__dict__.items() if name not in live}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start_unconnected()

    def _initialize_client(self) -> None:
        if self._ready:
            return
        with self._set_up_lock:
            # Methods that set up the collection come by here too, in this very thread.
            if self._ready or self._setting_up:
                return
            self._setting_up = True
            try:
                self._connect()
                self._ready = True
            except BaseException:
                if self._connection is not None:
                    self._connection.close()
                raise
            finally:
                self._setting_up = False

    async def _initialize_async_client(self) -> None:
        if not self._ready:
            await asyncio.to_thread(self._initialize_client)

    def _connect(self) -> None:
        names = ("location", "url", "host", "path", "port", "prefix")
        place = {**{name: getattr(self, name) for name in names}, **self.client_kwargs}
        if self._connection is not None:  # a call that was under way when it was closed has opened it again
            self._connection.close()
        self._connection = connection = connect(place, self._prepare_client_params)
        restore = weakref.WeakMethod(self._restored_collection)
        self._client = cast(QdrantClient, StoreClient(connection, restore))
        self._async_client = cast(AsyncQdrantClient, AsyncStoreClient(connection, restore))
        with self._exclusive_access() as shared:
            recreate = self.recreate_index and not self._recreated and self.index not in shared.recreated
            self._set_up_own_collection(recreate=recreate)
            if self.recreate_index:
                self._recreated = True
                shared.recreated.add(self.index)

    @contextmanager
    def _exclusive_access(self) -> Iterator[SharedPlace]:
        """Keeps out this store's other threads, then the other stores: always in this order, or two would lock up."""
        with self._set_up_lock:
            assert self._connection is not None
            before, self._setting_up = self._setting_up, True
            try:
                with self._connection.exclusive() as shared:
                    yield shared
            finally:
                self._setting_up = before

    def close(self) -> None:
        """
        Lets go of the folder, the memory or the server. The store connects again when it is used again.

        In embedded mode this ends asynchronous use as well, and the last store of the process to let go closes the
        folder, once the calls of other threads have ended. An asynchronous client of a server stays open.
        """
        self._ready = False
        if self._connection is not None:
            self._connection.close()

    async def close_async(self) -> None:
        """Does what `close` does, and closes the asynchronous client of a server too."""
        self._ready = False
        if self._connection is not None:
            await self._connection.close_async()

    # -- the collection

    def _set_up_own_collection(self, *, recreate: bool) -> None:
        self._set_up_collection(
            collection_name=self.index,
            embedding_dim=self.embedding_dim,
            recreate_collection=recreate,
            similarity=self.similarity,
            use_sparse_embeddings=self.use_sparse_embeddings,
            sparse_idf=self.sparse_idf,
            on_disk=self.on_disk,
        )

    def _set_up_collection(
        self,
        collection_name: str,
        embedding_dim: int,
        recreate_collection: bool,
        similarity: str,
        use_sparse_embeddings: bool,
        sparse_idf: bool,
        on_disk: bool = False,
        payload_fields_to_index: list[dict] | None = None,  # noqa: ARG002 (the store's own hold, for old collections too)
    ) -> None:
        """
        Makes the collection, or checks the one that is there, and adds the payload indexes that it lacks.

        :param collection_name: Name of the collection.
        :param embedding_dim: Numbers in an embedding.
        :param recreate_collection: Whether to remove a collection that is there.
        :param similarity: The similarity measure.
        :param use_sparse_embeddings: Whether there are sparse vectors too.
        :param sparse_idf: Whether to weigh sparse vectors by inverse document frequency.
        :param on_disk: Whether a server keeps the vectors on disk.
        :param payload_fields_to_index: Not used.
        :raises QdrantStoreError: If the collection that is there has been made for something else.
        """
        self._initialize_client()
        assert self._client is not None
        distance = self.get_distance(similarity)
        if recreate_collection:
            self.recreate_collection(
                collection_name, distance, embedding_dim, on_disk, use_sparse_embeddings, sparse_idf
            )
        elif not self._client.collection_exists(collection_name):
            vectors, sparse_vectors = self._prepare_collection_config(
                embedding_dim, distance, on_disk, use_sparse_embeddings, sparse_idf
            )
            try:
                self._client.create_collection(
                    collection_name=collection_name,
                    vectors_config=vectors,
                    sparse_vectors_config=sparse_vectors,
                    **self._prepare_collection_params(),
                )
            except Exception:
                # Another process may have been faster. (The stock way would delete what that one has made.)
                if not self._client.collection_exists(collection_name):
                    raise
        info = self._client.get_collection(collection_name)
        self._validate_collection_compatibility(collection_name, info, distance, embedding_dim)
        self._create_missing_indexes(collection_name, info)

    def _default_payload_indexes(self) -> tuple[dict[str, Any], ...]:
        return DEFAULT_PAYLOAD_INDEXES

    def _create_missing_indexes(self, collection_name: str, info: rest.CollectionInfo) -> None:
        assert self._client is not None
        assert self._connection is not None
        if self._connection.embedded:  # it has none, and warns
            return
        own = self.payload_fields_to_index
        fields = self._default_payload_indexes() if own is None else own
        for field in fields:
            if field["field_name"] not in (info.payload_schema or {}):
                self._client.create_payload_index(collection_name=collection_name, **field)

    def _validate_collection_compatibility(
        self, collection_name: str, collection_info: rest.CollectionInfo, distance: rest.Distance, embedding_dim: int
    ) -> None:
        vectors = collection_info.config.params.vectors
        dense = vectors.get(DENSE_VECTORS_NAME) if isinstance(vectors, dict) else vectors
        ways_out = "use another `index`, or set `recreate_index=True` to lose what is in this one"
        if dense is not None and dense.size != embedding_dim:
            msg = (
                f"Collection '{collection_name}' holds embeddings of {dense.size} dimensions, but the store is set to "
                f"{embedding_dim}: set `embedding_dim={dense.size}` if that is what the embedder gives, {ways_out}."
            )
            raise QdrantStoreError(msg)
        if dense is not None and dense.distance != distance:
            there, wanted = dense.distance.value, distance.value
            msg = (
                f"Collection '{collection_name}' compares by {there}, but the store is set to {wanted}: change "
                f"`similarity`, {ways_out}."
            )
            raise QdrantStoreError(msg)
        super()._validate_collection_compatibility(collection_name, collection_info, distance, embedding_dim)

    @contextmanager
    def _restored_collection(self, collection_name: str) -> Iterator[bool]:
        """
        Makes the store's collection again if it has gone, and says whether it is there now.

        The other stores of the process are kept out until the end, or one of them could remove it again before it is
        used.
        """
        if collection_name != self.index or self._client is None:
            yield False
            return
        with self._exclusive_access():
            try:
                if not self._client.collection_exists(collection_name):
                    self._set_up_own_collection(recreate=False)
                there = True
            except Exception:  # the caller raises what went wrong in the first place
                there = False
            yield there

    def recreate_collection(
        self,
        collection_name: str,
        distance: rest.Distance,
        embedding_dim: int,
        on_disk: bool | None = None,
        use_sparse_embeddings: bool | None = None,
        sparse_idf: bool = False,
    ) -> None:
        """
        Empties a collection, with the other stores of this process kept out meanwhile.

        :param collection_name: Name of the collection.
        :param distance: The distance measure.
        :param embedding_dim: Numbers in an embedding.
        :param on_disk: Whether a server keeps the vectors on disk. None: as the store is set.
        :param use_sparse_embeddings: Whether there are sparse vectors too. None: as the store is set.
        :param sparse_idf: Whether to weigh sparse vectors by inverse document frequency.
        """
        self._initialize_client()
        with self._exclusive_access():
            super().recreate_collection(
                collection_name, distance, embedding_dim, on_disk, use_sparse_embeddings, sparse_idf
            )

    async def recreate_collection_async(self, *args: Any, **kwargs: Any) -> None:
        """
        Does the same for asynchronous callers.

        :param args: As for `recreate_collection`.
        :param kwargs: As for `recreate_collection`.
        """
        await asyncio.to_thread(self.recreate_collection, *args, **kwargs)

    def _explain_nothing(self, count: int, asked: dict[str, Any]) -> None:
        """Tell why a query found nothing, where it is not the query."""
        assert self._connection is not None
        place = self._connection.place
        if not count:
            logger.warning(
                "Collection '{index}' in {place} is empty: index documents first, or check `index` and where the store "
                "connects to (QDRANT_URL, QDRANT_PATH, `path`).",
                index=self.index,
                place=place,
            )
        elif not asked.get("filters") and asked.get("score_threshold") is None:
            logger.warning(
                "None of the {count} documents in collection '{index}' in {place} has an embedding: index them with a "
                "LeafEmbedder in front of the writer.",
                count=count,
                index=self.index,
                place=place,
            )

    def delete_all_documents(self, recreate_index: bool = False) -> None:
        """
        Deletes all documents.

        :param recreate_index: Whether to make the collection anew, as the store is set, rather than delete them.
        :raises QdrantStoreError: If that fails.
        """
        if not recreate_index:
            super().delete_all_documents()
            return
        self._initialize_client()
        with self._exclusive_access():
            self._set_up_own_collection(recreate=True)

    async def delete_all_documents_async(self, recreate_index: bool = False) -> None:
        """
        Does the same for asynchronous callers.

        :param recreate_index: Whether to make the collection anew, as the store is set, rather than delete them.
        :raises QdrantStoreError: If that fails.
        """
        if not recreate_index:
            await super().delete_all_documents_async()
            return
        await asyncio.to_thread(self.delete_all_documents, recreate_index=True)
