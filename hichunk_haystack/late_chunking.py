# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Late chunking (arXiv 2409.04701) over windows: from which one a token's vector comes, and to which leaf it goes."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Window:
    """
    What a model reads at once; numbers of tokens.

    :param start: First token read.
    :param end: The token behind the last one read.
    :param low: First token whose vector is taken from here.
    :param high: The token behind the last one whose vector is taken from here.
    """

    start: int
    end: int
    low: int
    high: int


def token_windows(count: int, size: int, overlap: int) -> list[Window]:
    """
    Cover a text with windows.

    Where two overlap, each gives the half that lies further from its edge, so that every token is read with at least
    half an overlap of text on either side, or all that there is.

    :param count: Number of tokens.
    :param size: The most tokens of a window.
    :param overlap: Tokens that a window shares with the one before it; more for the last one, which is as long as the
        others.
    :returns: The windows in order. Each token's vector is taken from one of them.
    """
    if count <= size:
        return [Window(0, count, 0, count)] if count else []
    starts = [*range(0, count - size, size - overlap), count - size]
    edges = [0, *((before + size + start) // 2 for before, start in pairwise(starts)), count]
    return [
        Window(start, start + size, low, high) for start, low, high in zip(starts, edges[:-1], edges[1:], strict=True)
    ]


def leaf_of_tokens(token_starts: Sequence[int], leaf_starts: Sequence[int]) -> list[int]:
    """
    Say to which leaf each token belongs: the one in which it starts.

    :param token_starts: Offsets of the tokens in a text.
    :param leaf_starts: Offsets of the leaves in the same text, in order, the first at 0.
    :returns: Number of the leaf, for each token.
    """
    return [bisect_right(leaf_starts, start) - 1 for start in token_starts]


def join_leaves(texts: Sequence[str], places: Sequence[int]) -> tuple[str, list[int]]:
    """
    Put leaves together to the text that they were cut from.

    :param texts: The leaves' texts in reading order.
    :param places: Their offsets in the source. What a leaf repeats of the one before it is left out; where leaves are
        missing, the others stand one behind the other with a line break between them.
    :returns: The text, and where each leaf begins in it. A leaf that is all repetition begins where the next one does.
    """
    parts: list[str] = []
    starts: list[int] = []
    length = 0
    reached = places[0] if places else 0
    for text, place in zip(texts, places, strict=True):
        if place > reached:
            parts.append("\n")
            length += 1
        starts.append(length)
        fresh = text[max(0, reached - place) :]
        parts.append(fresh)
        length += len(fresh)
        reached = max(reached, place + len(text))
    return "".join(parts), starts
