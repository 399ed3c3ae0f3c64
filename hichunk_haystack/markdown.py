# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Headings and blocks of a Markdown text, with their offsets."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pyromark

from hichunk_haystack.unicode import well_formed
from hichunk_haystack.units import Strength

_OPTIONS = (
    pyromark.Options.ENABLE_TABLES
    | pyromark.Options.ENABLE_FOOTNOTES
    | pyromark.Options.ENABLE_TASKLISTS
    # Without this, "title: x" above the closing "---" of a front matter would be a heading.
    | pyromark.Options.ENABLE_YAML_STYLE_METADATA_BLOCKS
)
_CONTINUATION = 0b10000000
_INLINE = frozenset({"Emphasis", "Strong", "Strikethrough", "Link", "Image", "TableCell", "Superscript", "Subscript"})


@dataclass
class MarkdownStructure:
    """
    What a parser of CommonMark (with tables, footnotes and front matter) found in a text.

    :param headings: (offset in characters of its line, level 1 to 6, title), in order; those inside quotations, lists
        and tables are not headings of the document and are left out.
    :param boundaries: Offset in characters -> how good a cut there is; each is the start of a line.
    """

    headings: list[tuple[int, int, str | None]] = field(default_factory=list)
    boundaries: dict[int, Strength] = field(default_factory=dict)


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
        self.raw = np.frombuffer(text.encode(), dtype=np.uint8)
        breaks = self.raw == ord("\n")
        if "\r" in text:
            breaks |= (self.raw == ord("\r")) & (np.append(self.raw[1:], 0) != ord("\n"))
        self.line_starts: list[int] = [0, *(np.flatnonzero(breaks) + 1).tolist()]
        self.headings: list[tuple[int, int, str | None]] = []
        self.boundaries: dict[int, Strength] = {}
        self.depth = 0
        self.after_heading = False
        self.after_table_head = False
        self.title: list[str] | None = None
        self.heading = (0, 0)

    def read(self) -> MarkdownStructure:
        """Parse, then turn bytes into characters."""
        as_is = False
        for event, span in pyromark.events_with_range(self.text, options=_OPTIONS):
            if isinstance(event, str):  # rules, breaks
                if self.title is not None and event in ("SoftBreak", "HardBreak"):
                    self.title.append(" ")
                elif event == "Rule":
                    self.boundary(span["start"], Strength.BLOCK if self.depth == 0 else Strength.LINE)
                continue
            kind: str
            value: Any
            kind, value = next(iter(cast(dict[str, Any], event).items()))
            if kind in ("Start", "End"):
                tag = value if isinstance(value, str) else next(iter(value))
                if tag in _INLINE:
                    continue
                if kind == "Start":
                    self.start(tag, value, span["start"])
                    as_is = tag in ("CodeBlock", "HtmlBlock", "MetadataBlock")
                else:
                    self.end(tag)
                    if as_is:
                        self.lines(span["start"], span["end"])
                        as_is = False
            elif self.title is not None and kind in ("Text", "Code"):
                self.title.append(value)
        return self.in_characters()

    def in_characters(self) -> MarkdownStructure:
        """Give the positions found in characters."""
        if self.text.isascii():
            return MarkdownStructure(self.headings, self.boundaries)
        # A byte of the form 10xxxxxx goes on with the character of the byte before it.
        offsets = np.concatenate(([0], np.cumsum((self.raw & 0b11000000) != _CONTINUATION))).tolist()
        headings = [(offsets[byte], level, title) for byte, level, title in self.headings]
        return MarkdownStructure(headings, {offsets[byte]: strength for byte, strength in self.boundaries.items()})

    def start(self, tag: str, value: Any, byte: int) -> None:
        """Note a block's start."""
        top = self.depth == 0
        self.depth += 1
        if tag == "TableRow" and self.after_table_head:
            # The header belongs to the first row: cut there only where nothing else fits.
            self.after_table_head = False
            self.boundary(byte, Strength.WORD)
        elif tag != "TableHead":
            self.boundary(byte, Strength.BLOCK if top else Strength.LINE)
        if tag == "Heading" and top:
            self.title = []
            self.heading = (self.line_start(byte), int(value["Heading"]["level"][1]))

    def end(self, tag: str) -> None:
        """Note a block's end."""
        self.depth -= 1
        if tag == "TableHead":
            self.after_table_head = True
        if tag == "Heading" and self.title is not None:
            self.headings.append((*self.heading, " ".join("".join(self.title).split()) or None))
            self.title = None
            self.after_heading = True

    def boundary(self, byte: int, strength: Strength) -> None:
        """Note that a cut is possible at the start of the line that holds this byte."""
        start = self.line_start(byte)
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
        for line in self.line_starts[first : bisect_left(self.line_starts, end)]:
            self.boundaries.setdefault(line, Strength.LINE)

    def line_start(self, byte: int) -> int:
        """Byte at which the line starts that holds this one."""
        return self.line_starts[bisect_right(self.line_starts, byte) - 1]
