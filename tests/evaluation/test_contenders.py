# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from hichunk_haystack.evaluation.benchmark import score
from hichunk_haystack.evaluation.contenders.corpus import Corpus, Piece
from hichunk_haystack.evaluation.contenders.flat import FlatChunks, Oracle, best, fixed, paragraphs, sentences
from hichunk_haystack.evaluation.contenders.lineup import OURS, lineup
from hichunk_haystack.evaluation.contenders.reranked import Reranked, load_cross_encoder
from hichunk_haystack.evaluation.contenders.rivals import HaystackHierarchy, LlamaIndexHierarchy
from hichunk_haystack.evaluation.datasets import Dataset, Question
from hichunk_haystack.evaluation.dense import dense_questions
from tests.conftest import REPOSITORY
from tests.evaluation.corpora import COUNTER, corpus, page


@pytest.fixture(scope="module")
def small() -> Corpus:
    return corpus()


def test_the_best_are_ranked() -> None:
    similarities = np.array([[0.1, 0.9, 0.5], [0.3, 0.2, 0.25]])
    assert best(similarities) == [[1, 2, 0], [0, 2, 1]]
    assert best(similarities, 2) == [[1, 2], [0, 2]]
    assert best(np.zeros((2, 0))) == [[], []]


@pytest.mark.parametrize(("tokens", "overlap"), [(200, 0), (50, 0), (50, 8), (7, 3), (4, 0)])
def test_fixed_chunks_cover_the_text_within_their_size(small: Corpus, tokens: int, overlap: int) -> None:
    chunks = fixed(tokens, overlap)(small, "pottery")
    text = small.dataset.documents["pottery"]
    counts = COUNTER.count_texts([text[piece.start : piece.end] for piece in chunks])
    # A single word may have more tokens than a chunk.
    assert all(count <= tokens or " " not in small.text(piece) for count, piece in zip(counts, chunks, strict=True))
    covered = np.zeros(len(text), dtype=bool)
    for piece in chunks:
        covered[piece.start : piece.end] = True
    assert not "".join(character for character, there in zip(text, covered, strict=True) if not there).strip()
    starts = [piece.start for piece in chunks]
    assert starts == sorted(set(starts))
    repeated = sum(counts) - COUNTER.count_texts([text])[0]
    assert (repeated > 0) is (overlap > 0)


def test_fixed_chunks_of_a_text_without_words() -> None:
    assert fixed(200)(corpus(Dataset("blank", {"blank": " \n\n "})), "blank") == []


@pytest.mark.parametrize("chunker", [sentences, paragraphs])
def test_sentences_and_paragraphs_cover_the_text(small: Corpus, chunker: object) -> None:
    assert callable(chunker)
    chunks = chunker(small, "weaving")
    text = small.dataset.documents["weaving"]
    assert "".join("".join(map(small.text, chunks)).split()) == "".join(text.split())


def test_a_sentence_is_a_chunk(small: Corpus) -> None:
    wanted = set(small.dataset.questions[0].evidences)
    assert wanted <= {small.text(piece) for piece in sentences(small, "pottery")}


