# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Pages that show a source's tree, and what a merge did with a query's hits."""

from hichunk_haystack.inspector.data import Run
from hichunk_haystack.inspector.pages import query_page, save_page, tree_page

__all__ = ["Run", "query_page", "save_page", "tree_page"]
