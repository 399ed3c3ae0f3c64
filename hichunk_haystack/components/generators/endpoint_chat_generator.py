# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Iterable
from typing import Any

from haystack import component, default_from_dict, default_to_dict
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.utils import Secret

# The client insists on a key; servers on one's own machine seldom do.
_NO_KEY = "none"


@component
class EndpointChatGenerator:
    """
    Haystack's `OpenAIChatGenerator` on an endpoint that environment variables name.

    YAML can't take a server's address or a model's name from the environment, except as a `Secret`. Here both may be
    one, so that the same YAML runs against vLLM, Ollama, llama.cpp or a hosted model. They are read when the component
    is warmed up, and never written into YAML.

    ```python
    from haystack.utils import Secret

    from hichunk_haystack.components.generators import EndpointChatGenerator

    # By default HICHUNK_BASE_URL, HICHUNK_MODEL and HICHUNK_API_KEY; here the address of another variable.
    generator = EndpointChatGenerator(
        api_base_url=Secret.from_env_var("OPENAI_BASE_URL"), model="hichunk-4b", generation_kwargs={"temperature": 0}
    )
    print(generator.to_dict()["init_parameters"]["api_base_url"])  # names the variable, not what it holds
    ```
    """

    __module__ = "hichunk_haystack.components.generators"

    def __init__(
        self,
        *,
        api_base_url: Secret | str = Secret.from_env_var("HICHUNK_BASE_URL"),  # noqa: B008 - immutable
        model: Secret | str = Secret.from_env_var("HICHUNK_MODEL"),  # noqa: B008 - immutable
        api_key: Secret = Secret.from_env_var("HICHUNK_API_KEY", strict=False),  # noqa: B008 - immutable
        generation_kwargs: dict[str, Any] | None = None,
        timeout: float | None = None,
        max_retries: int | None = None,
    ) -> None:
        """
        Create the component.

        :param api_base_url: Address of a server that speaks OpenAI's protocol, as a rule with `/v1` at its end.
        :param model: The model's name at that server.
        :param api_key: The key; none is needed where the server asks for none.
        :param generation_kwargs: Sent with every request, such as `temperature`, `max_tokens` or `response_format`.
        :param timeout: Seconds to wait for an answer; by default `OPENAI_TIMEOUT`, else 30.
        :param max_retries: How often a failed request is sent again; by default `OPENAI_MAX_RETRIES`, else 5.
        """
        self.api_base_url = api_base_url
        self.model = model
        self.api_key = api_key
        self.generation_kwargs = generation_kwargs
        self.timeout = timeout
        self.max_retries = max_retries
        self._generator: OpenAIChatGenerator | None = None

    def warm_up(self) -> None:
        """
        Read the environment and open the client, once.

        :raises ValueError: If a variable that is needed is not set; the message names it.
        """
        self._opened().warm_up()

    async def warm_up_async(self) -> None:
        """
        Read the environment and open the asynchronous client, once.

        :raises ValueError: If a variable that is needed is not set; the message names it.
        """
        await self._opened().warm_up_async()

    def close(self) -> None:
        """Close the client."""
        if self._generator is not None:
            self._generator.close()

    async def close_async(self) -> None:
        """Close the asynchronous client."""
        if self._generator is not None:
            await self._generator.close_async()

    @component.output_types(replies=list[ChatMessage])
    def run(
        self, messages: list[ChatMessage], generation_kwargs: dict[str, Any] | None = None
    ) -> dict[str, list[ChatMessage]]:
        """
        Ask the model.

        :param messages: The chat.
        :param generation_kwargs: Added to those of the constructor.
        :returns: A dictionary with `replies`.
        """
        return self._opened().run(messages=messages, generation_kwargs=generation_kwargs)

    @component.output_types(replies=list[ChatMessage])
    async def run_async(
        self, messages: list[ChatMessage], generation_kwargs: dict[str, Any] | None = None
    ) -> dict[str, list[ChatMessage]]:
        """
        Ask the model, without blocking.

        :param messages: The chat.
        :param generation_kwargs: Added to those of the constructor.
        :returns: A dictionary with `replies`.
        """
        return await self._opened().run_async(messages=messages, generation_kwargs=generation_kwargs)

    def to_dict(self) -> dict[str, Any]:
        """
        Serialise the component.

        :returns: Dictionary with the type and the init parameters; of secrets only the variables' names.
        """
        return default_to_dict(
            self,
            api_base_url=self.api_base_url,
            model=self.model,
            api_key=self.api_key,
            generation_kwargs=self.generation_kwargs,
            timeout=self.timeout,
            max_retries=self.max_retries,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "EndpointChatGenerator":
        """
        Revive the component.

        :param data: What `to_dict` gave.
        :returns: The component.
        """
        return default_from_dict(cls, data)

    def _opened(self) -> OpenAIChatGenerator:
        if self._generator is None:
            address, model = _resolved(self.api_base_url), _resolved(self.model)
            if address is None or model is None:
                msg = _no_model((self.api_base_url, self.model))
                raise ValueError(msg)
            self._generator = OpenAIChatGenerator(
                api_key=Secret.from_token(self.api_key.resolve_value() or _NO_KEY),
                model=model,
                api_base_url=address,
                generation_kwargs=self.generation_kwargs,
                timeout=self.timeout,
                max_retries=self.max_retries,
            )
        return self._generator


def _resolved(value: Secret | str) -> str | None:
    """What a setting holds, `None` where its variable is not set."""
    if isinstance(value, str):
        return value
    try:
        return value.resolve_value() or None
    except ValueError:
        return None


def _no_model(settings: Iterable[Secret | str]) -> str:
    unset = [each for each in settings if _resolved(each) is None]
    names = [" or ".join(getattr(each, "_env_vars", ())) or "a variable" for each in unset]
    return (
        f"No language model is configured: {' and '.join(names)} {'is' if len(names) == 1 else 'are'} not set. Point "
        "HICHUNK_BASE_URL (or what the YAML names instead) to an endpoint that speaks OpenAI's protocol, HICHUNK_MODEL "
        "to the model's name there, and set HICHUNK_API_KEY where a key is asked for; query.yml and indexing.yml need "
        "no language model."
    )
