# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""A model's answers on disk, so that a run that was killed goes on where it stopped."""

import contextlib
import hashlib
import json
import os
import tempfile
from pathlib import Path

from haystack import logging

logger = logging.getLogger(__name__)


class DiskCache:
    """
    Answers by model and prompt, a file each.

    A file is written beside its place and then moved there, so that none is ever half written; any number of threads
    and processes may share a folder. A file that can't be read counts as not there.

    ```python
    import tempfile

    from hichunk_haystack.hichunk.cache import DiskCache

    with tempfile.TemporaryDirectory() as folder:
        cache = DiskCache(folder, model="hichunk-4b")
        cache.put("0 @ Kiln", "0, Level One, True")
        print(cache.get("0 @ Kiln"))  # 0, Level One, True
    ```
    """

    def __init__(self, folder: str | Path, model: str) -> None:
        """
        Open a cache.

        :param folder: Folder of the files; made if it isn't there.
        :param model: What names the model with all that its answers depend on.
        :raises ValueError: If the folder can't be made.
        """
        self.folder = Path(folder)
        self.model = model
        self._warned = False
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            msg = f"cache_dir '{folder}' can't be made ({error}). Name a folder that can be written, or None."
            raise ValueError(msg) from error

    def get(self, prompt: str) -> str | None:
        """
        Look an answer up.

        :param prompt: What was asked.
        :returns: The answer, or `None`.
        """
        try:
            answer = json.loads(self._path(prompt).read_text(encoding="utf-8"))["answer"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return answer if isinstance(answer, str) else None

    def put(self, prompt: str, answer: str) -> None:
        """
        Keep an answer; where the disk refuses, a warning is logged and the run goes on.

        :param prompt: What was asked.
        :param answer: What was answered.
        """
        path = self._path(prompt)
        temporary = None
        try:
            path.parent.mkdir(exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({"model": self.model, "answer": answer}, file)
            os.replace(temporary, path)
        except OSError as error:
            if temporary is not None:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            if not self._warned:
                self._warned = True
                logger.warning(
                    "An answer could not be kept in '{folder}' ({error}); a later run will ask again.",
                    folder=str(self.folder),
                    error=str(error),
                )

    def _path(self, prompt: str) -> Path:
        # The length of the model's name goes in, so that no name and prompt look like another pair.
        key = f"{len(self.model)} {self.model} {prompt}".encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(key, digest_size=20).hexdigest()
        return self.folder / digest[:2] / f"{digest[2:]}.json"
