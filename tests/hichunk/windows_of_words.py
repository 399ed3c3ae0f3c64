# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Windows over lines whose tokens are their words, and models that answer by a script."""

from collections.abc import Callable, Mapping, Sequence

from haystack.dataclasses import ChatMessage

from hichunk_haystack.hichunk.lines import Lines
from hichunk_haystack.hichunk.prompts import write_answer
from hichunk_haystack.hichunk.windows import (
    Cut,
    OnFailure,
    Plan,
    Question,
    Reply,
    Report,
    predict_cuts,
)

Script = Callable[[Question], Reply]


class Words:
    """Counts words, which add up."""

    additive = True

    def count_texts(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def count(self, messages: list[ChatMessage], tools: object = None) -> int:
        return sum(self.count_texts([message.text or "" for message in messages]))


# A line of the documents below is 8 tokens: number, "@" and 6 words. 64 tokens are 8 lines.
def plan(lines: int = 8, *, retries: int = 2, on_failure: OnFailure = "structure") -> Plan:
    return Plan("{lines}", Words(), window_tokens=8 * lines, max_retries=retries, on_failure=on_failure)


def document(count: int, headings: Mapping[int, int]) -> Lines:
    """A document of equal lines; line -> level of its headings."""
    shown = [f"line {number} of a document here" for number in range(count)]
    return Lines(list(range(count)), shown, {line: (level, f"T{line}") for line, level in headings.items()}, {})


def gold(lines: Lines) -> Script:
    """Answers from the headings."""

    def reply(question: Question) -> str:
        headings = lines.headings
        return write_answer((n, headings[line][0], True) for n, line in enumerate(question.shown) if line in headings)

    return reply


def ask(
    lines: Lines, how: Plan, script: Script, cache: dict[str, str] | None = None
) -> tuple[dict[int, Cut], list[Question], Report]:
    """Run a document through its windows."""
    questions: list[Question] = []
    report = Report()
    work = predict_cuts(lines, how, report, None if cache is None else DictCache(cache))
    try:
        question = next(work)
        while True:
            questions.append(question)
            question = work.send(script(question))
    except StopIteration as done:
        return done.value, questions, report


class DictCache:
    def __init__(self, known: dict[str, str]) -> None:
        self.known = known

    def get(self, prompt: str) -> str | None:
        return self.known.get(prompt)

    def put(self, prompt: str, answer: str) -> None:
        self.known[prompt] = answer


def own(questions: Sequence[Question]) -> list[tuple[int, int]]:
    """First line of each window's own, and the line after the last."""
    return [(question.shown[question.residual], question.shown[-1] + 1) for question in questions]
