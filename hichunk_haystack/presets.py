# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Settings of splitters that go by a name."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hichunk_haystack.sections import CutPoint
from hichunk_haystack.text_units import units_between
from hichunk_haystack.units import Strength

LEAF_TOKENS = 200
MIN_LEAF_TOKENS = 20

# Below all levels that headings have.
PARAGRAPH_LEVEL = 9
SENTENCE_LEVEL = 10

_PROSE = frozenset({"paragraph", "list item", "quote", "footnote"})


@dataclass(frozen=True)
class Preset:
    """
    Sizes of a tree.

    :param leaf_tokens: The most tokens of a leaf.
    :param min_leaf_tokens: What is smaller joins its neighbour.
    :param inner_tokens: Bounds of the inner nodes that group leaves; `None` for the usual ones, 4 and 16 times a leaf.
    :param by_content: Whether paragraphs and sentences are levels of the tree.
    """

    leaf_tokens: int = LEAF_TOKENS
    min_leaf_tokens: int = MIN_LEAF_TOKENS
    inner_tokens: tuple[int, ...] | None = None
    by_content: bool = False


PRESETS = {
    # Sections, and leaves of 200 tokens right below them: HC200 of arXiv 2509.11552.
    "hc200": Preset(leaf_tokens=200, inner_tokens=()),
    # Document, section, paragraph, sentence: arXiv 2603.07612. A sentence of less than 12 tokens joins its neighbour,
    # and so does a title; one of more than 100 tokens is cut.
    "kohaku": Preset(leaf_tokens=100, min_leaf_tokens=12, inner_tokens=(), by_content=True),
    # The sizes of LlamaIndex's HierarchicalNodeParser, inside of sections.
    "llamaindex": Preset(leaf_tokens=128, inner_tokens=(512, 2048)),
}


def resolve_preset(name: str | None, leaf_tokens: int, min_leaf_tokens: int, inner_tokens: list[int] | None) -> Preset:
    """
    Find the sizes that a splitter works with.

    :param name: Name of a preset, or `None`.
    :param leaf_tokens: As it was given; another value than the usual 200 goes before that of the preset.
    :param min_leaf_tokens: The same; the usual value is 20. It is held down to the leaf's size.
    :param inner_tokens: The same; the usual value is `None`.
    :returns: The sizes.
    :raises ValueError: If there is no such preset.

    ```python
    from hichunk_haystack.presets import resolve_preset

    print(resolve_preset("llamaindex", 64, 20, None))  # leaves of 64 tokens, the rest as LlamaIndex has it
    ```
    """
    inner = None if inner_tokens is None else tuple(inner_tokens)
    if name is None:
        return Preset(leaf_tokens, min_leaf_tokens, inner)
    if name not in PRESETS:
        msg = f"preset is {name!r}; there are {', '.join(sorted(PRESETS))}, and None."
        raise ValueError(msg)
    preset = PRESETS[name]
    leaf = preset.leaf_tokens if leaf_tokens == LEAF_TOKENS else leaf_tokens
    least = preset.min_leaf_tokens if min_leaf_tokens == MIN_LEAF_TOKENS else min_leaf_tokens
    if inner is None and preset.inner_tokens is not None:
        inner = tuple(size for size in preset.inner_tokens if size > leaf)
    return Preset(leaf, min(least, leaf) if least != min_leaf_tokens else least, inner, preset.by_content)


def content_points(
    text: str, boundaries: Mapping[int, Strength], kinds: Mapping[int, str] | None, language: str
) -> Iterator[CutPoint]:
    """
    Give the cut points at which paragraphs and sentences start.

    Tables, listings and the like are a paragraph as a whole.

    :param text: The text.
    :param boundaries: Offset -> how good a cut there is.
    :param kinds: Offset -> what starts there; prose where nothing is said.
    :param language: ISO 639-1 code, for the sentences.
    :returns: Cut points without titles, of levels below those of all headings.
    """
    for unit in units_between(text, boundaries, kinds, language):
        if unit.kind == "heading" or not unit.start:
            continue
        # A cut behind a heading is a bad one for a leaf, but what stands there is a paragraph all the same.
        if unit.strength >= Strength.BLOCK or (unit.kind in _PROSE and unit.strength < Strength.SENTENCE):
            yield CutPoint(unit.start, PARAGRAPH_LEVEL)
        elif unit.kind in _PROSE:
            yield CutPoint(unit.start, SENTENCE_LEVEL)
