# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Headings of a text without Markdown: told by their numbers, their marks, their letters and where they stand."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hichunk_haystack.tables import Table, pipe_tables
from hichunk_haystack.units import Strength, paragraph_boundaries

# A keyword and where it stands among the others: a chapter is part of a part, a clause of an article.
_KEYWORDS = {
    1: "part|book|volume|teil|buch|partie|livre|parte|libro|annex|appendix|schedule|anhang|anlage|annexe|anexo",
    2: "title|chapter|titel|kapitel|titre|chapitre|título|capítulo",
    3: "section|subpart|abschnitt|sección|sezione",
    4: "article|art\\.|artikel|artículo|articolo|rule|§",
    5: "clause|subsection",
}
_NUMBER = r"(?:[IVXLC]{1,7}|\d{1,4}[a-z]?(?:\.\d{1,3}){0,4}|[A-Z])"
_KEYWORD = re.compile(
    "(?:" + "|".join(f"(?P<k{rank}>{words})" for rank, words in _KEYWORDS.items()) + rf")\s*(?P<number>{_NUMBER})"
    r"(?P<rest>[.:)]?(?:\s+.*|\s*[–—-]\s+.*)?)$",
    re.IGNORECASE,
)
_DECIMAL = re.compile(r"(\d{1,3}(?:\.\d{1,3}){0,6})\.?[ \t]+(\S.*)$")
_ROMAN = re.compile(r"([IVXL]{1,6})\.[ \t]+(\S.*)$")
_LETTER = re.compile(r"([A-Z])\.[ \t]+(\S.*)$")
_EQUALS = re.compile(r"(={1,6}|=(?: =){1,5}) *([^=\s](?:[^=]*[^=\s])?) *\1$")
_RULE_LED = re.compile(r"={3,8}[ \t]+(\w.{0,80})$")
_NUMBER_SIGNS = re.compile(r"(#{1,6})[ \t]+(\S.*?)[ \t#]*$")
_BOLD = re.compile(r"(\*\*|__)([^*_\s][^*_]{0,98})\1:?$")
_UNDERLINE = re.compile(r"([=\-~^*_+\"#])\1{2,200}$")
_LABEL = re.compile(r"([^\W\d_][^:.;,!?()\"<>@/=|]{1,48}):$")
_TOC = re.compile(r"\.{3,}|(?:\. ){3}|\s{3,}\d{1,4}$|\t\d{1,4}$")
_ENDS_OTHERWISE = (".", ",", ";", ":", "!", "-", "–", "—", "|", "\\", "{", "}", "(", "/", "<", ">", "…")
_SMALL_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and as at but by for from in into is nor of on or per the to via vs with "
        "und der die das des von zu et de la le les du y e el los las",
    )
)
_LONGEST = 100
_MOST_WORDS = 12
_LEAST_PROSE = 80
_LIST_SHARE = 0.5
_MOST_GAP = 2
_OPEN_RUNS = 30
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}

# From the surest sign of a heading to the weakest; what is not numbered ranks in this order.
_UNNUMBERED = ("upper", "bold", "title", "label")


@dataclass
class _Candidate:
    """
    A line that may be a heading.

    :param line: Number of the line.
    :param style: What makes it look like one.
    :param number: Its number, as a path: (2, 3, 1).
    """

    line: int
    offset: int
    style: str
    title: str | None
    number: tuple[int, ...] = ()
    last_line: int = 0


@dataclass
class _Line:
    offset: int
    text: str
    indent: int
    blank_before: bool = True
    blank_after: bool = True
    apart: bool = False
    """In a table, a quotation, a table of contents."""


@dataclass
class PlainStructure:
    """
    What was found in a text without Markdown.

    :param headings: (offset in characters of its line, level from 1 on, title), in order.
    :param boundaries: Offset in characters -> how good a cut there is.
    :param tables: Tables drawn with pipes, in order.
    """

    headings: list[tuple[int, int, str | None]]
    boundaries: dict[int, Strength]
    tables: list[Table]


