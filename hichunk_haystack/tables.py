# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Tables drawn with pipes, as they stand in plain text, with or without a line of dashes under their header."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_RULER = re.compile(r"[|+:=\- \t]*[=\-]{3}[|+:=\- \t]*")
_LEAST_ROWS_WITHOUT_RULER = 3


@dataclass(frozen=True)
class Table:
    """
    Where a table stands.

    :param start: Offset of its first line.
    :param body: Offset of the first row behind its header; equal to `start` where it has no header.
    :param end: Offset behind its last row.
    :param rows: Offset of each row behind the header.
    """

    start: int
    body: int
    end: int
    rows: tuple[int, ...] = ()


def header_for(offset: int, tables: Sequence[Table]) -> tuple[int, int] | None:
    """
    Find the header that a leaf lacks which starts in the middle of a table.

    :param offset: Where the leaf starts.
    :param tables: Tables in order.
    :returns: Start and end of the header; `None` where the leaf does not start behind the header of a table.
    """
    number = bisect_right(tables, offset, key=lambda table: table.start) - 1
    if number < 0:
        return None
    table = tables[number]
    return (table.start, table.body) if table.start < table.body <= offset < table.end else None


def pipe_tables(lines: Iterable[tuple[int, str]]) -> list[Table]:
    """
    Find tables: neighbouring lines with the same number of pipes, and lines of dashes between them.

    The header is what stands above a line of dashes; without one it is the first of three rows or more, if none of its
    cells is a number.

    :param lines: Offset and text of each line; offsets may count whatever the caller counts.
    :returns: The tables, in order.
    """
    tables: list[Table] = []
    run: list[tuple[int, str, int]] = []
    pipes = 0
    for offset, line in lines:
        text = line.strip()
        if run and _is_ruler(text):
            run.append((offset, text, 0))
            continue
        count = _pipes(text)
        if run and count and (pipes in (0, count)):
            run.append((offset, text, count))
        else:
            _close(run, offset, tables)
            run = [(offset, text, count)] if count or (text.startswith("+") and _is_ruler(text)) else []
        pipes = count
    _close(run, -1, tables)
    return tables


def _is_ruler(text: str) -> bool:
    return len(text) < 10_000 and _RULER.fullmatch(text) is not None  # noqa: PLR2004 - the pattern may look twice


def _pipes(text: str) -> int:
    """The number of cells of a row; 0 where a line is none."""
    inner = text.strip("|").replace("\\|", "").replace("||", "")
    count = inner.count("|")
    if text.startswith("|") and text.endswith("|") and len(text) > 1:
        return count + 1
    return count + 1 if " | " in inner else 0


def _close(run: list[tuple[int, str, int]], end: int, tables: list[Table]) -> None:
    """Add the table that a run of lines is; `end` is -1 at the end of the text."""
    rows = [number for number, (_, _, count) in enumerate(run) if count]
    if len(rows) < 2:  # noqa: PLR2004 - a single line is no table
        return
    ruler = next((number for number in range(rows[0], len(run)) if not run[number][2]), None)
    if ruler is not None and ruler < rows[-1]:
        body = next(number for number in rows if number > ruler)
    elif len(rows) >= _LEAST_ROWS_WITHOUT_RULER and not re.search(
        r"(?:^|\|)\s*[\d.,%€$-]+\s*(?:\||$)", run[rows[0]][1]
    ):
        body = rows[1]
    else:
        body = 0
    offsets = tuple(run[number][0] for number in rows if number >= body)
    last = end if end >= 0 else run[-1][0] + len(run[-1][1]) + 1
    tables.append(Table(run[0][0], run[body][0], last, offsets))
