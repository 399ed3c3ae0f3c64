# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from haystack import Document, component, default_from_dict, default_to_dict
from haystack.components.embedders.types import DocumentEmbedder

from hichunk_haystack.chains import Lengths
from hichunk_haystack.components.embedders.leaf_embedder import LeafEmbedder
from hichunk_haystack.components.preprocessors.splitting import describe
from hichunk_haystack.context_vectors import (
    ContextWeights,
    Vector,
    in_context,
    mean_vectors,
    neighbours_of,
    surroundings,
    unit,
)
from hichunk_haystack.front_matter import is_searched
from hichunk_haystack.nodes import CHILDREN, is_leaf
from hichunk_haystack.reading_order import with_ancestors
from hichunk_haystack.tokens import HuggingFaceTokenCounter

# Characters of a text in a message.
_BEGINNING = 60


@component
class HierarchyEmbedder:
    """
    Embeds the leaves of trees so that each knows what stands around it, and inner nodes too where they are searched.

    A leaf's vector becomes the sum of its own and those of the passages, sections and document above it and of its
    neighbours, at length 1. A plain vector search then ranks with knowledge of the tree, at no cost at query time.
    A node above the leaves has the mean of what is below it, as in KohakuRAG (arXiv 2603.07612), so that no text is
    embedded twice. With `passages="embed"` the nodes that the model reads whole are embedded as such, which finds a
    little more, and reads the text once more for each level of them.

    ```python
    from haystack import Document

    from hichunk_haystack.components.embedders import HierarchyEmbedder, OfflineSentenceTransformersDocumentEmbedder
    from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter

    text = "# Kiln\\n\\nFire it slowly. Then let it cool for a day.\\n\\n# Wheel\\n\\nCentre the clay first.\\n"
    nodes = MarkdownHierarchicalSplitter(leaf_tokens=12, min_leaf_tokens=1).run([Document(content=text)])["documents"]
    embedder = HierarchyEmbedder(OfflineSentenceTransformersDocumentEmbedder(), inner="mean")
    for node in embedder.run(nodes)["documents"]:
        print(node.meta["__level"], node.meta["headings"], len(node.embedding))
    ```
    """

    __module__ = "hichunk_haystack.components.embedders"

    def __init__(
        self,
        document_embedder: DocumentEmbedder,
        *,
        context: Mapping[str, float] | bool = True,
        passages: Literal["mean", "embed"] = "mean",
        reading_tokens: int = 256,
        inner: Literal["mean", "embed", "both"] | None = None,
        mean_by_tokens: bool = False,
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

        :param document_embedder: Any dense document embedder of Haystack.
        :param context: Whether a leaf's vector knows what stands around it, or weights of that beside 1 for the leaf
            itself: `passages`, `sections`, `document` and `neighbours`; what is not named counts 1.0.
        :param passages: Whether passages have the mean of their leaves ("mean"), or are embedded as such ("embed").
        :param reading_tokens: What the model reads at once, in tokens; nodes up to this length are passages.
        :param inner: Vectors for inner nodes, so that they are found by vector search at their level: "mean", the
            normalised mean of their children's; "embed", of their own text, as far as the model reads; "both", embedded
            up to `reading_tokens` and means above. By default inner nodes get none.
        :param mean_by_tokens: Whether longer children count more in a mean.
        :param embed_headings: Whether to put the heading path in front of the text that is embedded.
        :param max_heading_characters: The most characters of the heading path.
        :param embed_table_header: Whether to put the header of a table in front of leaves that hold further rows of it.
        :param embed_context: Whether to put in front what a `ContextualLeafEnricher` has written of a leaf.
        :param embed_front_matter: Whether leaves that hold nothing but front matter get a vector, and count in those
            around them.
        :param leaves_per_call: How many texts are handed to the embedder at once: the step of the progress bar.
        :param progress_bar: Whether to show a progress bar.
        :raises ValueError: If an option makes no sense; the message names it.
        """
        if passages not in ("embed", "mean"):
            msg = f"passages is '{passages}'; it must be 'mean' or 'embed'."
            raise ValueError(msg)
        if inner not in (None, "mean", "embed", "both"):
            msg = f"inner is '{inner}'; it must be 'mean', 'embed', 'both' or None."
            raise ValueError(msg)
        if reading_tokens < 1:
            msg = f"reading_tokens is {reading_tokens}; it must be at least 1 (256 for all-MiniLM-L6-v2)."
            raise ValueError(msg)
        self.document_embedder = document_embedder
        self.context = context
        self._weights = ContextWeights.of(context)
        self.passages = passages
        self.reading_tokens = reading_tokens
        self.inner = inner
        self.mean_by_tokens = mean_by_tokens
        # Trees of Haystack's own splitter say nothing of lengths in tokens.
        self._lengths = Lengths(HuggingFaceTokenCounter())
        self._texts = LeafEmbedder(
            document_embedder,
            embed_headings=embed_headings,
            max_heading_characters=max_heading_characters,
            embed_table_header=embed_table_header,
            embed_context=embed_context,
            embed_front_matter=embed_front_matter,
            leaves_per_call=leaves_per_call,
            progress_bar=progress_bar,
        )

    def warm_up(self) -> None:
        """Warm up the embedder."""
        self._texts.warm_up()

    async def warm_up_async(self) -> None:
        """Warm up the embedder for asynchronous runs."""
        await self._texts.warm_up_async()

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """
        Embed nodes.

        :param documents: Whole trees, since means and neighbours are found among what is given; documents without a
            tree count as leaves with nothing around them. They are not changed.
        :returns: A dictionary with `documents`: all of them in the same order.
        :raises TypeError: If something in the list is not a `Document`.
        :raises ValueError: If the embedder gives sparse vectors only, which can't be mixed.
        :raises RuntimeError: If the embedder fails, or gives vectors with NaN in them or of several dimensions; the
            message tells at which leaves.
        """
        return {"documents": self._place(documents, self._texts.run(self._to_embed(documents))["documents"])}

    @component.output_types(documents=list[Document])
    async def run_async(self, documents: list[Document]) -> dict[str, list[Document]]:
        """
        Embed nodes without blocking the event loop.

        :param documents: Whole trees. They are not changed.
        :returns: What `run` returns.
        :raises TypeError: If something in the list is not a `Document`.
        :raises ValueError: If the embedder gives sparse vectors only, which can't be mixed.
        :raises RuntimeError: If the embedder fails, or gives vectors with NaN in them or of several dimensions; the
            message tells at which leaves.
        """
        embedded = (await self._texts.run_async(self._to_embed(documents)))["documents"]
        return {"documents": self._place(documents, embedded)}

    def _to_embed(self, documents: list[Document]) -> list[Document]:
        """The leaves, and the inner nodes whose own text is embedded, which go as leaves."""
        inner = [node for node in documents if isinstance(node, Document) and not is_leaf(node)]
        passages: set[str] = set()
        if self.inner == "both" or (self.passages == "embed" and self._weights.passages > 0):
            passages = {name for name, tokens in self._lengths.of(inner).items() if tokens <= self.reading_tokens}
        chosen = []
        for node in documents:
            if not isinstance(node, Document) or is_leaf(node):
                if self._texts.embed_front_matter or not isinstance(node, Document) or is_searched(node):
                    chosen.append(node)
            elif self.inner == "embed" or node.id in passages:
                chosen.append(replace(node, meta={**node.meta, CHILDREN: []}))
        return chosen

    def _place(self, documents: list[Document], embedded: list[Document]) -> list[Document]:
        """The documents with their vectors."""
        of_texts = _vectors(embedded)
        # A node that comes twice counts once.
        found = {node.id: node for node in documents if is_leaf(node) and node.id in of_texts}
        leaves = with_ancestors(found.values(), documents, self._lengths)
        own = {leaf.id: of_texts[leaf.id] for leaf in leaves}
        means = mean_vectors(leaves, own, by_tokens=self.mean_by_tokens)
        near = neighbours_of(leaves)
        known = {**means, **of_texts}
        mixed = {
            leaf.id: in_context(
                own[leaf.id], surroundings(leaf, self.reading_tokens, near[leaf.id]), known, self._weights
            )
            for leaf in leaves
        }
        inner = {None: {}, "mean": means, "embed": of_texts, "both": known}[self.inner]
        result = []
        for node in documents:
            vector = mixed.get(node.id) if is_leaf(node) else inner.get(node.id)
            result.append(node if vector is None else replace(node, embedding=vector.tolist()))
        return result

    def to_dict(self) -> dict[str, Any]:
        """
        Serialise the component.

        :returns: Dictionary with the type and the init parameters.
        """
        texts = self._texts
        return default_to_dict(
            self,
            document_embedder=self.document_embedder,
            context=dict(self.context) if isinstance(self.context, Mapping) else self.context,
            passages=self.passages,
            reading_tokens=self.reading_tokens,
            inner=self.inner,
            mean_by_tokens=self.mean_by_tokens,
            embed_headings=texts.embed_headings,
            max_heading_characters=texts.max_heading_characters,
            embed_table_header=texts.embed_table_header,
            embed_context=texts.embed_context,
            embed_front_matter=texts.embed_front_matter,
            leaves_per_call=texts.leaves_per_call,
            progress_bar=texts.progress_bar,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "HierarchyEmbedder":
        """
        Revive the component.

        :param data: What `to_dict` gave.
        :returns: The component.
        """
        return default_from_dict(cls, data)

    def close(self) -> None:
        """Release what the embedder holds open."""
        self._texts.close()

    async def close_async(self) -> None:
        """Release what the embedder's asynchronous side holds open."""
        await self._texts.close_async()


def _vectors(nodes: list[Document]) -> dict[str, Vector]:
    """
    What the embedder gave, by id, at length 1.

    One bad vector would spoil those of all leaves around it, so that none is passed on.
    """
    vectors: dict[str, Vector] = {}
    size: int | None = None
    for node in nodes:
        if node.embedding is None:
            msg = (
                "HierarchyEmbedder mixes dense vectors, but its embedder gives none (is it a sparse one?). "
                "Use a LeafEmbedder for sparse vectors, in front or behind."
            )
            raise ValueError(msg)
        vector = np.asarray(node.embedding, dtype=np.float64)
        size = vector.size if size is None else size
        if not np.isfinite(vector).all() or vector.size != size:
            wrong = f"{vector.size} dimensions, and {size} before" if vector.size != size else "NaN or infinity in it"
            msg = (
                f"The embedder gave a vector with {wrong}, for a text of {describe(node)} that begins with "
                f"{(node.content or '')[:_BEGINNING]!r}. No leaf is passed on: look at the embedder, or leave that "
                "text out."
            )
            raise RuntimeError(msg)
        vectors[node.id] = unit(vector)
    return vectors
