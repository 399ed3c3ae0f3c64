# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from itertools import pairwise

import pytest
from haystack import Document

from hichunk_haystack.components.preprocessors import TokenHierarchicalSplitter
from hichunk_haystack.tokens import HuggingFaceTokenCounter, count_texts
from hichunk_haystack.tree import from_documents
from tests.test_tree import check_contract

# 10 tokens a sentence, with its full stop.
SENTENCE = "One two three four five six seven eight nine. "


def split(text: str, sizes: list[int], **options: object) -> list[Document]:
    return TokenHierarchicalSplitter(sizes, **options).run([Document(content=text)])["documents"]  # type: ignore[arg-type]


def lengths(nodes: list[Document]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for node in nodes:
        found.setdefault(node.meta["__level"], []).append(node.meta["token_count"])
    return found


def test_sizes_are_levels_and_chunks_are_balanced() -> None:
    # 640 tokens: four of 160, each four of 40; never 6 leaves of 50 and a rest.
    assert lengths(split(SENTENCE * 64, [160, 40])) == {0: [640], 1: [160] * 4, 2: [40] * 16}
    # 110 tokens at 50 a leaf: 40 + 40 + 30, not 50 + 50 + 10.
    assert sorted(lengths(split(SENTENCE * 11, [50]))[1]) == [30, 40, 40]


def test_cuts_are_ends_of_sentences() -> None:
    assert all(node.content.endswith(". ") for node in split(SENTENCE * 200, [500, 120, 35]))


def test_a_level_with_a_single_node_is_left_out() -> None:
    assert lengths(split(SENTENCE * 8, [2048, 512, 40])) == {0: [80], 1: [40, 40]}
    assert lengths(split(SENTENCE, [2048, 512, 128])) == {0: [10]}


def test_any_counter(any_counter: HuggingFaceTokenCounter) -> None:
    text = SENTENCE * 60 + "\n\n" + "Glaze is sieved twice; 3.5 kg of it.\n\n" * 20
    nodes = split(text, [300, 60], token_counter=any_counter)
    check_contract(text, from_documents(nodes), any_counter, 60)


def test_overlap_repeats_whole_sentences_inside_a_parent(any_counter: HuggingFaceTokenCounter) -> None:
    text = "".join(f"Number {n} is fired slowly over eight hours. " for n in range(100))
    nodes = split(text, [400, 80], overlap=30, token_counter=any_counter)
    leaves = [node for node in nodes if not node.meta["__children_ids"]]
    repeated = 0
    end = 0
    for leaf in leaves:
        start = leaf.meta["split_idx_start"]
        assert leaf.content == text[start : leaf.meta["split_idx_end"]]
        assert leaf.meta["token_count"] == count_texts(any_counter, [leaf.content])[0] <= 80
        assert leaf.meta["__block_size"] == 80
        # With the other tokenizers a sentence is more than 30 tokens: there words are repeated.
        assert any_counter.additive <= leaf.content.startswith("Number")
        assert start <= end
        assert count_texts(any_counter, [text[start:end]])[0] <= 30
        repeated += start < end
        end = leaf.meta["split_idx_end"]
    assert end == len(text)
    parents = {leaf.meta["__parent_id"] for leaf in leaves}
    assert repeated == len(leaves) - len(parents)
    inner = [node for node in nodes if node.id in parents]
    assert all(a.meta["split_idx_end"] == b.meta["split_idx_start"] for a, b in pairwise(inner))


def test_an_overlap_of_words_where_no_sentence_fits() -> None:
    leaves = split("clay " * 60, [20], overlap=5)[1:]
    assert [leaf.meta["token_count"] for leaf in leaves] == [15, 20, 20, 20]


@pytest.mark.parametrize(
    ("sizes", "overlap", "message"),
    [
        ([], 0, r"chunk_sizes is \[\]"),
        ([0, 10], 0, r"chunk_sizes is \[0, 10\]"),
        ([10], 6, "overlap is 6"),
        ([10], -1, "overlap is -1"),
    ],
)
def test_numbers_that_make_no_sense(sizes: list[int], overlap: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TokenHierarchicalSplitter(sizes, overlap=overlap)


def test_round_trip() -> None:
    data = TokenHierarchicalSplitter([64, 16], overlap=4).to_dict()
    assert data == {
        "type": "hichunk_haystack.components.preprocessors.TokenHierarchicalSplitter",
        "init_parameters": {"chunk_sizes": [64, 16], "overlap": 4, "language": "en", "token_counter": None},
    }
    assert TokenHierarchicalSplitter.from_dict(data).to_dict() == data
