# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Cutting a text into pieces that all fit a bound, and packing pieces up to a bound."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, chain, islice, pairwise
from math import ceil

from haystack.token_counters.types import TokenCounter

from hichunk_haystack.tokens import count_texts
from hichunk_haystack.units import Strength, character_edge, sentence_starts, word_starts
from hichunk_haystack.weights import CHARACTERS_PER_TOKEN, weigh

# Text has at least about this many characters to a token: longer blocks are offered sentence by sentence at once, which
# spares counting them twice.
_LIKELY_CHARACTERS_PER_TOKEN = 3

# Next to these an additive counter's counts add up.
_SEAMS = frozenset(" \t\n\r。！？")


@dataclass
class Atoms:
    """
    A text in pieces that are never cut again.

    :param starts: Offset in characters of each piece, then the length of the text.
    :param strengths: How good a cut in front of each piece is.
    :param tokens: Sum of the lengths in tokens of the pieces before each, then of all.
    :param weights: The same for what the bound is held against: tokens, or characters where a piece has very few.
    :param at_seams: Whether each piece starts with, or the one before it ends with, white space or a full stop.
    """

    starts: list[int]
    strengths: list[Strength]
    tokens: list[int]
    weights: list[int]
    at_seams: bool


Piece = tuple[int, int, Strength]


@dataclass
class _Cutting:
    """A text while it is being cut."""

    text: str
    pieces: list[Piece]
    counts: list[int] = field(default_factory=list)
    fits: bool = False
    """Whether no piece is above the limit, as was found before."""

    def heavy(self, limit: int) -> list[int]:
        """Numbers of the pieces above the limit."""
        if self.fits:
            return []
        # Nothing shorter than this can weigh too much by its characters.
        most = CHARACTERS_PER_TOKEN * limit
        found = [
            number
            for number, ((start, stop, _), count) in enumerate(zip(self.pieces, self.counts, strict=True))
            if count > limit or (stop - start > most and weigh(self.text[start:stop], count) > limit)
        ]
        self.fits = not found
        return found

    def atoms(self) -> Atoms:
        """What came out."""
        text, pieces = self.text, self.pieces
        weights = [
            count if stop - start <= CHARACTERS_PER_TOKEN * count else weigh(text[start:stop], count)
            for (start, stop, _), count in zip(pieces, self.counts, strict=True)
        ]
        return Atoms(
            starts=[*[piece[0] for piece in pieces], len(text)],
            strengths=[piece[2] for piece in pieces],
            tokens=list(accumulate(self.counts, initial=0)),
            weights=list(accumulate(weights, initial=0)),
            at_seams=all(text[start - 1] in _SEAMS or text[start] in _SEAMS for start, _, _ in pieces[1:]),
        )


def make_atoms(
    sources: Sequence[tuple[str, Mapping[int, Strength]]], limit: int, counter: TokenCounter, language: str = "en"
) -> list[Atoms]:
    """
    Cut texts at the given places, and what is then above the limit at sentences, at words, between characters.

    All texts are counted together, since a tokenizer is fastest on many texts at once.

    :param sources: Texts, each with something in it that is no white space, and for each offset in characters ->
        strength.
    :param limit: The most tokens a piece may have; only a single character may have more.
    :param counter: Token counter.
    :param language: ISO 639-1 code, for the sentences.
    :returns: The pieces of each text.
    """
    divisions: list[Division] = [
        lambda text, piece: _divide(piece, sentence_starts(text[piece[0] : piece[1]], language), Strength.SENTENCE),
        lambda text, piece: _divide(piece, word_starts(text[piece[0] : piece[1]]), Strength.WORD),
    ]
    cuttings = [_Cutting(text, _first_pieces(text, boundaries, limit, divisions[0])) for text, boundaries in sources]
    counts = iter(_count_all([(cutting.text, cutting.pieces) for cutting in cuttings], counter))
    for cutting in cuttings:
        cutting.counts = list(islice(counts, len(cutting.pieces)))
    for divide in divisions:
        _divide_heavy(cuttings, limit, counter, divide)
    while _divide_heavy(cuttings, limit, counter, partial(_divide_by_length, most=CHARACTERS_PER_TOKEN * limit)):
        pass
    return [cutting.atoms() for cutting in cuttings]


