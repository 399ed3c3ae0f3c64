# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import asyncio
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from haystack import Document
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.utils import Secret
from haystack_integrations.document_stores.qdrant.converters import (
    convert_id,
    convert_qdrant_point_to_haystack_document,
)
from haystack_integrations.document_stores.qdrant.document_store import QdrantStoreError
from qdrant_client.http import models as rest
from tqdm import tqdm

from ._level_store import LevelQdrantDocumentStore
from ._level_vectors import move_inner_vectors
from ._points import checked_document, to_points
from ._retries import telling_what_is_written


class HierarchyQdrantDocumentStore(LevelQdrantDocumentStore):
    """
    A `QdrantDocumentStore` whose embedded mode works in real pipelines, and that moves to a server without an edit.

    **Embedded** (a folder on this machine, no server): all stores of a process that name the same folder share one
    client, for synchronous and asynchronous calls, under threads and event loops. The folder opens at the first use
    and is free again when the last store has been closed or garbage-collected; a closed store opens again when it is
    used. A second process gets a `QdrantStoreError` that names the folder.

    **Where it connects** is decided at the first use (and again after `close`):

    1. `location`, `url` or `host`, where one is given;
    2. else the server of the environment variable `QDRANT_URL`, with the key of `api_key` or `QDRANT_API_KEY`;
    3. else the embedded folder: `QDRANT_PATH`, else `path`, else `qdrant_data`. `QDRANT_PATH` moves the folder of
       every store of the process that names none of point 1.

    `to_dict` gives what the store was made with, never what the environment made of it, and never a key.

    **In memory**: `location=":memory:"` belongs to one store object, `location=":memory:name"` is shared by that name
    within the process. The data is gone when the last store that uses it is closed. A forked child process goes on
    with a copy of it; folders and server connections are opened anew there.

    Requests for writing are bounded in number of documents (`write_batch_size`) and in bytes, as a server refuses
    what is larger than 32 MB.

    ```python
    from haystack import Document
    from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore

    store = HierarchyQdrantDocumentStore(location=":memory:", embedding_dim=2)
    store.write_documents([Document(id="leaf", content="text", embedding=[1.0, 0.0]), Document(id="root", content="")])
    assert [node.id for node in store.get_nodes_by_id(["root", "missing", "leaf"])] == ["root", "leaf"]
    store.close()
    ```
    """

    __module__ = "hichunk_haystack.document_stores"

    def __init__(
        self,
        location: str | None = None,
        url: str | None = None,
        port: int = 6333,
        grpc_port: int = 6334,
        prefer_grpc: bool = False,
        https: bool | None = None,
        api_key: Secret | None = Secret.from_env_var("QDRANT_API_KEY", strict=False),  # noqa: B008
        prefix: str | None = None,
        timeout: int | None = None,
        host: str | None = None,
        path: str | None = None,
        force_disable_check_same_thread: bool = False,
        index: str = "Document",
        embedding_dim: int = 768,
        on_disk: bool = False,
        use_sparse_embeddings: bool = False,
        sparse_idf: bool = False,
        similarity: str = "cosine",
        return_embedding: bool = False,
        progress_bar: bool = False,
        recreate_index: bool = False,
        shard_number: int | None = None,
        replication_factor: int | None = None,
        write_consistency_factor: int | None = None,
        on_disk_payload: bool | None = None,
        hnsw_config: dict | None = None,
        optimizers_config: dict | None = None,
        wal_config: dict | None = None,
        quantization_config: dict | None = None,
        wait_result_from_api: bool = True,
        metadata: dict | None = None,
        write_batch_size: int = 100,
        scroll_size: int = 10_000,
        payload_fields_to_index: list[dict] | None = None,
        client_kwargs: dict[str, Any] | None = None,
        inner_embeddings: bool = False,
    ) -> None:
        """
        Creates the store without connecting.

        The parameters are those of `QdrantDocumentStore`; these have a meaning or a default of their own:

        :param location: `":memory:"`, `":memory:name"` or the URL of a server.
        :param api_key: Key for the server. Default: the environment variable `QDRANT_API_KEY`, where it is set.
        :param path: Folder of the embedded mode, made if it is missing. With no location, url or host either, the
            folder is `qdrant_data` in the working directory.
        :param force_disable_check_same_thread: Without effect: embedded clients are always used under a lock, which
            makes them safe for every thread.
        :param embedding_dim: Numbers in an embedding. An existing collection must have the same.
        :param progress_bar: Whether to show a progress bar while writing. Default: no.
        :param recreate_index: Whether to empty the collection at the first use of this store object. It happens once
            per object, also when the store is closed and used again. It does not happen if another store of the
            process has done it and the place has been in use by any store ever since: stores with the same settings
            that work side by side start from one empty collection and do not wipe what the other has written.
        :param write_batch_size: Most documents in one request. A request is also bounded in bytes.
        :param payload_fields_to_index: Indexes on a server, as dictionaries with `field_name` and `field_schema`;
            those that are missing are made for existing collections too. None: `id`, `meta.source_id`,
            `meta.__tree_id`, `meta.__level` and `meta.file_path`. An empty list: none. Embedded Qdrant has no such
            indexes.
        :param client_kwargs: More arguments for the clients. An asynchronous `auth_token_provider` does not work, as
            collections are set up with the synchronous client.
        :param inner_embeddings: Whether inner nodes have embeddings too. They are kept in a vector of their own beside
            that of the leaves, so that every search but that of a `MultiLevelRetriever` goes on to find leaves only,
            as fast as before. It turns `use_sparse_embeddings` on, as such a collection has named vectors.
        """
        arguments = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        self.inner_embeddings = arguments.pop("inner_embeddings")
        arguments["use_sparse_embeddings"] = use_sparse_embeddings or inner_embeddings
        super().__init__(**arguments)

    def to_dict(self) -> dict[str, Any]:
        """
        Serialises the store as it was made. What the environment adds is left out, and so is every key.

        :returns: Plain data that shares nothing with the store, so that two components with one store dump no YAML
            aliases.
        :raises ValueError: If `api_key` was given as a value rather than by the name of a variable.
        """
        return _unshared(super().to_dict())

    # -- reading

    def get_nodes_by_id(self, ids: Sequence[str], *, with_embeddings: bool = False) -> list[Document]:
        """
        Fetches nodes in one request, without their embeddings unless these are asked for.

        `get_documents_by_id` always reads the embeddings, which a merge has no use for.

        :param ids: Ids of documents. An id given twice counts once.
        :param with_embeddings: Whether to fetch the embeddings too.
        :returns: The nodes in the order of their ids. What is not in the store is left out.
        """
        self._initialize_client()
        assert self._client is not None
        points = {convert_id(node_id): None for node_id in ids}
        if not points:
            return []
        records = self._client.retrieve(
            collection_name=self.index, ids=list(points), with_payload=True, with_vectors=with_embeddings
        )
        return self._in_order(ids, records)

    async def get_nodes_by_id_async(self, ids: Sequence[str], *, with_embeddings: bool = False) -> list[Document]:
        """
        Fetches nodes in one request, without their embeddings unless these are asked for.

        :param ids: Ids of documents. An id given twice counts once.
        :param with_embeddings: Whether to fetch the embeddings too.
        :returns: The nodes in the order of their ids. What is not in the store is left out.
        """
        await self._initialize_async_client()
        assert self._async_client is not None
        points = {convert_id(node_id): None for node_id in ids}
        if not points:
            return []
        records = await self._async_client.retrieve(
            collection_name=self.index, ids=list(points), with_payload=True, with_vectors=with_embeddings
        )
        return self._in_order(ids, records)

    def _in_order(self, ids: Sequence[str], records: list[rest.Record]) -> list[Document]:
        nodes = {}
        for record in records:
            if not record.vector:  # embedded Qdrant answers {} where there is no vector
                record.vector = None
            node = convert_qdrant_point_to_haystack_document(record, use_sparse_embeddings=self.use_sparse_embeddings)
            nodes[node.id] = node
        return [nodes[node_id] for node_id in dict.fromkeys(ids) if node_id in nodes]

    def _query_by_embedding(self, query_embedding: list[float], *args: Any, **kwargs: Any) -> list[Document]:
        self._initialize_client()  # settings that do not fit the collection are told first: the query may be sound
        self._check_query(query_embedding)
        found = super()._query_by_embedding(query_embedding, *args, **kwargs)
        if not found:
            self._explain_nothing(self.count_documents(), kwargs)
        return found

    async def _query_by_embedding_async(
        self, query_embedding: list[float], *args: Any, **kwargs: Any
    ) -> list[Document]:
        await self._initialize_async_client()
        self._check_query(query_embedding)
        found = await super()._query_by_embedding_async(query_embedding, *args, **kwargs)
        if not found:
            self._explain_nothing(await self.count_documents_async(), kwargs)
        return found

    def _query_hybrid(self, query_embedding: list[float], *args: Any, **kwargs: Any) -> list[Document]:
        self._check_query(query_embedding)
        return super()._query_hybrid(query_embedding, *args, **kwargs)

    async def _query_hybrid_async(self, query_embedding: list[float], *args: Any, **kwargs: Any) -> list[Document]:
        self._check_query(query_embedding)
        return await super()._query_hybrid_async(query_embedding, *args, **kwargs)

    def _check_query(self, query_embedding: list[float]) -> None:
        if len(query_embedding) != self.embedding_dim:
            msg = (
                f"The query's embedding has {len(query_embedding)} dimensions, those in collection '{self.index}' have "
                f"{self.embedding_dim}: embed queries with the model that has embedded the documents."
            )
            raise QdrantStoreError(msg)

    # -- writing

    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.FAIL) -> int:
        """
        Writes documents, those without an embedding as points that no vector search finds.

        Nothing is written if one of the documents cannot be.

        :param documents: Nodes, in the order in which they are to be written.
        :param policy: `FAIL` raises if one of the documents is there already, `SKIP` leaves those alone, `OVERWRITE`
            (and `NONE`) replaces them.
        :returns: How many have been written.
        :raises QdrantStoreError: If an embedding has not `embedding_dim` numbers, or something can't be stored.
        :raises DuplicateDocumentError: If a document is there already and the policy is `FAIL`.
        :raises ValueError: If something is not a `Document`.
        """
        self._initialize_client()
        assert self._client is not None
        documents = self._checked(documents)
        documents = self._handle_duplicate_documents(documents, policy)
        written = 0
        with self._progress(len(documents)) as progress:
            for batch in self._batches(documents):
                points = self._to_points(batch)
                with telling_what_is_written(written, len(documents)):
                    self._client.upsert(collection_name=self.index, points=points, wait=self.wait_result_from_api)
                written += len(batch)
                if progress is not None:
                    progress.update(len(batch))
        return len(documents)

    async def write_documents_async(
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.FAIL
    ) -> int:
        """
        Writes documents, those without an embedding as points that no vector search finds.

        Nothing is written if one of the documents cannot be.

        :param documents: Nodes, in the order in which they are to be written.
        :param policy: As for `write_documents`.
        :returns: How many have been written.
        :raises QdrantStoreError: If an embedding has not `embedding_dim` numbers, or something can't be stored.
        :raises DuplicateDocumentError: If a document is there already and the policy is `FAIL`.
        :raises ValueError: If something is not a `Document`.
        """
        await self._initialize_async_client()
        assert self._async_client is not None
        documents = self._checked(documents)
        documents = await self._handle_duplicate_documents_async(documents, policy)
        written = 0
        with self._progress(len(documents)) as progress:
            for batch in self._batches(documents):
                points = await asyncio.to_thread(self._to_points, batch)
                with telling_what_is_written(written, len(documents)):
                    await self._async_client.upsert(
                        collection_name=self.index, points=points, wait=self.wait_result_from_api
                    )
                written += len(batch)
                if progress is not None:
                    progress.update(len(batch))
        return len(documents)

    def _progress(self, total: int) -> AbstractContextManager[tqdm | None]:
        # A bar that is not shown starts a thread all the same, and a child forked at the wrong moment waits for its
        # lock when it ends.
        return tqdm(total=total) if self.progress_bar else nullcontext()

    def _to_points(self, documents: list[Document]) -> list[rest.PointStruct]:
        points = to_points(documents, use_sparse_embeddings=self.use_sparse_embeddings)
        if self.inner_embeddings:
            move_inner_vectors(points, documents)
        return points

    def _batches(self, documents: list[Document]) -> Iterator[list[Document]]:
        for start in range(0, len(documents), self.write_batch_size):
            yield documents[start : start + self.write_batch_size]

    def _checked(self, documents: list[Document]) -> list[Document]:
        checked = []
        for document in documents:
            if not isinstance(document, Document):
                msg = f"The document store writes Documents, but got a {type(document).__name__}."
                raise ValueError(msg)
            if document.embedding is not None and len(document.embedding) not in (0, self.embedding_dim):
                msg = (
                    f"The embedding of document '{document.id}' has {len(document.embedding)} dimensions, collection "
                    f"'{self.index}' takes {self.embedding_dim}: set `embedding_dim` to what the embedder gives, with "
                    f"another `index` or `recreate_index=True` if the collection exists. Nothing has been written."
                )
                raise QdrantStoreError(msg)
            checked.append(checked_document(document))
        return checked

    def _handle_duplicate_documents(
        self, documents: list[Document], policy: DuplicatePolicy | None = None
    ) -> list[Document]:
        if policy not in (DuplicatePolicy.SKIP, DuplicatePolicy.FAIL):
            return documents
        assert self._client is not None
        documents = self._drop_duplicate_documents(documents)
        ids = [convert_id(document.id) for document in documents]
        there = (
            self._client.retrieve(collection_name=self.index, ids=ids, with_payload=False, with_vectors=False)
            if ids
            else []
        )
        return self._without_existing(documents, there, policy)

    async def _handle_duplicate_documents_async(
        self, documents: list[Document], policy: DuplicatePolicy | None = None
    ) -> list[Document]:
        if policy not in (DuplicatePolicy.SKIP, DuplicatePolicy.FAIL):
            return documents
        assert self._async_client is not None
        documents = self._drop_duplicate_documents(documents)
        ids = [convert_id(document.id) for document in documents]
        there = (
            await self._async_client.retrieve(
                collection_name=self.index, ids=ids, with_payload=False, with_vectors=False
            )
            if ids
            else []
        )
        return self._without_existing(documents, there, policy)

    def _without_existing(
        self, documents: list[Document], existing: list[rest.Record], policy: DuplicatePolicy
    ) -> list[Document]:
        points = {uuid.UUID(str(record.id)).hex for record in existing}
        there = [document.id for document in documents if convert_id(document.id) in points]
        if there and policy == DuplicatePolicy.FAIL:
            msg = f"Documents that are already in collection '{self.index}': {', '.join(there)}. Nothing was written."
            raise DuplicateDocumentError(msg)
        known = set(there)
        return [document for document in documents if document.id not in known]


def _unshared(value: Any) -> Any:
    """Copies dictionaries and lists all the way down, and leaves everything else as it is."""
    if isinstance(value, dict):
        return {key: _unshared(item) for key, item in value.items()}
    return [_unshared(item) for item in value] if isinstance(value, list) else value
