# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from math import sqrt

import numpy as np
import pytest
from haystack import Document

from hichunk_haystack.context_vectors import (
    ContextWeights,
    Surroundings,
    in_context,
    mean_vectors,
    neighbours_of,
    surroundings,
)
from hichunk_haystack.tree import ANCESTORS

X, Y, Z = np.eye(3)
NONE = ContextWeights.of(False)


def leaf(name: str, place: int, *above: tuple[str, int], source: str = "doc", tokens: int = 10) -> Document:
    """A leaf below nodes given as (id, tokens), the parent first."""
    links = [
        {"id": node, "tokens": length, "level": len(above) - 1 - number} for number, (node, length) in enumerate(above)
    ]
    return Document(
        id=name,
        content=name,
        meta={"source_id": source, "split_idx_start": place, "token_count": tokens, ANCESTORS: links},
    )


def test_without_weights_a_leaf_is_what_it_was() -> None:
    around = Surroundings(["p"], ["s"], "d", ["n"])
    vectors = dict.fromkeys("psdn", Y)
    assert in_context(X, around, vectors, NONE).tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("name", "around"),
    [
        ("sections", Surroundings([], ["s"], None, [])),
        ("document", Surroundings([], [], "s", [])),
        ("neighbours", Surroundings([], [], None, ["s"])),
    ],
)
def test_a_weight_of_one_counts_like_the_leaf(name: str, around: Surroundings) -> None:
    mixed = in_context(X, around, {"s": Y}, ContextWeights.of({**dict.fromkeys(vars(NONE), 0.0), name: 1.0}))
    assert mixed == pytest.approx([sqrt(0.5), sqrt(0.5), 0])


def test_the_smallest_and_the_biggest_passage_count_each() -> None:
    weights = ContextWeights(passages=2.0, sections=0, document=0, neighbours=0)
    mixed = in_context(X, Surroundings(["a", "between", "b"], [], None, []), {"a": Y, "between": X, "b": Z}, weights)
    assert mixed == pytest.approx([1 / 3, 2 / 3, 2 / 3])


def test_neighbours_that_say_different_things_count_less() -> None:
    # Their mean is (0, 1/2, 1/2), which is shorter than a vector of one direction.
    weights = ContextWeights(passages=0, sections=0, document=0, neighbours=1)
    mixed = in_context(X, Surroundings([], [], None, ["a", "b"]), {"a": Y, "b": Z}, weights)
    assert mixed == pytest.approx(np.array([1, 0.5, 0.5]) / sqrt(1.5))


def test_what_is_missing_is_taken_from_next_to_the_leaf() -> None:
    # No passages, sections, document or neighbours: six equal shares of the leaf itself.
    assert in_context(X, Surroundings([], [], None, []), {}, ContextWeights()).tolist() == [1, 0, 0]
    # Only a passage: it stands for sections and document too, which makes 2 + 1 + 1 shares beside the leaf's 1 + 1.
    mixed = in_context(X, Surroundings(["p"], [], "gone", []), {"p": Y}, ContextWeights())
    assert mixed == pytest.approx(np.array([2, 4, 0]) / sqrt(20))


def test_nodes_above_are_passages_up_to_the_reading_length() -> None:
    around = surroundings(leaf("a", 0, ("p", 100), ("q", 256), ("s", 257), ("t", 900), ("root", 2000)), 256, ["n"])
    assert (around.passages, around.sections, around.document) == (["p", "q"], ["s", "t"], "root")
    assert around.neighbours == ["n"]


def test_a_short_document_is_a_passage_and_the_document() -> None:
    around = surroundings(leaf("a", 0, ("root", 20)), 256, [])
    assert (around.passages, around.sections, around.document) == (["root"], [], "root")


def test_neighbours_are_two_on_each_side_in_reading_order_and_of_the_same_source() -> None:
    leaves = [leaf(f"a{place}", place, source="a") for place in (3, 0, 4, 1, 2)] + [leaf("b0", 0, source="b")]
    near = neighbours_of(leaves)
    assert near["a2"] == ["a0", "a1", "a3", "a4"]
    assert near["a0"] == ["a1", "a2"]
    assert near["a4"] == ["a2", "a3"]
    assert near["b0"] == []


def test_means_go_up_child_by_child() -> None:
    leaves = [
        leaf("a", 0, ("s", 20), ("root", 50)),
        leaf("b", 1, ("s", 20), ("root", 50)),
        leaf("c", 2, ("root", 50), tokens=30),
    ]
    means = mean_vectors(leaves, {"a": X, "b": Y, "c": Z})
    assert means["s"] == pytest.approx([sqrt(0.5), sqrt(0.5), 0])
    # The section and the leaf beside it count the same, though the section has two leaves.
    assert means["root"] == pytest.approx([0.5, 0.5, sqrt(0.5)])


def test_means_by_tokens() -> None:
    leaves = [leaf("a", 0, ("root", 40), tokens=30), leaf("b", 1, ("root", 40), tokens=10)]
    means = mean_vectors(leaves, {"a": X, "b": Y}, by_tokens=True)
    assert means["root"] == pytest.approx(np.array([3, 1, 0]) / sqrt(10))


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ({"sektions": 1.0}, "no weight 'sektions'"),
        ({"document": -1.0}, "weight of document is -1.0"),
        ({"document": float("nan")}, "weight of document is nan"),
        ({"passages": "much"}, "weight of passages is much"),
    ],
)
def test_weights_that_make_no_sense(context: dict[str, float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ContextWeights.of(context)
