# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Reading a model's answer, whatever it looks like."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hichunk_haystack.hichunk.prompts import LEVELS
from hichunk_haystack.hichunk.replies import json_values, without_thinking

MOST_LEVELS = len(LEVELS)

_WORDS = {name.lower(): number for number, name in enumerate(LEVELS, start=1)}
_WORDS |= {name: n for n, name in enumerate(("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x"), start=1)}
_WORDS |= {name: n for n, name in enumerate("一二三四五六七八九十", start=1)}
_NAMES = "|".join(sorted(_WORDS, key=len, reverse=True))

_NOTHING = re.compile(
    r"\W*(?:none|no (?:cut ?points?|sections?|segments?)|nothing|null)\W*"
    r"|[\s`]*(?:json)?[\s`]*(?:\[\s*\]|\{\s*\}|\{[^\[\]{}]*\[\s*\]\s*\})[\s`]*",
    re.IGNORECASE,
)
_LONGEST_NOTHING = 100
_FENCE = re.compile(r"\s*(?:```|~~~)\s*\w*\s*")
_DECORATION = re.compile(r"[`\"'“”‘’*{}()\[\]<>]+")
_BULLET = re.compile(r"(?:[-+•·–—>#|]+ )+|\|")
_ENUMERATION = re.compile(r"\s?\d{1,4}[.)]\s+(?=(?:\w+\s+)?\d)")
_NUMBER = re.compile(r"(?<![A-Za-z0-9_.])-?\d+")
_LEVEL = re.compile(
    rf"\b(?:level|lvl|lv)[\W_]{{0,3}}(?P<name>{_NAMES}|-?\d+)\b|第?(?<!\d)(?P<cjk>[一二三四五六七八九十]|\d{{1,3}})[级級]",
    re.IGNORECASE,
)
_BARE = re.compile(
    rf"\s*(?:line|sentence|no\.?|number)?\s*(?P<number>-?\d+)\s*[,;:|\t]\s*(?:[hl])?(?P<level>{_NAMES}|-?\d+)\b"
    r"\s*(?:[,;:|.\t](?P<title>.*))?",
    re.IGNORECASE,
)
_SPACED = re.compile(r"\s*(?P<number>\d+)\s+(?P<level>\d+)\s+(?P<title>true|false|yes|no)\W*", re.IGNORECASE)
_YES_OR_NO = re.compile(r"(?<!\w)(?:(true|yes|y|1)|(false|not|no|n|0))(?!\w)|(否|非)|(是)", re.IGNORECASE)
_TITLE = re.compile(r"\btitle\b|标题|標題", re.IGNORECASE)

_NUMBER_KEYS = (
    "line",
    "linenumber",
    "number",
    "lineno",
    "start",
    "startline",
    "index",
    "id",
    "no",
    "sentence",
    "point",
)
_LEVEL_KEYS = ("level", "segmentlevel", "sectionlevel", "depth", "hierarchy")
_TITLE_KEYS = ("title", "istitle", "beatitle", "heading", "isheading")
_TITLES_WITHOUT_TEXT = frozenset({"", "false", "no", "n", "none", "null", "0", "not a title", "否"})
_LONGEST_NUMBER = 9


class Row(NamedTuple):
    """A cut point as the model named it; what it left out or what makes no sense is `None`."""

    number: int | None
    level: int | None
    title: bool | None


@dataclass
class Answer:
    """
    What could be read of an answer.

    :param cuts: Number of a line -> (level, whether it is a title, or `None` where the answer doesn't say).
    :param dropped: Why something was dropped -> how many times: `unreadable`, `outside` (no line of that number),
        `level` (none, or not 1 to 10), `duplicate`.
    :param problem: Why nothing can be used, in words that a model understands; `None` where something can. An answer
        that says that nothing starts here is of use.
    """

    cuts: dict[int, tuple[int, bool | None]] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    problem: str | None = None


