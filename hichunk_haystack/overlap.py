# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Leaves that repeat the end of the leaf before."""

from collections.abc import Sequence
from itertools import pairwise

from haystack.token_counters.types import TokenCounter

from hichunk_haystack.nodes import Node
from hichunk_haystack.tokens import count_texts
from hichunk_haystack.units import sentence_starts, word_starts


def overlap_leaves(
    text: str, nodes: Sequence[Node], counter: TokenCounter, overlap: int, limit: int, language: str = "en"
) -> None:
    """
    Have each leaf repeat the last sentences of the leaf before it, or the last words where no sentence fits.

    Leaves stay inside of their parent: its first one repeats nothing.

    :param text: The source.
    :param nodes: Its tree, with leaves of at most `limit - overlap` tokens; changed in place.
    :param counter: Token counter.
    :param overlap: The most tokens that are repeated.
    :param limit: The most tokens of a leaf, with what it repeats.
    :param language: ISO 639-1 code, for the sentences.
    """
    leaves = [node for node in nodes if not node.children]
    starts = {id(node): node.start for node in leaves}
    for before, leaf in pairwise(leaves):
        if before.parent == leaf.parent:
            start = _start(text, starts[id(before)], leaf, counter, (overlap, limit), language)
            leaf.start = start
    for leaf, count in zip(leaves, count_texts(counter, [text[leaf.start : leaf.end] for leaf in leaves]), strict=True):
        if leaf.start < starts[id(leaf)]:
            leaf.tokens = count
    for leaf in leaves:
        leaf.block_size = limit


def _start(text: str, low: int, leaf: Node, counter: TokenCounter, bounds: tuple[int, int], language: str) -> int:
    """The earliest start behind `low` for which what is repeated, and the whole leaf, fit."""
    overlap, limit = bounds
    high = leaf.start
    before = text[low:high]
    for places in (sentence_starts(before, language), word_starts(before)):
        # Nearer the end than this many there is more than enough.
        tails = [low + place for place in places[-2 * overlap :]]
        counts = count_texts(counter, [text[place:high] for place in tails[-64:]])
        for place, count in zip(tails[-64:], counts, strict=True):
            if count <= overlap and count_texts(counter, [text[place : leaf.end]])[0] <= limit:
                return place
    return high
