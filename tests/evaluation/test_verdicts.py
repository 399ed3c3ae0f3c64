# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hichunk_haystack.evaluation.verdicts import parse_facts, parse_verdicts

FACTS = ["The kiln takes nine hours.", "It cools for a day.", "No glaze is needed."]
YES_NO_YES = {0: True, 1: False, 2: True}
# As it should be.
GOOD = json.dumps({"verdicts": [{"number": n + 1, "covered": covered} for n, covered in YES_NO_YES.items()]})
# A fence, chatter around, words for the verdicts, a comma too many.
CHATTER = """Sure, here it is:
```json
{"verdicts": [{"number": 1, "covered": "yes"}, {"number": 2, "covered": "no"}, {"number": 3, "covered": "1"},]}
```
I hope that helps!"""
BY_TEXT = """[{"statement": "3. No glaze is needed", "verdict": 1}, {"statement": "It cools for a day", "verdict": 0},
{"statement": "the kiln takes nine hours", "verdict": 1}]"""
BY_KEY = """{"results": {"fact_1": {"covered": true, "reason": "No doubt."}, "Fact 2": {"covered": false},
"3": {"covered": 1}}}"""


@pytest.mark.parametrize(
    "answer",
    [
        GOOD,
        CHATTER,
        # Thinking that says something else first; and without its start.
        '<think>[{"number": 1, "covered": false}] maybe?</think>\n[true, false, true]',
        'Fact 1: no. Fact 2: yes.</think>{"1": "yes", "2": "no", "3": "yes"}',
        # Bare lists, with a comma too many; words; numbers; Python.
        "[true, false, true,]",
        '["Yes", "Not covered", "Covered"]',
        '{"scores": [1, 0, 1]}',
        "[1.0, 0.0, 1.0]",
        GOOD.replace('"', "'"),
        GOOD.replace("true", "True").replace("false", "False"),
        GOOD.replace("true", "True").replace("false", "False").replace('"', "'"),
        # Other names of the fields, numbers as text or from 0, another order.
        '[{"id": "3", "supported": "true"}, {"id": "1", "supported": "true"}, {"id": "2", "supported": "False"}]',
        '[{"index": 0, "score": 1}, {"index": 1, "score": 0}, {"index": 2, "score": 1}]',
        BY_KEY,
        "[[1, true], [2, false], [3, true]]",
        # Facts named by their text.
        '{"statements": ["a", "b", "c"], "statement_scores": [1, 0, 1]}',
        BY_TEXT,
        '{"It cools for a day.": false, "No glaze is needed.": true, "The kiln takes nine hours.": true}',
        # No numbers, but as many.
        '[{"covered": true}, {"covered": false}, {"covered": true}]',
        # The form is repeated before it is filled in.
        '{"verdicts": [{"number": 1, "covered": false}]}\n' + GOOD,
        # Broken off behind the last verdict.
        GOOD.removesuffix("]}"),
        '[{"covered": true}, {"covered": false}, {"covered": true}',
        # Lines instead of JSON.
        "1. Yes\n2. No\n3. Yes",
        "- Fact 1: **yes**\n- Fact 2: ✗\n- Fact 3: ✓",
        "1. The kiln takes nine hours. - covered\n2. It cools for a day: not covered\n3. No glaze is needed: yes",
        "1) Covered, since it says nine.\n2) No, the day is missing.\n3) Covered.",
    ],
)
def test_answers_in_many_shapes(answer: str) -> None:
    assert parse_verdicts(answer, FACTS) == YES_NO_YES


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        # Missing verdicts are missing, not "no".
        ('[{"number": 1, "covered": true}, {"number": 3, "covered": false}]', {0: True, 2: False}),
        ('{"verdicts": [{"number": 1, "covered": true}, {"number": 2, "cov', {0: True}),
        ('[{"number": 1, "covered": true}, {"number": 2, "covered": null}]', {0: True}),
        ('[{"number": 1, "covered": true}, {"number": 2, "covered": "perhaps"}]', {0: True}),
        # A wrong count without numbers: whose verdicts are they?
        ("[true, false]", {}),
        ("[true, false, true, true]", {}),
        ('{"scores": [1, 0]}', {}),
        # Numbers that are none of the facts'.
        (
            '[{"number": 4, "covered": true}, {"number": 2, "covered": true}, {"number": -1, "covered": true}]',
            {1: True},
        ),
        # The last verdict on a fact counts.
        ('[{"number": 1, "covered": true}, {"number": 1, "covered": false}]', {0: False}),
        # "No glaze" and the reason are no verdicts.
        ('[{"number": 3, "fact": "No glaze is needed.", "reason": "yes"}]', {}),
        ("3. No glaze is needed.", {}),
        ("2 of 3 facts are covered.", {}),
        ("I cannot judge that.", {}),
        ("", {}),
        ("<think>1. yes 2. no", {}),
    ],
)
def test_what_is_not_said_is_not_guessed(answer: str, expected: dict[int, bool]) -> None:
    assert parse_verdicts(answer, FACTS) == expected


