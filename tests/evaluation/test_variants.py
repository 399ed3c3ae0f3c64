# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import json
from pathlib import Path

import pytest
from haystack.utils import Secret

from hichunk_haystack.components.generators import EndpointChatGenerator
from hichunk_haystack.evaluation.variants import (
    content_words,
    given_variants,
    response_format,
    short_form,
    written_variants,
)
from tests.hichunk.endpoint import serve


@pytest.mark.parametrize(
    ("question", "words", "title"),
    [
        (
            "What were the operating profits of the space systems segment?",
            "operating profits space systems segment",
            "operating profits of the space systems segment",
        ),
        ("How is the kiln's door opened, and who may do it?", "kiln door opened", "kiln door opened"),
        ("Which of the two is cheaper: clay or glaze?", "two cheaper clay glaze", "cheaper clay"),
        (
            "What rose by 3.5% in the self-service shops?",
            "rose 3.5% self-service shops",
            "3.5% in the self-service shops",
        ),
        ("Why?", "Why?", "Why?"),
        ("", "", ""),
        ("粘土はどこにありますか", "粘土はどこにありますか", "粘土はどこにありますか"),
    ],
)
def test_wordings_by_rule(question: str, words: str, title: str) -> None:
    assert content_words(question) == words
    assert short_form(question) == title
    assert given_variants(question) == [question, words, title]


def test_a_model_writes_wordings_once(tmp_path: Path) -> None:
    def answer(prompt: str) -> str:
        if "glaze" in prompt:
            return "I would rather not."
        assert "Question: Where is the kiln?" in prompt
        assert "in 2 other ways" in prompt
        return '{"queries": ["place of the kiln", "kiln location"]}'

    form = {"response_format": response_format(2)}
    with serve(answer) as endpoint:
        generator = EndpointChatGenerator(
            api_base_url=endpoint.url, model="m", api_key=Secret.from_env_var("HICHUNK_NO_KEY", strict=False),
            generation_kwargs={"extra_body": form}, max_retries=0,
        )  # fmt: skip
        questions = ["Where is the kiln?", "Where is the glaze?"]
        found = written_variants(questions, generator, tmp_path, count=2, workers=1)
        assert found == [["place of the kiln", "kiln location", "Where is the kiln?"], ["Where is the glaze?"]]
        assert endpoint.requests[0]["response_format"] == form["response_format"]
        assert written_variants(questions, generator, tmp_path, count=2, workers=1) == found
        # What could not be used is asked for again.
        assert [request["messages"][0]["content"].count("kiln") for request in endpoint.requests] == [1, 0, 0]


def test_the_form_of_an_answer_is_json() -> None:
    form = json.loads(json.dumps(response_format(3)))
    queries = form["json_schema"]["schema"]["properties"]["queries"]
    assert (queries["minItems"], queries["maxItems"], queries["items"]["type"]) == (3, 3, "string")
