# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import json
from pathlib import Path

import pytest

from hichunk_haystack.evaluation.datasets import Dataset, Question, load_dataset, save_dataset
from tests.conftest import data_set

TEXT = "# Kiln\r\n\r\nFire it slowly.\u2028Let it cool.\tHeiß – 陶窯.\n"


def write(folder: Path, *lines: str, text: str = TEXT) -> Path:
    (folder / "docs").mkdir(parents=True, exist_ok=True)
    (folder / "docs" / "kiln.md").write_bytes(text.encode())
    (folder / "qas.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    dataset = Dataset(
        "pottery",
        {"kiln": TEXT, "wheel v1.2": ""},
        [
            Question("How?", "kiln", ("Fire it slowly.",), ((10, 25),), ("Slowly.",), ("It is fired slowly.",)),
            Question("Und\u2028wie heiß?", "kiln", ()),
        ],
    )
    save_dataset(dataset, tmp_path / "pottery")
    assert load_dataset(tmp_path / "pottery") == dataset
    # Offsets count characters of the text as it stands.
    start, end = dataset.questions[0].spans[0]
    assert load_dataset(tmp_path / "pottery").documents["kiln"][start:end] == "Fire it slowly."


def test_a_set_without_questions(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("Text.", encoding="utf-8")
    (tmp_path / "docs" / "notes.pdf").write_bytes(b"%PDF")
    assert load_dataset(tmp_path).documents == {"a": "Text."}
    assert load_dataset(tmp_path).questions == []


def test_no_documents(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="is no data set"):
        load_dataset(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", r"qas\.jsonl, line 2: "),
        ('{"_id": "kiln", "evidences": []}', "line 2: 'input' is missing"),
        ('{"input": "?", "_id": "oven", "evidences": []}', "there is no document 'oven'"),
        ('{"input": "?", "_id": "kiln"}', "'evidences' is missing"),
        ('{"input": "?", "_id": "kiln", "evidences": [], "spans": [[5, 2]]}', r"span \[5, 2\] does not lie"),
        ('{"input": "?", "_id": "kiln", "evidences": [], "spans": [[0, 999]]}', r"\(\d+ characters\)"),
        ('{"input": "?", "_id": "kiln", "evidences": [], "spans": [7]}', "line 2"),
        ('{"input": "?", "_id": "kiln", "evidences": [7]}', "'evidences' holds something that is no text"),
        ("[]", "line 2: it is no JSON object"),
        ('{"input": null, "_id": "kiln", "evidences": []}', "'input' is None, and no text"),
        ('{"input": "?", "_id": "kiln", "evidences": [], "spans": [[0, 1e999]]}', "line 2: "),
        ("[" * 100_000, "line 2: "),
    ],
)
def test_questions_that_can_not_be_read_are_named(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_dataset(write(tmp_path, json.dumps({"input": "?", "_id": "kiln", "evidences": ["x"]}), line))


def test_questions_in_other_encodings(tmp_path: Path) -> None:
    line = json.dumps({"input": "?", "_id": "kiln", "evidences": ["x"]})
    assert len(load_dataset(write(tmp_path, "\ufeff" + line)).questions) == 1
    (tmp_path / "qas.jsonl").write_bytes(line.encode("utf-16"))
    with pytest.raises(ValueError, match=r"qas\.jsonl is not UTF-8"):
        load_dataset(tmp_path)


def test_one_text_instead_of_a_list_is_one_text(tmp_path: Path) -> None:
    line = json.dumps({"input": "?", "_id": "kiln", "evidences": "Fire.", "answers": "Yes.", "facts": None})
    (question,) = load_dataset(write(tmp_path, line)).questions
    assert (question.evidences, question.answers, question.facts) == (("Fire.",), ("Yes.",), ())


def test_documents_that_can_not_be_told_apart_or_read(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "docs" / "kiln.txt").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"holds 'kiln' as \.md and as \.txt"):
        load_dataset(tmp_path)
    (tmp_path / "docs" / "kiln.txt").rename(tmp_path / "docs" / "latin.txt")
    (tmp_path / "docs" / "latin.txt").write_bytes("heiß".encode("latin-1"))
    with pytest.raises(ValueError, match=r"latin\.txt is not UTF-8"):
        load_dataset(tmp_path)


def test_spans_of_a_real_set_hold_their_evidence() -> None:
    dataset = load_dataset(data_set("chroma"))
    assert len(dataset.questions) > 400
    for question in dataset.questions:
        document = dataset.documents[question.document]
        assert [document[start:end] for start, end in question.spans] == list(question.evidences)
