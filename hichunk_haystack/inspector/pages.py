# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Self-contained pages: the data, the style and the script in one file that asks nothing of the network."""

import base64
import hashlib
import html
import json
import math
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from haystack import Document

from hichunk_haystack.inspector.data import Run, query_data, tree_data
from hichunk_haystack.unicode import well_formed

_SCRIPTS = ("common.js", "rows.js", "tree.js", "trace.js", "bar.js", "chart.js", "summary.js", "query.js")
_LONGEST_TITLE = 120  # characters in the browser's tab

# In JSON, "<" stands inside of strings only. Written as an escape it can neither close the script element that holds
# the data nor open a comment. All that is not ASCII is escaped too, lone surrogates and U+2028 among it.
_HARMLESS = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def tree_page(documents: Iterable[Document], *, title: str | None = None) -> str:
    """
    Make a page that shows trees: the nodes with their lengths, and the text with the borders of its leaves.

    ```python
    from haystack import Document

    from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
    from hichunk_haystack.inspector import tree_page

    text = "# Kiln\\n\\nFire it slowly. Then let it cool.\\n\\n# Wheel\\n\\nCentre the clay first.\\n"
    nodes = MarkdownHierarchicalSplitter(leaf_tokens=10, min_leaf_tokens=1).run([Document(content=text)])["documents"]
    print(tree_page(nodes)[:15])  # <!DOCTYPE html>
    ```

    :param documents: All nodes of one source or several, as a splitter gave them or a store holds them, in any order.
    :param title: Of the page; by default the source's name, or the number of sources.
    :returns: The page, in ASCII.
    :raises ValueError: If documents are missing or are no trees; the message says what to pass.
    """
    data = tree_data(documents)
    sources = data["sources"]
    default = sources[0]["name"] if len(sources) == 1 else f"{len(sources)} sources"
    return _page(title or default, data)


def query_page(query: str, runs: Sequence[Run | tuple[Any, ...]], *, title: str | None = None) -> str:
    """
    Make a page that shows what a merge did with a query's hits, step by step; several merges stand side by side.

    ```python
    from haystack import Document
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    from hichunk_haystack.components.retrievers import BudgetAutoMergingRetriever
    from hichunk_haystack.inspector import Run, query_page

    result = BudgetAutoMergingRetriever(InMemoryDocumentStore()).run([Document(content="Fire it slowly.")])
    page = query_page("How is a kiln fired?", [Run("4,096 tokens", result["trace"], result["documents"])])
    print(page[:15])  # <!DOCTYPE html>
    ```

    :param query: The question.
    :param runs: One or more merges of its hits: label, `trace` of the `BudgetAutoMergingRetriever` and, where the whole
        texts are to be shown, its `documents`.
    :param title: Of the page; by default the question.
    :returns: The page, in ASCII.
    :raises ValueError: If there is no run, or a trace is of another schema; the message says what to do.
    """
    return _page(title or query, query_data(query, runs))


def save_page(page: str, path: str | Path) -> Path:
    """
    Write a page to a file; its folder is made if it is not there.

    :param page: What `tree_page` or `query_page` gave.
    :param path: Where to write it; what was there goes.
    :returns: The absolute path.
    :raises OSError: If it can't be written.
    """
    path = Path(path).absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="ascii")
    return path


def _page(title: str, data: dict[str, Any]) -> str:
    style = _asset("page.css")
    script = '"use strict";\n' + "\n".join(_asset(name) for name in _SCRIPTS)
    payload = json.dumps(_finite({"title": title, **data}), default=str, allow_nan=False, separators=(",", ":"))
    tab = " ".join(title.split())
    tab = tab if len(tab) <= _LONGEST_TITLE else tab[: _LONGEST_TITLE - 1] + "…"
    parts = {
        "title": html.escape(_printable(tab)),
        "style": style,
        "style_hash": _hash(style),
        "script": script,
        "script_hash": _hash(script),
        "data": payload.translate(_HARMLESS),
    }
    page = _asset("page.html")
    # Split at the marks, not replaced one after the other: data that looks like a mark stays what it is.
    pieces = page.split("%%")
    page = "".join(parts[piece] if number % 2 else piece for number, piece in enumerate(pieces))
    return page.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _asset(name: str) -> str:
    text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    return text.replace("\r\n", "\n")


def _hash(text: str) -> str:
    """What the content security policy knows an inline element by."""
    return base64.b64encode(hashlib.sha256(text.encode("ascii")).digest()).decode("ascii")


def _printable(text: str) -> str:
    # Joiners hold emoji and some scripts together.
    return "".join(c if c.isprintable() or c in "\u200c\u200d" else "\ufffd" for c in well_formed(text))


def _finite(value: Any) -> Any:
    """JSON has no words for NaN and infinities, which scores may be."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
