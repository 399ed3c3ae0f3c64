# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from haystack import Document

from hichunk_haystack.evaluation.embedding_cache import CachedEmbedder
from tests.word_embedder import WordEmbedder

TEXTS = [f"text number {number}" for number in range(600)]


class Killed(BaseException):
    """What a kill looks like from inside."""


class Dying(WordEmbedder):
    """Embeds so many texts and dies."""

    def __init__(self, dimension: int = 32, lives: int = 0) -> None:
        super().__init__(dimension)
        self.lives = lives

    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        if self.seen + len(documents) > self.lives:
            raise Killed
        return super().run(documents)

    def to_dict(self) -> dict[str, Any]:
        return WordEmbedder(self.dimension).to_dict()


def expected(text: str, dimension: int = 32) -> np.ndarray:
    vector = np.array(WordEmbedder(dimension).embed(text), dtype=np.float32)
    return vector / np.linalg.norm(vector)


def test_vectors_are_those_of_their_texts_in_order(tmp_path: Path) -> None:
    texts = ["kiln", "a longer text of more words", "clay", "kiln"]
    for file in (None, tmp_path / "deep" / "cache.sqlite"):
        vectors = CachedEmbedder(WordEmbedder(), file).embed(texts)
        assert vectors == pytest.approx(np.stack([expected(text) for text in texts]), abs=1e-6)


def test_equal_texts_are_embedded_once(tmp_path: Path) -> None:
    embedder = WordEmbedder()
    cached = CachedEmbedder(embedder, tmp_path / "cache")
    cached.embed(["kiln", "clay", "kiln", "kiln"])
    assert (embedder.seen, cached.embedded) == (2, 2)
    cached.embed(["clay", "glaze"])
    assert embedder.seen == 3
    # Another process, later.
    later = WordEmbedder()
    CachedEmbedder(later, tmp_path / "cache").embed(["kiln", "clay", "glaze"])
    assert later.seen == 0


def test_a_killed_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        CachedEmbedder(Dying(lives=520), tmp_path / "cache").embed(TEXTS)
    embedder = WordEmbedder()
    # It compares by type and settings; the dying one tells the same of itself.
    vectors = CachedEmbedder(embedder, tmp_path / "cache").embed(TEXTS)
    assert embedder.seen == 600 - 512
    assert vectors[599] == pytest.approx(expected(TEXTS[599]), abs=1e-6)


def test_models_stay_apart(tmp_path: Path) -> None:
    small, large = WordEmbedder(8), WordEmbedder(16)
    assert CachedEmbedder(small, tmp_path / "cache").embed(["kiln"]).shape == (1, 8)
    assert CachedEmbedder(large, tmp_path / "cache").embed(["kiln"]).shape == (1, 16)
    assert CachedEmbedder(WordEmbedder(8), tmp_path / "cache").embed(["kiln"]).shape == (1, 8)


def test_odd_texts(tmp_path: Path) -> None:
    texts = ["", " ", "\ud800 lone", "nul\0", "ß" * 100_000]
    cached = CachedEmbedder(WordEmbedder(), tmp_path / "cache")
    vectors = cached.embed(texts)
    # No words, no direction: a vector of zeros, not of NaN.
    assert not vectors[:2].any()
    assert np.isfinite(vectors).all()
    assert (cached.embed(texts) == vectors).all()
    assert cached.embedded == 5
    assert CachedEmbedder(WordEmbedder()).embed([]).shape == (0, 0)
