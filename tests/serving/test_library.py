# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What the folder of uploads holds when something goes wrong; the rest is tried over HTTP."""

import asyncio
import io
import os
import time
from pathlib import Path

import pytest

from hichunk_haystack.serving import Library, TooLargeError
from hichunk_haystack.serving.library import Upload
from tests.pipeline_files import INDEXING


def upload(name: str, text: str) -> Upload:
    return Upload(name, io.BytesIO(text.encode()))


def files_of(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*") if file.is_file()}


async def test_when_the_index_cannot_be_reached_the_folder_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("QDRANT_PATH", raising=False)
    monkeypatch.setenv("QDRANT_URL", "http://127.0.0.1:9")
    folder = tmp_path / "uploads"
    folder.mkdir()
    (folder / "kiln.md").write_text("old")
    library = Library(INDEXING, folder)
    with pytest.raises(Exception, match="does not answer"):
        await library.add([upload("kiln.md", "# Kiln\n\nFire it.\n"), upload("bees.md", "# Bees\n\nFeed them.\n")])
    assert files_of(folder) == {"kiln.md": "old"}
    library.close()


async def test_a_request_that_is_cancelled_while_it_waits_leaves_nothing(tmp_path: Path) -> None:
    library = Library(INDEXING, tmp_path / "uploads")
    async with library._lock:
        waiting = asyncio.create_task(library.add([upload("kiln.md", "# Kiln\n")]))
        while not files_of(tmp_path):  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert files_of(tmp_path) == {}


async def test_the_limit_counts_all_files_together_and_comes_first(tmp_path: Path) -> None:
    library = Library(INDEXING, tmp_path / "uploads", max_bytes=10)
    with pytest.raises(TooLargeError, match=r"Nothing has been stored\.$"):
        await library.add([upload("a.md", "123456"), upload("b.md", "12345")])
    assert not (tmp_path / "uploads").exists()


def test_what_uploads_that_died_have_left_goes_after_a_day(tmp_path: Path) -> None:
    for name, age in (("old", 25), ("young", 23)):
        folder = tmp_path / ".incoming" / name
        folder.mkdir(parents=True)
        (folder / "new-0").write_text(name)
        then = time.time() - age * 3600
        os.utime(folder, (then, then))
    Library(INDEXING, tmp_path).load()
    assert files_of(tmp_path) == {".incoming/young/new-0": "young"}
