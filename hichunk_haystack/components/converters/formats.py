# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""The file types that are converted without being asked for, each by a converter of Haystack's."""

import codecs
import mimetypes
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hichunk_haystack.components.converters.conversion import ConversionError

_BYTE_ORDER_MARKS = (
    # UTF-32 first: its little-endian mark begins with that of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)

# Types that Python's own table lacks; what a system adds to that table differs from one machine to the next.
_TYPES = {
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".mdown": "text/markdown",
    ".mkd": "text/markdown",
    ".txt": "text/plain",
    ".text": "text/plain",
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "text/html",
    ".pdf": "application/pdf",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".epub": "application/epub+zip",
    ".msg": "application/vnd.ms-outlook",
    ".rst": "text/x-rst",
}

_TABLE_HEAD = re.compile(r"((?:\A|\n\n)\|[^\n]*\|\n\|)((?: -* \|)+)(?=\n|\Z)")


@dataclass(frozen=True)
class Format:
    """
    How files of a type are converted.

    :param make: Creates the converter; an `ImportError` says that a library is missing.
    :param prepare: Makes of a file's bytes what the converter reads, and meta that it needs.
    :param finish: Makes of the text converted what is kept.
    """

    make: Callable[[], Any]
    prepare: Callable[[bytes, str | None], tuple[bytes, dict[str, Any]]]
    finish: Callable[[str], str] = str


def mime_type(path: str) -> str | None:
    """
    Tell a file's type from its name.

    :param path: The name; upper and lower case are the same.
    :returns: The MIME type, `None` if it is unknown.
    """
    suffix = os.path.splitext(path)[1].lower()
    return _TYPES.get(suffix) or mimetypes.guess_type("file" + suffix)[0]


def find_encoding(data: bytes, fallback: str | None = None) -> str:
    """
    Find the encoding of a text: by its byte order mark, or UTF-8, or what the caller says it is otherwise.

    Nothing is guessed, since a wrong guess would put wrong characters into the index without a word.

    :param data: The file's bytes.
    :param fallback: Encoding of texts that are not UTF-8 and have no byte order mark.
    :returns: Name of a codec that reads the data and takes off the mark.
    :raises ConversionError: If the data is no text, or is in another encoding.
    """
    marked = next((name for mark, name in _BYTE_ORDER_MARKS if data.startswith(mark)), None)
    try:
        text = data.decode(marked or "utf-8")
    except UnicodeDecodeError as error:
        if marked is None and fallback is not None and b"\0" not in data:
            return _checked(data, fallback)
        what = _describe(data, error, marked)
        raise ConversionError(what) from error
    if "\0" in text:
        raise ConversionError(_binary())
    return marked or "utf-8"


def _checked(data: bytes, fallback: str) -> str:
    try:
        data.decode(fallback)
    except UnicodeDecodeError as error:
        place = f"byte 0x{data[error.start]:02x} at {error.start}"
        msg = f"It is neither UTF-8 nor {fallback} text ({place}); save it as UTF-8."
        raise ConversionError(msg) from error
    return fallback


def _describe(data: bytes, error: UnicodeDecodeError, marked: str | None) -> str:
    if marked is not None:
        return f"It begins like {marked} text but is not (at byte {error.start}); save it as UTF-8."
    if b"\0" in data:
        return _binary()
    return (
        f"It is not UTF-8 text (byte 0x{data[error.start]:02x} at {error.start}); save it as UTF-8, or set "
        "fallback_encoding of the FileConverter, in the pipeline's YAML ('cp1252' is usual in Western Europe)."
    )


def _binary() -> str:
    return "It is binary, not text (it holds NUL characters); give the file the name of its type, or leave it out."


def _as_text(data: bytes, fallback: str | None) -> tuple[bytes, dict[str, Any]]:
    encoding = find_encoding(data, fallback)
    # Haystack's converter reads UTF-8 with or without a mark; any other encoding goes through the meta.
    return data, {} if encoding.startswith("utf-8") else {"encoding": encoding}


def _text() -> Any:
    from haystack.components.converters import TextFileToDocument

    return TextFileToDocument(store_full_path=True)


def _html() -> Any:
    from haystack.components.converters import HTMLToDocument
    from trafilatura.settings import use_config

    settings = use_config()
    # Below this length the library falls back to paragraphs without headings and lists.
    settings.set("DEFAULT", "MIN_EXTRACTED_SIZE", "0")
    options = {"output_format": "markdown", "include_comments": False, "favor_recall": True, "config": settings}
    return HTMLToDocument(extraction_kwargs=options, store_full_path=True, encoding="utf-8")


def _prepared_html(data: bytes, fallback: str | None) -> tuple[bytes, dict[str, Any]]:  # noqa: ARG001
    from hichunk_haystack.components.converters.html_content import with_one_article

    return with_one_article(data), {}


def _finished_html(text: str) -> str:
    from hichunk_haystack.components.converters.html_content import mend_fences

    return mend_fences(text)


def _pdf() -> Any:
    from haystack.components.converters import PyPDFToDocument

    return PyPDFToDocument(store_full_path=True)


def _as_it_is(data: bytes, fallback: str | None) -> tuple[bytes, dict[str, Any]]:  # noqa: ARG001
    return data, {}


def _docx() -> Any:
    from haystack.components.converters import DOCXToDocument

    return DOCXToDocument(table_format="markdown", link_format="none", store_full_path=True)


def _prepared_docx(data: bytes, fallback: str | None) -> tuple[bytes, dict[str, Any]]:  # noqa: ARG001
    from hichunk_haystack.components.converters.docx_marks import with_markdown_marks

    return with_markdown_marks(data), {}


def _short_table_rules(text: str) -> str:
    """Shorten the rule under a table's header, which is as wide as the table; each dash may count as a token."""
    return _TABLE_HEAD.sub(lambda match: match.group(1) + " --- |" * match.group(2).count("|"), text)


BUILT_IN = {
    "text/markdown": Format(_text, _as_text),
    "text/plain": Format(_text, _as_text),
    "text/html": Format(_html, _prepared_html, _finished_html),
    "application/pdf": Format(_pdf, _as_it_is),
    _TYPES[".docx"]: Format(_docx, _prepared_docx, _short_table_rules),
}
"""MIME type -> how it is converted."""
