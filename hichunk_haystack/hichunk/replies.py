# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What any model's answer may hold besides the answer: thinking, and JSON among other things."""

import json
import re
from collections.abc import Iterator
from typing import Any

_THINKING = "think|thinking|thought|thoughts|reasoning|analysis|reflection"
_THOUGHT_START = re.compile(rf"<(?:{_THINKING})>", re.IGNORECASE)
_THOUGHT_END = re.compile(rf"</(?:{_THINKING})>", re.IGNORECASE)

_JSON_START = re.compile(r"[{\[]")
# Searching for JSON in what is none costs time: after so many tries it is given up.
_MOST_FAILURES = 500
# Strings first, so that nothing inside of them is touched.
_REPAIRS = re.compile(r'"(?:[^"\\]|\\.)*+"|,(?=\s*+[}\]])|\b(?:True|False|None)\b', re.DOTALL)
_REPAIRED = {",": "", "True": "true", "False": "false", "None": "null"}


def without_thinking(text: str) -> str:
    """
    Take off what a reasoning model thinks aloud, also where the start or the end of it is missing.

    :param text: An answer.
    :returns: What is left.
    """
    said = max((end.end() for end in _THOUGHT_END.finditer(text)), default=0)
    text = text[said:]
    start = _THOUGHT_START.search(text)
    return text[: start.start()] if start else text


def json_values(text: str) -> Iterator[Any]:
    """
    Find the JSON in a text.

    :param text: Any text: JSON, JSON in a fence, several values with prose between them, JSON that breaks off.
    :returns: Each object and each list, the outermost that can be read; of one that breaks off, those inside of it.
    """
    decoder = json.JSONDecoder()
    position = failures = 0
    while failures < _MOST_FAILURES:
        match = _JSON_START.search(text, position)
        if match is None:
            return
        try:
            value, position = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            failures += 1
            position = match.end()
            continue
        yield value


def repaired_json(text: str) -> str:
    """
    Mend what models often get wrong in JSON: commas before a closing bracket, and Python's names of the constants.

    :param text: A text with JSON in it.
    :returns: The text, with strings as they were.
    """
    return _REPAIRS.sub(lambda match: _REPAIRED.get(match[0], match[0]), text)
