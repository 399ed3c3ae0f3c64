# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What a model is asked: the instruction, the numbered lines, and what it is told after a useless answer."""

import json
from collections.abc import Iterable
from typing import Any

PLACE = "{lines}"
"""Where the numbered lines go in a template."""

LEVELS = ("One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")
"""Names of the levels, the highest first."""

LINES_TEMPLATE = """\
Find the sections of a document. Below it stands cut into numbered lines, each written "number @ text"; long lines are \
cut short, and lines of the sections before may stand at the start.

Name every line at which a section starts. Level One sections are the largest and each is complete in itself; Level \
Two sections are parts of one, and so on, down to Level Ten. Say also whether the line is the title of its section.

Answer with nothing but one row for each such line, in order:
number, Level One, True
(the level in words; True for a title, else False). If no section starts in these lines, answer: none

{lines}"""
"""The ready instruction for answers in lines, the form that the published HiChunk models give."""

JSON_TEMPLATE = """\
Find the sections of a document. Below it stands cut into numbered lines, each written "number @ text"; long lines are \
cut short, and lines of the sections before may stand at the start.

Name every line at which a section starts. Sections of level 1 are the largest and each is complete in itself; those \
of level 2 are parts of one, and so on, down to level 10. Say also whether the line is the title of its section.

Answer with nothing but JSON, the lines in order:
{"cut_points": [{"line": 0, "level": 1, "title": true}]}
If no section starts in these lines, the list is empty.

{lines}"""
"""The ready instruction for answers in JSON."""

TEMPLATES = {"lines": LINES_TEMPLATE, "json": JSON_TEMPLATE}

JSON_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "cut_points": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "line": {"type": "integer"},
                    "level": {"type": "integer"},
                    "title": {"type": "boolean"},
                },
                "required": ["line", "level", "title"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["cut_points"],
    "additionalProperties": False,
}
"""Schema of an answer in JSON, for servers that hold a model to one."""

RESPONSE_FORMAT: dict[str, Any] = {
    "type": "json_schema",
    "json_schema": {"name": "cut_points", "strict": True, "schema": JSON_SCHEMA},
}
"""The same as `response_format` of OpenAI's protocol: `generation_kwargs={"response_format": RESPONSE_FORMAT}`."""

_SHOWN_OF_BAD_ANSWER = 500


def check_template(template: str) -> None:
    """
    Check that the lines have a place in a template.

    :param template: An instruction.
    :raises ValueError: If it does not hold `{lines}` exactly once.
    """
    if template.count(PLACE) != 1:
        msg = (
            f"prompt_template holds {PLACE} {template.count(PLACE)} times; it must hold it once, where the numbered "
            f"lines go. It starts with {template[:60]!r}."
        )
        raise ValueError(msg)


def numbered(texts: Iterable[str]) -> str:
    """
    Number lines from 0 on.

    :param texts: What is shown of each line.
    :returns: `{number} @ {text}`, line by line.
    """
    return "\n".join(f"{number} @ {text}" for number, text in enumerate(texts))


def fill(template: str, texts: Iterable[str]) -> str:
    """
    Put numbered lines into a template.

    :param template: An instruction with `{lines}`.
    :param texts: What is shown of each line.
    :returns: What the model is sent.
    """
    return template.replace(PLACE, numbered(texts), 1)


def write_answer(cuts: Iterable[tuple[int, int, bool]], answer_format: str = "lines") -> str:
    """
    Write an answer as the model should.

    :param cuts: (number, level from 1 to 10, whether it is a title), in order.
    :param answer_format: `lines` or `json`.
    :returns: The answer to the ready instruction of that format.
    """
    if answer_format == "json":
        return json.dumps(
            {"cut_points": [{"line": line, "level": level, "title": title} for line, level, title in cuts]}
        )
    return "\n".join(f"{number}, Level {LEVELS[level - 1]}, {title}" for number, level, title in cuts) or "none"


def try_again(answer: str, problem: str, count: int) -> tuple[tuple[str, str], tuple[str, str]]:
    """
    Say what was wrong with an answer.

    :param answer: The useless answer; a long one is shown in part.
    :param problem: What is wrong with it.
    :param count: Number of lines that the model was shown.
    :returns: Two more messages of the chat, (role, text) each: the answer and the complaint.
    """
    text = answer.strip()
    if len(text) > _SHOWN_OF_BAD_ANSWER:
        text = f"{text[:_SHOWN_OF_BAD_ANSWER]} ..."
    complaint = (
        f"That answer can't be used: {problem}. The lines are numbered from 0 to {count - 1}. Answer again, in the "
        "form asked for and with nothing else."
    )
    return ("assistant", text or "(nothing)"), ("user", complaint)
