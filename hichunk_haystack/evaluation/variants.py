# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Other wordings of a question, for searching with several: by rule, or written by a language model."""

import json
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from haystack.components.generators.chat.types import ChatGenerator
from haystack.components.query import QueryExpander
from tqdm import tqdm

from hichunk_haystack.hichunk.asking import model_key
from hichunk_haystack.hichunk.cache import DiskCache

_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*%?")
_POSSESSIVE = re.compile(r"['’]s\Z")
_COMMON = """
a about after all also am among an and any are as at be been before being between both but by can could did do does
during each for from had has have he her hers his how i if in into is it its many may might more most much must my
no nor not of on or other our over s shall she should so some such than that the their them then there these they
this those through to under until up was we were what when where which while who whom whose why will with would you
your according describe explain following give list mentioned name provide regarding related specific tell
"""
_STOP_WORDS = frozenset(_COMMON.split())
# Words that hold a title together.
_LINKS = frozenset({"of", "the", "for", "in", "and", "on", "to"})

PROMPT = """\
Question: {{ query }}

Write this question in {{ n_expansions }} other ways, as short search queries with other words for the same things. \
Answer in JSON: {"queries": [...]}"""
"""Short and without examples: small models copy examples."""


def response_format(count: int) -> dict[str, Any]:
    """
    Say what an answer looks like, for servers that hold a model to it.

    :param count: How many queries.
    :returns: The `response_format` of OpenAI's protocol.
    """
    queries = {"type": "array", "items": {"type": "string", "maxLength": 160}, "minItems": count, "maxItems": count}
    schema = {
        "type": "object", "properties": {"queries": queries}, "required": ["queries"], "additionalProperties": False
    }  # fmt: skip
    return {"type": "json_schema", "json_schema": {"name": "queries", "strict": True, "schema": schema}}


def content_words(question: str) -> str:
    """
    Leave out words that every English question has.

    :param question: The question.
    :returns: Its other words in order; the question itself where there are none.
    """
    return " ".join(_said(word) for word in _WORD.findall(question) if not _is_common(word)) or question


def short_form(question: str) -> str:
    """
    Take the longest stretch of a question that reads like a heading.

    :param question: The question.
    :returns: The words from one that says something to another, with none between but those that hold titles together.
    """
    words = _WORD.findall(question)
    runs = [
        list(run)
        for held, run in groupby(words, lambda word: not _is_common(word) or word.casefold() in _LINKS)
        if held
    ]
    stripped = [" ".join(map(_said, _stripped(run))) for run in runs]
    return max(stripped, key=lambda run: len(run.split()), default="") or question


def given_variants(question: str) -> list[str]:
    """
    Give wordings that need no model.

    :param question: The question.
    :returns: The question, its words that say something, and its heading-like part.
    """
    return [question, content_words(question), short_form(question)]


def written_variants(
    questions: Sequence[str], generator: ChatGenerator, folder: Path, *, count: int = 3, workers: int = 4
) -> list[list[str]]:
    """
    Have a language model write wordings, with Haystack's `QueryExpander`.

    :param questions: The questions.
    :param generator: The model.
    :param folder: Where answers are kept.
    :param count: How many wordings for each, besides the question.
    :param workers: How many questions are out at once.
    :returns: For each question its wordings and itself; itself alone where the model gave none, which is not kept.
    """
    expander = QueryExpander(chat_generator=generator, prompt_template=PROMPT, n_expansions=count)
    cache = DiskCache(folder, f"{model_key(generator)} {count} {PROMPT}")
    ask = partial(_variants, expander=expander, cache=cache)
    with ThreadPoolExecutor(workers) as pool:
        return list(
            tqdm(pool.map(ask, questions), "Asking for variants", len(questions), unit="question", disable=None)
        )


def _variants(question: str, expander: QueryExpander, cache: DiskCache) -> list[str]:
    known = cache.get(question)
    if known is not None:
        return json.loads(known)
    queries: list[str] = expander.run(query=question)["queries"]
    if len(queries) > 1:
        cache.put(question, json.dumps(queries))
    return queries


def _is_common(word: str) -> bool:
    return _said(word).casefold() in _STOP_WORDS


def _said(word: str) -> str:
    return _POSSESSIVE.sub("", word)


def _stripped(run: list[str]) -> list[str]:
    """A run without the words at its ends that only hold it together."""
    places = [number for number, word in enumerate(run) if not _is_common(word)]
    return run[places[0] : places[-1] + 1] if places else []