def test_the_oracle_finds_all_that_fits(small: Corpus) -> None:
    tokens = sum(small.count(piece) for piece in next(Oracle(small).retrieve(1000)))
    found = score(small, Oracle(small), tokens)
    assert (found["erec"], found["recall"], found["precision"], found["iou"]) == pytest.approx((100, 100, 100, 100))
    half = score(small, Oracle(small), tokens // 2)
    assert 0 < half["erec"] < 100


def test_a_cross_encoder_decides_on_the_best_twenty(small: Corpus) -> None:
    chunks = FlatChunks("chunks", small, fixed(20))
    asked: list[str] = []

    def shortest_first(question: str, texts: Sequence[str]) -> list[float]:
        asked.append(question)
        return [-len(text) for text in texts]

    reranked = Reranked("reranked", chunks, shortest_first)
    for plain, again in zip(chunks.ranking, reranked.ranking, strict=True):
        assert sorted(again[:20]) == sorted(plain[:20])
        assert again[20:] == plain[20:]
        lengths = [len(small.text(chunks.chunks[number])) for number in again[:20]]
        assert lengths == sorted(lengths)
    assert asked == [question.text for question in small.dataset.questions]


def test_a_trained_cross_encoder_finds_the_answer(trained_cross_encoder: Path) -> None:
    name = "07-slipway-equipment.md"
    text = (REPOSITORY / "examples" / "handbook" / name).read_bytes().decode()
    row = next(line for line in text.splitlines() if "| Wood lathe" in line)
    span = (text.index(row), text.index(row) + len(row))
    question = Question("How long may the wood lathe be booked, and for how much?", name, (row,), (span,))
    chunks = FlatChunks("chunks", corpus(Dataset("handbook", {name: text}, [question])), fixed(60))
    # The worst of the best 20 first: what comes out in front is the cross-encoder's doing.
    (ranked,) = chunks.ranking
    chunks.ranking = [[*ranked[19::-1], *ranked[20:]]]
    scores = load_cross_encoder(str(trained_cross_encoder))
    (again,) = Reranked("reranked", chunks, scores).ranking
    first = chunks.chunks[again[0]]
    assert first.start <= span[0] < span[1] <= first.end
    assert scores("How long?", []) == []


def test_a_contender_above_the_budget_is_caught(small: Corpus) -> None:
    class Greedy(Oracle):
        name = "greedy"

        def retrieve(self, budget: int) -> Iterator[list[Piece]]:
            return super().retrieve(10 * budget)

    with pytest.raises(RuntimeError, match=r"'greedy' returned \d+ tokens at a budget of 5"):
        score(small, Greedy(small), 5)


def test_haystacks_blocks_stand_where_they_say(small: Corpus) -> None:
    rival = HaystackHierarchy(small, merging=True, block_sizes=(120, 40, 10))
    for node in rival._nodes:
        assert small.text(rival.blocks[node.id]) == node.content
    assert score(small, rival, 200)["tokens"] > 100


def test_llamaindex_blocks_stand_where_they_say(small: Corpus) -> None:
    pytest.importorskip("llama_index.core")
    rival = LlamaIndexHierarchy(small, merging=True, chunk_sizes=(400, 100, 40))
    for node in rival._nodes:
        assert small.text(rival.blocks[node.node_id]) == node.text
    assert score(small, rival, 200)["tokens"] > 100


@pytest.fixture(scope="module")
def dense() -> Corpus:
    pages = {name: page(name) for name in ("pottery", "weaving", "sailing")}
    dataset, hidden = dense_questions(pages, documents_used=3, least_sections=2, questions=6)
    return corpus(dataset, cut_points={name: one.cut_points for name, one in hidden.items()})


def test_everybody_keeps_every_budget(dense: Corpus) -> None:
    """`score` raises where one does not; and what is returned grows with the budget."""
    names = []
    for contender in lineup(dense, every=True):
        names.append(contender.name)
        found = {budget: score(dense, contender, budget) for budget in (30, 300)}
        assert found[300]["tokens"] > found[30]["tokens"] > 0, contender.name
        for budget, scores in found.items():
            assert all(0 <= scores[name] <= 100 for name in ("erec", "recall", "precision", "iou")), contender.name
            assert scores["tokens"] <= budget
    assert len(names) == len(set(names))
    assert sum(name.startswith(OURS) for name in names) == 6 * 3 * 5


def test_the_usual_lineup_has_each_splitter_once_and_each_policy_once(dense: Corpus) -> None:
    ours = [name for contender in lineup(dense) if (name := contender.name).startswith(OURS)]
    assert len(ours) == 6 + 4 + 2
    assert len({name.split(", ")[0] for name in ours}) == 6


def test_chunks_of_a_flat_contender_without_words_are_left_out() -> None:
    blank = corpus(Dataset("blank", {"one": "# A\n\n\n\n---\n", "two": "Words are here."}))
    assert all(blank.count(piece) for piece in FlatChunks("paragraphs", blank, paragraphs).chunks)
