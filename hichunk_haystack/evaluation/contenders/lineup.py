# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Who takes part in the benchmark."""

import importlib.util
from collections.abc import Iterator
from typing import Any, Protocol

from hichunk_haystack.components.preprocessors import (
    AutoHierarchicalSplitter,
    MarkdownHierarchicalSplitter,
    PlainTextHierarchicalSplitter,
    SemanticHierarchicalSplitter,
    TokenHierarchicalSplitter,
)
from hichunk_haystack.evaluation.contenders.corpus import Corpus, Piece
from hichunk_haystack.evaluation.contenders.flat import FlatChunks, Oracle, fixed, paragraphs, sentences
from hichunk_haystack.evaluation.contenders.reranked import CrossEncoder, Reranked
from hichunk_haystack.evaluation.contenders.rivals import HaystackHierarchy, LlamaIndexHierarchy
from hichunk_haystack.evaluation.contenders.trees import Forest, KnownSections, ParentDocuments, Trees
from hichunk_haystack.policies import MergeOptions

OURS = "ours: "

# Leaves of about 35 words, below passages that all-MiniLM-L6-v2 reads whole, below longer ones.
_BOUNDS: dict[str, Any] = {"leaf_tokens": 64, "min_leaf_tokens": 10, "inner_tokens": [128, 256, 1024]}

POLICIES = {
    "hichunk": MergeOptions(order="document"),
    "hichunk 0.2-0.4": MergeOptions(theta_start=0.2, theta_end=0.4, order="document"),
    "ratio": MergeOptions(policy="ratio", order="document"),
    "parent": MergeOptions(policy="parent", order="document"),
    "none": MergeOptions(policy="none", order="document"),
}
VECTORS: dict[str, dict[str, Any]] = {
    "leaves in context": {},
    "passages embedded": {"passages": "embed"},
    "leaves alone": {"context": False},
}
_STANDARD = "hichunk 0.2-0.4"


class Contender(Protocol):
    """Finds pieces for each question of a corpus."""

    name: str

    def retrieve(self, budget: int) -> Iterator[list[Piece]]:
        """
        Retrieve for each question.

        :param budget: Tokens.
        :returns: Pieces in rank order that take the budget at most.
        """


def lineup(corpus: Corpus, *, every: bool = False, cross_encoder: CrossEncoder | None = None) -> Iterator[Contender]:
    """
    Make the contenders, one after another, so that what one needs is freed before the next.

    :param corpus: Documents and questions.
    :param every: Every splitter of ours with every policy; otherwise one of each.
    :param cross_encoder: Reads the best chunks of a flat contender again, which takes long; by default none does.
    :returns: The contenders: the ceiling, the rivals, ours.
    """
    yield Oracle(corpus)
    yield FlatChunks("fixed chunks of 200 tokens (FC200)", corpus, fixed(200))
    overlapping = FlatChunks("fixed chunks of 512 tokens, 15 % overlap", corpus, fixed(512, 77))
    yield overlapping
    if cross_encoder is not None:
        yield Reranked(f"{overlapping.name}, reranked", overlapping, cross_encoder)
    yield FlatChunks("sentences", corpus, sentences)
    yield FlatChunks("paragraphs", corpus, paragraphs)
    parents = Forest(corpus, TokenHierarchicalSplitter(chunk_sizes=[512, 128]), context=False)
    yield ParentDocuments("parent-document, 512 over 128 tokens", parents)
    if importlib.util.find_spec("llama_index"):
        yield LlamaIndexHierarchy(corpus, merging=False)
        yield LlamaIndexHierarchy(corpus, merging=True)
    yield HaystackHierarchy(corpus, merging=False)
    yield HaystackHierarchy(corpus, merging=True)
    for name, splitter in splitters(corpus).items():
        for kind, options in VECTORS.items():
            forest = Forest(corpus, splitter, **options)
            for policy, merging in POLICIES.items():
                # The usual lineup turns one thing at a time: the vectors and the policy of Auto, the splitter of all.
                auto = name == "Auto" and (policy == _STANDARD or not options)
                if every or auto or (policy == _STANDARD and not options):
                    yield Trees(f"{OURS}{name}, {kind}, {policy}", forest, merging)


def splitters(corpus: Corpus) -> dict[str, Any]:
    """
    Make our splitters.

    :param corpus: Documents.
    :returns: Splitters by short name.
    """
    counter = corpus.counter
    found: dict[str, Any] = {
        "Auto": AutoHierarchicalSplitter(**_BOUNDS, token_counter=counter),
        "Markdown": MarkdownHierarchicalSplitter(**_BOUNDS, token_counter=counter),
        "PlainText": PlainTextHierarchicalSplitter(**_BOUNDS, token_counter=counter),
        "Semantic": SemanticHierarchicalSplitter(corpus.embedder, **_BOUNDS, token_counter=counter),
        "Token": TokenHierarchicalSplitter(chunk_sizes=[4096, 1024, 256, 128, 64], token_counter=counter),
    }
    if corpus.cut_points:
        found["known sections"] = KnownSections(corpus, **_BOUNDS)
    return found
