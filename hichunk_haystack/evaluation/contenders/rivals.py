# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""
The hierarchical retrievers that others have published, run as they are: LlamaIndex's and Haystack's.

They bring their own splitters and their own merging; we give them vectors of the same embedder, lengths by the same
tokenizer, and hits enough to fill the budget one and a half times. What they return is put in the order of the best hit
that it holds, since Haystack's retriever gives none, and fills the budget like everybody else's.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from math import ceil
from typing import Any

from haystack import Document
from haystack.document_stores.in_memory import InMemoryDocumentStore

from hichunk_haystack.evaluation.contenders.corpus import Corpus, Piece
from hichunk_haystack.evaluation.contenders.flat import best

_SURPLUS = 1.5


class _Rival:
    """Blocks of several sizes; the smallest are searched."""

    name: str

    def __init__(self, corpus: Corpus, *, merging: bool) -> None:
        self.corpus = corpus
        self.merging = merging

    @cached_property
    def blocks(self) -> dict[str, Piece]:
        """All blocks, by id."""
        raise NotImplementedError

    @cached_property
    def leaves(self) -> list[str]:
        """Ids of the smallest ones."""
        raise NotImplementedError

    def merge(self, hits: Sequence[tuple[str, float]]) -> list[str]:
        """Ids that the rival's retriever returns for hits in rank order."""
        raise NotImplementedError

    @cached_property
    def ranking(self) -> list[list[tuple[str, float]]]:
        """For each question ids and similarities, best first."""
        similarities = self.corpus.questions @ self.corpus.embed([self.blocks[leaf] for leaf in self.leaves]).T
        return [
            [(self.leaves[number], float(row[number])) for number in ranked]
            for row, ranked in zip(similarities, best(similarities), strict=True)
        ]

    def retrieve(self, budget: int) -> Iterator[list[Piece]]:
        """Fill the budget for each question."""
        mean = sum(self.corpus.count(self.blocks[leaf]) for leaf in self.leaves) / max(1, len(self.leaves))
        enough = ceil(_SURPLUS * budget / max(1.0, mean)) + 1
        for hits in self.ranking:
            if not self.merging:
                yield self.corpus.fill((self.blocks[leaf] for leaf, _ in hits), budget)
                continue
            ranks = {leaf: rank for rank, (leaf, _) in enumerate(hits[:enough])}
            pieces = [self.blocks[block] for block in self.merge(hits[:enough])]
            held = [(self.blocks[leaf], rank) for leaf, rank in ranks.items()]
            first = {
                piece: min((rank for leaf, rank in held if _inside(leaf, piece)), default=enough) for piece in pieces
            }
            yield self.corpus.fill(sorted(pieces, key=first.__getitem__), budget)


class LlamaIndexHierarchy(_Rival):
    """`HierarchicalNodeParser` and `AutoMergingRetriever` of llama-index-core."""

    def __init__(self, corpus: Corpus, *, merging: bool, chunk_sizes: Sequence[int] = (2048, 512, 128)) -> None:
        """
        Set up.

        :param corpus: Documents and questions.
        :param merging: Whether to merge, or to return the smallest blocks.
        :param chunk_sizes: Sizes in tokens, as LlamaIndex's own default.
        """
        super().__init__(corpus, merging=merging)
        sizes = "/".join(map(str, chunk_sizes))
        self.name = f"LlamaIndex AutoMerging {sizes}" if merging else f"LlamaIndex leaves of {chunk_sizes[-1]}"
        self.chunk_sizes = list(chunk_sizes)

    @cached_property
    def _nodes(self) -> list[Any]:
        from llama_index.core import Document as LlamaDocument
        from llama_index.core.node_parser import HierarchicalNodeParser, SentenceSplitter

        corpus = self.corpus

        def tokenize(text: str) -> list[int]:
            return corpus.tokenizer.encode(text, add_special_tokens=False).ids

        ids = [str(size) for size in self.chunk_sizes]
        # Sentences by the pattern that it falls back to: its default asks NLTK's server for data.
        splitters: dict[str, Any] = {
            name: SentenceSplitter(
                chunk_size=size,
                chunk_overlap=20,
                tokenizer=tokenize,
                chunking_tokenizer_fn=_llama_sentences,
                include_metadata=False,
            )
            for name, size in zip(ids, self.chunk_sizes, strict=True)
        }
        parser = HierarchicalNodeParser.from_defaults(node_parser_ids=ids, node_parser_map=splitters)
        documents = [LlamaDocument(text=text, id_=name) for name, text in corpus.dataset.documents.items()]
        return parser.get_nodes_from_documents(documents)

    @cached_property
    def blocks(self) -> dict[str, Piece]:
        """All blocks, by id."""
        found: dict[str, Piece] = {}
        for node in self._nodes:  # parents come before their children
            parent = None if node.parent_node is None else found.get(node.parent_node.node_id)
            document = parent.document if parent else node.ref_doc_id
            text = self.corpus.dataset.documents[document]
            offset = (parent.start if parent else 0) + (node.start_char_idx or 0)
            if not text.startswith(node.text, offset):
                offset = text.find(node.text, parent.start if parent else 0)
            found[node.node_id] = Piece(document, offset, offset + len(node.text))
        return found

    @cached_property
    def leaves(self) -> list[str]:
        """Ids of the smallest ones."""
        from llama_index.core.node_parser import get_leaf_nodes

        return [node.node_id for node in get_leaf_nodes(self._nodes) if self.corpus.count(self.blocks[node.node_id])]

    @cached_property
    def _retriever(self) -> tuple[Any, Callable[[Sequence[tuple[str, float]]], None]]:
        from llama_index.core import StorageContext
        from llama_index.core.base.base_retriever import BaseRetriever
        from llama_index.core.retrievers import AutoMergingRetriever
        from llama_index.core.schema import NodeWithScore, QueryBundle
        from llama_index.core.storage.docstore import SimpleDocumentStore

        store = SimpleDocumentStore()
        store.add_documents(self._nodes)
        by_id = {node.node_id: node for node in self._nodes}

        class Given(BaseRetriever):
            hits: Sequence[tuple[str, float]] = ()

            def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:  # noqa: ARG002 - LlamaIndex's signature
                return [NodeWithScore(node=by_id[leaf], score=score) for leaf, score in self.hits]

        given: Any = Given()

        def give(hits: Sequence[tuple[str, float]]) -> None:
            given.hits = hits

        return AutoMergingRetriever(given, StorageContext.from_defaults(docstore=store)), give

    def merge(self, hits: Sequence[tuple[str, float]]) -> list[str]:
        """
        Have LlamaIndex merge.

        :param hits: Ids and scores, best first.
        :returns: Ids of what it returns.
        """
        retriever, give = self._retriever
        give(hits)
        return [found.node.node_id for found in retriever.retrieve("")]


