# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Finding the fenced blocks of a page, and the examples in docstrings."""

import ast
import re
import textwrap
from pathlib import Path

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text: str) -> list[tuple[str, str]]:
    """(language, content) of each fenced block."""
    return [(match[1], match[2]) for match in _BLOCK.finditer(text)]


def docstring_examples(path: Path) -> list[tuple[str, str]]:
    """(name, code) of each Python example in the docstrings of a module."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = textwrap.dedent(ast.get_docstring(node) or "")
            name = getattr(node, "name", path.stem)
            found += [(name, code) for language, code in blocks(text) if language == "python"]
    return found
