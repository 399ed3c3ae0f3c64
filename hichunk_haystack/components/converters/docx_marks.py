# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""DOCX so that Haystack's converter keeps its headings."""

import io
import re
from collections.abc import Iterator
from typing import Any

import docx
from docx.enum.style import WD_STYLE_TYPE
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from docx.text.paragraph import Paragraph

_HEADING_NAME = re.compile(r"heading (\d)", re.IGNORECASE)
_LIST_NAME = re.compile(r"list (?:bullet|number)(?: (\d))?", re.IGNORECASE)
_LIKE_A_HEADING = re.compile(r"\s*#{1,6}(\s|$)")
_BODY_TEXT = 9  # outline level of what is no heading
_DEEPEST = 6  # level of Markdown's headings
_PARAGRAPH, _TABLE = qn("w:p"), qn("w:tbl")
_PAGE_BREAK = qn("w:lastRenderedPageBreak")
_TEXT_BOX = qn("w:txbxContent")


def with_markdown_marks(data: bytes) -> bytes:
    """
    Write Markdown's marks into the paragraphs of a document.

    Haystack's `DOCXToDocument` gives the text of paragraphs, without their styles, one below the other. So headings
    get their `#` marks here, list items a dash, and paragraphs a blank line between them. What is a heading says the
    outline level of the paragraph or of its style, or the style's name ("Heading 1", in whatever language Word is), or
    a style that it is based on. Where a document has a "Title", its headings go one level down.

    :param data: The document.
    :returns: The same document with the marks.
    :raises Exception: Whatever python-docx raises if it is no DOCX document.
    """
    document = docx.Document(io.BytesIO(data))
    styles = _Styles(document)
    body = document.element.body
    levels = {element: styles.level(element) for element in body.iterchildren(_PARAGRAPH)}
    deeper = 1 if 0 in levels.values() else 0
    before = "blank"  # what stands above: "blank", "block" or "item"
    depth = -1  # of the list item above
    for element in [child for child in body if child.tag in (_PARAGRAPH, _TABLE)]:
        text = Paragraph(element, document).text if element.tag == _PARAGRAPH else "table"
        if not text.strip():
            before = "block" if any(True for _ in element.iter(_PAGE_BREAK, _TEXT_BOX)) else "blank"
            continue
        level, list_level = levels.get(element), styles.list_level(element)
        if level is not None:
            _separate(element, before, _take_page_break(element))
            _join_lines(element)
            _mark(element, "#" * min(level + deeper, _DEEPEST) + " ")
        elif list_level is not None:
            if before == "block":
                _separate(element, before)
            depth = min(list_level, depth + 1 if before == "item" else 0)
            _mark(element, "  " * depth + "- ")
        else:
            _separate(element, before)
            if _LIKE_A_HEADING.match(text):
                _mark(element, "\\")
        before = "block" if level is not None or list_level is None else "item"
    marked = io.BytesIO()
    document.save(marked)
    return marked.getvalue()


class _Styles:
    """What a paragraph is, by itself or by its style."""

    def __init__(self, document: Any) -> None:
        self.by_id = {style.style_id: style for style in document.styles if style.type == WD_STYLE_TYPE.PARAGRAPH}

    def level(self, element: Any) -> int | None:
        """Give a heading's level from 1 on, 0 for the document's title, `None` for other paragraphs."""
        for properties, name in self._chain(element):
            outline = _value(properties, "w:outlineLvl")
            if outline is not None:
                return outline + 1 if outline < _BODY_TEXT else None
            named = _HEADING_NAME.fullmatch(name)
            if named:
                return int(named.group(1))
            if name.lower() == "title":
                return 0
        return None

    def list_level(self, element: Any) -> int | None:
        """Give how deep a list item is, from 0 on, `None` for other paragraphs."""
        for properties, name in self._chain(element):
            named = _LIST_NAME.fullmatch(name)
            if named:
                return int(named.group(1) or 1) - 1
            numbering = None if properties is None else properties.find(qn("w:numPr"))
            number = _value(numbering, "w:numId")
            if number is not None:
                return (_value(numbering, "w:ilvl") or 0) if number else None
        return None

    def _chain(self, element: Any) -> Iterator[tuple[Any, str]]:
        """Give the properties of the paragraph, of its style, and of the styles that this one is based on."""
        properties = element.find(qn("w:pPr"))
        yield properties, ""
        named = None if properties is None else properties.find(qn("w:pStyle"))
        style = None if named is None else self.by_id.get(named.get(qn("w:val")))
        seen: set[str] = set()
        while style is not None and style.style_id not in seen:
            seen.add(style.style_id)
            yield style.element.find(qn("w:pPr")), style.name or ""
            style = style.base_style


def _value(properties: Any, name: str) -> int | None:
    """Read a number from a paragraph's properties."""
    found = None if properties is None else properties.find(qn(name))
    return None if found is None else int(found.get(qn("w:val")))


def _mark(element: Any, mark: str) -> None:
    """Put a text in front of a paragraph."""
    run, text = OxmlElement("w:r"), OxmlElement("w:t")
    text.text = mark
    text.set(qn("xml:space"), "preserve")
    run.append(text)
    properties = element.find(qn("w:pPr"))
    element.insert(0 if properties is None else element.index(properties) + 1, run)


def _separate(element: Any, before: str, page_break: bool = False) -> None:
    """Put an empty paragraph in front of a paragraph or table, if none is there, or a page break."""
    if before == "blank" and not page_break:
        return
    empty = OxmlElement("w:p")
    if page_break:
        run = OxmlElement("w:r")
        run.append(OxmlElement("w:lastRenderedPageBreak"))
        empty.append(run)
    element.addprevious(empty)


def _take_page_break(element: Any) -> bool:
    """Take out the page break that a heading starts with: its mark must stand at the start of a line."""
    found = list(element.iter(_PAGE_BREAK))
    for page_break in found:
        page_break.getparent().remove(page_break)
    return bool(found)


def _join_lines(element: Any) -> None:
    """Turn the line breaks of a heading into spaces."""
    for line_break in list(element.iter(qn("w:br"), qn("w:cr"))):
        space = OxmlElement("w:t")
        space.text = " "
        space.set(qn("xml:space"), "preserve")
        line_break.getparent().replace(line_break, space)
