# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Counting texts by their words: a word that has been counted before costs a look-up."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from operator import add
from string import ascii_letters, punctuation

# Python takes these for white space, while BERT's normaliser removes them and joins what they divide.
_REMOVED = "\x0b\x0c\x1c\x1d\x1e\x1f\x85"
_WORD = re.compile(rf"[\S{_REMOVED}]+")

_PRINTABLE = re.compile("[!-~]+")

_MARKS = str.maketrans(dict.fromkeys(punctuation, " "))

# About 25 MB of words. A text that brings more makes the table start again, empty.
_MOST_WORDS = 1 << 17

# Longer words, such as lines of Chinese or of base64, hardly come twice.
_LONGEST_KEPT = 64

# Looking for more added tokens in each word costs more than it spares.
_MOST_ADDED = 32

# The words of texts of this many characters together are held at once.
_BATCH_CHARACTERS = 500_000


class WordCounts:
    """
    Remembers lengths in tokens of words, which are what stands between white space.

    It is exact where nothing reaches across white space and white space is no token: in BERT's chain of normaliser and
    pre-tokenizer. Texts hold few different words, so that most of them need no tokenizer. Safe under threads.

    ```python
    from hichunk_haystack.word_counts import WordCounts

    words = WordCounts(lambda words: [1 + word.count("-") for word in words])
    print(words.count(["a ready-made kiln", "the kiln"]))  # [4, 2]
    ```
    """

    def __init__(self, count: Callable[[Sequence[str]], list[int]]) -> None:
        """
        Remember nothing yet.

        :param count: Counts the tokens of each of some words.
        """
        self._count = count
        self._known: dict[str, int] = {}

    def count(self, texts: Sequence[str]) -> list[int]:
        """
        Count the tokens of each text.

        :param texts: Any number of texts without lone surrogates.
        :returns: A length in tokens for each, in the same order.
        """
        return [length for batch in _batches(texts) for length in self._count_batch(batch)]

    def _count_batch(self, texts: Sequence[str]) -> list[int]:
        whole = "".join(texts)
        rare = any(character in whole for character in _REMOVED)
        words = [_WORD.findall(text) if rare else text.split() for text in texts]
        known = self._known  # another thread may put an empty table in its place
        new = list(set().union(*words).difference(known))
        if not new:
            return [sum(map(known.__getitem__, some)) for some in words]
        passing: dict[str, int] = {}
        for word, length in zip(new, self._count(new), strict=True):
            (known if len(word) <= _LONGEST_KEPT else passing)[word] = length
        if len(known) > _MOST_WORDS:
            self._known = {}
        if not passing:
            return [sum(map(known.__getitem__, some)) for some in words]
        return [_sum(some, known, passing) for some in words]


def _sum(words: Sequence[str], known: dict[str, int], passing: dict[str, int]) -> int:
    try:
        return sum(map(known.__getitem__, words))
    except KeyError:
        return sum(passing[word] if word in passing else known[word] for word in words)


def _batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    first = characters = 0
    for number, text in enumerate(texts):
        if characters >= _BATCH_CHARACTERS:
            yield texts[first:number]
            first, characters = number, 0
        characters += len(text)
    yield texts[first:]


class MarkSplitting:
    """
    Counts words by what stands between marks of ASCII punctuation, each of which is a token of its own.

    So it is behind BERT's pre-tokenizer. Of the words of a text many come once, such as "(kiln)," or a path, while what
    they are made of has been counted before.

    ```python
    from hichunk_haystack.word_counts import MarkSplitting

    words = MarkSplitting(lambda words: [len(word) // 2 for word in words], added=["[CLS]"])
    print(words.count(["(kiln)", "kiln/wheel"]))  # [4, 5]
    ```
    """

    def __init__(self, count: Callable[[Sequence[str]], list[int]], added: Iterable[str]) -> None:
        """
        Remember nothing yet.

        :param count: Counts the tokens of each of some words.
        :param added: Texts that the tokenizer takes for a token wherever they stand: words with one in them are counted
            whole.
        """
        self._count = count
        self._between = WordCounts(count)
        texts = list(added)
        # What a normaliser makes of other characters, and then finds in words, is not known here.
        known = len(texts) <= _MOST_ADDED and all(_PRINTABLE.fullmatch(text) for text in texts)
        self._added = re.compile("|".join(map(re.escape, texts)) if known else "", re.IGNORECASE) if texts else None
        # Most often it is "[", as in "[SEP]"; only words with it are searched.
        first = {text[0] for text in texts if known}
        self._first = first.pop() if len(first) == 1 and first.isdisjoint(ascii_letters) else ""

    def count(self, words: Sequence[str]) -> list[int]:
        """
        Count the tokens of each word.

        :param words: Texts without white space.
        :returns: A length in tokens for each, in the same order.
        """
        apart = [word for word in words if word.isascii() and word.isprintable()]
        if self._added is not None:
            first, search = self._first, self._added.search
            apart = [word for word in apart if first not in word or not search(word)]
        spaced = "\n".join(apart).translate(_MARKS).split("\n") if apart else []
        marks = map(str.count, spaced, repeat(" "))
        counts = dict(zip(apart, map(add, self._between.count(spaced), marks), strict=True))
        whole = [word for word in words if word not in counts]
        if whole:
            counts.update(zip(whole, self._count(whole), strict=True))
        return list(map(counts.__getitem__, words))
