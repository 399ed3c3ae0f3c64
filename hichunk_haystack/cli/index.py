# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""`hichunk index`."""

import glob
import os
import time
from typing import Annotated, Any

import typer

from hichunk_haystack.cli.errors import UserError
from hichunk_haystack.cli.options import AsJson, PipelineName, Store, Verbose
from hichunk_haystack.cli.quiet import hide_progress
from hichunk_haystack.cli.screen import amount, say, say_json, warn
from hichunk_haystack.cli.specs import read_spec
from hichunk_haystack.cli.splitting import paths_socket

_COUNTS = ("sources", "leaves", "added", "replaced", "unchanged", "deleted")
_LISTS = ("failed", "skipped")


def index(
    paths: Annotated[list[str], typer.Argument(metavar="PATHS...", help="Files, folders, and patterns in quotes.")],
    pipeline: PipelineName = None,
    store: Store = None,
    as_json: AsJson = False,
    verbose: Verbose = False,  # noqa: ARG001 - the guard around commands reads it
) -> None:
    """Index files: new ones are added, changed ones replaced, unchanged ones left alone."""
    spec = read_spec(pipeline, "indexing", store)
    if pipeline is None and not any(glob.has_magic(path) or os.path.exists(path) for path in paths):
        # Before a model is loaded for them. A pipeline of the user's may have its paths elsewhere.
        msg = f"There is no {' and no '.join(repr(path) for path in paths)}: check the path."
        raise UserError(msg)
    loaded = spec.load()
    hide_progress(loaded)
    component, socket = paths_socket(spec, loaded)
    start = time.monotonic()
    found = _gather(loaded.run({component: {socket: paths}}))
    found["seconds"] = round(time.monotonic() - start, 1)
    if as_json:
        say_json(found)
    else:
        _tell(found)
    if not (found["sources"] or found["unchanged"] or found["failed"]):
        msg = "Nothing to index: there is no file of a type that is known. Name files or folders that hold some."
        raise UserError(msg)
    if found["failed"]:
        raise typer.Exit(1)


def _gather(result: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Counts and lists, from whichever component gives them; 0 where none does."""
    found: dict[str, Any] = {}
    for name in (*_COUNTS, *_LISTS, "report"):
        values = [outputs[name] for outputs in result.values() if name in outputs]
        if values or name != "report":
            found[name] = values[0] if values else [] if name in _LISTS else 0
    return found


def _tell(found: dict[str, Any]) -> None:
    changes = [f"{found[name]:,} {name}" for name in ("added", "replaced", "unchanged") if found[name]]
    say(
        f"Indexed {amount(found['sources'], 'source')} as {amount(found['leaves'], 'leaf')}",
        f" ({', '.join(changes)})" if changes else "",
        f" in {found['seconds']:,} s",
    )
    if found["skipped"]:
        say((f"Passed over {amount(len(found['skipped']), 'file')} of types that are not read", "dim"))
    for failure in found["failed"]:
        warn(f"Left out {failure['path']}: {failure['error']}")
