# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Markdown files in, JSONL for chat fine-tuning out."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from haystack import logging

from hichunk_haystack.hichunk.prompts import LEVELS
from hichunk_haystack.training.examples import Example

logger = logging.getLogger(__name__)


def read_markdown(folder: str | Path) -> Iterator[tuple[str, str]]:
    """
    Read the Markdown files of a folder and of those in it.

    :param folder: The folder.
    :returns: (path inside the folder, text) of each `.md` file, by path; those that are no UTF-8 are left out with a
        warning.
    :raises FileNotFoundError: If there is no such folder.
    """
    root = Path(folder)
    if not root.is_dir():
        msg = f"'{folder}' is no folder. Name one that holds .md files."
        raise FileNotFoundError(msg)
    for path in sorted(root.rglob("*.md")):
        try:
            # Read as bytes: line ends stay as they are.
            yield path.relative_to(root).as_posix(), path.read_bytes().decode()
        except UnicodeDecodeError as error:
            logger.warning("'{path}' is left out: {error}", path=str(path), error=str(error))


def write_jsonl(path: str | Path, examples: Iterable[Example]) -> dict[str, Any]:
    """
    Write examples, one a line, as chat fine-tuning takes them.

    The file is complete or not there: it is written beside its place and moved there at the end.

    :param path: The file; an older one is replaced.
    :param examples: The examples.
    :returns: Counts: `examples`, `documents`, `kinds`, `with_residual`, `lines`, `tokens`, `cut_points` by level.
    """
    target = Path(path)
    kinds: Counter[str] = Counter()
    levels: Counter[int] = Counter()
    documents: set[str] = set()
    with_residual = lines = tokens = 0
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            for example in examples:
                file.write(json.dumps(example.to_chat(), ensure_ascii=False) + "\n")
                kinds[example.kind] += 1
                levels.update(example.levels)
                documents.add(example.source)
                with_residual += example.residual > 0
                lines += example.lines
                tokens += example.tokens
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    return {
        "examples": kinds.total(),
        "documents": len(documents),
        "kinds": dict(sorted(kinds.items())),
        "with_residual": with_residual,
        "lines": lines,
        "tokens": tokens,
        "cut_points": {f"Level {LEVELS[level - 1]}": count for level, count in sorted(levels.items())},
    }
