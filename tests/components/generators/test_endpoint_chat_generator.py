# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import pytest
from haystack.dataclasses import ChatMessage
from haystack.utils import Secret

from hichunk_haystack.components.generators import EndpointChatGenerator
from tests.hichunk.endpoint import serve

TYPE = "hichunk_haystack.components.generators.EndpointChatGenerator"


def env(*names: str, strict: bool = True) -> dict[str, object]:
    return {"type": "env_var", "env_vars": list(names), "strict": strict}


def test_serialisation_is_exact_and_names_variables_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HICHUNK_API_KEY", "secret")
    defaults = {
        "api_base_url": env("HICHUNK_BASE_URL"),
        "model": env("HICHUNK_MODEL"),
        "api_key": env("HICHUNK_API_KEY", strict=False),
        "generation_kwargs": None,
        "timeout": None,
        "max_retries": None,
    }
    assert EndpointChatGenerator().to_dict() == {"type": TYPE, "init_parameters": defaults}
    changed = {
        "api_base_url": "http://localhost:1/v1",
        "model": env("OTHER"),
        "api_key": env("KEY"),
        "generation_kwargs": {"temperature": 0},
        "timeout": 5.0,
        "max_retries": 0,
    }
    data = {"type": TYPE, "init_parameters": changed}
    assert EndpointChatGenerator.from_dict(data).to_dict() == data


async def test_it_asks_the_server_that_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = EndpointChatGenerator(generation_kwargs={"temperature": 0}, max_retries=0)
    with serve(lambda text: f"You said: {text}") as endpoint:
        # Read when it is warmed up, not when it is made.
        monkeypatch.setenv("HICHUNK_BASE_URL", endpoint.url)
        monkeypatch.setenv("HICHUNK_MODEL", "hichunk-4b")
        monkeypatch.setenv("HICHUNK_API_KEY", "secret")
        replies = generator.run([ChatMessage.from_user("kiln")])["replies"]
        replies += (await generator.run_async([ChatMessage.from_user("wheel")]))["replies"]
        await generator.close_async()
        generator.close()
    assert [reply.text for reply in replies] == ["You said: kiln", "You said: wheel"]
    assert [(request["model"], request["temperature"]) for request in endpoint.requests] == [("hichunk-4b", 0)] * 2
    assert endpoint.keys == ["Bearer secret"] * 2


def test_no_key_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HICHUNK_API_KEY", raising=False)
    with serve(lambda _: "fine") as endpoint:
        generator = EndpointChatGenerator(api_base_url=endpoint.url, model="m")
        assert generator.run([ChatMessage.from_user("?")])["replies"][0].text == "fine"


@pytest.mark.parametrize("value", [None, ""])
def test_a_variable_that_is_not_set_is_named(value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HICHUNK_BASE_URL", "HICHUNK_MODEL"):
        monkeypatch.delenv(name, raising=False)
    if value is not None:
        monkeypatch.setenv("HICHUNK_MODEL", value)
    with pytest.raises(ValueError, match="No language model is configured: HICHUNK_BASE_URL and HICHUNK_MODEL are not"):
        EndpointChatGenerator().warm_up()
    monkeypatch.setenv("HICHUNK_MODEL", "m")
    with pytest.raises(ValueError, match=r"configured: A or B is not set\. Point HICHUNK_BASE_URL"):
        EndpointChatGenerator(api_base_url=Secret.from_env_var(["A", "B"], strict=False)).warm_up()
