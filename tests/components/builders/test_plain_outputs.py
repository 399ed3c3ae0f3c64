# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import json
from pathlib import Path

import numpy as np
import pytest
from haystack import Document, Pipeline
from haystack.dataclasses import ChatMessage

from hichunk_haystack.components.builders import PlainOutputs


def test_documents_become_dictionaries_without_their_embeddings() -> None:
    document = Document(id="1", content="Fire it.", meta={"page": 2}, score=0.5, embedding=[1.0])
    answer = PlainOutputs(["documents"]).run(documents=[document])
    assert answer == {"documents": [{"id": "1", "content": "Fire it.", "meta": {"page": 2}, "score": 0.5}]}
    assert document.embedding == [1.0]


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        (True, True),
        (3, 3),
        (0.25, 0.25),
        (float("nan"), None),
        (float("-inf"), None),
        ("text", "text"),
        (("a", 1), ["a", 1]),
        ({"a": {1: Path("b")}}, {"a": {"1": "b"}}),
        (np.float32(0.5), 0.5),
        (np.array([[1, 2]]), [[1, 2]]),
        (
            [{"deep": [Document(id="1", content="x")]}],
            [{"deep": [{"id": "1", "content": "x", "meta": {}, "score": None}]}],
        ),
    ],
)
def test_whatever_comes_is_plain_data(value: object, plain: object) -> None:
    answer = PlainOutputs(["value"]).run(value=value)
    assert answer == {"value": plain}
    json.dumps(answer, allow_nan=False)


def test_messages_come_as_haystack_writes_them() -> None:
    message = ChatMessage.from_user("Why?")
    assert PlainOutputs(["replies"]).run(replies=[message]) == {"replies": [message.to_dict()]}


def test_the_outputs_of_a_pipeline_are_those_named() -> None:
    pipeline = Pipeline()
    pipeline.add_component("answer", PlainOutputs(["context", "used"]))
    assert pipeline.run({"answer": {"context": "text", "used": 3}}) == {"answer": {"context": "text", "used": 3}}
    assert Pipeline.loads(pipeline.dumps(), allowed_modules=["hichunk_haystack"]).to_dict() == pipeline.to_dict()


def test_to_dict_and_from_dict() -> None:
    made = PlainOutputs(["context"])
    data = {"type": "hichunk_haystack.components.builders.PlainOutputs", "init_parameters": {"names": ["context"]}}
    assert made.to_dict() == data
    assert PlainOutputs.from_dict(data).names == ["context"]


@pytest.mark.parametrize("names", [[], ["a", "a"]])
def test_names_are_checked(names: list[str]) -> None:
    with pytest.raises(ValueError, match="at least one name, and each once"):
        PlainOutputs(names)
