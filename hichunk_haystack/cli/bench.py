# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""`hichunk bench`."""

from pathlib import Path
from typing import Annotated

import typer

from hichunk_haystack.cli.errors import UserError
from hichunk_haystack.cli.options import Verbose
from hichunk_haystack.cli.screen import say
from hichunk_haystack.extras import pip_install


def bench(
    datasets: Annotated[
        list[Path],
        typer.Argument(metavar="DATASET...", help="Folders with docs/*.md, and qas.jsonl where there is one."),
    ],
    budgets: Annotated[
        list[int] | None,
        typer.Option("--budgets", "--budget", "-b", min=1, help="Budgets in tokens: --budgets 256 512 1024."),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for tables, plots, JSON and embeddings.")
    ] = Path("evaluation"),
    questions: Annotated[int | None, typer.Option("--questions", min=1, help="Most questions of each set.")] = None,
    every: Annotated[bool, typer.Option("--every", help="Each of our splitters with each policy.")] = False,
    model: Annotated[
        str, typer.Option("--model", help="The embedding model.")
    ] = "sentence-transformers/all-MiniLM-L6-v2",
    verbose: Verbose = False,  # noqa: ARG001 - the guard around commands reads it
) -> None:
    """Measure evidence recall of ours and of others on data sets. A run that was broken off goes on."""
    folders, further = _apart(datasets)
    chosen = [*(budgets or ()), *further]
    try:
        from hichunk_haystack.evaluation.benchmark import BUDGETS
        from hichunk_haystack.evaluation.command import compare

        for folder in folders:
            say(compare(folder, output, chosen or list(BUDGETS), model=model, every=every, most=questions))
    except ModuleNotFoundError as error:
        needed = pip_install("local", "evaluation")
        msg = f"The benchmark needs a library that is missing ({error.name}): {needed}."
        raise UserError(msg) from error


def _apart(arguments: list[Path]) -> tuple[list[Path], list[int]]:
    """
    Tell data sets and budgets apart.

    An option takes one value, so that of `--budgets 256 512` the second number comes as an argument.
    """
    numbers = [path for path in arguments if str(path).isdecimal() and not path.exists()]
    folders = [path for path in arguments if path not in numbers]
    if not folders:
        msg = "No data set is named, only budgets: hichunk bench FOLDER --budgets 256 512."
        raise UserError(msg)
    return folders, [int(str(number)) for number in numbers]
