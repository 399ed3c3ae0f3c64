# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""A `HiChunkSplitter` whose model answers as it is told."""

from collections.abc import Callable
from typing import Any

from haystack import Document, component
from haystack.dataclasses import ChatMessage

from hichunk_haystack.components.preprocessors.hichunk_splitter import HiChunkSplitter
from hichunk_haystack.tokens import HuggingFaceTokenCounter

TYPE = "hichunk_haystack.components.preprocessors.HiChunkSplitter"


WORDPIECE = HuggingFaceTokenCounter()


POTTERY = """\
Kiln and wheel

The kiln stands in the yard. It is fired slowly, over eight hours.

How to centre

Centre the clay before you open it. Keep the sponge wet all the time.
"""


@component
class Scripted:
    """Answers by a function of the prompt."""

    def __init__(self, reply: Callable[[str], str | BaseException]) -> None:
        self.reply = reply
        self.prompts: list[str] = []

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]) -> dict[str, list[ChatMessage]]:
        prompt = messages[0].text or ""
        self.prompts.append(prompt)
        reply = self.reply(prompt)
        if isinstance(reply, BaseException):
            raise reply
        return {"replies": [ChatMessage.from_assistant(reply)]}

    def to_dict(self) -> dict[str, Any]:
        return {"type": "scripted", "init_parameters": {}}


def splitter(reply: Callable[[str], str | BaseException], **options: Any) -> HiChunkSplitter:
    defaults = {"min_leaf_tokens": 1, "token_counter": WORDPIECE, "progress_bar": False, "max_retries": 0}
    return HiChunkSplitter(Scripted(reply), **{**defaults, **options})


def asked(chunker: HiChunkSplitter) -> list[str]:
    return chunker.chat_generator.prompts  # type: ignore[attr-defined]


def page(name: str) -> Document:
    return Document(content=POTTERY.replace("Kiln and wheel", f"Page {name}"), meta={"file_path": f"{name}.txt"})


def two_sections(_: str) -> str:
    return "0, Level One, True\n3, Level One, True"
