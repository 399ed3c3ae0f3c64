# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Examples to fine-tune a model for `HiChunkSplitter`, made from Markdown with headings."""

from hichunk_haystack.training.examples import Example, make_examples
from hichunk_haystack.training.files import read_markdown, write_jsonl

__all__ = ["Example", "make_examples", "read_markdown", "write_jsonl"]
