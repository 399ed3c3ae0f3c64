# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""`hichunk check`."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from hichunk_haystack.cli.options import AsJson, IndexingName, Store, Verbose
from hichunk_haystack.cli.screen import amount, say, say_json
from hichunk_haystack.cli.specs import read_spec
from hichunk_haystack.cli.stores import open_store

if TYPE_CHECKING:
    from hichunk_haystack.integrity import IntegrityReport

_WRONG = {
    "orphans": "without their parent",
    "missing_children": "missing, though their parent names them",
    "doubled": "in two versions",
    "unfinished": "not written to the end",
    "without_vector": "without a vector, so that no search finds them",
    "wrong_size": "with a vector of the wrong size",
}
_OF_SOURCES = ("doubled", "unfinished")
_MOST_NAMES = 5


def check(
    repair: Annotated[bool, typer.Option("--repair", help="Remove what is left over or not whole.")] = False,
    pipeline: IndexingName = None,
    store: Store = None,
    as_json: AsJson = False,
    verbose: Verbose = False,  # noqa: ARG001 - the guard around commands reads it
) -> None:
    """Check that every tree in the index is whole. The exit code is 1 where one is not."""
    opened = open_store(read_spec(pipeline, "indexing", store))
    from hichunk_haystack import integrity

    if repair:
        repaired = integrity.repair(opened.store, source_key=opened.source_key)
        found, removed, again = repaired.found, repaired.removed, repaired.index_again
    else:
        found, removed, again = integrity.check(opened.store, source_key=opened.source_key), 0, []
    if as_json:
        extra = {"removed": removed, "index_again": again} if repair else {}
        say_json({"sound": found.sound, **asdict(found), **extra})
    else:
        _tell(found)
        if repair and not found.sound:
            say(f"Removed {amount(removed, 'node')}.")
            if again:
                say("Index again: ", _names(again))
        elif not found.sound:
            say("`hichunk check --repair` removes what is left over, and tells what to index again.")
    if again or not (found.sound or repair):
        raise typer.Exit(1)


def _tell(found: "IntegrityReport") -> None:
    say(f"{amount(found.sources, 'source')}, {amount(found.leaves, 'leaf')}, {amount(found.documents, 'node')}")
    for name, meaning in _WRONG.items():
        names = getattr(found, name)
        if names:
            what = amount(len(names), "source" if name in _OF_SOURCES else "node")
            say((f"{what} {meaning}", "yellow"), f": {_names(names)}")
    if not found.vectors_checked:
        say("Vectors were not looked at: the store does not give them away.")
    if found.sound:
        say(("All trees are whole.", "green"))


def _names(names: Sequence[str | int]) -> str:
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(map(str, names[:_MOST_NAMES])) + more
