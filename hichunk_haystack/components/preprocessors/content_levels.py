# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Paragraphs and sentences as levels of a tree, for the presets that want them."""

from collections.abc import Mapping
from dataclasses import replace

from hichunk_haystack.components.preprocessors.splitting import Structure
from hichunk_haystack.presets import PARAGRAPH_LEVEL, SENTENCE_LEVEL, Preset, content_points
from hichunk_haystack.units import paragraph_boundaries

CONTENT_MAX_LEVEL = SENTENCE_LEVEL
"""What a `TreeBuilder` has to let through, so that sentences get in."""


def builder_level(preset: Preset, max_level: int) -> int:
    """
    Say up to which level a tree builder takes cut points.

    :param preset: The sizes in force.
    :param max_level: The deepest level of headings.
    :returns: The same, or the level of sentences where these are wanted.
    """
    return CONTENT_MAX_LEVEL if preset.by_content else max_level


def preset_key(preset: Preset, max_level: int) -> str:
    """
    Give what a tree depends on besides the builder's settings.

    :param preset: The sizes in force.
    :param max_level: The deepest level of headings.
    :returns: A text; empty where there is nothing, so that ids stay as they were before there were presets.
    """
    return f" by content {max_level}" if preset.by_content else ""


def with_content_levels(
    text: str, structure: Structure, kinds: Mapping[int, str] | None, preset: Preset, max_level: int, language: str
) -> Structure:
    """
    Add paragraphs and sentences to the cut points of a source, where the preset wants them.

    :param text: The source's text.
    :param structure: What is known of it.
    :param kinds: Offset -> what starts there; prose where nothing is said.
    :param preset: The sizes in force.
    :param max_level: Headings of deeper levels do not start a section.
    :param language: ISO 639-1 code, for the sentences.
    :returns: The structure; the same where nothing is wanted.
    """
    if not preset.by_content:
        return structure
    headings = [
        replace(cut, level=min(cut.level, PARAGRAPH_LEVEL - 1))
        for cut in structure.cut_points
        if cut.level <= max_level
    ]
    boundaries = paragraph_boundaries(text) if structure.boundaries is None else structure.boundaries
    return replace(structure, cut_points=[*headings, *content_points(text, boundaries, kinds, language)])
