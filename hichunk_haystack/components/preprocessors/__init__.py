# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from hichunk_haystack.components.preprocessors.markdown_hierarchical_splitter import MarkdownHierarchicalSplitter

__all__ = ["MarkdownHierarchicalSplitter"]
