# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What goes wrong, in one sentence with a way out."""

import sys
import traceback
from collections.abc import Callable
from functools import wraps
from typing import Any

import typer

from hichunk_haystack.cli import INTERRUPTED
from hichunk_haystack.cli.quiet import set_up_logging
from hichunk_haystack.cli.screen import warn

_MOST_CHARACTERS = 600
_FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, NameError, TypeError)
WRONG_USE = 2
"""Exit code where the arguments make no sense."""


class UserError(Exception):
    """An error that is told as it is."""

    def __init__(self, message: str, code: int = 1) -> None:
        """
        Make the error.

        :param message: One sentence with a way out.
        :param code: Exit code: 1, or 2 for wrong use.
        """
        super().__init__(message)
        self.code = code


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """
    Turn what a command raises into a sentence and an exit code.

    :param command: The command.
    :returns: The same command.
    """

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        verbose = bool(kwargs.get("verbose"))
        set_up_logging(verbose)
        try:
            command(*args, **kwargs)
        except BrokenPipeError:
            raise
        except Exception as error:
            if type(error).__module__.split(".")[0] in ("typer", "click"):  # exit codes and wrong use
                raise
            if verbose:
                traceback.print_exc()
            warn(explain(error))
            raise typer.Exit(error.code if isinstance(error, UserError) else 1) from None
        except KeyboardInterrupt:
            sys.stderr.write("\nInterrupted.\n")
            raise typer.Exit(INTERRUPTED) from None

    return run


def explain(error: BaseException) -> str:
    """
    Say what went wrong.

    :param error: What was raised, by a pipeline or elsewhere.
    :returns: A sentence in one line.
    """
    # What Haystack raises tells of the component, with its code; what the component raised is the cause.
    while type(error).__module__ == "haystack.core.errors" and error.__cause__ is not None:
        error = error.__cause__
    text = " ".join(str(error).split())
    if isinstance(error, UserError) or _is_ours(error):
        return text
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: '{error.filename}'." if error.filename else f"{error.strerror}."
    if len(text) > _MOST_CHARACTERS:
        text = f"{text[:_MOST_CHARACTERS]}..."
    return f"{type(error).__name__}: {text.rstrip('.')}. With -v it is shown where."


def _is_ours(error: BaseException) -> bool:
    """Whether it was raised by this package, whose messages say what to do; and is no fault of it."""
    if isinstance(error, _FAULTS):
        return False
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    return step is not None and str(step.tb_frame.f_globals.get("__name__")).startswith("hichunk_haystack.")
