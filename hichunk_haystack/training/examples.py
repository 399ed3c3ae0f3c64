# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Windows of numbered lines without heading marks, and what a model should answer to them."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from haystack.token_counters.types import TokenCounter

from hichunk_haystack.hichunk.lines import Lines, make_lines
from hichunk_haystack.hichunk.prompts import TEMPLATES, check_template, fill, write_answer
from hichunk_haystack.hichunk.windows import Plan, Question, Report, predict_cuts
from hichunk_haystack.tokens import HuggingFaceTokenCounter, count_texts

Kind = Literal["original", "shuffled", "shortened"]

# How far sections are cut short (arXiv 2509.11552, public code): to a number of subsections, and of lines in each.
_SUBSECTIONS_KEPT = (5, 15)
_LINES_KEPT = (15, 25)
# Residual lines in training: so many more subsections besides the first, so many lines of each.
_MORE_RESIDUAL = 4
_RESIDUAL_LINES = 20

_SECTION, _SUBSECTION = 1, 2


@dataclass(frozen=True)
class Example:
    """
    One window and its answer.

    :param source: Name of the document.
    :param kind: `original`; `shuffled`, its sections in another order; `shortened`, shuffled with sections cut short.
    :param prompt: What the model is asked.
    :param answer: What it should answer.
    :param lines: Number of lines shown.
    :param residual: How many of them are residual lines.
    :param levels: Level of each cut point of the answer.
    :param tokens: Length of prompt and answer in tokens of the counter.
    """

    source: str
    kind: Kind
    prompt: str
    answer: str
    lines: int
    residual: int
    levels: tuple[int, ...]
    tokens: int

    def to_chat(self) -> dict[str, Any]:
        """
        Give the example in the form that chat fine-tuning takes.

        :returns: `{"messages": [{"role": "user", ...}, {"role": "assistant", ...}]}`.
        """
        return {
            "messages": [
                {"role": "user", "content": self.prompt},
                {"role": "assistant", "content": self.answer},
            ]
        }


def make_examples(
    documents: Iterable[tuple[str, str]],
    *,
    seed: int = 1,
    copies: int = 1,
    window_tokens: int = 8192,
    sentence_chars: int = 100,
    answer_format: Literal["lines", "json"] = "lines",
    prompt_template: str | None = None,
    language: str = "en",
    token_counter: TokenCounter | None = None,
) -> Iterator[Example]:
    """
    Make training examples from Markdown, as the paper does (arXiv 2509.11552).

    Headings tell the answer; their marks are not shown. Each document gives its windows as the splitter would ask for
    them, with residual lines and segments thrown back. Augmented copies have the sections of the highest level in
    another order (`shuffled`), or besides that fewer subsections and lines in each (`shortened`); their residual lines
    are a random choice of subsections. Documents without headings give nothing.

    The same documents and settings give the same examples, whatever the other documents are.

    :param documents: (name, Markdown) of each.
    :param seed: Seed of the augmentation.
    :param copies: How many shuffled and how many shortened copies there are of each document.
    :param window_tokens: The most tokens of a prompt; the paper trains with 8192 and asks with 16384.
    :param sentence_chars: The most characters shown of a line.
    :param answer_format: `lines` or `json`.
    :param prompt_template: The instruction; by default the ready one of `answer_format`.
    :param language: ISO 639-1 code of the documents' language.
    :param token_counter: Counts tokens; by default the tokenizer of all-MiniLM-L6-v2. Use that of the model to train.
    :returns: The examples, document by document.
    :raises ValueError: If the template or the window can't be used; the message says why.

    ```python
    from hichunk_haystack.training import make_examples

    text = "# Kiln\\n\\nFire it slowly over eight hours.\\n\\n# Wheel\\n\\nCentre the clay before you open it.\\n"
    example = next(make_examples([("pottery.md", text)]))
    print(example.answer)
    # 0, Level One, True
    # 2, Level One, True
    ```
    """
    template = prompt_template or TEMPLATES[answer_format]
    check_template(template)
    plan = Plan(template, token_counter or HuggingFaceTokenCounter(), window_tokens=window_tokens)
    kinds: list[tuple[Kind, int]] = [("original", 0)]
    kinds += [(kind, copy) for copy in range(copies) for kind in ("shuffled", "shortened")]
    for name, text in documents:
        if not text.strip():
            continue
        lines = make_lines(text, language=language, sentence_chars=sentence_chars, hide_heading_marks=True)
        if not lines.headings:
            continue
        told: set[str] = set()
        for kind, copy in kinds:
            # Seeded by name: what comes out does not hang on the order of the documents.
            chance = random.Random(f"{seed} {copy} {kind} {name}")  # noqa: S311 - no secret
            for example in _windows(name, kind, _rearranged(lines, kind, chance), plan, answer_format, chance):
                if example.prompt not in told:
                    told.add(example.prompt)
                    yield example


