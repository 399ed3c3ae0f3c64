# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import random
from itertools import pairwise

import pytest
from haystack.token_counters import ApproximateTokenCounter
from hypothesis import given
from hypothesis import strategies as st

from hichunk_haystack.hichunk.lines import Lines, make_lines
from hichunk_haystack.hichunk.prompts import JSON_TEMPLATE, LINES_TEMPLATE, check_template, write_answer
from hichunk_haystack.hichunk.windows import (
    OnFailure,
    Plan,
    Question,
    Reply,
)
from hichunk_haystack.tokens import HuggingFaceTokenCounter, count_texts
from tests.hichunk.windows_of_words import Words, ask, document, gold, own, plan
from tests.test_tree import prose


def test_the_last_level_one_segment_is_thrown_back_and_one_that_goes_on_gets_residual_lines() -> None:
    lines = document(20, {0: 1, 5: 1, 7: 1, 9: 2, 16: 1})
    cuts, questions, report = ask(lines, plan(), gold(lines))
    assert [question.shown for question in questions] == [
        # Three level-one cut points (0, 5, 7): the next window starts at 7.
        (0, 1, 2, 3, 4, 5, 6, 7),
        # One (7): the next starts behind line 14, after residual lines of segment 7 to 14. Its level-two segments are
        # 7-8 and 9-14; all of it is 64 tokens, not less than half the window (32), nor is 5 lines of each (7, 40);
        # the last step leaves line 7, 8 tokens.
        (7, 8, 9, 10, 11, 12, 13, 14),
        (7, 15, 16, 17, 18, 19),
    ]
    assert [question.residual for question in questions] == [0, 0, 1]
    assert cuts == {0: (1, True), 5: (1, True), 7: (1, True), 9: (2, True), 16: (1, True)}
    assert (report.windows, report.calls, report.retries, report.fallbacks, report.lines) == (3, 3, 0, 0, 20)
    # 8 + 8 + 6 lines of 8 tokens; 3 + 2 + 2 rows of 4 words ("0, Level One, True").
    assert (report.prompt_tokens, report.answer_tokens, report.cut_points) == (176, 28, 5)


def test_residual_lines_are_the_first_two_and_last_three_subsections_with_twenty_lines_each() -> None:
    headings = {0: 1, 3: 2, 30: 2, 35: 2, 38: 2, 60: 2, 76: 2}
    # Room for 200 lines of which 126 are residual at most (half is 100); the document's first window ends at 199.
    lines = document(260, headings)
    _, questions, _ = ask(lines, plan(200), gold(lines))
    assert own(questions) == [(0, 200), (200, 260)]
    # Segments 0-2, 3-29, 30-34, 35-37, 38-59, 60-75, 76-199.
    expected = [*range(3), *range(3, 23), *range(38, 58), *range(60, 76), *range(76, 96)]
    assert list(questions[1].shown[: questions[1].residual]) == expected
    assert len(expected) == 79  # less than 100


def test_residual_lines_are_reduced_until_they_take_less_than_half() -> None:
    headings = {0: 1, 3: 2, 30: 2, 35: 2, 38: 2, 60: 2, 76: 2}
    lines = document(120, headings)
    _, questions, _ = ask(lines, plan(80), gold(lines))
    # The first window ends at 79. 3 + 20 + 20 + 16 + 4 = 63 lines are not less than 40. The next step has the first
    # segment and the last two with 15 lines each: 3 + 15 + 4 = 22.
    assert list(questions[1].shown[: questions[1].residual]) == [0, 1, 2, *range(60, 75), *range(76, 80)]
    assert own(questions) == [(0, 80), (80, 120)]


def test_residual_lines_of_just_half_are_too_many() -> None:
    # Segments 0-2, 3-6 and 7. The first and the last are 4 lines, 32 of 64 tokens.
    lines = document(12, {0: 1, 3: 2, 7: 2})
    _, questions, _ = ask(lines, plan(), gold(lines))
    assert [question.shown[: question.residual] for question in questions] == [(), (0,)]


