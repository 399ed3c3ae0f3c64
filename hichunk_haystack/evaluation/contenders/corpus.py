# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What all contenders share: the documents, their tokens, an embedder, and pieces of text that fill a budget."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from hichunk_haystack.evaluation.datasets import Dataset
from hichunk_haystack.evaluation.embedding_cache import CachedEmbedder, Vectors
from hichunk_haystack.evaluation.evidence import normalise
from hichunk_haystack.sections import CutPoint
from hichunk_haystack.tokens import HuggingFaceTokenCounter

Integers = NDArray[np.int64]

SEPARATOR = "\n"
"""Stands between two pieces of a context; it costs no token."""


class Piece(NamedTuple):
    """
    A piece of a document, as a contender returns it.

    :param document: The document's name.
    :param start: Offset of its first character.
    :param end: Offset behind its last one.
    """

    document: str
    start: int
    end: int


@dataclass
class _Tokens:
    """Where the tokens of a document are, and at which of them a word starts."""

    starts: Integers
    ends: Integers
    words: Integers


class Corpus:
    """
    A data set that is ready for contenders.

    Lengths are counted in the tokenizer's tokens. A document is tokenised once: cut between two words, the tokens of
    its pieces are those of the whole.
    """

    def __init__(
        self,
        dataset: Dataset,
        embedder: CachedEmbedder,
        counter: HuggingFaceTokenCounter,
        cut_points: Mapping[str, Sequence[CutPoint]] | None = None,
    ) -> None:
        """
        Tokenise the documents.

        :param dataset: The data set.
        :param embedder: Embeds questions and pieces.
        :param counter: Its tokenizer counts.
        :param cut_points: Where the sections of each document start, where the text itself does not tell any more.
        """
        self.dataset = dataset
        self.embedder = embedder
        self.counter = counter
        self.cut_points = cut_points
        self._tokens: dict[str, _Tokens] = {}
        self._normalised: dict[Piece, str] = {}

    @cached_property
    def questions(self) -> Vectors:
        """A vector for each question."""
        return self.embedder.embed([question.text for question in self.dataset.questions], "Questions")

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The counter's tokenizer."""
        return self.counter.tokenizer

    def text(self, piece: Piece) -> str:
        """
        Give the text of a piece.

        :param piece: The piece.
        :returns: Its text.
        """
        return self.dataset.documents[piece.document][piece.start : piece.end]

    def embed(self, pieces: Sequence[Piece]) -> Vectors:
        """
        Embed pieces.

        :param pieces: Pieces.
        :returns: A vector for each.
        """
        return self.embedder.embed([self.text(piece) for piece in pieces])

    def count(self, piece: Piece) -> int:
        """
        Count the tokens of a piece.

        :param piece: A piece that was cut between two words.
        :returns: Tokens.
        """
        starts = self.tokens(piece.document).starts
        first, last = np.searchsorted(starts, (piece.start, piece.end))
        return int(last - first)

    def tokens(self, document: str) -> _Tokens:
        """
        Find the tokens of a document.

        :param document: Its name.
        :returns: Where they start and end, and the numbers of those that start a word.
        """
        if document not in self._tokens:
            encoding = self.tokenizer.encode(self.dataset.documents[document], add_special_tokens=False)
            spans = np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)
            starts = [not token.startswith("##") for token in encoding.tokens]
            self._tokens[document] = _Tokens(spans[:, 0], spans[:, 1], np.flatnonzero(starts))
        return self._tokens[document]

    def beginning(self, piece: Piece, budget: int) -> Piece | None:
        """
        Cut a piece to a number of tokens, at the end of a word.

        :param piece: The piece.
        :param budget: The most tokens.
        :returns: Its beginning; `None` if not even a word fits.
        """
        tokens = self.tokens(piece.document)
        first, last = (int(place) for place in np.searchsorted(tokens.starts, (piece.start, piece.end)))
        if last - first <= budget:
            return piece
        # The last place at which a word starts, and up to which all fits.
        place = int(np.searchsorted(tokens.words, first + budget, side="right")) - 1
        end = int(tokens.words[place]) if place >= 0 else 0
        return Piece(piece.document, piece.start, int(tokens.ends[end - 1])) if end > first else None

    def fill(self, ranked: Iterable[Piece], budget: int) -> list[Piece]:
        """
        Take pieces in rank order until the budget is full; the one that does not fit any more is cut.

        So HiChunk's evaluation fills the context, and it is kinder to big chunks than leaving them out.

        :param ranked: Pieces, best first.
        :param budget: Tokens.
        :returns: Pieces of `budget` tokens at most.
        """
        taken: list[Piece] = []
        left = budget
        for piece in ranked:
            tokens = self.count(piece)
            if tokens > left:
                cut = self.beginning(piece, left)
                return taken if cut is None else [*taken, cut]
            taken.append(piece)
            left -= tokens
            if left == 0:
                break
        return taken

    def arrange(self, pieces: Sequence[Piece]) -> list[Piece]:
        """
        Put pieces in the order in which they are read: documents by their best piece, and inside each by position.

        Pieces that overlap, or have only white space between them, become one, so that nothing that was returned whole
        is cut in two by the way it is written down. All contenders get this.

        :param pieces: Pieces in rank order.
        :returns: Pieces that lie apart.
        """
        places = {document: place for place, document in reversed(list(enumerate(piece.document for piece in pieces)))}
        arranged: list[Piece] = []
        for piece in sorted(pieces, key=lambda piece: (places[piece.document], piece.start, piece.end)):
            last = arranged[-1] if arranged and arranged[-1].document == piece.document else None
            if last is None or self.dataset.documents[piece.document][last.end : piece.start].strip():
                arranged.append(piece)
            else:
                arranged[-1] = last._replace(end=max(last.end, piece.end))
        return arranged

    def normalised(self, pieces: Iterable[Piece]) -> str:
        """
        Normalise a context.

        :param pieces: What it is made of, cut between words.
        :returns: What `normalise` gives for their texts with separators between.
        """
        parts = []
        for piece in pieces:
            known = self._normalised.get(piece)
            if known is None:
                known = self._normalised[piece] = normalise(self.text(piece))
            parts.append(known)
        return " ".join(part for part in parts if part)
