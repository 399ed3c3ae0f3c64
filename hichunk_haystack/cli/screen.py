# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Writing to the terminal: lines that are never wrapped, colours where there is a terminal, or JSON."""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from rich.console import Console
from rich.text import Text

_MOST_TYPES = 8


@cache
def console() -> Console:
    """
    Give the console of standard output.

    :returns: The console.
    """
    return Console(highlight=False, soft_wrap=True)


def say(*parts: str | tuple[str, str]) -> None:
    """
    Write a line.

    :param parts: Texts, or pairs of a text and a style of rich.
    """
    shown = [(part, "") if isinstance(part, str) else part for part in parts]
    if not console().is_terminal:
        sys.stdout.write("".join(text for text, _ in shown) + "\n")
        return
    console().print(Text.assemble(*((printable(text), style) for text, style in shown)))


def warn(text: str) -> None:
    """
    Write a line to standard error.

    :param text: The line.
    """
    sys.stderr.write(f"{printable(text) if sys.stderr.isatty() else text}\n")


@contextmanager
def working(what: str) -> Iterator[None]:
    """
    Show on standard error, in a terminal, that something is under way.

    :param what: What.
    """
    if not sys.stderr.isatty():
        yield
        return
    with Console(stderr=True).status(what):
        yield


def say_json(value: Any) -> None:
    """
    Write a value as JSON.

    :param value: Anything; documents and numbers that JSON does not know become plain data.
    """
    from hichunk_haystack.components.builders.plain_outputs import plain

    sys.stdout.write(json.dumps(plain(value), indent=2, default=str) + "\n")


def printable(text: str) -> str:
    """
    Take out what would steer a terminal.

    :param text: A text, from a document perhaps.
    :returns: The text with U+FFFD for each control character but newline and tab.
    """
    if text.isprintable():
        return text
    # Joiners hold emoji and some scripts together.
    return "".join(c if c.isprintable() or c in "\n\t\u200c\u200d\u00a0" else "\ufffd" for c in text)


def amount(number: int | None, noun: str) -> str:
    """
    Say how many there are.

    :param number: How many; `None` where it is not known.
    :param noun: Of what, one of them.
    :returns: Such as "1 leaf" or "1,024 tokens".
    """
    several = {"leaf": "leaves"}.get(noun, f"{noun}s")
    return f"{'?' if number is None else format(number, ',')} {noun if number == 1 else several}"


def passed_over(paths: Sequence[str]) -> str:
    """
    Say which types of files were passed over.

    :param paths: The files, at least one.
    :returns: Such as "Passed over 2 files of types that are not read (.csv, .log)".
    """
    kinds = sorted({os.path.splitext(path)[1].lower() for path in paths})
    names = [kind or "no suffix" for kind in kinds]
    shown = ", ".join([*names[:_MOST_TYPES], "..."] if len(names) > _MOST_TYPES else names)
    what = "a type that is" if len(names) == 1 else "types that are"
    return f"Passed over {amount(len(paths), 'file')} of {what} not read ({shown})"
