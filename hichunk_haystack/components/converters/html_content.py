# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""HTML so that Haystack's converter keeps its headings and all of its text."""

import codecs
import re
from typing import Any

import lxml.html
from trafilatura import load_html

from hichunk_haystack.components.converters.conversion import ConversionError

_MAIN = ("//main | //*[@role='main']", "//article")
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_PERMALINKS = frozenset({"", "#", "¶", "§", "\N{LINK SYMBOL}"})
_CONTAINERS = ("article", "body", "center", "div", "main", "section")
_INLINE = re.compile(
    "a|abbr|acronym|b|bdi|bdo|big|br|cite|code|data|del|dfn|em|font|i|img|ins|kbd|label|mark|q|s|samp|small|span|strike|"
    "strong|sub|sup|time|tt|u|var|wbr"
)
_LINE_BREAK = re.compile(r"\s*\n\s*")
_FENCE = re.compile(r"(?<!`)(`{3,})\s*$")
_FENCE_WITH_LANGUAGE = re.compile(r"\s*(`{3,})[^`]*$")
# Elements that the extractor drops with what is in them, and what it reads like them.
_RENAMED = {"details": "div", "summary": "p", "figure": "div", "figcaption": "p"}


def with_one_article(data: bytes) -> bytes:
    """
    Rewrite a page so that the extractor gives its main content whole.

    trafilatura, behind Haystack's `HTMLToDocument`, is made for pages of the open web. From a page without an `article`
    it takes bare paragraphs, without headings and lists; of several it takes the first; it removes parts by their ids,
    so that a section whose title, and hence id, holds "navigation" or "related" is lost; and text that stands in a
    `div` beside other blocks is lost or torn apart.

    :param data: The page.
    :returns: The page in UTF-8, with the main content (`main`, the only `article`, or the body) in one `article`, loose
        text in paragraphs, and without ids and the links that headings carry to themselves.
    :raises ConversionError: If it is no HTML.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        data = data.decode("utf-16", "replace").encode()
    content, is_main = _main_content(_parsed(data.removeprefix(codecs.BOM_UTF8)))
    for element in list(content.iter("button", "table")):
        if element.tag == "button":
            element.drop_tree()
        elif any(True for _ in element.iter(*_HEADINGS)):
            _dissolve(element)
    for element in list(content.iter("*")):
        element.attrib.pop("id", None)
        if is_main:
            # Where a page names its main content, all of it is meant: no part of it is left out for its class.
            element.attrib.pop("class", None)
        element.tag = _RENAMED.get(element.tag, element.tag)
        if (element.tag == "aside" and is_main) or (element.tag == "form" and element.find(".//p") is not None):
            element.tag = "div"
        elif element.tag in _HEADINGS:
            _tidy_heading(element)
        elif element.tag == "pre":
            _make_code_block(element)
        elif element.tag == "code" and next(element.iterancestors("pre"), None) is None:
            _put_on_one_line(element)
    for element in list(content.iter(*_CONTAINERS)):
        _wrap_loose_text(element)
    _move(content, "article", itemprop="articleBody")
    return lxml.html.tostring(content.getroottree(), encoding="utf-8")


def mend_fences(text: str) -> str:
    """
    Put the fences of code blocks on lines of their own.

    trafilatura writes the opening fence behind the text before it where the code stands in a list item. It would be no
    fence there, and the closing one would begin a block of code with all that follows in it.

    :param text: Markdown that trafilatura wrote.
    :returns: The same with the fences in place.
    """
    lines: list[str] = []
    fence = None
    for line in text.split("\n"):
        if fence is not None:
            lines.append(line)
            fence = None if line.strip() == fence else fence
            continue
        glued, opening = _FENCE.search(line), _FENCE_WITH_LANGUAGE.match(line)
        if opening:
            fence = opening.group(1)
            lines.append(line.strip())
        elif glued and len(re.findall(f"(?<!`){glued.group(1)}(?!`)", line)) == 1:
            fence = glued.group(1)
            lines += [line[: glued.start()].rstrip(), fence]
        else:
            lines.append(line)
    return "\n".join(lines)


def _parsed(data: bytes) -> Any:
    tree = load_html(data)
    if tree is None or tree.find("body") is None:
        # A piece of a page, without the elements around it.
        tree = load_html(b"<html><body>" + data + b"</body></html>")
    if tree is None or tree.find("body") is None:
        msg = "There is no HTML in it; give the file the name of its type, or leave it out."
        raise ConversionError(msg)
    return tree


def _main_content(tree: Any) -> tuple[Any, bool]:
    """The element that holds the main content, and whether the page itself says so."""
    for path in _MAIN:
        found = tree.xpath(path)
        if len(found) == 1:
            return found[0], True
    return tree.find("body"), False


def _dissolve(table: Any) -> None:
    """A table with headings in it lays out the page: its cells become blocks. Tables inside of it stay."""
    for element in [
        table,
        *table.xpath("./tr | ./*/tr | ./tr/* | ./*/tr/*"),
        *table.xpath("./thead | ./tbody | ./tfoot"),
    ]:
        element.tag = "div"


def _tidy_heading(heading: Any) -> None:
    """Drop the links that lead to itself, and blocks, which would make it a paragraph."""
    for link in heading.xpath(".//a"):
        if link.text_content().strip() in _PERMALINKS:
            link.drop_tree()
    for block in heading.xpath(".//p | .//div"):
        block.drop_tag()
    _put_on_one_line(heading)


def _make_code_block(element: Any) -> None:
    """Only `code` in `pre` becomes a block of code, and only where nothing stands beside it."""
    for line_break in element.iter("br"):
        line_break.tail = "\n" + (line_break.tail or "")
    code = element.makeelement("code")
    # Without a line break at its end, code of one line would run into what follows.
    code.text = element.text_content().strip("\n").rstrip() + "\n"
    tail = element.tail
    element.clear()
    element.tail = tail
    element.append(code)


def _put_on_one_line(element: Any) -> None:
    """Code of two lines in a sentence would begin a block of code there, and a break in a heading would end it."""
    for line_break in list(element.iter("br")):
        line_break.tail = " " + (line_break.tail or "")
        line_break.drop_tree()
    for each in element.iter():
        each.text = each.text and _LINE_BREAK.sub(" ", each.text)
        if each is not element:
            each.tail = each.tail and _LINE_BREAK.sub(" ", each.tail)


def _move(element: Any, tag: str, **attributes: str) -> None:
    """Move all that is in an element into a new one inside of it."""
    inner = element.makeelement(tag, **attributes)
    inner.text, element.text = element.text, None
    inner.extend(list(element))
    element.append(inner)


def _wrap_loose_text(container: Any) -> None:
    """Put text and inline elements that stand between blocks into paragraphs; two line breaks divide paragraphs."""
    children = list(container)
    text, container.text = container.text, None
    for child in children:
        container.remove(child)
    paragraph = _append_text(container, None, text)
    after_break = False
    for child in children:
        tail, child.tail = child.tail, None
        if child.tag == "br" and after_break:
            paragraph = None
        elif _is_inline(child):
            paragraph = lxml.html.etree.SubElement(container, "p") if paragraph is None else paragraph
            paragraph.append(child)
        elif isinstance(child.tag, str):
            paragraph = None
            container.append(child)
        after_break = child.tag == "br" and not (tail or "").strip()
        paragraph = _append_text(container, paragraph, tail)


def _append_text(container: Any, paragraph: Any, text: str | None) -> Any:
    """Add text to a paragraph at a container's end, which is made where there is none."""
    if not text or (paragraph is None and not text.strip()):
        return paragraph
    if paragraph is None:
        paragraph = lxml.html.etree.SubElement(container, "p")
    if len(paragraph):
        paragraph[-1].tail = (paragraph[-1].tail or "") + text
    else:
        paragraph.text = (paragraph.text or "") + text
    return paragraph


def _is_inline(element: Any) -> bool:
    return isinstance(element.tag, str) and all(_INLINE.fullmatch(each.tag) for each in element.iter("*"))
