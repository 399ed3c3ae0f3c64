# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Headers above passages that start in the middle of a table."""

from collections.abc import Collection, Sequence
from itertools import pairwise

from hichunk_haystack.components.builders.citations import source_of
from hichunk_haystack.components.builders.passages import Passage
from hichunk_haystack.nodes import TREE_ID

_LONGEST = 1000  # characters; a longer header would crowd out the rows


def header_of(passage: Passage) -> str:
    """
    Find the header that a passage lacks.

    :param passage: A passage; the meta of its first document has `table_header` if it starts behind that of a table.
    :returns: The header's lines, such as "| day | hours |\\n|---|---|"; empty where it lacks none.
    """
    document = passage.documents[0]
    header = document.meta.get("table_header")
    if not isinstance(header, str) or (document.content or "")[: passage.lead].strip():
        return ""
    header = header.strip()
    return "" if len(header) > _LONGEST or passage.text.lstrip().startswith(header) else header


def add_headers(passages: Sequence[Passage], without: Collection[str]) -> None:
    """
    Put headers above the passages that lack them, where the passage in front of them does not show the same one.

    :param passages: All passages in the order in which they are shown.
    :param without: Ids of documents that go without.
    """
    wanted = [header_of(passage) for passage in passages]
    # The header that a reader knows behind a passage.
    known = [
        "" if passage.documents[0].id in without else header for passage, header in zip(passages, wanted, strict=True)
    ]
    if passages:
        passages[0].header = known[0]
    for (before, passage), header, above in zip(pairwise(passages), known[1:], known, strict=False):
        seen = _source(before) == _source(passage) and (header == above or header in before.text)
        passage.header = "" if seen else header


def _source(passage: Passage) -> str:
    document = passage.documents[0]
    return str(document.meta["source_id"]) if TREE_ID in document.meta else source_of(document)
