# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What the environment says about serving."""

import math
import os
from pathlib import Path

from hichunk_haystack.pipeline_files import pipeline_file

UPLOADS = "HICHUNK_UPLOADS"
"""Variable: folder of the uploaded files; `uploads` in the working directory."""

MAX_UPLOAD_MB = "HICHUNK_MAX_UPLOAD_MB"
"""Variable: the most of one upload, all its files together, in MB of 1,000,000 bytes; 50."""

_DEFAULT_MB = 50.0
_MB = 1_000_000


def uploads_folder() -> Path:
    """
    Read where uploaded files are kept.

    :returns: Absolute path.
    """
    return Path(os.path.abspath(os.path.expanduser(os.environ.get(UPLOADS, "").strip() or "uploads")))


def max_upload_bytes() -> int:
    """
    Read how much one upload may hold.

    :returns: Bytes.
    :raises ValueError: If the variable is no positive number.
    """
    text = os.environ.get(MAX_UPLOAD_MB, "").strip()
    try:
        size = float(text) if text else _DEFAULT_MB
    except ValueError:
        size = math.nan
    if not (0 < size < math.inf):
        msg = f"{MAX_UPLOAD_MB} is '{text}'; it must be a number of MB above 0, such as 50."
        raise ValueError(msg)
    return int(size * _MB)


def served_file(name: str, beside: Path | None = None) -> Path:
    """
    Find the YAML of a pipeline: the variable `HICHUNK_<NAME>_PIPELINE`, else the folder, else what comes along.

    :param name: "indexing", "query" or "rag".
    :param beside: A folder to look in.
    :returns: Path of the file.
    """
    named = os.environ.get(f"HICHUNK_{name.upper()}_PIPELINE", "").strip()
    if named:
        return Path(named).expanduser()
    if beside is not None and (beside / f"{name}.yml").is_file():
        return beside / f"{name}.yml"
    return pipeline_file(name)
