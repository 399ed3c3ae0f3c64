# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Front matter: the fields that stand above a text, between lines of dashes (YAML) or plus signs (TOML)."""

import re
import tomllib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import yaml
from haystack import Document

from hichunk_haystack.nodes import Node, is_leaf
from hichunk_haystack.unicode import well_formed

FRONT_MATTER = "__front_matter"
"""Meta key of a leaf in which nothing but front matter stands: `True`."""

# Longer than any front matter; the line that closes it is not looked for in all of a long text.
_MOST_CHARACTERS = 100_000
_OPENING = re.compile(r"\ufeff?(?:[ \t]*[\r\n])*(---|\+\+\+)[ \t]*(?:\r\n|\n|\r)")
_CLOSING = {"---": ("---", "..."), "+++": ("+++",)}
# A field, a list item, a comment, what closes a list or mapping, or anything that is indented.
_FIELD = {
    "---": re.compile(r"""["']?[^\s:#\-"'][^:]*:(?:\s|$)"""),
    "+++": re.compile(r"""["']?[\w.\-"' ]+=|\[.*\]"""),
}
_OTHER = re.compile(r"\s|-(?:\s|$)|#|[\]}]|$")

_TITLE = {
    "---": re.compile(r"""^(["']?)title\1[ \t]*:.*""", re.MULTILINE | re.IGNORECASE),
    "+++": re.compile(r"""^(["']?)title\1[ \t]*=.*""", re.MULTILINE | re.IGNORECASE),
}
# All values as texts: 1984 may be a title.
_READ: dict[str, Callable[[str], Any]] = {"---": partial(yaml.load, Loader=yaml.BaseLoader), "+++": tomllib.loads}
_LONGEST_TITLE = 300


def front_matter_end(text: str) -> int:
    """
    Find where the front matter of a text ends.

    It stands at the very beginning, starts with a field, and holds nothing but fields: two rules (`---`) with text
    between them are none.

    ```python
    from hichunk_haystack.front_matter import front_matter_end

    text = "---\\ntitle: Kiln\\n---\\n\\n# Kiln\\n"
    print(repr(text[: front_matter_end(text)]))
    ```

    :param text: The text.
    :returns: Offset behind the line that closes it; 0 where there is none.
    """
    opening = _OPENING.match(text)
    if opening is None:
        return 0
    mark = opening[1]
    fields = 0
    offset = opening.end()
    for line in text[offset : offset + _MOST_CHARACTERS].splitlines(keepends=True):
        offset += len(line)
        plain = line.rstrip()
        if plain in _CLOSING[mark]:
            return offset if fields else 0
        if _FIELD[mark].match(plain):
            fields += 1
        elif not (fields or plain.startswith("#")) or not (mark == "+++" or _OTHER.match(plain)):
            return 0
    return 0


def front_matter_title(text: str) -> str | None:
    """
    Find the title that the front matter of a text names, in a line of its own.

    ```python
    from hichunk_haystack.front_matter import front_matter_title

    print(front_matter_title("---\\ntitle: 'Kiln: a guide'\\n---\\n\\nFire it slowly.\\n"))  # Kiln: a guide
    ```

    :param text: The text.
    :returns: The title; `None` where there is none, or it is longer than 300 characters or no text.
    """
    end = front_matter_end(text)
    opening = _OPENING.match(text) if end else None
    if opening is None:
        return None
    line = _TITLE[opening[1]].search("\n".join(text[opening.end() : end].splitlines()))
    if line is None:
        return None
    try:
        fields = _READ[opening[1]](line[0])
    except (yaml.YAMLError, ValueError, RecursionError):  # as where the line does not end the title
        return None
    title = next(iter(fields.values()), None) if isinstance(fields, dict) else None
    plain = " ".join(well_formed(title).split()) if isinstance(title, str) else ""
    return plain if 0 < len(plain) <= _LONGEST_TITLE else None


def name_by_title(text: str, nodes: Sequence[Node]) -> None:
    """
    Put the title that the front matter names above all headings of a tree, unless the first of them says the same.

    Many sites keep the title of a page there and nowhere else.

    :param text: The source's text.
    :param nodes: The nodes of its tree, changed in place.
    """
    title = front_matter_title(text)
    first = next((node.headings[0] for node in nodes if node.headings), "")
    if title is None or _same(first, title):
        return
    for node in nodes:
        node.headings = [title, *node.headings]


def _same(one: str, other: str) -> bool:
    return " ".join(one.split()).casefold() == other.casefold()


def is_searched(document: Document) -> bool:
    """
    Say whether a document is there to be found: a leaf that is more than front matter.

    :param document: Any document.
    :returns: Whether it gets a vector.
    """
    return is_leaf(document) and document.meta.get(FRONT_MATTER) is not True


def mark_front_matter(nodes: list[Document]) -> None:
    """
    Mark the leaves of a tree in which nothing but front matter stands, unless nothing else is there.

    :param nodes: The nodes of a tree, the root first; leaves are changed in place.
    """
    text = (nodes[0].content or "") if nodes else ""
    end = front_matter_end(text)
    rest = text[end:].lstrip() if end else ""
    if not rest:
        return
    for node in nodes:
        if is_leaf(node) and node.meta["split_idx_end"] <= len(text) - len(rest):
            node.meta[FRONT_MATTER] = True
