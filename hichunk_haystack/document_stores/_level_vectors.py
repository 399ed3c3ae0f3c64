# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""
Embeddings of inner nodes: they lie beside those of the leaves, in a named vector of their own.

So a search for leaves never meets an inner node, and needs no filter, which in embedded mode costs a hundred times the
search itself.
"""

from collections.abc import Sequence
from typing import Any

from haystack import Document
from haystack_integrations.document_stores.qdrant.converters import DENSE_VECTORS_NAME
from qdrant_client.http import models as rest

from hichunk_haystack.nodes import is_leaf

INNER_VECTORS_NAME = "text-inner"


def move_inner_vectors(points: Sequence[rest.PointStruct], documents: Sequence[Document]) -> None:
    """
    Put the embeddings of inner nodes where no search for leaves finds them.

    :param points: Points with named vectors; they are changed.
    :param documents: The documents that they were made of.
    """
    for point, document in zip(points, documents, strict=True):
        vectors: Any = point.vector
        if not is_leaf(document) and isinstance(vectors, dict) and DENSE_VECTORS_NAME in vectors:
            vectors[INNER_VECTORS_NAME] = vectors.pop(DENSE_VECTORS_NAME)


def name_dense(answer: Any) -> Any:
    """
    Give the embeddings of inner nodes the name under which qdrant-haystack looks for embeddings.

    :param answer: What a client's method has answered; points in it are changed.
    :returns: The answer.
    """
    for point in _points(answer):
        vectors = getattr(point, "vector", None)
        if isinstance(vectors, dict) and INNER_VECTORS_NAME in vectors:
            rest_of_them = {name: vector for name, vector in vectors.items() if name != INNER_VECTORS_NAME}
            point.vector = {**rest_of_them, DENSE_VECTORS_NAME: vectors[INNER_VECTORS_NAME]}
    return answer


def _points(answer: Any) -> Sequence[Any]:
    """The points in an answer: of `retrieve` a list, of `scroll` the first of a pair, of searches an attribute."""
    if isinstance(answer, tuple) and answer:
        answer = answer[0]
    if isinstance(answer, list):
        return answer
    if isinstance(answer, rest.QueryResponse):
        return answer.points
    if isinstance(answer, rest.GroupsResult):
        return [point for group in answer.groups for point in group.hits]
    return ()