def parse_answer(text: str, count: int) -> Answer:
    """
    Read an answer.

    Thinking, code fences, bullets, prose around the rows, full-width marks, JSON in many shapes, lines in any order,
    missing titles: all are taken. Of several rows for one line the one with the highest level counts.

    :param text: The answer.
    :param count: How many lines the model was shown, numbered from 0.
    :returns: What could be used, and what was dropped.

    ```python
    from hichunk_haystack.hichunk.answers import parse_answer

    answer = parse_answer("<think>Hm.</think>- 0，level 1，true\\n- 99, Level Two, False", count=10)
    print(answer.cuts, dict(answer.dropped))  # {0: (1, True)} {'outside': 1}
    ```
    """
    said = without_thinking(text)
    answer = Answer()
    if not said.strip():
        answer.problem = "the thinking never ended in an answer" if text.strip() else "it is empty"
        return answer
    if len(said.strip()) <= _LONGEST_NOTHING and _NOTHING.fullmatch(said.strip()):
        return answer
    rows = _from_json(said)
    if rows is None:
        rows = [row for line in said.splitlines() for row in _from_line(line)]
    for row in rows:
        _take(answer, row, count)
    answer.cuts = dict(sorted(answer.cuts.items()))
    if not answer.cuts:
        answer.problem = _problem(answer.dropped)
    return answer


def _take(answer: Answer, row: Row, count: int) -> None:
    if row.number is None:
        answer.dropped["unreadable"] += 1
    elif not 0 <= row.number < count:
        answer.dropped["outside"] += 1
    elif row.level is None or not 1 <= row.level <= MOST_LEVELS:
        answer.dropped["level"] += 1
    else:
        held = answer.cuts.get(row.number)
        if held is not None:
            answer.dropped["duplicate"] += 1
        if held is None or row.level < held[0]:
            answer.cuts[row.number] = (row.level, row.title)


def _problem(dropped: Counter[str]) -> str:
    if dropped["outside"]:
        return "it names only lines that are not there"
    if dropped["level"]:
        return "it gives no line a level from One to Ten"
    return "no row of it names a line and its level"


def _from_json(text: str) -> list[Row] | None:
    """Rows of all JSON in a text; `None` where none of it tells of cut points."""
    rows = [row for value in json_values(text) for row in _rows_of(value)]
    return rows if any(row.level is not None for row in rows) else None


def _rows_of(value: Any) -> Iterator[Row]:
    """Rows of a JSON value, however it is nested."""
    if isinstance(value, dict):
        yield from _rows_of_dict(value)
    elif isinstance(value, list):
        row = _as_row(value)
        if row is not None:
            yield row
            return
        for item in value:
            yield from _rows_of(item)
    elif isinstance(value, str):
        yield from _from_line(value)
    elif value is not None:
        yield Row(None, None, None)


def _rows_of_dict(value: dict[str, Any]) -> Iterator[Row]:
    keys = {re.sub(r"[\W_]", "", key).lower(): item for key, item in value.items()}
    number = next((keys[key] for key in _NUMBER_KEYS if key in keys), None)
    level = next((keys[key] for key in _LEVEL_KEYS if key in keys), None)
    title = next((keys[key] for key in _TITLE_KEYS if key in keys), None)
    if number is not None and not isinstance(number, dict | list):
        yield Row(_as_number(number), _as_level(level), _as_title(title))
        return
    for key, item in value.items():
        of_key = _LEVEL.fullmatch(key.strip())
        if of_key is not None and isinstance(item, list) and all(_as_number(entry) is not None for entry in item):
            yield from (Row(_as_number(entry), _level_of(of_key), None) for entry in item)
        elif key.strip().isdecimal() and isinstance(item, dict):
            yield from _rows_of_dict({**item, "line": key})
        elif key.strip().isdecimal() and isinstance(item, str | int):
            yield Row(_as_number(key), _as_level(item), _title_of(item) if isinstance(item, str) else None)
        else:
            yield from _rows_of(item)


