# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from haystack import Document, component, default_from_dict, default_to_dict, logging
from haystack.components.generators.chat.types import ChatGenerator
from haystack.core.serialization import component_to_dict
from haystack.token_counters.types import TokenCounter

from hichunk_haystack.components.preprocessors.splitting import Prediction, describe, split_documents
from hichunk_haystack.hichunk.asking import model_key
from hichunk_haystack.hichunk.cache import DiskCache
from hichunk_haystack.hichunk.documents import Chunking, Outcome, chunk, chunk_async
from hichunk_haystack.hichunk.prompts import TEMPLATES, check_template
from hichunk_haystack.hichunk.windows import OnFailure, Plan
from hichunk_haystack.tokens import HuggingFaceTokenCounter, warm_up_counter
from hichunk_haystack.tree import TreeBuilder

logger = logging.getLogger(__name__)


class HiChunkSplitError(RuntimeError):
    """
    Documents failed, and the splitter was told to raise.

    :param message: Names the documents and what went wrong.
    :param documents: All nodes of the trees of the other documents.
    :param report: What happened to each source.
    """

    def __init__(self, message: str, documents: list[Document], report: list[dict[str, Any]]) -> None:
        """Keep what the other documents gave."""
        super().__init__(message)
        self.documents = documents
        self.report = report


