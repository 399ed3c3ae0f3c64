# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hichunk_haystack.contexts import (
    CONTEXT_TEMPLATE,
    Window,
    check_template,
    clean_context,
    fill,
    section_windows,
    show_section,
)
from hichunk_haystack.plans import Ancestor, Hit


def leaf(number: int, tokens: int = 10, *above: tuple[str, int]) -> Hit:
    chain = tuple(Ancestor(node_id, length, 2) for node_id, length in above)
    return Hit(str(number), tokens, ancestors=chain, start=10 * number, end=10 * number + 10)


def short(text: str) -> bool:
    return len(text.split()) <= 6


# -- windows


def test_the_largest_node_that_fits_is_shown() -> None:
    above = ("a", 20), ("A", 40), ("root", 100)
    leaves = [leaf(0, 10, *above), leaf(1, 10, *above), leaf(2, 10, ("b", 20), ("A", 40), ("root", 100))]
    assert section_windows(leaves, 100) == [Window(0, 0, 3, 3)]
    assert section_windows(leaves, 40) == [Window(0, 0, 3, 3)]
    assert section_windows(leaves, 39) == [Window(0, 0, 2, 2), Window(2, 2, 3, 3)]


def test_of_a_parent_that_is_too_large_cut_outs_are_shown_with_neighbours() -> None:
    leaves = [leaf(number, 10, ("root", 100)) for number in range(10)]
    # Three quarters of 40 are three leaves; one more fits, and the one before is taken first where there is one.
    assert section_windows(leaves, 40) == [
        Window(0, 0, 3, 4),
        Window(2, 3, 6, 6),
        Window(5, 6, 9, 9),
        Window(6, 9, 10, 10),
    ]


def test_a_short_leaf_between_large_sections_sees_its_neighbours() -> None:
    leaves = [
        leaf(0, 10, ("A", 30), ("root", 500)), leaf(1, 20, ("A", 30), ("root", 500)),
        leaf(2, 5, ("root", 500)),
        leaf(3, 30, ("B", 60), ("root", 500)), leaf(4, 30, ("B", 60), ("root", 500)),
    ]  # fmt: skip
    assert section_windows(leaves, 60) == [Window(0, 0, 2, 2), Window(1, 2, 3, 4), Window(3, 3, 5, 5)]


def test_no_leaves_no_windows_and_one_that_is_too_long_is_shown_alone() -> None:
    assert section_windows([], 10) == []
    assert section_windows([leaf(0, 50, ("root", 90)), leaf(1, 40, ("root", 90))], 10) == [
        Window(0, 0, 1, 1),
        Window(1, 1, 2, 2),
    ]


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 3)), max_size=40), st.integers(1, 100))
def test_each_leaf_is_asked_about_once_within_the_bound(parts: list[tuple[int, int]], limit: int) -> None:
    lengths: dict[int, int] = {}
    parts = sorted(parts, key=lambda part: part[1])
    for tokens, parent in parts:
        lengths[parent] = lengths.get(parent, 0) + tokens
    total = sum(tokens for tokens, _ in parts)
    leaves = [
        leaf(number, tokens, (f"parent {parent}", lengths[parent]), ("root", total))
        for number, (tokens, parent) in enumerate(parts)
    ]
    windows = section_windows(leaves, limit)
    assert [number for window in windows for number in range(window.low, window.high)] == list(range(len(leaves)))
    for window in windows:
        assert 0 <= window.first <= window.low < window.high <= window.last <= len(leaves)
        shown = sum(one.tokens for one in leaves[window.first : window.last])
        assert shown <= limit or window.last - window.first == 1


# -- prompts


def test_a_section_is_shown_as_numbered_passages_and_an_overlap_once() -> None:
    leaves = [Hit("a", 3, start=0, end=10), Hit("b", 3, start=6, end=14), Hit("c", 3, start=14, end=18)]
    assert show_section(["0123456789", "6789abcd", "\nefg"], leaves) == "[1]\n0123456789\n\n[2]\nabcd\n\n[3]\nefg"
    assert show_section([], []) == ""


def test_braces_in_a_text_stay() -> None:
    values = {"document": "{section}", "section": "{passage} {0}", "number": "1", "headings": "", "passage": "{x}"}
    assert fill("{document}|{section}|{passage}|{other}", values) == "{section}|{passage} {0}|{x}|{other}"


@pytest.mark.parametrize("template", ["{passage}", "{section}", "{section}{section}{passage}", "nothing"])
def test_a_template_must_show_the_section_and_the_passage(template: str) -> None:
    with pytest.raises(ValueError, match=r"must hold \{section\} once"):
        check_template(template)


@pytest.mark.parametrize("template", ["{passage}{section}{passage}", "{number}{section}{passage}"])
def test_what_differs_from_leaf_to_leaf_comes_behind(template: str) -> None:
    with pytest.raises(ValueError, match=r"in front of \{section\}"):
        check_template(template)


def test_the_ready_template_passes() -> None:
    check_template(CONTEXT_TEMPLATE)


# -- answers


@pytest.mark.parametrize(
    ("answer", "context"),
    [
        ("It is on kilns.", "It is on kilns."),
        ("  It is\n on\tkilns. ", "It is on kilns."),
        ("<think>Kilns, so ...\n</think>\nIt is on kilns.", "It is on kilns."),
        ("<think>Kilns, so ...", ""),
        ("```text\nIt is on kilns.\n```", "It is on kilns."),
        ("Context: It is on kilns.", "It is on kilns."),
        ("**Context:** It is on kilns.", "** It is on kilns."),
        ('"It is on kilns."', "It is on kilns."),
        ("„Es geht um Öfen.“", "Es geht um Öfen."),
        ('"Kiln" and "wheel"', '"Kiln" and "wheel"'),
        ("It is on kilns. It also covers glazes, and much more.", "It is on kilns."),
        ("one two three four five six seven", "one two three four five six"),
        ("", ""),
        (" \n ", ""),
        ("...", ""),
        ("窯の話。", "窯の話。"),
    ],
)
def test_the_sentences_are_taken_out_of_an_answer(answer: str, context: str) -> None:
    assert clean_context(answer, short) == context


@given(st.text(max_size=200))
def test_whatever_is_answered_one_short_line_comes_out(answer: str) -> None:
    context = clean_context(answer, short)
    assert context == " ".join(context.split())
    assert short(context)
