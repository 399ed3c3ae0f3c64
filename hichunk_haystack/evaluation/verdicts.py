# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Reading a judge's answer, whatever it looks like: which facts there are, and which of them are covered."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from hichunk_haystack.evaluation.evidence import normalise
from hichunk_haystack.hichunk.replies import json_values, repaired_json, without_thinking

_VERDICT_KEYS = (
    "covered", "iscovered", "verdict", "supported", "issupported", "present", "score", "label", "judgement", "judgment",
    "coverage", "value", "result", "answer",
)  # fmt: skip
_NUMBER_KEYS = ("number", "id", "index", "no", "nr", "factnumber", "factid", "statementnumber", "fact", "statement")
_TEXT_KEYS = ("fact", "statement", "text", "claim", "sentence", "content")
_TEXTS_KEYS = ("facts", "statements", "claims")
_LIST_KEYS = ("verdicts", "scores", "statementscores", "labels", "results", "judgements", "judgments", *_VERDICT_KEYS)

_NO = r"not|no|n(?!/)|false|uncovered|unsupported|incorrect|incomplete|missing|absent|partial\w*|partly"
_YES = r"(?:fully\s+)?(?:true|yes|y|covered|supported|present|correct|included|entailed)"
_WORD = re.compile(
    rf"[^\w]*(?:(?P<no>(?:{_NO})\b|0(?:\.0+)?(?![\d.])|[否✗✘❌])|(?P<yes>{_YES}\b|1(?:\.0+)?(?![\d.])|[是✓✔✅]))",
    re.IGNORECASE,
)
_NUMBERED_KEY = re.compile(r"\W*(?:fact|statement|claim|no|nr|number)?[\W_]*(\d{1,4})\W*", re.IGNORECASE)
_NUMBERED_LINE = re.compile(
    r"[^\w{\"]*(?:fact|statement|claim|no|nr|number)?[^\w{\"]*(?P<number>\d{1,4})(?!\w)(?P<rest>.*)", re.IGNORECASE
)
_ALONE = re.compile(r"[^\w✗✘❌✓✔✅]*(?P<verdict>[\w✗✘❌✓✔✅]+(?: covered| supported)?)\s*(?:$|[^\w\s].*)")
_PAIR = re.compile(
    r"\b(?:number|id|index|fact)\b['\"]?\s{0,3}[:=]\s{0,3}['\"]?(\d{1,4})\b['\"]?\s{0,3}[,;]\s{0,3}['\"]?"
    r"(?!fact|statement|text|claim|reason|explanation)\w{1,20}['\"]?\s{0,3}[:=]\s{0,3}['\"]?"
    r"(\w{1,20}(?: \w{1,20})?)(?=['\"]?\s{0,3}(?:[,;}\])\n]|\Z))",
    re.IGNORECASE,
)
_BULLET = re.compile(r"\s*(?:[-*+•·–]|\(?\d{1,3}[.):])\s+")
_LONGEST_WHOLE = 40
_LONGEST_LINE = 2000


class _Row(NamedTuple):
    """A verdict as the model gave it."""

    number: int | None
    statement: str | None
    covered: bool | None


def parse_verdicts(text: str, facts: Sequence[str]) -> dict[int, bool]:
    """
    Read which facts a judge found covered.

    Thinking, fences, prose around the JSON, JSON that breaks off or has commas too many, "yes" and 1 for true, other
    names of the fields, facts named by their text, bare lists, numbers from 0, lines instead of JSON: all are taken.
    Of several verdicts on one fact the last counts. Verdicts that can't be put to a fact are passed over: a list
    without numbers counts only when it is as long as that of the facts.

    :param text: The answer.
    :param facts: The facts, which the model was shown numbered from 1.
    :returns: Number of the fact, from 0 -> whether it is covered; without those that the answer does not tell of.

    ```python
    from hichunk_haystack.evaluation.verdicts import parse_verdicts

    answer = '<think>Hm.</think>```json\\n{"verdicts": [{"number": 1, "covered": "yes"}, {"number": 2, "covered": 0},]}'
    print(parse_verdicts(answer, ["Cone 6 is hot.", "It takes nine hours.", "It cools for a day."]))
    # {0: True, 1: False}
    ```
    """
    said = without_thinking(text)
    best: dict[int, bool] = {}
    for version in (said, repaired_json(said)):
        verdicts = _by_fact([list(_rows(value)) for value in json_values(version)], facts)
        best = verdicts if len(verdicts) > len(best) else best
        if len(best) == len(facts):
            return best
    if not best:
        best = _by_fact([list(_from_lines(said))], facts)
    if not best and len(facts) == 1 and len(said.strip()) <= _LONGEST_WHOLE:
        covered = _verdict(said)
        best = {} if covered is None else {0: covered}
    return best


