# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import json
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hichunk_haystack.hichunk.cache import DiskCache


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_an_answer_is_found_again_by_model_and_prompt(tmp_path: Path) -> None:
    DiskCache(tmp_path / "a" / "b", "one").put("prompt", "0, Level One, True\n再见 \ud800")
    cache = DiskCache(tmp_path / "a" / "b", "one")
    assert cache.get("prompt") == "0, Level One, True\n再见 \ud800"
    assert cache.get("prompt ") is None
    assert DiskCache(tmp_path / "a" / "b", "two").get("prompt") is None
    # "one" + "prompt" read otherwise.
    assert DiskCache(tmp_path / "a" / "b", "on").get("eprompt") is None


def test_a_newer_answer_replaces_the_older_one(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, "one")
    cache.put("prompt", "old")
    cache.put("prompt", "new")
    assert cache.get("prompt") == "new"
    assert len(files(tmp_path)) == 1


@pytest.mark.parametrize("content", ["", '{"answer": ', "[]", '{"answer": 3}', '{"other": "x"}', b"\xff\xfe"])
def test_a_broken_file_counts_as_not_there_and_is_replaced(tmp_path: Path, content: str | bytes) -> None:
    cache = DiskCache(tmp_path, "one")
    cache.put("prompt", "answer")
    (path,) = files(tmp_path)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert cache.get("prompt") is None
    cache.put("prompt", "again")
    assert json.loads(path.read_text())["answer"] == "again"


def test_threads_that_write_the_same_leave_whole_files(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, "one")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: cache.put(f"prompt {number % 5}", f"answer {number % 5} " * 500), range(200)))
    assert [cache.get(f"prompt {number}") for number in range(5)] == [f"answer {n} " * 500 for n in range(5)]
    # No temporary file is left.
    assert len(files(tmp_path)) == 5


def test_a_write_that_fails_leaves_the_old_answer_and_warns_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cache = DiskCache(tmp_path, "one")
    cache.put("prompt", "old")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with caplog.at_level(logging.WARNING):
        cache.put("prompt", "new")
        cache.put("prompt", "new")
    assert cache.get("prompt") == "old"
    assert len(files(tmp_path)) == 1
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 1
    assert str(tmp_path) in messages[0]
    assert "No space left" in messages[0]


def test_a_folder_that_can_not_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"cache_dir '.*file/answers' can't be made .* Name a folder"):
        DiskCache(tmp_path / "file" / "answers", "one")
