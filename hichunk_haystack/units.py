# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Where a text may be cut, and how good each place is."""

from collections.abc import Iterator
from enum import IntEnum

import regex
import sentencex

from hichunk_haystack.unicode import well_formed

_INK = regex.compile(r"\S")
_WORD = regex.compile(r"\S+")
_WIDE_STOPS = "。！？｡．…」』”’）"
_CLOSING = regex.compile(r"""[*_"'`)\]»”’]+\s+""")
_GRAPHEME = regex.compile(r"\X")
_ITEM = regex.compile(r"[ \t]{0,12}(?:[-*+•‣◦▪–][ \t]+\S|\(?(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,5})[.)][ \t]+\S)")
_MARKER = regex.compile(r"[ \t]*\(?(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,5})[.)]\s+$")
_PAGE = regex.compile(r"\f(?:[ \t\r]*\n)*")
_PAGE_ENDS = ("", *".!?:;…。！？｡．」』”’）)\"'|`>")


# What the library is shown at once, in characters.
_PART = 8192


class Strength(IntEnum):
    """How good a place is for a cut; a higher one is taken first."""

    CHARACTER = 0
    WORD = 1
    SENTENCE = 2
    LINE = 3
    """Inside a block: a list item, a table row, a line of code, a line of a quotation."""
    BLOCK = 4
    """Between blocks: paragraphs, lists, tables, headings."""


def sentence_starts(text: str, language: str = "en") -> list[int]:
    """
    Find where the sentences of a text start, the first one excepted.

    The library `sentencex` finds them for some 300 languages; white space between two belongs to the first.

    :param text: The text.
    :param language: ISO 639-1 code of its language.
    :returns: Ascending offsets in characters, each of a character that is no white space and that follows white space
        or one of the full stops of Chinese and Japanese.
    """
    first = len(text) - len(text.lstrip())
    found: list[int] = []
    for boundary in _library_starts(text, language):
        # The library gives blank lines and gaps of white space as sentences: go on to the next character.
        match = _INK.search(text, boundary)
        if match is None:
            break
        start = match.start()
        if start and not text[start - 1].isspace() and text[start - 1] not in _WIDE_STOPS:
            # It also cuts inside of code ("#![x]") and addresses, which end no sentence, and in front of what closes
            # one ("so.** Then"): there the next one starts behind.
            closing = _CLOSING.match(text, start)
            if closing is None:
                continue
            start = closing.end()
        if _MARKER.match(text, max(0, text.rfind("\n", max(0, start - 24), start) + 1), start):
            # The number of a list item or of a heading ends no sentence.
            continue
        if (found[-1] if found else first) < start < len(text):
            found.append(start)
    return found


def _library_starts(text: str, language: str) -> Iterator[int]:
    """Where sentences start; the library gets slow on long runs of quotes and sees a bounded part at a time."""
    text = well_formed(text)
    origin = 0
    found = True  # whether a sentence starts at the origin
    while True:
        part = text[origin : origin + _PART]
        starts = [boundary["start_index"] for boundary in sentencex.get_sentence_boundaries(language, part)]
        whole = origin + _PART >= len(text)
        # The last sentence of a part may go on: it is looked at again, unless it is all there was.
        # One near its front is taken as it is, or the way through the text would be made of small steps.
        last = starts[-1] if starts and starts[-1] > _PART // 2 else None
        yield from (origin + start for start in starts if (start or found) and (whole or start != last))
        if whole:
            return
        found = last is not None
        origin += len(part) if last is None else last


def word_starts(text: str) -> list[int]:
    """
    Find where the words of a text start, the first one excepted; a word ends at white space.

    :param text: The text.
    :returns: Ascending offsets in characters.
    """
    return [match.start() for match in _WORD.finditer(text)][1:]


def character_edge(text: str, near: int) -> int:
    """
    Find the place nearest to a position that divides no character as a reader sees it.

    Such a character (an extended grapheme cluster, Unicode UAX #29) may be a letter with its accents, a family of
    emoji, a carriage return with its line feed. One that is longer than a few dozen code points is cut through.

    :param text: At least two characters.
    :param near: The position, in characters.
    :returns: An offset in characters, at least 1 and less than the length.
    """
    near = min(max(near, 1), len(text) - 1)
    # A cluster may be made as long as one likes: look at a bounded surrounding only.
    begin, end = max(0, near - 64), min(len(text), near + 64)
    edges = [match.end() for match in _GRAPHEME.finditer(text, begin, end)]
    # Behind the last edge the cluster may go on beyond the surrounding.
    inside = [edge for edge in edges if 0 < edge < len(text) and edge < end]
    return min(inside, key=lambda edge: abs(edge - near), default=near)


def paragraph_boundaries(text: str) -> dict[int, Strength]:
    """
    Find the paragraphs of a plain text, which blank lines separate, its list items and its pages.

    :param text: The text.
    :returns: Offset in characters -> how good a cut there is.
    """
    boundaries = {}
    blank_before = False
    offset = 0
    for line in text.splitlines(keepends=True):
        if not line.isspace():
            if offset and blank_before:
                boundaries[offset] = Strength.BLOCK
            elif offset and starts_item(line, text[offset - 1]):
                boundaries[offset] = Strength.LINE
            blank_before = False
        else:
            blank_before = True
        offset += len(line)
    for offset, strength in page_boundaries(text).items():
        boundaries.setdefault(offset, strength)
    return boundaries


def starts_item(line: str, before: str) -> bool:
    """
    Say whether a line starts with the mark or the number of a list item.

    :param line: The line.
    :param before: The character in front of it; an item starts behind a line feed or a carriage return.
    :returns: `True` if it does.
    """
    # Most lines start with a word: these need no look by the pattern.
    if line[0].isalpha() and line[1:2].isalpha() and line[0] not in "ivxIVX":
        return False
    return before in ("\n", "\r") and _ITEM.match(line) is not None


def page_boundaries(text: str) -> dict[int, Strength]:
    """
    Find where the pages of a text start, which form feeds separate.

    :param text: The text.
    :returns: Offset in characters -> `BLOCK` where the page before ends with a sentence or a blank line, `LINE` where a
        paragraph may go on.
    """
    boundaries = {}
    for match in _PAGE.finditer(text) if "\f" in text else ():
        if match.end() < len(text):
            before = text[max(0, match.start() - 64) : match.start()]
            ended = before.endswith("\n\n") or before.rstrip()[-1:] in _PAGE_ENDS
            boundaries[match.end()] = Strength.BLOCK if ended else Strength.LINE
    return boundaries
