# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Places to cut, line by line and without a parser: for splitters that look for no headings and must be fast."""

import re

from hichunk_haystack.tables import Table, pipe_tables
from hichunk_haystack.units import Strength, page_boundaries, starts_item

# "```code```" is code in a line, and opens nothing.
_FENCE = re.compile(r" {0,3}(`{3,}(?!.*`)|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]")


def quick_blocks(text: str) -> tuple[dict[int, Strength], list[Table]]:  # noqa: C901, PLR0912 - one pass, a case a line
    """
    Find paragraphs, list items, pages, rows of tables, lines of listings, and what stands under a heading.

    :param text: The text, Markdown or plain.
    :returns: Offset in characters -> how good a cut there is; and the tables.
    """
    boundaries = page_boundaries(text)
    tables: list[Table] = []
    rows: list[tuple[int, str]] = []
    fence = ""
    offset = 0
    blank_before = below_heading = False
    for line in text.splitlines(keepends=True):
        first = line[:80]  # enough, and lines may be long
        body = first.lstrip()
        indent = len(first) - len(body)
        if not body and not line.isspace():
            body = line.lstrip()[:80]
        if body:
            if fence:
                boundaries[offset] = Strength.LINE
                if body.startswith(fence) and not body.rstrip().strip(fence[0]):
                    fence = ""
            elif body[:3] in ("```", "~~~") and (match := _FENCE.match(first)):
                fence = match[1]
                boundaries[offset] = Strength.BLOCK
            elif below_heading:
                boundaries[offset] = Strength.WORD
            elif blank_before:
                boundaries[offset] = Strength.BLOCK
            elif indent >= 4 or starts_item(line, text[offset - 1 : offset]):  # noqa: PLR2004
                # A listing, or the rest of a list item; a page that starts with one stays a page.
                boundaries.setdefault(offset, Strength.LINE)
            below_heading = body[0] == "#" and not fence and _HEADING.match(first) is not None
            if below_heading and boundaries.get(offset) != Strength.WORD:
                boundaries[offset] = Strength.BLOCK
        blank_before = not body
        if "|" in line and not fence:
            rows.append((offset, line))
        elif rows:
            if not _goes_on(line):
                tables += pipe_tables([*rows, (offset, "")])
                rows = []
            else:
                rows.append((offset, line))
        offset += len(line)
    tables += pipe_tables([*rows, (offset, "")]) if rows else []
    for table in tables:
        for row in table.rows:
            boundaries[row] = Strength.WORD if table.start < row == table.body else Strength.LINE
    boundaries.pop(0, None)
    return boundaries, tables


def _goes_on(line: str) -> bool:
    """Whether a line without pipes may be the line of dashes of a table."""
    return line.strip("+=- \t\r\n") == "" and "---" in line
