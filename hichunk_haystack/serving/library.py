# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""A folder of uploaded files and the index over it, kept in step."""

import asyncio
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from haystack import logging

from hichunk_haystack.components.writers import HierarchyDeleter, HierarchyWriter
from hichunk_haystack.serving.names import safe_name
from hichunk_haystack.serving.served_pipeline import ServedPipeline
from hichunk_haystack.serving.settings import MAX_UPLOAD_MB, max_upload_bytes, served_file, uploads_folder
from hichunk_haystack.stored_sources import StoredSource, list_sources_async

logger = logging.getLogger(__name__)

# Hidden, so that whoever indexes the whole folder leaves it out.
_STAGING = ".incoming"
_MB = 1_000_000
_ABANDONED = 24 * 60 * 60  # seconds


class Upload(NamedTuple):
    """
    A file that a client sends.

    :param filename: What the client calls it.
    :param file: Its content, open for reading and seeking.
    """

    filename: str | None
    file: BinaryIO


class TooLargeError(ValueError):
    """An upload above the limit; nothing of it has been stored."""


@dataclass
class _Staged:
    """A file on its way: what the client called it, its name, where it waits, and where its older self waits."""

    given: str
    name: str
    waiting: Path
    older: Path | None = None


class Library:
    """
    Uploaded files in a folder of their own, and the index over them.

    A file is known by its name, made safe. Uploading it again replaces file and index; a file that can't be indexed
    leaves both as they were. Uploads and deletions follow one another, so that file and index belong together; storing
    what comes in and asking go on meanwhile.

    ```python
    import asyncio
    import io
    from tempfile import TemporaryDirectory

    from hichunk_haystack.pipeline_files import pipeline_file
    from hichunk_haystack.serving import Library
    from hichunk_haystack.serving.library import Upload

    async def main(folder: str) -> None:
        library = Library(pipeline_file("indexing"), folder)
        page = io.BytesIO(b"# Kiln\\n\\nFire it slowly, for the clay is wet.\\n")
        answer = await library.add([Upload("../notes/kiln.md", page), Upload("plan.xyz", io.BytesIO(b"?"))])
        print(answer["files"], [each["file"] for each in answer["failed"]])
        print([source["name"] for source in await library.sources()])
        print(await library.delete(["kiln.md"]))
        library.close()

    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
    ```
    """

    def __init__(self, indexing: str | Path, folder: str | Path, *, max_bytes: int = 50 * _MB) -> None:
        """
        Prepare; the pipeline loads at the first use.

        :param indexing: YAML of the indexing pipeline, with a `FileConverter` and a `HierarchyWriter`.
        :param folder: Where the files are kept; made if it is missing.
        :param max_bytes: The most bytes of one upload, all its files together.
        """
        self.folder = Path(folder).absolute()
        self.max_bytes = max_bytes
        self._indexing = indexing
        self._lock = asyncio.Lock()
        self._loading = threading.Lock()
        self._loaded: ServedPipeline | None = None

    def load(self) -> ServedPipeline:
        """
        Load the pipeline, once; what is wrong with it shows here, before the first upload.

        :returns: The pipeline.
        :raises ValueError: If it has no `FileConverter` or no `HierarchyWriter`.
        """
        with self._loading:
            if self._loaded is None:
                pipeline = ServedPipeline(self._indexing, root=self.folder)
                pipeline.find(HierarchyWriter)
                _clear(self.folder / _STAGING)
                self._loaded = pipeline
            return self._loaded

    @property
    def _writer(self) -> HierarchyWriter:
        return self.load().find(HierarchyWriter)

    async def add(self, uploads: Sequence[Upload]) -> dict[str, Any]:
        """
        Store files and index them.

        :param uploads: The files.
        :returns: What the indexing pipeline counts, with `files` (dictionaries of "file", the client's name, and
            "source", the name it has here) and `failed` (of "file" and "error") for what could not be indexed and is
            as it was before.
        :raises TooLargeError: If they are above the limit together.
        """
        self._check_size(uploads)
        await asyncio.to_thread((self.folder / _STAGING).mkdir, parents=True, exist_ok=True)
        staging = Path(await asyncio.to_thread(tempfile.mkdtemp, dir=self.folder / _STAGING))
        try:
            staged, failed = await asyncio.to_thread(_stage, uploads, staging)
            async with self._lock:
                return await self._index(staged, failed, staging)
        finally:
            await asyncio.to_thread(shutil.rmtree, staging, ignore_errors=True)

    def _check_size(self, uploads: Iterable[Upload]) -> None:
        total = 0
        for upload in uploads:
            total += upload.file.seek(0, os.SEEK_END)
            upload.file.seek(0)
        if total > self.max_bytes:
            msg = (
                f"The upload holds {total / _MB:,.1f} MB, the limit is {self.max_bytes / _MB:,.1f} MB: send fewer "
                f"files at once, or raise {MAX_UPLOAD_MB}. Nothing has been stored."
            )
            raise TooLargeError(msg)

    async def _index(self, staged: Sequence[_Staged], failed: list[dict[str, str]], staging: Path) -> dict[str, Any]:
        try:
            taken = await asyncio.to_thread(_swap_in, staged, self.folder, staging, failed)
            # Also without a file: then it counts nothing.
            answer = await self.load().run({"paths": [str(self.folder / one.name) for one in taken]})
        except BaseException:
            for one in staged:
                _swap_back(one, self.folder)
            raise
        reasons = {each["path"]: each["error"] for each in answer.pop("failed", [])}
        files = []
        for one in taken:
            # What is not even tried is called by its path, what is tried by its path below the root.
            reason = reasons.get(one.name) or reasons.get(str(self.folder / one.name))
            if reason is not None:
                await asyncio.to_thread(_swap_back, one, self.folder)
                failed.append({"file": one.given, "error": reason})
            else:
                files.append({"file": one.given, "source": one.name})
        return {"files": files, **answer, "failed": failed}

    async def sources(self) -> list[dict[str, Any]]:
        """
        List what is indexed, what others than this library have indexed among it.

        :returns: Dictionaries of "name", "leaves", "tokens", "complete" and "uploaded" (whether its file is here).
        """
        writer = self._writer
        return [
            self._described(source) for source in await list_sources_async(writer.document_store, writer.source_key)
        ]

    def _described(self, source: StoredSource) -> dict[str, Any]:
        return {
            "name": source.name,
            "leaves": source.leaves,
            "tokens": source.tokens,
            "complete": source.complete,
            "uploaded": self._file_of(source.name) is not None,
        }

    async def delete(self, names: Sequence[str]) -> dict[str, Any]:
        """
        Delete sources from the index, and their files where these were uploaded. No other file is touched.

        :param names: Names as `sources` gives them.
        :returns: A dictionary with `sources` and `deleted` (how many sources and nodes were in the index), `files` (how
            many files were removed) and `missing` (names that stand for nothing).
        """
        writer = self._writer
        async with self._lock:
            there = {source.name for source in await list_sources_async(writer.document_store, writer.source_key)}
            missing = [name for name in names if name not in there and self._file_of(name) is None]
            deleter = HierarchyDeleter(writer.document_store, source_key=writer.source_key)
            counts = await deleter.run_async(sources=list(dict.fromkeys(names)))
            # The file last: what is left by a crash is deleted by the same request again.
            files = [file for name in dict.fromkeys(names) if (file := self._file_of(name)) is not None]
            for file in files:
                await asyncio.to_thread(file.unlink, missing_ok=True)
        return {**counts, "files": len(files), "missing": missing}

    def _file_of(self, name: str | int) -> Path | None:
        """The uploaded file of a source; `None` for whatever is no name of one."""
        if not isinstance(name, str) or safe_name(name) != name:
            return None
        file = self.folder / name
        return file if file.is_file() or file.is_symlink() else None

    def close(self) -> None:
        """Release what the pipeline holds open."""
        if self._loaded is not None:
            self._loaded.pipeline.close()


