# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Headings and blocks of a Markdown text, with their offsets."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyromark

from hichunk_haystack.code import code_boundaries
from hichunk_haystack.front_matter import front_matter_end
from hichunk_haystack.tables import Table, pipe_tables
from hichunk_haystack.unicode import well_formed
from hichunk_haystack.units import Strength, page_boundaries

_OPTIONS = pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_FOOTNOTES | pyromark.Options.ENABLE_TASKLISTS
_CONTINUATION = 0b10000000
_NOT_A_LINE_END = re.compile(rb"[^\r\n]")
_KINDS = {
    "Paragraph": "paragraph", "Heading": "heading", "BlockQuote": "quote", "List": "list item", "Item": "list item",
    "CodeBlock": "code", "HtmlBlock": "html", "Table": "table row",
    "TableHead": "table row", "TableRow": "table row", "FootnoteDefinition": "footnote",
}  # fmt: skip
_FRONT_MATTER = "front matter"
_INLINE = frozenset({"Emphasis", "Strong", "Strikethrough", "Link", "Image", "TableCell", "Superscript", "Subscript"})
_PLAIN = frozenset({"Paragraph", "List", "Item", "BlockQuote"})
_AS_IS = frozenset({"CodeBlock", "HtmlBlock"})
_BREAKS = frozenset({"SoftBreak", "HardBreak"})


@dataclass
class MarkdownStructure:
    """
    What a parser of CommonMark (with tables, footnotes and front matter) found in a text.

    :param headings: (offset in characters of its line, level 1 to 6, title), in order; those inside quotations, lists
        and tables are not headings of the document and are left out.
    :param boundaries: Offset in characters -> how good a cut there is; each is the start of a line or of a page.
    :param tables: The tables, in order.
    :param kinds: Offset in characters of a block -> what starts there: `paragraph`, `heading`, `list item`,
        `table row`, `code`, `quote`, `html`, `front matter`, `footnote`. Of several at one place the outermost counts.
    """

    headings: list[tuple[int, int, str | None]] = field(default_factory=list)
    boundaries: dict[int, Strength] = field(default_factory=dict)
    tables: list[Table] = field(default_factory=list)
    kinds: dict[int, str] = field(default_factory=dict)


def parse_markdown(text: str) -> MarkdownStructure:
    """
    Find the headings and the blocks of a Markdown text.

    The parser is pulldown-cmark (through `pyromark`), which is compiled, linear in the length of the text, and gives
    the position of everything it finds.

    :param text: Markdown; any other text gives its paragraphs.
    :returns: The headings and the places to cut.
    """
    # NUL becomes U+FFFD as CommonMark has it; offsets in characters stay the same.
    return _Reader(well_formed(text).replace("\0", "\ufffd")).read()