class HaystackHierarchy(_Rival):
    """`HierarchicalDocumentSplitter` and `AutoMergingRetriever` of haystack-ai."""

    def __init__(self, corpus: Corpus, *, merging: bool, block_sizes: Sequence[int] = (1500, 400, 100)) -> None:
        """
        Set up.

        :param corpus: Documents and questions.
        :param merging: Whether to merge, or to return the smallest blocks.
        :param block_sizes: Sizes in words.
        """
        super().__init__(corpus, merging=merging)
        self.block_sizes = set(block_sizes)
        sizes = "/".join(map(str, block_sizes))
        smallest = min(block_sizes)
        self.name = f"Haystack AutoMerging {sizes} words" if merging else f"fixed chunks of {smallest} words"

    @cached_property
    def _nodes(self) -> list[Document]:
        from haystack.components.preprocessors import HierarchicalDocumentSplitter

        splitter = HierarchicalDocumentSplitter(block_sizes=self.block_sizes, split_overlap=0, split_by="word")
        texts = self.corpus.dataset.documents
        documents = [Document(content=text, meta={"name": name}) for name, text in texts.items()]
        return splitter.run(documents)["documents"]

    @cached_property
    def blocks(self) -> dict[str, Piece]:
        """All blocks, by id. Their offsets are relative to the parent."""
        found: dict[str, Piece] = {}
        for node in sorted(self._nodes, key=lambda node: node.meta["__level"]):
            parent = found.get(node.meta.get("__parent_id") or "")
            start = (parent.start if parent else 0) + (node.meta.get("split_idx_start", 0) if parent else 0)
            found[node.id] = Piece(node.meta["name"], start, start + len(node.content or ""))
        return found

    @cached_property
    def leaves(self) -> list[str]:
        """Ids of the smallest ones."""
        return [
            node.id
            for node in self._nodes
            if not node.meta["__children_ids"] and self.corpus.count(self.blocks[node.id])
        ]

    @cached_property
    def _retriever(self) -> Any:
        from haystack.components.retrievers import AutoMergingRetriever

        logging.getLogger("haystack").setLevel(logging.ERROR)
        store = _StoreById()
        store.write_documents(self._nodes)
        return AutoMergingRetriever(store, threshold=0.5)

    def merge(self, hits: Sequence[tuple[str, float]]) -> list[str]:
        """
        Have Haystack merge.

        :param hits: Ids and scores, best first.
        :returns: Ids of what it returns.
        """
        retriever = self._retriever
        storage = retriever.document_store.storage
        # A document that was not split has no parent, for which the retriever raises.
        whole = [leaf for leaf, _ in hits if not storage[leaf].meta.get("__parent_id")]
        given = [storage[leaf] for leaf, _ in hits if storage[leaf].meta.get("__parent_id")]
        return [*whole, *(document.id for document in retriever.run(given)["documents"])]


class _StoreById(InMemoryDocumentStore):
    """Finds a parent by its id in a dictionary; the stock filter looks at every document, for each parent anew."""

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        if filters and filters.get("field") == "id" and filters.get("operator") == "==":
            found = self.storage.get(filters["value"])
            return [] if found is None else [found]
        return super().filter_documents(filters)


def _inside(leaf: Piece, piece: Piece) -> bool:
    return leaf.document == piece.document and piece.start <= leaf.start and leaf.end <= piece.end


def _llama_sentences(text: str) -> list[str]:
    from llama_index.core.node_parser.text.utils import split_by_regex

    return split_by_regex(r"[^.!?]+[.!?]*\s*")(text)
