# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""`hichunk tree`."""

import re
import sys
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import typer

from hichunk_haystack.cli.options import AsJson, IndexingName, Verbose
from hichunk_haystack.cli.screen import amount, console, printable, say, say_json
from hichunk_haystack.cli.specs import read_spec
from hichunk_haystack.cli.splitting import split_file

_EXCERPT = 60  # characters of a leaf's text
_COLUMNS = ("titles", "level", "tokens", "start", "end", "first", "last")
_COLOURS = ("bold", "cyan", "green", "yellow", "magenta", "blue")
_LONGEST = 1000  # characters that an excerpt is made of
_HEADINGS = re.compile(r"\A(?:\s*#{1,6} [^\n]*\n)+\s*(?=\S)")
_ROOM = 24  # columns that lengths and titles are left at least


class _Node(NamedTuple):
    """A node of a tree."""

    titles: list[str]
    level: int
    tokens: int
    start: int
    end: int
    leaves: int
    text: str
    """Of a leaf."""
    children: list["_Node"]


def tree(
    file: Annotated[str, typer.Argument(help="A file; of a folder, every file is shown.")],
    depth: Annotated[int | None, typer.Option("--depth", "-d", min=0, help="Levels below the root.")] = None,
    pipeline: IndexingName = None,
    as_json: AsJson = False,
    verbose: Verbose = False,  # noqa: ARG001 - the guard around commands reads it
) -> None:
    """Show how a file is split: its tree with the length of every node. Nothing is indexed."""
    nodes = split_file(read_spec(pipeline, "indexing"), file)
    from hichunk_haystack.inspector.data import tree_data

    sources = [(source["name"], _root(source)) for source in tree_data(nodes)["sources"]]
    if as_json:
        say_json([{"source": name, **_as_data(root, depth)} for name, root in sources])
        return
    for number, (name, root) in enumerate(sources):
        total = f"  {amount(root.tokens, 'token')}, {amount(root.leaves, 'leaf')}"
        say("\n" if number else "", (name, "bold"), (total, "dim"))
        for guides, node in _lines(root, depth):
            _show(guides, node, depth)


def _root(source: dict[str, Any]) -> _Node:
    """The tree of what the inspector has by columns."""
    columns = source["nodes"]
    texts = dict(zip(source["leaves"], source["texts"], strict=True))
    made: list[_Node] = []
    for number, parent in enumerate(columns["parent"]):
        titles, level, tokens, start, end, first, last = (columns[name][number] for name in _COLUMNS)
        made.append(_Node(titles, level, tokens, start, end, last - first + 1, texts.get(number, ""), []))
        if parent is not None:  # parents come first
            made[parent].children.append(made[number])
    return made[0]


def _lines(root: _Node, depth: int | None) -> Iterator[tuple[str, _Node]]:
    """The nodes below the root in reading order, each with the lines of the tree in front."""
    last, middle, through, gap = ("└─ ", "├─ ", "│  ", "   ") if _draws() else ("`- ", "+- ", "|  ", "   ")
    # A list instead of recursion: trees may be deep.
    waiting = [(root, "")]
    while waiting:
        node, above = waiting.pop()
        if node is not root:
            is_last = above.endswith("\0")
            above = above.rstrip("\0")
            yield above + (last if is_last else middle), node
            above += gap if is_last else through
        if depth is None or node.level < depth:
            ends = [above] * (len(node.children) - 1) + [above + "\0"] * bool(node.children)
            waiting += reversed(list(zip(node.children, ends, strict=True)))


def _draws() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")


def _show(guides: str, node: _Node, depth: int | None) -> None:
    # The headings at a leaf's start are those of nodes above.
    text = _HEADINGS.sub("", node.text) or node.text
    excerpt = printable(" ".join(text[:_LONGEST].split()))
    title = " > ".join(node.titles)
    more = f", {amount(node.leaves, 'leaf')}" if depth is not None and node.level >= depth and node.children else ""
    tokens = f"  {amount(node.tokens, 'token')}{more}"
    room = _EXCERPT
    if console().is_terminal:
        room = max(_ROOM, min(_EXCERPT, console().width - len(guides) - len(title) - len(tokens) - 2))
    if len(excerpt) > room:
        excerpt = f"{excerpt[: room - 1]}…" if _draws() else f"{excerpt[: room - 3]}..."
    between = "  " if title and excerpt else ""
    named = title or ("" if excerpt else "(part)")
    say((guides, "dim"), (named, _COLOURS[min(node.level, len(_COLOURS) - 1)]), between, excerpt, (tokens, "dim"))


def _as_data(node: _Node, depth: int | None) -> dict[str, Any]:
    shown = depth is None or node.level < depth
    return {
        "titles": node.titles,
        "level": node.level,
        "tokens": node.tokens,
        "start": node.start,
        "end": node.end,
        "leaves": node.leaves,
        "children": [_as_data(child, depth) for child in node.children] if shown else [],
    }
