# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""`hichunk sources`."""

from dataclasses import asdict

from hichunk_haystack.cli.options import AsJson, IndexingName, Store, Verbose
from hichunk_haystack.cli.screen import amount, say, say_json
from hichunk_haystack.cli.specs import read_spec
from hichunk_haystack.cli.stores import open_store


def sources(
    pipeline: IndexingName = None,
    store: Store = None,
    as_json: AsJson = False,
    verbose: Verbose = False,  # noqa: ARG001 - the guard around commands reads it
) -> None:
    """List what is indexed, one source a line with its length."""
    opened = open_store(read_spec(pipeline, "indexing", store))
    from hichunk_haystack.stored_sources import list_sources

    found = list_sources(opened.store, opened.source_key)
    if as_json:
        say_json([asdict(source) for source in found])
        return
    lengths = [(amount(source.leaves, "leaf"), amount(source.tokens, "token")) for source in found]
    widths = [max(map(len, column), default=0) for column in zip(*lengths, strict=True)]
    for source, columns in zip(found, lengths, strict=True):
        shown = "  ".join(text.rjust(width) for text, width in zip(columns, widths, strict=True))
        note = "" if source.complete else "  not complete: index it again"
        say((shown, "dim"), f"  {source.name}", (note, "yellow"))
    if not found:
        say("Nothing is indexed.")
