# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hichunk_haystack.evaluation.contenders.corpus import SEPARATOR, Corpus, Piece
from hichunk_haystack.evaluation.datasets import Dataset
from hichunk_haystack.evaluation.evidence import normalise
from tests.evaluation.corpora import COUNTER, corpus

TEXT = "Fire the kiln slowly, then let it cool.\n\nCentre the clay (all 2.5 kg) before you open the wheelhouse!\n"
WORDS = [match.span() for match in re.finditer(r"\S+", TEXT)]


@pytest.fixture(scope="module")
def kiln() -> Corpus:
    return corpus(Dataset("kiln", {"kiln": TEXT, "other": "Nothing at all about it."}))


ranges = st.tuples(st.integers(0, len(WORDS) - 1), st.integers(0, len(WORDS) - 1)).map(sorted)
pieces = ranges.map(lambda ends: Piece("kiln", WORDS[ends[0]][0], WORDS[ends[1]][1]))


@given(pieces)
def test_a_piece_has_the_tokens_of_its_text(kiln: Corpus, piece: Piece) -> None:
    assert kiln.count(piece) == COUNTER.count_texts([kiln.text(piece)])[0]


@given(pieces, st.integers(1, 40))
def test_a_beginning_fits_and_ends_with_a_word(kiln: Corpus, piece: Piece, budget: int) -> None:
    cut = kiln.beginning(piece, budget)
    if cut is None:
        first_word = re.match(r"\w+|\W", kiln.text(piece))
        assert first_word is not None
        assert COUNTER.count_texts([first_word.group()])[0] > budget
        return
    assert kiln.text(piece).startswith(kiln.text(cut))
    assert COUNTER.count_texts([kiln.text(cut)])[0] <= budget
    if cut != piece:
        assert not re.match(r"\w\w", TEXT[cut.end - 1 : cut.end + 1])


@given(st.lists(pieces, max_size=5), st.integers(1, 60))
def test_what_fills_a_budget_never_exceeds_it(kiln: Corpus, ranked: list[Piece], budget: int) -> None:
    taken = kiln.fill(ranked, budget)
    assert COUNTER.count_texts([SEPARATOR.join(map(kiln.text, taken))])[0] <= budget
    assert taken[:-1] == ranked[: max(0, len(taken) - 1)]


def test_the_piece_that_does_not_fit_is_cut_and_ends_it(kiln: Corpus) -> None:
    # "Fire the kiln slowly" has 5 tokens (ki, ##ln), "Centre the clay" 3.
    first, second = Piece("kiln", 0, 20), Piece("kiln", 41, 56)
    assert [kiln.count(first), kiln.count(second)] == [5, 3]
    assert kiln.fill([first, second, first], 8) == [first, second]
    assert kiln.fill([first, second, first], 7) == [first, Piece("kiln", 41, 51)]
    assert kiln.fill([], 7) == []


def test_pieces_are_arranged_as_they_are_read(kiln: Corpus) -> None:
    # The document of the best piece comes first; touching (but for white space) and overlapping pieces are one.
    found = kiln.arrange(
        [Piece("kiln", 41, 56), Piece("other", 0, 7), Piece("kiln", 22, 39), Piece("kiln", 0, 8), Piece("kiln", 5, 13)]
    )
    assert found == [Piece("kiln", 0, 13), Piece("kiln", 22, 56), Piece("other", 0, 7)]
    assert kiln.arrange([]) == []


@given(st.lists(pieces, max_size=4))
def test_a_context_is_normalised_piece_by_piece(kiln: Corpus, parts: list[Piece]) -> None:
    assert kiln.normalised(parts) == normalise(SEPARATOR.join(map(kiln.text, parts)))
