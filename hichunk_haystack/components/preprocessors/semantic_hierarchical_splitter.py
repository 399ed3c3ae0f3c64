# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import asyncio
from typing import Any

from haystack import Document, component, default_to_dict
from haystack.components.embedders.types import DocumentEmbedder, TextEmbedder
from haystack.token_counters.types import TokenCounter

from hichunk_haystack.components.preprocessors.semantic import embedder_key, semantic_structure
from hichunk_haystack.components.preprocessors.splitting import Structure, TreeSplitter, split_documents
from hichunk_haystack.tokens import HuggingFaceTokenCounter, warm_up_counter
from hichunk_haystack.tree import TreeBuilder


@component
class SemanticHierarchicalSplitter(TreeSplitter):
    """
    Splits documents into trees where their subject changes, as the embeddings of their sentences tell.

    Each sentence, listing and table is embedded once. The segments of the lowest level are those that scatter least
    about their means, found by dynamic programming; the price of a cut follows from the text itself and is lower in
    valleys of similarity, so there is no threshold to set. Higher levels put neighbouring segments together by the same
    rule, or follow from lines that look like titles. Sections have no titles.

    ```python
    from haystack import Document

    from hichunk_haystack.components.embedders import OfflineSentenceTransformersDocumentEmbedder
    from hichunk_haystack.components.preprocessors import SemanticHierarchicalSplitter

    text = "The kiln is fired slowly. It cools for a day.\\n\\nGlaze is mixed with water.\\n\\nThe shop opens.\\n"
    embedder = OfflineSentenceTransformersDocumentEmbedder(progress_bar=False)
    splitter = SemanticHierarchicalSplitter(embedder, min_leaf_tokens=1)
    for node in splitter.run([Document(content=text)])["documents"]:
        print(node.meta["__level"], node.content)
    ```
    """

    __module__ = "hichunk_haystack.components.preprocessors"

    def __init__(
        self,
        embedder: DocumentEmbedder | TextEmbedder,
        *,
        levels: int = 2,
        layout: bool = True,
        units_per_call: int = 1024,
        leaf_tokens: int = 200,
        min_leaf_tokens: int = 20,
        inner_tokens: list[int] | None = None,
        language: str = "en",
        token_counter: TokenCounter | None = None,
    ) -> None:
        """
        Create the component.

        :param embedder: Any document embedder of Haystack, or a text embedder, which is asked sentence by sentence and
            is slower.
        :param levels: Number of levels of segments, from 1 on.
        :param layout: Whether short lines that stand alone, as titles do, attract cuts.
        :param units_per_call: How many sentences the embedder is given at once.
        :param leaf_tokens: The most tokens of a leaf.
        :param min_leaf_tokens: Segments of fewer tokens join their neighbour inside the same parent.
        :param inner_tokens: Bounds in tokens of the inner nodes that group the leaves of a long segment; by default 4
            and 16 times `leaf_tokens`.
        :param language: ISO 639-1 code of the documents' language, for finding sentences.
        :param token_counter: Counts tokens; by default the tokenizer of all-MiniLM-L6-v2.
        :raises ValueError: If a number makes no sense; the message names it.
        """
        for name, value in (("levels", levels), ("units_per_call", units_per_call)):
            if value < 1:
                msg = f"{name} is {value}; it must be at least 1."
                raise ValueError(msg)
        self.embedder = embedder
        self.levels = levels
        self.layout = layout
        self.units_per_call = units_per_call
        self.leaf_tokens = leaf_tokens
        self.min_leaf_tokens = min_leaf_tokens
        self.inner_tokens = inner_tokens
        self.language = language
        self.token_counter = token_counter
        self._builder = TreeBuilder(
            token_counter or HuggingFaceTokenCounter(),
            leaf_tokens=leaf_tokens,
            min_leaf_tokens=min_leaf_tokens,
            max_level=levels,
            inner_tokens=inner_tokens,
            language=language,
        )

    def warm_up(self) -> None:
        """Load the token counter and the embedder."""
        warm_up_counter(self._builder.counter)
        if hasattr(self.embedder, "warm_up"):
            self.embedder.warm_up()

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """
        Split documents.

        A document for which the embedder fails is split by length alone, with a warning; its root's meta says so under
        `splitter`.

        :param documents: Sources. They are not changed; those without text are left out with a warning.
        :returns: A dictionary with `documents`: all nodes of all trees, source by source, the root first.
        :raises TypeError: If something in the list is not a `Document`.
        """
        self.warm_up()
        key = f"semantic {self.levels} {self.layout} {embedder_key(self.embedder)}"
        return {"documents": split_documents(documents, self._builder, self._predict, key)}

    @component.output_types(documents=list[Document])
    async def run_async(self, documents: list[Document]) -> dict[str, list[Document]]:
        """
        Split documents in a thread, so that the event loop stays free.

        :param documents: Sources. They are not changed; those without text are left out with a warning.
        :returns: What `run` returns.
        :raises TypeError: If something in the list is not a `Document`.
        """
        return await asyncio.to_thread(self.run, documents)

    def _predict(self, source: Document) -> Structure:
        return semantic_structure(
            source,
            self.embedder,
            levels=self.levels,
            layout=self.layout,
            units_per_call=self.units_per_call,
            language=self.language,
        )

    def to_dict(self) -> dict[str, Any]:
        """
        Serialise the component.

        :returns: Dictionary with the type and the init parameters.
        """
        return default_to_dict(
            self,
            embedder=self.embedder,
            levels=self.levels,
            layout=self.layout,
            units_per_call=self.units_per_call,
            leaf_tokens=self.leaf_tokens,
            min_leaf_tokens=self.min_leaf_tokens,
            inner_tokens=self.inner_tokens,
            language=self.language,
            token_counter=self.token_counter,
        )