class _Reader:
    """Goes once through the parser's events. Positions are bytes of the text's UTF-8 form until the very end."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.data = text.encode()
        self.raw = np.frombuffer(self.data, dtype=np.uint8)
        breaks = self.raw == ord("\n")
        if "\r" in text:
            breaks |= (self.raw == ord("\r")) & (np.append(self.raw[1:], 0) != ord("\n"))
        self.line_starts: list[int] = [0, *(np.flatnonzero(breaks) + 1).tolist()]
        self.headings: list[tuple[int, int, str | None]] = []
        self.boundaries: dict[int, Strength] = {}
        self.tables: list[Table] = []
        self.kinds: dict[int, str] = {}
        self.table = [0, 0]
        self.rows: list[int] = []
        self.language = ""
        self.depth = 0
        self.after_heading = False
        self.after_table_head = False
        self.pipes = "|" in text
        self.title: list[str] | None = None
        self.heading = (0, 0)

    def read(self) -> MarkdownStructure:
        """Parse, then turn bytes into characters."""
        as_is = False
        kind: str
        value: Any
        text = self.without_front_matter()
        # There are some 50 events to a page, most of them of no interest: what is most frequent comes first.
        for event, span in pyromark.events_with_range(text, options=_OPTIONS, merge_text=True):
            if isinstance(event, str):
                self.mark(event, span["start"])
                continue
            [(kind, value)] = event.items()
            if kind == "Text" or kind == "Code":  # noqa: PLR1714 - a set would be slower
                if self.title is not None:
                    self.title.append(value)
            elif kind == "Start":
                tag = value if isinstance(value, str) else next(iter(value))
                if tag not in _INLINE:
                    self.start(tag, value, span["start"])
                    as_is = tag in _AS_IS
            elif kind == "End":
                tag = value if isinstance(value, str) else next(iter(value))
                if tag in _INLINE:
                    continue
                self.end(tag, span["end"])
                if as_is:
                    self.lines(span["start"], span["end"])
                    as_is = False
                elif self.pipes and tag == "Paragraph":
                    self.plain_tables(span["start"], span["end"])
        return self.in_characters()

    def in_characters(self) -> MarkdownStructure:
        """Give the positions found in characters."""
        structure = MarkdownStructure(self.headings, self.boundaries, self.tables, self.kinds)
        if not self.text.isascii():
            # A byte of the form 10xxxxxx goes on with the character of the byte before it.
            offsets = np.concatenate(([0], np.cumsum((self.raw & 0b11000000) != _CONTINUATION)))

            def characters(places: Iterable[int]) -> list[int]:
                # Of a long text only a few places are of interest: no list of all.
                return offsets[np.fromiter(places, dtype=np.int64)].tolist()

            starts = characters(byte for byte, _, _ in self.headings)
            structure.headings = [
                (start, level, title) for start, (_, level, title) in zip(starts, self.headings, strict=True)
            ]
            structure.boundaries = dict(zip(characters(self.boundaries), self.boundaries.values(), strict=True))
            structure.kinds = dict(zip(characters(self.kinds), self.kinds.values(), strict=True))
            structure.tables = []
            for table in self.tables:
                start, body, end, *rows = characters((table.start, table.body, table.end, *table.rows))
                structure.tables.append(Table(start, body, end, tuple(rows)))
        for offset, strength in page_boundaries(self.text).items():
            structure.boundaries.setdefault(offset, strength)
        return structure

    def without_front_matter(self) -> str:
        """
        Note the front matter, and give the text with blanks in its place.

        The parser would take any lines between two rules for one, wherever they stand, and headings among them for
        none of the text.
        """
        end = len(self.text[: front_matter_end(self.text)].encode())
        if not end:
            return self.text
        start = self.line_start(len(self.data[:end]) - len(self.data[:end].lstrip()))
        self.boundary(start, Strength.BLOCK)
        self.kinds[start] = _FRONT_MATTER
        self.lines(start, end)
        return (_NOT_A_LINE_END.sub(b" ", self.data[:end]) + self.data[end:]).decode()

    def mark(self, event: str, byte: int) -> None:
        """Note a rule, or that a title goes on behind a break."""
        if event == "Rule":
            self.boundary(self.line_start(byte), Strength.BLOCK if self.depth == 0 else Strength.LINE)
        elif self.title is not None and event in _BREAKS:
            self.title.append(" ")

    def start(self, tag: str, value: Any, byte: int) -> None:
        """Note a block's start."""
        top = self.depth == 0
        self.depth += 1
        line = self.line_start(byte)
        if tag == "TableRow" and self.after_table_head:
            # The header belongs to the first row: cut there only where nothing else fits.
            self.after_table_head = False
            self.boundary(line, Strength.WORD)
        elif tag != "TableHead":
            self.boundary(line, Strength.BLOCK if top else Strength.LINE)
        if tag in _KINDS:
            self.kinds.setdefault(line, _KINDS[tag])
        if tag in _PLAIN:
            return
        if tag == "Table":
            self.table = [line, 0]
            self.rows = []
        elif tag == "TableRow":
            self.rows.append(line)
        elif tag == "CodeBlock":
            fence = value["CodeBlock"]
            info = fence.get("Fenced") if isinstance(fence, dict) else None
            # "rust,no_run", "{.python}", "js title=x"
            words = (info or "").replace(",", " ").strip("{} ").split()
            self.language = words[0].lstrip(".") if words else ""
        if tag == "Heading" and top:
            self.title = []
            self.heading = (line, int(value["Heading"]["level"][1]))

    def end(self, tag: str, byte: int) -> None:
        """Note a block's end, which lies at this byte."""
        self.depth -= 1
        if tag == "Table" and self.rows:
            self.tables.append(Table(self.table[0], self.rows[0], byte, tuple(self.rows)))
        if tag == "TableHead":
            self.after_table_head = True
        if tag == "Heading" and self.title is not None:
            self.headings.append((*self.heading, " ".join("".join(self.title).split()) or None))
            self.title = None
            self.after_heading = True

    def boundary(self, start: int, strength: Strength) -> None:
        """Note that a cut is possible at this start of a line."""
        if self.after_heading:
            # What stands under a heading belongs to it.
            self.after_heading = False
            strength = Strength.WORD
        # Blocks that start on one line: the outermost came first and tells what stands there.
        if start:
            self.boundaries.setdefault(start, strength)

    def lines(self, start: int, end: int) -> None:
        """Note each line of a block that is kept as it is (code, HTML, front matter)."""
        first = bisect_right(self.line_starts, start)
        edges = self.line_starts[first : bisect_left(self.line_starts, end)]
        if not self.language:
            for line in edges:
                self.boundaries.setdefault(line, Strength.LINE)
            return
        found = code_boundaries(self.texts([*edges, end]), self.language)
        self.language = ""
        for number, line in enumerate(edges):
            # The line that opens the fence goes with the first line of code.
            self.boundaries.setdefault(line, found.get(line, Strength.LINE) if number else Strength.LINE)

    def plain_tables(self, start: int, end: int) -> None:
        """Note the rows of tables without a line of dashes, which to CommonMark are paragraphs."""
        if self.data.find(b"|", start, end) < 0:
            return
        first, last = bisect_right(self.line_starts, start) - 1, bisect_left(self.line_starts, end)
        for table in pipe_tables(self.texts([*self.line_starts[first:last], end])):
            self.tables.append(table)
            self.kinds[table.start] = "table row"
            if table.start > self.line_starts[first]:
                self.boundaries.setdefault(table.start, Strength.LINE)
            for row in table.rows:
                self.kinds.setdefault(row, "table row")
                self.boundaries.setdefault(row, Strength.WORD if row == table.body else Strength.LINE)

    def texts(self, edges: list[int]) -> list[tuple[int, str]]:
        """The lines between edges, each with the byte at which it starts."""
        return [(a, self.data[a:b].decode(errors="replace")) for a, b in pairwise(edges)]

    def line_start(self, byte: int) -> int:
        """Byte at which the line starts that holds this one."""
        return self.line_starts[bisect_right(self.line_starts, byte) - 1]