@component
class HiChunkSplitter:
    """
    Splits documents of any length into trees along cut points that a language model names (HiChunk, arXiv 2509.11552).

    A document is cut into numbered sentences, which the model is shown window by window; it answers at which lines
    sections of which level start. What it answers is read leniently, and a window for which it gives nothing usable
    falls back on the document's own structure, so that a valid tree comes out of any model.

    ```python
    from haystack import Document
    from haystack.components.generators.chat import MockChatGenerator

    from hichunk_haystack.components.preprocessors import HiChunkSplitter

    # In place of a model: OpenAIChatGenerator, EndpointChatGenerator, ...
    generator = MockChatGenerator("0, Level One, True\\n2, Level One, True")
    text = "The kiln\\n\\nFire it slowly over eight hours.\\n\\nThe wheel\\n\\nCentre the clay before you open it.\\n"
    result = HiChunkSplitter(generator, min_leaf_tokens=1).run([Document(content=text)])
    for node in result["documents"]:
        print(node.meta["__level"], node.meta["headings"], node.meta["token_count"])
    print(result["report"][0]["calls"])  # 1
    ```
    """

    __module__ = "hichunk_haystack.components.preprocessors"

    def __init__(
        self,
        chat_generator: ChatGenerator,
        *,
        prompt_template: str | None = None,
        answer_format: Literal["lines", "json"] = "lines",
        window_tokens: int = 16384,
        sentence_chars: int = 100,
        hide_heading_marks: bool = False,
        leaf_tokens: int = 200,
        min_leaf_tokens: int = 20,
        max_level: int = 10,
        inner_tokens: list[int] | None = None,
        language: str = "en",
        token_counter: TokenCounter | None = None,
        max_retries: int = 2,
        on_failure: OnFailure = "structure",
        max_workers: int = 4,
        cache_dir: str | Path | None = None,
        progress_bar: bool = True,
    ) -> None:
        """
        Create the component.

        :param chat_generator: Any Haystack ChatGenerator. Set its temperature to 0, and its time limit to what a long
            window takes.
        :param prompt_template: The instruction, with `{lines}` where the numbered lines go; by default the ready one of
            `answer_format`.
        :param answer_format: Form of the answers that the ready instruction asks for: `lines` (`12, Level One, True`)
            or `json`. Both are understood whatever was asked for.
        :param window_tokens: The most tokens of a window, the instruction included; the answer comes on top.
        :param sentence_chars: The most characters shown of a line.
        :param hide_heading_marks: Show Markdown headings without their `#`, as the paper's model was trained.
        :param leaf_tokens: The most tokens of a leaf.
        :param min_leaf_tokens: Sections of fewer tokens join their neighbour inside the same parent.
        :param max_level: Cut points of deeper levels do not start a section.
        :param inner_tokens: Bounds in tokens of the inner nodes that group the leaves of a long section; by default 4
            and 16 times `leaf_tokens`.
        :param language: ISO 639-1 code of the documents' language, for finding sentences.
        :param token_counter: Counts tokens, of leaves and of windows; by default the tokenizer of all-MiniLM-L6-v2. A
            language model's own tokenizer counts a window differently by a few per cent: leave as much room.
        :param max_retries: How often a window is asked again after a useless answer (which the model is told) or an
            error.
        :param on_failure: What then decides on the window: `structure`, the headings of the document (paragraphs where
            there are none); `single`, one segment; `raise`, a `HiChunkSplitError` after all other documents are done.
            Where the generator raised at every attempt for two windows in a row, it is not asked for the rest of the
            document.
        :param max_workers: How many documents are worked on at once, in threads or, in `run_async`, concurrently.
        :param cache_dir: Folder that keeps usable answers by model, prompt and window; a later run asks for none of
            them again.
        :param progress_bar: Whether to show progress over windows.
        :raises ValueError: If a parameter makes no sense; the message names it.
        """
        if answer_format not in TEMPLATES:
            msg = f"answer_format is {answer_format!r}; it must be one of {', '.join(TEMPLATES)}."
            raise ValueError(msg)
        if on_failure not in get_args(OnFailure):
            msg = f"on_failure is {on_failure!r}; it must be one of {', '.join(get_args(OnFailure))}."
            raise ValueError(msg)
        least = {"sentence_chars": 10, "window_tokens": 1, "max_retries": 0, "max_workers": 1}
        given = {
            "sentence_chars": sentence_chars, "window_tokens": window_tokens, "max_retries": max_retries,
            "max_workers": max_workers,
        }  # fmt: skip
        for name, value in given.items():
            if value < least[name]:
                msg = f"{name} is {value}; it must be at least {least[name]}."
                raise ValueError(msg)
        if prompt_template is not None:
            check_template(prompt_template)
        self.chat_generator = chat_generator
        self.prompt_template = prompt_template
        self.answer_format = answer_format
        self.window_tokens = window_tokens
        self.sentence_chars = sentence_chars
        self.hide_heading_marks = hide_heading_marks
        self.leaf_tokens = leaf_tokens
        self.min_leaf_tokens = min_leaf_tokens
        self.max_level = max_level
        self.inner_tokens = inner_tokens
        self.language = language
        self.token_counter = token_counter
        self.max_retries = max_retries
        self.on_failure = on_failure
        self.max_workers = max_workers
        self.cache_dir = None if cache_dir is None else str(cache_dir)
        self.progress_bar = progress_bar
        self._builder = TreeBuilder(
            token_counter or HuggingFaceTokenCounter(),
            leaf_tokens=leaf_tokens,
            min_leaf_tokens=min_leaf_tokens,
            max_level=max_level,
            inner_tokens=inner_tokens,
            language=language,
        )

    def warm_up(self) -> None:
        """Load the token counter and open the generator."""
        warm_up_counter(self._builder.counter)
        if hasattr(self.chat_generator, "warm_up"):
            self.chat_generator.warm_up()

    async def warm_up_async(self) -> None:
        """Load the token counter and open the generator for asynchronous use."""
        await asyncio.to_thread(warm_up_counter, self._builder.counter)
        if hasattr(self.chat_generator, "warm_up_async"):
            await self.chat_generator.warm_up_async()
        elif hasattr(self.chat_generator, "warm_up"):
            self.chat_generator.warm_up()

    def close(self) -> None:
        """Close the generator, where it can be closed."""
        if hasattr(self.chat_generator, "close"):
            self.chat_generator.close()

    async def close_async(self) -> None:
        """Close the generator's asynchronous side, where it has one."""
        if hasattr(self.chat_generator, "close_async"):
            await self.chat_generator.close_async()
        else:
            self.close()

    @component.output_types(documents=list[Document], report=list[dict[str, Any]])
    def run(self, documents: list[Document]) -> dict[str, list[Any]]:
        """
        Split documents.

        :param documents: Sources. They are not changed; those without text are left out with a warning.
        :returns: A dictionary with `documents`, all nodes of all trees, source by source, the root first; and `report`,
            for each source its id and file and what `hichunk_haystack.hichunk.windows.Report` tells: windows, calls,
            tokens, retries, dropped rows, fallbacks.
        :raises TypeError: If something in the list is not a `Document`.
        :raises ValueError: If the instruction leaves no room for lines in `window_tokens`.
        :raises HiChunkSplitError: If documents failed and `on_failure` is `raise`; it carries the others' results.
        """
        _check(documents)
        self.warm_up()
        return _split(documents, chunk(documents, self._chunking()), self._builder)

    @component.output_types(documents=list[Document], report=list[dict[str, Any]])
    async def run_async(self, documents: list[Document]) -> dict[str, list[Any]]:
        """
        Split documents without blocking.

        :param documents: Sources. They are not changed; those without text are left out with a warning.
        :returns: What `run` returns.
        :raises TypeError: If something in the list is not a `Document`.
        :raises ValueError: If the instruction leaves no room for lines in `window_tokens`.
        :raises HiChunkSplitError: If documents failed and `on_failure` is `raise`; it carries the others' results.
        """
        _check(documents)
        await self.warm_up_async()
        chunking = await asyncio.to_thread(self._chunking)
        outcomes = await chunk_async(documents, chunking)
        return await asyncio.to_thread(_split, documents, outcomes, self._builder)

    def to_dict(self) -> dict[str, Any]:
        """
        Serialise the component.

        :returns: Dictionary with the type and the init parameters.
        """
        return default_to_dict(
            self,
            chat_generator=component_to_dict(self.chat_generator, "chat_generator"),
            prompt_template=self.prompt_template,
            answer_format=self.answer_format,
            window_tokens=self.window_tokens,
            sentence_chars=self.sentence_chars,
            hide_heading_marks=self.hide_heading_marks,
            leaf_tokens=self.leaf_tokens,
            min_leaf_tokens=self.min_leaf_tokens,
            max_level=self.max_level,
            inner_tokens=self.inner_tokens,
            language=self.language,
            token_counter=self.token_counter,
            max_retries=self.max_retries,
            on_failure=self.on_failure,
            max_workers=self.max_workers,
            cache_dir=self.cache_dir,
            progress_bar=self.progress_bar,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "HiChunkSplitter":
        """
        Revive the component.

        :param data: What `to_dict` gave.
        :returns: The component.
        """
        return default_from_dict(cls, data)

    def _chunking(self) -> Chunking:
        """How to ask."""
        plan = Plan(
            self.prompt_template or TEMPLATES[self.answer_format],
            self._builder.counter,
            window_tokens=self.window_tokens,
            max_retries=self.max_retries,
            on_failure=self.on_failure,
        )
        cache = None
        if self.cache_dir is not None:
            cache = DiskCache(self.cache_dir, model_key(self.chat_generator))
        line_settings = {
            "language": self.language,
            "sentence_chars": self.sentence_chars,
            "hide_heading_marks": self.hide_heading_marks,
        }
        return Chunking(
            generator=self.chat_generator,
            plan=plan,
            cache=cache,
            line_settings=line_settings,
            max_workers=self.max_workers,
            progress_bar=self.progress_bar,
        )


def _known(_source: Document, prediction: Prediction) -> Prediction:
    return prediction


def _check(documents: Sequence[Document]) -> None:
    """Refuse what is no document before the model is asked for anything."""
    for document in documents:
        if not isinstance(document, Document):
            msg = (
                f"HiChunkSplitter takes Documents, but got a {type(document).__name__}. Wrap texts in "
                "Document(content=...)."
            )
            raise TypeError(msg)


def _split(documents: Sequence[Document], outcomes: Sequence[Outcome], builder: TreeBuilder) -> dict[str, list[Any]]:
    """Build the trees of the documents that came through."""
    for outcome in outcomes:
        if outcome.report.error is not None:
            logger.warning(
                "{source}: {fallbacks} of {windows} windows came to nothing; {error}",
                source=describe(outcome.source),
                fallbacks=outcome.report.fallbacks,
                windows=outcome.report.windows,
                error=outcome.report.error,
            )
    failed = {outcome.source.id: outcome for outcome in outcomes if outcome.prediction is None}
    predictions = {outcome.source.id: outcome.prediction for outcome in outcomes if outcome.prediction is not None}
    same: dict[str, list[Document]] = {}
    for document in documents:
        if document.id not in failed:
            same.setdefault(document.id, []).append(document)
    nodes: list[Document] = []
    for source_id, group in same.items():
        # Those that are left out with a warning have none.
        points, boundaries = predictions.get(source_id) or ([], {})
        # A model may answer otherwise at the next run: a tree's ids hang on what it answered, so that a new tree never
        # mixes with an old one in a store.
        key = f"hichunk {[(cut.offset, cut.level, cut.title) for cut in points]}"
        nodes += split_documents(group, builder, partial(_known, prediction=(points, boundaries)), key)
    report = [outcome.told() for outcome in outcomes]
    if failed:
        causes = "; ".join(f"{describe(outcome.source)}: {outcome.report.error}" for outcome in failed.values())
        msg = (
            f"{len(failed)} of {len(outcomes)} documents could not be chunked. {causes}. The attributes "
            "`documents` and `report` of this error hold what the others gave."
        )
        raise HiChunkSplitError(msg, nodes, report)
    return {"documents": nodes, "report": report}
