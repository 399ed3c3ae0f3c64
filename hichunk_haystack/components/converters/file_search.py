# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Finding files through names, folders and patterns."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

_URL = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_MAGIC = re.compile(r"[*?\[]")


@dataclass
class FoundFile:
    """
    A file to convert.

    :param path: Absolute path, for opening it.
    :param key: What the file is called in `file_path` and in messages.
    :param meta: What the caller wants to have in its meta.
    """

    path: str
    key: str
    meta: dict[str, Any]


@dataclass
class Findings:
    """
    What was found.

    :param files: The files, each once, in the order of the paths given, those of a folder sorted.
    :param failed: What could not be found: dicts of "path" and "error".
    :param skipped: Keys of files in folders that nothing converts.
    """

    files: list[FoundFile] = field(default_factory=list)
    failed: list[dict[str, str]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


class FileFinder:
    """
    Finds the files behind a list of names, folders and patterns.

    A file is the same file however it is reached: links are followed, and a file that was found already does not come
    again. Within a folder a file's own name goes before the names of links to it. Symbolic links are not resolved in
    the keys, since a link is often the only stable name of a file that is replaced at each release.
    """

    def __init__(self, root: str | None, is_known: Callable[[str], bool]) -> None:
        """
        Prepare.

        :param root: Folder that relative paths start from, that keys are relative to and that all files must lie in.
            `None` is the working directory, with absolute keys and without a bound.
        :param is_known: Says for a path whether its type can be converted.
        """
        self.root = None if root is None else os.path.abspath(os.path.expanduser(root))
        self.is_known = is_known
        self.findings = Findings()
        self._seen: dict[str, FoundFile] = {}

    def find(self, paths: Iterable[Any], metas: Iterable[dict[str, Any]]) -> Findings:
        """
        Find the files.

        :param paths: Paths of files or folders, or patterns (`*`, `**`, `?`, `[...]`).
        :param metas: The meta of each path.
        :returns: What was found.
        """
        for path, meta in zip(paths, metas, strict=True):
            try:
                self._find(path, meta)
            except _NotFoundError as error:
                self.findings.failed.append({"path": readable(path), "error": str(error)})
        return self.findings

    def _find(self, given: Any, meta: dict[str, Any]) -> None:
        path = self._absolute(given)
        if os.path.isdir(path):
            self._add_all([path], meta)
        elif os.path.lexists(path):
            if not self.is_known(path):
                kind = os.path.splitext(path)[1].lower()
                what = f"files of type '{kind}'" if kind else "files without a suffix"
                way = f"set one for '{kind}' in converters of the FileConverter, in the pipeline's YAML"
                msg = f"No converter is known for {what}; {way if kind else 'give the file the suffix of its type'}."
                raise _NotFoundError(msg)
            self._add([path], meta)
        elif _MAGIC.search(path):
            self._add_all(self._matches(path), meta)
        else:
            msg = "There is no such file or folder; check the path, which the machine that runs this must see."
            raise _NotFoundError(msg)

    def _absolute(self, given: Any) -> str:
        if not isinstance(given, str | PurePath):
            msg = f"A path is a string or a pathlib.Path, not a {type(given).__name__}."
            raise _NotFoundError(msg)
        text = str(given)
        if not text.strip() or "\0" in text:
            msg = "The path is empty." if not text.strip() else "A path holds no NUL character."
            raise _NotFoundError(msg)
        if _URL.match(text):
            msg = "URLs are not fetched; download the page (Haystack's LinkContentFetcher does) and pass the file."
            raise _NotFoundError(msg)
        path = os.path.abspath(os.path.join(self.root or "", os.path.expanduser(text)))
        if not self._is_inside(path):
            msg = f"It lies outside of the folder that files may come from (root, '{self.root}')."
            raise _NotFoundError(msg)
        return path

    def _is_inside(self, path: str) -> bool:
        return self.root is None or path == self.root or path.startswith(os.path.join(self.root, ""))

    def _matches(self, pattern: str) -> list[str]:
        """Match a pattern, without hidden files unless the pattern asks for them."""
        parts = Path(pattern).parts
        fixed = next(number for number, part in enumerate(parts) if _MAGIC.search(part))
        base, rest = Path(*parts[:fixed]), os.path.join(*parts[fixed:])
        try:
            found = sorted(str(path) for path in base.glob(rest))
        except ValueError as error:
            msg = f"The pattern is not understood: {error}."
            raise _NotFoundError(msg) from error
        if not any(part.startswith(".") for part in parts[fixed:]):
            found = [path for path in found if not _is_hidden(os.path.relpath(path, base))]
        if not found:
            msg = "The pattern matches no file; check it, and that the machine that runs this sees the folder."
            raise _NotFoundError(msg)
        return found

    def _add_all(self, paths: Iterable[str], meta: dict[str, Any]) -> None:
        """Add files, and all files in folders, of which those of unknown types are skipped."""
        known: list[str] = []
        unknown: list[str] = []
        told = len(self.findings.failed)
        for path in paths:
            for file in self._walk(path) if os.path.isdir(path) else [path]:
                (known if self.is_known(file) else unknown).append(file)
        skipped = {self._key(path): None for path in sorted(unknown)}
        self.findings.skipped += [key for key in skipped if key not in self.findings.skipped]
        if not known and not skipped:
            if len(self.findings.failed) > told:
                return  # it could not be read, which was said
            msg = "The folder is empty (hidden files do not count); put files into it, or name another one."
            raise _NotFoundError(msg)
        if not known:
            msg = f"No file of a type that can be converted was found there ({len(skipped)} of other types)."
            raise _NotFoundError(msg)
        self._add(known, meta)

    def _add(self, paths: Iterable[str], meta: dict[str, Any]) -> None:
        new = []
        for path in paths:
            identity = os.path.realpath(path)
            if identity not in self._seen:
                self._seen[identity] = FoundFile(path, self._key(path), meta)
                new.append(self._seen[identity])
        self.findings.files += sorted(new, key=lambda file: file.path)

    def _walk(self, folder: str) -> Iterator[str]:
        """Give the files of a folder that are not hidden: first the files themselves, then links to files."""
        seen: set[str] = set()
        folders, links = [folder], []
        linked_folders: list[str] = []
        while folders or linked_folders:
            # Linked folders come last, so that a folder is known by its own name where it has one here.
            current = folders.pop() if folders else linked_folders.pop()
            identity = os.path.realpath(current)
            if identity in seen:
                continue
            seen.add(identity)
            try:
                entries = sorted(os.scandir(current), key=lambda entry: entry.name)
            except OSError as error:
                reason = f"The folder can't be read ({error.strerror}); check who may read it."
                self.findings.failed.append({"path": self._key(current), "error": reason})
                continue
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if os.path.isdir(entry.path):
                    (linked_folders if entry.is_symlink() else folders).append(entry.path)
                elif entry.is_symlink():
                    links.append(entry.path)
                else:
                    yield entry.path
        yield from links

    def _key(self, path: str) -> str:
        return readable(path if self.root is None else PurePath(os.path.relpath(path, self.root)).as_posix())


class _NotFoundError(Exception):
    """Why nothing came of a path."""


def readable(path: Any) -> str:
    """
    Write a path so that it can be stored and printed, even if its bytes are no valid text.

    :param path: Anything given as a path.
    :returns: The path; bytes that are no UTF-8 stand as in `\\xe9`.
    """
    text = str(path) if isinstance(path, str | PurePath) else repr(path)
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace") if _is_escaped(text) else text


def _is_escaped(text: str) -> bool:
    return any("\udc80" <= character <= "\udcff" for character in text)


def _is_hidden(path: str) -> bool:
    return any(part.startswith(".") for part in PurePath(path).parts)