def _as_row(value: list[Any]) -> Row | None:
    """`[12, "Level One", true]`, with or without its end."""
    if not 2 <= len(value) <= 3 or any(isinstance(item, dict | list) for item in value):  # noqa: PLR2004
        return None
    number, level = _as_number(value[0]), _as_level(value[1])
    if number is None or level is None:
        return None
    title = value[2] if len(value) == 3 else None  # noqa: PLR2004
    if isinstance(title, int) and title not in (0, 1):
        return None
    return Row(number, level, _as_title(title))


def _as_number(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(?:line\s*)?(-?\d+)\s*(?:@.*)?", value, re.IGNORECASE | re.DOTALL)
        return _integer(match[1]) if match else None
    return value if isinstance(value, int) else None


def _as_level(value: Any) -> int | None:
    if isinstance(value, str):
        match = _LEVEL.search(value)
        return _level_of(match) if match else _level(value.strip().lstrip("hHlL"))
    return _as_number(value)


def _as_title(value: Any) -> bool | None:
    if isinstance(value, str):
        # Some give the title's own text.
        return value.strip().lower() not in _TITLES_WITHOUT_TEXT
    return None if value is None else bool(value)


def _from_line(line: str) -> Iterator[Row]:
    """Rows of one line: usually one, several where a list stands on one line, none of blank lines and fences."""
    if not line.strip() or _FENCE.fullmatch(line):
        return
    # With single spaces only, none of the patterns tries long runs in many ways.
    line = " ".join(_DECORATION.sub(" ", unicodedata.normalize("NFKC", line)).split())
    line = _BULLET.sub("", line, count=1) if _BULLET.match(line) else line
    line = _ENUMERATION.sub("", line, count=1) if _ENUMERATION.match(line) else line
    levels = list(_LEVEL.finditer(line))
    if levels:
        yield from _around_levels(line, levels)
        return
    bare = _BARE.fullmatch(line) or _SPACED.fullmatch(line)
    if bare is not None:
        title = bare["title"] or ""
        yield Row(_integer(bare["number"]), _level(bare["level"]), _title_of(title))
    elif re.search(r"\w", line):
        yield Row(None, None, None)


def _around_levels(line: str, levels: list[re.Match[str]]) -> Iterator[Row]:
    """Rows of a line that has "level" in it: the number in front of each, what is behind it tells of the title."""
    edges = [0, *(level.end() for level in levels)]
    before = [list(_NUMBER.finditer(line, edge, at.start())) for edge, at in zip(edges[:-1], levels, strict=True)]
    if len(levels) > 1 and all(before):
        ends = [*(numbers[-1].start() for numbers in before[1:]), len(line)]
        for numbers, level, end in zip(before, levels, ends, strict=True):
            yield Row(_integer(numbers[-1][0]), _level_of(level), _title_of(line[level.end() : end]))
        return
    # Where the sentence is repeated in the answer it may itself speak of levels: the last one is meant.
    level = levels[-1]
    rest = line[level.end() :]
    first = _NUMBER.search(line, 0, level.start())
    if first is not None:
        yield Row(_integer(first[0]), _level_of(level), _title_of(rest))
        return
    found = _NUMBER.findall(rest)
    title = _title_of(_NUMBER.sub(" ", rest)) if len(found) == 1 else None
    yield from (Row(_integer(number), _level_of(level), title) for number in found)
    if not found:
        yield Row(None, None, None)


def _level_of(match: re.Match[str]) -> int | None:
    return _level(match["name"] or match["cjk"])


def _level(name: str) -> int | None:
    name = name.lower()
    return _WORDS[name] if name in _WORDS else _integer(name)


def _integer(digits: str) -> int | None:
    if not re.fullmatch(r"-?\d+", digits):
        return None
    # Too long a number is outside of any window; Python refuses to read very long ones.
    return int(digits) if len(digits) <= _LONGEST_NUMBER else 10**_LONGEST_NUMBER


def _title_of(text: str) -> bool | None:
    match = _YES_OR_NO.search(text)
    if match is not None:
        return bool(match[1] or match[4])
    return True if _TITLE.search(text) else None
