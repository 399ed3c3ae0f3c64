# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""BM25 as sparse vectors: the part of a word's weight that its own text decides. The rest is the store's (IDF)."""

import hashlib
import unicodedata
from collections import Counter
from functools import lru_cache

import regex

from hichunk_haystack.unicode import well_formed

# Scripts that put no space between words.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_RUN = regex.compile(rf"(?P<unspaced>[{_UNSPACED}\p{{M}}ー]+)|(?P<word>(?:(?![{_UNSPACED}])[\p{{L}}\p{{M}}\p{{N}}_])+)")
_PART = regex.compile(r"\p{Lu}+(?!\p{Ll})|\p{Lu}?[\p{Ll}\p{Lo}\p{Lm}\p{M}]+|\p{N}+|\p{Lu}")


def words_of(text: str) -> list[str]:
    """
    Cut a text into the words that are compared.

    Upper and lower case and compatibility forms count as one. A name of code ("max_retries", "QdrantClient") gives
    itself and its parts of more than a letter. Text of scripts without spaces gives pairs of characters.

    :param text: Any text.
    :returns: The words in order; a word that comes twice is there twice.
    """
    words = []
    for match in _RUN.finditer(unicodedata.normalize("NFKC", well_formed(text))):
        run = match[0]
        if match["unspaced"]:
            words += [run[first : first + 2] for first in range(max(1, len(run) - 1))]
            continue
        if whole := run.strip("_").casefold():
            words.append(whole)
            parts = _PART.findall(run)
            if len(parts) > 1:
                words += [part.casefold() for part in parts if len(part) > 1]
    return words


@lru_cache(maxsize=65_536)
def word_index(word: str) -> int:
    """
    Number a word, the same in every process and release.

    :param word: A word.
    :returns: 32 bits of its hash. Among 10,000 words one pair in a hundred collections shares a number.
    """
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "big")


def document_vector(text: str, k1: float, b: float, average_words: float) -> tuple[list[int], list[float]]:
    """
    Weigh the words of a document: how often they come, saturated, against how long it is.

    The weight is tf (k1 + 1) / (tf + k1 (1 - b + b words / average_words)), the factor of Okapi BM25 that belongs to a
    document. Multiplied with the words' IDF and summed over a query's words it is the BM25 score.

    :param text: The document's text.
    :param k1: How soon further occurrences of a word stop counting.
    :param b: How much length counts, from 0 to 1.
    :param average_words: Length of an average document.
    :returns: Indices in ascending order, and their weights.
    """
    words = words_of(text)
    norm = k1 * (1 - b + b * len(words) / average_words)
    counts = Counter(map(word_index, words))
    indices = sorted(counts)
    return indices, [counts[index] * (k1 + 1) / (counts[index] + norm) for index in indices]


def query_vector(text: str) -> tuple[list[int], list[float]]:
    """
    Weigh the words of a query: each once.

    :param text: The query.
    :returns: Indices in ascending order, and their weights.
    """
    indices = sorted(set(map(word_index, words_of(text))))
    return indices, [1.0] * len(indices)
