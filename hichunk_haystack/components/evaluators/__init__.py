# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from hichunk_haystack.components.evaluators.chunk_point_evaluator import ChunkPointEvaluator
from hichunk_haystack.components.evaluators.evidence_recall_evaluator import EvidenceRecallEvaluator
from hichunk_haystack.components.evaluators.fact_coverage_evaluator import FactCoverageEvaluator

__all__ = ["ChunkPointEvaluator", "EvidenceRecallEvaluator", "FactCoverageEvaluator"]
