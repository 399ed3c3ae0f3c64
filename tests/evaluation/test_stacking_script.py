# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""`benchmarks/stacking.py` as a user runs it, on a data set of two pages."""

import json
import re
import runpy
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.evaluation.corpora import small_dataset
from tests.hichunk.endpoint import serve

_ROW = re.compile(r"\| ([^|]+) \|((?: +[\d.]+ \|){5})")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    dataset = small_dataset()
    (tmp_path / "small" / "docs").mkdir(parents=True)
    for name, text in dataset.documents.items():
        (tmp_path / "small" / "docs" / f"{name}.md").write_text(text, encoding="utf-8")
    lines = [
        {"_id": each.document, "input": each.text, "evidences": list(each.evidences), "spans": [*map(list, each.spans)]}
        for each in dataset.questions
    ]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (tmp_path / "small" / "qas.jsonl").write_text(text, encoding="utf-8")
    return tmp_path / "small"


def run(*arguments: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["stacking.py", *map(str, arguments)])
    runpy.run_path(str(REPOSITORY / "benchmarks" / "stacking.py"), run_name="__main__")


def rows(text: str) -> dict[str, list[float]]:
    return {name.strip(): [float(part) for part in found.split("|")[:-1]] for name, found in _ROW.findall(text)}


def test_a_row_for_each_technique(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(prompt: str) -> str:
        if '"queries"' in prompt:
            return '{"queries": ["clay and stove", "the place of the clay", "stove place"]}'
        assert "Below stands a part of the document" in prompt
        return "From a list of what stands where."

    with serve(answer) as endpoint:
        monkeypatch.setenv("HICHUNK_BASE_URL", endpoint.url)
        monkeypatch.setenv("HICHUNK_MODEL", "m")
        run(folder, "--output", tmp_path / "out", "--documents", "pottery", "--llm", monkeypatch=monkeypatch)
        asked = len(endpoint.requests)
        told = capsys.readouterr().out
        # What was answered is not asked again.
        only = ("--only", "variants", "contexts", "--documents", "pottery", "--llm")
        run(folder, "--output", tmp_path / "out", *only, monkeypatch=monkeypatch)
        assert len(endpoint.requests) == asked > 1
        again = rows(capsys.readouterr().out)
    assert "small (pottery): 1 questions" in told
    assert "<!-- 1 of 1 questions have variants -->" in told
    found = rows(told)
    for technique in (
        "hybrid",
        "ranked by",
        "levels",
        "then leaves in them",
        "by rule",
        "on either side",
        "by a model",
        "contexts",
    ):
        assert any(technique in name for name in found), technique
    for name, values in found.items():
        assert all(0 <= value <= 100 for value in values)
        # The whole page fits the largest budget; neighbours alone have no claim on it.
        assert values[-1] == 100 or "% merged" in name
    assert {name: found[name] for name in again} == again
    assert not list(folder.glob("*.json"))


def test_what_is_wrong_is_named(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run(folder, "--only", "contexts", monkeypatch=monkeypatch)
    assert "the group contexts needs --llm" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="small has no document kiln; it has pottery, weaving"):
        run(folder, "--output", tmp_path / "out", "--documents", "kiln", monkeypatch=monkeypatch)
    with pytest.raises(SystemExit, match="is no data set"):
        run(tmp_path / "nowhere", monkeypatch=monkeypatch)
    with pytest.raises(SystemExit):
        run(folder, "--questions", 0, monkeypatch=monkeypatch)
    assert "--questions: 0 is less than 1" in capsys.readouterr().err
    # Not after all that needs no language model has been measured.
    monkeypatch.delenv("HICHUNK_BASE_URL", raising=False)
    monkeypatch.delenv("HICHUNK_MODEL", raising=False)
    with pytest.raises(SystemExit):
        run(folder, "--llm", monkeypatch=monkeypatch)
    assert "HICHUNK_BASE_URL and HICHUNK_MODEL are not set" in capsys.readouterr().err
