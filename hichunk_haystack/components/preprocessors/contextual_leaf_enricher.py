# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict, logging
from haystack.components.generators.chat.types import ChatGenerator
from haystack.core.serialization import component_to_dict
from haystack.token_counters.types import TokenCounter
from tqdm import tqdm

from hichunk_haystack.chains import Lengths
from hichunk_haystack.components.preprocessors.contextual_asking import (
    Asker,
    Job,
    Outcome,
    plan_jobs,
    run_jobs,
    run_jobs_async,
)
from hichunk_haystack.contexts import CONTEXT_TEMPLATE, LEAF_CONTEXT, check_template
from hichunk_haystack.hichunk.asking import answered, answered_async, model_key
from hichunk_haystack.hichunk.cache import DiskCache
from hichunk_haystack.tokens import HuggingFaceTokenCounter, count_texts, warm_up_counter

logger = logging.getLogger(__name__)


@component
class ContextualLeafEnricher:
    """
    Has a language model say, in a sentence or two, where each leaf stands in its document (contextual retrieval).

    A leaf that reads "It rose by 3 % over the year before" is found for the company and the year once a sentence says
    which. The sentences go into the leaf's meta as `leaf_context`. `LeafEmbedder` puts them in front of what its
    embedder, dense or sparse, is given. The content stays as it is, and so does everything that is counted, merged,
    cited or shown to a reader.

    The model is shown the largest section around the leaf that fits `section_tokens`, with its passages numbered, and
    asked about one of them. Prompts about one section begin alike up to the number, so that a server that keeps the
    state of a prompt's beginning (OpenAI, vLLM, llama.cpp and others do without being told) reads the section once.

    Put it between a splitter and a `LeafEmbedder`.

    ```python
    from haystack import Document
    from haystack.components.generators.chat import MockChatGenerator

    from hichunk_haystack.components.preprocessors import ContextualLeafEnricher, MarkdownHierarchicalSplitter

    text = "# Kiln\\n\\nFire it slowly over eight hours.\\n\\n# Wheel\\n\\nCentre the clay before you open it.\\n"
    nodes = MarkdownHierarchicalSplitter(leaf_tokens=12, min_leaf_tokens=1).run([Document(content=text)])["documents"]
    # In place of a model: OpenAIChatGenerator, EndpointChatGenerator, ...
    enricher = ContextualLeafEnricher(MockChatGenerator("From a handbook of pottery."), progress_bar=False)
    result = enricher.run(nodes)
    print([node.meta.get("leaf_context") for node in result["documents"]])
    print(result["report"][0]["written"])  # 2
    ```
    """

    __module__ = "hichunk_haystack.components.preprocessors"

    def __init__(
        self,
        chat_generator: ChatGenerator,
        *,
        prompt_template: str = CONTEXT_TEMPLATE,
        section_tokens: int = 2000,
        context_tokens: int = 60,
        token_counter: TokenCounter | None = None,
        max_retries: int = 1,
        max_workers: int = 4,
        cache_dir: str | Path | None = None,
        progress_bar: bool = True,
    ) -> None:
        """
        Create the component.

        :param chat_generator: Any Haystack ChatGenerator. A small, cheap model does; set its temperature to 0 and its
            `max_tokens` to about 100.
        :param prompt_template: What is asked, with the fields `{document}` (title or file name), `{section}` (the
            numbered passages), `{number}` (which of them), `{headings}` (the leaf's own) and `{passage}` (its text).
            What differs from leaf to leaf comes behind `{section}`.
        :param section_tokens: The most tokens of the section that is shown around a leaf. The largest node above the
            leaf that fits is taken, be it the whole document; of a larger parent a cut-out around the leaf.
        :param context_tokens: The most tokens of the sentences; longer ones are cut, at the end of a sentence if
            possible. With the headings and the leaf they must fit what the embedding model reads.
        :param token_counter: Counts tokens; by default the tokenizer of all-MiniLM-L6-v2.
        :param max_retries: How often a leaf is asked about again after an error or an answer without a sentence. The
            generator's own retries come on top.
        :param max_workers: How many questions are out at once, in threads or, in `run_async`, concurrently.
        :param cache_dir: Folder that keeps answers by model and prompt, so that a run that was killed goes on where it
            stopped, and a document that changed is asked about only where its text did.
        :param progress_bar: Whether to show progress over leaves.
        :raises ValueError: If a parameter makes no sense; the message names it.
        """
        for name, value, least in (
            ("section_tokens", section_tokens, 1),
            ("context_tokens", context_tokens, 1),
            ("max_retries", max_retries, 0),
            ("max_workers", max_workers, 1),
        ):
            if value < least:
                msg = f"{name} is {value}; it must be at least {least}."
                raise ValueError(msg)
        check_template(prompt_template)
        self.chat_generator = chat_generator
        self.prompt_template = prompt_template
        self.section_tokens = section_tokens
        self.context_tokens = context_tokens
        self.token_counter = token_counter
        self.max_retries = max_retries
        self.max_workers = max_workers
        self.cache_dir = None if cache_dir is None else str(cache_dir)
        self.progress_bar = progress_bar
        self._counter = token_counter or HuggingFaceTokenCounter()

    def warm_up(self) -> None:
        """Load the token counter and open the generator."""
        warm_up_counter(self._counter)
        if hasattr(self.chat_generator, "warm_up"):
            self.chat_generator.warm_up()

    async def warm_up_async(self) -> None:
        """Load the token counter and open the generator for asynchronous use."""
        await asyncio.to_thread(warm_up_counter, self._counter)
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
        Write the contexts of leaves.

        A leaf for which the model gives none goes without, and so does one that is its whole document. The others are
        not held up: nothing raises but what is no document.

        :param documents: Nodes of trees, all leaves of a tree together. They are not changed.
        :returns: A dictionary with `documents`: all of them in the same order, leaves with `leaf_context` in their
            meta; and `report`, for each source a dictionary with `source_id`, `file_path`, `leaves`, how many contexts
            were `written` and how many of these came from the cache (`cached`), how many leaves stand `alone`, and
            `failed`, a list of `id` and `reason`.
        :raises TypeError: If something in the list is not a `Document`.
        """
        _check(documents)
        self.warm_up()
        asker = self._asker()
        windows, alone = self._plan(documents)
        outcomes: dict[str, Outcome] = {}
        with self._progress(windows) as progress:

            def ask(job: Job) -> None:
                _note(outcomes, job, answered(asker.work(job.prompt), self.chat_generator), progress)

            try:
                run_jobs(windows, ask, self.max_workers)
            finally:
                # Broken off, the workers leave at their next question.
                asker.stopped = True
        return _result(documents, outcomes, alone)

    @component.output_types(documents=list[Document], report=list[dict[str, Any]])
    async def run_async(self, documents: list[Document]) -> dict[str, list[Any]]:
        """
        Write the contexts of leaves without blocking.

        :param documents: Nodes of trees, all leaves of a tree together. They are not changed.
        :returns: What `run` returns.
        :raises TypeError: If something in the list is not a `Document`.
        """
        _check(documents)
        await self.warm_up_async()
        asker = await asyncio.to_thread(self._asker)
        windows, alone = await asyncio.to_thread(self._plan, documents)
        outcomes: dict[str, Outcome] = {}
        with self._progress(windows) as progress:

            async def ask(job: Job) -> None:
                _note(outcomes, job, await answered_async(asker.work(job.prompt), self.chat_generator), progress)

            await run_jobs_async(windows, ask, self.max_workers)
        return _result(documents, outcomes, alone)

    def to_dict(self) -> dict[str, Any]:
        """
        Serialise the component.

        :returns: Dictionary with the type and the init parameters.
        """
        return default_to_dict(
            self,
            chat_generator=component_to_dict(self.chat_generator, "chat_generator"),
            prompt_template=self.prompt_template,
            section_tokens=self.section_tokens,
            context_tokens=self.context_tokens,
            token_counter=self.token_counter,
            max_retries=self.max_retries,
            max_workers=self.max_workers,
            cache_dir=self.cache_dir,
            progress_bar=self.progress_bar,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "ContextualLeafEnricher":
        """
        Revive the component.

        :param data: What `to_dict` gave.
        :returns: The component.
        """
        return default_from_dict(cls, data)

    def _asker(self) -> Asker:
        cache = None if self.cache_dir is None else DiskCache(self.cache_dir, model_key(self.chat_generator))
        return Asker(self._fits(), self.max_retries, cache)

    def _fits(self) -> Callable[[str], bool]:
        return lambda text: count_texts(self._counter, [text])[0] <= self.context_tokens

    def _plan(self, documents: Sequence[Document]) -> tuple[list[list[Job]], list[str]]:
        return plan_jobs(documents, Lengths(self._counter), self.section_tokens, self.prompt_template)

    def _progress(self, windows: Sequence[Sequence[Job]]) -> "tqdm[Any]":
        total = sum(map(len, windows))
        return tqdm(total=total, desc="Asking for contexts", unit="leaf", disable=not self.progress_bar)


_note_lock = threading.Lock()


def _note(outcomes: dict[str, Outcome], job: Job, outcome: Outcome, progress: "tqdm[Any]") -> None:
    with _note_lock:
        outcomes[job.leaf.id] = outcome
        progress.update(1)


def _check(documents: Sequence[Document]) -> None:
    """Refuse what is no document before the model is asked for anything."""
    for document in documents:
        if not isinstance(document, Document):
            msg = f"ContextualLeafEnricher takes the documents of a splitter, but got a {type(document).__name__}."
            raise TypeError(msg)


def _result(documents: Sequence[Document], outcomes: dict[str, Outcome], alone: Sequence[str]) -> dict[str, list[Any]]:
    """Put the contexts into copies of the leaves, and tell what happened, source by source."""
    reports: dict[str, dict[str, Any]] = {}
    lonely = set(alone)
    told: set[str] = set()
    result = []
    for document in documents:
        outcome = outcomes.get(document.id)
        if outcome is None and document.id not in lonely:
            result.append(document)
            continue
        meta = {key: value for key, value in document.meta.items() if key != LEAF_CONTEXT}
        if outcome is not None and outcome.context:
            meta[LEAF_CONTEXT] = outcome.context
        result.append(replace(document, meta=meta))
        if document.id not in told:
            told.add(document.id)
            _tell(reports, document, outcome)
    for report in reports.values():
        if report["failed"]:
            logger.warning(
                "{source}: {count} of {leaves} leaves go without a context; {reason}",
                source=report["file_path"] or report["source_id"],
                count=len(report["failed"]),
                leaves=report["leaves"],
                reason=report["failed"][0]["reason"],
            )
    return {"documents": result, "report": list(reports.values())}


def _tell(reports: dict[str, dict[str, Any]], leaf: Document, outcome: Outcome | None) -> None:
    source, path = str(leaf.meta.get("source_id") or leaf.id), leaf.meta.get("file_path")
    report = reports.setdefault(
        source,
        {
            "source_id": source, "file_path": None if path is None else str(path), "leaves": 0, "written": 0,
            "cached": 0, "alone": 0, "failed": [],
        },
    )  # fmt: skip
    report["leaves"] += 1
    if outcome is None:
        report["alone"] += 1
    elif outcome.context:
        report["written"] += 1
        report["cached"] += outcome.cached
    else:
        report["failed"].append({"id": leaf.id, "reason": outcome.reason})
