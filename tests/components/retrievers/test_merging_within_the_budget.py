# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""The `BudgetAutoMergingRetriever` and its budget: what is skipped, cut and joined, and that it holds."""

from math import ceil
from typing import Any

import pytest
from haystack import Document
from haystack.components.preprocessors import HierarchicalDocumentSplitter
from hypothesis import given, settings
from hypothesis import strategies as st

from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.tokens import HuggingFaceTokenCounter
from tests.components.retrievers.sentence_trees import ids, leaves_of, ranked, run, sentence, tokens, tree


def test_hits_that_do_not_fit_are_left_out_and_the_next_are_tried() -> None:
    long = Document(id="long", content="word " * 200)
    short = [Document(id=f"short{number}", content="word " * 10) for number in range(3)]
    assert ids(run([], [short[0], long, short[1], short[2]], budget=20)) == ["short0", "short1"]
    assert ids(run([], [short[0], long, short[1]], budget=20, overflow="stop")) == ["short0"]


def test_a_hit_is_cut_at_the_end_of_a_sentence_and_marked() -> None:
    nodes = tree(sections=1)
    # One section, which is the source, as a hit: of its 48 tokens the heading and 7 sentences of 5 are 38.
    section = nodes[0]
    assert section.meta["token_count"] == 48
    result = run(nodes, [section], budget=40)
    (document,) = result["documents"]
    assert section.content is not None
    assert document.content is not None
    assert section.content.startswith(document.content)
    assert document.content.endswith("The grove is old.")
    assert document.meta["truncated"] is True
    assert document.meta["token_count"] == tokens(document.content) == 38 == result["trace"]["tokens_used"]
    assert document.meta["split_idx_end"] - document.meta["split_idx_start"] == len(document.content)
    assert document.id == section.id
    # The hit itself is as it was.
    assert "truncated" not in section.meta
    assert section.meta["token_count"] == 48


def test_what_is_left_of_the_budget_goes_to_a_part_of_the_next_hit() -> None:
    hits = [Document(id="a", content=sentence(0) * 4), Document(id="b", content=sentence(1) * 4)]
    # 20 tokens for "a", 13 left for "b": two sentences of 5.
    result = run([], hits, budget=33, overflow="truncate")
    assert [document.content for document in result["documents"]] == [hits[0].content, (sentence(1) * 2).strip()]
    assert [document.meta.get("truncated") for document in result["documents"]] == [None, True]
    assert result["trace"]["tokens_used"] == 30
    assert ids(run([], hits, budget=33)) == ["a"]


@pytest.mark.parametrize("text", [sentence(0) * 2000, "x" * 300, "字" * 300, "word " * 5000, "👨‍👩‍👧" * 40, "ab"])
@pytest.mark.parametrize("overflow", ["skip", "stop", "truncate"])
def test_the_answer_is_within_the_budget_and_never_empty(text: str, overflow: Any) -> None:
    for budget in (1, 2, 500):
        (document,) = run([], [Document(content=text)], budget=budget, overflow=overflow)["documents"]
        assert document.content
        assert text.startswith(document.content)
        assert tokens(document.content) <= budget


def test_a_budget_of_one_token_with_a_tokenizer_of_bytes(tokenizer_files: dict[str, str]) -> None:
    # The emoji takes four tokens of a byte-level tokenizer: nothing of it fits, but something of the next hit does.
    counter = HuggingFaceTokenCounter(tokenizer_files["bpe"])
    hits = [Document(id="emoji", content="😀"), Document(id="letters", content="zq zq")]
    result = run([], hits, budget=1, token_counter=counter)
    assert ids(result) == ["letters"]
    assert counter.count_texts([result["documents"][0].content or ""]) == [1]


def test_overlapping_leaves_are_joined_without_saying_anything_twice() -> None:
    text = "".join(f"w{number:03d} " for number in range(120))
    splitter = HierarchicalDocumentSplitter(block_sizes={40, 10}, split_overlap=3, split_by="word")
    nodes = splitter.run([Document(id="source", content=text)])["documents"]
    hits = leaves_of(nodes)
    result = run(nodes, hits, policy="none", order="document", budget=100_000)
    assert [document.content for document in result["documents"]] == [text]
    # In rank order two nodes share no more than the overlap of the tree, three words.
    result = run(nodes, hits[::2] + hits[1::2], policy="ratio", threshold=0.9, max_merge_level=1, budget=100_000)
    words = [(document.content or "").split() for document in result["documents"]]
    shared = [len(set(a) & set(b)) for number, a in enumerate(words) for b in words[:number]]
    assert len(words) > 1
    assert max(shared) <= 3


def test_joining_saves_overhead_and_the_trace_counts_what_comes_out() -> None:
    nodes = tree()
    result = run(nodes, nodes[2:5], policy="none", order="document", document_overhead=10)
    assert result["trace"]["tokens_used"] == 48 + 10
    assert [document["tokens"] for document in result["trace"]["documents"]] == [48]


def test_an_overhead_that_takes_all_of_the_budget_leaves_the_answer_what_fits() -> None:
    result = run([], [Document(content=sentence(0) * 20)], budget=12, document_overhead=20)
    # Two sentences of five tokens; the citation line is the business of what comes behind.
    assert result["documents"][0].content == (sentence(0) * 2).strip()
    assert result["trace"]["tokens_used"] == 10


# -- words that the tokenizer counts as one token, however long they are


@given(
    lengths=st.lists(st.sampled_from([3, 40, 150, 700, 5000]), min_size=1, max_size=30),
    data=st.data(),
    budget=st.integers(1, 400),
    overflow=st.sampled_from(["skip", "stop", "truncate"]),
    order=st.sampled_from(["rank", "document"]),
)
@settings(max_examples=40, deadline=None)
def test_long_words_never_take_more_than_the_budget(
    lengths: list[int], data: st.DataObject, budget: int, overflow: Any, order: Any
) -> None:
    text = "".join(f"# {number}\n\n{'ab'[number % 2] * length}\n\n" for number, length in enumerate(lengths))
    splitter = MarkdownHierarchicalSplitter(leaf_tokens=50, min_leaf_tokens=1, inner_tokens=[100])
    nodes = splitter.run([Document(id="long", content=text)])["documents"]
    hits = data.draw(st.permutations(leaves_of(nodes)).map(lambda found: found[:12]))
    result = run(nodes, ranked(*hits), budget, overflow=overflow, order=order)
    documents, used = result["documents"], result["trace"]["tokens_used"]
    # As ContextBuilder weighs: tokens, or one for each 16 characters that are no white space.
    weights = [max(tokens(each.content), ceil(len("".join((each.content or "").split())) / 16)) for each in documents]
    assert documents
    assert sum(weights) <= used <= budget
    for each in documents:
        assert each.meta["token_count"] == tokens(each.content)


def test_a_node_of_long_words_does_not_pass_for_a_short_one() -> None:
    # Each leaf is one token to WordPiece, and 50 by its characters; the root is four tokens, and 200.
    text = "\n\n".join(letter * 800 for letter in "abcd")
    nodes = MarkdownHierarchicalSplitter(leaf_tokens=60, min_leaf_tokens=1).run([Document(content=text)])["documents"]
    leaves = leaves_of(nodes)
    assert [leaf.meta["token_count"] for leaf in leaves] == [1, 1, 1, 1]
    found = run(nodes, ranked(*leaves), 120)
    assert (ids(found), found["trace"]["tokens_used"]) == ([leaves[0].id, leaves[1].id], 100)
    assert ids(run(nodes, ranked(*leaves), 250)) == [nodes[0].id]
