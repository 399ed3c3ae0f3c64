# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""A page, its pieces and their lengths, for the tests of the `ContextBuilder`."""

from haystack import Document
from haystack.token_counters.types import TokenCounter

from hichunk_haystack.tokens import HuggingFaceTokenCounter, count_texts

MINILM = HuggingFaceTokenCounter()


SOURCE = """# Kiln

Fire it slowly.

## Glaze firing

Cone 6 takes nine hours up. It takes eighteen hours down.

## Cooling

Wait for a day. Then open the lid by two fingers.
"""


def count(text: str, counter: TokenCounter = MINILM) -> int:
    return count_texts(counter, [text])[0]


def piece(text: str, **meta: object) -> Document:
    """A node of SOURCE, found by its text."""
    start = SOURCE.index(text)
    place = {"split_idx_start": start, "split_idx_end": start + len(text)}
    return Document(content=text, meta={"file_path": "/srv/docs/kiln.md", "source_id": "s", **place, **meta})
