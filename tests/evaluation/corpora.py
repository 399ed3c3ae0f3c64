# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Small data sets for the tests of the benchmark."""

from typing import Any

from hichunk_haystack.evaluation.contenders.corpus import Corpus
from hichunk_haystack.evaluation.datasets import Dataset, Question
from hichunk_haystack.evaluation.embedding_cache import CachedEmbedder
from hichunk_haystack.tokens import HuggingFaceTokenCounter
from tests.word_embedder import WordEmbedder

COUNTER = HuggingFaceTokenCounter()

NOUNS = ("kiln", "wheel", "clay", "glaze", "brush", "sieve", "shelf", "stove", "apron", "bucket")


def page(subject: str, sections: int = 4, sentences: int = 12) -> str:
    """A page of Markdown in which each sentence is said once."""
    parts = []
    for section in range(1, sections + 1):
        lines = [
            f"In the {subject} room the {noun} of part {section} is kept at place number {place}."
            for place, noun in zip(range(sentences), NOUNS * 3, strict=False)
        ]
        half = len(lines) // 2
        parts.append(f"# The {subject}, part {section}\n\n{' '.join(lines[:half])}\n\n{' '.join(lines[half:])}\n")
    return "\n".join(parts)


def small_dataset() -> Dataset:
    """Two pages, and two questions whose evidence is two sentences each, far from each other."""
    documents = {"pottery": page("pottery"), "weaving": page("weaving")}
    questions = []
    for name, text in documents.items():
        wanted = [
            f"In the {name} room the clay of part 1 is kept at place number 2.",
            f"In the {name} room the stove of part 3 is kept at place number 7.",
        ]
        spans = tuple((text.index(one), text.index(one) + len(one)) for one in wanted)
        questions.append(Question(f"Where are clay and stove in the {name} room?", name, tuple(wanted), spans))
    return Dataset("small", documents, questions)


def corpus(dataset: Dataset | None = None, **options: Any) -> Corpus:
    """A corpus over an embedder that needs no model."""
    return Corpus(dataset or small_dataset(), CachedEmbedder(WordEmbedder()), COUNTER, **options)
