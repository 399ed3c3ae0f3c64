# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""The commands, put together. Nothing here or in their modules imports Haystack before a command runs."""

from typing import Annotated

import typer

from hichunk_haystack.cli.ask import ask
from hichunk_haystack.cli.bench import bench
from hichunk_haystack.cli.check import check
from hichunk_haystack.cli.delete import delete
from hichunk_haystack.cli.errors import guarded
from hichunk_haystack.cli.index import index
from hichunk_haystack.cli.inspect_page import inspect
from hichunk_haystack.cli.serve import serve
from hichunk_haystack.cli.sources import sources
from hichunk_haystack.cli.tree import tree

app = typer.Typer(
    name="hichunk",
    help="Index documents as trees, and ask them within a token budget.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in (index, ask, tree, inspect, sources, delete, check, bench, serve):
    app.command(_command.__name__)(guarded(_command))


def _show_version(shown: bool) -> None:
    if shown:
        from hichunk_haystack import __version__

        typer.echo(f"hichunk-haystack {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Index documents as trees, and ask them within a token budget."""
