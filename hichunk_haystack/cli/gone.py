# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Which indexed files have gone from the folders that are indexed again."""

import os
import re
from collections.abc import Iterable, Sequence

# How a byte that is no text stands in the name of a source; see `readable` of the file converter.
_ESCAPED = re.compile(rb"\\x([0-9a-f]{2})")


def folders_of(paths: Iterable[str], root: str | None = None) -> list[str]:
    """
    Find the folders among paths, each by its name and by the one that it has without links.

    :param paths: What is indexed: files, folders and patterns.
    :param root: Folder that relative paths start from; `None` is the working directory.
    :returns: Absolute paths.
    """
    start = os.path.expanduser(root or "")
    found = [os.path.abspath(os.path.join(start, os.path.expanduser(path))) for path in paths]
    return list(dict.fromkeys(form for path in found if os.path.isdir(path) for form in (path, os.path.realpath(path))))


def gone_below(folders: Sequence[str], names: Iterable[str | int], root: str | None = None) -> list[str]:
    """
    Find the sources that were files below some folders, and are no longer there.

    A file counts as there when it can't be told, as where a folder above it may not be read.

    :param folders: Absolute paths of folders.
    :param names: Names of sources.
    :param root: Folder that names are relative to; `None` where they are absolute, and others are no files.
    :returns: Their names.
    """
    gone = []
    for name in names:
        if not isinstance(name, str) or not _may_name_a_file(name, root):
            continue
        path = os.path.abspath(os.path.join(os.path.expanduser(root or ""), name))
        if any(path.startswith(os.path.join(folder, "")) for folder in folders) and not _may_be_there(path):
            gone.append(name)
    return gone


def _may_name_a_file(name: str, root: str | None) -> bool:
    """Whether it is an absolute path or, where names are relative to a root, no address and no id without a suffix."""
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        return False
    if "\0" in name or "://" in name:
        return False
    return os.path.isabs(name) or (root is not None and os.path.splitext(name)[1] != "")


def _may_be_there(path: str) -> bool:
    raw = os.fsencode(path)
    return any(map(_is_there, dict.fromkeys((raw, _ESCAPED.sub(lambda match: bytes.fromhex(match[1].decode()), raw)))))


def _is_there(path: bytes) -> bool:
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True
    return True
