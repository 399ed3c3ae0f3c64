# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What keeping a collection in order needs besides reading and writing documents."""

import asyncio
import re
from collections.abc import Sequence
from typing import Any

from haystack import Document
from haystack_integrations.document_stores.qdrant.converters import (
    convert_id,
    convert_qdrant_point_to_haystack_document,
)
from qdrant_client.http import models as rest

from ._connected_store import ConnectedQdrantDocumentStore
from ._filters import QuickTest, compact_filter, quick_test

# Points of one request: enough for few requests, and with vectors of 1,024 numbers still about 20 MB.
_PAGE = 5_000
_PAGE_WITH_VECTORS = 1_000
# Of an embedded collection, which is in memory as a whole.
_ALL = 1 << 31

_WORD = re.compile(r"[A-Za-z0-9_-]+")


class MaintainedQdrantDocumentStore(ConnectedQdrantDocumentStore):
    """The part of the store that reads and sets meta without touching texts and vectors."""

    def get_meta_by_id(self, ids: Sequence[str], fields: Sequence[str]) -> dict[str, dict[str, Any]]:
        """
        Fetches some meta fields of documents in one request, without their texts.

        :param ids: Ids of documents.
        :param fields: Names of the meta fields.
        :returns: Id -> the fields that are there. What is not in the store is left out.
        """
        self._initialize_client()
        assert self._client is not None
        points = {convert_id(node_id): None for node_id in ids}
        if not points:
            return {}
        records = self._client.retrieve(
            collection_name=self.index, ids=list(points), with_payload=_selection(fields), with_vectors=False
        )
        return {record.payload["id"]: record.payload.get("meta") or {} for record in records if record.payload}

    async def get_meta_by_id_async(self, ids: Sequence[str], fields: Sequence[str]) -> dict[str, dict[str, Any]]:
        """
        Does the same for asynchronous callers.

        :param ids: Ids of documents.
        :param fields: Names of the meta fields.
        :returns: Id -> the fields that are there. What is not in the store is left out.
        """
        await self._initialize_async_client()
        assert self._async_client is not None
        points = {convert_id(node_id): None for node_id in ids}
        if not points:
            return {}
        records = await self._async_client.retrieve(
            collection_name=self.index, ids=list(points), with_payload=_selection(fields), with_vectors=False
        )
        return {record.payload["id"]: record.payload.get("meta") or {} for record in records if record.payload}

    def set_meta_by_id(self, ids: Sequence[str], meta: dict[str, Any]) -> None:
        """
        Sets meta fields of documents in one request. Their other fields, texts and vectors stay as they are.

        :param ids: Ids of documents that are in the store.
        :param meta: The fields, the same for all of them.
        """
        if not ids:
            return
        self._initialize_client()
        assert self._client is not None
        self._client.set_payload(
            collection_name=self.index,
            payload=meta,
            points=[convert_id(node_id) for node_id in ids],
            key="meta",
            wait=self.wait_result_from_api,
        )

    async def set_meta_by_id_async(self, ids: Sequence[str], meta: dict[str, Any]) -> None:
        """
        Does the same for asynchronous callers.

        :param ids: Ids of documents that are in the store.
        :param meta: The fields, the same for all of them.
        """
        if not ids:
            return
        await self._initialize_async_client()
        assert self._async_client is not None
        await self._async_client.set_payload(
            collection_name=self.index,
            payload=meta,
            points=[convert_id(node_id) for node_id in ids],
            key="meta",
            wait=self.wait_result_from_api,
        )

    def get_nodes_page(
        self,
        filters: dict[str, Any] | None = None,
        *,
        fields: Sequence[str],
        after: Any = None,
        with_embeddings: bool = False,
    ) -> tuple[list[Document], Any]:
        """
        Goes through a collection page by page, without the texts.

        :param filters: A Haystack filter. None: all documents.
        :param fields: Names of the meta fields to fetch.
        :param after: Where to go on: what the call before gave. None: at the beginning.
        :param with_embeddings: Whether to fetch the embeddings too.
        :returns: Documents without content, and where to go on; None at the end.
        """
        self._initialize_client()
        assert self._client is not None
        records, after = self._client.scroll(
            collection_name=self.index,
            scroll_filter=compact_filter(filters),
            limit=_PAGE_WITH_VECTORS if with_embeddings else _PAGE,
            offset=after,
            with_payload=_selection(fields),
            with_vectors=with_embeddings,
        )
        return self._to_documents(records), after

    async def get_nodes_page_async(
        self,
        filters: dict[str, Any] | None = None,
        *,
        fields: Sequence[str],
        after: Any = None,
        with_embeddings: bool = False,
    ) -> tuple[list[Document], Any]:
        """
        Does the same for asynchronous callers.

        :param filters: A Haystack filter. None: all documents.
        :param fields: Names of the meta fields to fetch.
        :param after: Where to go on: what the call before gave. None: at the beginning.
        :param with_embeddings: Whether to fetch the embeddings too.
        :returns: Documents without content, and where to go on; None at the end.
        """
        await self._initialize_async_client()
        assert self._async_client is not None
        records, after = await self._async_client.scroll(
            collection_name=self.index,
            scroll_filter=await asyncio.to_thread(compact_filter, filters),
            limit=_PAGE_WITH_VECTORS if with_embeddings else _PAGE,
            offset=after,
            with_payload=_selection(fields),
            with_vectors=with_embeddings,
        )
        return self._to_documents(records), after

    def delete_by_filter(self, filters: dict[str, Any]) -> int:
        """
        Deletes the documents that match a filter.

        :param filters: A Haystack filter. "in" and "not in" are one condition each, however many values they have.
        :returns: How many have been deleted.
        :raises QdrantStoreError: If the store fails.
        """
        self._initialize_client()
        assert self._client is not None
        test = self._quick_test(filters)
        if test is None:
            return super().delete_by_filter(compact_filter(filters))  # type: ignore[arg-type]
        records, _ = self._client.scroll(
            collection_name=self.index, limit=_ALL, with_payload=test.fields, with_vectors=False
        )
        found = test.points(records)
        if found.points:
            self._client.delete(collection_name=self.index, points_selector=found)
        return len(found.points)

    async def delete_by_filter_async(self, filters: dict[str, Any]) -> int:
        """
        Deletes the documents that match a filter.

        :param filters: A Haystack filter. "in" and "not in" are one condition each, however many values they have.
        :returns: How many have been deleted.
        :raises QdrantStoreError: If the store fails.
        """
        await self._initialize_async_client()
        assert self._async_client is not None
        test = self._quick_test(filters)
        if test is None:
            return await super().delete_by_filter_async(compact_filter(filters))  # type: ignore[arg-type]
        records, _ = await self._async_client.scroll(
            collection_name=self.index, limit=_ALL, with_payload=test.fields, with_vectors=False
        )
        found = await asyncio.to_thread(test.points, records)
        if found.points:
            await self._async_client.delete(collection_name=self.index, points_selector=found)
        return len(found.points)

    def _quick_test(self, filters: dict[str, Any]) -> QuickTest | None:
        # A server has indexes.
        return quick_test(filters) if self._connection is not None and self._connection.embedded else None

    def _to_documents(self, records: Sequence[rest.Record]) -> list[Document]:
        documents = []
        for record in records:
            if not record.vector:  # embedded Qdrant answers {} where there is no vector
                record.vector = None
            documents.append(
                convert_qdrant_point_to_haystack_document(record, use_sparse_embeddings=self.use_sparse_embeddings)
            )
        return documents


def _selection(fields: Sequence[str]) -> list[str]:
    # A name that is more than a word has to be quoted.
    return ["id", *(f"meta.{name}" if _WORD.fullmatch(name) else f'meta."{name}"' for name in fields)]
