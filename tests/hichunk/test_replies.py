# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import asyncio
import threading
from typing import Any

import pytest
from haystack.components.generators.chat import MockChatGenerator

from hichunk_haystack.hichunk.asking import Asking, answered_all, answered_all_async
from hichunk_haystack.hichunk.replies import json_values, repaired_json, without_thinking
from hichunk_haystack.hichunk.windows import Question


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<think>a</think>b", "b"),
        ("a</THINK>b", "b"),
        ("b<reasoning>a", "b"),
        ("<think>a</think>b<think>c</think>d", "d"),
        ("no thinking", "no thinking"),
        ("<think>never ends", ""),
    ],
)
def test_without_thinking(text: str, left: str) -> None:
    assert without_thinking(text) == left


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('{"a": [1]} and [2]', [{"a": [1]}, [2]]),
        ('```json\n{"a": "}"}\n```', [{"a": "}"}]),
        # Broken off: what is whole inside.
        ('{"rows": [{"a": 1}, {"a": 2}, {"a', [{"a": 1}, {"a": 2}]),
        ("{no} [json] 7", []),
        ("[" * 100_000, []),
    ],
)
def test_json_values(text: str, values: list[Any]) -> None:
    assert list(json_values(text)) == values


def test_repairs_leave_strings_alone() -> None:
    text = r'{"a": [True, None, "x, ]\", }", False , ], "True": "None,]",}'
    assert list(json_values(repaired_json(text))) == [
        {"a": [True, None, 'x, ]", }', False], "True": "None,]"},
    ]  # fmt: skip


def asking(name: str) -> Asking[str]:
    reply = yield Question((("user", name),), (), 0)
    if name == "bad":
        msg = "the work itself fails"
        raise ValueError(msg)
    return f"{name}: {reply}"


def test_works_in_order_and_one_that_fails() -> None:
    done = []
    lock = threading.Lock()

    def one_more() -> None:
        with lock:
            done.append(1)

    generator = MockChatGenerator("yes")
    names = ["a", "bad", "b"]
    plain = answered_all([asking(name) for name in names], generator, 2, one_more)
    awaited = asyncio.run(answered_all_async([asking(name) for name in names], generator, 2, one_more))
    for results in (plain, awaited):
        assert results[0] == "a: yes"
        assert str(results[1]) == "the work itself fails"
        assert results[2] == "b: yes"
    assert len(done) == 6
    assert answered_all([], generator, 1) == []
