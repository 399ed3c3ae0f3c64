# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Ask the index: over HTTP and MCP for a context, over OpenAI's protocol for an answer."""

from pathlib import Path
from typing import Any

from fastapi import HTTPException
from hayhooks import BasePipelineWrapper

from hichunk_haystack.serving import open_questions


class PipelineWrapper(BasePipelineWrapper):
    """`POST /ask/run`, and the model `ask` of `POST /v1/chat/completions`."""

    def setup(self) -> None:
        """Load the pipelines; models open at the first question."""
        self.questions = open_questions(Path(__file__).resolve().parents[1])
        self.questions.load()

    async def run_api_async(self, query: str, budget: int | None = None) -> dict[str, Any]:
        """
        Find the passages that answer a question, within a token budget, with numbered citations.

        :param query: The question.
        :param budget: The most tokens of the context; by default what the query pipeline says.
        :returns: Context, citations, documents, tokens used, and the trace of what merged.
        """
        try:
            return await self.questions.ask(query, budget)
        except ValueError as error:
            raise HTTPException(422, str(error)) from error

    async def run_chat_completion_async(self, model: str, messages: list[dict], body: dict) -> str:  # noqa: ARG002
        """
        Answer the last question of a chat from the index.

        :param model: Name of this wrapper.
        :param messages: The chat.
        :param body: The whole request.
        :returns: The answer with its sources; without a language model, what to set.
        """
        return await self.questions.chat(messages)
