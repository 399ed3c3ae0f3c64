# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Where a listing may be cut: before functions and classes, else before statements, else between lines."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hichunk_haystack.units import Strength

_KEYWORDS = "class|interface|enum|struct|record|namespace|fun|func|function|def|object|trait|protocol|extension|module"
_MODIFIERS = (
    "public|private|protected|internal|static|final|abstract|override|open|inline|virtual|constexpr|suspend|sealed|"
    "data|export|default|unsafe|partial|async|pub|const|extern"
)
_DEFINITION = {
    "python": re.compile(r"(?:async +)?def\s|class\s"),
    "rust": re.compile(
        r"(?:pub(?:\([^)]{0,40}\))? +)?(?:(?:default|const|async|unsafe|extern(?: +\"[^\"]{0,20}\")?) +)*"
        r"(?:(?:fn|struct|enum|trait|impl|mod|union)\b|macro_rules!)"
    ),
    "go": re.compile(r"func\b|type\s"),
    "script": re.compile(
        rf"(?:(?:{_MODIFIERS}) +)*(?:function|class|interface|enum|namespace)\b|"
        r"(?:export +)?(?:const|let|var) +\w+ *= *(?:async *)?(?:function\b|\([^()]{0,200}\) *=>)"
    ),
    "braces": re.compile(rf"(?:(?:{_MODIFIERS}) +)*(?:{_KEYWORDS})\b"),
    "ruby": re.compile(r"(?:def|class|module)\s"),
    "shell": re.compile(r"function +\w|\w+ *\(\) *\{?"),
}
_LANGUAGES = {
    "python": "python py python3 py3 pycon starlark",
    "rust": "rust rs",
    "go": "go golang",
    "script": "javascript js jsx typescript ts tsx mjs",
    "braces": "java kotlin kt c cpp c++ h hpp cs csharp c# swift php scala dart d groovy zig",
    "ruby": "ruby rb crystal elixir",
    "shell": "sh bash zsh shell",
}
_FAMILY = {name: family for family, names in _LANGUAGES.items() for name in names.split()}
_HASH_COMMENTS = ("python", "ruby", "shell")

# What opens, closes or hides brackets. A quote that has no partner on its line hides nothing.
_TOKEN = re.compile(
    r'"""|\'\'\'|/\*|//|#|`|[()\[\]{}]|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.){1,2}\'|\'(?:[^\'\\\n{}();]|\\.)*\''
)
_STEPS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_CONTROL = frozenset(
    re.findall(r"\w+", "if for while switch catch else do return try using lock synchronized match loop unless case")
)
_CONTINUES = re.compile(r"[)\]}.]|(?:else|elif|except|finally|catch|end|esac|fi|done|then|do|where)\b|(?:&&|\|\||\?)")
_ABOVE = re.compile(r"@|#\[|//|/\*|\*|#")


@dataclass
class _Line:
    offset: int
    text: str
    indent: int
    inside: bool
    """Whether it starts inside of brackets, a text or a comment."""
    braces: int
    """How many braces are open where it starts."""


def code_boundaries(lines: Sequence[tuple[int, str]], language: str) -> dict[int, Strength]:
    """
    Find where to cut a listing.

    Functions and classes are found by their keywords, statements by counting brackets and skipping texts and comments:
    no full parser, so that unfinished examples and dialects are read as well. The comments, attributes and decorators
    above a function belong to it.

    :param lines: Offset and text of each line; offsets may count whatever the caller counts.
    :param language: What the fence says: `python`, `rs`, `c++`. In unknown languages every line is as good.
    :returns: Offset of each line but the first -> `BLOCK` for a function, `LINE` for a statement, `SENTENCE` for a line
        inside of a statement.
    """
    family = _FAMILY.get(language.lower())
    if family is None:
        return dict.fromkeys((offset for offset, _ in lines[1:]), Strength.LINE)
    read = list(_read(lines, family))
    found: dict[int, Strength] = {}
    top = 0  # number of the first comment or attribute above the line in hand
    for number, line in enumerate(read):
        above = bool(line.text) and (line.inside or _ABOVE.match(line.text) is not None)
        if _defines(line, family):
            found.update((each.offset, Strength.SENTENCE) for each in read[top : number + 1])
            found[read[top].offset] = Strength.BLOCK
        elif line.inside or not line.text or _CONTINUES.match(line.text):
            found[line.offset] = Strength.SENTENCE
        else:
            found[line.offset] = Strength.LINE
        if not above:
            top = number + 1
    if read:
        found.pop(read[0].offset, None)
    return found


def _read(lines: Sequence[tuple[int, str]], family: str) -> Iterator[_Line]:
    depth = braces = 0
    closing = ""  # of a text or comment over several lines
    for offset, line in lines:
        text = line.strip()
        yield _Line(offset, text, len(line) - len(line.lstrip()), bool(closing) or depth > 0, braces)
        position = 0
        while position < len(line):
            if closing:
                end = line.find(closing, position)
                if end < 0:
                    break
                position, closing = end + len(closing), ""
                continue
            match = _TOKEN.search(line, position)
            if match is None:
                break
            mark, position = match[0], match.end()
            if mark in ("//", "#") and (mark == "#") == (family in _HASH_COMMENTS):
                break
            closing = _closing(mark, family)
            if mark in _STEPS:
                if mark in "{}" and family != "python":
                    braces = max(0, braces + _STEPS[mark])
                else:
                    depth = max(0, depth + _STEPS[mark])


def _closing(mark: str, family: str) -> str:
    """What ends a comment or a text that may go over several lines; nothing where the mark opens none."""
    if mark == "/*" and family not in _HASH_COMMENTS:
        return "*/"
    return mark if mark in ('"""', "'''") or (mark == "`" and family in ("script", "go")) else ""


def _defines(line: _Line, family: str) -> bool:
    """Whether a function, a class or the like starts here, at the top or right inside of something."""
    if line.inside or line.braces > 1 or line.indent > 4:  # noqa: PLR2004 - one step of indentation
        return False
    if _DEFINITION[family].match(line.text):
        return True
    if family != "braces" or not line.text.endswith("{") or "(" not in line.text:
        return False
    head = line.text[: line.text.index("(")]
    words = head.split()
    return len(words) > 1 and words[0] not in _CONTROL and "=" not in head
