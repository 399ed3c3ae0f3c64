# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from hichunk_haystack.components.rankers.ancestor_score_ranker import AncestorScoreRanker

__all__ = ["AncestorScoreRanker"]