def test_what_is_thrown_back_is_decided_by_the_window_that_sees_it_whole() -> None:
    replies = iter(["0, Level One, True\n5, Level One, True\n6, Level Two, True", "2, Level Two, False"])
    cuts, questions, _ = ask(document(12, {}), plan(), lambda _: next(replies))
    # Line 5 starts the second window, which finds nothing there, nor at line 6.
    assert own(questions) == [(0, 8), (5, 12)]
    assert cuts == {0: (1, True), 7: (2, False)}


def test_residual_lines_come_from_the_current_level_one_segment_only() -> None:
    lines = document(60, {0: 1, 2: 2, 20: 1, 22: 2})
    _, questions, _ = ask(lines, plan(20), gold(lines))
    # The first window (0-19) holds one level-one cut point and the next starts behind it with residual lines of 0-19:
    # 2 + 18 lines are not less than 10, 2 + 10 neither, 2 + 5 are. That window (13 own lines) holds one level-one cut
    # point of its own (20), so that it is not thrown back. Segment 20-32 goes on: 2 + 5 lines.
    assert [question.shown[: question.residual] for question in questions] == [
        (),
        (0, 1, 2, 3, 4, 5, 6),
        (20, 21, 22, 23, 24, 25, 26),
        (20, 21, 22, 23, 24, 25, 26),
        (20, 21, 22, 23, 24, 25, 26),
    ]
    assert own(questions) == [(0, 20), (20, 33), (33, 46), (46, 59), (59, 60)]


def test_numbers_of_residual_lines_are_not_mapped_back() -> None:
    lines = document(12, {})

    def reply(question: Question) -> str:
        # At the second window number 0 is the residual line 0 and number 1 is line 8.
        return "0, Level One, True" if question.residual == 0 else "0, Level Three, True\n1, Level Two, False"

    cuts, questions, report = ask(lines, plan(), reply)
    assert [question.shown for question in questions] == [tuple(range(8)), (0, 8, 9, 10, 11)]
    assert cuts == {0: (1, True), 8: (2, False)}
    assert report.dropped == {}


def test_a_window_in_which_nothing_starts_is_passed() -> None:
    cuts, questions, report = ask(document(20, {}), plan(), lambda _: "none")
    # Without any level-one cut point line 0 counts as the start of the segment that goes on.
    assert [question.shown[: question.residual] for question in questions] == [(), (0,), (0,)]
    assert (cuts, report.fallbacks, report.cut_points) == ({}, 0, 0)


def test_a_model_that_contradicts_itself_costs_no_more_than_two_windows_for_one() -> None:
    # It says of any window that its first two lines start level-one sections.
    cuts, questions, report = ask(document(40, {}), plan(), lambda _: "0, Level One, True\n1, Level One, True")
    # Lines 0 and 1: line 1 is thrown back. Then lines 1 and 2, but line 2 stood in the window before, which saw no
    # section there: the cut is kept and the next window starts behind line 8, after the residual line 2. There number 0
    # is the residual line and number 1 line 9: one level-one cut point, and so on with 7 lines a window.
    assert own(questions) == [(0, 8), (1, 9), (9, 16), (16, 23), (23, 30), (30, 37), (37, 40)]
    assert list(cuts) == [0, 1, 2, 9, 16, 23, 30, 37]
    assert report.windows == 7


def test_a_line_above_half_of_the_window_is_shown_shorter() -> None:
    # 100 words; half of a window of 64 tokens is 32: halved by characters until it fits.
    lines = Lines([0, 1], ["word " * 100, "end"], {}, {})
    _, questions, _ = ask(lines, plan(), lambda _: "none")
    assert questions[0].messages[0][1] == f"0 @ {'word ' * 25}".rstrip() + "\n1 @ end"


@pytest.mark.parametrize("template", [LINES_TEMPLATE, JSON_TEMPLATE])
def test_a_window_without_room_is_refused(template: str, counter: HuggingFaceTokenCounter) -> None:
    needed = count_texts(counter, [template.replace("{lines}", "")])[0] + 64
    assert Plan(template, counter, window_tokens=needed).room == 64
    with pytest.raises(ValueError, match=f"window_tokens is {needed - 1}, but .* at least {needed}, or a shorter"):
        Plan(template, counter, window_tokens=needed - 1)


