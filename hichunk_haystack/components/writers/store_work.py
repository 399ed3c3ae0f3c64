# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Work that calls a document store, written once for synchronous and asynchronous callers."""

import asyncio
from collections.abc import Generator
from typing import Any, NamedTuple, TypeVar

from haystack.document_stores.types import DocumentStore

Result = TypeVar("Result")


class StoreCall(NamedTuple):
    """
    A call of a document store's method.

    :param method: The name of the synchronous method.
    :param arguments: Its arguments, by name.
    """

    method: str
    arguments: dict[str, Any]


StoreWork = Generator[StoreCall, Any, Result]
"""Work that yields calls, is sent what they return (or thrown what they raise), and returns a result."""


def run_work(work: StoreWork[Result], store: DocumentStore) -> Result:
    """
    Carry out work on a store.

    :param work: The work.
    :param store: Any document store.
    :returns: The work's result.
    """
    try:
        call = next(work)
        while True:
            try:
                answer = getattr(store, call.method)(**call.arguments)
            except Exception as error:
                call = work.throw(error)
            else:
                call = work.send(answer)
    except StopIteration as done:
        return done.value


async def run_work_async(work: StoreWork[Result], store: DocumentStore) -> Result:
    """
    Carry out work on a store without blocking; methods that have no asynchronous twin are called in a thread.

    :param work: The work.
    :param store: Any document store.
    :returns: The work's result.
    """
    try:
        call = next(work)
        while True:
            method = getattr(store, f"{call.method}_async", None)
            try:
                if method is not None:
                    answer = await method(**call.arguments)
                else:
                    answer = await asyncio.to_thread(getattr(store, call.method), **call.arguments)
            except Exception as error:
                call = work.throw(error)
            else:
                call = work.send(answer)
    except StopIteration as done:
        return done.value
