# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from hichunk_haystack.components.retrievers.budget_auto_merging_retriever import BudgetAutoMergingRetriever
from hichunk_haystack.components.retrievers.qdrant_leaf_retriever import QdrantLeafRetriever

__all__ = ["BudgetAutoMergingRetriever", "QdrantLeafRetriever"]
