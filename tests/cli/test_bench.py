# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import json
import subprocess
from pathlib import Path

import pytest

from hichunk_haystack.evaluation.datasets import save_dataset
from tests.cli.command import HICHUNK, environment
from tests.evaluation.corpora import small_dataset


def bench(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [*HICHUNK, "bench", *arguments]
    return subprocess.run(command, cwd=folder, env=environment(folder), capture_output=True, text=True, check=False)


def test_budgets_stand_one_after_another(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    save_dataset(small_dataset(), tmp_path / "small")
    save_dataset(small_dataset(), tmp_path / "64")  # a folder of this name is no budget
    answer = bench(tmp_path, "small", "64", "--budgets", "70", "140", "--questions", "1", "-o", "out")
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.count("| | 70 | 140 |") == 2
    found = json.loads((tmp_path / "out" / "small-1.json").read_text())["results"]
    assert all(list(scores) == ["70", "140"] for scores in found.values())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["nowhere"], "'nowhere' is no data set"), (["256", "512"], "No data set is named, only budgets")],
)
def test_wrong_use_is_one_sentence(arguments: list[str], said: str, tmp_path: Path) -> None:
    answer = bench(tmp_path, *arguments)
    assert answer.returncode != 0
    assert said in answer.stderr
    assert "Traceback" not in answer.stderr
