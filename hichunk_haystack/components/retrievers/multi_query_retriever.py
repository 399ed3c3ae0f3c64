# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Literal

from haystack import Document, component, default_from_dict, default_to_dict, logging
from haystack.components.embedders.types import TextEmbedder
from haystack.core.serialization import component_to_dict

from hichunk_haystack.query_votes import MODES, count_votes, different_queries

logger = logging.getLogger(__name__)

# What a retriever takes, and what an embedder gives for it.
_DENSE = ("query_embedding", "embedding")
_SPARSE = ("query_sparse_embedding", "sparse_embedding")


@component
class MultiQueryRetriever:
    """
    Searches for several variants of a query, and ranks what they find by how often and how well it was found.

    Variants come from any query expander, such as Haystack's `QueryExpander`, or are given. Haystack's own
    `MultiQueryEmbeddingRetriever` drops duplicates and keeps scores: a leaf that all variants found ranks there no
    higher than one that a single variant has found. Here the votes are counted before duplicates are dropped.

    It works with any retriever: of embeddings, dense, sparse or both, and of text. A merge comes behind it as always.

    ```python
    from haystack import Document
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    from hichunk_haystack.components.retrievers import MultiQueryRetriever

    store = InMemoryDocumentStore()
    store.write_documents([Document(content="Fire the kiln slowly."), Document(content="The oven of the bakery.")])
    retriever = MultiQueryRetriever(InMemoryBM25Retriever(store, top_k=1))
    found = retriever.run(queries=["How is the kiln fired?", "firing a kiln", "firing an oven"])
    print([(document.content, round(document.score, 2)) for document in found["documents"]])
    ```
    """

    __module__ = "hichunk_haystack.components.retrievers"

    def __init__(
        self,
        retriever: Any,
        *,
        text_embedder: TextEmbedder | None = None,
        sparse_text_embedder: Any = None,
        mode: Literal["combined", "frequency", "score"] = "combined",
        frequency_weight: float = 0.4,
        top_k: int | None = None,
        max_workers: int = 3,
    ) -> None:
        """
        Create the component.

        :param retriever: Any retriever. It is given `query_embedding`, `query_sparse_embedding`, or both, by the
            embedders below; `query` where there is none.
        :param text_embedder: Embeds queries, as the documents were.
        :param sparse_text_embedder: Embeds queries for sparse search.
        :param mode: What ranks: `frequency`, the share of queries that found a document; `score`, the sum of its
            scores; `combined`, both.
        :param frequency_weight: Weight of the frequency in `combined`, from 0 to 1; the score has the rest.
        :param top_k: The most documents; by default all that were found.
        :param max_workers: How many queries are searched for at once.
        :raises ValueError: If an option makes no sense; the message names it.
        """
        if mode not in MODES:
            msg = f"mode is {mode!r}; it must be one of {', '.join(MODES)}."
            raise ValueError(msg)
        if not 0 <= frequency_weight <= 1:
            msg = f"frequency_weight is {frequency_weight}; it must lie between 0 and 1 (0.4 is usual)."
            raise ValueError(msg)
        for name, value in (("top_k", top_k), ("max_workers", max_workers)):
            if value is not None and value < 1:
                msg = f"{name} is {value}; it must be at least 1."
                raise ValueError(msg)
        self.retriever = retriever
        self.text_embedder = text_embedder
        self.sparse_text_embedder = sparse_text_embedder
        self.mode = mode
        self.frequency_weight = frequency_weight
        self.top_k = top_k
        self.max_workers = max_workers

    def warm_up(self) -> None:
        """Warm up retriever and embedders."""
        for part in self._parts():
            if hasattr(part, "warm_up"):
                part.warm_up()

    async def warm_up_async(self) -> None:
        """Warm up retriever and embedders for asynchronous use."""
        for part in self._parts():
            if hasattr(part, "warm_up_async"):
                await part.warm_up_async()
            elif hasattr(part, "warm_up"):
                await asyncio.to_thread(part.warm_up)

    @component.output_types(documents=list[Document])
    def run(self, queries: list[str], retriever_kwargs: dict[str, Any] | None = None) -> dict[str, list[Document]]:
        """
        Search for all queries.

        A query that fails is left out with a warning, as long as another one succeeds.

        :param queries: The variants. Equal ones count once.
        :param retriever_kwargs: Further arguments for the retriever, such as `filters` or `top_k`.
        :returns: A dictionary with `documents`, each once, the best first. Their scores are those of the ranking.
        :raises RuntimeError: If every query fails.
        """
        self.warm_up()
        asked = different_queries(queries)

        def search(query: str) -> list[Document] | Exception:
            try:
                values = {}
                for (takes, gives), embedder in self._embedders():
                    values[takes] = embedder.run(text=query)[gives]
                return self.retriever.run(**(values or {"query": query}), **(retriever_kwargs or {}))["documents"]
            except Exception as error:
                return error

        with ThreadPoolExecutor(self.max_workers) as pool:
            return self._joined(asked, list(pool.map(search, asked)))

    @component.output_types(documents=list[Document])
    async def run_async(
        self, queries: list[str], retriever_kwargs: dict[str, Any] | None = None
    ) -> dict[str, list[Document]]:
        """
        Search for all queries concurrently; what knows only the synchronous way is run in threads.

        :param queries: The variants. Equal ones count once.
        :param retriever_kwargs: Further arguments for the retriever, such as `filters` or `top_k`.
        :returns: What `run` returns.
        :raises RuntimeError: If every query fails.
        """
        await self.warm_up_async()
        asked = different_queries(queries)
        places = asyncio.Semaphore(self.max_workers)

        async def search(query: str) -> list[Document] | Exception:
            async with places:
                try:
                    values = {}
                    for (takes, gives), embedder in self._embedders():
                        values[takes] = (await _run(embedder, text=query))[gives]
                    found = await _run(self.retriever, **(values or {"query": query}), **(retriever_kwargs or {}))
                    return found["documents"]
                except Exception as error:
                    return error

        return self._joined(asked, await asyncio.gather(*map(search, asked)))

    def _embedders(self) -> list[tuple[tuple[str, str], Any]]:
        both = ((_DENSE, self.text_embedder), (_SPARSE, self.sparse_text_embedder))
        return [(names, embedder) for names, embedder in both if embedder is not None]

    def _parts(self) -> list[Any]:
        return [*(embedder for _, embedder in self._embedders()), self.retriever]

    def _joined(
        self, queries: Sequence[str], results: Sequence[list[Document] | Exception]
    ) -> dict[str, list[Document]]:
        failed = [result for result in results if isinstance(result, Exception)]
        if failed and len(failed) == len(results):
            msg = f"All {len(results)} queries failed, the first with {type(failed[0]).__name__}: {failed[0]}"
            raise RuntimeError(msg) from failed[0]
        for query, result in zip(queries, results, strict=True):
            if isinstance(result, Exception):
                logger.warning(
                    "Query '{query}' failed and is left out ({kind}: {error}).",
                    query=query,
                    kind=type(result).__name__,
                    error=str(result),
                )
        lists = [result for result in results if not isinstance(result, Exception)]
        documents: dict[str, Document] = {}
        for document in (each for found in lists for each in found):
            documents.setdefault(document.id, document)
        if not documents:
            return {"documents": []}
        scored = [[(document.id, document.score) for document in found] for found in lists]
        votes = count_votes(scored, self.mode, self.frequency_weight)
        return {"documents": [replace(documents[name], score=vote) for name, vote in votes[: self.top_k]]}

    def to_dict(self) -> dict[str, Any]:
        """
        Serialise the component.

        :returns: Dictionary with the type and the init parameters.
        """
        parts = {
            name: None if part is None else component_to_dict(part, name)
            for name, part in (
                ("retriever", self.retriever),
                ("text_embedder", self.text_embedder),
                ("sparse_text_embedder", self.sparse_text_embedder),
            )
        }
        return default_to_dict(
            self,
            **parts,
            mode=self.mode,
            frequency_weight=self.frequency_weight,
            top_k=self.top_k,
            max_workers=self.max_workers,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "MultiQueryRetriever":
        """
        Revive the component.

        :param data: What `to_dict` gave.
        :returns: The component.
        """
        return default_from_dict(cls, data)

    def close(self) -> None:
        """Release what retriever and embedders hold open."""
        for part in self._parts():
            if hasattr(part, "close"):
                part.close()

    async def close_async(self) -> None:
        """Release what their asynchronous sides hold open."""
        for part in self._parts():
            if hasattr(part, "close_async"):
                await part.close_async()
            elif hasattr(part, "close"):
                part.close()


async def _run(part: Any, **values: Any) -> dict[str, Any]:
    if hasattr(part, "run_async"):
        return await part.run_async(**values)
    return await asyncio.to_thread(part.run, **values)
