# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""The core without any extra: split, store, merge. Run where only the wheel is installed."""

from pathlib import Path

from haystack import Document
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.token_counters import ApproximateTokenCounter

import hichunk_haystack
from hichunk_haystack.components.builders import ContextBuilder
from hichunk_haystack.components.converters import FileConverter
from hichunk_haystack.components.embedders import LeafEmbedder
from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.components.retrievers import BudgetAutoMergingRetriever
from hichunk_haystack.components.writers import HierarchyWriter
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from hichunk_haystack.inspector import query_page, tree_page
from hichunk_haystack.pipeline_files import pipeline_file

text = "# Kiln\n\nFire it slowly.\n\nThen let it cool for a day.\n\n# Wheel\n\nCentre the clay before you open it.\n"
counter = ApproximateTokenCounter()
splitter = MarkdownHierarchicalSplitter(leaf_tokens=10, min_leaf_tokens=1, token_counter=counter)
nodes = splitter.run([Document(content=text)])["documents"]
store = InMemoryDocumentStore()
assert HierarchyWriter(store, progress_bar=False).run(nodes)["sources"] == 1
merger = BudgetAutoMergingRetriever(store, token_budget=100, token_counter=counter)
result = merger.run([node for node in nodes if not node.meta["__children_ids"]])
merged = result["documents"]
assert [document.content for document in merged] == [text]
assert text.strip() in ContextBuilder(token_counter=counter).run(merged)["context"]
for page in (tree_page(nodes), query_page("How?", [("a run", result["trace"], merged)])):
    assert "Fire it slowly." in page
assert pipeline_file("query").is_relative_to(Path(hichunk_haystack.__file__).parent)
assert FileConverter and LeafEmbedder and HierarchyQdrantDocumentStore
print(f"hichunk-haystack {hichunk_haystack.__version__}: the wheel works on its own")
