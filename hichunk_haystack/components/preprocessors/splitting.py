# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What all splitters have in common: from documents and a predictor of cut points to trees."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from haystack import Document, logging

from hichunk_haystack.tree import CutPoint, TreeBuilder, to_documents
from hichunk_haystack.units import Strength

logger = logging.getLogger(__name__)

Prediction = tuple[Iterable[CutPoint], Mapping[int, Strength] | None]
Predictor = Callable[[Document], Prediction]

# Texts of this many characters together are counted at once: enough for a tokenizer's speed, little memory.
_GROUP_CHARACTERS = 500_000


def split_documents(
    documents: Sequence[Document], builder: TreeBuilder, predict: Predictor, key: str, *, workers: int = 1
) -> list[Document]:
    """
    Build the tree of each document.

    Documents without text, and one that comes twice, are left out with a warning that names them.

    :param documents: Sources; they are not changed.
    :param builder: Builds the trees.
    :param predict: Gives a source's cut points and places to cut.
    :param key: What the prediction depends on; it goes into the ids.
    :param workers: How many groups of documents are worked on at once. Two threads keep the processor busy, since the
        tokenizer lets go of Python's lock; `predict` has to bear it.
    :returns: All nodes of all trees, source by source, the root first.
    :raises TypeError: If something is not a `Document`.
    """
    settings = f"{key} {builder.key}"

    def split(group: list[Document]) -> list[Document]:
        predictions = [predict(source) for source in group]
        trees = builder.build_many(
            (source.content or "", cut_points, boundaries)
            for source, (cut_points, boundaries) in zip(group, predictions, strict=True)
        )
        return [
            node for source, tree in zip(group, trees, strict=True) for node in to_documents(tree, source, settings)
        ]

    with ThreadPoolExecutor(workers) as pool:
        return [node for nodes in pool.map(split, _groups(_usable(documents))) for node in nodes]


def describe(document: Document) -> str:
    """
    Name a document in a message.

    :param document: Any document.
    :returns: Its file's path where it has one, else its id.
    """
    path = document.meta.get("file_path")
    return f"'{path}'" if path else f"document '{document.id}'"


def _usable(documents: Sequence[Document]) -> Iterator[Document]:
    seen: set[str] = set()
    for document in documents:
        if not isinstance(document, Document):
            msg = (
                f"A splitter takes Documents, but got a {type(document).__name__}. Wrap texts in Document(content=...)."
            )
            raise TypeError(msg)
        if document.content is None or not document.content.strip():
            logger.warning("{source} has no text and is left out.", source=describe(document))
        elif document.id in seen:
            logger.warning(
                "{source} comes twice (id '{id}'); the second one is left out.",
                source=describe(document),
                id=document.id,
            )
        else:
            seen.add(document.id)
            yield document


def _groups(documents: Iterable[Document]) -> Iterator[list[Document]]:
    group: list[Document] = []
    characters = 0
    for document in documents:
        group.append(document if document.embedding is None else replace(document, embedding=None))
        characters += len(document.content or "")
        if characters >= _GROUP_CHARACTERS:
            yield group
            group, characters = [], 0
    if group:
        yield group
