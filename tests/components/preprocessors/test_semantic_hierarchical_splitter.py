# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import asyncio
import logging
from typing import Any

import pytest
from haystack import Document, component

from hichunk_haystack.components.preprocessors import SemanticHierarchicalSplitter
from tests.word_embedder import WordEmbedder

SUBJECTS = ("kiln fire heat brick door", "glaze water sieve bucket colour", "shop price card till ledger")


def text() -> str:
    """Nine paragraphs on three subjects, each in the words of its subject."""
    parts = []
    for words in SUBJECTS:
        first, *rest = words.split()
        parts += [
            f"The {first} {' '.join(rest[number:])} {' '.join(words.split())}. {words.capitalize()}.\n\n"
            for number in range(3)
        ]
    return "".join(parts)


def run(splitter: SemanticHierarchicalSplitter, content: str) -> list[Document]:
    return splitter.run([Document(content=content)])["documents"]


def test_sections_follow_the_subjects() -> None:
    source = text()
    nodes = run(SemanticHierarchicalSplitter(WordEmbedder(), levels=1, leaf_tokens=100, min_leaf_tokens=1), source)
    starts = [node.meta["split_idx_start"] for node in nodes if node.meta["__level"] == 1]
    assert starts == [source.index(f"The {subject.split()[0]}") for subject in SUBJECTS]
    assert all(node.meta["headings"] == [] for node in nodes)


def test_each_sentence_is_embedded_once_in_batches() -> None:
    embedder = WordEmbedder()
    run(SemanticHierarchicalSplitter(embedder, units_per_call=4), text())
    # Nine paragraphs of two sentences; the second sentences of a subject are equal.
    assert embedder.seen == 9 + 3


@component
class WordTextEmbedder:
    """The same vectors, text by text."""

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, Any]:
        return {"embedding": WordEmbedder().embed(text)}


def test_a_text_embedder_gives_the_same() -> None:
    one = run(SemanticHierarchicalSplitter(WordEmbedder()), text())
    other = run(SemanticHierarchicalSplitter(WordTextEmbedder()), text())
    assert [node.content for node in one] == [node.content for node in other]


def test_run_async_gives_what_run_gives() -> None:
    splitter = SemanticHierarchicalSplitter(WordEmbedder())
    documents = [Document(content=text())]
    assert asyncio.run(splitter.run_async(documents)) == splitter.run(documents)


@component
class Failing(WordEmbedder):
    """Fails at the word "broken"; gives nothing at the word "nothing"."""

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        if any("broken" in (document.content or "") for document in documents):
            msg = "no connection"
            raise ConnectionError(msg)
        if any("nothing" in (document.content or "") for document in documents):
            return {"documents": documents}
        return WordEmbedder.run(self, documents)


@pytest.mark.parametrize(
    ("word", "reason"), [("broken", "ConnectionError: no connection"), ("nothing", "it gave 0 embed")]
)
def test_one_document_that_fails_loses_no_other(word: str, reason: str, caplog: pytest.LogCaptureFixture) -> None:
    bad = Document(content=f"This is {word}. So it goes.\n\nOn and on.", meta={"file_path": "bad.txt"})
    good = Document(content=text())
    with caplog.at_level(logging.WARNING):
        nodes = SemanticHierarchicalSplitter(Failing(), leaf_tokens=5, min_leaf_tokens=1).run([bad, good])["documents"]
    roots = [node for node in nodes if node.meta["__level"] == 0]
    assert [root.id for root in roots] == [bad.id, good.id]
    assert roots[0].meta["splitter"]["chosen"] == "token"
    assert reason in roots[0].meta["splitter"]["why"]
    assert "'bad.txt' is split by length alone" in caplog.text
    assert "splitter" not in roots[1].meta


@pytest.mark.parametrize("name", ["levels", "units_per_call"])
def test_numbers_that_make_no_sense(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is 0"):
        SemanticHierarchicalSplitter(WordEmbedder(), **{name: 0})


def test_round_trip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAYSTACK_DESERIALIZATION_ALLOWLIST", "tests,hichunk_haystack")
    data = SemanticHierarchicalSplitter(WordEmbedder(8), levels=3, layout=False).to_dict()
    assert data == {
        "type": "hichunk_haystack.components.preprocessors.SemanticHierarchicalSplitter",
        "init_parameters": {
            "embedder": {"type": "tests.word_embedder.WordEmbedder", "init_parameters": {"dimension": 8}},
            "levels": 3,
            "layout": False,
            "units_per_call": 1024,
            "leaf_tokens": 200,
            "min_leaf_tokens": 20,
            "inner_tokens": None,
            "language": "en",
            "token_counter": None,
        },
    }
    assert SemanticHierarchicalSplitter.from_dict(data).to_dict() == data
