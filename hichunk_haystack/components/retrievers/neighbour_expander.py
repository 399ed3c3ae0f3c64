# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.document_stores.types import DocumentStore
from haystack.token_counters.types import TokenCounter

from hichunk_haystack.chains import Lengths, resolve_hits
from hichunk_haystack.leaf_texts import read_hits
from hichunk_haystack.nodes import CHILDREN, PARENT, TREE_ID
from hichunk_haystack.plans import Hit
from hichunk_haystack.reading import Reads, with_reads, with_reads_async
from hichunk_haystack.tokens import HuggingFaceTokenCounter, warm_up_counter


@component
class NeighbourExpander:
    """
    Fills what a result leaves of the budget with the nodes before and behind it.

    A hit often needs the sentence before it to be understood, and the merge leaves room when a parent is too large or
    too little of it was found. Siblings at distance 1 of all results are considered first, best result first, then
    those at distance 2, and so on; each that fits is taken. What stands in a result already is not taken again.

    Put it behind a `BudgetAutoMergingRetriever` with the same budget and overhead. (To go up by levels instead, give
    that one `policy="parent"`.)

    ```python
    from haystack import Document
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
    from hichunk_haystack.components.retrievers import NeighbourExpander

    text = "# Kiln\\n\\nLoad it first.\\n\\nThen fire it slowly.\\n\\nLet it cool for a day.\\n"
    nodes = MarkdownHierarchicalSplitter(leaf_tokens=9, min_leaf_tokens=1).run([Document(content=text)])["documents"]
    store = InMemoryDocumentStore()
    store.write_documents(nodes)
    hit = next(node for node in nodes if (node.content or "").startswith("Then"))
    expander = NeighbourExpander(store, token_budget=16)
    for node in expander.run([hit])["documents"]:
        print(repr(node.content))  # the hit and what comes before it; what comes after has no room
    ```
    """

    __module__ = "hichunk_haystack.components.retrievers"

    def __init__(
        self,
        document_store: DocumentStore,
        *,
        token_budget: int = 4096,
        siblings: int = 1,
        document_overhead: int = 0,
        token_counter: TokenCounter | None = None,
    ) -> None:
        """
        Create the component.

        :param document_store: Where the nodes are.
        :param token_budget: The most tokens of all documents together, results included.
        :param siblings: How many siblings on either side of a result to go.
        :param document_overhead: Tokens that each document costs besides its own, as for the merge.
        :param token_counter: Counts documents that carry no `token_count`; by default the tokenizer of
            all-MiniLM-L6-v2.
        :raises ValueError: If a number makes no sense; the message names it.
        """
        for name, value, least in (
            ("token_budget", token_budget, 1), ("siblings", siblings, 0), ("document_overhead", document_overhead, 0),
        ):  # fmt: skip
            if value < least:
                msg = f"{name} is {value}; it must be at least {least}."
                raise ValueError(msg)
        self.document_store = document_store
        self.token_budget = token_budget
        self.siblings = siblings
        self.document_overhead = document_overhead
        self.token_counter = token_counter
        self._counter: TokenCounter = token_counter or HuggingFaceTokenCounter()
        self._lengths = Lengths(self._counter)

    def warm_up(self) -> None:
        """Load a token counter that was given; the default one is loaded when a document needs it."""
        if self.token_counter is not None:
            warm_up_counter(self.token_counter)

    @component.output_types(documents=list[Document], added=int)
    def run(self, documents: list[Document], token_budget: int | None = None) -> dict[str, Any]:
        """
        Add neighbours.

        :param documents: Results in rank order. They are not changed, and all come back.
        :param token_budget: Token budget for this query instead of the component's.
        :returns: A dictionary with `documents`, the results in their order, each between the neighbours that were
            added, which have its score and its id in `neighbour_of` in their meta; and `added`, how many those are.
        :raises ValueError: If the budget is below 1.
        """
        return with_reads(self._expand(documents, token_budget), self.document_store)

    @component.output_types(documents=list[Document], added=int)
    async def run_async(self, documents: list[Document], token_budget: int | None = None) -> dict[str, Any]:
        """
        Add neighbours without blocking.

        :param documents: Results in rank order. They are not changed, and all come back.
        :param token_budget: Token budget for this query instead of the component's.
        :returns: What `run` returns.
        :raises ValueError: If the budget is below 1.
        """
        return await with_reads_async(self._expand(documents, token_budget), self.document_store)

    def _expand(self, documents: list[Document], token_budget: int | None) -> Reads[dict[str, Any]]:
        """Two reads: the parents, who name the siblings, and the siblings that may come in."""
        budget = self.token_budget if token_budget is None else token_budget
        if budget < 1:
            msg = f"token_budget is {budget}; it must be at least 1."
            raise ValueError(msg)
        resolved = yield from resolve_hits(documents, self._lengths)
        left = budget - sum(hit.tokens + self.document_overhead for hit in resolved.hits)
        parents = list(dict.fromkeys(each.meta[PARENT] for each in documents if each.meta.get(PARENT)))
        if left <= 0 or not self.siblings or not parents:
            return {"documents": list(documents), "added": 0}
        families = yield parents
        wanted = list(_siblings(documents, families, self.siblings))
        names = list(dict.fromkeys(name for _, name, _ in wanted))
        read = (yield names) if names else {}
        whole, _ = yield from read_hits(list(read.values()))
        there = {node.id: node for node in whole}
        places = yield from resolve_hits(whole, self._lengths)
        around = {hit.id: hit for hit in places.hits}
        taken = _Taken(resolved.hits)
        beside: dict[tuple[int, int], Document] = {}
        for number, name, distance in wanted:
            sibling, result = there.get(name), documents[number]
            if sibling is None or sibling.meta.get(TREE_ID) != result.meta.get(TREE_ID):
                continue
            cost = around[name].tokens + self.document_overhead
            if cost > left or not taken.take(around[name]):
                continue
            left -= cost
            meta = {**sibling.meta, "neighbour_of": result.id}
            beside[number, distance] = replace(
                sibling, meta=meta, score=result.score, embedding=None, sparse_embedding=None
            )
        return {"documents": list(_in_order(documents, beside, self.siblings)), "added": len(beside)}

    def to_dict(self) -> dict[str, Any]:
        """
        Serialise the component.

        :returns: Dictionary with the type and the init parameters.
        """
        return default_to_dict(
            self,
            document_store=self.document_store,
            token_budget=self.token_budget,
            siblings=self.siblings,
            document_overhead=self.document_overhead,
            token_counter=self.token_counter,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "NeighbourExpander":
        """
        Revive the component.

        :param data: What `to_dict` gave.
        :returns: The component.
        """
        return default_from_dict(cls, data)

    def close(self) -> None:
        """Let go of the store."""
        if hasattr(self.document_store, "close"):
            self.document_store.close()

    async def close_async(self) -> None:
        """Let go of the store's asynchronous side."""
        if hasattr(self.document_store, "close_async"):
            await self.document_store.close_async()


def _siblings(
    documents: Sequence[Document], families: dict[str, Document], reach: int
) -> Iterator[tuple[int, str, int]]:
    """(number of the result, id of a sibling, distance), in the order in which they are considered."""
    lines = []
    for document in documents:
        parent = families.get(document.meta.get(PARENT) or "")
        line = list(parent.meta.get(CHILDREN) or ()) if parent is not None else []
        lines.append((line, line.index(document.id)) if document.id in line else ([], 0))
    for distance in range(1, reach + 1):
        for number, (line, place) in enumerate(lines):
            # What comes before is needed for understanding more often.
            for step in (-distance, distance):
                if 0 <= place + step < len(line):
                    yield number, line[place + step], step


class _Taken:
    """Tells whether a node's text stands in a result already, in whole or in part."""

    def __init__(self, hits: Iterable[Hit]) -> None:
        self.held: set[str] = set()
        self.above: set[str] = set()
        for hit in hits:
            self.add(hit)

    def add(self, hit: Hit) -> None:
        self.held.add(hit.id)
        self.above.update(node.id for node in hit.ancestors)

    def take(self, hit: Hit) -> bool:
        if hit.id in self.held or hit.id in self.above or any(node.id in self.held for node in hit.ancestors):
            return False
        self.add(hit)
        return True


def _in_order(documents: Sequence[Document], beside: dict[tuple[int, int], Document], reach: int) -> Iterator[Document]:
    for number, document in enumerate(documents):
        yield from (beside[number, -step] for step in range(reach, 0, -1) if (number, -step) in beside)
        yield document
        yield from (beside[number, step] for step in range(1, reach + 1) if (number, step) in beside)
