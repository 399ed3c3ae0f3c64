# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Where a leaf stands, told by a language model: the part of the document it is shown, the prompt, and its answer."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hichunk_haystack.cutting import cut_to_fit
from hichunk_haystack.plans import Hit

LEAF_CONTEXT = "leaf_context"
"""Meta key of a leaf: one or two sentences on where it stands in its document. Never part of its content."""

FIELDS = ("document", "section", "number", "headings", "passage")

CONTEXT_TEMPLATE = """\
Below stands a part of the document "{document}", cut into numbered passages.

{section}

The passage to situate is [{number}]{headings}:

{passage}

In one or two short sentences, say what this passage is about and where in the document it stands, with the names that \
it takes for granted (of the subject, the product, the period), so that a search finds it. Use the passage's language. \
Do not repeat the passage. Answer with those sentences and nothing else."""
"""
What a model is asked. All that the leaves of a section have in common comes first, and is the same character for
character, so that a server that keeps the state of a prompt's beginning reads it once.
"""

# Share of the bound that the leaves of a cut-out take themselves; the rest is for their neighbours.
_CORE = 0.75

_FIELD = re.compile(r"\{(" + "|".join(FIELDS) + r")\}")
_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"\A```\w*\n(.*?)\n?```\Z", re.DOTALL)
_LABEL = re.compile(r"\A(\W{0,3}(context|kontext|contexte|contexto)\W{0,3}:)\s*", re.IGNORECASE)
_QUOTES = {'"': '"', "“": "”", "„": "“", "'": "'", "«": "»"}


@dataclass(frozen=True)
class Window:
    """
    Leaves that are asked about together, and what is shown around them; numbers of leaves in reading order.

    :param first: First leaf shown.
    :param low: First leaf asked about.
    :param high: The leaf behind the last one asked about.
    :param last: The leaf behind the last one shown.
    """

    first: int
    low: int
    high: int
    last: int


def section_windows(leaves: Sequence[Hit], limit: int) -> list[Window]:
    """
    Choose what a model is shown for each leaf: the largest node above it that fits.

    Leaves whose parent is too large already are shown in cut-outs of it: runs of leaves of at most three quarters of
    the bound, with neighbours on both sides as far as the bound allows. All leaves of a window are shown the same, so
    that a prompt's beginning is read once.

    :param leaves: The leaves of one tree in reading order.
    :param limit: The most tokens shown. A single leaf is shown whatever its length.
    :returns: Windows in order; each leaf is asked about in one of them.
    """
    if not leaves:
        return []
    keys = [_section(leaf, limit) for leaf in leaves]
    starts, weight = [0], leaves[0].tokens
    for number, (before, key) in enumerate(pairwise(keys), start=1):
        tokens = leaves[number].tokens
        if key != before or (key is None and weight + tokens > _CORE * limit):
            starts.append(number)
            weight = 0
        weight += tokens
    windows = []
    for low, high in pairwise([*starts, len(leaves)]):
        first, last = (low, high) if keys[low] is not None else _widened(leaves, low, high, limit)
        windows.append(Window(first, low, high, last))
    return windows


def show_section(texts: Sequence[str], leaves: Sequence[Hit]) -> str:
    """
    Write leaves down as numbered passages.

    :param texts: Their texts, in reading order.
    :param leaves: Their places; what a leaf repeats of the one before it is shown once.
    :returns: The passages, each under `[number]`, counted from 1.
    """
    shown = []
    end = 0
    for number, (text, leaf) in enumerate(zip(texts, leaves, strict=True), start=1):
        start = leaf.start or 0
        fresh = text[max(0, end - start) :].strip("\r\n")
        shown.append(f"[{number}]\n{fresh}")
        end = max(end, start + len(text))
    return "\n\n".join(shown)


def check_template(template: str) -> None:
    """
    Check that a template shows the section, then the passage.

    :param template: The template, with fields of `FIELDS` in braces.
    :raises ValueError: If one of the two is missing, or what differs from leaf to leaf comes before the section.
    """
    fields = _FIELD.findall(template)
    if fields.count("section") != 1 or "passage" not in fields:
        msg = (
            f"prompt_template must hold {{section}} once, and {{passage}} behind it; it holds "
            f"{', '.join(fields) or 'no field'}. The fields are: {', '.join(FIELDS)}."
        )
        raise ValueError(msg)
    early = [field for field in fields[: fields.index("section")] if field != "document"]
    if early:
        msg = (
            f"prompt_template holds {{{early[0]}}} in front of {{section}}: what differs from leaf to leaf must come "
            "behind, or no prompt shares its beginning with another, and a server reads the section anew for each."
        )
        raise ValueError(msg)


def fill(template: str, values: Mapping[str, str]) -> str:
    """
    Fill a template in; braces in the values stay as they are.

    :param template: The template.
    :param values: A value for each field.
    :returns: The prompt.
    """
    return _FIELD.sub(lambda match: values[match[1]], template)


def clean_context(answer: str, fits: Callable[[str], bool]) -> str:
    """
    Take the sentences out of a model's answer.

    Thoughts in tags, a fence, a label and quotation marks around the whole go; the rest becomes one line.

    :param answer: The answer.
    :param fits: Says whether a beginning of the sentences is short enough; a longer one is cut, at the end of a
        sentence if possible.
    :returns: The sentences; empty where there are none.
    """
    text = _THOUGHT.sub(" ", answer).strip()
    if fenced := _FENCE.match(text):
        text = fenced[1].strip()
    text = " ".join(_LABEL.sub("", text).split())
    if len(text) > 1 and _QUOTES.get(text[0]) == text[-1] and text[0] not in text[1:-1]:
        text = text[1:-1].strip()
    if not any(character.isalnum() for character in text):
        return ""
    return text if fits(text) else text[: cut_to_fit(text, fits)].rstrip()


def _section(leaf: Hit, limit: int) -> str | None:
    """Id of the largest node above a leaf that fits."""
    found = None
    for node in leaf.ancestors:
        if node.tokens > limit:
            break
        found = node.id
    return found


def _widened(leaves: Sequence[Hit], low: int, high: int, limit: int) -> tuple[int, int]:
    """Add neighbours, before and behind in turn, as long as they fit."""
    left = limit - sum(leaf.tokens for leaf in leaves[low:high])
    grown = True
    while grown:
        grown = False
        if low > 0 and leaves[low - 1].tokens <= left:
            low -= 1
            left -= leaves[low].tokens
            grown = True
        if high < len(leaves) and leaves[high].tokens <= left:
            left -= leaves[high].tokens
            high += 1
            grown = True
    return low, high