def plain_headings(text: str) -> list[tuple[int, int, str | None]]:
    """
    Find the headings of a text without Markdown.

    Numbered headings ("2.3.1 Title", "Article IV", "§ 12"), marked ones ("= Title =", "## Title", bold, underlined),
    lines in upper case or in title case that stand alone, and labels ("Results:"). A number counts only where it goes
    on from the one before, so that a year, a figure or a numbered list makes no heading; the weaker signs count only
    where several headings of a kind are followed by text. Rather one too few than one too many.

    :param text: The text.
    :returns: (offset in characters, level from 1 on, title) in order.

    ```python
    from hichunk_haystack.plain_text import plain_headings

    text = "1 Kiln\\n\\nFire it slowly.\\n\\n1.1 Cooling\\n\\nA day.\\n\\n2 Wheel\\n\\nTurn it.\\n"
    print(plain_headings(text))
    # [(0, 1, 'Kiln'), (25, 2, 'Cooling'), (46, 1, 'Wheel')]
    ```
    """
    return read_plain_text(text).headings


def read_plain_text(text: str) -> PlainStructure:
    """
    Find the headings, the places to cut and the tables of a text without Markdown.

    :param text: The text.
    :returns: What was found.
    """
    lines, tables = _read(text)
    candidates = _candidates(lines)
    candidates = _in_sequence(candidates, lines)
    candidates = _enough(candidates, lines)
    levels = _levels(candidates)
    headings = [(candidate.offset, level, candidate.title) for candidate, level in zip(candidates, levels, strict=True)]
    boundaries = paragraph_boundaries(text)
    for table in tables:
        for row in (table.start, *table.rows):
            # The header stays with the first row.
            boundaries[row] = Strength.WORD if table.start < row == table.body else Strength.LINE
    for candidate in candidates:
        boundaries[candidate.offset] = Strength.BLOCK
        following = next((line for line in lines[candidate.last_line + 1 : candidate.last_line + 4] if line.text), None)
        if following is not None:
            # What stands under a heading belongs to it.
            boundaries[following.offset] = Strength.WORD
    boundaries.pop(0, None)
    return PlainStructure(headings, boundaries, tables)


def _read(text: str) -> tuple[list[_Line], list[Table]]:
    lines: list[_Line] = []
    offset = 0
    for raw in text.splitlines(keepends=True):
        body = raw.strip()
        lines.append(
            _Line(
                offset, body if len(body) <= 4 * _LONGEST else body[: 4 * _LONGEST] + ".", len(raw) - len(raw.lstrip())
            )
        )
        offset += len(raw)
    for before, after in pairwise(lines):
        after.blank_before = not before.text
        before.blank_after = not after.text
    tables = pipe_tables((line.offset, line.text) for line in lines)
    number = 0
    for line in lines:
        while number < len(tables) and tables[number].end <= line.offset:
            number += 1
        in_table = number < len(tables) and tables[number].start <= line.offset
        line.apart = in_table or line.text.startswith((">", "|")) or _TOC.search(line.text) is not None
    return lines, tables


def _candidates(lines: Sequence[_Line]) -> list[_Candidate]:
    found: list[_Candidate] = []
    underlined = -1
    for number, line in enumerate(lines):
        if not line.text or line.apart or number == underlined:
            continue
        above = line.blank_before or bool(found and found[-1].last_line == number - 1)
        candidate = _marked(number, line)
        if candidate is None and above:
            after = lines[number + 1].text if number + 1 < len(lines) else ""
            mark = _UNDERLINE.match(after)
            if mark and _may_be_title(line.text) and len(line.text) // 2 <= len(after) <= 2 * len(line.text) + 4:
                candidate = _Candidate(number, line.offset, f"underline {mark[1]}", line.text, last_line=number + 1)
                underlined = number + 1
            else:
                candidate = _numbered(number, line) or _unnumbered(number, line)
        if candidate is not None:
            candidate.last_line = max(candidate.last_line, number)
            found.append(candidate)
    return found


def _marked(number: int, line: _Line) -> _Candidate | None:
    """Headings with marks that nothing else has."""
    if match := _EQUALS.match(line.text):
        return _Candidate(number, line.offset, f"mark {match[1].count('=')}", match[2])
    if line.indent < 4 and (match := _NUMBER_SIGNS.match(line.text)) and line.blank_before:  # noqa: PLR2004
        return _Candidate(number, line.offset, f"mark {len(match[1])}", match[2])
    if match := _RULE_LED.match(line.text):
        return _Candidate(number, line.offset, "mark 1", match[1])
    return None