def _clear(staging: Path) -> None:
    """Remove what uploads that died have left; another process may have younger ones under way."""
    for folder in staging.glob("*"):
        if folder.stat().st_mtime < time.time() - _ABANDONED:
            shutil.rmtree(folder, ignore_errors=True)


def _stage(uploads: Iterable[Upload], staging: Path) -> tuple[list[_Staged], list[dict[str, str]]]:
    """Write what comes in to files that wait, and name what can't be taken."""
    staged: dict[str, _Staged] = {}
    failed = []
    for number, upload in enumerate(uploads):
        given = (upload.filename or "").encode(errors="replace").decode()
        name = safe_name(upload.filename)
        if name is None:
            failed.append({"file": given, "error": "The file has no name that can be kept; send it under another one."})
        elif name.casefold() in staged:
            error = f"Another file of this upload is called '{name}' as well; send one of them under another name."
            failed.append({"file": given, "error": error})
        else:
            one = staged[name.casefold()] = _Staged(given, name, staging / f"new-{number}")
            with one.waiting.open("wb") as file:
                shutil.copyfileobj(upload.file, file)
                file.flush()
                os.fsync(file.fileno())
    return list(staged.values()), failed


def _swap_in(staged: Sequence[_Staged], folder: Path, staging: Path, failed: list[dict[str, str]]) -> list[_Staged]:
    """Put new files in their places, each by one atomic step; a second name of the old one waits for a way back."""
    taken = []
    for number, one in enumerate(staged):
        place = folder / one.name
        try:
            if place.is_file() and not place.is_symlink():
                older = staging / f"old-{number}"
                try:
                    os.link(place, older)
                except OSError:  # a file system without hard links
                    shutil.copy2(place, older)
                one.older = older
            os.replace(one.waiting, place)
        except OSError as error:  # a folder of that name, for instance
            failed.append({"file": one.given, "error": f"The file can't be stored as '{one.name}': {error.strerror}."})
        else:
            taken.append(one)
    return taken


def _swap_back(one: _Staged, folder: Path) -> None:
    if one.waiting.exists():  # it has not been put there yet
        return
    if one.older is not None:
        os.replace(one.older, folder / one.name)
    else:
        (folder / one.name).unlink(missing_ok=True)


_libraries: dict[tuple[Path, Path, int], Library] = {}
_libraries_lock = threading.Lock()


def open_library(beside: Path | None = None) -> Library:
    """
    Give the library that the environment names; the same one to all wrappers of a process.

    :param beside: Folder with the YAML pipelines.
    :returns: The library.
    :raises ValueError: If a variable makes no sense.
    """
    settings = (served_file("indexing", beside), uploads_folder(), max_upload_bytes())
    with _libraries_lock:
        if settings not in _libraries:
            file, folder, size = settings
            _libraries[settings] = Library(file, folder, max_bytes=size)
        return _libraries[settings]
