# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Running contenders over the questions of a data set, at several budgets."""

import hashlib
import json
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tqdm import tqdm

from hichunk_haystack.evaluation.contenders.corpus import Corpus, Piece
from hichunk_haystack.evaluation.contenders.lineup import Contender
from hichunk_haystack.evaluation.datasets import Dataset, Question
from hichunk_haystack.evaluation.evidence import SpanScores, recall_of_normalised, span_scores

BUDGETS = (256, 512, 1024, 2048, 4096)

Scores = dict[str, float]
Results = dict[str, dict[int, Scores]]
"""By contender and budget: means over the questions, in percent; `tokens` in tokens."""


def run(
    corpus: Corpus,
    contenders: Iterable[Contender],
    budgets: Sequence[int] = BUDGETS,
    file: Path | None = None,
    settings: Mapping[str, str] | None = None,
) -> Results:
    """
    Run the benchmark.

    What is done is written to the file after each contender, and a run that was broken off goes on behind it.

    :param corpus: Documents and questions.
    :param contenders: Who takes part.
    :param budgets: Token budgets.
    :param file: JSON with the results; none by default.
    :param settings: What the results depend on besides (model, versions). Results in the file that were found with
        other settings, or on other data, are not used.
    :returns: The results.
    """
    settings = {**(settings or {}), "data": _fingerprint(corpus.dataset)}
    results = _read(file, settings)
    with tqdm(contenders, desc=corpus.dataset.name, unit="method", disable=None) as progress:
        for contender in progress:
            progress.set_postfix_str(contender.name)
            known = results.setdefault(contender.name, {})
            for budget in budgets:
                if budget not in known:
                    known[budget] = score(corpus, contender, budget)
            if file is not None:
                _write(file, results, settings)
    return results


def score(corpus: Corpus, contender: Contender, budget: int) -> Scores:
    """
    Score one contender at one budget.

    :param corpus: Documents and questions.
    :param contender: Retrieves.
    :param budget: Tokens.
    :returns: Means over the questions that have evidence: `erec`, `recall`, `precision` and `iou` in percent, `tokens`
        used, and `seconds` for all questions with what had to be prepared.
    :raises RuntimeError: If a contender goes above the budget.
    """
    start = time.perf_counter()
    rows: dict[str, list[float]] = {"erec": [], "recall": [], "precision": [], "iou": [], "tokens": []}
    for question, found in zip(corpus.dataset.questions, contender.retrieve(budget), strict=True):
        if not question.evidences:
            continue
        pieces = corpus.arrange(found)
        tokens = sum(corpus.count(piece) for piece in pieces)
        if tokens > budget:
            msg = f"'{contender.name}' returned {tokens} tokens at a budget of {budget} for '{question.text}'."
            raise RuntimeError(msg)
        rows["erec"].append(100 * recall_of_normalised(question.evidences, corpus.normalised(pieces)))
        rows["tokens"].append(tokens)
        for name, share in _spans(question, pieces)._asdict().items():
            rows[name].append(100 * share)
    means = {name: statistics.fmean(values) if values else 0.0 for name, values in rows.items()}
    return {**means, "seconds": time.perf_counter() - start}


def _spans(question: Question, pieces: Sequence[Piece]) -> SpanScores:
    """Compare spans; what was retrieved of other documents counts against the precision."""
    own = [(piece.start, piece.end) for piece in pieces if piece.document == question.document]
    other = sum(piece.end - piece.start for piece in pieces if piece.document != question.document)
    scores = span_scores(question.spans, own)
    if not scores.recall:
        return scores
    inside = sum(end - start for start, end in own)
    both = scores.precision * inside
    wanted = both / scores.recall
    return SpanScores(scores.recall, both / (inside + other), both / (wanted + inside + other - both))


def _fingerprint(dataset: Dataset) -> str:
    """A text that is equal for equal data."""
    hasher = hashlib.blake2b(digest_size=16)
    hasher.update(json.dumps([dataset.documents, [asdict(each) for each in dataset.questions]]).encode())
    return hasher.hexdigest()


def _read(file: Path | None, settings: Mapping[str, str]) -> Results:
    if file is None or not file.exists():
        return {}
    found = json.loads(file.read_text(encoding="utf-8"))
    if found.get("settings") != settings:
        return {}
    raw: dict[str, dict[str, Any]] = found["results"]
    return {name: {int(budget): scores for budget, scores in rows.items()} for name, rows in raw.items()}


def _write(file: Path, results: Results, settings: Mapping[str, str]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    half = file.with_suffix(".part")
    half.write_text(json.dumps({"settings": settings, "results": results}, indent=1), encoding="utf-8")
    half.replace(file)
