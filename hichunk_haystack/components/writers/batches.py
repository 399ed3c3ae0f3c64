# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Batches of documents, bounded in number and in bytes."""

import json
from collections.abc import Iterable, Iterator

from haystack import Document

# The longest way JSON writes a float: sign, 17 digits, point, exponent and a comma.
_BYTES_PER_NUMBER = 25
# Field names, id and brackets.
_BYTES_PER_DOCUMENT = 300


def batches(documents: Iterable[Document], max_documents: int, max_bytes: int) -> Iterator[list[Document]]:
    """
    Cut a list of documents into batches, in order.

    :param documents: The documents.
    :param max_documents: The most documents of a batch.
    :param max_bytes: The most bytes of a batch as JSON, by an estimate that is rather above than below. A document that
        is bigger goes alone.
    :returns: Batches that are not empty.
    """
    batch: list[Document] = []
    size = 0
    for document in documents:
        more = estimate_bytes(document)
        if batch and (len(batch) == max_documents or size + more > max_bytes):
            yield batch
            batch, size = [], 0
        batch.append(document)
        size += more
    if batch:
        yield batch


def estimate_bytes(document: Document) -> int:
    """
    Estimate how much a document adds to a request.

    :param document: A document.
    :returns: Bytes of JSON.
    """
    text = json.dumps([document.content, document.meta], ensure_ascii=False, default=str)
    numbers = 0 if document.embedding is None else len(document.embedding)
    if document.sparse_embedding is not None:
        numbers += 2 * len(document.sparse_embedding.indices)
    if document.blob is not None:  # written as a list of numbers below 256
        numbers += len(document.blob.data) // 5
    return len(text.encode("utf-8", "surrogatepass")) + numbers * _BYTES_PER_NUMBER + _BYTES_PER_DOCUMENT
