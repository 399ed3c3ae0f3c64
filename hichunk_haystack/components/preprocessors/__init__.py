# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from hichunk_haystack.components.preprocessors.auto_hierarchical_splitter import AutoHierarchicalSplitter
from hichunk_haystack.components.preprocessors.contextual_leaf_enricher import ContextualLeafEnricher
from hichunk_haystack.components.preprocessors.hichunk_splitter import HiChunkSplitError, HiChunkSplitter
from hichunk_haystack.components.preprocessors.markdown_hierarchical_splitter import MarkdownHierarchicalSplitter
from hichunk_haystack.components.preprocessors.plain_text_hierarchical_splitter import PlainTextHierarchicalSplitter
from hichunk_haystack.components.preprocessors.semantic_hierarchical_splitter import SemanticHierarchicalSplitter
from hichunk_haystack.components.preprocessors.token_hierarchical_splitter import TokenHierarchicalSplitter

__all__ = [
    "AutoHierarchicalSplitter",
    "ContextualLeafEnricher",
    "HiChunkSplitError",
    "HiChunkSplitter",
    "MarkdownHierarchicalSplitter",
    "PlainTextHierarchicalSplitter",
    "SemanticHierarchicalSplitter",
    "TokenHierarchicalSplitter",
]