def parse_facts(text: str) -> list[str]:
    """
    Read a list of facts.

    :param text: A model's answer: JSON in a fence or between prose, or lines.
    :returns: The facts, each once.
    """
    said = without_thinking(text)
    facts: list[str] = []
    for version in (said, repaired_json(said)):
        found = [[fact for fact in _texts(value) if re.search(r"\w", fact)] for value in json_values(version)]
        lists = [one for one in found if len(one) > 1]
        # Of several lists the last counts; where a list breaks off, its entries are found one by one.
        facts = lists[-1] if lists else [fact for one in found for fact in one]
        if facts:
            break
    if not facts:
        facts = [_BULLET.sub("", line, count=1) for line in said.splitlines() if _BULLET.match(line)]
    if not facts:
        # A list of strings that breaks off.
        facts = [match[1] for match in re.finditer(r'^\s*"((?:[^"\\]|\\.){2,})",?\s*$', said, re.MULTILINE)]
    plain = (" ".join(_BULLET.sub("", fact, count=1).split()) for fact in facts)
    return list(dict.fromkeys(fact for fact in plain if re.search(r"\w", fact)))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        named = next((item for key, item in value.items() if _plain(key) in _TEXT_KEYS and isinstance(item, str)), None)
        if named is not None:
            yield named
            return
        for key, item in value.items():
            if isinstance(item, list | dict) or _NUMBERED_KEY.fullmatch(key) or _plain(key) in _TEXTS_KEYS:
                yield from _texts(item)


def _rows(value: Any) -> Iterator[_Row]:
    """Verdicts in a JSON value, however it is nested."""
    if isinstance(value, dict):
        yield from _rows_of_dict(value)
    elif isinstance(value, list):
        if len(value) == 2 and type(value[0]) is int and isinstance(value[1], bool | str):  # noqa: PLR2004
            yield _Row(value[0], None, _verdict(value[1]))
            return
        for item in value:
            if isinstance(item, list | dict):
                yield from _rows(item)
            else:
                yield _Row(None, None, _verdict(item))


def _rows_of_dict(value: dict[str, Any]) -> Iterator[_Row]:
    keys = {_plain(key): item for key, item in value.items()}
    covered = next((_verdict(keys[key]) for key in _VERDICT_KEYS if _verdict(keys.get(key)) is not None), None)
    statement = next((keys[key] for key in _TEXT_KEYS if isinstance(keys.get(key), str)), None)
    number = next((_number(keys[key]) for key in _NUMBER_KEYS if _number(keys.get(key)) is not None), None)
    if covered is not None and (number is not None or statement is not None or len(value) == 1):
        yield _Row(number, statement, covered)
        return
    scores = next((keys[key] for key in _LIST_KEYS if _is_scalars(keys.get(key))), None)
    statements = next((item for item in value.values() if _is_texts(item) and item is not scores), None)
    if scores is not None and statements is not None and len(scores) == len(statements):
        yield from (_Row(None, text, _verdict(score)) for text, score in zip(statements, scores, strict=True))
        return
    named = number is not None or statement is not None
    if named and covered is None and not any(isinstance(item, list | dict) for item in value.values()):
        return  # a fact without a verdict
    for key, item in value.items():
        numbered = _NUMBERED_KEY.fullmatch(key)
        if isinstance(item, dict) and numbered:
            yield from _rows_of_dict({**item, "number": int(numbered[1])})
        elif isinstance(item, list | dict):
            yield from _rows(item)
        elif numbered:
            yield _Row(int(numbered[1]), None, _verdict(item))
        elif " " in key.strip() and _verdict(item) is not None:
            yield _Row(None, key, _verdict(item))


def _from_lines(text: str) -> Iterator[_Row]:
    """Verdicts of lines such as `1. yes` and `Fact 2: it cools for a day - not covered`, and of what resembles JSON."""
    pairs = _PAIR.findall(text)
    if pairs:
        yield from (_Row(int(number), None, _verdict(word)) for number, word in pairs)
        return
    for line in text.splitlines():
        match = _NUMBERED_LINE.match(line[:_LONGEST_LINE])
        if match is None:
            continue
        last = re.split(r"\s[-–—]+\s|[:=|→>(]+", match["rest"])[-1]
        for part in (match["rest"], last):
            alone = _ALONE.fullmatch(part)
            if alone is not None and _verdict(alone["verdict"]) is not None:
                yield _Row(int(match["number"]), None, _verdict(alone["verdict"]))
                break


def _by_fact(values: Sequence[Sequence[_Row]], facts: Sequence[str]) -> dict[int, bool]:
    """Put the verdicts of JSON values to facts: by number, else by text, else by their place in a list."""
    places = {normalise(fact): place for place, fact in enumerate(facts)}
    numbers = {row.number for rows in values for row in rows if row.number is not None}
    shift = 0 if 0 in numbers and len(facts) not in numbers else 1
    found: dict[int, bool] = {}
    lists: list[list[bool | None]] = []
    for rows in values:
        unplaced = []
        for row in rows:
            place = row.number - shift if row.number is not None else None
            if place is None and row.statement is not None:
                place = places.get(normalise(_BULLET.sub("", row.statement, count=1)))
            if place is None:
                unplaced.append(row.covered)
            elif row.covered is not None and 0 <= place < len(facts):
                found[place] = row.covered
        lists.append(unplaced)
    if not found:
        # Of a list that broke off, the entries stand alone.
        whole = [one for one in lists if len(one) == len(facts)] or [[covered for one in lists for covered in one]]
        if len(whole[-1]) == len(facts):
            found = {place: covered for place, covered in enumerate(whole[-1]) if covered is not None}
    return dict(sorted(found.items()))


def _verdict(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return bool(value) if value in (0, 1) else None
    match = _WORD.match(value) if isinstance(value, str) else None
    return None if match is None else match["yes"] is not None


def _number(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _NUMBERED_KEY.fullmatch(value) if isinstance(value, str) else None
    return int(match[1]) if match else None


def _is_scalars(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(_verdict(item) is not None for item in value)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)


def _plain(key: str) -> str:
    return re.sub(r"[\W_]", "", key).lower()