@pytest.mark.parametrize(
    ("answer", "expected"), [("Yes.", True), ("**No**", False), ('{"covered": "yes"}', True), ("false", False)]
)
def test_a_single_fact_needs_no_number(answer: str, expected: bool) -> None:
    assert parse_verdicts(answer, FACTS[:1]) == {0: expected}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ('{"facts": ["A kiln is hot.", "Clay is soft."]}', ["A kiln is hot.", "Clay is soft."]),
        ('Here:\n```json\n["A kiln is hot.", "Clay is soft.",]\n```', ["A kiln is hot.", "Clay is soft."]),
        ('[{"fact": "A kiln is hot."}, {"id": 2, "statement": "Clay is soft."}]', ["A kiln is hot.", "Clay is soft."]),
        ('{"1": "A kiln is hot.", "2": "Clay is soft."}', ["A kiln is hot.", "Clay is soft."]),
        ("Facts:\n1. A kiln is hot.\n2. Clay is soft.", ["A kiln is hot.", "Clay is soft."]),
        ("- A kiln is hot.\n- Clay is soft.", ["A kiln is hot.", "Clay is soft."]),
        # Once each, on one line, without its number, without the form's dots.
        ('{"facts": ["...", "..."]} {"facts": ["1. A  kiln\\nis hot.", "A kiln is hot.", ""]}', ["A kiln is hot."]),
        ('<think>{"facts": ["x y", "z"]}</think>{"facts": ["Clay is soft."]}', ["Clay is soft."]),
        # Broken off.
        ('{"facts": [\n  "A kiln is hot.",\n  "Clay is so', ["A kiln is hot."]),
        ('[{"fact": "A kiln is hot."}, {"fact": "Clay is soft."}, {"fa', ["A kiln is hot.", "Clay is soft."]),
        ("There are none.", []),
        ('{"facts": []}', []),
        ("", []),
    ],
)
def test_facts(answer: str, expected: list[str]) -> None:
    assert parse_facts(answer) == expected


@given(st.text(alphabet=st.sampled_from('{}[]",:012 \n\\yesnotruefalcv'), max_size=80))
def test_nothing_breaks_it(answer: str) -> None:
    assert set(parse_verdicts(answer, FACTS)) <= {0, 1, 2}
    parse_facts(answer)


@pytest.mark.parametrize("piece", ["[", "{", '"', "*", "1. ", ", ", '{"number": 1, "covered": ', "number: 1, "])
def test_long_nonsense_takes_no_time(piece: str) -> None:
    start = time.perf_counter()
    parse_verdicts(piece * (200_000 // len(piece)), FACTS)
    parse_facts(piece * (200_000 // len(piece)))
    assert time.perf_counter() - start < 5