@pytest.mark.parametrize("template", ["no place", "{lines} and {lines}"])
def test_a_template_needs_one_place_for_the_lines(template: str) -> None:
    with pytest.raises(ValueError, match=r"prompt_template holds \{lines\} [02] times; it must hold it once"):
        check_template(template)


def test_braces_in_template_and_text_are_left_alone() -> None:
    lines = Lines([0], ["{lines} {0}"], {}, {})
    _, questions, _ = ask(lines, Plan('{"a": 1}\n{lines}', Words(), window_tokens=99), lambda _: "none")
    assert questions[0].messages == (("user", '{"a": 1}\n0 @ {lines} {0}'),)


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "unigram", "approximate"])
def test_no_window_is_above_its_bound(
    kind: str, counter: HuggingFaceTokenCounter, tokenizer_files: dict[str, str]
) -> None:
    any_counter = {
        "wordpiece": counter,
        "approximate": ApproximateTokenCounter(3),
    }.get(kind) or HuggingFaceTokenCounter(tokenizer_files[kind])
    text = "# Kiln\n\n" + "The kiln is fired. 窑炉需要慢慢地加热八个小时！ It cools, ein Tag lang...\n\n" * 60
    lines = make_lines(text)
    how = Plan("Name the sections.\n{lines}", any_counter, window_tokens=300)
    _, questions, report = ask(lines, how, lambda _: "0, Level One, True\n4, Level Two, False")
    counts = count_texts(any_counter, [question.messages[0][1] for question in questions])
    assert len(counts) > 5
    assert max(counts) <= 300
    # Nor are windows left half empty, the last one excepted.
    assert min(counts[:-1]) > 200
    assert report.prompt_tokens == sum(counts)


LIES = ["", "none", "no idea", "<think>so 0, Level One", "[" * 50, "0, Level One, True\n1, Level One, True"]


def lie(chance: random.Random, question: Question) -> Reply:
    """What a model that has lost its mind may answer."""
    kind = chance.randrange(4)
    if kind == 0:
        return chance.choice(LIES)
    if kind == 1:
        return RuntimeError("out of memory")
    count = len(question.shown)
    # Mostly lines of the window, out of order, twice, and some that are not there.
    rows = [
        (chance.randrange(-3, count + 3), chance.choice([1, 1, 1, 2, 2, 3, 10]), chance.random() < 0.5)
        for _ in range(chance.randrange(1, 12))
    ]
    return write_answer(rows, chance.choice(["lines", "json"]))


@given(
    prose.filter(lambda text: text.strip()),
    st.integers(0, 2**32),
    st.integers(64, 130),
    st.sampled_from(["structure", "single"]),
)
def test_whatever_a_model_says_every_window_moves_forward(
    text: str, seed: int, tokens: int, on_failure: OnFailure
) -> None:
    lines = make_lines(text * 5)
    how = Plan("{lines}", Words(), window_tokens=tokens, max_retries=1, on_failure=on_failure)
    chance = random.Random(seed)
    cuts, questions, report = ask(lines, how, lambda question: lie(chance, question))
    count = len(lines.shown)
    assert list(cuts) == sorted(cuts)
    assert all(0 <= line < count and 1 <= level <= 10 for line, (level, _) in cuts.items())
    # Retries ask for the same window.
    spans = [span for number, span in enumerate(own(questions)) if number == 0 or own(questions)[number - 1] != span]
    assert spans[0][0] == 0
    assert all(before[0] < after[0] <= before[1] for before, after in pairwise(spans))
    # Two windows in a row move forward by what one shows: the cost has a bound.
    assert all(third[0] >= first[1] for first, third in zip(spans, spans[2:], strict=False))
    # No line is lost: all were shown, up to where the model could not be asked any more.
    assert spans[-1][1] == count or (report.fallbacks >= 2 and report.error is not None)
    assert report.calls <= 2 * report.windows
    for question in questions:
        assert count_texts(how.counter, [question.messages[0][1]])[0] <= tokens
        residual = [lines.shown[line] for line in question.shown[: question.residual]]
        assert sum(2 + len(text.split()) for text in residual) < tokens / 2