def _windows(
    name: str, kind: Kind, lines: Lines, plan: Plan, answer_format: str, chance: random.Random
) -> Iterator[Example]:
    """The windows of a document as the splitter asks for them, each answered from the headings."""
    work = predict_cuts(lines, plan, Report())
    question = next(work)
    while True:
        residual = list(question.shown[: question.residual])
        if kind != "original":
            residual = _thinned(residual, lines, chance)
        yield _example(name, kind, residual, question, lines, plan, answer_format)
        try:
            question = work.send(_answer(question.shown, lines))
        except StopIteration:
            return


def _example(
    name: str, kind: Kind, residual: list[int], question: Question, lines: Lines, plan: Plan, answer_format: str
) -> Example:
    shown = [*residual, *question.shown[question.residual :]]
    prompt = fill(plan.template, [lines.shown[line] for line in shown])
    answer = _answer(shown, lines, answer_format)
    return Example(
        source=name,
        kind=kind,
        prompt=prompt,
        answer=answer,
        lines=len(shown),
        residual=len(residual),
        levels=tuple(lines.headings[line][0] for line in shown if line in lines.headings),
        tokens=sum(count_texts(plan.counter, [prompt, answer])),
    )


def _answer(shown: Sequence[int], lines: Lines, answer_format: str = "lines") -> str:
    """All headings that are shown, those of residual lines too: the model can't tell which lines these are."""
    headings = lines.headings
    cuts = ((number, headings[line][0], True) for number, line in enumerate(shown) if line in headings)
    return write_answer(cuts, answer_format)


def _rearranged(lines: Lines, kind: Kind, chance: random.Random) -> Lines:
    """The document with its sections in another order, or also cut short."""
    if kind == "original":
        return lines
    order = list(range(len(lines.shown)))
    # A document with a single section of the highest level is its title's: what is below it is shuffled.
    tops = [level for level, _ in lines.headings.values()]
    level = _SECTION if tops.count(_SECTION) > 1 else _SUBSECTION
    first, *sections = _segments(order, lines, level)
    if first[0] in lines.headings and lines.headings[first[0]][0] == level:
        first, sections = [], [first, *sections]
    chance.shuffle(sections)
    if kind == "shortened":
        sections = [_shortened(section, lines, level, chance) for section in sections]
    kept = [*first, *(line for section in sections for line in section)]
    headings = {number: lines.headings[line] for number, line in enumerate(kept) if line in lines.headings}
    return Lines([], [lines.shown[line] for line in kept], headings, {})


def _shortened(section: list[int], lines: Lines, level: int, chance: random.Random) -> list[int]:
    subsections = _segments(section, lines, level + 1)
    few, many = (min(len(subsections), most) for most in _SUBSECTIONS_KEPT)
    kept: list[int] = []
    for subsection in subsections[: chance.randint(few, many)]:
        short, long = (min(len(subsection), most) for most in _LINES_KEPT)
        kept += subsection[: chance.randint(short, long)]
    return kept


def _thinned(residual: list[int], lines: Lines, chance: random.Random) -> list[int]:
    """The first subsection and a few others, of each a random number of lines."""
    if not residual:
        return []
    first, *others = _segments(residual, lines, _SUBSECTION)
    count = chance.randint(min(1, len(others)), min(_MORE_RESIDUAL, len(others)))
    chosen = [first, *(others[number] for number in sorted(chance.sample(range(len(others)), count)))]
    return [line for subsection in chosen for line in subsection[: chance.randint(1, _RESIDUAL_LINES)]]


def _segments(order: Sequence[int], lines: Lines, level: int) -> list[list[int]]:
    """Cut lines in front of the headings of a level and those above it; what stands before the first is a segment."""
    segments: list[list[int]] = []
    for line in order:
        if not segments or (line in lines.headings and lines.headings[line][0] <= level):
            segments.append([])
        segments[-1].append(line)
    return segments
