# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""From a document, through any embedder of Haystack, to the cut points of its nested segments."""

import json
from inspect import signature
from typing import Any

from haystack import Document, logging

from hichunk_haystack.components.preprocessors.splitting import Structure, describe, from_markdown
from hichunk_haystack.markdown import MarkdownStructure, parse_markdown
from hichunk_haystack.segmentation import segment, whole_blocks
from hichunk_haystack.text_units import Unit, units_between
from hichunk_haystack.tree import CutPoint

logger = logging.getLogger(__name__)

# More of a unit says nothing more about what it is about.
_LONGEST_UNIT = 2000


def embedder_key(embedder: Any) -> str:
    """
    Give a text that is equal for equally configured embedders.

    :param embedder: An embedder.
    :returns: Its serialised form, or its type's name where it can't be serialised.
    """
    if hasattr(embedder, "to_dict"):
        return json.dumps(embedder.to_dict(), sort_keys=True, default=str)
    return type(embedder).__qualname__


def semantic_structure(
    source: Document,
    embedder: Any,
    *,
    levels: int,
    layout: bool,
    units_per_call: int,
    language: str,
    parsed: MarkdownStructure | None = None,
) -> Structure:
    """
    Find the nested segments of a document.

    :param source: The document.
    :param embedder: A document embedder, or a text embedder, warmed up.
    :param levels: Number of levels.
    :param layout: Whether lines that look like titles count.
    :param units_per_call: How many units the embedder gets at once.
    :param language: ISO 639-1 code.
    :param parsed: What the Markdown parser found, if that is known.
    :returns: Cut points without titles. None where the embedder failed, which a warning tells and the root's meta
        keeps: the leaves of that document are cut by length alone.
    """
    text = source.content or ""
    parsed = parsed or parse_markdown(text)
    units = whole_blocks(units_between(text, parsed.boundaries, parsed.kinds, language))
    try:
        vectors = _embed(text, units, embedder, units_per_call) if len(units) > 1 else []
    except Exception as error:  # noqa: BLE001, RUF100 - whatever an embedder raises, the other documents go on
        logger.warning(
            "{source} is split by length alone, since the embedder failed: {error}.",
            source=describe(source),
            error=f"{type(error).__name__}: {error}",
        )
        note = {"chosen": "token", "why": f"the embedder failed: {type(error).__name__}: {error}"}
        return from_markdown(parsed, [], {"splitter": note})
    cuts = segment(text, units, vectors, levels=levels, layout=layout) if vectors else []
    return from_markdown(parsed, [CutPoint(offset, level) for offset, level in cuts])


def _embed(text: str, units: list[Unit], embedder: Any, units_per_call: int) -> list[list[float]]:
    # Equal units (often rules and captions) are embedded once.
    places: dict[str, int] = {}
    numbers = [places.setdefault(text[unit.start : unit.end].strip()[:_LONGEST_UNIT], len(places)) for unit in units]
    vectors: list[list[float]] = []
    wanted = list(places)
    if "documents" not in signature(embedder.run).parameters:
        vectors = [embedder.run(text=one)["embedding"] for one in wanted]
    else:
        for first in range(0, len(wanted), units_per_call):
            batch = wanted[first : first + units_per_call]
            answer = embedder.run(documents=[Document(id=str(number), content=one) for number, one in enumerate(batch)])
            vectors += [document.embedding for document in answer["documents"]]
    if len(vectors) != len(wanted) or any(vector is None for vector in vectors):
        given = sum(vector is not None for vector in vectors)
        msg = f"it gave {given} embeddings for {len(wanted)} units"
        raise ValueError(msg)
    return [vectors[number] for number in numbers]