def _numbered(number: int, line: _Line) -> _Candidate | None:
    if match := _KEYWORD.match(line.text):
        rank = next(rank for rank in _KEYWORDS if match[f"k{rank}"])
        rest = match["rest"].lstrip(".:)–—- \t")
        if match["rest"][:1] not in (".", ":") and rest[:1].islower():
            return None  # "Part of", "Section 5 applies to"
        long = len(line.text) > _LONGEST or line.text.endswith((".", ",", ";"))
        if long and rank < 4:  # noqa: PLR2004 - a sentence: only articles and clauses run on in their line
            return None
        title = line.text if not long else line.text[: len(line.text) - len(match["rest"])]
        return _Candidate(number, line.offset, f"keyword {rank}", title.strip(), (_value(match["number"]),))
    for style, pattern in (("decimal", _DECIMAL), ("roman", _ROMAN), ("letter", _LETTER)):
        match = pattern.match(line.text)
        if match and _may_be_title(match[2]) and not match[2][0].islower() and line.indent < 8:  # noqa: PLR2004
            value = tuple(map(int, match[1].split("."))) if style == "decimal" else (_value(match[1], style),)
            return _Candidate(number, line.offset, style, match[2], value)
    return None


def _unnumbered(number: int, line: _Line) -> _Candidate | None:
    text = line.text
    if (match := _BOLD.match(text)) and len(match[2].split()) <= _MOST_WORDS:
        return _Candidate(number, line.offset, "bold", match[2].strip().rstrip(":"))
    if (match := _LABEL.match(text)) and len(match[1].split()) <= 4 and match[1][0].isupper():  # noqa: PLR2004
        return _Candidate(number, line.offset, "label", match[1])
    if not _may_be_title(text):
        return None
    letters = [character for character in text if character.isalpha()]
    if len(letters) >= 4 and all(map(str.isupper, letters)) and 2 * len(letters) > len(text):  # noqa: PLR2004
        return _Candidate(number, line.offset, "upper", text)
    words = [word.strip("\"'“”‘’()") for word in text.split()]
    great = [word for word in words if word[:1].isupper()]
    capital = all(word[:1].isupper() or word.lower() in _SMALL_WORDS for word in words) and words[0][:1].isupper()
    if line.blank_after and line.indent < 4 and capital and great and text[-1].isalnum():  # noqa: PLR2004
        return _Candidate(number, line.offset, "title", text)
    return None


def _may_be_title(text: str) -> bool:
    return (
        len(text) <= _LONGEST
        and len(text.split()) <= _MOST_WORDS
        and not text.endswith(_ENDS_OTHERWISE)
        and "://" not in text
        and any(map(str.isalpha, text))
    )


def _value(number: str, style: str = "") -> int:
    """1 of "I", "1", "1a" and "A"."""
    digits = re.match(r"\d+", number)
    if digits:
        return int(digits[0])
    if style != "letter" and all(character in _ROMAN_VALUES for character in number.upper()):
        values = [_ROMAN_VALUES[character] for character in number.upper()]
        return sum(-a if a < b else a for a, b in zip(values, [*values[1:], 0], strict=True))
    return ord(number[0].upper()) - ord("A") + 1


def _in_sequence(candidates: list[_Candidate], lines: Sequence[_Line]) -> list[_Candidate]:
    """Leave out numbers that do not go on from one before, and numbered lists."""
    kept: set[int] = set()
    for style in ("decimal", "roman", "letter"):
        runs: list[list[int]] = []
        for number, candidate in enumerate(candidates):
            if candidate.style != style:
                continue
            run = next(
                (run for run in runs[: -1 - _OPEN_RUNS : -1] if _follows(candidates[run[-1]].number, candidate.number)),
                None,
            )
            if run is not None:
                run.append(number)
            else:
                runs.append([number])
        for run in runs:
            own = [candidates[number] for number in run]
            with_text = sum(_has_text(candidates, number, lines) for number in run)
            # A parent followed at once by its first child has its text below it.
            with_text += sum(len(b.number) > len(a.number) for a, b in pairwise(own))
            if len(run) > 1 and own[0].number[0] <= 20 and with_text > _LIST_SHARE * len(run):  # noqa: PLR2004
                kept.update(run)
    return [
        candidate
        for number, candidate in enumerate(candidates)
        if candidate.style not in ("decimal", "roman", "letter") or number in kept
    ]


