# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Literal

from haystack import Document, component, default_from_dict, default_to_dict, logging
from haystack.document_stores.errors import MissingDocumentError
from haystack.document_stores.types import DocumentStore
from haystack.token_counters.types import TokenCounter

from hichunk_haystack.chains import Lengths, resolve_hits
from hichunk_haystack.components.preprocessors.splitting import describe
from hichunk_haystack.cutting import cut_to_fit
from hichunk_haystack.joining import TRUNCATED, Part, join_touching
from hichunk_haystack.leaf_texts import is_as_split, lacks_text, leaves_below, read_hits, with_text
from hichunk_haystack.merging import merge
from hichunk_haystack.nodes import TREE_ID
from hichunk_haystack.plans import MergePlan
from hichunk_haystack.policies import MergeOptions
from hichunk_haystack.reading import Reads, with_reads, with_reads_async
from hichunk_haystack.tokens import HuggingFaceTokenCounter, count_texts, warm_up_counter
from hichunk_haystack.tracing import trace_merge
from hichunk_haystack.weights import weigh

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
    hits are read together, once per level. Where a `HierarchyWriter` has stored the text of leaves only, the same call
    reads the leaves below the nodes that hits merge into; only a hit that is itself an inner node costs another read.

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
        threshold: float = 0.5,
        parent_levels: int = 1,
        min_node_tokens: int = 0,
        max_merge_level: int = 0,
        overflow: Literal["skip", "stop", "truncate"] = "skip",
        order: Literal["rank", "document"] = "rank",
        top_parents: int | None = None,
        max_share_per_source: float | None = None,
        missing_parent: Literal["keep", "raise"] = "keep",
        document_overhead: int = 0,
        token_counter: TokenCounter | None = None,
    ) -> None:
        """
        Create the component.

        :param document_store: Where the inner nodes are.
        :param token_budget: The most tokens that the documents returned may have together.
        :param policy: How to decide on a merge: "hichunk", the rule of the paper; "ratio", when a share of a node's
            children was found (LlamaIndex, Haystack); "parent", always (LangChain's ParentDocumentRetriever); "none",
            never.
        :param budget_check: What must fit into the budget left: "net", the tokens that a merge adds, or "paper", the
            whole of the bigger node.
        :param min_children: "hichunk": how many children of a node must have been found.
        :param theta_start: "hichunk": share of the node's tokens that the found children must have while the context
            is empty.
        :param theta_end: "hichunk": the same when the context is full.
        :param threshold: "ratio": share of a node's children that must have been found, above 0 and up to 1.
        :param parent_levels: "parent": how many levels above a hit to go, as far as the budget can take it.
        :param min_node_tokens: A node of fewer tokens is merged into its parent whatever the policy says, as far as the
            budget can take it: sentences may be searched, and paragraphs read.
        :param max_merge_level: Nothing is merged into nodes above this level; 0 is the root, which by default comes
            back when it fits.
        :param overflow: What happens to a hit that does not fit any more: "skip" leaves it out and tries the next ones,
            "stop" ends there, "truncate" cuts it to what is left, at the end of a sentence (else of a word, else of a
            character), and ends there. With each of them the best hit is cut to the budget when nothing else fits.
        :param order: "rank", or "document": sources by their best hit, inside a source by position, and neighbours that
            touch are joined into one document.
        :param top_parents: The best hit of each of so many best-ranked parents is taken before all other hits, so that
            one section full of hits does not starve the others. By default hits are taken by rank alone.
        :param max_share_per_source: The most that one source may take: a number up to 1 is a share of the budget, one
            above 1 a number of tokens. By default one source may take all.
        :param missing_parent: When a node to merge into is not in the store: "keep" goes on with the hits below it and
            warns once for each node; "raise" raises.
        :param document_overhead: Tokens that each returned document costs besides its own, such as the citation line
            and the separator of the `ContextBuilder` behind; they count against the budget.
        :param token_counter: Counts documents that carry no `token_count` (not from our splitters), and what is cut
            or joined: the counter with which the trees were made. By default the tokenizer of all-MiniLM-L6-v2.
        :raises ValueError: If an option makes no sense; the message names it.
        """
        _check_budget(token_budget)
        if missing_parent not in ("keep", "raise"):
            msg = f"missing_parent is '{missing_parent}'; it must be 'keep' or 'raise'."
            raise ValueError(msg)
        self.options = MergeOptions(
            policy=policy,
            budget_check=budget_check,
            min_children=min_children,
            theta_start=theta_start,
            theta_end=theta_end,
            threshold=threshold,
            parent_levels=parent_levels,
            min_node_tokens=min_node_tokens,
            max_merge_level=max_merge_level,
            overflow=overflow,
            order=order,
            top_parents=top_parents,
            max_share_per_source=max_share_per_source,
            document_overhead=document_overhead,
        )
        self.document_store = document_store
        self.token_budget = token_budget
        self.missing_parent = missing_parent
        self.token_counter = token_counter
        self._counter: TokenCounter = token_counter or HuggingFaceTokenCounter()
        self._lengths = Lengths(self._counter)
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
        hits, without_text = yield from read_hits(documents)
        self._report_without_text([hit for hit in documents if hit.id in set(without_text)])
        documents = hits
        resolved = yield from resolve_hits(documents, self._lengths)
        self._report(resolved.missing)
        there = {**resolved.read, **{document.id: document for document in reversed(documents)}}
        cuts = _Cuts(there, self._counter)
        plan = merge(resolved.hits, budget, self.options, cut=cuts)
        wanted = {node.id: there[node.hits[0]] for node in plan.nodes if node.id not in there}
        if wanted:
            there |= yield from _read(wanted, there)
        missing = [node_id for node_id in wanted if node_id not in there]
        self._report(missing)
        if missing:
            # One read per query: what was not read now can't be merged into, so only what is there is planned with.
            plan = merge(resolved.hits, budget, self.options, available=there.__contains__, cut=cuts)
        parts = self._parts(plan, there, cuts)
        saved = sum(node.tokens for node in plan.nodes) - sum(part.tokens for part in parts)
        used = plan.used - saved - self.options.document_overhead * (len(plan.nodes) - len(parts))
        options = {**vars(self.options), "missing_parent": self.missing_parent}
        return {
            "documents": [part.document for part in parts],
            "trace": trace_merge(plan, parts, used, there, options, [*without_text, *resolved.missing, *missing]),
        }

    def _parts(self, plan: MergePlan, there: dict[str, Document], cuts: "_Cuts") -> list[Part]:
        """The plan's nodes as documents, joined where that is asked for."""
        parts = []
        for node in plan.nodes:
            document = there[node.id]
            if node.merged:
                document = replace(document, score=node.score, embedding=None, sparse_embedding=None)
            elif document.score != node.score:
                document = replace(document, score=node.score)
            if node.truncated:
                document = cuts.cut(document)
            parts.append(Part(document, node.tokens, node.start, node.source_id, [node.id]))
        if self.options.order == "rank":
            return parts
        return join_touching(parts, self._count, self.options.document_overhead)

    def _count(self, texts: Sequence[str]) -> list[int]:
        return count_texts(self._counter, texts)

    def _report(self, missing: list[str]) -> None:
        """Raise on nodes that are not in the store, or warn of each once."""
        if missing and self.missing_parent == "raise":
            msg = (
                f"Not in the document store: parent node{'s' if len(missing) > 1 else ''} {', '.join(missing)}. Index "
                "their sources again, or set missing_parent to 'keep' to go on with the hits below them."
            )
            raise MissingDocumentError(msg)
        for node_id in missing:
            if node_id not in self._reported:
                self._reported.add(node_id)
                logger.warning(
                    "Parent node '{node_id}' (or part of it) is not in the document store: the hits below it are "
                    "returned as they are. "
                    "Index its source again to repair the tree.",
                    node_id=node_id,
                )

    def _report_without_text(self, hits: list[Document]) -> None:
        """Raise on hits whose text can't be built from their leaves, or warn of each once."""
        why = (
            "was stored without its text, which its leaves have (inner_text='derived'), and not all of these are in "
            "the document store"
        )
        way_out = "Give the store that the hits come from, or index the source again."
        for hit in hits:
            if self.missing_parent == "raise":
                msg = f"The hit '{hit.id}' of {describe(hit)} {why}. {way_out}"
                raise MissingDocumentError(msg)
            if hit.id not in self._reported:
                self._reported.add(hit.id)
                logger.warning(
                    "The hit '{node_id}' of {source} {why}: it is left out. {way_out}",
                    node_id=hit.id,
                    source=describe(hit),
                    why=why,
                    way_out=way_out,
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
            missing_parent=self.missing_parent,
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


def _read(wanted: dict[str, Document], there: dict[str, Document]) -> Reads[dict[str, Document]]:
    """
    Read inner nodes, each given with a hit below it, in one call, and with them the leaves that hold the text of those
    that were stored without.

    What cannot be told without a look is which nodes are there, and whether they are of the same version: a source that
    is being replaced may have given its root's id to a newer tree already.
    """
    leaves = {node_id: leaves_below(hit, node_id) for node_id, hit in wanted.items()}
    texts = {leaf for ids in leaves.values() for leaf in ids}
    held = {leaf: there[leaf] for leaf in texts if leaf in there and is_as_split(there[leaf])}
    read = yield [*wanted, *sorted(texts - held.keys())]
    found = {}
    for node_id, hit in wanted.items():
        node = read.get(node_id)
        if node is not None and node.meta.get(TREE_ID) == hit.meta.get(TREE_ID):
            whole = with_text(node, leaves[node_id], {**read, **held}) if lacks_text(node) else node
            if whole is not None:
                found[node_id] = whole
    return found


class _Cuts:
    """Cuts hits to what is left of the budget; each cut is made once, though a plan may be made twice."""

    def __init__(self, documents: dict[str, Document], counter: TokenCounter) -> None:
        self.documents = documents
        self.counter = counter
        self.made: dict[tuple[str, int], tuple[int, int]] = {}
        self.ends: dict[str, tuple[int, int]] = {}

    def __call__(self, hit: str, allowed: int) -> int:
        """What a hit can be cut to of the budget, 0 if it can't be; and remember where."""
        text = self.documents[hit].content or ""
        if (hit, allowed) not in self.made:
            # What is too long by its characters alone need not be tokenised.
            end = cut_to_fit(text, lambda part: weigh(part) <= allowed and self.count(part) <= allowed)
            self.made[hit, allowed] = (end, self.count(text[:end]) if end else 0)
        self.ends[hit] = end, tokens = self.made[hit, allowed]
        return weigh(text[:end], tokens)

    def count(self, text: str) -> int:
        return count_texts(self.counter, [text])[0]

    def cut(self, document: Document) -> Document:
        """The document, cut and marked."""
        text, (end, tokens) = document.content or "", self.ends[document.id]
        if end == len(text):
            return document
        meta = {**document.meta, "token_count": tokens, TRUNCATED: True}
        if "split_idx_end" in meta and isinstance(meta.get("split_idx_start"), int):
            meta["split_idx_end"] = meta["split_idx_start"] + end
        return replace(document, content=text[:end], meta=meta)
