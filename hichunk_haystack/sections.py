# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""From cut points to nested sections, with those that are too small joined to a neighbour."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class CutPoint:
    """
    A predicted start of a section.

    :param offset: Position in the source, in characters.
    :param level: 1 for the highest sections, more for those inside; levels may be left out (1, then 3).
    :param title: The section's title, or `None`.
    :raises ValueError: If the offset is negative or the level is below 1.
    """

    offset: int
    level: int
    title: str | None = None

    def __post_init__(self) -> None:
        if self.offset < 0:
            msg = (
                f"A cut point's offset is {self.offset}; it counts characters from the start of the source, from 0 on."
            )
            raise ValueError(msg)
        if self.level < 1:
            msg = f"A cut point's level is {self.level}; levels start at 1 (level 0 is the whole source)."
            raise ValueError(msg)


@dataclass
class Section:
    """
    A run of pieces of the source.

    :param start: Number of its first piece.
    :param end: Number after its last piece.
    :param titles: Titles from the parent's (left out) down to its own; more than one where levels were folded into it.
    :param level: Level of the cut point that started it; 0 for the whole source.
    """

    start: int
    end: int
    titles: list[str] = field(default_factory=list)
    level: int = 0
    children: list["Section"] = field(default_factory=list)


def nest(cuts: Sequence[tuple[int, int, str | None]], end: int) -> Section:
    """
    Nest sections by their levels.

    A section goes on to the next cut of its own or a higher level. Text between a section's start and its first
    subsection becomes a child without a title. A jump of levels (1, then 3) makes a child, not an empty level.

    :param cuts: (number of the first piece, level, title), ascending, no two at the same piece.
    :param end: Number of pieces.
    :returns: The section that is the whole source.
    """
    root = Section(0, end)
    open_sections = [root]
    for start, level, title in cuts:
        while open_sections[-1].level >= level:
            open_sections.pop().end = start
        section = Section(start, end, [title] if title else [], level)
        open_sections[-1].children.append(section)
        open_sections.append(section)
    _add_own_text(root)
    return root


def _add_own_text(section: Section) -> None:
    if section.children and section.children[0].start > section.start:
        section.children.insert(0, Section(section.start, section.children[0].start, level=section.children[0].level))
    for child in section.children:
        _add_own_text(child)


def join_small(section: Section, tokens: Sequence[int], minimum: int) -> None:
    """
    Join sections of fewer tokens than the minimum to a neighbour inside the same parent.

    A small section joins the next one, the last one joins the one before. Where the neighbour has subsections, the
    small one becomes part of the first (or last) of them, at the lowest level. A parent that would be left with one
    child takes that child's place.

    :param section: Changed in place, with all that is below it.
    :param tokens: Sums of the lengths in tokens of the pieces before each piece, then of all.
    :param minimum: Smallest length of a section, in tokens.
    """

    def length(part: Section) -> int:
        return tokens[part.end] - tokens[part.start]

    section.children = _joined(section.children, length, minimum)
    while len(section.children) == 1:
        only = section.children[0]
        section.titles += only.titles
        section.children = _joined(only.children, length, minimum)
    for child in section.children:
        join_small(child, tokens, minimum)


def _joined(sections: Sequence[Section], length: Callable[[Section], int], minimum: int) -> list[Section]:
    """Neighbours put together until none is too small."""
    joined: list[Section] = []
    pending: Section | None = None
    for section in sections:
        if pending is not None:
            _take_before(section, pending, large=length(section) >= minimum)
            pending = None
        if length(section) < minimum:
            section.children = []
            pending = section
        else:
            joined.append(section)
    if pending is None:
        return joined
    if not joined:
        return [pending]
    _take_after(joined[-1], pending.end)
    return joined


def _take_before(section: Section, small: Section, *, large: bool) -> None:
    """Extend a section, and its first descendants, to the front."""
    if small.titles and (section.titles and not large):
        # Two sections of equal weight: what was joined has no title of its own.
        section.titles = []
    elif not section.titles:
        section.titles = small.titles
    part: Section | None = section
    while part is not None:
        part.start = small.start
        part = part.children[0] if part.children else None


def _take_after(section: Section, end: int) -> None:
    """Extend a section, and its last descendants, to the back."""
    part: Section | None = section
    while part is not None:
        part.end = end
        part = part.children[-1] if part.children else None
