# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Delete sources from the index, with their uploaded files, over HTTP and MCP."""

from pathlib import Path
from typing import Any

from hayhooks import BasePipelineWrapper

from hichunk_haystack.serving import open_library


class PipelineWrapper(BasePipelineWrapper):
    """`POST /delete_sources/run`. Leave the folder out where nobody is to delete."""

    def setup(self) -> None:
        """Load the pipeline, for its store."""
        self.library = open_library(Path(__file__).resolve().parents[1])
        self.library.load()

    async def run_api_async(self, sources: list[str]) -> dict[str, Any]:
        """
        Delete sources from the index, and their files where these were uploaded.

        :param sources: Names of sources, as list_sources gives them.
        :returns: How many sources, nodes and files were deleted, and which names stand for nothing.
        """
        return await self.library.delete(sources)
