# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""How much of the evidence a context holds: by its words (HiChunk's ERec) and by characters of the source (Chroma)."""

import re
import string
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

Span = tuple[int, int]
"""Start and end of a piece of a source, in characters; the end is behind the last one."""

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


class SpanScores(NamedTuple):
    """
    Shares of characters.

    :param recall: Of the evidence, how much was retrieved.
    :param precision: Of what was retrieved, how much is evidence; 0 if nothing was retrieved.
    :param iou: What is both, over what is either (intersection over union).
    """

    recall: float
    precision: float
    iou: float


def normalise(text: str) -> str:
    """
    Reduce a text to its words, as SQuAD's evaluation does and HiChunk's code after it.

    :param text: Any text.
    :returns: Lower case, without ASCII punctuation and English articles, words parted by single spaces.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def evidence_recall(evidences: Iterable[str], context: str) -> float:
    """
    Tell how much of the evidence stands in a context: ERec of HiChunk (arXiv 2509.11552).

    A piece of evidence counts when its normalised text is part of the normalised context, and then with its length in
    characters. So the published code has it, but for one step that we leave away: there a full stop and the space
    behind it become a full stop in the evidence, and not in the context, so that a piece of two sentences is never
    found in the very text that it was taken from.

    :param evidences: Pieces of evidence, usually sentences.
    :param context: What was retrieved, as one text.
    :returns: Between 0 and 1; 0 if there is no evidence.

    ```python
    from hichunk_haystack.evaluation.evidence import evidence_recall

    context = "Fire the kiln slowly; then let it cool."
    print(evidence_recall(["# The Kiln, slowly", "Centre the clay."], context))  # 18 of 34 characters: 0.529...
    ```
    """
    return recall_of_normalised(evidences, normalise(context))


def recall_of_normalised(evidences: Iterable[str], context: str) -> float:
    """
    Do what `evidence_recall` does, for a context that is normalised already.

    :param evidences: Pieces of evidence.
    :param context: What `normalise` gave for the context.
    :returns: Between 0 and 1; 0 if there is no evidence.
    """
    found = total = 0
    for evidence in evidences:
        total += len(evidence)
        if normalise(evidence) in context:
            found += len(evidence)
    return found / total if total else 0.0


def span_scores(evidence: Iterable[Span], retrieved: Iterable[Span]) -> SpanScores:
    """
    Compare spans of one source, character by character, as Chroma's chunking evaluation does.

    Unlike there, a character that was retrieved twice (by chunks that overlap) counts once: the reader of a context
    pays for it in tokens, which the budget counts, and not in precision.

    :param evidence: Spans that hold the evidence.
    :param retrieved: Spans that were retrieved.
    :returns: Recall, precision and IoU; all 0 without evidence.
    """
    return span_scores_of_sources({"": evidence}, {"": retrieved})


def span_scores_of_sources(
    evidence: Mapping[str, Iterable[Span]], retrieved: Mapping[str, Iterable[Span]]
) -> SpanScores:
    """
    Do what `span_scores` does, over several sources.

    :param evidence: By source, spans that hold the evidence.
    :param retrieved: By source, spans that were retrieved.
    :returns: Recall, precision and IoU; all 0 without evidence.
    """
    wanted = {source: union(spans) for source, spans in evidence.items()}
    got = {source: union(spans) for source, spans in retrieved.items()}
    both = sum(overlap(spans, got.get(source, ())) for source, spans in wanted.items())
    wanted_length, got_length = sum(map(length, wanted.values())), sum(map(length, got.values()))
    return SpanScores(
        both / wanted_length if wanted_length else 0.0,
        both / got_length if got_length else 0.0,
        both / (wanted_length + got_length - both) if both else 0.0,
    )


def union(spans: Iterable[Span]) -> list[Span]:
    """
    Join spans that overlap or touch.

    :param spans: Spans in any order.
    :returns: The same characters as spans that lie apart, in order, without empty ones.
    """
    joined: list[Span] = []
    for start, end in sorted(spans):
        if end <= start:
            continue
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def overlap(first: Sequence[Span], second: Sequence[Span]) -> int:
    """
    Count the characters that lie in both.

    :param first: What `union` gave.
    :param second: What `union` gave.
    :returns: Characters.
    """
    both = left = right = 0
    while left < len(first) and right < len(second):
        both += max(0, min(first[left][1], second[right][1]) - max(first[left][0], second[right][0]))
        if first[left][1] <= second[right][1]:
            left += 1
        else:
            right += 1
    return both


def length(spans: Iterable[Span]) -> int:
    """
    Count the characters of spans that lie apart.

    :param spans: What `union` gave.
    :returns: Characters.
    """
    return sum(end - start for start, end in spans)
