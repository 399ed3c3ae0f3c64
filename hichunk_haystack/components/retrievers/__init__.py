# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from hichunk_haystack.components.retrievers.budget_auto_merging_retriever import BudgetAutoMergingRetriever
from hichunk_haystack.components.retrievers.multi_level_retriever import MultiLevelRetriever
from hichunk_haystack.components.retrievers.multi_query_retriever import MultiQueryRetriever
from hichunk_haystack.components.retrievers.neighbour_expander import NeighbourExpander
from hichunk_haystack.components.retrievers.qdrant_hybrid_leaf_retriever import QdrantHybridLeafRetriever
from hichunk_haystack.components.retrievers.qdrant_leaf_retriever import QdrantLeafRetriever

__all__ = [
    "BudgetAutoMergingRetriever",
    "MultiLevelRetriever",
    "MultiQueryRetriever",
    "NeighbourExpander",
    "QdrantHybridLeafRetriever",
    "QdrantLeafRetriever",
]
