# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from typing import Any

from haystack import Document, component, default_to_dict
from haystack.token_counters.types import TokenCounter

from hichunk_haystack.components.preprocessors.content_levels import (
    builder_level,
    preset_key,
    with_content_levels,
)
from hichunk_haystack.components.preprocessors.splitting import Structure, TreeSplitter, from_markdown, split_documents
from hichunk_haystack.markdown import parse_markdown
from hichunk_haystack.presets import resolve_preset
from hichunk_haystack.tokens import HuggingFaceTokenCounter
from hichunk_haystack.tree import CutPoint, TreeBuilder


@component
class MarkdownHierarchicalSplitter(TreeSplitter):
    """
    Splits Markdown into trees along its headings.

    Headings are found by a CommonMark parser: ATX and setext headings, none in code, HTML, tables, quotations or lists.
    Text before the first heading is kept, and a jump of levels (H1, then H3) nests. A document without any heading gets
    leaves at its paragraphs, grouped under inner nodes. Leaves are never above `leaf_tokens`, are cut at the best place
    that fits (block, then sentence, then word, then character), and joined in order give the source back exactly.

    A table is cut between rows, and a leaf that starts behind the header of its table has that header in its meta as
    `table_header`. Listings are cut before functions where the fence names a language that is known, else between
    lines.

    ```python
    from haystack import Document

    from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter

    text = "# Kiln\\n\\nFire it slowly. Then let it cool.\\n\\n## Glaze\\n\\nDip the pot for three seconds.\\n"
    splitter = MarkdownHierarchicalSplitter(leaf_tokens=10, min_leaf_tokens=1)
    for node in splitter.run([Document(content=text)])["documents"]:
        print(node.meta["__level"], node.meta["headings"], node.meta["token_count"])
    ```
    """

    __module__ = "hichunk_haystack.components.preprocessors"

    def __init__(
        self,
        *,
        leaf_tokens: int = 200,
        min_leaf_tokens: int = 20,
        max_level: int = 10,
        inner_tokens: list[int] | None = None,
        language: str = "en",
        token_counter: TokenCounter | None = None,
        preset: str | None = None,
    ) -> None:
        """
        Create the component.

        :param leaf_tokens: The most tokens of a leaf; less than the embedding model reads, with room for the headings.
        :param min_leaf_tokens: Sections of fewer tokens join their neighbour inside the same parent.
        :param max_level: Headings of deeper levels do not start a section.
        :param inner_tokens: Bounds in tokens of the inner nodes that group the leaves of a long section; by default 4
            and 16 times `leaf_tokens`.
        :param language: ISO 639-1 code of the documents' language, for finding sentences.
        :param token_counter: Counts tokens; by default the tokenizer of all-MiniLM-L6-v2. Use the tokenizer of the
            embedding model.
        :param preset: Sizes by a name: `hc200`, `kohaku` (paragraphs and sentences are levels of the tree) or
            `llamaindex`. What is given besides, and is not the usual value, goes before it.
        :raises ValueError: If a bound makes no sense; the message names it.
        """
        self.leaf_tokens = leaf_tokens
        self.min_leaf_tokens = min_leaf_tokens
        self.max_level = max_level
        self.inner_tokens = inner_tokens
        self.language = language
        self.token_counter = token_counter
        self.preset = preset
        self._preset = resolve_preset(preset, leaf_tokens, min_leaf_tokens, inner_tokens)
        self._builder = TreeBuilder(
            token_counter or HuggingFaceTokenCounter(),
            leaf_tokens=self._preset.leaf_tokens,
            min_leaf_tokens=self._preset.min_leaf_tokens,
            max_level=builder_level(self._preset, max_level),
            inner_tokens=self._preset.inner_tokens,
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
        key = f"markdown{preset_key(self._preset, self.max_level)}"
        return {"documents": split_documents(documents, self._builder, self._predict, key, workers=3)}

    def _predict(self, source: Document) -> Structure:
        text = source.content or ""
        parsed = parse_markdown(text)
        structure = from_markdown(parsed, [CutPoint(*heading) for heading in parsed.headings])
        return with_content_levels(text, structure, parsed.kinds, self._preset, self.max_level, self.language)

    def to_dict(self) -> dict[str, Any]:
        """
        Serialise the component.

        :returns: Dictionary with the type and the init parameters.
        """
        return default_to_dict(
            self,
            leaf_tokens=self.leaf_tokens,
            min_leaf_tokens=self.min_leaf_tokens,
            max_level=self.max_level,
            inner_tokens=self.inner_tokens,
            language=self.language,
            token_counter=self.token_counter,
            preset=self.preset,
        )