def pack(
    weights: Sequence[int], strengths: Sequence[Strength], low: int, high: int, limit: int, minimum: int
) -> list[int]:
    """
    Put neighbouring pieces together into parts that fit a limit, at the best boundaries and of similar sizes.

    A part ends at a boundary between blocks when one leaves it at least half of its fair share, else at any boundary of
    a block or line that leaves it a quarter, else at a sentence, else wherever it must. Among equally good places the
    one nearest to the fair share (what is left over the number of parts it needs) is taken, so that there is no tiny
    rest.

    :param weights: Sums of the sizes of the pieces before each, then of all.
    :param strengths: How good a cut in front of each piece is.
    :param low: Number of the first piece.
    :param high: Number after the last piece.
    :param limit: The most that a part may hold; a single piece may be above it.
    :param minimum: Parts smaller than this are avoided.
    :returns: The number after the last piece of each part; the last one is `high`.
    """
    ends = []
    position = low
    while weights[high] - weights[position] > limit and high - position > 1:
        rest = weights[high] - weights[position]
        share = rest / ceil(rest / limit)
        last = bisect_right(weights, weights[position] + limit, position + 1, high + 1) - 1
        last = min(max(last, position + 1), high - 1)
        position = _best_end(weights, strengths, position, last, rest, share, minimum)
        ends.append(position)
    return [*ends, high]


def _best_end(
    weights: Sequence[int],
    strengths: Sequence[Strength],
    position: int,
    last: int,
    rest: int,
    share: float,
    minimum: int,
) -> int:
    """The best place in (position, last] for a part to end."""
    quarter = max(minimum, share / 4)
    rules = (
        (Strength.BLOCK, share / 2),
        (Strength.LINE, quarter),
        (Strength.SENTENCE, quarter),
        (Strength.SENTENCE, 0),
        (Strength.WORD, 0),
    )
    base = weights[position]
    for strength, least in rules:
        best = None
        for end in range(last, position, -1):
            size = weights[end] - base
            if size < least:
                break
            if strengths[end] >= strength and (least == 0 or rest - size >= minimum):
                distance = abs(size - share)
                if best is None or distance < best[0]:
                    best = (distance, end)
        if best is not None:
            return best[1]
    return last


Division = Callable[[str, Piece], list[Piece]]


def _first_pieces(text: str, boundaries: Mapping[int, Strength], limit: int, divide: Division) -> list[Piece]:
    """Cut at the places given, and long blocks at their sentences."""
    first = len(text) - len(text.lstrip())
    end = len(text.rstrip())
    starts = [0, *sorted([offset for offset in boundaries if first < offset < end]), len(text)]
    long = _LIKELY_CHARACTERS_PER_TOKEN * limit
    pieces: list[Piece] = []
    for start, stop in pairwise(starts):
        piece = (start, stop, boundaries[start] if start else Strength.BLOCK)
        if stop - start > long:
            pieces += divide(text, piece)
        else:
            pieces.append(piece)
    return pieces


def _divide(piece: Piece, inside: Sequence[int], strength: Strength) -> list[Piece]:
    """Cut one piece; its first part keeps the strength that it has."""
    start, stop, own = piece
    edges = [start, *(start + offset for offset in inside), stop]
    return [(a, b, own if a == start else strength) for a, b in pairwise(edges)]


def _divide_by_length(text: str, piece: Piece, most: int) -> list[Piece]:
    """Cut a piece into two or, where it is far too long, at once into as many as its length calls for."""
    start, stop, _ = piece
    parts = max(2, ceil((stop - start) / most))
    inside = [0]
    for part in range(1, parts):
        position = start + (stop - start) * part // parts
        low, high = max(start + inside[-1], position - 128), min(stop, position + 128)
        edge = low + character_edge(text[low:high], position - low) if high - low > 1 else low
        if start + inside[-1] < edge < stop:
            inside.append(edge - start)
    return _divide(piece, inside[1:], Strength.CHARACTER)


def _divide_heavy(cuttings: list[_Cutting], limit: int, counter: TokenCounter, divide: Division) -> bool:
    """Cut the pieces above the limit, and count what they were cut into, all at once; say whether there were any."""
    work = []
    for cutting in cuttings:
        new: dict[int, list[Piece]] = {}
        for number in cutting.heavy(limit):
            parts = divide(cutting.text, cutting.pieces[number])
            if len(parts) > 1:
                new[number] = parts
        if new:
            work.append((cutting, new))
    counts = iter(_count_all([(cutting.text, chain(*new.values())) for cutting, new in work], counter))
    for cutting, new in work:
        pieces: list[Piece] = []
        sizes: list[int] = []
        for number, (piece, count) in enumerate(zip(cutting.pieces, cutting.counts, strict=True)):
            parts = new.get(number, [])
            pieces += parts or [piece]
            sizes += islice(counts, len(parts)) if parts else [count]
        cutting.pieces, cutting.counts = pieces, sizes
    return bool(work)


def _count_all(runs: Iterable[tuple[str, Iterable[Piece]]], counter: TokenCounter) -> list[int]:
    return count_texts(counter, [text[start:stop] for text, pieces in runs for start, stop, _ in pieces])
