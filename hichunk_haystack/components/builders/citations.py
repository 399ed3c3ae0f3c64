# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Citation lines: what they say, and that no document can forge one."""

import re
from collections.abc import Iterable, Sequence
from string import Formatter
from typing import Any

from haystack import Document

FIELDS = ("number", "place", "source", "headings", "page", "score")

_LONGEST_TITLE = 100  # characters of a title in a citation line
_BREAKS = "\\n\\r\\v\\f\\x1c-\\x1e\\x85\\u2028\\u2029"


class CitationTemplate:
    """
    Formats citation lines from a template in the style of `str.format`.

    `{number}` is the citation's number; `{source}` the short name of the source; `{headings}` the titles from the top
    down, joined by " > "; `{page}` the page on which the text starts, where it is known; `{score}` the score;
    `{place}` is source, page and headings together: "manual.pdf, page 3 > Firing". What is not known is empty.
    """

    def __init__(self, template: str) -> None:
        """
        Read the template.

        :param template: The template.
        :raises ValueError: If it holds a field that is not known, or is not well-formed.
        """
        self.template = template
        try:
            parts = list(Formatter().parse(template))
        except ValueError as error:
            msg = f"citation_template is '{template}', which is not well-formed: {error}."
            raise ValueError(msg) from error
        used = [name for _, name, _, _ in parts if name is not None]
        unknown = [name for name in used if name not in FIELDS]
        if unknown:
            msg = f"citation_template names '{unknown[0]}'; the fields are: {', '.join(FIELDS)}."
            raise ValueError(msg)
        try:
            self.bare(1)
        except (ValueError, TypeError) as error:
            msg = f"citation_template is '{template}', which can't be filled in: {error}."
            raise ValueError(msg) from error
        self.shows_headings = "headings" in used or "place" in used
        self._forged = _forgeries(parts)

    def line(self, number: int, document: Document, name: str, headings: Sequence[str]) -> str:
        """
        Write a citation line.

        :param number: The citation's number.
        :param document: The document.
        :param name: Short name of its source.
        :param headings: Titles from the top down.
        :returns: The line, without a newline at its end.
        """
        page = document.meta.get("page_number")
        page = "" if page is None else str(page)
        titles = " > ".join(filter(None, (_shorten(_flat(title)) for title in headings)))
        name = _flat(name)
        first = ", ".join(filter(None, (name, f"page {page}" if page else "")))
        score = "" if document.score is None else f"{document.score:.3f}"
        place = " > ".join(filter(None, (first, titles)))
        values = {"number": number, "place": place, "source": name, "headings": titles, "page": page, "score": score}
        return self.template.format(**values).rstrip()

    def bare(self, number: int) -> str:
        """
        Write a citation line that holds nothing but the number.

        :param number: The citation's number.
        :returns: The line.
        """
        return self.template.format(**{**dict.fromkeys(FIELDS, ""), "number": number}).rstrip()

    def guard(self, text: str) -> str:
        """
        Put a backslash in front of lines of a text that look like a citation line.

        :param text: A document's text.
        :returns: The text to show.
        """
        return text if self._forged is None else self._forged.sub(r"\1\\", text)


def source_of(document: Document) -> str:
    """
    Name the source of a document.

    :param document: Any document.
    :returns: Its file's path, else its URL, else its title, else its source's id, else its own id.
    """
    named = _named_source(document)
    return named if named is not None else str(document.meta.get("source_id") or document.id)


def headings_of(document: Document) -> list[str]:
    """
    Give the titles above a document.

    :param document: Any document; `headings` in its meta may be a list or a string.
    :returns: Titles from the top down.
    """
    headings = document.meta.get("headings") or []
    return [headings] if isinstance(headings, str) else [str(title) for title in headings]


def short_names(documents: Iterable[Document], path_parts: int | None) -> dict[str, str]:
    """
    Find short names of sources: the last parts of their paths, more of them where two sources would look the same.

    :param documents: All documents among which a name must be clear.
    :param path_parts: How many parts to show at least; `None` shows whole paths.
    :returns: Source, as `source_of` gives it -> name. It is empty for a source that has nothing but an id.
    """
    names: dict[str, str] = {}
    paths: dict[str, list[str]] = {}
    for document in documents:
        source = source_of(document)
        if document.meta.get("file_path") and path_parts is not None:
            paths[source] = [part for part in re.split(r"[\\/]", source) if part]
        else:
            names[source] = _named_source(document) or ""
    shown = path_parts or 1
    while paths:
        tails: dict[tuple[str, ...], list[str]] = {}
        for source, parts in paths.items():
            tails.setdefault(tuple(parts[-shown:]), []).append(source)
        for tail, sources in tails.items():
            if len(sources) == 1 or shown >= max(len(paths[source]) for source in sources):
                names.update((source, "/".join(tail) if len(sources) == 1 else source) for source in sources)
        paths = {source: parts for source, parts in paths.items() if source not in names}
        shown += 1
    return names


def _named_source(document: Document) -> str | None:
    meta = document.meta
    return next((str(meta[key]) for key in ("file_path", "url", "title") if meta.get(key)), None)


def _flat(text: str) -> str:
    """A line break in a name would end the citation line."""
    return " ".join(text.split())


def _shorten(title: str) -> str:
    return title if len(title) <= _LONGEST_TITLE else title[: _LONGEST_TITLE - 1].rstrip() + "…"


def _forgeries(parts: list[tuple[str, str | None, str | None, str | None]]) -> re.Pattern[str] | None:
    """What a line looks like that begins like a citation line; `None` if these have no mark that tells them apart."""
    if not parts or parts[0][1] != "number" or not parts[0][0].strip():
        return None
    before: Any = re.escape(parts[0][0].strip())
    after = re.escape(parts[1][0].strip()) if len(parts) > 1 else ""
    return re.compile(rf"((?:\A|[{_BREAKS}])[^\S{_BREAKS}]*)(?={before}\s*\d+\s*{after}(?:\s|\Z))")
