# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import json
import random

from haystack import Document
from haystack.dataclasses import ByteStream, SparseEmbedding
from haystack_integrations.document_stores.qdrant.converters import convert_haystack_documents_to_qdrant_points
from hypothesis import given
from hypothesis import strategies as st

from hichunk_haystack.components.writers.batches import batches, estimate_bytes


def document(size: int) -> Document:
    return Document(id="x", content="a" * size)


def test_bounded_in_number() -> None:
    sizes = [len(batch) for batch in batches([document(1)] * 7, 3, 10**9)]
    assert sizes == [3, 3, 1]


def test_bounded_in_bytes_and_an_oversize_document_goes_alone() -> None:
    # Each of the small ones counts for 100 bytes of text and a little more than 300 around it.
    small, big = document(100), document(5000)
    assert [len(batch) for batch in batches([small, small, big, small, small, small], 100, 1000)] == [2, 1, 2, 1]


def test_nothing_gives_no_batch() -> None:
    assert list(batches([], 10, 10)) == []


@given(st.lists(st.integers(0, 3000), max_size=40), st.integers(1, 10), st.integers(1, 5000))
def test_batches_are_the_documents_in_order_within_the_bounds(sizes: list[int], count: int, limit: int) -> None:
    documents = [document(size) for size in sizes]
    found = list(batches(documents, count, limit))
    assert [id(item) for batch in found for item in batch] == [id(item) for item in documents]
    for batch in found:
        assert 1 <= len(batch) <= count
        assert len(batch) == 1 or sum(map(estimate_bytes, batch)) <= limit


def test_the_estimate_is_not_below_what_qdrant_is_sent() -> None:
    number = random.Random(7)
    documents = [
        Document(content='a "quoted" line\n\twith ä, 漢 and 😀' * 50, meta={"headings": ["窯", "b"], "n": 1.5}),
        Document(content="v", embedding=[number.gauss(0, 1e-9) for _ in range(384)]),
        Document(content="s", sparse_embedding=SparseEmbedding(list(range(50)), [number.random() for _ in range(50)])),
        Document(blob=ByteStream(bytes(range(256)) * 4)),
    ]
    for item in documents:
        point = convert_haystack_documents_to_qdrant_points([item], use_sparse_embeddings=False)[0]
        sent = len(json.dumps(point.model_dump(mode="json"), ensure_ascii=False).encode())
        assert sent <= estimate_bytes(item)


def test_text_that_has_no_utf_8_form_can_be_estimated() -> None:
    assert estimate_bytes(Document(id="x", content="\ud800")) > 300
