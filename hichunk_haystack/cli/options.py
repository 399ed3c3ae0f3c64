# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Options that several commands have."""

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on standard output.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show Haystack's log, and tracebacks of errors.")]
PipelineName = Annotated[
    str | None,
    typer.Option("--pipeline", "-p", metavar="YAML", help="Your own pipeline, or one that comes along (query_hybrid)."),
]
IndexingName = Annotated[
    str | None,
    typer.Option(
        "--pipeline", "-p", metavar="YAML", help="Your own pipeline, or one that comes along (indexing_hybrid)."
    ),
]
Store = Annotated[
    str | None,
    typer.Option("--store", "-s", metavar="FOLDER|URL", help="Where the index is, instead of what the YAML says."),
]
Budget = Annotated[int | None, typer.Option("--budget", "-b", min=1, help="Most tokens of the context.")]
Policy = Annotated[str | None, typer.Option("--policy", help="How leaves merge: hichunk, ratio, parent or none.")]
TopK = Annotated[int | None, typer.Option("--top-k", "-k", min=1, help="How many leaves are searched for.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any other option of the merge, such as order=document."),
]
