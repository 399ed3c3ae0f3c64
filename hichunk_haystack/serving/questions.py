# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Questions to the index, as JSON, as a chat and as a page."""

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hichunk_haystack.inspector import Run, query_page
from hichunk_haystack.serving.served_pipeline import ServedPipeline
from hichunk_haystack.serving.settings import served_file

_MODEL = ("HICHUNK_BASE_URL", "HICHUNK_MODEL")
_NO_MODEL = (
    "No language model is configured, so there is nobody to chat with: set {} (and HICHUNK_API_KEY where a key is "
    "asked for) to an endpoint that speaks OpenAI's protocol, and start the server again. Without a model, /ask/run "
    "gives the passages that an answer would rest on."
)
_NO_QUESTION = "The chat holds no text of a user: ask a question."


class Questions:
    """
    Asks the query pipeline, and the pipeline with a language model behind it.

    ```python
    import asyncio

    from hichunk_haystack.pipeline_files import pipeline_file
    from hichunk_haystack.serving import Questions

    questions = Questions(pipeline_file("query"), pipeline_file("rag"))
    print(asyncio.run(questions.ask("Who owns the safety page?", budget=500))["citations"])  # []
    questions.close()
    ```
    """

    def __init__(self, query: str | Path, rag: str | Path) -> None:
        """
        Prepare; pipelines load at their first use.

        :param query: YAML of the query pipeline, with the input `query`.
        :param rag: YAML of a pipeline that answers in the output `reply` as well.
        """
        self._query, self._rag = query, rag
        self._loading = threading.Lock()
        self._loaded: dict[str | Path, ServedPipeline] = {}

    def load(self) -> None:
        """Load the query pipeline, and the one with a language model where there is one."""
        self._load(self._query)
        if not _unset():
            self._load(self._rag)

    def _load(self, file: str | Path) -> ServedPipeline:
        with self._loading:
            if file not in self._loaded:
                self._loaded[file] = ServedPipeline(file)
            return self._loaded[file]

    async def ask(self, query: str, budget: int | None = None) -> dict[str, Any]:
        """
        Ask for a context.

        :param query: The question.
        :param budget: Budget in tokens, instead of the pipeline's.
        :returns: The pipeline's outputs: context, citations, documents, tokens used and trace.
        :raises ValueError: If the question is empty or the budget is below 1.
        """
        if not query.strip():
            msg = "The query is empty: ask a question."
            raise ValueError(msg)
        if budget is not None and budget < 1:
            msg = f"The budget is {budget}; it must be at least 1 token."
            raise ValueError(msg)
        return await self._load(self._query).run({"query": query}, token_budget=budget)

    async def page(self, query: str, budget: int | None = None) -> str:
        """
        Ask, and show what the merge did.

        :param query: The question.
        :param budget: Budget in tokens, instead of the pipeline's.
        :returns: A page of the inspector: HTML.
        :raises ValueError: As for `ask`.
        """
        answer = await self.ask(query, budget)
        label = f"{answer['trace']['token_budget']:,} tokens"
        return query_page(query, [Run(label, answer["trace"], answer["documents"])])

    async def chat(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """
        Answer the last question of a chat with the language model. What was said before is not looked at.

        :param messages: As OpenAI's protocol has them.
        :returns: The answer, and under it the sources that its numbers stand for; or what is missing for an answer.
        """
        if unset := _unset():
            return _NO_MODEL.format(" and ".join(unset))
        question = last_question(messages)
        if not question:
            return _NO_QUESTION
        answer = await self._load(self._rag).run({"query": question})
        reply = str(answer["reply"] or "").strip()
        cited = [_line(citation) for citation in answer["citations"] if f"[{citation['number']}]" in reply]
        return "\n".join([reply, "", *cited]) if cited else reply

    def close(self) -> None:
        """Release what the pipelines hold open."""
        for loaded in self._loaded.values():
            loaded.pipeline.close()


def _unset() -> list[str]:
    """What is missing for a language model."""
    return [name for name in _MODEL if not os.environ.get(name, "").strip()]


def last_question(messages: Sequence[Mapping[str, Any]]) -> str:
    """
    Find what a user said last.

    :param messages: As OpenAI's protocol has them; a content may be a text or a list of parts.
    :returns: The text, or an empty one.
    """
    for message in reversed(messages):
        if message.get("role") != "user":
            continue
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        texts = [part.get("text") for part in parts if isinstance(part, Mapping) and part.get("type") == "text"]
        text = "\n".join(text for text in texts if isinstance(text, str)).strip()
        if text:
            return text
    return ""


def _line(citation: Mapping[str, Any]) -> str:
    headings = citation.get("headings") or []
    return f"[{citation['number']}] " + " > ".join([str(citation["source"]), *headings])


_opened: dict[tuple[Path, Path], Questions] = {}
_opened_lock = threading.Lock()


def open_questions(beside: Path | None = None) -> Questions:
    """
    Give what answers questions over the pipelines that the environment names; the same to all wrappers of a process.

    :param beside: Folder with the YAML pipelines.
    :returns: What answers.
    """
    files = (served_file("query", beside), served_file("rag", beside))
    with _opened_lock:
        return _opened.setdefault(files, Questions(*files))
