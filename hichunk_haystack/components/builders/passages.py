# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""From documents to the passages that stand under one citation each."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from haystack import Document

from hichunk_haystack.components.builders.citations import headings_of, source_of
from hichunk_haystack.joining import TRUNCATED
from hichunk_haystack.markdown import parse_markdown
from hichunk_haystack.nodes import TREE_ID

_LEADING_BLANK_LINES = re.compile(r"(?:[^\S\n]*\n)+")
_ATX = re.compile(r" {0,3}#{1,6}(?:[ \t][^\n]*)?(?:\n|\Z)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)\s*")
_LONGEST_HEADING = 2000  # characters; longer ones are not looked for


@dataclass
class Passage:
    """
    What stands under one citation.

    :param documents: One document, or neighbours that touch.
    :param text: The text to show.
    :param start: Where it starts in the source, in characters; `None` if that is not known.
    :param end: Where it ends.
    :param truncated: Whether the end of the document is missing: cut off here, or by the merge before.
    :param lead: How many characters of the first document's content are left out in front of the text.
    :param header: Header of the table in which the text starts, shown above it; no part of the text.
    """

    documents: list[Document]
    text: str
    start: int | None
    end: int | None
    truncated: bool = False
    lead: int = 0
    header: str = ""

    def show(self, text: str) -> str:
        """Put the table's header above a text."""
        return f"{self.header}\n{text}" if self.header else text


def arrange(documents: Sequence[Document], order: str, cuts: Mapping[str, int], drop_headings: bool) -> list[Passage]:
    """
    Put documents in the order in which they are shown.

    :param documents: Documents in rank order.
    :param order: "rank", or "reading": sources by their best document, inside a source by place; neighbours that touch
        under the same headings make one passage.
    :param cuts: Document id -> how many characters of its content are left.
    :param drop_headings: Whether to leave out headings at the start that the citation line holds.
    :returns: The passages.
    """
    groups = [[document] for document in documents] if order == "rank" else _in_reading_order(documents, cuts)
    return [_passage(group, cuts, drop_headings) for group in groups]


def says_nothing_new(document: Document) -> bool:
    """
    Tell whether a document is nothing but headings that its citation line holds.

    :param document: A document with text.
    :returns: Whether nothing is left of it without them.
    """
    content = document.content or ""
    *_, end = _heading_ends(content, _after_blank_lines(content, 0), headings_of(document))
    return not content[end:].strip()


def _in_reading_order(documents: Sequence[Document], cuts: Mapping[str, int]) -> list[list[Document]]:
    sources: dict[str, list[Document]] = {}
    for document in documents:
        # Two sources may share a title, and a file may have been converted to several documents.
        key = str(document.meta["source_id"]) if TREE_ID in document.meta else source_of(document)
        sources.setdefault(key, []).append(document)
    groups: list[list[Document]] = []
    for members in sources.values():
        members.sort(key=_place)
        groups.append([members[0]])
        for before, document in pairwise(members):
            if _touch(before, document) and before.id not in cuts:
                groups[-1].append(document)
            else:
                groups.append([document])
    return groups


def _place(document: Document) -> tuple[bool, int]:
    start = document.meta.get("split_idx_start")
    return (False, start) if isinstance(start, int) else (True, 0)


def _touch(before: Document, document: Document) -> bool:
    end, start = before.meta.get("split_idx_end"), document.meta.get("split_idx_start")
    return (
        isinstance(end, int)
        and end == start
        and before.meta.get("source_id") == document.meta.get("source_id")
        and headings_of(before) == headings_of(document)
    )


def _passage(group: list[Document], cuts: Mapping[str, int], drop_headings: bool) -> Passage:
    content = "".join((document.content or "")[: cuts.get(document.id)] for document in group)
    lead = _after_blank_lines(content, 0)
    if drop_headings:
        lead = _after_headings(content, lead, headings_of(group[0]))
    text = content[lead:].rstrip()
    start = group[0].meta.get("split_idx_start")
    start = start + lead if isinstance(start, int) else None
    # Offsets of a stock Haystack tree and its like have no end.
    has_end = start is not None and isinstance(group[-1].meta.get("split_idx_end"), int)
    end = start + len(text) if has_end and start is not None else None
    last = group[-1]
    cut = last.id in cuts and bool((last.content or "")[cuts[last.id] :].strip())
    return Passage(group, text, start, end, cut or any(document.meta.get(TRUNCATED) for document in group), lead)


def _after_headings(content: str, lead: int, headings: list[str]) -> int:
    """Offset behind the headings that a text starts with, as far as they are among these; some text is always left."""
    return next(
        end for end in reversed(list(_heading_ends(content, lead, headings))) if end == lead or content[end:].strip()
    )


def _heading_ends(content: str, lead: int, headings: list[str]) -> Iterator[int]:
    """Where a text starts, and the offsets behind each of the headings at its start that are among these."""
    path = list(headings)
    yield lead
    while path:
        block = _first_heading(content[lead : lead + _LONGEST_HEADING])
        found = parse_markdown(block).headings if block else []
        title = found[0][2] if len(found) == 1 and found[0][0] == 0 else None
        if title not in path:
            break
        path = path[path.index(title) + 1 :]
        lead = _after_blank_lines(content, lead + len(block))
        yield lead


def _first_heading(text: str) -> str:
    """The lines at the start of a text that may be a heading, with their line breaks."""
    atx = _ATX.match(text)
    if atx:
        return atx.group()
    lines: list[str] = []
    for line in text.split("\n")[:5]:
        if not line.strip():
            break
        lines.append(line)
        if len(lines) > 1 and _UNDERLINE.fullmatch(line):
            return text[: len("\n".join(lines)) + 1]
    return ""


def _after_blank_lines(content: str, offset: int) -> int:
    match = _LEADING_BLANK_LINES.match(content, offset)
    return match.end() if match else offset
