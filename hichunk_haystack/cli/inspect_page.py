# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""`hichunk inspect`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from hichunk_haystack.cli.ask import prepare
from hichunk_haystack.cli.errors import WRONG_USE, UserError
from hichunk_haystack.cli.options import AsJson, Budget, PipelineName, Policy, Set, Store, TopK, Verbose
from hichunk_haystack.cli.querying import run_query
from hichunk_haystack.cli.screen import say, say_json
from hichunk_haystack.cli.settings import label_of, parse_settings
from hichunk_haystack.cli.specs import read_spec
from hichunk_haystack.cli.splitting import split_file


def inspect(
    file: Annotated[str | None, typer.Argument(help="A file, to see how it is split.")] = None,
    query: Annotated[
        str | None, typer.Option("--query", "-q", help="Instead of a file a question, to see what merges.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path("hichunk.html"),
    compare: Annotated[
        list[str] | None,
        typer.Option(
            "--compare", "-c", metavar="NAME=VALUE,...", help="The same question with other settings, beside the first."
        ),
    ] = None,
    budget: Budget = None,
    policy: Policy = None,
    top_k: TopK = None,
    more: Set = None,
    browse: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    pipeline: PipelineName = None,
    store: Store = None,
    as_json: AsJson = False,
    verbose: Verbose = False,  # noqa: ARG001 - the guard around commands reads it
) -> None:
    """Write a page that shows a file's tree, or what a question's hits merge into and why."""
    settings = parse_settings(more or [], budget=budget, policy=policy, top_k=top_k)
    if (file is None) == (query is None):
        msg = "Name either a file or, with --query, a question."
        raise UserError(msg, WRONG_USE)
    if query is None and (compare or settings or store):
        msg = "Settings of the merge, --compare and --store go with --query; a file is split as --pipeline says."
        raise UserError(msg, WRONG_USE)
    if output.is_dir() or (file is not None and output.exists() and output.samefile(file)):
        msg = f"'{output}' can't be the page: name another file with -o."
        raise UserError(msg, WRONG_USE)
    if query is None:
        page = _tree(str(file), pipeline)
    else:
        others = [settings | parse_settings([each]) for each in compare or ()]
        page = _query(query, [settings, *others], pipeline, store)
    from hichunk_haystack.inspector import save_page

    path = save_page(page, output)
    if as_json:
        say_json({"page": str(path), "bytes": len(page)})
    else:
        say(f"Wrote {path} ({len(page) / 1e6:.1f} MB)")
    if browse:
        typer.launch(path.as_uri())


def _tree(file: str, pipeline: str | None) -> str:
    nodes = split_file(read_spec(pipeline, "indexing"), file)
    from hichunk_haystack.inspector import tree_page

    return tree_page(nodes)


def _query(question: str, settings: list[dict[str, Any]], pipeline: str | None, store: str | None) -> str:
    spec = read_spec(pipeline, "query", store)
    # All are checked before one takes its time.
    specs = [prepare(spec, each, question) for each in settings]
    runs = []
    for each, changed in zip(settings, specs, strict=True):
        answer = run_query(changed, question)
        runs.append((label_of(each), answer.trace, answer.merged))
    from hichunk_haystack.inspector import query_page

    return query_page(question, runs)
