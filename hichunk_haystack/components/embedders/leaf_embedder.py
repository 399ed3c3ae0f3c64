# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.components.embedders.types import DocumentEmbedder
from tqdm import tqdm

from hichunk_haystack.components.embedders.leaf_text import text_to_embed, with_context, with_table_header
from hichunk_haystack.components.preprocessors.splitting import describe
from hichunk_haystack.front_matter import is_searched
from hichunk_haystack.nodes import is_leaf
from hichunk_haystack.unicode import well_formed


@component
class LeafEmbedder:
    """
    Has the leaves of trees embedded by any Haystack document embedder, and passes the inner nodes through.

    Only leaves are searched by vector; inner nodes are reached by merging. Each leaf is embedded with its heading path
    on a line in front, so that it knows its section. Its content stays as it is.

    The leaves go to the embedder in slices of similar length, the longest first, which saves the padding of short texts
    to the length of long ones.

    A leaf that has an embedding already is embedded again: nothing tells by which model, and from which text, the old
    one was made.

    ```python
    from haystack import Document

    from hichunk_haystack.components.embedders import LeafEmbedder, OfflineSentenceTransformersDocumentEmbedder
    from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter

    text = "# Kiln\\n\\nFire it slowly. Then let it cool for a day.\\n\\n# Wheel\\n\\nCentre the clay first.\\n"
    nodes = MarkdownHierarchicalSplitter(leaf_tokens=12, min_leaf_tokens=1).run([Document(content=text)])["documents"]
    embedder = LeafEmbedder(OfflineSentenceTransformersDocumentEmbedder())
    for node in embedder.run(nodes)["documents"]:
        print(node.meta["headings"], node.embedding is not None)
    ```
    """

    __module__ = "hichunk_haystack.components.embedders"

    def __init__(
        self,
        document_embedder: DocumentEmbedder,
        *,
        embed_headings: bool = True,
        max_heading_characters: int = 200,
        embed_table_header: bool = True,
        embed_context: bool = True,
        embed_front_matter: bool = False,
        leaves_per_call: int = 128,
        progress_bar: bool = True,
    ) -> None:
        """
        Create the component.

        :param document_embedder: Any document embedder of Haystack, dense or sparse.
        :param embed_headings: Whether to put the heading path in front of the text that is embedded. Titles that the
            leaf's own text starts with are not repeated.
        :param max_heading_characters: The most characters of the heading path, so that headings never push the text out
            of what the model reads. 200 characters are about 50 tokens.
        :param embed_table_header: Whether to put the header of a table in front of leaves that hold further rows of it
            (`table_header` in their meta), so that a number knows its column. The header comes before the heading path
            and has a bound of `max_heading_characters` of its own.
        :param embed_context: Whether to put the sentences of a `ContextualLeafEnricher` (`leaf_context` in the meta) in
            front, above the heading path.
        :param embed_front_matter: Whether leaves that hold nothing but front matter are embedded. Fields are close to
            many questions and answer few; word by word (BM25) they are worth finding.
        :param leaves_per_call: How many leaves are handed to the embedder at once: the step of the progress bar. The
            embedder may cut them into smaller batches.
        :param progress_bar: Whether to show a progress bar over the leaves. The embedder's own is hidden meanwhile.
        :raises ValueError: If a number makes no sense; the message names it.
        """
        if leaves_per_call < 1:
            msg = f"leaves_per_call is {leaves_per_call}; it must be at least 1 (128 is usual)."
            raise ValueError(msg)
        if max_heading_characters < 1:
            msg = (
                f"max_heading_characters is {max_heading_characters}; it must be at least 1 (200 is usual). "
                "To embed without headings, set embed_headings to false."
            )
            raise ValueError(msg)
        self.document_embedder = document_embedder
        self.embed_headings = embed_headings
        self.max_heading_characters = max_heading_characters
        self.embed_table_header = embed_table_header
        self.embed_context = embed_context
        self.embed_front_matter = embed_front_matter
        self.leaves_per_call = leaves_per_call
        self.progress_bar = progress_bar

    def warm_up(self) -> None:
        """Warm up the embedder."""
        if hasattr(self.document_embedder, "warm_up"):
            self.document_embedder.warm_up()

    async def warm_up_async(self) -> None:
        """Warm up the embedder for asynchronous runs; in a thread where it knows only the synchronous way."""
        if hasattr(self.document_embedder, "warm_up_async"):
            await self.document_embedder.warm_up_async()
        elif hasattr(self.document_embedder, "warm_up"):
            await asyncio.to_thread(self.document_embedder.warm_up)

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """
        Embed the leaves.

        :param documents: Nodes of trees, and documents without a tree, which count as leaves. They are not changed.
        :returns: A dictionary with `documents`: all of them in the same order, the leaves with embeddings.
        :raises TypeError: If something in the list is not a `Document`.
        :raises RuntimeError: If the embedder fails, or gives back something else than the leaves with embeddings. No
            leaf is passed on then, so that nothing is stored half embedded.
        """
        self.warm_up()
        embedder = self._embedder()
        result = list(documents)
        slices = self._slices(documents)
        with self._progress(slices) as progress:
            for number, places in enumerate(slices):
                with _explain(documents, slices, number):
                    answer = embedder.run(documents=self._copies(documents, places))
                    _take(result, places, answer["documents"])
                progress.update(len(places))
        return {"documents": result}

    @component.output_types(documents=list[Document])
    async def run_async(self, documents: list[Document]) -> dict[str, list[Document]]:
        """
        Embed the leaves without blocking the event loop; in a thread if the embedder knows only the synchronous way.

        :param documents: Nodes of trees, and documents without a tree, which count as leaves. They are not changed.
        :returns: What `run` returns.
        :raises TypeError: If something in the list is not a `Document`.
        :raises RuntimeError: If the embedder fails, or gives back something else than the leaves with embeddings.
        """
        await self.warm_up_async()
        embedder = self._embedder()
        result = list(documents)
        slices = self._slices(documents)
        with self._progress(slices) as progress:
            for number, places in enumerate(slices):
                with _explain(documents, slices, number):
                    copies = self._copies(documents, places)
                    if hasattr(embedder, "run_async"):
                        answer = await embedder.run_async(documents=copies)
                    else:
                        answer = await asyncio.to_thread(embedder.run, documents=copies)
                    _take(result, places, answer["documents"])
                progress.update(len(places))
        return {"documents": result}

    def _embedder(self) -> Any:
        """The embedder, without a progress bar of its own while ours shows."""
        if not self.progress_bar or not getattr(self.document_embedder, "progress_bar", False):
            return self.document_embedder
        # A copy, since the original may be running, or being dumped, in another thread.
        quiet: Any = copy(self.document_embedder)
        quiet.progress_bar = False
        return quiet

    def _slices(self, documents: list[Document]) -> list[list[int]]:
        """The places of the leaves in the list, in slices of similar length."""
        for document in documents:
            if not isinstance(document, Document):
                msg = f"LeafEmbedder takes Haystack Documents, but got a {type(document).__name__}."
                raise TypeError(msg)
        chosen = is_leaf if self.embed_front_matter else is_searched
        leaves = [place for place, document in enumerate(documents) if chosen(document)]
        leaves.sort(key=lambda place: len(documents[place].content or ""), reverse=True)
        step = self.leaves_per_call
        return [leaves[first : first + step] for first in range(0, len(leaves), step)]

    def _progress(self, slices: list[list[int]]) -> "tqdm[Any]":
        return tqdm(total=sum(map(len, slices)), desc="Embedding", unit="leaf", disable=not self.progress_bar)

    def _copies(self, documents: list[Document], places: list[int]) -> list[Document]:
        """What the embedder gets: copies that it may change, with the headings in their text."""
        copies = []
        for place in places:
            leaf = documents[place]
            text = text_to_embed(leaf, self.max_heading_characters) if self.embed_headings else leaf.content
            if self.embed_context:
                text = with_context(leaf, text)
            if self.embed_table_header:
                text = with_table_header(leaf, text, self.max_heading_characters)
            text = None if text is None else well_formed(text)  # tokenizers refuse anything else
            copies.append(replace(leaf, content=text, meta=dict(leaf.meta), embedding=None, sparse_embedding=None))
        return copies

    def to_dict(self) -> dict[str, Any]:
        """
        Serialise the component.

        :returns: Dictionary with the type and the init parameters.
        """
        return default_to_dict(
            self,
            document_embedder=self.document_embedder,
            embed_headings=self.embed_headings,
            max_heading_characters=self.max_heading_characters,
            embed_table_header=self.embed_table_header,
            embed_context=self.embed_context,
            embed_front_matter=self.embed_front_matter,
            leaves_per_call=self.leaves_per_call,
            progress_bar=self.progress_bar,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "LeafEmbedder":
        """
        Revive the component.

        :param data: What `to_dict` gave.
        :returns: The component.
        """
        return default_from_dict(cls, data)

    def close(self) -> None:
        """Release what the embedder holds open."""
        if hasattr(self.document_embedder, "close"):
            self.document_embedder.close()

    async def close_async(self) -> None:
        """Release what the embedder's asynchronous side holds open."""
        if hasattr(self.document_embedder, "close_async"):
            await self.document_embedder.close_async()


def _take(result: list[Document], places: list[int], embedded: list[Document]) -> None:
    """Put the embeddings of a slice into the result, after a check that they belong to its leaves."""
    leaves = [result[place] for place in places]
    if [document.id for document in embedded] != [leaf.id for leaf in leaves]:
        msg = f"for {len(leaves)} leaves it gave back {len(embedded)} documents, not the same in the same order"
        raise ValueError(msg)
    without = sum(document.embedding is None and document.sparse_embedding is None for document in embedded)
    if without:
        msg = f"it gave no embedding for {without} of {len(leaves)} leaves"
        raise ValueError(msg)
    for place, leaf, document in zip(places, leaves, embedded, strict=True):
        # The other kind of embedding stays: a dense and a sparse embedder may follow each other.
        result[place] = replace(
            document,
            content=leaf.content,
            embedding=leaf.embedding if document.embedding is None else document.embedding,
            sparse_embedding=document.sparse_embedding or leaf.sparse_embedding,
        )


@contextmanager
def _explain(documents: list[Document], slices: list[list[int]], number: int) -> Iterator[None]:
    """Tell how far the embedding came."""
    try:
        yield
    except Exception as error:
        done, total = sum(map(len, slices[:number])), sum(map(len, slices))
        sources = list(dict.fromkeys(describe(documents[place]) for place in slices[number]))
        more = f" and {len(sources) - 3} more" if len(sources) > 3 else ""  # noqa: PLR2004 - enough to find the place
        msg = (
            f"The embedder failed after {done} of {total} leaves, at leaves of {', '.join(sources[:3])}{more}: "
            f"{type(error).__name__}: {error}. No leaf is passed on, so that nothing is stored half embedded: "
            "run it again once the cause is removed."
        )
        raise RuntimeError(msg) from error
