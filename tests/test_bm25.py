# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hichunk_haystack.bm25 import document_vector, query_vector, word_index, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The kiln, the KILN!", ["the", "kiln", "the", "kiln"]),
        ("Straße naïve ﬁre", ["strasse", "naïve", "fire"]),
        # Composed or not.
        ("e\u0301", ["é"]),
        # Names of code, whole and in parts.
        ("max_retries", ["max_retries", "max", "retries"]),
        ("QdrantClient", ["qdrantclient", "qdrant", "client"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("E1047", ["e1047", "1047"]),
        ("_x_ __", ["x"]),
        ("24/7 don't", ["24", "7", "don", "t"]),
        # No spaces between words: pairs.
        ("窯を焼く。東京 v2", ["窯を", "を焼", "焼く", "東京", "v2"]),
        ("窯", ["窯"]),
        ("한국어 테스트", ["한국어", "테스트"]),
        ("--- *** 😀", []),
        ("", []),
        ("a\ud83db", ["a", "b"]),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_an_index_is_the_same_in_another_process() -> None:
    code = "from hichunk_haystack.bm25 import word_index; print(word_index('kiln'))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert int(other.stdout) == word_index("kiln")
    # Written in the stores of users: it must never change.
    assert word_index("kiln") == int.from_bytes(bytes.fromhex("7591eeab"), "big")


def test_weights_are_those_of_okapi_bm25() -> None:
    # Four words, the average is eight: k1 (1 - b + b 4/8) = 1.2 (0.25 + 0.375) = 0.75.
    indices, values = document_vector("kiln kiln kiln glaze", k1=1.2, b=0.75, average_words=8)
    weights = dict(zip(indices, values, strict=True))
    assert weights[word_index("kiln")] == pytest.approx(3 * 2.2 / 3.75)
    assert weights[word_index("glaze")] == pytest.approx(1 * 2.2 / 1.75)
    assert query_vector("glaze, kiln glaze") == (sorted([word_index("kiln"), word_index("glaze")]), [1.0, 1.0])


def test_without_saturation_and_length_each_word_counts_once() -> None:
    assert document_vector("a a b", k1=0, b=0, average_words=1)[1] == [1.0, 1.0]


@given(st.text(max_size=100), st.floats(0, 3), st.floats(0, 1))
def test_vectors_are_what_a_store_takes(text: str, k1: float, b: float) -> None:
    indices, values = document_vector(text, k1, b, 10)
    assert indices == sorted(set(indices))
    assert all(0 <= index < 2**32 for index in indices)
    assert all(math.isfinite(value) and 0 < value <= k1 + 1 for value in values)
    assert query_vector(text)[0] == indices
