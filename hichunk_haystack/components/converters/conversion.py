# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Running a converter on one file, and saying why nothing came of it."""

import logging
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from haystack import Document
from haystack.dataclasses import ByteStream

from hichunk_haystack.extras import pip_install


class ConversionError(Exception):
    """Why a file was not converted: one sentence with a way out."""


def check_file(path: str) -> None:
    """
    Check that there is something to read.

    :param path: Path of the file.
    :raises ConversionError: If it is empty, or something that may wait for ever, such as a pipe.
    :raises OSError: If it can't be read.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        msg = "It is not a regular file (but a device, pipe or socket); leave it out."
        raise ConversionError(msg)
    with open(path, "rb") as file:
        if not file.read(1):
            msg = "The file is empty; fill it or leave it out."
            raise ConversionError(msg)


def run_converter(converter: Any, source: str | ByteStream) -> list[Document]:
    """
    Run a converter on one file.

    Haystack's converters log why they leave a file out; that log entry is turned into the error.

    :param converter: The converter.
    :param source: The file.
    :returns: The documents, at least one of them with text.
    :raises ConversionError: If there is none.
    """
    module = type(converter).__module__
    with _held_warnings(module) as warnings:
        documents: list[Document] = converter.run(sources=[source])["documents"]
    if not documents:
        reason = next((str(error) for error in (getattr(each, "error", "") for each in warnings) if error), "")
        detail = f" ({' '.join(reason.split()).rstrip('.')})" if reason else ""
        raise ConversionError(_unsound(f"{type(converter).__name__} found nothing that it can read{detail}"))
    if not any(document.content and not document.content.isspace() for document in documents):
        msg = "There is no text in it; pictures of text, as in a scan, need text recognition (OCR) first."
        raise ConversionError(msg)
    for record in warnings:
        logging.getLogger(module).handle(record)
    return documents


def reason_of(error: Exception, path: str) -> str:
    """
    Say in a sentence why a file was not converted.

    :param error: What was raised.
    :param path: Path of the file.
    :returns: The reason, with a way out.
    """
    if isinstance(error, ConversionError):
        return str(error)
    if isinstance(error, ImportError):
        return f"This type needs a library that is missing ({error.name}): {pip_install('files')}."
    if isinstance(error, FileNotFoundError):
        return (
            "It is a link to something that does not exist; mend or remove the link."
            if os.path.islink(path)
            else "It is there no more; was it moved or deleted meanwhile?"
        )
    if isinstance(error, OSError) and error.strerror:
        return f"It can't be read ({error.strerror}); check the file and who may read it."
    text = str(error).strip()
    return _unsound(f"It could not be converted ({type(error).__name__}{': ' + text.splitlines()[0] if text else ''})")


def _unsound(what: str) -> str:
    return f"{what}; check that it is a sound file of the type that its name says."


@contextmanager
def _held_warnings(name: str) -> Iterator[list[logging.LogRecord]]:
    """Hold back what this thread logs under a name, from warnings on."""
    thread = threading.get_ident()
    records: list[logging.LogRecord] = []

    def hold(record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING or record.thread != thread:
            return True
        records.append(record)
        return False

    logger = logging.getLogger(name)
    logger.addFilter(hold)
    try:
        yield records
    finally:
        logger.removeFilter(hold)
