# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""`hichunk index`."""

import glob
import os
import time
from typing import Annotated, Any

import typer

from hichunk_haystack.cli.errors import WRONG_USE, UserError
from hichunk_haystack.cli.gone import folders_of, gone_below
from hichunk_haystack.cli.options import AsJson, IndexingName, Store, Verbose
from hichunk_haystack.cli.quiet import hide_progress
from hichunk_haystack.cli.screen import amount, passed_over, say, say_json, warn
from hichunk_haystack.cli.specs import PipelineSpec, read_spec
from hichunk_haystack.cli.splitting import paths_socket
from hichunk_haystack.cli.stores import has_store, store_of

_COUNTS = ("sources", "leaves", "added", "replaced", "unchanged", "deleted")
_LISTS = ("failed", "skipped")


def index(
    paths: Annotated[list[str], typer.Argument(metavar="PATHS...", help="Files, folders, and patterns in quotes.")],
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete from the index what has gone from the folders that are named.")
    ] = False,
    pipeline: IndexingName = None,
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
    if prune and not folders_of(paths, _root(spec)):
        msg = "--prune looks for files that have gone from folders: name a folder among the paths."
        raise UserError(msg, WRONG_USE)
    loaded = spec.load()
    hide_progress(loaded)
    if has_store(spec):
        store_of(spec, loaded).store.count_documents()  # a server that does not answer is told before files are read
    component, socket = paths_socket(spec, loaded)
    start = time.monotonic()
    found = _gather(loaded.run({component: {socket: paths}}))
    gone = _gone(spec, loaded, paths, found)
    if prune and gone:
        _delete(spec, loaded, gone)
    found["gone"], found["pruned"] = ([], gone) if prune else (gone, [])
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


def _root(spec: PipelineSpec) -> str | None:
    """The folder that names of sources are relative to."""
    for name in spec.find("FileConverter"):
        root = spec.components[name]["init_parameters"].get("root")
        return None if root is None else str(root)
    return None


def _gone(spec: PipelineSpec, loaded: Any, paths: list[str], found: dict[str, Any]) -> list[str]:
    """
    Names of sources that have gone from the folders.

    A folder in which there was nothing to index may be the place of a disk that is not there.
    """
    unread = {each["path"] for each in found["failed"]}
    folders = folders_of([path for path in paths if path not in unread], _root(spec))
    if not folders or not has_store(spec) or not (found["sources"] or found["unchanged"]):
        return []
    from hichunk_haystack.stored_sources import list_sources

    opened = store_of(spec, loaded)
    names = [source.name for source in list_sources(opened.store, opened.source_key)]
    return gone_below(folders, names, _root(spec))


def _delete(spec: PipelineSpec, loaded: Any, names: list[str]) -> None:
    from hichunk_haystack.components.writers import HierarchyDeleter

    opened = store_of(spec, loaded)
    HierarchyDeleter(opened.store, source_key=opened.source_key).run(sources=[*names])


def _tell(found: dict[str, Any]) -> None:
    changes = [f"{found[name]:,} {name}" for name in ("added", "replaced", "unchanged") if found[name]]
    say(
        f"Indexed {amount(found['sources'], 'source')} as {amount(found['leaves'], 'leaf')}",
        f" ({', '.join(changes)})" if changes else "",
        f" in {found['seconds']:,} s",
    )
    if found["skipped"]:
        say((passed_over(found["skipped"]), "dim"))
    for name in found["pruned"]:
        say(f"Deleted {name} from the index: the file has gone")
    if found["gone"]:
        have, them = ("has", "it") if len(found["gone"]) == 1 else ("have", "them")
        files = amount(len(found["gone"]), "indexed file")
        say(f"{files} {have} gone from the disk; with --prune, `hichunk index` removes {them} from the index")
    for failure in found["failed"]:
        warn(f"Left out {failure['path']}: {failure['error']}")
