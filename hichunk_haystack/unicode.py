# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Texts that compiled libraries accept."""

import re

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
