# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from typing import Any

from haystack import Document, component, default_to_dict
from haystack.token_counters.types import TokenCounter

from hichunk_haystack.components.preprocessors.splitting import (
    Structure,
    TreeSplitter,
    split_documents,
)
from hichunk_haystack.overlap import overlap_leaves
from hichunk_haystack.quick_blocks import quick_blocks
from hichunk_haystack.tokens import HuggingFaceTokenCounter
from hichunk_haystack.tree import Node, TreeBuilder


@component
class TokenHierarchicalSplitter(TreeSplitter):
    """
    Splits any text into trees of nodes of given lengths, without looking for sections.

    The smallest length is that of the leaves, each other one that of a level of inner nodes. All are cut at the ends of
    blocks and sentences and are of similar lengths within their parent, so that there is no tiny rest. A level that
    would hold a single node is left out, and a text that fits a leaf is its root alone.

    ```python
    from haystack import Document

    from hichunk_haystack.components.preprocessors import TokenHierarchicalSplitter

    text = "Fire the kiln slowly. Let it cool for a day. Centre the clay first. Keep the sponge wet. " * 4
    splitter = TokenHierarchicalSplitter(chunk_sizes=[64, 16])
    for node in splitter.run([Document(content=text)])["documents"]:
        print("  " * node.meta["__level"], node.meta["token_count"])
    ```
    """

    __module__ = "hichunk_haystack.components.preprocessors"

    def __init__(
        self,
        chunk_sizes: list[int] | None = None,
        *,
        overlap: int = 0,
        language: str = "en",
        token_counter: TokenCounter | None = None,
    ) -> None:
        """
        Create the component.

        :param chunk_sizes: The most tokens of the nodes of each level, in any order; by default 2048, 512 and 128.
        :param overlap: The most tokens at the end of a leaf that the next leaf of the same parent repeats. They count
            towards the length of a leaf. With an overlap, leaves no longer join to the source.
        :param language: ISO 639-1 code of the documents' language, for finding sentences.
        :param token_counter: Counts tokens; by default the tokenizer of all-MiniLM-L6-v2.
        :raises ValueError: If a number makes no sense; the message names it.
        """
        sizes = sorted({2048, 512, 128} if chunk_sizes is None else set(chunk_sizes))
        if not sizes or sizes[0] < 1:
            msg = f"chunk_sizes is {chunk_sizes}; give at least one length, each of at least 1 token."
            raise ValueError(msg)
        if not 0 <= overlap <= sizes[0] // 2:
            msg = f"overlap is {overlap}; it must lie between 0 and half of the smallest chunk size ({sizes[0]})."
            raise ValueError(msg)
        self.chunk_sizes = chunk_sizes
        self.overlap = overlap
        self.language = language
        self.token_counter = token_counter
        self._limit = sizes[0]
        self._builder = TreeBuilder(
            token_counter or HuggingFaceTokenCounter(),
            leaf_tokens=sizes[0] - overlap,
            min_leaf_tokens=min(20, sizes[0] // 4),
            inner_tokens=sizes[1:],
            language=language,
        )

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """
        Split documents.

        :param documents: Sources. They are not changed; those without text are left out with a warning.
        :returns: A dictionary with `documents`: all nodes of all trees, source by source, the root first.
        :raises TypeError: If something in the list is not a `Document`.
        """
        key = f"token {self.overlap}"
        adjust = self._overlap if self.overlap else None
        return {"documents": split_documents(documents, self._builder, _predict, key, workers=3, adjust=adjust)}

    def _overlap(self, text: str, nodes: list[Node]) -> None:
        overlap_leaves(text, nodes, self._builder.counter, self.overlap, self._limit, self.language)

    def to_dict(self) -> dict[str, Any]:
        """
        Serialise the component.

        :returns: Dictionary with the type and the init parameters.
        """
        return default_to_dict(
            self,
            chunk_sizes=self.chunk_sizes,
            overlap=self.overlap,
            language=self.language,
            token_counter=self.token_counter,
        )


def _predict(source: Document) -> Structure:
    boundaries, tables = quick_blocks(source.content or "")
    return Structure([], boundaries, tables)
