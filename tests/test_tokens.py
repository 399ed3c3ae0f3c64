# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

import pytest
from haystack.dataclasses import ChatMessage
from haystack.token_counters import ApproximateTokenCounter
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer
from tokenizers.normalizers import BertNormalizer

from hichunk_haystack.models import ModelNotFoundError
from hichunk_haystack.tokens import HuggingFaceTokenCounter, count_texts, counter_key, is_additive, warm_up_counter
from hichunk_haystack.unicode import well_formed


def test_counts_words_without_special_tokens(counter: HuggingFaceTokenCounter) -> None:
    # a / leaf / is / small / .
    assert counter.count_texts(["A leaf is small.", "", "kiln"]) == [5, 0, 2]


def test_long_texts_are_not_truncated(counter: HuggingFaceTokenCounter) -> None:
    assert counter.count_texts(["clay " * 10_000]) == [10_000]


def test_more_texts_than_one_batch_come_back_in_order(counter: HuggingFaceTokenCounter) -> None:
    assert counter.count_texts(["clay " * (number % 7) for number in range(5000)]) == [n % 7 for n in range(5000)]


def test_lone_surrogates_are_counted(counter: HuggingFaceTokenCounter) -> None:
    assert counter.count_texts(["clay \ud800 clay"])[0] >= 2


def test_is_a_haystack_token_counter(counter: HuggingFaceTokenCounter) -> None:
    assert counter.count([ChatMessage.from_user("A leaf is small."), ChatMessage.from_system("clay")]) == 6


def test_round_trip() -> None:
    counter = HuggingFaceTokenCounter("some/model")
    expected = {"type": "hichunk_haystack.tokens.HuggingFaceTokenCounter", "init_parameters": {"model": "some/model"}}
    assert counter.to_dict() == expected
    assert HuggingFaceTokenCounter.from_dict(expected).to_dict() == expected


def test_nothing_is_loaded_before_it_is_needed() -> None:
    counter = HuggingFaceTokenCounter("no-such/model")  # no error here
    with pytest.raises(ModelNotFoundError, match=r"no-such/model.*hf download no-such/model"):
        counter.warm_up()


def test_a_folder_without_a_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"holds no tokenizer\.json"):
        HuggingFaceTokenCounter(str(tmp_path)).warm_up()


def test_additive_only_where_white_space_is_dropped(
    counter: HuggingFaceTokenCounter, tokenizer_files: dict[str, str]
) -> None:
    assert is_additive(counter)
    assert not is_additive(HuggingFaceTokenCounter(tokenizer_files["bpe"]))
    assert not is_additive(HuggingFaceTokenCounter(tokenizer_files["unigram"]))
    assert not is_additive(ApproximateTokenCounter())


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
        | st.sampled_from(["[SEP]", "un", "##x", "é", "字", "!", "\x00", "\u0301", "x" * 120]),
        max_size=12,
    ),
    st.sampled_from([" ", "\n", "\t", "\r\n", "。", "！"]),
)
def test_additive_counts_add_up_at_seams(parts: list[str], seam: str) -> None:
    counter = HuggingFaceTokenCounter()
    pieces = [part + seam for part in parts]
    assert sum(counter.count_texts(pieces)) == counter.count_texts(["".join(pieces)])[0]


@given(
    st.lists(
        st.text(st.characters(), max_size=8)
        | st.sampled_from(
            [
                "",
                "¶",
                "[SEP]",
                "[SE",
                "P]",
                " [MASK] ",
                "##x",
                "é",
                "\u0301",
                "字",
                "»",
                "¶§‖‡⟩»¿",
                "x" * 120,
                "clay " * 400,
                "[MA\x1cSK]",
                "clay\x0bclay\fclay\x85 clay\u2028clay\u00a0clay\u200bclay\u3000clay",
            ]
        ),
        max_size=40,
    )
)
def test_texts_count_together_what_the_tokenizer_gives_for_each(texts: list[str]) -> None:
    counter = HuggingFaceTokenCounter()
    for _ in range(2):  # the second time all words are known
        assert counter.count_texts(texts) == [
            len(counter.tokenizer.encode(well_formed(text), add_special_tokens=False)) for text in texts
        ]


