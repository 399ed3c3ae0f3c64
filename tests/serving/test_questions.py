# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from pathlib import Path
from typing import Any

import pytest

from hichunk_haystack.serving import Questions, ServedPipeline
from hichunk_haystack.serving.questions import last_question
from hichunk_haystack.serving.settings import max_upload_bytes, served_file
from tests.pipeline_files import PIPELINES, QUERY


@pytest.mark.parametrize(
    ("messages", "question"),
    [
        ([], ""),
        ([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "a"),
        ([{"role": "user", "content": "a"}, {"role": "user", "content": " "}], "a"),
        ([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}], "a\nb"),
        ([{"role": "user", "content": [{"type": "image_url"}, "text", None]}], ""),
        ([{"role": "user", "content": None}, {"role": "user"}, {}], ""),
        ([{"role": "system", "content": "a"}], ""),
    ],
)
def test_the_last_question_of_a_chat(messages: list[dict[str, Any]], question: str) -> None:
    assert last_question(messages) == question


@pytest.mark.parametrize("base_url", [None, "", " "])
async def test_without_a_model_a_chat_says_what_to_set(base_url: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HICHUNK_BASE_URL", raising=False)
    monkeypatch.setenv("HICHUNK_MODEL", "small")
    if base_url is not None:
        monkeypatch.setenv("HICHUNK_BASE_URL", base_url)
    answer = await Questions(QUERY, PIPELINES / "rag.yml").chat([{"role": "user", "content": "Who?"}])
    assert "No language model is configured" in answer
    assert "set HICHUNK_BASE_URL (and" in answer


@pytest.mark.parametrize(("value", "size"), [("", 50_000_000), ("1", 1_000_000), ("0.5", 500_000), (" 2 ", 2_000_000)])
def test_the_limit(value: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HICHUNK_MAX_UPLOAD_MB", value)
    assert max_upload_bytes() == size


@pytest.mark.parametrize("value", ["0", "-1", "ten", "nan", "inf"])
def test_a_limit_that_is_none(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HICHUNK_MAX_UPLOAD_MB", value)
    with pytest.raises(ValueError, match=f"HICHUNK_MAX_UPLOAD_MB is '{value}'"):
        max_upload_bytes()


def test_where_a_pipeline_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HICHUNK_QUERY_PIPELINE", raising=False)
    assert served_file("query", tmp_path) == QUERY
    (tmp_path / "query.yml").touch()
    assert served_file("query", tmp_path) == tmp_path / "query.yml"
    monkeypatch.setenv("HICHUNK_QUERY_PIPELINE", "other.yml")
    assert served_file("query", tmp_path) == Path("other.yml")


def test_a_pipeline_without_a_converter_takes_no_uploads(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no FileConverter"):
        ServedPipeline(QUERY, root=tmp_path)
    (tmp_path / "empty.yml").write_text("components: {}\nconnections: []\n")
    with pytest.raises(ValueError, match="declares no `inputs`"):
        ServedPipeline(tmp_path / "empty.yml")
