# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Chunks without a tree: of a fixed size, sentences, paragraphs; and the evidence itself as the ceiling."""

from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np

from hichunk_haystack.evaluation.contenders.corpus import Corpus, Piece
from hichunk_haystack.text_units import find_units
from hichunk_haystack.units import Strength

Chunker = Callable[[Corpus, str], list[Piece]]
"""Cuts a document, given by its name."""

# Pieces that are sure to fill a budget, whatever their length.
_FEW_TOKENS_EACH = 2


class FlatChunks:
    """Ranks the chunks of all documents by their vectors and fills the budget from the best on."""

    def __init__(self, name: str, corpus: Corpus, chunker: Chunker) -> None:
        """
        Set up; nothing is cut or embedded yet.

        :param name: What the table calls it.
        :param corpus: Documents and questions.
        :param chunker: Cuts a document.
        """
        self.name = name
        self.corpus = corpus
        self.chunker = chunker

    @cached_property
    def chunks(self) -> list[Piece]:
        """All chunks that have a word."""
        found = [piece for document in self.corpus.dataset.documents for piece in self.chunker(self.corpus, document)]
        return [piece for piece in found if self.corpus.count(piece)]

    @cached_property
    def ranking(self) -> list[list[int]]:
        """For each question the numbers of the best chunks, best first."""
        return best(self.corpus.questions @ self.corpus.embed(self.chunks).T)

    def retrieve(self, budget: int) -> Iterator[list[Piece]]:
        """
        Fill the budget for each question.

        :param budget: Tokens.
        :returns: Pieces in the order of the context.
        """
        for ranked in self.ranking:
            yield self.corpus.fill((self.chunks[number] for number in ranked), budget)


class Oracle:
    """Returns the evidence itself, as far as it fits: the ceiling, but for what a better choice of sentences gains."""

    name = "oracle (the evidence itself)"

    def __init__(self, corpus: Corpus) -> None:
        """
        Set up.

        :param corpus: Documents and questions whose spans are known.
        """
        self.corpus = corpus

    def retrieve(self, budget: int) -> Iterator[list[Piece]]:
        """
        Fill the budget with evidence.

        :param budget: Tokens.
        :returns: Pieces in the order of the evidence.
        """
        for question in self.corpus.dataset.questions:
            yield self.corpus.fill((Piece(question.document, *span) for span in question.spans), budget)


def best(similarities: np.ndarray, most: int = 4096) -> list[list[int]]:
    """
    Rank by similarity.

    :param similarities: A row for each question, a column for each chunk.
    :param most: How many are ranked; enough to fill any budget with words.
    :returns: For each question the numbers of the best chunks, best first.
    """
    count = min(most, similarities.shape[1])
    if count == 0:
        return [[] for _ in similarities]
    found = np.argpartition(-similarities, count - 1, axis=1)[:, :count]
    order = np.argsort(-np.take_along_axis(similarities, found, axis=1), axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1).tolist()


def fixed(tokens: int, overlap: int = 0) -> Chunker:
    """
    Cut every so many tokens, at the start of a word.

    :param tokens: The most tokens of a chunk.
    :param overlap: Tokens of a chunk that the next one repeats.
    :returns: A chunker.
    """

    def cut(corpus: Corpus, document: str) -> list[Piece]:
        found = corpus.tokens(document)
        pieces = []
        first, total = 0, len(found.starts)
        while first < total:
            last = _word_start(found.words, first + tokens, total)
            last = last if last > first else min(total, first + tokens)
            pieces.append(Piece(document, int(found.starts[first]), int(found.ends[last - 1])))
            if last == total:
                break
            following = _word_start(found.words, last - overlap, total)
            first = following if following > first else last
        return pieces

    return cut


def _word_start(words: np.ndarray, token: int, total: int) -> int:
    """The number of the last token at or before a place at which a word starts."""
    if token >= total:
        return total
    return int(words[np.searchsorted(words, token, side="right") - 1])


def sentences(corpus: Corpus, document: str) -> list[Piece]:
    """
    Cut into sentences, and what takes their place in tables and listings.

    :param corpus: Documents.
    :param document: A document's name.
    :returns: Pieces without white space around them.
    """
    text = corpus.dataset.documents[document]
    return [_stripped(document, text, unit.start, unit.end) for unit in find_units(text)]


def paragraphs(corpus: Corpus, document: str) -> list[Piece]:
    """
    Cut into paragraphs and other blocks.

    :param corpus: Documents.
    :param document: A document's name.
    :returns: Pieces without white space around them.
    """
    text = corpus.dataset.documents[document]
    starts = [unit.start for unit in find_units(text) if unit.strength >= Strength.BLOCK] or [0]
    return [_stripped(document, text, start, end) for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]


def _stripped(document: str, text: str, start: int, end: int) -> Piece:
    inside = text[start:end]
    start += len(inside) - len(inside.lstrip())
    return Piece(document, start, start + len(inside.strip()))
