# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import asyncio
import json
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest
from haystack import Pipeline, component
from haystack.components.generators.chat import MockChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.evaluation import EvaluationRunResult

from hichunk_haystack.components.evaluators import FactCoverageEvaluator

FACTS = ["Firing takes nine hours.", "The kiln cools for a day."]


@component
class Scripted:
    """A generator that answers by a function of the messages' texts, and keeps what it was asked."""

    def __init__(self, answer: Callable[[list[str]], str]) -> None:
        self.answer = answer
        self.asked: list[list[str]] = []
        self.at_once = self.most_at_once = 0
        self.lock = threading.Lock()
        self.steps: list[str] = []

    def warm_up(self) -> None:
        self.steps.append("warm")

    def close(self) -> None:
        self.steps.append("closed")

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]) -> dict[str, Any]:
        texts = [message.text or "" for message in messages]
        with self.lock:
            self.asked.append(texts)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return {"replies": [ChatMessage.from_assistant(self.answer(texts))]}
        finally:
            with self.lock:
                self.at_once -= 1


def verdicts(*covered: object) -> str:
    return json.dumps({"verdicts": [{"number": n, "covered": one} for n, one in enumerate(covered, start=1)]})


def evaluator(answer: Callable[[list[str]], str], **options: Any) -> tuple[FactCoverageEvaluator, Scripted]:
    generator = Scripted(answer)
    return FactCoverageEvaluator(generator, progress_bar=False, **options), generator


def in_turn(*answers: str) -> Callable[[list[str]], str]:
    left = list(answers)
    return lambda texts: left.pop(0)


def test_share_of_the_facts() -> None:
    judge, generator = evaluator(lambda texts: verdicts(True, False))
    result = judge.run(["How long?"], ["Nine hours. {facts} {count}"], [FACTS])
    assert result["score"] == 0.5
    assert result["individual_scores"] == [0.5]
    assert result["results"] == [
        {
            "score": 0.5, "facts": FACTS, "covered": [1.0, 0.0], "completions": 1, "unjudged": [], "reason": None,
        }
    ]  # fmt: skip
    ((prompt,),) = generator.asked
    # All that matters is shown, and braces in a response are nothing but braces.
    for text in (
        "How long?",
        "1. Firing takes nine hours.\n2. The kiln cools",
        "Nine hours. {facts} {count}",
        "2 facts",
    ):
        assert text in prompt
    assert generator.steps == ["warm"]


def test_facts_are_taken_from_the_answer() -> None:
    def answer(texts: list[str]) -> str:
        if "apart into facts" in texts[0]:
            assert "Nine hours, then a day." in texts[0]
            return "Facts:\n- Firing takes nine hours.\n- The kiln cools for a day."
        assert "1. Firing takes nine hours.\n2. The kiln cools for a day." in texts[0]
        return verdicts("yes", "yes")

    judge, generator = evaluator(answer)
    # Those of the second question are given.
    result = judge.run(
        ["How long?", "And then?"], ["Nine hours.", "Then a day."], [[], [*FACTS[:1], " ", *FACTS[1:]]],
        ["Nine hours, then a day.", "x"],
    )  # fmt: skip
    assert result["individual_scores"] == [1.0, 1.0]
    assert [one["facts"] for one in result["results"]] == [FACTS, FACTS]
    assert len(generator.asked) == 3
    only_answers = judge.run(["How long?"], ["Nine hours."], ground_truth_answers=["Nine hours, then a day."])
    assert only_answers["score"] == 1.0


def test_completions_are_averaged() -> None:
    answers = in_turn(verdicts(1, 0), verdicts(1, 1), "What?", "What?", verdicts(0, 0))
    judge, _ = evaluator(answers, completions=4)
    (told,) = judge.run(["?"], ["Nine."], [FACTS])["results"]
    # One of four can't be read, not even when asked again. 2 of 3 and 1 of 3 for the facts: 3 of 6.
    assert told["covered"] == pytest.approx([2 / 3, 1 / 3])
    assert told["score"] == pytest.approx(0.5)
    assert told["completions"] == 3
    assert "no verdict on 2 of 2 facts" in told["reason"]


def test_missing_verdicts_are_asked_for_again() -> None:
    judge, generator = evaluator(in_turn('{"1": "no"}', "2. yes"))
    (told,) = judge.run(["?"], ["Nine."], [FACTS])["results"]
    assert (told["score"], told["unjudged"], told["reason"]) == (0.5, [], None)
    prompt, answer, complaint = generator.asked[1]
    assert prompt == generator.asked[0][0]
    assert answer == '{"1": "no"}'
    assert "no verdict on the facts 2" in complaint
    # Still missing: it is not covered, and that is told.
    judge, _ = evaluator(lambda texts: '{"1": "yes"}')
    (told,) = judge.run(["?"], ["Nine."], [FACTS])["results"]
    assert (told["score"], told["covered"], told["unjudged"]) == (0.5, [1.0, 0.0], [1])


