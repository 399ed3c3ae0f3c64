# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Documents to Qdrant points, and points to requests that a server accepts."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from haystack import Document
from haystack_integrations.document_stores.qdrant.converters import (
    DENSE_VECTORS_NAME,
    convert_haystack_documents_to_qdrant_points,
)
from haystack_integrations.document_stores.qdrant.document_store import QdrantStoreError
from qdrant_client.http import models as rest

from hichunk_haystack.storable import UnstorableError, storable

# A server takes 32 MB a request unless it is told otherwise. Half of that leaves room for what an estimate misses.
MAX_REQUEST_BYTES = 16 * 1024 * 1024

# The longest way JSON writes a float: sign, 17 digits, point, exponent and a comma.
_BYTES_PER_NUMBER = 25


def checked_document(document: Document) -> Document:
    """
    Gives a document as it can be stored. Embedded Qdrant would take some of what a server refuses.

    :param document: Left as it is.
    :returns: It, or another one with plain meta.
    :raises QdrantStoreError: If it can't be stored.
    """
    try:
        return storable(document)
    except UnstorableError as error:
        msg = f"Document {document.id!r} can't be stored: {error}. Nothing has been written."
        raise QdrantStoreError(msg) from None


def to_points(documents: Sequence[Document], *, use_sparse_embeddings: bool) -> list[rest.PointStruct]:
    """
    Converts documents as the stock store does, without its copy of every number of every embedding.

    That copy is what `dataclasses.asdict` does inside `Document.to_dict`, and at 384 dimensions it takes longer than
    all the rest of a write to an embedded store.

    :param documents: Left as they are.
    :param use_sparse_embeddings: Whether the collection has named vectors, dense and sparse.
    :returns: One point a document; without a vector where the document has no embedding.
    """
    points = convert_haystack_documents_to_qdrant_points(
        [replace(document, embedding=None) if document.embedding is not None else document for document in documents],
        use_sparse_embeddings=use_sparse_embeddings,
    )
    for position, (point, document) in enumerate(zip(points, documents, strict=True)):
        if document.embedding is None or len(document.embedding) == 0:
            continue
        vector: Any = list(document.embedding)
        if use_sparse_embeddings:
            named = point.vector if isinstance(point.vector, dict) else {}
            vector = {**named, DENSE_VECTORS_NAME: vector}
        # built anew, since only the constructor checks the vector
        points[position] = rest.PointStruct(id=point.id, payload=point.payload, vector=vector)
    return points


def split_by_bytes(points: Sequence[rest.PointStruct], max_bytes: int) -> Iterator[list[rest.PointStruct]]:
    """
    Cuts a request into requests of bounded size.

    :param points: Points in the order in which they are to be written.
    :param max_bytes: Bound for the estimated JSON of one request. A point that is larger goes alone.
    :returns: The same points in the same order, in lists that are not empty.
    """
    batch: list[rest.PointStruct] = []
    size = 0
    for point in points:
        point_size = estimate_bytes(point)
        if batch and size + point_size > max_bytes:
            yield batch
            batch, size = [], 0
        batch.append(point)
        size += point_size
    if batch:
        yield batch


def estimate_bytes(point: rest.PointStruct) -> int:
    """
    Estimates how much a point adds to a request, rather above than below.

    :param point: A point with dense, sparse or no vectors.
    :returns: Bytes of JSON.
    """
    payload = json.dumps(point.payload, ensure_ascii=False, default=str)
    return len(payload.encode("utf-8", errors="replace")) + _BYTES_PER_NUMBER * (8 + _count_numbers(point.vector))


def _count_numbers(vector: object) -> int:
    if isinstance(vector, dict):
        return sum(_count_numbers(part) for part in vector.values())
    if isinstance(vector, rest.SparseVector):
        return len(vector.indices) + len(vector.values)
    if isinstance(vector, Sequence) and not isinstance(vector, str):
        return sum(_count_numbers(part) if isinstance(part, Sequence) else 1 for part in vector)
    return 0
