# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Sequence
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict

from hichunk_haystack.components.evaluators.inputs import check_lengths, mean
from hichunk_haystack.evaluation.evidence import Span, SpanScores, evidence_recall, span_scores_of_sources
from hichunk_haystack.nodes import ANCESTORS, LEVEL


@component
class EvidenceRecallEvaluator:
    """
    Tells how much of the evidence was retrieved: ERec of HiChunk (arXiv 2509.11552).

    A piece of evidence counts when its text, reduced to its words, stands in what was retrieved; it weighs as much as
    it is long. Where it is known at which place of which source the evidence stands, recall, precision and IoU over
    characters of the sources come on top, as in Chroma's evaluation of chunking.

    What was retrieved is given as documents (of a retriever, a merger, or `documents` of a `ContextBuilder`), as
    contexts (what the model is shown), or both: then the contexts decide on ERec and the documents on the rest.
    Questions without evidence have no score and are left out of the means.

    ```python
    from haystack import Document

    from hichunk_haystack.components.evaluators import EvidenceRecallEvaluator

    text = "Fire the kiln slowly. Let it cool for a day. Then open it."
    hit = Document(content=text[:21], meta={"source_id": "kiln", "split_idx_start": 0, "split_idx_end": 21})
    result = EvidenceRecallEvaluator().run(
        evidences=[["Fire the kiln slowly.", "Let it cool for a day."]],
        retrieved_documents=[[hit]],
        evidence_spans=[[[0, 21], [22, 44]]],
        evidence_sources=["kiln"],
    )
    print(round(result["score"], 3), round(result["recall"], 3), result["precision"])  # 0.488 0.488 1.0
    ```
    """

    __module__ = "hichunk_haystack.components.evaluators"

    def __init__(self, source_key: str = "source_id") -> None:
        """
        Create the component.

        :param source_key: Meta field of retrieved documents that names their source as `evidence_sources` does.
            `source_id`, which our splitters and Haystack's set, is the id of the document that was split; a document
            that was never split has its own.
        """
        self.source_key = source_key

    @component.output_types(
        score=float | None,
        individual_scores=list[float | None],
        recall=float | None,
        precision=float | None,
        iou=float | None,
        results=list[dict[str, Any]],
    )
    def run(
        self,
        evidences: list[list[str]],
        retrieved_documents: list[list[Document]] | None = None,
        contexts: list[str] | None = None,
        evidence_spans: list[list[list[int]]] | None = None,
        evidence_sources: list[str] | None = None,
    ) -> dict[str, Any]:
        """
        Score what was retrieved for questions. All lists have an entry for each question.

        :param evidences: Pieces of evidence, usually sentences.
        :param retrieved_documents: Documents that were retrieved.
        :param contexts: What the model is shown; by default the contents of the documents, one below the other.
        :param evidence_spans: Start and end of the evidence in its source, in characters; an empty list where that is
            not known.
        :param evidence_sources: The source in which these places are.
        :returns: A dictionary with
            - `score`: ERec, mean of the questions that have evidence; `None` if there are none,
            - `individual_scores`: ERec of each question, `None` without evidence,
            - `recall`, `precision`, `iou`: over characters, means of the questions for which they are known,
            - `results`: for each question a dictionary with `erec`, `recall`, `precision`, `iou`, and `reason`, which
              tells why one of them is `None`.
        :raises ValueError: If there is nothing that was retrieved, lists have different lengths, or there are spans
            without documents or sources.
        """
        if retrieved_documents is None and contexts is None:
            msg = "Nothing that was retrieved is given: pass retrieved_documents, contexts, or both."
            raise ValueError(msg)
        if evidence_spans is not None and (retrieved_documents is None or evidence_sources is None):
            msg = "evidence_spans need retrieved_documents to compare with, and evidence_sources to say where they are."
            raise ValueError(msg)
        count = check_lengths(
            evidences=evidences,
            retrieved_documents=retrieved_documents,
            contexts=contexts,
            evidence_spans=evidence_spans,
            evidence_sources=evidence_sources,
        )
        results = []
        for number in range(count):
            documents = retrieved_documents[number] if retrieved_documents is not None else []
            if contexts is None:
                context = "\n".join(document.content or "" for document in documents)
            else:
                context = contexts[number] or ""
            result = _by_text(evidences[number] or [], context)
            if evidence_spans is not None and evidence_sources is not None:
                scores, reason = self._by_place(evidence_spans[number] or [], str(evidence_sources[number]), documents)
                result |= scores._asdict() if scores is not None else {}
                result["reason"] = result["reason"] or reason
            results.append(result)
        individual = [result["erec"] for result in results]
        return {
            "score": mean(individual),
            "individual_scores": individual,
            **{name: mean(result[name] for result in results) for name in SpanScores._fields},
            "results": results,
        }

    def to_dict(self) -> dict[str, Any]:
        """
        Serialise the component.

        :returns: Dictionary with the type and the init parameters.
        """
        return default_to_dict(self, source_key=self.source_key)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "EvidenceRecallEvaluator":
        """
        Revive the component.

        :param data: What `to_dict` gave.
        :returns: The component.
        """
        return default_from_dict(cls, data)

    def _by_place(
        self, spans: Sequence[Sequence[int]], source: str, documents: Sequence[Document]
    ) -> tuple[SpanScores | None, str | None]:
        """Scores over characters, or why there are none."""
        wanted = [(int(start), int(end)) for start, end in spans]
        if not any(end > start for start, end in wanted):
            return None, "the place of the evidence is not known"
        retrieved: dict[str, list[Span]] = {}
        for document in documents:
            place = self._place(document)
            if place is None:
                return None, f"document '{document.id}' does not tell its place in its source"
            retrieved.setdefault(place[0], []).append(place[1])
        return span_scores_of_sources({source: wanted}, retrieved), None

    def _place(self, document: Document) -> tuple[str, Span] | None:
        meta = document.meta
        length = len(document.content or "")
        named = meta.get(self.source_key)
        start = meta.get("split_idx_start")
        if start is None and "source_id" not in meta:
            # Never split: it is its own source.
            own = document.id if self.source_key == "source_id" else named
            return None if own is None else (str(own), (0, length))
        # In trees of Haystack's HierarchicalDocumentSplitter places are relative to the parent, and so is the source.
        if named is None or not isinstance(start, int) or (LEVEL in meta and ANCESTORS not in meta):
            return None
        end = meta.get("split_idx_end")
        return str(named), (start, end if isinstance(end, int) else start + length)


def _by_text(evidences: Sequence[str], context: str) -> dict[str, Any]:
    if isinstance(evidences, str):
        msg = f"The evidence of a question is a list of texts, not one text: {evidences[:60]!r}."
        raise ValueError(msg)
    result: dict[str, Any] = {"erec": None, "recall": None, "precision": None, "iou": None, "reason": None}
    if any(evidences):
        result["erec"] = evidence_recall(evidences, context)
    else:
        result["reason"] = "there is no evidence"
    return result
