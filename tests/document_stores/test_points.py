# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Documents to points, points to requests."""

from itertools import pairwise
from typing import Any

import pytest
from haystack import Document
from haystack.dataclasses import ByteStream, SparseEmbedding
from haystack_integrations.document_stores.qdrant.converters import convert_haystack_documents_to_qdrant_points
from qdrant_client.http import models as rest

from hichunk_haystack.document_stores._points import estimate_bytes, split_by_bytes, to_points

SPARSE = SparseEmbedding(indices=[3, 900], values=[0.25, 1e-7])
DOCUMENTS = [
    Document(id="full", content="text", meta={"headings": ["a", "b"], "__parent_id": None}, embedding=[1.0, 0.5]),
    Document(id="both", content="x", embedding=[0.1, 0.2], sparse_embedding=SPARSE, score=0.5),
    Document(id="sparse", content="x", sparse_embedding=SPARSE),
    Document(id="none", content="", blob=ByteStream(data=b"ab", meta={"a": 1}, mime_type="text/plain")),
    Document(id="empty", content="x", embedding=[]),
]


@pytest.mark.parametrize("use_sparse_embeddings", [False, True])
def test_points_are_those_of_the_stock_store(use_sparse_embeddings):
    full = DOCUMENTS if not use_sparse_embeddings else DOCUMENTS[:4]  # the stock store fails on an empty embedding
    before = [document.to_dict() for document in DOCUMENTS]
    ours = to_points(full, use_sparse_embeddings=use_sparse_embeddings)
    stock = convert_haystack_documents_to_qdrant_points(full, use_sparse_embeddings=use_sparse_embeddings)
    assert [point.id for point in ours] == [point.id for point in stock]
    assert [point.vector for point in ours] == [point.vector for point in stock]
    assert [without_embedding(point.payload) for point in ours] == [without_embedding(point.payload) for point in stock]
    assert [document.to_dict() for document in DOCUMENTS] == before


def without_embedding(payload: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in payload.items() if key != "embedding"}


@pytest.mark.parametrize(
    "document",
    [
        Document(content="x" * 5000),
        Document(content='ä😀字\n"\\\t\x00' * 500),
        Document(content="", meta={"__ancestors": [{"id": "a" * 64, "level": 1, "tokens": 3}] * 40}),
        Document(content="x", embedding=[-1.2345678901234567e-100] * 384),
        Document(content="x", embedding=[0.0] * 384),
    ],
)
def test_an_estimate_is_no_less_than_the_request_and_not_far_above_its_text(document):
    point = to_points([document], use_sparse_embeddings=False)[0]
    request = len(rest.PointsList(points=[point]).model_dump_json(exclude_unset=True, exclude_none=True).encode())
    numbers = 25 * len(document.embedding or [])
    payload_only = len(rest.PointsList(points=[point]).model_dump_json(exclude={"points": {0: {"vector"}}}).encode())
    assert request <= estimate_bytes(point) <= payload_only * 1.2 + 400 + numbers


def test_named_vectors_count():
    vector = {"dense": [0.5] * 100, "sparse": rest.SparseVector(indices=list(range(50)), values=[0.5] * 50)}
    point = rest.PointStruct(id=1, payload={}, vector=vector)
    assert estimate_bytes(point) >= 25 * (100 + 2 * 50)


def test_a_split_keeps_every_point_in_order_and_the_bound():
    sizes = [10, 400, 10, 10, 2000, 10, 300, 300, 300]
    points = [rest.PointStruct(id=i, payload={"t": "x" * size}, vector={}) for i, size in enumerate(sizes)]
    batches = list(split_by_bytes(points, 1000))
    assert [point.id for batch in batches for point in batch] == list(range(9))
    for batch in batches:
        assert len(batch) == 1 or sum(map(estimate_bytes, batch)) <= 1000
    # no batch could have taken the point after it
    for batch, after in pairwise(batches):
        assert sum(map(estimate_bytes, [*batch, after[0]])) > 1000
    assert [point.id for point in next(batch for batch in batches if batch[0].id == 4)] == [4]
    assert list(split_by_bytes([], 1000)) == []
