# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""`hichunk delete`."""

import os
import sys
from collections.abc import Sequence
from pathlib import PurePath
from typing import Annotated

import typer

from hichunk_haystack.cli.errors import WRONG_USE, UserError
from hichunk_haystack.cli.options import AsJson, IndexingName, Store, Verbose
from hichunk_haystack.cli.screen import amount, say, say_json
from hichunk_haystack.cli.specs import read_spec
from hichunk_haystack.cli.stores import open_store

_MOST_NAMES = 5


def delete(
    names: Annotated[
        list[str], typer.Argument(metavar="SOURCE...", help="As `hichunk sources` names them, or the end of a path.")
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    pipeline: IndexingName = None,
    store: Store = None,
    as_json: AsJson = False,
    verbose: Verbose = False,  # noqa: ARG001 - the guard around commands reads it
) -> None:
    """Delete sources from the index. Files on the disk stay."""
    if as_json and not yes:
        msg = "With --json nothing is asked: add --yes."
        raise UserError(msg, WRONG_USE)
    opened = open_store(read_spec(pipeline, "indexing", store))
    from hichunk_haystack.components.writers import HierarchyDeleter
    from hichunk_haystack.stored_sources import list_sources

    there = [source.name for source in list_sources(opened.store, opened.source_key)]
    chosen = list(dict.fromkeys(resolve(name, there) for name in names))
    if not yes:
        for name in chosen:
            say(f"  {name}")
        sys.stdout.write(f"Delete {amount(len(chosen), 'source')} from the index? [y/N] ")
        sys.stdout.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            msg = "Nothing was deleted; --yes deletes without asking."
            raise UserError(msg)
    result = HierarchyDeleter(opened.store, source_key=opened.source_key).run(sources=[*chosen])
    if as_json:
        say_json({"sources": chosen, "deleted": result["deleted"]})
    else:
        say(f"Deleted {amount(result['sources'], 'source')}, {amount(result['deleted'], 'node')}.")


def resolve(name: str, there: Sequence[str | int]) -> str | int:
    """
    Find the source that is meant.

    :param name: Its name, a relative path, or the end of a path.
    :param there: Names of the sources that are indexed.
    :returns: The name.
    :raises UserError: If none is meant, or more than one.
    """
    for exact in (name, os.path.abspath(name), os.path.realpath(name)):
        if exact in there:
            return exact
    numbers = [one for one in there if isinstance(one, int) and str(one) == name]
    parts = PurePath(name).parts
    ends = [one for one in there if isinstance(one, str) and parts and PurePath(one).parts[-len(parts) :] == parts]
    found = numbers + ends
    if len(found) == 1:
        return found[0]
    if not found:
        msg = f"'{name}' is not indexed; nothing was deleted. `hichunk sources` lists what is."
        raise UserError(msg)
    shown = ", ".join(map(str, found[:_MOST_NAMES])) + (" and more" if len(found) > _MOST_NAMES else "")
    msg = f"'{name}' can be {shown}; nothing was deleted. Name more of the path."
    raise UserError(msg)
