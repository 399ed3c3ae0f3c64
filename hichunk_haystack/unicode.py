# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Texts that compiled libraries accept."""

import re
from dataclasses import replace
from typing import Any

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def well_formed(text: str) -> str:
    """
    Give a text of the same length that has a UTF-8 form.

    Python strings may hold lone surrogates (from `errors="surrogateescape"`, from JSON), which have none, and which
    parsers and tokenizers written in other languages refuse.

    :param text: Any text.
    :returns: The text with each lone surrogate replaced by U+FFFD.
    """
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)


def with_well_formed_text(documents: Any) -> Any:
    """
    Give documents whose texts have a UTF-8 form.

    :param documents: A list of documents; they are not changed. Anything else comes back as it is.
    :returns: The same documents, but copies of those with a lone surrogate in their text.
    """
    if not isinstance(documents, list):
        return documents
    return [_with_well_formed_text(document) for document in documents]


def _with_well_formed_text(document: Any) -> Any:
    text = getattr(document, "content", None)
    plain = well_formed(text) if isinstance(text, str) else text
    return document if plain == text else replace(document, content=plain)
