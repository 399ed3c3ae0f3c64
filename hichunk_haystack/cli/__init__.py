# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""The command `hichunk`."""

import os
import signal
import sys

from hichunk_haystack.extras import pip_install

_NO_TYPER = f"The command needs libraries that are missing ({{}}): {pip_install('cli')}.\n"
INTERRUPTED = 128 + signal.SIGINT
"""Exit code after Ctrl-C."""


def main() -> None:
    """Run the command, and end the process with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # names and texts that the terminal can't show
    try:
        try:
            from hichunk_haystack.cli.app import app
        except ModuleNotFoundError as error:
            if (error.name or "").split(".")[0] not in ("typer", "rich"):
                raise
            sys.stderr.write(_NO_TYPER.format(error.name))
            sys.exit(1)
        app(prog_name="hichunk")
    except KeyboardInterrupt:
        sys.stderr.write("\nInterrupted.\n")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # Whoever read the output has enough. Python would complain once more when it closes it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