def _follows(before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    """Whether a number may come next: (2, 1) -> (2, 1, 1), (2, 2), (3,)."""
    if len(after) > len(before):
        return after[:-1] == before and after[-1] <= 1 + _MOST_GAP
    return after[:-1] == before[: len(after) - 1] and 0 < after[-1] - before[len(after) - 1] <= _MOST_GAP


def _has_text(candidates: Sequence[_Candidate], number: int, lines: Sequence[_Line]) -> bool:
    """Whether something that is not itself a candidate stands between a candidate and the next."""
    first = candidates[number].last_line + 1
    last = candidates[number + 1].line if number + 1 < len(candidates) else len(lines)
    return any(lines[line].text for line in range(first, min(last, first + 50)))


def _prose_after(candidates: Sequence[_Candidate], number: int, lines: Sequence[_Line]) -> bool:
    """Whether the paragraph behind a candidate is more than another short line."""
    first = candidates[number].last_line + 1
    length = 0
    for line in lines[first : first + 50]:
        if line.text:
            length += len(line.text)
        elif length:
            break
    return length >= _LEAST_PROSE


def _enough(candidates: list[_Candidate], lines: Sequence[_Line]) -> list[_Candidate]:
    """Leave out weak signs that are rare, or followed by no text."""
    with_prose: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    good: dict[int, bool] = {}
    for number, candidate in enumerate(candidates):
        if candidate.style in _UNNUMBERED:
            good[number] = _prose_after(candidates, number, lines)
            # Capitals over a heading of another kind: "CHAPTER FOUR / ON KILNS", or a part over its first section.
            over = (
                number + 1 < len(candidates)
                and candidates[number + 1].style not in _UNNUMBERED
                and not _has_text(candidates, number, lines)
            )
            if candidate.style == "upper":
                good[number] = good[number] or over
            seen[candidate.style] += 1
            with_prose[candidate.style] += good[number]
            if candidate.style == "upper":
                good[number] = good[number] or _has_text(candidates, number, lines)
    result = []
    for number, candidate in enumerate(candidates):
        style = candidate.style
        if style in _UNNUMBERED:
            often = with_prose[style] >= 2 and 2 * with_prose[style] >= seen[style]  # noqa: PLR2004
            if not (often and good[number]):
                continue
        result.append(candidate)
    return result


def _levels(candidates: Sequence[_Candidate]) -> list[int]:
    """Levels from marks, numbers and, for the rest, the order in which the styles come up."""
    if not candidates:
        return []
    firsts: dict[str, int] = {}
    for number, candidate in enumerate(candidates):
        firsts.setdefault(candidate.style, number)
    # Of several ways to number, the one that comes first is the higher.
    numbered = sorted((style for style in ("roman", "letter", "decimal") if style in firsts), key=firsts.__getitem__)
    # Where numbers start again behind lines in capitals, those stand above them.
    starts = sum(candidate.number == (1,) and candidate.style == numbered[0] for candidate in candidates if numbered)
    depth = [_rank(candidate, firsts, numbered, upper_above=starts != 1) for candidate in candidates]
    order = {rank: number + 1 for number, rank in enumerate(sorted(set(depth)))}
    return [order[rank] for rank in depth]


def _rank(
    candidate: _Candidate, firsts: Mapping[str, int], numbered: Sequence[str], *, upper_above: bool
) -> tuple[float, ...]:
    """What a heading is sorted by; equal for headings of one level."""
    kind, _, detail = candidate.style.partition(" ")
    if kind == "mark":
        return (0, int(detail))
    if kind == "underline":
        return (1, firsts[candidate.style])
    if kind == "keyword":
        return (2, int(detail))
    if kind in numbered:
        return (4, numbered.index(kind), len(candidate.number))
    if kind == "upper":
        # "ABSTRACT" stands beside "1 INTRODUCTION".
        return (3, 0) if upper_above or not numbered else (4, 0, 1)
    return (5, _UNNUMBERED.index(kind))
