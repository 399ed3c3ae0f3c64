# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from hichunk_haystack import word_counts
from hichunk_haystack.word_counts import MarkSplitting, WordCounts


class Recorder:
    """Counts letters, and keeps what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, words: Sequence[str]) -> list[int]:
        self.asked += words
        return list(map(len, words))


def test_a_word_is_counted_once() -> None:
    count = Recorder()
    words = WordCounts(count)
    assert words.count(["the kiln the", "", " \n", "kiln"]) == [10, 0, 0, 4]
    assert words.count(["kiln wheel"]) == [9]
    assert sorted(count.asked) == ["kiln", "the", "wheel"]


def test_no_texts() -> None:
    assert WordCounts(Recorder()).count([]) == []


def test_long_words_are_counted_but_not_kept() -> None:
    count = Recorder()
    words = WordCounts(count)
    long = "x" * 65
    assert words.count([f"a {long} a", long, "a"]) == [67, 65, 1]
    assert words.count([f"{long} a"]) == [66]
    assert sorted(count.asked) == ["a", long, long]


def test_many_words_start_the_table_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_counts, "_MOST_WORDS", 3)
    count = Recorder()
    words = WordCounts(count)
    assert words.count(["a bb ccc dddd"]) == [10]
    assert words.count(["a bb"]) == [3]
    assert sorted(count.asked) == ["a", "a", "bb", "bb", "ccc", "dddd"]


def test_batches_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["one two", "three", "", "two two", "four"]
    whole = WordCounts(Recorder()).count(texts)
    monkeypatch.setattr(word_counts, "_BATCH_CHARACTERS", 1)
    assert WordCounts(Recorder()).count(texts) == whole == [6, 5, 0, 6, 4]


def test_threads_that_empty_the_table_of_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_counts, "_MOST_WORDS", 5)
    words = WordCounts(Recorder())
    texts = [" ".join("x" * (1 + (start + step) % 90) for step in range(40)) for start in range(200)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda text: words.count([text])[0], texts))
    assert found == [len(text.replace(" ", "")) for text in texts]


def test_what_the_normaliser_removes_divides_no_word_and_is_left_to_it() -> None:
    count = Recorder()
    assert WordCounts(count).count(["a\x0bb\x85 c", "\x1c"]) == [5, 1]
    assert sorted(count.asked) == ["\x1c", "a\x0bb\x85", "c"]


def test_marks_are_tokens_and_what_is_between_them_is_counted_once() -> None:
    count = Recorder()
    words = MarkSplitting(count, added=["[SEP]"])
    assert words.count(["(kiln),", "kiln/wheel", "--", "[kiln]"]) == [7, 10, 2, 6]
    assert sorted(count.asked) == ["kiln", "wheel"]


def test_words_with_an_added_token_or_other_characters_are_counted_whole() -> None:
    count = Recorder()
    assert MarkSplitting(count, added=["[SEP]", "a-b"]).count(["x[sep]", "A-B", "é-x", "x-\x01"]) == [6, 3, 3, 3]
    assert sorted(count.asked) == ["A-B", "x-\x01", "x[sep]", "é-x"]


@pytest.mark.parametrize("added", [["É"], ["a\0b"], [f"[{number}]" for number in range(5000)]])
def test_with_added_tokens_that_can_not_be_looked_for_words_are_counted_whole(added: list[str]) -> None:
    count = Recorder()
    assert MarkSplitting(count, added).count(["(kiln),", "a-b"]) == [7, 3]
    assert sorted(count.asked) == ["(kiln),", "a-b"]
