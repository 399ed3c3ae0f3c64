# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.document_stores.types import DocumentStore
from haystack.token_counters.types import TokenCounter

from hichunk_haystack.chains import Lengths, ResolvedHits, resolve_hits
from hichunk_haystack.expanding import Place, choose, climb, siblings
from hichunk_haystack.joining import JOINED
from hichunk_haystack.leaf_texts import read_hits
from hichunk_haystack.nodes import CHILDREN, TREE_ID
from hichunk_haystack.plans import Hit
from hichunk_haystack.reading import Reads, with_reads, with_reads_async
from hichunk_haystack.tokens import HuggingFaceTokenCounter, warm_up_counter


@component
class NeighbourExpander:
    """
    Fills what results leave of the budget with the nodes above them, and with those before and behind them.

    A hit often needs the sentence before it to be understood, or the section that it stands in.

    - `levels`: results give way to the node above them where the budget can take it, the best result first; then those
      that did, to the node above that one, and so on. A node takes along all results that lie in it.
    - `siblings`: those at distance 1 of what then stands there are considered first, best result first, then those at
      distance 2, and so on; each that fits is taken. What stands in a result already is not taken again.

    Put it behind a `BudgetAutoMergingRetriever` that has a part of the budget, the same overhead, and ranks
    (`order="rank"`): passages that were joined in reading order are no nodes any more. They have no neighbours, and
    what they hold is not taken again.

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
        levels: int = 0,
        document_overhead: int = 0,
        token_counter: TokenCounter | None = None,
    ) -> None:
        """
        Create the component.

        :param document_store: Where the nodes are.
        :param token_budget: The most tokens of all documents together, results included.
        :param siblings: How many siblings on either side of a result to go.
        :param levels: How many levels above a result to go.
        :param document_overhead: Tokens that each document costs besides its own, as for the merge.
        :param token_counter: Counts documents that carry no `token_count`; by default the tokenizer of
            all-MiniLM-L6-v2.
        :raises ValueError: If a number makes no sense; the message names it.
        """
        for name, value, least in (
            ("token_budget", token_budget, 1), ("siblings", siblings, 0), ("levels", levels, 0),
            ("document_overhead", document_overhead, 0),
        ):  # fmt: skip
            if value < least:
                msg = f"{name} is {value}; it must be at least {least}."
                raise ValueError(msg)
        self.document_store = document_store
        self.token_budget = token_budget
        self.siblings = siblings
        self.levels = levels
        self.document_overhead = document_overhead
        self.token_counter = token_counter
        self._counter: TokenCounter = token_counter or HuggingFaceTokenCounter()
        self._lengths = Lengths(self._counter)

    def warm_up(self) -> None:
        """Load a token counter that was given; the default one is loaded when a document needs it."""
        if self.token_counter is not None:
            warm_up_counter(self.token_counter)

    @component.output_types(documents=list[Document], climbed=int, added=int)
    def run(self, documents: list[Document], token_budget: int | None = None) -> dict[str, Any]:
        """
        Add neighbours.

        :param documents: Results in rank order. They are not changed. Where they are above the budget already, they
            come back as they are.
        :param token_budget: Token budget for this query instead of the component's.
        :returns: A dictionary with:
            - `documents`: the results in their order, each itself or in a node above it, between the neighbours that
              were added. Nodes above have the best score of the results in them, and their ids in `expanded_from` in
              their meta; neighbours have the score of what they stand beside, and its id in `neighbour_of`.
            - `climbed`: how many nodes above results there are.
            - `added`: how many neighbours there are.
        :raises ValueError: If the budget is below 1.
        """
        return with_reads(self._expand(documents, token_budget), self.document_store)

    @component.output_types(documents=list[Document], climbed=int, added=int)
    async def run_async(self, documents: list[Document], token_budget: int | None = None) -> dict[str, Any]:
        """
        Add neighbours without blocking.

        :param documents: Results in rank order. They are not changed.
        :param token_budget: Token budget for this query instead of the component's.
        :returns: What `run` returns.
        :raises ValueError: If the budget is below 1.
        """
        return await with_reads_async(self._expand(documents, token_budget), self.document_store)

    def _expand(self, documents: list[Document], token_budget: int | None) -> Reads[dict[str, Any]]:
        """Read what takes the place of results, with the parents, who name the siblings; then the siblings."""
        budget = self.token_budget if token_budget is None else token_budget
        if budget < 1:
            msg = f"token_budget is {budget}; it must be at least 1."
            raise ValueError(msg)
        resolved = yield from resolve_hits(documents, self._lengths)
        room = budget - sum(hit.tokens + self.document_overhead for hit in resolved.hits)
        if room < 0:
            return {"documents": list(documents), "climbed": 0, "added": 0}
        joined = yield from self._joined(documents)
        places, room, families = yield from self._climbed(documents, resolved, joined, room)
        hits = [place.hit for place in places]
        there = {document.id: document for document in [*families.values(), *documents]}
        standing = [_standing(place, there[place.hit.id]) for place in places]
        children = {name: node.meta.get(CHILDREN) or () for name, node in families.items()}
        wanted = list(siblings(hits, children, self.siblings)) if room > 0 else []
        names = list(dict.fromkeys(each.id for each in wanted))
        read = (yield names) if names else {}
        whole, _ = yield from read_hits(list(read.values()))
        beside = {node.id: node for node in whole}
        around = {hit.id: hit for hit in (yield from resolve_hits(whole, self._lengths)).hits}
        # A source that is being replaced may have nodes of two versions.
        same = [each for each in wanted if each.id in beside and _tree(beside[each.id]) == _tree(standing[each.number])]
        chosen = choose([*hits, *joined], same, around, room, self.document_overhead)
        return {
            "documents": list(_in_order(standing, chosen, beside)),
            "climbed": sum(bool(place.stands_for) for place in places),
            "added": len(chosen),
        }

    def _joined(self, documents: Sequence[Document]) -> Reads[list[Hit]]:
        """The nodes that joined results are made of."""
        named = [document.meta[JOINED] for document in documents if isinstance(document.meta.get(JOINED), list)]
        names = list(dict.fromkeys(name for each in named for name in each if isinstance(name, str)))
        read = (yield names) if names else {}
        return (yield from resolve_hits(list(read.values()), self._lengths)).hits

    def _climbed(
        self, documents: Sequence[Document], resolved: ResolvedHits, joined: Sequence[Hit], room: int
    ) -> Reads[tuple[list[Place], int, dict[str, Document]]]:
        """What stands in the place of results, the room left, and the nodes that were read, with text or without."""
        results = {document.id: document for document in documents}
        read: dict[str, Document] = dict(resolved.read)
        # What is above joined results can't take their place, and would hold their text once more.
        whole: dict[str, Document | None] = {node.id: None for hit in joined for node in hit.ancestors}

        def available(name: str, gone: Sequence[str]) -> bool:
            if name not in whole:
                return True  # as far as is known; it is read, and then planned anew
            node = whole[name]
            return node is not None and all(_tree(results[each]) == _tree(node) for each in gone)

        while True:
            places, left = climb(resolved.hits, room, self.levels, self.document_overhead, available)
            unknown = [place.hit.id for place in places if place.stands_for and place.hit.id not in whole]
            parents = (
                [place.hit.ancestors[0].id for place in places if place.hit.ancestors]
                if self.siblings and left > 0
                else []
            )
            missing = [name for name in dict.fromkeys([*unknown, *parents]) if name not in read]
            read |= (yield missing) if missing else {}
            if not unknown:
                return places, left, {**read, **{name: node for name, node in whole.items() if node is not None}}
            with_text, _ = yield from read_hits([read[name] for name in unknown if name in read])
            whole |= dict.fromkeys(unknown)
            whole |= {node.id: node for node in with_text}

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
            levels=self.levels,
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


def _tree(node: Document) -> Any:
    return node.meta.get(TREE_ID)


def _standing(place: Place, node: Document) -> Document:
    """The result itself, or the node in its place."""
    if not place.stands_for:
        return node
    meta = {**node.meta, "expanded_from": list(place.stands_for)}
    return replace(node, meta=meta, score=place.hit.score, embedding=None, sparse_embedding=None)


def _in_order(
    standing: Sequence[Document], chosen: Mapping[tuple[int, int], str], beside: Mapping[str, Document]
) -> Iterator[Document]:
    steps: dict[int, list[int]] = {}
    for number, step in sorted(chosen):
        steps.setdefault(number, []).append(step)
    for number, document in enumerate(standing):
        for step in sorted([0, *steps.get(number, ())]):
            if step == 0:
                yield document
                continue
            node = beside[chosen[number, step]]
            meta = {**node.meta, "neighbour_of": document.id}
            yield replace(node, meta=meta, score=document.score, embedding=None, sparse_embedding=None)
