# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What the trace knows of nodes that were not read."""

from dataclasses import replace
from typing import Any

import pytest
from haystack import Document
from haystack.document_stores.in_memory import InMemoryDocumentStore

from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.components.retrievers import BudgetAutoMergingRetriever
from hichunk_haystack.tokens import HuggingFaceTokenCounter

TEXT = (
    "# Pots\n\n## Throwing\n\n### Bowls\n\nOpen the clay.\n\n### Mugs\n\nPull a handle.\n\n"
    "## Firing\n\nFire it slowly. Then let it cool for a day and a night.\n"
)


@pytest.fixture(scope="module")
def nodes(counter: HuggingFaceTokenCounter) -> list[Document]:
    splitter = MarkdownHierarchicalSplitter(leaf_tokens=30, min_leaf_tokens=1, token_counter=counter)
    pages = [Document(content=TEXT, meta={"file_path": f"{folder}/pots.md"}) for folder in ("a", "b")]
    return splitter.run(pages)["documents"]


def trace_of(nodes: list[Document], hits: list[Document], counter: HuggingFaceTokenCounter) -> dict[str, Any]:
    store = InMemoryDocumentStore()
    store.write_documents(nodes)
    return BudgetAutoMergingRetriever(store, policy="none", token_counter=counter).run(hits)["trace"]


def test_ancestors_have_their_titles_though_they_were_not_read(
    nodes: list[Document], counter: HuggingFaceTokenCounter
) -> None:
    by_id = {node.id: node for node in nodes}
    bowls = next(node for node in nodes if node.meta["headings"][-1] == "Bowls")
    # One hit alone: nothing but the number that it carries tells how many of its titles are those of the nodes above.
    ancestors = trace_of(nodes, [bowls], counter)["ancestors"]
    assert sorted(node["headings"] for node in ancestors.values()) == [["Pots"], ["Pots", "Throwing"]]
    leaves = [node for node in nodes if not node.meta["__children_ids"]]
    for node_id, node in trace_of(nodes, leaves, counter)["ancestors"].items():
        assert node["headings"] == by_id[node_id].meta["headings"]


def test_links_of_older_trees_leave_the_titles_that_all_hits_share(
    nodes: list[Document], counter: HuggingFaceTokenCounter
) -> None:
    def older(node: Document) -> Document:
        links = [{key: link[key] for key in link if key != "titles"} for link in node.meta["__ancestors"]]
        return replace(node, meta={**node.meta, "__ancestors": links})

    leaves = [older(node) for node in nodes if node.meta["headings"][-1] in ("Bowls", "Mugs")]
    ancestors = trace_of(nodes, leaves, counter)["ancestors"]
    # A root is given no title, a node of level 1 the first that its hits share.
    assert {tuple(node["headings"]) for node in ancestors.values()} == {(), ("Pots",)}


def test_sources_of_one_name_are_told_apart(nodes: list[Document], counter: HuggingFaceTokenCounter) -> None:
    roots = [node for node in nodes if node.meta["__level"] == 0]
    leaves = [node for node in nodes if not node.meta["__children_ids"]]
    assert trace_of(nodes, leaves, counter)["sources"] == {roots[0].id: "a/pots.md", roots[1].id: "b/pots.md"}
