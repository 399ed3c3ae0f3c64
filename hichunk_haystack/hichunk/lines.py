# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""A text as the numbered lines that a model is shown, with the place of each in the source."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyromark

from hichunk_haystack.markdown import MarkdownStructure, parse_markdown
from hichunk_haystack.unicode import well_formed
from hichunk_haystack.units import Strength, sentence_starts

SHORT_SENTENCE = 10
"""Sentences of fewer characters join the next one of their paragraph (arXiv 2509.11552, public code)."""

_OPTIONS = (
    pyromark.Options.ENABLE_TABLES
    | pyromark.Options.ENABLE_FOOTNOTES
    | pyromark.Options.ENABLE_TASKLISTS
    | pyromark.Options.ENABLE_YAML_STYLE_METADATA_BLOCKS
)
# The parts of these are lines as they stand; prose is cut into its sentences.
_WHOLE = frozenset({"List", "Table", "CodeBlock", "HtmlBlock", "MetadataBlock", "Heading"})
_CONTINUATION = 0b10000000
_MARKS = re.compile(r"^[#>*_+\-\s]+|[*_#\s]+$")


@dataclass(frozen=True)
class Lines:
    """
    A text cut into lines: sentences of its prose; headings, list items, table rows and lines of code as they are.

    :param starts: Offset in characters of each line; the first is 0. A line goes on to the next one's start, so that
        the lines partition the text.
    :param shown: What the model is shown of each line: on one line, cut to the number of characters asked for.
    :param headings: Line -> (level, title) where a line is a Markdown heading. Levels are counted from the highest
        that the text has: a text whose highest headings are of level 2 has these at level 1.
    :param boundaries: Places to cut, for the tree builder.
    """

    starts: list[int]
    shown: list[str]
    headings: dict[int, tuple[int, str | None]]
    boundaries: Mapping[int, Strength]

    def title(self, line: int) -> str | None:
        """
        Give the title of a section that starts at a line.

        :param line: The line's number.
        :returns: The heading's own title, else the text shown without its marks, else `None`.
        """
        if line in self.headings:
            return self.headings[line][1]
        return _MARKS.sub("", self.shown[line]) or None


def make_lines(
    text: str, *, language: str = "en", sentence_chars: int = 100, hide_heading_marks: bool = False
) -> Lines:
    """
    Cut a text into numbered lines.

    :param text: Markdown or plain text with something in it that is no white space.
    :param language: ISO 639-1 code, for finding sentences; Chinese and Japanese are cut at their own full stops
        whatever it says.
    :param sentence_chars: The most characters shown of a line.
    :param hide_heading_marks: Show headings without their `#`, as any sentence.
    :returns: The lines.

    ```python
    from hichunk_haystack.hichunk.lines import make_lines

    lines = make_lines("# Kiln\\n\\nFire it slowly. Then let it cool down.\\n")
    print(lines.shown)  # ['# Kiln', 'Fire it slowly.', 'Then let it cool down.']
    ```
    """
    structure = parse_markdown(text)
    starts = _line_starts(text, structure, language)
    ranks = {level: rank for rank, level in enumerate(sorted({level for _, level, _ in structure.headings}), start=1)}
    number_at = {start: number for number, start in enumerate(starts)}
    # A heading behind nothing but white space is the first line, which starts at 0.
    headings = {number_at.get(at, 0): (ranks[level], title) for at, level, title in structure.headings}
    shown = []
    for number, (start, end) in enumerate(pairwise([*starts, len(text)])):
        line = headings.get(number)
        if line is None:
            shown.append(_on_one_line(text, start, end, sentence_chars))
        else:
            marks = "" if hide_heading_marks else "#" * line[0] + " "
            shown.append(well_formed(f"{marks}{line[1] or ''}".strip())[:sentence_chars].rstrip())
    return Lines(starts, shown, headings, structure.boundaries)


def _line_starts(text: str, structure: MarkdownStructure, language: str) -> list[int]:
    """Where the lines start: blocks, and in prose the sentences."""
    first = len(text) - len(text.lstrip())
    inside = {*structure.boundaries, *(offset for offset, _, _ in structure.headings)}
    edges = [0, *sorted(offset for offset in inside if offset > first), len(text)]
    whole = _whole_spans(text)
    spans = iter([*whole, (len(text), len(text) + 1)])
    span = next(spans)
    starts: list[int] = []
    for start, end in pairwise(edges):
        if starts and _is_blank(text, start, end):
            continue
        starts.append(start)
        while span[1] <= max(start, first):
            span = next(spans)
        if span[0] >= end:
            starts += _sentences(text, start, end, language)
    return starts


def _sentences(text: str, start: int, end: int, language: str) -> Iterator[int]:
    """Where the sentences of a paragraph start, the first one excepted; short ones join the next."""
    begin = start
    for offset in sentence_starts(text[start:end], language):
        if len(text[begin : start + offset].strip()) >= SHORT_SENTENCE:
            begin = start + offset
            yield begin


def _whole_spans(text: str) -> list[tuple[int, int]]:
    """Spans in characters of the outermost blocks whose parts are no prose, in order."""
    usable = well_formed(text).replace("\0", "\ufffd")
    spans: list[tuple[int, int]] = []
    last = 0
    for event, span in pyromark.events_with_range(usable, options=_OPTIONS):
        if span["start"] < last or not isinstance(event, dict) or "Start" not in event:
            continue
        value = event["Start"]
        if (value if isinstance(value, str) else next(iter(value))) in _WHOLE:
            last = span["end"]
            spans.append((span["start"], last))
    if usable.isascii() or not spans:
        return spans
    raw = np.frombuffer(usable.encode(), dtype=np.uint8)
    # A byte of the form 10xxxxxx goes on with the character of the byte before it.
    offsets = np.concatenate(([0], np.cumsum((raw & 0b11000000) != _CONTINUATION)))
    return [(int(a), int(b)) for a, b in offsets[np.array(spans)]]


def _is_blank(text: str, start: int, end: int) -> bool:
    return not text[start:end].strip()


def _on_one_line(text: str, start: int, end: int, characters: int) -> str:
    # A line may be megabytes long; what is shown of it is near its start.
    begin = next((at for at in range(start, end) if not text[at].isspace()), start)
    words = text[begin : min(end, begin + 4 * characters)].split()
    return well_formed(" ".join(words)).replace("\0", "\ufffd")[:characters].rstrip()
