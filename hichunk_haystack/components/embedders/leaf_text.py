# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""The text of a leaf as it is embedded: what is said of it and its headings on lines in front of its content."""

import re
from collections.abc import Sequence

from haystack import Document

from hichunk_haystack.contexts import LEAF_CONTEXT

_SEPARATOR = " > "
_NOT_WORDS = re.compile(r"[\W_]+")


def text_to_embed(leaf: Document, max_heading_characters: int) -> str | None:
    """
    Put the heading path in front of a leaf's content.

    Titles that the leaf's own text starts with are left out: the first leaf of a section begins with its heading line,
    and said twice it would cost tokens of what the model reads and weigh twice in the vector.

    :param leaf: A leaf, or any document.
    :param max_heading_characters: Bound for the path, in characters. Titles in the middle go first, then those on top;
        a single title that is too long is cut.
    :returns: The text; the content itself where there are no headings.
    """
    titles = [" ".join(str(title).split()) for title in leaf.meta.get("headings") or ()]
    if leaf.content is None or not titles:
        return leaf.content
    path = _shorten(_not_in_front([title for title in titles if title], leaf.content), max_heading_characters)
    return f"{path}\n{leaf.content}" if path else leaf.content


def with_table_header(leaf: Document, text: str | None, max_header_characters: int) -> str | None:
    """
    Put the header of a table in front of the rows that a leaf starts with.

    :param leaf: A leaf; its meta has `table_header` where it starts behind the header of a table.
    :param text: Its text as it is embedded so far.
    :param max_header_characters: Bound for the header, in characters; a longer one is cut.
    :returns: The text; the same where the leaf has no such header.
    """
    header = leaf.meta.get("table_header")
    if not isinstance(header, str) or text is None:
        return text
    # Lines of dashes say nothing to a model.
    lines = [line.strip() for line in header.splitlines() if _words(line)]
    said = "\n".join(lines)[:max_header_characters].rstrip()
    return f"{said}\n{text}" if said else text


def with_context(leaf: Document, text: str | None) -> str | None:
    """
    Put the sentences on where a leaf stands in front of it.

    :param leaf: A leaf; its meta has `leaf_context` where a `ContextualLeafEnricher` has written one.
    :param text: Its text as it is embedded so far.
    :returns: The text; the same where the leaf has no such sentences.
    """
    context = leaf.meta.get(LEAF_CONTEXT)
    if not isinstance(context, str) or not context.strip() or text is None:
        return text
    return f"{' '.join(context.split())}\n{text}"


def _not_in_front(titles: list[str], content: str) -> list[str]:
    """Leave out the titles at the end of the path that are the first lines of the content."""
    wanted = [_words(title) for title in titles]
    lines: list[str] = []
    for line in content.splitlines():
        if len(lines) == len(titles):
            break
        if words := _words(line):  # blank lines and the underlines of setext headings have none
            lines.append(words)
    for first in range(len(titles)):
        if lines[: len(titles) - first] == wanted[first:]:
            return titles[:first]
    return titles


def _words(text: str) -> str:
    """The words alone: no number signs, emphasis or blanks, upper and lower case alike."""
    return _NOT_WORDS.sub(" ", text).strip().casefold()


def _shorten(titles: Sequence[str], limit: int) -> str:
    kept = list(titles)
    while len(kept) > 1 and len(_SEPARATOR.join(kept)) > limit:
        del kept[(len(kept) - 1) // 2]
    return _SEPARATOR.join(kept)[:limit].rstrip()
