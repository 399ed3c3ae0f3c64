# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Sequence
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict

from hichunk_haystack.components.evaluators.inputs import check_lengths
from hichunk_haystack.components.preprocessors.splitting import describe
from hichunk_haystack.evaluation.structure import (
    StructureScores,
    average,
    cut_points_of_nodes,
    make_case,
    score_case,
)
from hichunk_haystack.markdown import parse_markdown
from hichunk_haystack.sections import CutPoint


@component
class ChunkPointEvaluator:
    """
    Tells how well a splitter finds where sections start: precision, recall and F1 of cut points (arXiv 2509.11552).

    It takes what a splitter made (`documents`), what it was given (`sources`), and where sections really start
    (`cut_points`). `hidden_sources` makes the last two from Markdown: it hides the headings, and remembers them. A cut
    counts when it lies in front of exactly the right sentence. Levels are compressed on both sides so that the highest
    of each document is 1. The start of a document is no cut.

    To see all sections that a splitter finds, split with a `leaf_tokens` above the length of the documents, and with
    `min_leaf_tokens=1`; see `hichunk_haystack.evaluation.structure.cut_points_of_nodes`.

    ```python
    from haystack import Document

    from hichunk_haystack.components.evaluators import ChunkPointEvaluator
    from hichunk_haystack.components.preprocessors import PlainTextHierarchicalSplitter
    from hichunk_haystack.evaluation.structure import hidden_sources

    page = "# 1 Kiln\\n\\nFire it slowly. Let it cool.\\n\\n# 2 Wheel\\n\\nCentre the clay. Open it.\\n"
    sources, cut_points = hidden_sources([Document(id="page", content=page)])
    splitter = PlainTextHierarchicalSplitter(leaf_tokens=10_000, min_leaf_tokens=1)
    result = ChunkPointEvaluator().run(splitter.run(sources)["documents"], sources, cut_points)
    print(result["score"], result["levels"]["L1"]["recall"], result["pk"])  # 1.0 1.0 0.0
    ```
    """

    __module__ = "hichunk_haystack.components.evaluators"

    def __init__(self, levels: list[int] | None = None, *, windows: bool = True, language: str = "en") -> None:
        """
        Create the component.

        :param levels: The levels to score by themselves; by default 1 and 2.
        :param windows: Whether to measure Pk and WindowDiff too, which need `pip install
            'hichunk-haystack[evaluation]'`.
        :param language: ISO 639-1 code of the documents' language, for finding sentences.
        :raises ValueError: If a level is below 1.
        """
        if any(level < 1 for level in levels or ()):
            msg = f"levels is {levels}; the highest level is 1, and level 0 the whole document."
            raise ValueError(msg)
        self.levels = levels
        self.windows = windows
        self.language = language

    @component.output_types(
        score=float | None,
        individual_scores=list[float | None],
        levels=dict[str, dict[str, Any]],
        pk=float | None,
        window_diff=float | None,
        results=list[dict[str, Any]],
    )
    def run(
        self, documents: list[Document], sources: list[Document], cut_points: list[list[list[int]]] | None = None
    ) -> dict[str, Any]:
        """
        Score the sections that a splitter found.

        :param documents: All that a splitter made of the sources: nodes of trees, or plain chunks with `source_id` and
            `split_idx_start`, as Haystack's DocumentSplitter gives them.
        :param sources: What was split.
        :param cut_points: For each source where its sections really start: offset in characters, and level from 1 on.
            By default the Markdown headings of the sources, which then were there for the splitter to see.
        :returns: A dictionary with
            - `score`: F1 without regard to levels (Lall), mean of the sources; `None` if none has a cut,
            - `individual_scores`: the same for each source, `None` for those without a cut, which are left out,
            - `levels`: for `L1`, `L2` (or those asked for) and `Lall` a dictionary with `f1`, the mean of the sources,
              and `precision`, `recall` and `f1_of_all` over the cuts of all sources together,
            - `pk`, `window_diff`: means of the sources (errors: 0 is best), `None` if not asked for,
            - `results`: for each source a dictionary with `source_id`, `levels`, `pk`, `window_diff` and `reason`,
              which tells why there is no score.
        :raises ValueError: If the lists have different lengths, a level is below 1, or documents belong to none of the
            sources.
        :raises ImportError: If NLTK is missing and `windows` is set.
        """
        check_lengths(sources=sources, cut_points=cut_points)
        nodes = _by_source(documents, sources)
        results = []
        known = []
        for number, source in enumerate(sources):
            right = cut_points[number] if cut_points is not None else None
            scores, reason = self._score(source, right, nodes[source.id])
            if scores is not None:
                known.append(scores)
            results.append(_told(source, scores, reason))
        means = average(known)
        levels = {
            name: {"f1": means.f1[name], "precision": all_.precision, "recall": all_.recall, "f1_of_all": all_.f1}
            for name, all_ in means.over_all.items()
        }
        return {
            "score": means.f1.get("Lall"),
            "individual_scores": [(result["levels"].get("Lall") or {}).get("f1") for result in results],
            "levels": levels,
            "pk": means.pk,
            "window_diff": means.window_diff,
            "results": results,
        }

    def to_dict(self) -> dict[str, Any]:
        """
        Serialise the component.

        :returns: Dictionary with the type and the init parameters.
        """
        return default_to_dict(self, levels=self.levels, windows=self.windows, language=self.language)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "ChunkPointEvaluator":
        """
        Revive the component.

        :param data: What `to_dict` gave.
        :returns: The component.
        """
        return default_from_dict(cls, data)

    def _score(
        self, source: Document, right: Sequence[Sequence[int]] | None, nodes: Sequence[Document]
    ) -> tuple[StructureScores | None, str | None]:
        """The scores of a source, or why there are none."""
        text = source.content or ""
        if right is None:
            gold = [CutPoint(offset, level) for offset, level, _ in parse_markdown(text).headings]
        else:
            gold = [CutPoint(int(offset), int(level)) for offset, level, *_ in right]
        case = make_case(text, gold, self.language)
        if not case.right:
            return None, "there is no section to find"
        try:
            found = cut_points_of_nodes(nodes)
        except ValueError as error:
            # One source's failure must leave the others.
            return None, str(error)
        levels = (1, 2) if self.levels is None else self.levels
        reason = None if nodes else "the splitter gave nothing of this source, which counts as no cut"
        return score_case(case, found, levels, windows=self.windows), reason


def _by_source(documents: Sequence[Document], sources: Sequence[Document]) -> dict[str, list[Document]]:
    nodes: dict[str, list[Document]] = {source.id: [] for source in sources}
    strangers = []
    for document in documents:
        # A root, and a document that was not split, is its own source.
        own = document.meta.get("source_id", document.id)
        if own in nodes:
            nodes[own].append(document)
        else:
            strangers.append(document)
    if strangers:
        msg = (
            f"{len(strangers)} of {len(documents)} documents belong to none of the sources; the first is "
            f"{describe(strangers[0])}. Pass the sources that were split: their ids are the documents' source_id."
        )
        raise ValueError(msg)
    return nodes


def _told(source: Document, scores: StructureScores | None, reason: str | None) -> dict[str, Any]:
    levels = {} if scores is None else scores.levels
    windows = None if scores is None else scores.windows
    return {
        "source_id": source.id,
        "levels": {name: None if one is None else one._asdict() for name, one in levels.items()},
        "pk": None if windows is None else windows.pk,
        "window_diff": None if windows is None else windows.window_diff,
        "reason": reason,
    }
