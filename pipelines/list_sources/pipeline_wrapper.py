# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""List the sources in the index, over HTTP and MCP."""

from pathlib import Path
from typing import Any

from hayhooks import BasePipelineWrapper

from hichunk_haystack.serving import open_library


class PipelineWrapper(BasePipelineWrapper):
    """`POST /list_sources/run`."""

    def setup(self) -> None:
        """Load the pipeline, for its store."""
        self.library = open_library(Path(__file__).resolve().parents[1])
        self.library.load()

    async def run_api_async(self) -> dict[str, Any]:
        """
        List the sources in the index: name, leaves, tokens, whether complete, whether its file was uploaded.

        :returns: The list, under `sources`.
        """
        return {"sources": await self.library.sources()}
