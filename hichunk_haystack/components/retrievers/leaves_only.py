# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Keeping inner nodes out of what a search for leaves finds, where they have embeddings among those of the leaves."""

from collections.abc import Iterable
from copy import copy
from typing import Any

from haystack import Document, logging
from haystack.document_stores.types import FilterPolicy, apply_filter_policy
from qdrant_client.http import models as rest

from hichunk_haystack.document_stores._filters import compact_filter
from hichunk_haystack.nodes import CHILDREN, is_leaf

logger = logging.getLogger(__name__)


def has_inner_nodes(documents: Iterable[Document]) -> bool:
    """
    Say whether there are nodes that are no leaves.

    :param documents: What was found.
    :returns: Whether there is an inner node among it.
    """
    return not all(map(is_leaf, documents))


def for_leaves(retriever: Any, filters: dict[str, Any] | rest.Filter | None) -> tuple[Any, rest.Filter]:
    """
    Prepare a second search that finds leaves only.

    A filter costs embedded Qdrant a hundred times the search, so it is used only where inner nodes turn up.

    :param retriever: One of qdrant-haystack's retrievers.
    :param filters: Its filters for this query.
    :returns: A copy of the retriever that takes the filter as it is, and the filter, with the retriever's own in it.
    """
    if not getattr(retriever, "_told_of_inner_nodes", False):
        retriever._told_of_inner_nodes = True
        logger.warning(
            "Inner nodes have embeddings among those of the leaves in collection '{index}', so that leaves are found "
            "with a filter only, which is slow in embedded mode: make the store with `inner_embeddings=True`, and "
            "index anew.",
            index=retriever._document_store.index,
        )
    asked: Any = apply_filter_policy(retriever._filter_policy, retriever._filters, filters)  # type: ignore[arg-type]
    again = copy(retriever)
    again._filter_policy = FilterPolicy.REPLACE
    return again, leaf_filter(asked)


def leaf_filter(filters: dict[str, Any] | rest.Filter | None) -> rest.Filter:
    """
    Narrow a filter to leaves.

    :param filters: A Haystack filter, or one of Qdrant's own.
    :returns: Qdrant's filter.
    """
    childless = rest.IsEmptyCondition(is_empty=rest.PayloadField(key=f"meta.{CHILDREN}"))
    asked = compact_filter(filters)
    return rest.Filter(must=[childless] if asked is None else [asked, childless])
