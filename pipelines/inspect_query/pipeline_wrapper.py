# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""A page that shows what the merge did with a question's hits, over HTTP."""

from pathlib import Path

from fastapi import HTTPException
from fastapi.responses import HTMLResponse
from hayhooks import BasePipelineWrapper

from hichunk_haystack.serving import open_questions


class PipelineWrapper(BasePipelineWrapper):
    """`POST /inspect_query/run`, which answers HTML; no tool over MCP, where answers are JSON."""

    skip_mcp = True

    def setup(self) -> None:
        """Load the pipelines; models open at the first question."""
        self.questions = open_questions(Path(__file__).resolve().parents[1])
        self.questions.load()

    async def run_api_async(self, query: str, budget: int | None = None) -> HTMLResponse:
        """
        Show how a question's hits were merged, step by step, as a page in one file.

        :param query: The question.
        :param budget: The most tokens of the context; by default what the query pipeline says.
        :returns: The page.
        """
        try:
            return HTMLResponse(await self.questions.page(query, budget))
        except ValueError as error:
            raise HTTPException(422, str(error)) from error
