# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Where a text may be cut, and how good each place is."""

from enum import IntEnum

import regex
import sentencex

from hichunk_haystack.unicode import well_formed

_WORD = regex.compile(r"\S+")
_WIDE_STOPS = "。！？｡．…」』”’）"
_CLOSING = regex.compile(r"""[*_"'`)\]»”’]+\s+""")
_GRAPHEME = regex.compile(r"\X")


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
    for boundary in sentencex.get_sentence_boundaries(language, well_formed(text)):
        # The library gives blank lines and gaps of white space as sentences: go on to the next character.
        match = _WORD.search(text, boundary["start_index"])
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
        if (found[-1] if found else first) < start < len(text):
            found.append(start)
    return found


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
    Find the paragraphs of a plain text, which blank lines separate, and its lines.

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
            blank_before = False
        else:
            blank_before = True
        offset += len(line)
    return boundaries
