# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Counting the tokens of many texts at once."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from haystack import default_from_dict, default_to_dict
from haystack.dataclasses import ChatMessage
from haystack.token_counters.types import TokenCounter
from haystack.tools import ToolsType
from tokenizers import Encoding, Tokenizer

from hichunk_haystack.models import resolve_model
from hichunk_haystack.unicode import well_formed
from hichunk_haystack.word_counts import MarkSplitting, WordCounts

DEFAULT_TOKENIZER = "sentence-transformers/all-MiniLM-L6-v2"

# Encodings of this many texts are held at once; more make it slower, since they no longer fit the processor's cache.
_BATCH = 2048

# Short texts are joined to about this many characters, since a tokenizer takes some microseconds for each text whatever
# its length; longer ones would be shared out less evenly among the processor's cores.
_JOINED = 1500

# Punctuation that is rare enough to stand between joined texts.
_MARKS = "¶§‖‡⟩»¿"


class HuggingFaceTokenCounter:
    """
    Counts tokens with a Hugging Face tokenizer, many texts at a time.

    Truncation and padding that a model ships with are switched off, and the special tokens that a model puts around a
    text are not counted, so that a text of 10,000 tokens counts 10,000.

    It is also a Haystack `TokenCounter`: `count` takes chat messages.

    ```python
    from hichunk_haystack.tokens import HuggingFaceTokenCounter

    counter = HuggingFaceTokenCounter("sentence-transformers/all-MiniLM-L6-v2")
    print(counter.count_texts(["A leaf is small.", "A section is big."]))  # [5, 5]
    ```
    """

    def __init__(self, model: str = DEFAULT_TOKENIZER) -> None:
        """
        Create the counter; the tokenizer is loaded by `warm_up` or by the first count.

        :param model: Public name of a model (found on the hub, in its cache or in an installed package), a folder with
            a `tokenizer.json`, or the path of such a file.
        """
        self.model = model
        self._tokenizer: Tokenizer | None = None
        self._additive = False
        self._marks: dict[str, int] = {}
        self._words: WordCounts | None = None

    def warm_up(self) -> None:
        """
        Load the tokenizer, once.

        :raises ModelNotFoundError: If the model can be had nowhere.
        :raises ValueError: If the folder that `model` names holds no `tokenizer.json`.
        """
        if self._tokenizer is not None:
            return
        resolved = resolve_model(self.model, probe="tokenizer.json")
        path = Path(resolved)
        if path.is_dir():
            path = path / "tokenizer.json"
            if not path.is_file():
                msg = f"'{self.model}' holds no tokenizer.json. Name a folder that has one, or the file itself."
                raise ValueError(msg)
        tokenizer = Tokenizer.from_file(str(path)) if path.is_file() else Tokenizer.from_pretrained(resolved)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        settings = json.loads(tokenizer.to_str())
        self._additive = _is_additive(settings)
        self._marks = _usable_marks(tokenizer) if self._additive else {}
        if self._additive and (settings.get("normalizer") or {}).get("clean_text"):
            added = [token["content"] for token in settings.get("added_tokens", [])]
            self._words = WordCounts(MarkSplitting(self._count_by_tokenizer, added).count)
        self._tokenizer = tokenizer

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer itself, without truncation and padding."""
        self.warm_up()
        assert self._tokenizer is not None
        return self._tokenizer

    @property
    def additive(self) -> bool:
        """
        Whether the counts of two texts add up to the count of both, joined at white space or after a full stop.

        True for WordPiece behind BERT's pre-tokenizer, which drops white space and takes each punctuation mark for
        itself; False for tokenizers that keep white space.
        """
        self.warm_up()
        return self._additive

    def count_texts(self, texts: Sequence[str]) -> list[int]:
        """
        Count the tokens of each text.

        :param texts: Any number of texts.
        :returns: A length in tokens for each, in the same order.
        """
        self.warm_up()
        whole = [text if text.isascii() else well_formed(text) for text in texts]
        return self._words.count(whole) if self._words else self._count_by_tokenizer(whole)

    def _count_by_tokenizer(self, texts: Sequence[str]) -> list[int]:
        if not self._marks:
            batches = (texts[first : first + _BATCH] for first in range(0, len(texts), _BATCH))
            return [len(encoding) for batch in batches for encoding in self._encode(batch)]
        counts: list[int] = []
        runs = list(_runs(texts))
        for first in range(0, len(runs), _BATCH):
            counts += self._count_joined(runs[first : first + _BATCH])
        return counts

    def _encode(self, texts: Sequence[str]) -> list[Encoding]:
        assert self._tokenizer is not None
        return self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)

    def _count_joined(self, runs: Sequence[list[str]]) -> list[int]:
        """
        Count texts that are joined by a mark: nothing reaches across it, so what lies between two marks is a text.

        Where no mark can be had, or another character counts as one, the texts are counted one by one.
        """
        joined = [_join(run, self._marks) for run in runs]
        counts: list[int] = []
        for run, (mark, _), encoding in zip(runs, joined, self._encode([text for _, text in joined]), strict=True):
            if len(run) == 1:
                counts.append(len(encoding))
            else:
                found = _between(encoding.ids, self._marks[mark], len(run)) if mark else []
                counts += found or map(len, self._encode(run))
        return counts

    def count(self, messages: list[ChatMessage], tools: ToolsType | None = None) -> int:
        """
        Count the tokens of the texts of chat messages (Haystack's `TokenCounter` protocol).

        :param messages: The messages; only their texts are counted.
        :param tools: Tools whose schemas are sent alongside; counted as JSON.
        :returns: Length in tokens.
        """
        texts = ["\n".join(message.texts) for message in messages]
        if tools:
            from haystack.tools import flatten_tools_or_toolsets

            texts.append(json.dumps([tool.tool_spec for tool in flatten_tools_or_toolsets(tools)], sort_keys=True))
        return sum(self.count_texts(texts))

    def to_dict(self) -> dict[str, Any]:
        """
        Serialise the counter.

        :returns: Dictionary with the type and the init parameters.
        """
        return default_to_dict(self, model=self.model)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "HuggingFaceTokenCounter":
        """
        Revive the counter.

        :param data: What `to_dict` gave.
        :returns: The counter.
        """
        return default_from_dict(cls, data)


def count_texts(counter: TokenCounter, texts: Sequence[str]) -> list[int]:
    """
    Count the tokens of many texts with any token counter.

    Counters that know `count_texts` get all texts at once. Haystack's other counters see each text as one user message;
    what they count for the message's role marker is taken off again.

    :param counter: A `HuggingFaceTokenCounter` or any of Haystack's `TokenCounter`s.
    :param texts: The texts.
    :returns: A length in tokens for each, in the same order.
    """
    batched = getattr(counter, "count_texts", None)
    if batched is not None:
        return batched(texts)
    marker = counter.count([ChatMessage.from_user("")])
    return [max(0, counter.count([ChatMessage.from_user(text)]) - marker) if text else 0 for text in texts]


def is_additive(counter: TokenCounter) -> bool:
    """
    Say whether counts of texts that are joined at white space add up exactly.

    :param counter: Any token counter.
    :returns: `True` only where it is known to hold; then a whole is not counted again after its parts.
    """
    return bool(getattr(counter, "additive", False))


def warm_up_counter(counter: TokenCounter) -> None:
    """
    Load what a token counter needs, where it has a `warm_up`.

    :param counter: Any token counter.
    """
    warm_up = getattr(counter, "warm_up", None)
    if warm_up is not None:
        warm_up()


def counter_key(counter: TokenCounter) -> str:
    """
    Give a text that is equal for equally configured counters, for deterministic ids.

    :param counter: Any token counter.
    :returns: The counter's serialised form, or its type's name where it can't be serialised.
    """
    to_dict = getattr(counter, "to_dict", None)
    return json.dumps(to_dict(), sort_keys=True, default=str) if to_dict is not None else type(counter).__qualname__


def _is_additive(tokenizer: dict[str, Any]) -> bool:
    """BERT's chain treats characters one by one, splits at white space and drops it: nothing reaches across."""
    kinds = [(tokenizer.get(part) or {}).get("type") for part in ("model", "pre_tokenizer", "normalizer")]
    added = (token["content"] for token in tokenizer.get("added_tokens", []))
    return (
        kinds[:2] == ["WordPiece", "BertPreTokenizer"]
        and kinds[2] in (None, "BertNormalizer")
        and not any(character.isspace() for content in added for character in content)
    )


def _usable_marks(tokenizer: Tokenizer) -> dict[str, int]:
    """Marks that are a token of their own wherever they stand, each with its id."""

    def ids(text: str) -> list[int]:
        return tokenizer.encode(text, add_special_tokens=False).ids

    added = "".join(token.content for token in tokenizer.get_added_tokens_decoder().values())
    unknown, letter = ids("\u0378"), ids("a")
    found: dict[str, int] = {}
    for mark in _MARKS:
        own = ids(mark)
        alone = ids(f"a{mark}{mark}a") == letter + own * 2 + letter
        if alone and len(own) == 1 and own != unknown and mark not in added:
            found[mark] = own[0]
    return found


def _runs(texts: Sequence[str]) -> Iterator[list[str]]:
    """Neighbouring texts that are short enough to be joined."""
    run: list[str] = []
    characters = 0
    for text in texts:
        if run and characters + len(text) > _JOINED:
            yield run
            run, characters = [], 0
        run.append(text)
        characters += len(text)
    if run:
        yield run


def _join(run: Sequence[str], marks: Iterable[str]) -> tuple[str, str]:
    """The first mark that no text holds, and the texts joined by it; no mark where all are taken."""
    for mark in marks:
        joined = mark.join(run)
        if joined.count(mark) == len(run) - 1:
            return mark, joined
    return "", " ".join(run)


def _between(ids: list[int], mark: int, parts: int) -> list[int]:
    """How many ids stand in each of the parts that marks divide; nothing where there are more marks than that."""
    counts = []
    position = 0
    for _ in range(parts - 1):
        found = ids.index(mark, position)
        counts.append(found - position)
        position = found + 1
    return [] if mark in ids[position:] else [*counts, len(ids) - position]
