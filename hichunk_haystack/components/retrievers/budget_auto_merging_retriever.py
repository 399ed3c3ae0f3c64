# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from dataclasses import asdict, replace
from typing import Any, Literal

from haystack import Document, component, default_from_dict, default_to_dict, logging
from haystack.document_stores.types import DocumentStore
from haystack.token_counters.types import TokenCounter

from hichunk_haystack.chains import resolve_hits
from hichunk_haystack.merging import Hit, MergeOptions, MergePlan, merge
from hichunk_haystack.reading import Reads, with_reads, with_reads_async
from hichunk_haystack.tokens import HuggingFaceTokenCounter, warm_up_counter
from hichunk_haystack.tree import TREE_ID

logger = logging.getLogger(__name__)


@component
class BudgetAutoMergingRetriever:
    """
    Merges retrieved leaves upwards into bigger nodes, and never returns more tokens than the budget.

    It stands behind any retriever (or joiner, or ranker) and reads its ranking from the best hit on. Each hit is held
    as long as it fits; when enough of a node's children are held, and the budget can take it, the node takes their
    place (HiChunk's Auto-Merge, arXiv 2509.11552). The less room is left, the more of a node must have been found.

    The retriever in front has to hand over enough hits to fill the budget: about twice the budget divided by the mean
    length of a leaf.

    Reads the store once per query at most, and not at all when nothing merges, since each leaf carries what must be
    known of the nodes above it. Trees of Haystack's `HierarchicalDocumentSplitter` carry less: there the parents of all
    hits are read together, once per level.

    ```python
    from haystack import Document
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
    from hichunk_haystack.components.retrievers import BudgetAutoMergingRetriever

    text = "# Kiln\\n\\nFire it slowly. Then let it cool.\\n\\n# Wheel\\n\\nCentre the clay first.\\n"
    nodes = MarkdownHierarchicalSplitter(leaf_tokens=10, min_leaf_tokens=1).run([Document(content=text)])["documents"]
    store = InMemoryDocumentStore()
    store.write_documents(nodes)

    retriever = BudgetAutoMergingRetriever(document_store=store, token_budget=40)
    leaves = [node for node in nodes if not node.meta["__children_ids"]]
    print(retriever.run(documents=leaves)["documents"][0].content == text)  # True: all leaves merge into the source
    ```
    """

    __module__ = "hichunk_haystack.components.retrievers"

    def __init__(
        self,
        document_store: DocumentStore,
        *,
        token_budget: int = 4096,
        policy: str = "hichunk",
        budget_check: Literal["net", "paper"] = "net",
        min_children: int = 2,
        theta_start: float = 1 / 3,
        theta_end: float = 2 / 3,
        document_overhead: int = 0,
        token_counter: TokenCounter | None = None,
    ) -> None:
        """
        Create the component.

        :param document_store: Where the inner nodes are.
        :param token_budget: The most tokens that the documents returned may have together.
        :param policy: How to decide on a merge; "hichunk" is the rule of the paper.
        :param budget_check: What must fit into the budget left: "net", the tokens that a merge adds, or "paper", the
            whole of the bigger node.
        :param min_children: How many children of a node must have been found.
        :param theta_start: Share of the node's tokens that the found children must have while the context is empty.
        :param theta_end: The same when the context is full.
        :param document_overhead: Tokens that each returned document costs besides its own, such as the citation line
            and the separator of the `ContextBuilder` behind; they count against the budget.
        :param token_counter: Counts documents that carry no `token_count` (not from our splitters). By default the
            tokenizer of all-MiniLM-L6-v2.
        :raises ValueError: If a number makes no sense; the message names it.
        """
        _check_budget(token_budget)
        self.options = MergeOptions(policy, budget_check, min_children, theta_start, theta_end, document_overhead)
        self.document_store = document_store
        self.token_budget = token_budget
        self.token_counter = token_counter
        self._counter: TokenCounter = token_counter or HuggingFaceTokenCounter()
        self._reported: set[str] = set()

    def warm_up(self) -> None:
        """Load a token counter that was given; the default one is loaded when a document needs it."""
        if self.token_counter is not None:
            warm_up_counter(self.token_counter)

    @component.output_types(documents=list[Document], trace=dict[str, Any])
    def run(self, documents: list[Document], token_budget: int | None = None) -> dict[str, Any]:
        """
        Merge retrieved documents.

        :param documents: Retrieved documents in rank order, best first: leaves, inner nodes, documents without a tree,
            in any mixture. They are not changed.
        :param token_budget: Token budget for this query instead of the component's.
        :returns: A dictionary with:
            - `documents`: nodes in rank order, none above another, within the budget; a merged node has the best score
              of the hits that it stands for.
            - `trace`: plain dicts that tell what merged into what, and why.
        :raises ValueError: If the budget is below 1.
        """
        return with_reads(self._merge(documents, token_budget), self.document_store)

    @component.output_types(documents=list[Document], trace=dict[str, Any])
    async def run_async(self, documents: list[Document], token_budget: int | None = None) -> dict[str, Any]:
        """
        Merge retrieved documents without blocking the event loop.

        :param documents: Retrieved documents in rank order, best first. They are not changed.
        :param token_budget: Token budget for this query instead of the component's.
        :returns: What `run` returns.
        :raises ValueError: If the budget is below 1.
        """
        return await with_reads_async(self._merge(documents, token_budget), self.document_store)

    def _merge(self, documents: list[Document], token_budget: int | None) -> Reads[dict[str, Any]]:
        """Plan, read what the plan needs in one call, and put the answer together."""
        budget = _check_budget(self.token_budget if token_budget is None else token_budget)
        resolved = yield from resolve_hits(documents, self._counter)
        plan = merge(resolved.hits, budget, self.options)
        there = {**resolved.read, **{document.id: document for document in documents}}
        wanted = [node.id for node in plan.nodes if node.id not in there]
        if wanted:
            trees = {document.id: document.meta.get(TREE_ID) for document in documents}
            expected = {node.id: trees[node.hits[0]] for node in plan.nodes}
            for node_id, node in (yield wanted).items():
                # A source that is being replaced may have given its root's id to a newer tree already.
                if node.meta.get(TREE_ID) == expected[node_id]:
                    there[node_id] = replace(node, embedding=None)
        missing = [node_id for node_id in wanted if node_id not in there]
        if missing:
            # One read per query: what was not read now can't be merged into, so only what is there is planned with.
            plan = merge(resolved.hits, budget, self.options, available=there.__contains__)
        missing += resolved.missing
        self._warn_of_missing(missing)
        return {
            "documents": [replace(there[node.id], score=node.score) for node in plan.nodes],
            "trace": self._trace(resolved.hits, plan, missing),
        }

    def _trace(self, hits: list[Hit], plan: MergePlan, missing: list[str]) -> dict[str, Any]:
        """What happened, in plain dicts."""
        return {
            "token_budget": plan.budget,
            "tokens_used": plan.used,
            "options": asdict(self.options),
            "hits": [_hit_trace(hit, rank) for rank, hit in enumerate(hits, 1)],
            "steps": plan.steps,
            "nodes": [
                {
                    "id": node.id,
                    "source_id": node.source_id,
                    "tokens": node.tokens,
                    "score": node.score,
                    "merged": node.merged,
                    "hits": node.hits,
                }
                for node in plan.nodes
            ],
            "missing": missing,
        }

    def _warn_of_missing(self, ids: list[str]) -> None:
        for node_id in ids:
            if node_id not in self._reported:
                self._reported.add(node_id)
                logger.warning(
                    "Parent node '{node_id}' is not in the document store: the hits below it are returned as they are. "
                    "Index its source again to repair the tree.",
                    node_id=node_id,
                )

    def to_dict(self) -> dict[str, Any]:
        """
        Serialise the component.

        :returns: Dictionary with the type and the init parameters.
        """
        return default_to_dict(
            self,
            document_store=self.document_store,
            token_budget=self.token_budget,
            **asdict(self.options),
            token_counter=self.token_counter,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "BudgetAutoMergingRetriever":
        """
        Revive the component.

        :param data: What `to_dict` gave.
        :returns: The component.
        """
        return default_from_dict(cls, data)

    def close(self) -> None:
        """Release what the document store holds open."""
        if hasattr(self.document_store, "close"):
            self.document_store.close()

    async def close_async(self) -> None:
        """Release what the document store's asynchronous side holds open."""
        if hasattr(self.document_store, "close_async"):
            await self.document_store.close_async()


def _check_budget(budget: int) -> int:
    if budget < 1:
        msg = f"token_budget is {budget}; it must be at least 1 token."
        raise ValueError(msg)
    return budget


def _hit_trace(hit: Hit, rank: int) -> dict[str, Any]:
    return {
        "rank": rank,
        "id": hit.id,
        "source_id": hit.source_id,
        "tokens": hit.tokens,
        "score": hit.score,
        "ancestors": [above.id for above in hit.ancestors],
    }
