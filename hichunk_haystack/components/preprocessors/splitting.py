# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What all splitters have in common: from documents and a predictor of cut points to trees."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Self

from haystack import Document, default_from_dict, logging

from hichunk_haystack.front_matter import mark_front_matter, name_by_title
from hichunk_haystack.markdown import MarkdownStructure, parse_markdown
from hichunk_haystack.tables import Table, header_for
from hichunk_haystack.tokens import is_additive, warm_up_counter
from hichunk_haystack.tree import CutPoint, Node, TreeBuilder, to_documents
from hichunk_haystack.units import Strength

logger = logging.getLogger(__name__)

TABLE_HEADER = "table_header"
"""Meta key of a node that starts behind the header of a table: the lines of that header."""

Prediction = tuple[Iterable[CutPoint], Mapping[int, Strength] | None]


@dataclass(frozen=True)
class Structure:
    """
    What a splitter knows of a source.

    :param cut_points: Where its sections start.
    :param boundaries: Places to cut; `None` for the paragraphs of plain text.
    :param tables: Its tables, in order.
    :param root_meta: What goes into the root's meta besides.
    """

    cut_points: Iterable[CutPoint]
    boundaries: Mapping[int, Strength] | None = None
    tables: Sequence[Table] = ()
    root_meta: Mapping[str, Any] = field(default_factory=dict)


Predictor = Callable[[Document], Prediction | Structure]
Adjuster = Callable[[str, list[Node]], None]

# Texts of this many characters together are counted at once: enough for a tokenizer's speed, and little enough that
# what is held on the way to the trees does not have Python's garbage collector go through the whole heap too often.
_GROUP_CHARACTERS = 150_000


class TreeSplitter:
    """What the splitters have in common besides `run`; each of them has a `_builder`."""

    _builder: TreeBuilder

    def warm_up(self) -> None:
        """Load the token counter."""
        warm_up_counter(self._builder.counter)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """
        Revive the component.

        :param data: What `to_dict` gave.
        :returns: The component.
        """
        return default_from_dict(cls, data)


def from_markdown(
    structure: MarkdownStructure, cut_points: Iterable[CutPoint], root_meta: Mapping[str, Any] | None = None
) -> Structure:
    """
    Put cut points together with the places to cut that a text's blocks give.

    :param structure: What the parser found.
    :param cut_points: Where sections start.
    :param root_meta: What goes into the root's meta besides.
    :returns: What `split_documents` takes.
    """
    return Structure(cut_points, structure.boundaries, structure.tables, root_meta or {})


def split_documents(
    documents: Sequence[Document],
    builder: TreeBuilder,
    predict: Predictor,
    key: str,
    *,
    workers: int = 1,
    adjust: Adjuster | None = None,
) -> list[Document]:
    """
    Build the tree of each document.

    Documents without text, and one that comes twice, are left out with a warning that names them.

    :param documents: Sources; they are not changed.
    :param builder: Builds the trees.
    :param predict: Gives a source's cut points and places to cut.
    :param key: What the prediction depends on; it goes into the ids.
    :param workers: How many groups of documents are worked on at once. A few threads keep the processor busy where each
        text goes through a tokenizer, which lets go of Python's lock; `predict` has to bear it. Where lengths are
        looked up, threads would only wait for each other, and there is one.
    :param adjust: Changes the nodes of a text's tree in place, before they become documents.
    :returns: All nodes of all trees, source by source, the root first.
    :raises TypeError: If something is not a `Document`.
    """
    settings = f"{key} {builder.key}"

    def split(group: list[Document]) -> list[Document]:
        found = [_structure(source, predict(source)) for source in group]
        trees = builder.build_many(
            (source.content or "", structure.cut_points, structure.boundaries)
            for source, structure in zip(group, found, strict=True)
        )
        nodes: list[Document] = []
        for source, structure, tree in zip(group, found, trees, strict=True):
            if adjust is not None:
                adjust(source.content or "", tree)
            name_by_title(source.content or "", tree)
            nodes += _with_meta(to_documents(tree, source, settings), structure)
        return nodes

    with ThreadPoolExecutor(1 if is_additive(builder.counter) else workers) as pool:
        return [node for nodes in pool.map(split, _groups(_usable(documents))) for node in nodes]


def describe(document: Document) -> str:
    """
    Name a document in a message.

    :param document: Any document.
    :returns: Its file's path where it has one, else its id.
    """
    path = document.meta.get("file_path")
    return f"'{path}'" if path else f"document '{document.id}'"


def _structure(source: Document, found: Prediction | Structure) -> Structure:
    if isinstance(found, Structure):
        return found
    text = source.content or ""
    return Structure(*found, tables=parse_markdown(text).tables if "|" in text else ())


def _with_meta(nodes: list[Document], structure: Structure) -> list[Document]:
    """Add what the root and the nodes that start in the middle of tables have in their meta besides."""
    if structure.tables and nodes:
        text = nodes[0].content or ""
        for node in nodes:
            header = header_for(node.meta["split_idx_start"], structure.tables)
            if header is not None:
                node.meta[TABLE_HEADER] = text[header[0] : header[1]].rstrip()
    mark_front_matter(nodes)
    if nodes:
        nodes[0].meta.update(structure.root_meta)
    return nodes


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
