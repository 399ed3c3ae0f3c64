# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""
Iterative inference: cut points for a text of any length, window by window (HiChunk, arXiv 2509.11552).

Nothing here talks to a model. The work is a generator that yields questions and is sent answers, so that plain calls,
threads and asynchronous code share it.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Literal, Protocol

from haystack.token_counters.types import TokenCounter

from hichunk_haystack.hichunk.answers import Answer, parse_answer
from hichunk_haystack.hichunk.lines import Lines
from hichunk_haystack.hichunk.prompts import PLACE, fill, try_again
from hichunk_haystack.tokens import count_texts, is_additive

OnFailure = Literal["structure", "single", "raise"]

RESIDUAL_STEPS = ((2, 3, 20), (1, 2, 15), (1, 1, 10), (1, 1, 5), (1, 0, 1))
"""
Residual lines: how many level-two segments from the front, how many from the back, how many lines of each.

Each step is tried until they take less than half of the room. The first two are those of the paper's public code, which
then gives up; the last one keeps at least the title of the section that goes on.
"""

LEAST_ROOM = 64
"""The least room for lines in a window, in tokens: what the instruction leaves must not be below it."""

_BROKEN = 2

Reply = str | Exception
"""What the model answered, or what went wrong when it was asked."""

Cut = tuple[int, bool | None]
"""Level from 1, and whether the line is a title (`None` where the model doesn't say)."""


class HiChunkError(RuntimeError):
    """A model gave nothing usable for a window, and the splitter was told to raise."""


class AnswerCache(Protocol):
    """Answers that were of use, by what was asked."""

    def get(self, prompt: str) -> str | None:
        """Give the answer, or `None`."""

    def put(self, prompt: str, answer: str) -> None:
        """Keep an answer."""


@dataclass(frozen=True)
class Question:
    """
    What to ask a model.

    :param messages: (role, text) of each message of the chat: the instruction with the lines; at a further attempt also
        the useless answer and a complaint.
    :param shown: The line of the document behind each number that the model is shown.
    :param residual: How many of them are residual lines; they come first.
    """

    messages: tuple[tuple[str, str], ...]
    shown: tuple[int, ...]
    residual: int


@dataclass
class Report:
    """
    What happened to one source.

    :param windows: Number of windows.
    :param calls: How often the model was asked.
    :param cached: Windows whose answer came from the cache.
    :param prompt_tokens: Length of all that was asked, in tokens of the splitter's counter.
    :param answer_tokens: Length of all answers, in tokens of the splitter's counter.
    :param retries: How often a window was asked again.
    :param dropped: Why a row of an answer was dropped -> how often (see `answers.Answer`).
    :param fallbacks: Windows that `on_failure` decided.
    :param lines: Number of lines of the source.
    :param cut_points: Number of cut points found.
    :param error: What went wrong last, where it made a fallback necessary.
    """

    windows: int = 0
    calls: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    retries: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    fallbacks: int = 0
    lines: int = 0
    cut_points: int = 0
    error: str | None = None


class Plan:
    """How documents are put to a model; one for any number of documents."""

    def __init__(
        self,
        template: str,
        counter: TokenCounter,
        *,
        window_tokens: int = 16384,
        max_retries: int = 2,
        on_failure: OnFailure = "structure",
    ) -> None:
        """
        Set up the asking.

        :param template: The instruction, with `{lines}`.
        :param counter: Counts the tokens of a window.
        :param window_tokens: The most tokens of a window: instruction, residual lines and lines.
        :param max_retries: How often a window is asked again after a useless answer or an error.
        :param on_failure: What then decides: the Markdown structure, one segment, or nothing (an error is raised).
        :raises ValueError: If the instruction leaves too little room in the window.
        """
        self.template = template
        self.counter = counter
        self.window_tokens = window_tokens
        self.max_retries = max_retries
        self.on_failure = on_failure
        instruction = count_texts(counter, [template.replace(PLACE, "")])[0]
        self.instruction = instruction
        self.room = window_tokens - instruction
        if self.room < LEAST_ROOM:
            msg = (
                f"window_tokens is {window_tokens}, but the instruction alone takes {instruction} tokens and lines "
                f"need {LEAST_ROOM} more. Use a window of at least {instruction + LEAST_ROOM}, or a shorter "
                "prompt_template."
            )
            raise ValueError(msg)


