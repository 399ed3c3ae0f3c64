# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Flat chunks whose best are read again by a cross-encoder: the baseline of many systems."""

from collections.abc import Callable, Sequence
from functools import cached_property

from hichunk_haystack.evaluation.contenders.flat import FlatChunks

CrossEncoder = Callable[[str, Sequence[str]], list[float]]
"""Scores texts for a question."""

_READ = 20


class Reranked(FlatChunks):
    """Chunks in the order of their vectors, the best of them in the order of a cross-encoder."""

    def __init__(self, name: str, chunks: FlatChunks, cross_encoder: CrossEncoder) -> None:
        """
        Set up.

        :param name: What the table calls it.
        :param chunks: The chunks.
        :param cross_encoder: Reads the best 20 chunks of each question.
        """
        super().__init__(name, chunks.corpus, chunks.chunker)
        self.flat = chunks
        self.cross_encoder = cross_encoder

    @cached_property
    def ranking(self) -> list[list[int]]:
        """For each question the numbers of the best chunks, best first."""
        chunks = self.flat.chunks
        found = []
        for question, ranked in zip(self.corpus.dataset.questions, self.flat.ranking, strict=True):
            read = ranked[:_READ]
            scores = self.cross_encoder(question.text, [self.corpus.text(chunks[number]) for number in read])
            order = sorted(range(len(read)), key=scores.__getitem__, reverse=True)
            found.append([*(read[place] for place in order), *ranked[_READ:]])
        return found


def fastembed_cross_encoder(folder: str) -> CrossEncoder:
    """
    Load a cross-encoder in ONNX form from a folder.

    :param folder: Holds `onnx/model.onnx` of ms-marco-MiniLM-L-12-v2, its tokenizer and its configuration.
    :returns: The cross-encoder.
    :raises ImportError: If fastembed is not installed.
    """
    try:
        from fastembed.rerank.cross_encoder import TextCrossEncoder
    except ImportError as error:
        msg = "Reranking needs fastembed: pip install fastembed."
        raise ImportError(msg) from error
    model = TextCrossEncoder("Xenova/ms-marco-MiniLM-L-12-v2", specific_model_path=folder)

    def scores(question: str, texts: Sequence[str]) -> list[float]:
        return list(model.rerank(question, list(texts)))

    return scores
