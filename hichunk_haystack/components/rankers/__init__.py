# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from hichunk_haystack.components.rankers.ancestor_score_ranker import AncestorScoreRanker
from hichunk_haystack.components.rankers.offline_sentence_transformers_diversity_ranker import (
    OfflineSentenceTransformersDiversityRanker,
)
from hichunk_haystack.components.rankers.offline_sentence_transformers_similarity_ranker import (
    OfflineSentenceTransformersSimilarityRanker,
)

__all__ = [
    "AncestorScoreRanker",
    "OfflineSentenceTransformersDiversityRanker",
    "OfflineSentenceTransformersSimilarityRanker",
]
