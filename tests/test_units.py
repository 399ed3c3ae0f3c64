# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hichunk_haystack.units import Strength, character_edge, paragraph_boundaries, sentence_starts, word_starts


def cut(text: str, starts: list[int]) -> list[str]:
    return [text[a:b] for a, b in pairwise([0, *starts, len(text)])]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two.", ["One. ", "Two."]),
        ("Dr. Fox paid 3.5 dollars. Then he left.", ["Dr. Fox paid 3.5 dollars. ", "Then he left."]),
        ("See https://a.example/b.c?d=e now. Done.", ["See https://a.example/b.c?d=e now. ", "Done."]),
        ("你好。再见！好吗？", ["你好。", "再见！", "好吗？"]),
        ("**Bold.** Next one.", ["**Bold.** ", "Next one."]),
        ("Para one.\n\n\nPara two.", ["Para one.\n\n\n", "Para two."]),
        ("No end", ["No end"]),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert cut(text, sentence_starts(text)) == sentences


@given(st.text())
def test_starts_are_ascending_and_on_characters(text: str) -> None:
    for starts in (sentence_starts(text), word_starts(text)):
        assert starts == sorted(set(starts))
        assert all(0 < start < len(text) and not text[start].isspace() for start in starts)
        if starts:
            assert text[: starts[0]].strip()


def test_words() -> None:
    assert cut("  one\ttwo\n three ", word_starts("  one\ttwo\n three ")) == ["  one\t", "two\n ", "three "]


@pytest.mark.parametrize(
    ("text", "near", "edge"),
    [
        ("abcdef", 3, 3),
        ("ab", 0, 1),
        ("ab", 5, 1),
        ("ae\u0301b", 2, 1),  # e and its accent stay together; 1 and 3 are as near, the first wins
        ("a\r\nb", 2, 1),
        ("👩‍👩‍👧b", 3, 5),
        ("e" + "\u0301" * 500, 250, 250),  # one endless character: through it
    ],
)
def test_edges_of_characters(text: str, near: int, edge: int) -> None:
    assert character_edge(text, near) == edge


def test_paragraphs() -> None:
    text = "one\nstill one\n\n \ntwo\n\n"
    assert paragraph_boundaries(text) == {text.index("two"): Strength.BLOCK}