def predict_cuts(
    lines: Lines, plan: Plan, report: Report, cache: AnswerCache | None = None
) -> Generator[Question, Reply, dict[int, Cut]]:
    """
    Find the cut points of a document, window by window.

    A window takes lines until it is full. Where its answer holds more than one level-one cut point, the last level-one
    segment is thrown back and the next window starts there; else the next window starts behind the last line, after
    residual lines of the level-one segment that goes on, which keep the levels steady. Only cut points among the
    window's own lines count.

    Every window moves forward: by at least one line, and any two in a row by as much as one window shows. The latter
    bounds the cost where a model contradicts itself: a level-one cut point among lines for which the window before it
    saw none is kept, but nothing is thrown back for it.

    :param lines: The document.
    :param plan: How it is put to the model.
    :param report: Filled in on the way.
    :param cache: Known answers; new ones that are of use are added.
    :returns: (as the generator's value) line -> cut, in order.
    :raises HiChunkError: If a window stays without a usable answer and `on_failure` is `raise`.
    """
    return (yield from _Reading(lines, plan, report, cache).run())


class _Reading:
    """One document on its way through the windows."""

    def __init__(self, lines: Lines, plan: Plan, report: Report, cache: AnswerCache | None) -> None:
        self.plan = plan
        self.report = report
        self.cache = cache
        self.headings = lines.headings
        self.shown, self.costs = _fitting(lines.shown, plan)
        self.cuts: dict[int, Cut] = {}
        # Lines with cut points of levels one and two, ascending.
        self.ones: list[int] = []
        self.twos: list[int] = []
        # How many windows in a row the generator raised at every attempt.
        self.broken = 0
        numbers = count_texts(plan.counter, [str(number) for number in range(len(self.shown) + _most_residual())])
        self.numbers = list(accumulate(numbers, initial=0))
        report.lines = len(self.shown)

    def run(self) -> Generator[Question, Reply, dict[int, Cut]]:
        """Go through the document."""
        start = seen = 0
        residual: list[int] = []
        while start < len(self.shown):
            end, residual, prompt, tokens = self.window(start, residual)
            self.report.windows += 1
            shown = (*residual, *range(start, end))
            found = yield from self.ask(prompt, tokens, shown, len(residual))
            if found is None:
                # The model can't be asked any more; what is left is one last window.
                end = len(self.shown)
                found = self.fallback(start, end)
            ones = [line for line, cut in found.items() if cut[0] == 1]
            following = end
            if end < len(self.shown) and len(ones) > 1 and ones[-1] >= seen:
                following = ones[-1]
            self.keep(found, following)
            residual = self.residual(following) if following == end else []
            start, seen = following, end
        self.report.cut_points = len(self.cuts)
        return self.cuts

    def window(self, start: int, residual: list[int]) -> tuple[int, list[int], str, int]:
        """Take lines until the window is full: the line after the last, residual lines, the prompt and its length."""
        room, numbers, costs = self.plan.room, self.numbers, self.costs
        first = len(residual)
        used = costs_of(residual, costs) + numbers[first]
        if used + costs[start] + numbers[first + 1] - numbers[first] > room:
            residual, first, used = [], 0, 0
        end = start
        while end < len(costs):
            at = first + end - start
            cost = costs[end] + numbers[at + 1] - numbers[at]
            if used + cost > room and end > start:
                break
            used += cost
            end += 1
        while True:
            prompt = fill(self.plan.template, [self.shown[line] for line in (*residual, *range(start, end))])
            if is_additive(self.plan.counter):
                return end, residual, prompt, self.plan.instruction + used
            # Where counts do not add up, the sum is close but may be too low.
            tokens = count_texts(self.plan.counter, [prompt])[0]
            excess = tokens - self.plan.window_tokens
            if excess <= 0 or end - start == 1:
                return end, residual, prompt, tokens
            end = max(start + 1, end - 1 - (end - start) * excess // self.plan.window_tokens)

    def ask(
        self, prompt: str, tokens: int, shown: tuple[int, ...], residual: int
    ) -> Generator[Question, Reply, dict[int, Cut] | None]:
        """Ask until there is something usable, and map it to the document; `None` when the model can't be asked."""
        report = self.report
        messages: tuple[tuple[str, str], ...] = (("user", prompt),)
        known = None if self.cache is None else self.cache.get(prompt)
        if known is not None:
            answer = parse_answer(known, len(shown))
            if answer.problem is None:
                report.cached += 1
                return self.mapped(answer, shown, residual)
        problem = ""
        failed = True
        for attempt in range(self.plan.max_retries + 1):
            report.retries += attempt > 0
            report.calls += 1
            report.prompt_tokens += tokens + sum(count_texts(self.plan.counter, [text for _, text in messages[1:]]))
            reply = yield Question(messages, shown, residual)
            if isinstance(reply, Exception):
                problem, messages = f"{type(reply).__name__}: {reply}", (("user", prompt),)
                continue
            failed = False
            report.answer_tokens += count_texts(self.plan.counter, [reply])[0]
            answer = parse_answer(reply, len(shown))
            if answer.problem is None:
                self.broken = 0
                if self.cache is not None:
                    self.cache.put(prompt, reply)
                return self.mapped(answer, shown, residual)
            report.dropped.update(answer.dropped)
            problem = f"the answer can't be used: {answer.problem}"
            messages = (("user", prompt), *try_again(reply, answer.problem, len(shown)))
        report.fallbacks += 1
        report.error = f"window {report.windows}, lines {shown[residual]} to {shown[-1]}: {problem}"
        if self.plan.on_failure == "raise":
            raise HiChunkError(report.error)
        self.broken = self.broken + 1 if failed else 0
        # One window may be too much for a server; two in a row mean that it is out of order.
        return None if self.broken == _BROKEN else self.fallback(shown[residual], shown[-1] + 1)

    def mapped(self, answer: Answer, shown: Sequence[int], residual: int) -> dict[int, Cut]:
        """From numbers in a window to lines of the document; residual lines have had their turn."""
        self.report.dropped.update(answer.dropped)
        return {shown[number]: cut for number, cut in answer.cuts.items() if number >= residual}

    def fallback(self, start: int, end: int) -> dict[int, Cut]:
        """Cut points of a window without the model."""
        if self.plan.on_failure == "single":
            return {start: (1, None)}
        return {line: (self.headings[line][0], True) for line in range(start, end) if line in self.headings}

    def keep(self, found: dict[int, Cut], following: int) -> None:
        """Take over the cut points in front of the next window's start."""
        for line, cut in found.items():
            if line < following:
                self.cuts[line] = cut
                if cut[0] == 1:
                    self.ones.append(line)
                elif cut[0] == 2:  # noqa: PLR2004 - level two
                    self.twos.append(line)

    def residual(self, start: int) -> list[int]:
        """Lines of the level-one segment that goes on at a line, less than half of the room."""
        first = self.ones[-1] if self.ones else 0
        low, high = bisect_right(self.twos, first), bisect_left(self.twos, start)
        for front, back, most in RESIDUAL_STEPS:
            if high - low + 1 > front + back:
                # Only the first and the last segments count, however many there are.
                head = [first, *self.twos[low : low + front]]
                tail = [*self.twos[high - back : high], start] if back else []
            else:
                head, tail = [first, *self.twos[low:high], start], []
            spans = [*pairwise(head), *pairwise(tail)]
            chosen = [line for a, b in spans for line in range(a, min(b, a + most))]
            if costs_of(chosen, self.costs) + self.numbers[len(chosen)] < self.plan.room / 2:
                return chosen
        return []


def costs_of(lines: Sequence[int], costs: Sequence[int]) -> int:
    """
    Sum the lengths of lines.

    :param lines: Numbers of lines.
    :param costs: Length in tokens of each line of the document.
    :returns: Length in tokens.
    """
    return sum(costs[line] for line in lines)


def _most_residual() -> int:
    return max((front + back) * most for front, back, most in RESIDUAL_STEPS)


def _fitting(shown: Sequence[str], plan: Plan) -> tuple[list[str], list[int]]:
    """What is shown of each line and its length without the number; a line above half of the room is shown shorter."""
    texts = list(shown)
    costs = count_texts(plan.counter, [f" @ {text}\n" for text in texts])
    most = plan.room // 2
    long = [line for line, cost in enumerate(costs) if cost > most and texts[line]]
    while long:
        for line in long:
            texts[line] = texts[line][: len(texts[line]) // 2].rstrip()
        counts = count_texts(plan.counter, [f" @ {texts[line]}\n" for line in long])
        for line, cost in zip(long, counts, strict=True):
            costs[line] = cost
        long = [line for line in long if costs[line] > most and texts[line]]
    return texts, costs
