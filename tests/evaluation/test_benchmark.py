# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hichunk_haystack.evaluation import report
from hichunk_haystack.evaluation.__main__ import main
from hichunk_haystack.evaluation.benchmark import run, score
from hichunk_haystack.evaluation.contenders.corpus import Piece
from hichunk_haystack.evaluation.datasets import Dataset, Question, save_dataset
from tests.evaluation.corpora import corpus, page, small_dataset


class Fixed:
    """Returns the same pieces whatever is asked, and counts how often it was asked."""

    def __init__(self, name: str, pieces: list[Piece]) -> None:
        self.name = name
        self.pieces = pieces
        self.asked: list[int] = []

    def retrieve(self, budget: int) -> Iterator[list[Piece]]:
        self.asked.append(budget)
        yield self.pieces


TEXT = "Fire it slowly. Let it cool. Open it."
QUESTION = Question("How?", "kiln", ("Fire it slowly.", "Open it."), ((0, 15), (29, 37)))


def kiln() -> Dataset:
    return Dataset("kiln", {"kiln": TEXT, "boat": "Row the boat."}, [QUESTION])


def test_scores_by_hand() -> None:
    # Of 23 characters of evidence 15 are found; 28 of this document and 13 of the other come back.
    found = score(corpus(kiln()), Fixed("some", [Piece("kiln", 0, 28), Piece("boat", 0, 13)]), 50)
    assert found["erec"] == pytest.approx(100 * 15 / 23)
    assert found["recall"] == pytest.approx(100 * 15 / 23)
    assert found["precision"] == pytest.approx(100 * 15 / 41)
    assert found["iou"] == pytest.approx(100 * 15 / (23 + 41 - 15))
    # "Fire it slowly." and "Let it cool." have 4 tokens each, "Row the boat." 4.
    assert found["tokens"] == 12


def test_half_a_sentence_is_recall_of_characters_and_no_evidence() -> None:
    found = score(corpus(kiln()), Fixed("some", [Piece("kiln", 0, 7)]), 50)
    assert found["erec"] == 0
    assert found["recall"] == pytest.approx(100 * 7 / 23)


def test_a_question_without_evidence_does_not_count() -> None:
    dataset = kiln()
    dataset.questions.append(Question("Why?", "kiln", ()))

    class Two(Fixed):
        def retrieve(self, budget: int) -> Iterator[list[Piece]]:
            yield from super().retrieve(budget)
            yield []

    assert score(corpus(dataset), Two("some", [Piece("kiln", 0, 37)]), 50)["erec"] == 100


def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    file = tmp_path / "new" / "kiln.json"
    first, second = Fixed("first", []), Fixed("second", [Piece("kiln", 0, 37)])
    run(corpus(kiln()), [first], [20, 30], file)
    results = run(corpus(kiln()), [first, second], [20, 30, 40], file)
    assert first.asked == [20, 30, 40]
    assert second.asked == [20, 30, 40]
    assert list(results) == ["first", "second"]
    assert json.loads(file.read_text())["results"]["second"]["40"]["erec"] == 100
    assert list(file.parent.iterdir()) == [file]


def test_results_of_other_data_or_settings_are_not_used(tmp_path: Path) -> None:
    file = tmp_path / "kiln.json"
    method = Fixed("method", [])
    run(corpus(kiln()), [method], [20], file, {"model": "one"})
    run(corpus(kiln()), [method], [20], file, {"model": "one"})
    assert method.asked == [20]
    run(corpus(kiln()), [method], [20], file, {"model": "other"})
    changed = kiln()
    changed.documents["boat"] += " Mind the oar."
    run(corpus(changed), [method], [20], file, {"model": "other"})
    assert method.asked == [20, 20, 20]


RESULTS = {
    "oracle (the evidence itself)": {256: {"erec": 99.0}, 512: {"erec": 100.0}},
    "fixed chunks": {256: {"erec": 50.04}, 512: {"erec": 61.0}},
    "ours: Auto": {256: {"erec": 50.0}, 512: {"erec": 72.25}},
}


def test_the_table_has_the_best_in_bold() -> None:
    assert report.table(RESULTS, [256, 512]).split("\n") == [
        "| | 256 | 512 |",
        "| --- | ---: | ---: |",
        "| oracle (the evidence itself) | 99.0 | 100.0 |",
        "| fixed chunks | **50.0** | 61.0 |",
        "| ours: Auto | **50.0** | **72.2** |",
    ]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("contenders", [0, 90])
def test_the_plot_is_saved(tmp_path: Path, contenders: int) -> None:
    pytest.importorskip("matplotlib")
    many = {f"ours: {number}": RESULTS["ours: Auto"] for number in range(contenders)}
    report.plot({**RESULTS, **many}, [256, 512], "Kilns", tmp_path / "plot.svg")
    assert "<svg" in (tmp_path / "plot.svg").read_text()


def test_the_command_on_two_data_sets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the real model: one set with questions, and one whose questions are made from its headings."""
    pytest.importorskip("matplotlib")
    save_dataset(small_dataset(), tmp_path / "small")
    pages = {name: page(name, sections=5) for name in ("pottery", "weaving")}
    save_dataset(Dataset("pages", pages), tmp_path / "pages")
    (tmp_path / "pages" / "qas.jsonl").unlink()
    output = tmp_path / "output"
    arguments = ["--budgets", "64", "128", "--output", str(output)]
    assert main([str(tmp_path / "small"), str(tmp_path / "pages"), *arguments]) == 0
    said = capsys.readouterr().out
    assert "small: 2 documents, 2 questions" in said
    assert "pages-dense: 2 documents, 10 questions" in said
    assert sorted(path.name for path in output.iterdir()) == [
        "embeddings.sqlite", "pages-dense.json", "pages-dense.md", "pages-dense.png",
        "small.json", "small.md", "small.png",
    ]  # fmt: skip
    assert "ours: known sections" in (output / "pages-dense.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["nowhere"], "'nowhere' is no data set"), (["nowhere", "--budgets", "0"], "A budget is 0")],
)
def test_what_can_not_be_is_told_in_a_sentence(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--output", str(tmp_path / "output")]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""
