# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Sequence
from typing import Any

from haystack import Document, component, default_to_dict
from haystack.components.embedders.types import DocumentEmbedder, TextEmbedder
from haystack.token_counters.types import TokenCounter

from hichunk_haystack.components.preprocessors.content_levels import (
    builder_level,
    preset_key,
    with_content_levels,
)
from hichunk_haystack.components.preprocessors.semantic import embedder_key, semantic_structure
from hichunk_haystack.components.preprocessors.splitting import Structure, TreeSplitter, from_markdown, split_documents
from hichunk_haystack.markdown import MarkdownStructure, parse_markdown
from hichunk_haystack.plain_text import read_plain_text
from hichunk_haystack.presets import resolve_preset
from hichunk_haystack.tokens import HuggingFaceTokenCounter, warm_up_counter
from hichunk_haystack.tree import CutPoint, TreeBuilder

_UNITS_PER_CALL = 1024
# A single line that looks like a heading may be anything.
_PLAIN_HEADINGS = 2


@component
class AutoHierarchicalSplitter(TreeSplitter):
    """
    Splits each document into a tree by the surest structure that it has.

    Markdown headings where there are enough of them; else headings of plain text; else, where an embedder is given, the
    changes of subject that it sees; else lengths alone. What was chosen and why is in the root's meta under `splitter`.

    ```python
    from haystack import Document

    from hichunk_haystack.components.preprocessors import AutoHierarchicalSplitter

    texts = ["# Kiln\\n\\nFire it.\\n\\n# Wheel\\n\\nTurn it.\\n", "§ 1\\n\\nFire.\\n\\n§ 2\\n\\nTurn.\\n", "Fire it."]
    nodes = AutoHierarchicalSplitter(min_leaf_tokens=1).run([Document(content=text) for text in texts])["documents"]
    print([node.meta["splitter"]["chosen"] for node in nodes if node.meta["__level"] == 0])
    # ['markdown', 'plain text', 'token']
    ```
    """

    __module__ = "hichunk_haystack.components.preprocessors"

    def __init__(
        self,
        *,
        embedder: DocumentEmbedder | TextEmbedder | None = None,
        min_headings: int = 1,
        max_characters_per_heading: int = 20_000,
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

        :param embedder: Finds changes of subject in documents without headings; without one they are split by length.
        :param min_headings: Fewer Markdown headings than this are no structure; of plain text at least two are needed.
        :param max_characters_per_heading: Nor are headings that stand further apart than this on average, in
            characters.
        :param leaf_tokens: The most tokens of a leaf; less than the embedding model reads, with room for the headings.
        :param min_leaf_tokens: Sections of fewer tokens join their neighbour inside the same parent.
        :param max_level: Headings of deeper levels do not start a section.
        :param inner_tokens: Bounds in tokens of the inner nodes that group the leaves of a long section; by default 4
            and 16 times `leaf_tokens`.
        :param language: ISO 639-1 code of the documents' language, for finding sentences.
        :param token_counter: Counts tokens; by default the tokenizer of all-MiniLM-L6-v2.
        :param preset: Sizes by a name: `hc200`, `kohaku` (paragraphs and sentences are levels of the tree) or
            `llamaindex`. What is given besides, and is not the usual value, goes before it.
        :raises ValueError: If a number makes no sense; the message names it.
        """
        for name, value in (("min_headings", min_headings), ("max_characters_per_heading", max_characters_per_heading)):
            if value < 1:
                msg = f"{name} is {value}; it must be at least 1."
                raise ValueError(msg)
        self.embedder = embedder
        self.min_headings = min_headings
        self.max_characters_per_heading = max_characters_per_heading
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

    def warm_up(self) -> None:
        """Load the token counter and, where there is one, the embedder."""
        warm_up_counter(self._builder.counter)
        if self.embedder is not None and hasattr(self.embedder, "warm_up"):
            self.embedder.warm_up()

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """
        Split documents.

        :param documents: Sources. They are not changed; those without text are left out with a warning.
        :returns: A dictionary with `documents`: all nodes of all trees, source by source, the root first. Each root has
            in its meta under `splitter` what was `chosen` (`markdown`, `plain text`, `semantic` or `token`) and `why`.
        :raises TypeError: If something in the list is not a `Document`.
        """
        self.warm_up()
        semantic = "" if self.embedder is None else embedder_key(self.embedder)
        key = f"auto {self.min_headings} {self.max_characters_per_heading} {semantic}"
        key += preset_key(self._preset, self.max_level)
        # An embedder need not bear two threads.
        workers = 2 if self.embedder is None else 1
        return {"documents": split_documents(documents, self._builder, self._predict, key, workers=workers)}

    def _predict(self, source: Document) -> Structure:
        text = source.content or ""
        parsed = parse_markdown(text)
        structure = self._choose(source, text, parsed)
        kinds = parsed.kinds if structure.boundaries is parsed.boundaries else None
        return with_content_levels(text, structure, kinds, self._preset, self.max_level, self.language)

    def _choose(self, source: Document, text: str, parsed: MarkdownStructure) -> Structure:
        if self._enough(parsed.headings, text, self.min_headings):
            why = f"{len(parsed.headings)} Markdown headings in {len(text)} characters"
            points = [CutPoint(*heading) for heading in parsed.headings]
            return from_markdown(parsed, points, _note("markdown", why))
        why = f"{len(parsed.headings)} Markdown headings are too few for {len(text)} characters"
        plain = read_plain_text(text)
        if self._enough(plain.headings, text, max(_PLAIN_HEADINGS, self.min_headings)):
            points = [CutPoint(*heading) for heading in plain.headings]
            why = f"{why}; {len(plain.headings)} headings of plain text"
            return Structure(points, plain.boundaries, plain.tables, _note("plain text", why))
        why = f"{why}, and so are {len(plain.headings)} headings of plain text"
        if self.embedder is None:
            # The few headings that there are still name what stands under them.
            points = [CutPoint(*heading) for heading in parsed.headings]
            return from_markdown(parsed, points, _note("token", f"{why}; no embedder is given"))
        found = semantic_structure(
            source,
            self.embedder,
            levels=2,
            layout=True,
            units_per_call=_UNITS_PER_CALL,
            language=self.language,
            parsed=parsed,
        )
        return from_markdown(parsed, found.cut_points, found.root_meta or _note("semantic", why))

    def _enough(self, headings: Sequence[Any], text: str, least: int) -> bool:
        return len(headings) >= max(least, len(text) / self.max_characters_per_heading)

    def to_dict(self) -> dict[str, Any]:
        """
        Serialise the component.

        :returns: Dictionary with the type and the init parameters.
        """
        return default_to_dict(
            self,
            embedder=self.embedder,
            min_headings=self.min_headings,
            max_characters_per_heading=self.max_characters_per_heading,
            leaf_tokens=self.leaf_tokens,
            min_leaf_tokens=self.min_leaf_tokens,
            max_level=self.max_level,
            inner_tokens=self.inner_tokens,
            language=self.language,
            token_counter=self.token_counter,
            preset=self.preset,
        )


def _note(chosen: str, why: str) -> dict[str, Any]:
    return {"splitter": {"chosen": chosen, "why": why}}
