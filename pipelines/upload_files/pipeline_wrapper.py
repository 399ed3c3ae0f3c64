# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Upload files to the index, over HTTP (multipart; several files at once)."""

from pathlib import Path
from typing import Any

from fastapi import HTTPException, UploadFile
from hayhooks import BasePipelineWrapper

from hichunk_haystack.serving import TooLargeError, open_library
from hichunk_haystack.serving.library import Upload


class PipelineWrapper(BasePipelineWrapper):
    """`POST /upload_files/run`. An agent has no files to send, so it is no tool over MCP."""

    skip_mcp = True

    def setup(self) -> None:
        """Load the pipeline; models open at the first upload."""
        self.library = open_library(Path(__file__).resolve().parents[1])
        self.library.load()

    async def run_api_async(self, files: list[UploadFile] | None = None) -> dict[str, Any]:
        """
        Store files and index them; a file of the same name is replaced.

        :param files: The files.
        :returns: What was indexed, and what failed and why.
        """
        if not files:
            raise HTTPException(422, "The upload holds no file: send one or more as the form field `files`.")
        try:
            return await self.library.add([Upload(each.filename, each.file) for each in files])
        except TooLargeError as error:
            raise HTTPException(413, str(error)) from error