def test_every_character_counts_as_in_the_tokenizer(counter: HuggingFaceTokenCounter) -> None:
    texts = [f"clay{chr(code)}clay" for code in range(0x30000) if not 0xD800 <= code < 0xE000]
    encodings = counter.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    assert counter.count_texts(texts) == list(map(len, encodings))


@pytest.mark.parametrize("taken", ["¶", "¶§‖‡⟩»", "¶§‖‡⟩»¿"])
def test_marks_that_stand_in_the_texts_count_as_tokens(counter: HuggingFaceTokenCounter, taken: str) -> None:
    texts = ["clay", taken, "", f"clay {taken} clay", "kiln"]
    assert counter.count_texts(texts) == [1, len(taken), 0, len(taken) + 2, 2]


def test_a_tokenizer_whose_added_token_holds_a_mark(counter: HuggingFaceTokenCounter, tmp_path: Path) -> None:
    counter.warm_up()
    assert counter._tokenizer is not None
    tokenizer = Tokenizer.from_str(counter._tokenizer.to_str())
    tokenizer.add_tokens([AddedToken("clay¶clay", normalized=False)])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    # With the mark between them the two would be the added token.
    assert HuggingFaceTokenCounter(str(tmp_path)).count_texts(["clay", "clay", "clay¶clay"]) == [1, 1, 1]


def test_other_haystack_counters_are_asked_text_by_text() -> None:
    # Four characters to a token, and what the "[user] " in front counts (7 characters: 1) is taken off.
    assert count_texts(ApproximateTokenCounter(), ["", "x" * 41, "x" * 81]) == [0, 11, 21]


def test_equal_counters_have_equal_keys() -> None:
    assert counter_key(HuggingFaceTokenCounter("a")) == counter_key(HuggingFaceTokenCounter("a"))
    assert counter_key(HuggingFaceTokenCounter("a")) != counter_key(HuggingFaceTokenCounter("b"))
    assert counter_key(ApproximateTokenCounter(2)) != counter_key(ApproximateTokenCounter(3))


def test_warming_up_a_counter_that_needs_none() -> None:
    warm_up_counter(ApproximateTokenCounter())


@pytest.fixture(scope="module")
def variants(tmp_path_factory: pytest.TempPathFactory) -> list[HuggingFaceTokenCounter]:
    """The packaged tokenizer with other normalisers, and with added tokens of all kinds."""
    base = HuggingFaceTokenCounter().tokenizer.to_str()
    kinds: list[tuple[dict[str, bool], list[AddedToken]]] = [
        ({}, []),
        ({"lowercase": False, "strip_accents": False}, []),
        ({"handle_chinese_chars": False}, []),
        ({"clean_text": False}, []),
        ({}, [AddedToken("a-b", normalized=True), AddedToken("##", normalized=False)]),
        ({}, [AddedToken("clay", single_word=True, normalized=False), AddedToken("KILN", normalized=True)]),
        ({}, [AddedToken("<x>", lstrip=True, rstrip=True, normalized=False)]),
        ({}, [AddedToken("É", normalized=True)]),
    ]
    found = []
    for number, (normaliser, added) in enumerate(kinds):
        tokenizer = Tokenizer.from_str(base)
        options = {"clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}
        tokenizer.normalizer = BertNormalizer(**{**options, **normaliser})
        tokenizer.add_tokens(added)
        path = tmp_path_factory.mktemp("tokenizer") / f"{number}.json"
        tokenizer.save(str(path))
        found.append(HuggingFaceTokenCounter(str(path)))
    return found


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.lists(
            st.sampled_from(["clay", "kiln", "KILN", "MASK", "y" * 101, *"ab-_[]#<x>Ée \n字\x1c\x00\x7f\u0301'/9~"]),
            max_size=12,
        ).map("".join),
        max_size=8,
    )
)
def test_words_count_as_in_the_tokenizer_whatever_it_normalises_and_adds(
    variants: list[HuggingFaceTokenCounter], texts: list[str]
) -> None:
    for counter in variants:
        encodings = counter.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        assert counter.count_texts(texts) == list(map(len, encodings))
