# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Which requests to a server are sent again, and when; and what is told when that does not help."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

import httpx
from haystack_integrations.document_stores.qdrant.document_store import QdrantStoreError
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

WAITS = (0.5, 1.0, 2.0, 4.0)
"""Seconds before each further attempt, but for a random part: clients that were turned away together do not come back
together."""

_MOST_SECONDS = 30.0
_JITTER = 0.25
_BUSY = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}
_GRPC_BUSY = {"RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED"}


def seconds_to_wait(error: Exception, attempt: int, *, answered: bool) -> float | None:
    """
    Decide whether a request is worth another attempt.

    It is after a timeout, and where the server says that it is busy (429, 503; it may say for how long). Everything
    that a store sends may be sent twice. A server that can't be reached is tried again only if it has answered before:
    else its address is wrong, or it has not been started, and whoever waits wants to know that now.

    :param error: What came of the request.
    :param attempt: How many attempts there have been.
    :param answered: Whether the server has ever answered.
    :returns: Seconds to wait, or `None` where the error stands.
    """
    if attempt > len(WAITS) or not _is_passing(error, answered=answered):
        return None
    wait = WAITS[attempt - 1] * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - no secret
    return min(max(wait, _asked_for(error)), max(wait, _MOST_SECONDS))


def is_busy(error: Exception) -> bool:
    """
    Say whether a server has turned a request away because it has too much to do.

    :param error: What came of the request.
    :returns: Whether it is that.
    """
    if isinstance(error, UnexpectedResponse):
        return error.status_code in _BUSY
    return isinstance(error, ResourceExhaustedResponse) or _grpc_code(error) in _GRPC_BUSY


def is_out_of_reach(error: Exception) -> bool:
    """
    Say whether a server did not answer at all.

    :param error: What came of the request.
    :returns: Whether it is that.
    """
    if isinstance(error, ResponseHandlingException):
        return isinstance(error.source, httpx.TransportError)
    return _grpc_code(error) == "UNAVAILABLE"


@contextmanager
def telling_what_is_written(written: int, total: int) -> Iterator[None]:
    """
    Tells, when a server fails on the way, what is written and what not.

    :param written: Documents of the requests before.
    :param total: Documents that are to be written.
    :raises QdrantStoreError: If the request inside fails.
    """
    try:
        yield
    except (QdrantStoreError, ApiException, QdrantException) as error:
        msg = (
            f"Writing stopped: the first {written} of {total} documents are written, of the others some may be. "
            f"{error} What is written stays; write the same again to finish."
        )
        raise QdrantStoreError(msg) from error


def _is_passing(error: Exception, *, answered: bool) -> bool:
    if is_busy(error):
        return True
    if isinstance(error, ResponseHandlingException) and isinstance(error.source, httpx.TimeoutException):
        return answered or not isinstance(error.source, httpx.ConnectTimeout)
    return answered and is_out_of_reach(error)


def _asked_for(error: Exception) -> float:
    """Seconds that the server asks to wait."""
    if isinstance(error, ResourceExhaustedResponse):
        return float(error.retry_after_s)
    value = error.headers.get("Retry-After", "") if isinstance(error, UnexpectedResponse) else ""
    return float(value) if value.isdigit() else 0.0


def _grpc_code(error: Exception) -> str:
    code = getattr(error, "code", None)
    return str(getattr(code(), "name", "")) if callable(code) else ""
