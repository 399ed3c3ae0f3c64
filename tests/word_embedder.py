# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""An embedder that is real, small and needs no model."""

import hashlib
from dataclasses import replace
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict


@component
class WordEmbedder:
    """A real, small embedder: a text is the sum of its words' directions, which follow from their spelling."""

    def __init__(self, dimension: int = 32) -> None:
        self.dimension = dimension
        self.seen = 0

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        self.seen += len(documents)
        return {"documents": [replace(each, embedding=self.embed(each.content or "")) for each in documents]}

    def embed(self, text: str) -> list[float]:
        total = [0.0] * self.dimension
        for word in text.lower().split():
            digest = hashlib.sha256(word.encode("utf-8", "replace")).digest()
            total = [a + b - 127.5 for a, b in zip(total, digest[: self.dimension], strict=True)]
        return total

    def to_dict(self) -> dict[str, Any]:
        return default_to_dict(self, dimension=self.dimension)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "WordEmbedder":
        return default_from_dict(cls, data)
