# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""ChatGenerators that answer from a document's own headings, which they are not shown."""

import re

from haystack import component
from haystack.dataclasses import ChatMessage

from hichunk_haystack.hichunk.lines import make_lines
from hichunk_haystack.hichunk.prompts import LEVELS

NUMBERED = re.compile(r"^(\d+) @(?: (.*))?$", re.MULTILINE)


def shown_lines(prompt: str) -> list[str]:
    """The numbered lines of a prompt, which must be numbered from 0 on."""
    found = [(int(number), text) for number, text in NUMBERED.findall(prompt)]
    assert [number for number, _ in found] == list(range(len(found)))
    return [text for _, text in found]


def row(number: int, level: int) -> str:
    return f"{number}, Level {LEVELS[level - 1]}, True"


@component
class GoldGenerator:
    """
    Knows the headings of one document, and finds the place of each window by the texts in it.

    On the way it checks what every window must keep: the first starts at line 0, a later one right behind the one
    before it (after residual lines, which stood there earlier) or inside of it (then without residual lines).

    :param local: Tell levels as one who sees nothing but the window: counted from the highest that is in it.
    """

    def __init__(self, text: str, *, local: bool = False, hidden: bool = True) -> None:
        lines = make_lines(text, hide_heading_marks=hidden)
        self.text = text
        self.local = local
        self.lines = [line.rstrip() for line in lines.shown]
        self.headings = lines.headings
        self.start = self.end = 0
        self.calls = 0
        self.longest = ""
        # Line -> whether the window that was asked for it last showed a heading of each level above the line's own.
        self.seen: dict[int, bool] = {}

    def place(self, texts: list[str]) -> tuple[int, int]:
        """Where the window starts in the document, and how many residual lines stand before that."""
        count = len(texts)
        if self.calls == 0:
            assert texts == self.lines[:count]
            return 0, 0
        for residual in range(1, count):
            own = count - residual
            earlier = set(self.lines[: self.end])
            if texts[residual:] == self.lines[self.end : self.end + own] and set(texts[:residual]) <= earlier:
                return self.end, residual
        inside = [at for at in range(self.start + 1, self.end + 1) if texts == self.lines[at : at + count]]
        assert inside, "a window that neither goes on nor starts inside the one before it"
        return inside[-1], 0

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]) -> dict[str, list[ChatMessage]]:
        prompt = messages[0].text or ""
        texts = shown_lines(prompt)
        start, residual = self.place(texts)
        self.calls += 1
        self.longest = max(self.longest, prompt, key=len)
        end = start + len(texts) - residual
        before = self.residual_lines(texts[:residual], start)
        numbers = [*before, *range(start, end)]
        levels = {at: self.headings[at][0] for at in numbers if at in self.headings}
        ranks = {level: rank for rank, level in enumerate(sorted(set(levels.values())), start=1)}
        rows = []
        for number, line in enumerate(numbers):
            if line in levels:
                level = ranks[levels[line]] if self.local else levels[line]
                rows.append(row(number, level))
                if number >= residual:
                    self.seen[line] = set(range(1, levels[line])) <= set(ranks)
        self.start, self.end = start, end
        return {"replies": [ChatMessage.from_assistant("\n".join(rows) or "none")]}

    def residual_lines(self, texts: list[str], start: int) -> list[int]:
        """The lines of the document behind residual lines: each the last one of that text that keeps their order."""
        numbers: list[int] = []
        at = start
        for text in reversed(texts):
            at = max(line for line in range(at) if self.lines[line] == text)
            numbers.append(at)
        return numbers[::-1]
