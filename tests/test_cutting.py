# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hichunk_haystack.cutting import cut_to_fit
from hichunk_haystack.tokens import HuggingFaceTokenCounter


def words_up_to(most: int) -> Callable[[str], bool]:
    return lambda text: len(text.split()) <= most


@pytest.mark.parametrize(
    ("most", "kept"),
    [
        # Sentences of 3, 8 and 3 words.
        (14, "Fire it slowly. Then let it cool for a whole day. Glaze it last.\n"),
        (13, "Fire it slowly. Then let it cool for a whole day."),
        (11, "Fire it slowly. Then let it cool for a whole day."),
        (10, "Fire it slowly."),
        (3, "Fire it slowly."),
        # Not even the first sentence: words.
        (2, "Fire it"),
        (1, "Fire"),
        (0, ""),
    ],
)
def test_a_text_is_cut_at_a_sentence_else_at_a_word(most: int, kept: str) -> None:
    text = "Fire it slowly. Then let it cool for a whole day. Glaze it last.\n"
    assert text[: cut_to_fit(text, words_up_to(most))] == kept


def test_without_white_space_it_is_cut_at_a_character() -> None:
    assert cut_to_fit("x" * 1000, lambda text: len(text) <= 333) == 333
    # 👨‍👩‍👧 is five code points, "e" and its accent two.
    family = "👨‍👩‍👧"
    text = "ab" + family + "e\u0301" * 3
    assert text[: cut_to_fit(text, lambda text: len(text) <= 6)] == "ab"
    assert text[: cut_to_fit(text, lambda text: len(text) <= 8)] == "ab" + family
    # A character that is more than what fits is cut through: something is better than nothing.
    assert cut_to_fit(family * 2, lambda text: len(text) <= 3) == 3


def test_a_chinese_sentence_ends_without_a_blank() -> None:
    text = "先把黏土放在转盘的中心。然后用湿手慢慢拉起泥壁，不要着急。"
    assert text[: cut_to_fit(text, lambda text: len(text) <= 20)] == "先把黏土放在转盘的中心。"


def test_white_space_is_not_what_is_looked_for() -> None:
    assert cut_to_fit(" \n\t ", lambda _: True) == 0
    assert cut_to_fit("", lambda _: True) == 0
    # The first words stand behind more white space than is looked at first.
    text = " " * 200 + "Fire it slowly."
    assert text[: cut_to_fit(text, words_up_to(2))] == " " * 200 + "Fire it"


def test_a_better_place_can_be_refused_where_it_would_lose_too_much() -> None:
    text = "Yes. This sentence is much longer than the first one and does not fit as a whole."
    assert text[: cut_to_fit(text, words_up_to(8))] == "Yes."
    assert text[: cut_to_fit(text, words_up_to(8), keep=0.5)] == "Yes. This sentence is much longer than the"


def test_a_long_rest_is_not_looked_at() -> None:
    asked: list[int] = []

    def fits(text: str) -> bool:
        asked.append(len(text))
        return len(text) <= 500

    cut_to_fit("word " * 1_000_000, fits)
    assert max(asked) <= 1024
    assert len(asked) < 40


@settings(max_examples=100)
@given(st.text(alphabet="ab. \n😀é字。", max_size=80), st.integers(1, 30))
def test_what_is_cut_fits_by_the_token_counter(any_text: str, most: int) -> None:
    counter = HuggingFaceTokenCounter()
    end = cut_to_fit(any_text, lambda text: counter.count_texts([text])[0] <= most)
    kept = any_text[:end]
    assert counter.count_texts([kept])[0] <= most
    assert kept == any_text or kept == kept.rstrip()
    # A token is at least a character here, so that something fits wherever there is something.
    assert bool(kept) == bool(any_text.strip())


def test_each_kind_of_tokenizer_gets_a_cut_that_fits(any_counter: HuggingFaceTokenCounter) -> None:
    text = "The kiln is fired slowly, then it cools for a day. Glaze is mixed with water and sieved twice. " * 5
    whole = any_counter.count_texts([text])[0]
    for most in range(1, whole, whole // 12):
        end = cut_to_fit(text, lambda part, most=most: any_counter.count_texts([part])[0] <= most)
        assert any_counter.count_texts([text[:end]])[0] <= most
        assert text[:end].endswith(("day.", "twice.")) or end < 60
