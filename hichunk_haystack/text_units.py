# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""The units of a text: what is never worth cutting unless it is too long."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from hichunk_haystack.markdown import parse_markdown
from hichunk_haystack.units import Strength, sentence_starts

_PROSE = frozenset({"paragraph", "list item", "quote", "footnote"})


@dataclass(frozen=True, slots=True)
class Unit:
    """
    A sentence, or what takes its place where there are none.

    :param start: Offset of its first character.
    :param end: Offset behind its last one; white space behind a unit belongs to it.
    :param kind: What it is, or what it is a sentence of: `paragraph`, `heading`, `list item`, `table row`, `code`,
        `quote`, `html`, `front matter`, `footnote`.
    :param strength: How good a cut in front of it is.
    """

    start: int
    end: int
    kind: str
    strength: Strength


def find_units(text: str, language: str = "en") -> list[Unit]:
    """
    Cut a text, Markdown or plain, into sentences, headings, table rows, lines of code and the like.

    Units partition the text: joined in order they are the text. Time grows with the length of the text, whatever is in
    it.

    :param text: The text.
    :param language: ISO 639-1 code of its language, for the sentences.
    :returns: The units in order; none where the text is empty.

    ```python
    from hichunk_haystack.text_units import find_units

    for unit in find_units("# Kiln\\n\\nFire it slowly. Let it cool.\\n\\n- one day\\n- two days\\n"):
        print(unit.kind, unit.start, unit.end)
    ```
    """
    structure = parse_markdown(text)
    return units_between(text, structure.boundaries, structure.kinds, language)


def units_between(
    text: str, boundaries: Mapping[int, Strength], kinds: Mapping[int, str] | None = None, language: str = "en"
) -> list[Unit]:
    """
    Cut a text at known boundaries, and what is prose between them at its sentences.

    :param text: The text.
    :param boundaries: Offset -> how good a cut there is.
    :param kinds: Offset -> what starts there; prose up to the first.
    :param language: ISO 639-1 code.
    :returns: The units in order.
    """
    if not text:
        return []
    kinds = kinds or {}
    first, last = len(text) - len(text.lstrip()), len(text.rstrip())
    edges = [0, *sorted(offset for offset in boundaries if first < offset < last), len(text)]
    kind = kinds.get(0) or kinds.get(first, "paragraph")
    units: list[Unit] = []
    for start, end in pairwise(edges):
        kind = kinds.get(start, kind)
        strength = boundaries[start] if start else Strength.BLOCK
        if kind not in _PROSE:
            units.append(Unit(start, end, kind, strength))
            continue
        inside = [start, *(start + offset for offset in sentence_starts(text[start:end], language)), end]
        units += [Unit(a, b, kind, strength if a == start else Strength.SENTENCE) for a, b in pairwise(inside)]
    return units