def test_a_failed_question_leaves_the_others() -> None:
    def answer(texts: list[str]) -> str:
        question = re.search(r"Question:\n(\w+)", texts[0])
        assert question is not None
        if question[1] == "down":
            msg = "server is down"
            raise RuntimeError(msg)
        return {"good": verdicts(1, 1), "chatter": "I would rather not.", "wrong": "[true, false, true]"}[question[1]]

    judge, generator = evaluator(answer, max_retries=2)
    names = ["good", "down", "chatter", "wrong", "silent", "factless", "void", "good"]
    responses: list[Any] = ["x", "x", "x", "x", "  ", "x", None, "x"]
    facts: list[Any] = [FACTS, FACTS, FACTS, FACTS, FACTS, [""], FACTS, FACTS]
    for result in (judge.run(names, responses, facts), asyncio.run(judge.run_async(names, responses, facts))):
        assert result["individual_scores"] == [1.0, None, None, None, 0.0, None, None, 1.0]
        assert result["score"] == pytest.approx(2 / 3)
        reasons = [one["reason"] for one in result["results"]]
        assert reasons[1] == "RuntimeError: server is down"
        assert reasons[2].startswith("no verdict on 2 of 2 facts can be read from the answer: 'I would")
        assert reasons[3].startswith("no verdict on 2 of 2 facts")
        assert reasons[5] == "there are neither facts nor an answer to take them from"
        assert reasons[6] == "there is no response"
        assert reasons[0] is reasons[4] is reasons[7] is None
    # Two good ones once, three failing ones three times; an empty response is not asked about.
    assert len(generator.asked) == 2 * (2 + 3 * 3)


def test_no_facts_can_be_taken() -> None:
    judge, generator = evaluator(lambda texts: "There are none.")
    (told,) = judge.run(["?"], ["x"], ground_truth_answers=["Nine hours."])["results"]
    assert told["score"] is None
    assert told["reason"] == "no facts can be read from the model's answer: 'There are none.'"
    assert len(generator.asked) == 2
    assert evaluator(lambda texts: "")[0].run(["?"], ["x"], ground_truth_answers=[" "])["score"] is None


def test_questions_are_worked_on_at_once() -> None:
    together = threading.Barrier(3, timeout=20)

    def answer(texts: list[str]) -> str:
        together.wait()
        return verdicts(True)

    judge, generator = evaluator(answer, max_workers=3)
    arguments = ([f"q{n}" for n in range(6)], ["x"] * 6, [["It is so."]] * 6)
    assert judge.run(*arguments)["score"] == 1.0
    assert asyncio.run(judge.run_async(*arguments))["score"] == 1.0
    assert generator.most_at_once == 3


def test_broken_off_it_asks_no_more() -> None:
    def answer(texts: list[str]) -> str:
        raise KeyboardInterrupt

    judge, generator = evaluator(answer, max_workers=2)
    with pytest.raises(KeyboardInterrupt):
        judge.run([f"q{n}" for n in range(50)], ["x"] * 50, [FACTS] * 50)
    assert len(generator.asked) < 10


def test_an_asynchronous_generator_is_used_as_such() -> None:
    judge = FactCoverageEvaluator(MockChatGenerator(verdicts(True, False)), progress_bar=False)
    result = asyncio.run(judge.run_async(["?"], ["x"], [FACTS]))
    assert result == judge.run(["?"], ["x"], [FACTS])
    assert result["score"] == 0.5


def test_odd_texts() -> None:
    judge, generator = evaluator(lambda texts: verdicts(1))
    result = judge.run(["\ud800?"], ["lone \udfff, nul \0, {response}"], [["one\nfact\u2028here"]])
    assert result["score"] == 1.0
    prompt = generator.asked[0][0]
    prompt.encode()
    assert "1. one fact here" in prompt


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"completions": 0}, "completions is 0; it must be at least 1"),
        ({"max_workers": 0}, "max_workers is 0"),
        ({"max_retries": -1}, "max_retries is -1"),
        ({"judging_template": "Judge {facts}"}, r"judging_template does not hold \{response\}"),
        ({"extraction_template": "Facts?"}, r"extraction_template does not hold \{answer\}"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FactCoverageEvaluator(MockChatGenerator("x"), **options)


def test_inputs_that_make_no_sense() -> None:
    judge = FactCoverageEvaluator(MockChatGenerator("x"), progress_bar=False)
    with pytest.raises(ValueError, match="nothing to compare with"):
        judge.run(["?"], ["x"])
    with pytest.raises(ValueError, match="questions 1, predicted_answers 2, facts 1"):
        judge.run(["?"], ["x", "y"], [FACTS])
    with pytest.raises(ValueError, match="list of texts, not one text"):
        judge.run(["?"], ["x"], ["Firing takes nine hours."])  # type: ignore[list-item]
    assert judge.run([], [], [])["score"] is None


def test_yaml_and_haystacks_report() -> None:
    pipeline = Pipeline()
    judge = FactCoverageEvaluator(
        MockChatGenerator(verdicts(True)), completions=2, judging_template="{facts} {response}", progress_bar=False
    )
    pipeline.add_component("evaluator", judge)
    dump = pipeline.dumps()
    assert "type: hichunk_haystack.components.evaluators.FactCoverageEvaluator" in dump
    loaded = Pipeline.loads(dump, allowed_modules=["hichunk_haystack"])
    assert loaded.dumps() == dump
    parameters = loaded.get_component("evaluator").to_dict()["init_parameters"]
    assert parameters.pop("chat_generator")["type"].endswith("MockChatGenerator")
    assert parameters.pop("extraction_template").startswith("Below stand")
    assert parameters == {
        "completions": 2, "max_retries": 1, "max_workers": 4, "judging_template": "{facts} {response}",
        "progress_bar": False,
    }  # fmt: skip
    inputs = {"questions": ["?", "!"], "predicted_answers": ["x", "y"], "facts": [["One."], []]}
    result = loaded.run({"evaluator": inputs})["evaluator"]
    assert result["individual_scores"] == [1.0, None]
    json.dumps(result)
    report = EvaluationRunResult("run", inputs={"question": ["?", "!"]}, results={"fact_coverage": result})
    assert report.aggregated_report(output_format="json") == {"metrics": ["fact_coverage"], "score": [1.0]}


def test_the_generator_is_closed() -> None:
    judge, generator = evaluator(lambda texts: "")
    judge.close()
    asyncio.run(judge.close_async())
    assert generator.steps == ["closed", "closed"]
