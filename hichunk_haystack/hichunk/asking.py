# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Putting questions to a Haystack ChatGenerator, plainly or asynchronously."""

import asyncio
import inspect
import json
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from haystack.components.generators.chat.types import ChatGenerator
from haystack.core.errors import SerializationError
from haystack.core.serialization import component_to_dict
from haystack.dataclasses import ChatMessage
from haystack.utils import Secret

from hichunk_haystack.hichunk.windows import Question, Reply

Result = TypeVar("Result")

Asking = Generator[Question, Reply, Result]
"""Work that yields questions, is sent replies, and returns a result."""

# What a generator's answers do not depend on.
_IRRELEVANT = frozenset(
    {"api_key", "timeout", "max_retries", "streaming_callback", "organization", "http_client_kwargs", "tools_strict"}
)
_ROLES: dict[str, Callable[[str], ChatMessage]] = {
    "user": ChatMessage.from_user,
    "assistant": ChatMessage.from_assistant,
    "system": ChatMessage.from_system,
}


class _Stopped(BaseException):
    """The run was broken off: workers leave at their next question."""


def answered(work: Asking[Result], generator: ChatGenerator, step: Callable[[], None] = lambda: None) -> Result:
    """
    Carry out work that asks a model.

    :param work: The work.
    :param generator: Answers; what it raises is sent to the work.
    :param step: Called before every question and at the end.
    :returns: The work's result.
    """
    question, result = _advance(work, None)
    while question is not None:
        step()
        try:
            reply: Reply = _text(generator.run(messages=_messages(question)))
        except Exception as error:
            reply = error
        question, result = _advance(work, reply)
    step()
    assert result is not None
    return result[0]


async def answered_async(
    work: Asking[Result], generator: ChatGenerator, step: Callable[[], None] = lambda: None
) -> Result:
    """
    Carry out work that asks a model, without blocking; a generator without an asynchronous side is run in a thread.

    :param work: The work.
    :param generator: Answers; what it raises is sent to the work.
    :param step: Called before every question and at the end.
    :returns: The work's result.
    """
    run_async = getattr(generator, "run_async", None)
    question, result = await asyncio.to_thread(_advance, work, None)
    while question is not None:
        step()
        messages = _messages(question)
        try:
            if run_async is None:
                reply: Reply = _text(await asyncio.to_thread(generator.run, messages=messages))
            else:
                reply = _text(await run_async(messages=messages))
        except Exception as error:
            reply = error
        question, result = await asyncio.to_thread(_advance, work, reply)
    step()
    assert result is not None
    return result[0]


def answered_all(
    works: Sequence[Asking[Result]], generator: ChatGenerator, workers: int, done: Callable[[], None] = lambda: None
) -> list[Result | Exception]:
    """
    Carry out many works that ask a model, several at a time in threads.

    :param works: The works.
    :param generator: Answers.
    :param workers: How many works are under way at once.
    :param done: Called after each work, from any thread.
    :returns: Each work's result, in order; where a work raised, what it raised.
    """
    stopped = threading.Event()

    def step() -> None:
        if stopped.is_set():
            raise _Stopped

    def one(work: Asking[Result]) -> Result | Exception:
        try:
            return answered(work, generator, step)
        except Exception as error:  # noqa: BLE001, RUF100 - one work's failure must leave the others
            return error
        finally:
            done()

    with ThreadPoolExecutor(max_workers=workers) as pool:
        futures = [pool.submit(one, work) for work in works]
        try:
            return [future.result() for future in futures]
        except BaseException:
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


async def answered_all_async(
    works: Sequence[Asking[Result]], generator: ChatGenerator, workers: int, done: Callable[[], None] = lambda: None
) -> list[Result | Exception]:
    """
    Carry out many works that ask a model concurrently.

    :param works: The works.
    :param generator: Answers.
    :param workers: How many works are under way at once.
    :param done: Called after each work.
    :returns: Each work's result, in order; where a work raised, what it raised.
    """
    places = asyncio.Semaphore(workers)

    async def one(work: Asking[Result]) -> Result | Exception:
        async with places:
            try:
                return await answered_async(work, generator)
            except Exception as error:  # noqa: BLE001, RUF100 - one work's failure must leave the others
                return error
            finally:
                done()

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(work)) for work in works]
    return [task.result() for task in tasks]


def model_key(generator: ChatGenerator) -> str:
    """
    Name a model with what its answers depend on.

    The server's address belongs to it: servers that carry one model only often answer to any name.

    :param generator: A ChatGenerator.
    :returns: JSON with the generator's type, its model's name and its generation parameters; no secrets but those that
        hold a model's name or an address.
    """
    try:
        parameters = component_to_dict(generator, "chat_generator")["init_parameters"]
    except (SerializationError, ValueError):
        # A key given as text can't be serialised, and with it the whole generator.
        names = inspect.signature(generator.__init__).parameters  # type: ignore[misc]
        parameters = {name: getattr(generator, name, None) for name in names}
    relevant = {name: value for name, value in parameters.items() if name not in _IRRELEVANT}
    for name in relevant:
        held = getattr(generator, name, None)
        if isinstance(held, Secret):
            # What an environment variable holds is what counts, not its name.
            relevant[name] = held.resolve_value()
    return json.dumps(
        [type(generator).__qualname__, relevant], sort_keys=True, default=lambda value: type(value).__name__
    )


def _advance(work: Asking[Result], reply: Reply | None) -> tuple[Question | None, tuple[Result] | None]:
    """The next question, or the result."""
    try:
        return (next(work) if reply is None else work.send(reply)), None
    except StopIteration as done:
        return None, (done.value,)


def _messages(question: Question) -> list[ChatMessage]:
    return [_ROLES[role](text) for role, text in question.messages]


def _text(result: dict[str, Any]) -> str:
    """Text of the first reply; empty where there is none."""
    replies = result.get("replies") or [""]
    text = replies[0] if isinstance(replies[0], str) else replies[0].text
    return text or ""
