# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Running the command `hichunk` as a user does."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
HICHUNK = [sys.executable, "-m", "hichunk_haystack.cli"]


def environment(folder: Path, **variables: str) -> dict[str, str]:
    """
    Make what the command sees, with nothing from outside that would change what it does.

    :param folder: Its home, with the index in `qdrant`.
    :param variables: More variables.
    :returns: Environment variables.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HAYHOOKS_", "QDRANT_", "XDG_", "HAYSTACK_", "COLUMNS", "FORCE_COLOR", "HICHUNK_"))
    }
    return kept | {
        "HF_HUB_OFFLINE": "1",
        "HOME": str(folder),
        "NO_COLOR": "1",  # of the help
        "PYTHONPATH": str(REPOSITORY),  # what is tested here, whatever is installed
        "PYTHONIOENCODING": "utf-8",
        "QDRANT_PATH": str(folder / "qdrant"),
        **variables,
    }


def hichunk(
    *arguments: Any,
    folder: Path,
    code: int = 0,
    typed: str = "",
    command: list[str] | None = None,
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    """
    Run the command, and check how it ends.

    :param arguments: Its arguments.
    :param folder: Where it runs.
    :param code: The exit code that is right.
    :param typed: What a user types.
    :param command: What to run instead of the module.
    :param variables: Environment variables.
    :returns: What it wrote.
    """
    done = subprocess.run(
        [*(command or HICHUNK), *map(str, arguments)],
        cwd=folder,
        env=environment(folder, **variables),
        input=typed,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=280,
        check=False,
    )
    assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr or "-v" in arguments
    return done


def told(*arguments: Any, folder: Path, code: int = 1, **options: Any) -> str:
    """
    Run the command where it has to fail, and give the one line that it tells.

    :param arguments: Its arguments.
    :param folder: Where it runs.
    :param code: The exit code that is right.
    :param options: As for `hichunk`.
    :returns: The line.
    """
    done = hichunk(*arguments, folder=folder, code=code, **options)
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


def answered(*arguments: Any, folder: Path, code: int = 0, **options: Any) -> Any:
    """
    Run the command with `--json`, and read what it answers.

    :param arguments: Its arguments.
    :param folder: Where it runs.
    :param code: The exit code that is right.
    :param options: As for `hichunk`.
    :returns: The answer.
    """

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    done = hichunk(*arguments, "--json", folder=folder, code=code, **options)
    return json.loads(done.stdout, parse_constant=refuse)
