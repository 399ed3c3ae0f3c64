# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Questions whose evidence is dense: whole sections of documents that have headings."""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hichunk_haystack.evaluation.datasets import Dataset, Question
from hichunk_haystack.evaluation.evidence import Span
from hichunk_haystack.markdown import parse_markdown
from hichunk_haystack.sections import CutPoint
from hichunk_haystack.text_units import Unit, find_units

_PROSE = frozenset({"paragraph", "list item", "quote"})
_MARKS = re.compile(r"^\s*#+\s*|\s*#*\s*$")
_ATX = re.compile(r"[ \t]*#{1,6}(?=[ \t\r\n]|\Z)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*(?=[\r\n]|\Z)")
_LINE_END = re.compile(r"\r\n?|\n")
_BLANK_LINE = re.compile(r"(?:\r\n?+|\n)[ \t]*(?:\r\n?+|\n)[ \t]*\Z")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


@dataclass
class HiddenHeadings:
    """
    A text whose headings are hidden.

    :param text: What is left.
    :param cut_points: Where the sections start in it, without their titles.
    :param sections: For each cut point the titles from the top down to it.
    """

    text: str
    cut_points: list[CutPoint]
    sections: list[list[str]]


def hide_headings(markdown: str, *, keep_lines: bool = False) -> HiddenHeadings:
    """
    Take the headings out of a text.

    :param markdown: The text.
    :param keep_lines: Whether only the marks of headings go, so that a heading is a line like any other; by default its
        whole line goes.
    :returns: The rest, and what it does not tell any more.
    """
    parts: list[str] = []
    cut_points: list[CutPoint] = []
    sections: list[list[str]] = []
    path: list[tuple[int, str]] = []
    position = length = 0
    for offset, level, title in parse_markdown(markdown).headings:
        if offset < position:
            continue
        before = markdown[position:offset]
        position = _end_of_heading(markdown, offset)
        line = ""
        if keep_lines:
            line = _MARKS.sub("", markdown[offset : _end_of_line(markdown, offset)]) + "\n"
            if _UNDERLINE.match(markdown, position):
                line += "\n"  # a rule, which would make a heading of the line again
        elif before.strip() and not _BLANK_LINE.search(before):
            before += "\n"  # or the paragraphs above and below would become one
        parts += [before, line]
        length += len(before)
        path = [*((above, name) for above, name in path if above < level), (level, title or "")]
        cut_points.append(CutPoint(length, level, None))
        sections.append([name for _, name in path])
        length += len(line)
    return HiddenHeadings("".join([*parts, markdown[position:]]), cut_points, sections)


def dense_questions(
    documents: Mapping[str, str],
    *,
    name: str = "dense",
    documents_used: int = 108,
    least_sections: int = 5,
    questions: int = 400,
    least_sentences: int = 5,
    most_sentences: int = 40,
    seed: int = 0,
) -> tuple[Dataset, dict[str, HiddenHeadings]]:
    """
    Make a set of questions that are answered by whole sections.

    Each question is the name of a document and the titles down to one of its sections, as words; the evidence is all
    sentences of the section. Heading lines are taken out of the documents, so that no document gives the answer away.

    :param documents: Markdown texts by name; the name counts as a title, without a number in front.
    :param name: Name of the set.
    :param documents_used: How many documents are drawn from those that have enough sections to ask for.
    :param least_sections: How many sections are enough.
    :param questions: How many questions are drawn from all sections of these documents.
    :param least_sentences: The fewest sentences of a section.
    :param most_sentences: The most sentences of a section.
    :param seed: For the draw.
    :returns: The set, and where the sections start in each of its documents.
    """
    hidden = {title: hide_headings(text) for title, text in documents.items()}
    asked = {title: _sections(title, one, least_sentences, most_sentences) for title, one in hidden.items()}
    draw = random.Random(seed)  # noqa: S311 - no secret
    enough = sorted(title for title, sections in asked.items() if len(sections) >= least_sections)
    chosen = sorted(draw.sample(enough, min(documents_used, len(enough))))
    drawn = [question for title in chosen for question in asked[title]]
    picked = sorted(draw.sample(range(len(drawn)), min(questions, len(drawn))))
    texts = {title: hidden[title].text for title in chosen}
    return Dataset(name, texts, [drawn[number] for number in picked]), {title: hidden[title] for title in chosen}


def _sections(title: str, hidden: HiddenHeadings, least: int, most: int) -> list[Question]:
    """What can be asked of a document."""
    units = [unit for unit in find_units(hidden.text) if unit.kind in _PROSE]
    found = []
    seen = set()
    for number, (cut, path) in enumerate(zip(hidden.cut_points, hidden.sections, strict=True)):
        later = hidden.cut_points[number + 1 :]
        end = next((other.offset for other in later if other.level <= cut.level), len(hidden.text))
        spans = [_trimmed(hidden.text, unit) for unit in units if cut.offset <= unit.start < end]
        spans = [(start, stop) for start, stop in spans if stop > start]
        words = _query(title, path)
        if least <= len(spans) <= most and words not in seen:
            seen.add(words)
            evidences = tuple(hidden.text[start:stop] for start, stop in spans)
            found.append(Question(words, title, evidences, tuple(spans)))
    return found


def _query(name: str, path: Sequence[str]) -> str:
    """The name and the titles as words; a name that the first title says again is left out."""
    named, *titled = (_WORD.findall(part.lower()) for part in (name, *path))
    while named and named[0].isdigit():
        del named[0]
    if titled and titled[0][: len(named)] == named:
        named = []
    return " ".join([*named, *(word for words in titled for word in words)])


def _trimmed(text: str, unit: Unit) -> Span:
    inside = text[unit.start : unit.end]
    return unit.start + len(inside) - len(inside.lstrip()), unit.start + len(inside.rstrip())


def _end_of_heading(text: str, offset: int) -> int:
    if _ATX.match(text, offset):
        return _end_of_line(text, offset)
    # A setext heading: lines down to the one that underlines them.
    end = _end_of_line(text, offset)
    while end < len(text) and not _UNDERLINE.match(text, end):
        end = _end_of_line(text, end)
    return _end_of_line(text, end)


def _end_of_line(text: str, offset: int) -> int:
    end = _LINE_END.search(text, offset)
    return end.end() if end else len(text)
