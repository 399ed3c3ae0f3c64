# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""
Vectors of inner nodes, and vectors of leaves that know what stands around them.

A leaf is small, so that its vector is sharp; what it belongs to is known one level up. A similarity is linear in the
vector of the leaf: its similarity plus weighted similarities of the nodes above it is the similarity of the weighted
sum of their vectors. So a ranking that knows the tree costs nothing at query time, if the sum is what is stored. It is
stored at length 1, which is more than a detail: the sum is longest where leaf and surroundings agree, so that a plain
sum of similarities prefers such leaves whatever is asked.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields

import numpy as np
from haystack import Document
from numpy.typing import NDArray

from hichunk_haystack.nodes import ANCESTORS

Vector = NDArray[np.float64]

REACH = 2
"""How many leaves before, and how many behind, count as neighbours."""


@dataclass(frozen=True)
class ContextWeights:
    """
    How much what stands around a leaf counts beside the leaf itself, whose weight is 1.

    :param passages: Weight of the smallest node above it that the embedder reads whole, and again of the biggest such
        node.
    :param sections: Weight of the mean of the nodes between those and the root.
    :param document: Weight of the root.
    :param neighbours: Weight of the mean of two leaves before and two behind.
    """

    passages: float = 1.0
    sections: float = 1.0
    document: float = 1.0
    neighbours: float = 1.0

    def __post_init__(self) -> None:
        for name, weight in asdict(self).items():
            if not isinstance(weight, int | float) or not 0 <= weight < float("inf"):
                msg = f"The weight of {name} is {weight}; it must be a number from 0 on (1.0 counts like the leaf)."
                raise ValueError(msg)

    @classmethod
    def of(cls, context: Mapping[str, float] | bool) -> "ContextWeights":
        """
        Read weights as components take them.

        :param context: `True` for the defaults, `False` for a weight of 0 everywhere, or weights by name; what is not
            named keeps its default.
        :returns: The weights.
        :raises ValueError: If a name is none of ours, or a weight is no number from 0 on.
        """
        names = [each.name for each in fields(cls)]
        given = context if isinstance(context, Mapping) else {} if context else dict.fromkeys(names, 0.0)
        unknown = sorted(set(given) - set(names))
        if unknown:
            msg = f"There is no weight '{unknown[0]}'; there are {', '.join(names)}."
            raise ValueError(msg)
        return cls(**given)


@dataclass
class Surroundings:
    """
    What stands around a leaf: keys of vectors.

    :param passages: Nodes above it that the embedder reads whole, the smallest first.
    :param sections: Further nodes below the root.
    :param document: The root; `None` if it is the leaf itself.
    :param neighbours: Leaves nearby.
    """

    passages: Sequence[str]
    sections: Sequence[str]
    document: str | None
    neighbours: Sequence[str]


def neighbours_of(leaves: Iterable[Document]) -> dict[str, list[str]]:
    """
    Find the leaves before and behind each leaf.

    :param leaves: All leaves of any number of trees, in any order.
    :returns: For each leaf's id up to two ids before and two behind.
    """
    by_source: dict[str, list[Document]] = {}
    for leaf in leaves:
        by_source.setdefault(leaf.meta.get("source_id") or leaf.id, []).append(leaf)
    near: dict[str, list[str]] = {}
    for siblings in by_source.values():
        ids = [leaf.id for leaf in sorted(siblings, key=lambda leaf: leaf.meta.get("split_idx_start") or 0)]
        for place, leaf_id in enumerate(ids):
            near[leaf_id] = ids[max(0, place - REACH) : place] + ids[place + 1 : place + 1 + REACH]
    return near


def surroundings(leaf: Document, reading_tokens: int, neighbours: Sequence[str]) -> Surroundings:
    """
    Find what stands around a leaf.

    :param leaf: A leaf; what is above it is what it carries of its ancestors.
    :param reading_tokens: Nodes of up to so many tokens are passages.
    :param neighbours: Ids of the leaves nearby.
    :returns: Its surroundings.
    """
    above = leaf.meta.get(ANCESTORS) or ()
    return Surroundings(
        [link["id"] for link in above if link["tokens"] <= reading_tokens],
        [link["id"] for link in above[:-1] if link["tokens"] > reading_tokens],
        above[-1]["id"] if above else None,
        neighbours,
    )


def in_context(own: Vector, around: Surroundings, vectors: Mapping[str, Vector], weights: ContextWeights) -> Vector:
    """
    Mix a leaf's vector with those of its surroundings.

    Where something is not there, what is next to the leaf stands for it, so that all leaves are mixed of equal shares.

    :param own: The leaf's own vector, of length 1.
    :param around: Its surroundings; keys that are not among the vectors are passed over.
    :param vectors: Vectors of length 1 by key.
    :param weights: The weights.
    :returns: A vector of length 1.
    """
    passages = [vectors[key] for key in around.passages if key in vectors] or [own]
    sections = _mean([vectors[key] for key in around.sections if key in vectors], passages[-1])
    document = own if around.document is None else vectors.get(around.document, sections)
    neighbours = _mean([vectors[key] for key in around.neighbours if key in vectors], own)
    return unit(
        own
        + weights.passages * (passages[0] + passages[-1])
        + weights.sections * sections
        + weights.document * document
        + weights.neighbours * neighbours
    )


def mean_vectors(
    leaves: Sequence[Document], vectors: Mapping[str, Vector], *, by_tokens: bool = False
) -> dict[str, Vector]:
    """
    Give each inner node the normalised mean of the vectors of the leaves below it, from the bottom up.

    So KohakuRAG does (arXiv 2603.07612), node by node from children to parent: `by_tokens` weighs what is below by its
    length, else each child counts the same.

    :param leaves: Leaves.
    :param vectors: Their vectors, by id.
    :param by_tokens: Whether longer children count more.
    :returns: A vector of length 1 for each node above the leaves, by id.
    """
    parents: dict[str, str] = {}
    levels: dict[str, int] = {}
    tokens: dict[str, int] = {}
    for leaf in leaves:
        below = leaf.id
        tokens[leaf.id] = leaf.meta.get("token_count") or 1
        for link in leaf.meta.get(ANCESTORS) or ():
            parents[below] = link["id"]
            levels[link["id"]] = link["level"]
            tokens[link["id"]] = link["tokens"] or 1
            below = link["id"]
    sums: dict[str, Vector] = {}
    means: dict[str, Vector] = {}

    def add(child: str, vector: Vector) -> None:
        parent = parents.get(child)
        if parent is not None:
            weighted = vector * tokens[child] if by_tokens else vector
            sums[parent] = sums[parent] + weighted if parent in sums else weighted

    for leaf in leaves:
        add(leaf.id, vectors[leaf.id])
    for node in sorted(levels, key=levels.__getitem__, reverse=True):
        means[node] = unit(sums[node])
        add(node, means[node])
    return means


def unit(vector: Vector) -> Vector:
    """
    Scale a vector to length 1.

    :param vector: A vector.
    :returns: The same direction; zeros stay zeros.
    """
    size = float(np.linalg.norm(vector))
    return vector / size if size else vector


def _mean(vectors: Sequence[Vector], otherwise: Vector) -> Vector:
    return np.mean(vectors, axis=0) if vectors else otherwise
