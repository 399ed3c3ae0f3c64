# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What becomes of a window whose answer is no use, or that has been answered before."""

import re

import pytest

from hichunk_haystack.hichunk.windows import (
    HiChunkError,
    Question,
    Reply,
)
from tests.hichunk.windows_of_words import ask, document, gold, own, plan


def test_a_useless_answer_is_asked_again_and_the_model_is_told_why() -> None:
    replies = iter(["Sure, here you are!", "99, Level One, True", "0, Level One, True"])
    cuts, questions, report = ask(document(3, {}), plan(), lambda _: next(replies))
    assert [len(question.messages) for question in questions] == [1, 3, 3]
    assert questions[1].messages[:2] == (questions[0].messages[0], ("assistant", "Sure, here you are!"))
    assert (
        questions[1]
        .messages[2][1]
        .startswith(
            "That answer can't be used: no row of it names a line and its level. The lines are numbered from 0 to 2."
        )
    )
    assert questions[2].messages[1] == ("assistant", "99, Level One, True")
    assert "it names only lines that are not there" in questions[2].messages[2][1]
    assert cuts == {0: (1, True)}
    assert (report.windows, report.calls, report.retries, report.fallbacks, report.error) == (1, 3, 2, 0, None)
    assert report.dropped == {"unreadable": 1, "outside": 1}


def test_a_long_useless_answer_is_repeated_in_part_only() -> None:
    replies = iter(["blah " * 5000, "0, Level One, True"])
    _, questions, _ = ask(document(3, {}), plan(), lambda _: next(replies))
    assert len(questions[1].messages[1][1]) == 504


# The document of the next tests: windows of 8 lines, the model fails at the second one.
HEADED = {0: 1, 3: 2, 9: 2, 12: 1, 14: 2, 17: 1}


@pytest.mark.parametrize("bad", ["no idea", "", ValueError("the server said no")])
def test_after_the_last_retry_the_structure_decides(bad: Reply) -> None:
    lines = document(20, HEADED)

    def reply(question: Question) -> Reply:
        return bad if 8 <= question.shown[question.residual] < 12 else "0, Level One, False"

    cuts, questions, report = ask(lines, plan(retries=1), reply)
    # Window 8-14 (line 0 is residual) takes its headings: 9 of level two, 12 of level one, 14 of level two. With one
    # level-one cut point the next window starts at 15.
    assert own(questions) == [(0, 8), (8, 15), (8, 15), (15, 20)]
    assert cuts == {0: (1, False), 9: (2, True), 12: (1, True), 14: (2, True)}
    assert (report.windows, report.calls, report.retries, report.fallbacks) == (3, 4, 1, 1)
    assert report.error is not None
    assert report.error.startswith("window 2, lines 8 to 14: ")


def test_structure_may_throw_back_too() -> None:
    lines = document(12, {0: 1, 2: 1, 5: 1})
    replies = iter(["", "0, Level One, True"])
    cuts, questions, _ = ask(lines, plan(retries=0), lambda _: next(replies))
    assert own(questions) == [(0, 8), (5, 12)]
    assert cuts == {0: (1, True), 2: (1, True), 5: (1, True)}


def test_after_the_last_retry_the_window_is_one_segment_if_so_told() -> None:
    replies = iter(["0, Level One, False\n3, Level Two, True", "", "none"])
    cuts, questions, report = ask(document(20, HEADED), plan(retries=0, on_failure="single"), lambda _: next(replies))
    # Residual lines of the second window: segments 0-2 and 3-7 are 8 lines and too much; line 0 is left.
    assert own(questions) == [(0, 8), (8, 15), (15, 20)]
    assert cuts == {0: (1, False), 3: (2, True), 8: (1, None)}
    assert report.fallbacks == 1


def test_after_the_last_retry_an_error_is_raised_if_so_told() -> None:
    with pytest.raises(HiChunkError, match=re.escape("window 1, lines 0 to 2: the answer can't be used: it is empty")):
        ask(document(3, {}), plan(retries=0, on_failure="raise"), lambda _: "")


def test_a_generator_that_raises_for_two_windows_in_a_row_is_left_alone() -> None:
    lines = document(100, {0: 1, 50: 1, 90: 2})
    cuts, questions, report = ask(lines, plan(retries=1), lambda _: ConnectionError("refused"))
    # Two windows, each asked twice; the headings of all the rest count.
    assert own(questions) == [(0, 8), (0, 8), (8, 15), (8, 15)]
    assert all(len(question.messages) == 1 for question in questions)
    assert cuts == {0: (1, True), 50: (1, True), 90: (2, True)}
    assert (report.windows, report.calls, report.fallbacks) == (2, 4, 2)
    assert report.error == "window 2, lines 8 to 14: ConnectionError: refused"


def test_a_generator_that_raises_now_and_then_is_asked_on() -> None:
    lines = document(29, {})
    replies = iter([TimeoutError(), "none", TimeoutError(), "none"])
    _, questions, report = ask(lines, plan(retries=0), lambda _: next(replies))
    assert own(questions) == [(0, 8), (8, 15), (15, 22), (22, 29)]
    assert report.fallbacks == 2


def test_known_answers_are_not_asked_for_and_useless_ones_are_not_kept() -> None:
    lines = document(20, {0: 1, 5: 1, 7: 1, 16: 1})
    known: dict[str, str] = {}
    right = gold(lines)
    replies = iter(["useless", None, None, ConnectionError("killed")])
    with pytest.raises(HiChunkError):
        ask(
            lines,
            plan(retries=1, on_failure="raise"),
            lambda q: next(replies, ConnectionError("killed")) or right(q),
            known,
        )
    # Windows 0-7 (asked twice) and 7-14 were answered, the third one never was.
    assert len(known) == 2
    cuts, questions, report = ask(lines, plan(), right, known)
    assert own(questions) == [(15, 20)]
    assert (report.windows, report.calls, report.cached, report.retries) == (3, 1, 2, 0)
    assert list(cuts) == [0, 5, 7, 16]
    again, questions, report = ask(lines, plan(), right, known)
    assert (again, questions, report.calls, report.cached, report.prompt_tokens) == (cuts, [], 0, 3, 0)


def test_a_known_answer_that_can_not_be_read_is_asked_for_again() -> None:
    lines = document(3, {0: 1})
    known = {"0 @ line 0 of a document here\n1 @ line 1 of a document here\n2 @ line 2 of a document here": "?"}
    _, questions, report = ask(lines, plan(), gold(lines), known)
    assert (len(questions), report.cached) == (1, 0)
    assert list(known.values()) == ["0, Level One, True"]
