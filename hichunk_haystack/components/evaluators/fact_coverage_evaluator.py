# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from haystack import component, default_from_dict, default_to_dict, logging
from haystack.components.generators.chat.types import ChatGenerator
from haystack.core.serialization import component_to_dict
from tqdm import tqdm

from hichunk_haystack.components.evaluators.inputs import check_lengths, mean
from hichunk_haystack.evaluation.facts import (
    EXTRACTION_TEMPLATE,
    JUDGING_TEMPLATE,
    Coverage,
    Item,
    Judging,
    check_template,
    judge,
)
from hichunk_haystack.hichunk.asking import Asking, answered_all, answered_all_async

logger = logging.getLogger(__name__)


@component
class FactCoverageEvaluator:
    """
    Tells which share of the facts of a right answer a response covers: Fact-Cov of HiChunk (arXiv 2509.11552).

    A language model judges. The facts are given, or the model takes them from the right answer first. What it answers
    is read leniently. A question that could not be judged has no score and a reason, and the others are not held up.

    ```python
    from haystack.components.generators.chat import MockChatGenerator

    from hichunk_haystack.components.evaluators import FactCoverageEvaluator

    # In place of a model: OpenAIChatGenerator, EndpointChatGenerator, ...
    judge = MockChatGenerator('{"verdicts": [{"number": 1, "covered": true}, {"number": 2, "covered": false}]}')
    result = FactCoverageEvaluator(judge, progress_bar=False).run(
        questions=["How is the kiln fired?"],
        predicted_answers=["Slowly, over nine hours."],
        facts=[["Firing takes nine hours.", "The kiln cools for a day."]],
    )
    print(result["score"], result["results"][0]["covered"])  # 0.5 [1.0, 0.0]
    ```
    """

    __module__ = "hichunk_haystack.components.evaluators"

    def __init__(
        self,
        chat_generator: ChatGenerator,
        *,
        completions: int = 1,
        max_retries: int = 1,
        max_workers: int = 4,
        judging_template: str = JUDGING_TEMPLATE,
        extraction_template: str = EXTRACTION_TEMPLATE,
        progress_bar: bool = True,
    ) -> None:
        """
        Create the component.

        :param chat_generator: Any Haystack ChatGenerator. Set its temperature to 0 for one completion.
        :param completions: How often each response is judged; the mean counts. More than one needs a temperature above
            0.
        :param max_retries: How often the model is asked again after an error, or after an answer without a verdict on
            each fact, of which it is told. The generator's own retries come on top.
        :param max_workers: How many questions are worked on at once, in threads or, in `run_async`, concurrently.
        :param judging_template: What the model is asked about a response, with the fields `{facts}` (numbered from 1),
            `{response}`, and perhaps `{question}`, `{answer}` (the right one) and `{count}` (of the facts).
        :param extraction_template: What it is asked where there are no facts, with the fields `{answer}` and perhaps
            `{question}`.
        :param progress_bar: Whether to show progress over questions.
        :raises ValueError: If a parameter makes no sense; the message names it.
        """
        for name, value, least in (
            ("completions", completions, 1),
            ("max_retries", max_retries, 0),
            ("max_workers", max_workers, 1),
        ):
            if value < least:
                msg = f"{name} is {value}; it must be at least {least}."
                raise ValueError(msg)
        check_template(judging_template, "judging_template", ("facts", "response"))
        check_template(extraction_template, "extraction_template", ("answer",))
        self.chat_generator = chat_generator
        self.completions = completions
        self.max_retries = max_retries
        self.max_workers = max_workers
        self.judging_template = judging_template
        self.extraction_template = extraction_template
        self.progress_bar = progress_bar

    def warm_up(self) -> None:
        """Open the generator."""
        if hasattr(self.chat_generator, "warm_up"):
            self.chat_generator.warm_up()

    async def warm_up_async(self) -> None:
        """Open the generator for asynchronous use."""
        if hasattr(self.chat_generator, "warm_up_async"):
            await self.chat_generator.warm_up_async()
        else:
            self.warm_up()

    def close(self) -> None:
        """Close the generator, where it can be closed."""
        if hasattr(self.chat_generator, "close"):
            self.chat_generator.close()

    async def close_async(self) -> None:
        """Close the generator's asynchronous side, where it has one."""
        if hasattr(self.chat_generator, "close_async"):
            await self.chat_generator.close_async()
        else:
            self.close()

    @component.output_types(score=float | None, individual_scores=list[float | None], results=list[dict[str, Any]])
    def run(
        self,
        questions: list[str],
        predicted_answers: list[str],
        facts: list[list[str]] | None = None,
        ground_truth_answers: list[str] | None = None,
    ) -> dict[str, Any]:
        """
        Judge responses. All lists have an entry for each question.

        :param questions: The questions.
        :param predicted_answers: The responses to judge.
        :param facts: For each question what a complete answer states; where the list is empty, the facts are taken from
            the right answer.
        :param ground_truth_answers: The right answers.
        :returns: A dictionary with
            - `score`: mean of the questions that could be judged; `None` if there are none,
            - `individual_scores`: for each question the share of its facts that the response covers, from 0 to 1;
              `None` where it could not be told,
            - `results`: for each question a dictionary with `score`, `facts`, `covered` (for each fact the share of the
              completions that found it covered), `completions` (how many could be read), `unjudged` (numbers from 0 of
              facts on which a completion was silent, which counts as not covered) and `reason` (what went wrong).
        :raises ValueError: If the lists have different lengths, or there are neither facts nor right answers.
        """
        works = self._works(questions, predicted_answers, facts, ground_truth_answers)
        self.warm_up()
        with self._progress(works) as progress:
            return _result(answered_all(works, self.chat_generator, self.max_workers, _Step(progress)))

    @component.output_types(score=float | None, individual_scores=list[float | None], results=list[dict[str, Any]])
    async def run_async(
        self,
        questions: list[str],
        predicted_answers: list[str],
        facts: list[list[str]] | None = None,
        ground_truth_answers: list[str] | None = None,
    ) -> dict[str, Any]:
        """
        Judge responses without blocking. All lists have an entry for each question.

        :param questions: The questions.
        :param predicted_answers: The responses to judge.
        :param facts: For each question what a complete answer states; where the list is empty, the facts are taken from
            the right answer.
        :param ground_truth_answers: The right answers.
        :returns: What `run` returns.
        :raises ValueError: If the lists have different lengths, or there are neither facts nor right answers.
        """
        works = self._works(questions, predicted_answers, facts, ground_truth_answers)
        await self.warm_up_async()
        with self._progress(works) as progress:
            answers = await answered_all_async(works, self.chat_generator, self.max_workers, _Step(progress))
        return await asyncio.to_thread(_result, answers)

    def to_dict(self) -> dict[str, Any]:
        """
        Serialise the component.

        :returns: Dictionary with the type and the init parameters.
        """
        return default_to_dict(
            self,
            chat_generator=component_to_dict(self.chat_generator, "chat_generator"),
            completions=self.completions,
            max_retries=self.max_retries,
            max_workers=self.max_workers,
            judging_template=self.judging_template,
            extraction_template=self.extraction_template,
            progress_bar=self.progress_bar,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "FactCoverageEvaluator":
        """
        Revive the component.

        :param data: What `to_dict` gave.
        :returns: The component.
        """
        return default_from_dict(cls, data)

    def _works(
        self,
        questions: Sequence[str],
        responses: Sequence[str],
        facts: Sequence[Sequence[str]] | None,
        answers: Sequence[str] | None,
    ) -> list[Asking[Coverage]]:
        if facts is None and answers is None:
            msg = "There is nothing to compare with: pass facts, ground_truth_answers, or both."
            raise ValueError(msg)
        count = check_lengths(
            questions=questions, predicted_answers=responses, facts=facts, ground_truth_answers=answers
        )
        judging = Judging(self.completions, self.max_retries, self.judging_template, self.extraction_template)
        return [
            judge(
                Item(
                    questions[number],
                    responses[number],
                    _facts(facts[number]) if facts is not None else (),
                    answers[number] if answers is not None else None,
                ),
                judging,
            )
            for number in range(count)
        ]

    def _progress(self, works: Sequence[Asking[Coverage]]) -> "tqdm[Any]":
        return tqdm(total=len(works), desc="Judging", unit="question", disable=not self.progress_bar)


class _Step:
    """Moves a bar on, from any thread."""

    def __init__(self, progress: "tqdm[Any]") -> None:
        self.progress = progress
        self.lock = threading.Lock()

    def __call__(self) -> None:
        with self.lock:
            self.progress.update(1)


def _facts(facts: Sequence[str] | None) -> tuple[str, ...]:
    if isinstance(facts, str):
        msg = f"The facts of a question are a list of texts, not one text: {facts[:60]!r}."
        raise ValueError(msg)
    return tuple(facts or ())


def _result(answers: Sequence[Coverage | Exception]) -> dict[str, Any]:
    coverages = [
        Coverage(reason=f"{type(answer).__name__}: {answer}") if isinstance(answer, Exception) else answer
        for answer in answers
    ]
    failed = [coverage for coverage in coverages if coverage.score is None]
    if failed:
        logger.warning(
            "{failed} of {total} questions could not be judged and are left out of the score; {reason}",
            failed=len(failed),
            total=len(coverages),
            reason=failed[0].reason,
        )
    individual = [coverage.score for coverage in coverages]
    return {
        "score": mean(individual),
        "individual_scores": individual,
        "results": [asdict(coverage) for coverage in coverages],
    }
