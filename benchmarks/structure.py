# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""
How well splitters find the sections of documents whose heading marks are hidden.

    python benchmarks/structure.py [--data FOLDER] [--documents N] [--no-rivals] [--model FOLDER_OR_NAME] [--json FILE]

Documents: the design documents of `rust_rfcs` of 4,000 words and more, and the articles of `wikitext2`. Their `#` marks
are taken away, so that a heading is a line of its own like any other ("shown"), or whole heading lines are taken out
("removed", where the place to find is the first unit of the section). A cut counts when it lies in front of exactly the
right unit (sentence, listing, table). Levels are those left behind the first line of the document, compressed so that
the highest is 1. Lall is F1 without regard to levels. F1 per document, averaged; Pk and WindowDiff (errors, 0 is best)
per document, averaged; and precision, recall and F1 over all cuts of a set. Documents without a cut are left out. The
measures are those of `hichunk_haystack.evaluation.structure`.

Needs the extras `local` and `evaluation`. The default model is the static one of the package `wordllama` (fast);
`--model sentence-transformers/all-MiniLM-L6-v2` is slower. That package and the rivals come with the extra `compare`.
Rivals give one level, so that L2 says nothing about them.
"""

import argparse
import importlib.util
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from haystack import Document

from hichunk_haystack.components.embedders import OfflineSentenceTransformersDocumentEmbedder
from hichunk_haystack.components.preprocessors.semantic import semantic_structure
from hichunk_haystack.evaluation.structure import (
    Splitter,
    as_row,
    cut_points_of_pieces,
    hidden_case,
    measure,
    structure_texts,
)
from hichunk_haystack.plain_text import plain_headings
from hichunk_haystack.sections import CutPoint
from hichunk_haystack.segmentation import whole_blocks
from hichunk_haystack.text_units import Unit, find_units
from hichunk_haystack.title_lines import title_like

DEFAULT_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"

COLUMNS = {
    "L1": "L1", "L2": "L2", "Lall": "Lall", "Pk": "Pk", "WindowDiff": "WDiff", "precision": "prec", "recall": "rec",
    "Lall over all cuts": "all", "seconds": "s",
}  # fmt: skip


def read(data: Path, documents: int | None) -> dict[str, list[str]]:
    return {
        "rust_rfcs": structure_texts(data / "rust_rfcs", least_words=4000, documents=documents),
        "wikitext2": structure_texts(data / "wikitext2", lines_are_paragraphs=True, documents=documents),
    }


def static_model(folder: Path) -> str:
    """Save the static embeddings of `wordllama` as a model that Sentence Transformers loads."""
    import torch
    from safetensors.torch import load_file
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import StaticEmbedding
    from tokenizers import Tokenizer

    spec = importlib.util.find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("wordllama is not installed: pip install 'hichunk-haystack[compare]', or name a --model.")
    root = Path(spec.submodule_search_locations[0])
    tokenizer = Tokenizer.from_file(str(next((root / "tokenizers").glob("*.json"))))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    weights = next(iter(load_file(str(root / "weights" / "l2_supercat_256.safetensors")).values()))
    SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=weights.to(torch.float32))]).save(
        str(folder)
    )
    return str(folder)


def contenders(embedder: Any, *, rivals: bool) -> dict[str, Splitter]:
    def semantic(text: str, _: list[Unit], *, layout: bool) -> list[CutPoint]:
        found = semantic_structure(
            Document(content=text), embedder, levels=2, layout=layout, units_per_call=1024, language="en"
        )
        if found.root_meta:
            sys.exit(str(found.root_meta))
        return list(found.cut_points)

    def lines(text: str, units: list[Unit]) -> list[CutPoint]:
        titles = title_like(text, units)
        return [CutPoint(unit.start, 1) for unit, title in zip(units, titles, strict=True) if title]

    def plain(text: str, _: list[Unit]) -> list[CutPoint]:
        return [CutPoint(offset, level) for offset, level, _ in plain_headings(text)]

    def every_third_paragraph(_: str, units: list[Unit]) -> list[CutPoint]:
        return [CutPoint(unit.start, 1) for unit in [unit for unit in units if unit.strength == 4][3::3]]

    found: dict[str, Splitter] = {
        "SemanticHierarchicalSplitter": lambda text, units: semantic(text, units, layout=True),
        "  layout=False (embeddings alone)": lambda text, units: semantic(text, units, layout=False),
        "  title-like lines alone": lines,
        "PlainTextHierarchicalSplitter": plain,
        "every third paragraph": every_third_paragraph,
    }
    if not rivals:
        return found
    found["Haystack EmbeddingBasedDocumentSplitter"] = haystack_splitter(embedder)
    try:
        found["chonkie SemanticChunker"] = chonkie_chunker(embedder)
    except ImportError as error:
        print(f"chonkie is not installed ({error}): pip install 'hichunk-haystack[compare]'", file=sys.stderr)
    return found


def haystack_splitter(embedder: Any) -> Splitter:
    """Defaults, with our sentences, since its own come from data that NLTK downloads."""
    from haystack.components.preprocessors import EmbeddingBasedDocumentSplitter

    splitter: Any = EmbeddingBasedDocumentSplitter(document_embedder=embedder)

    class OurSentences:
        def split_sentences(self, text: str) -> list[dict[str, Any]]:
            units = whole_blocks(find_units(text))
            return [{"sentence": text[one.start : one.end], "start": one.start, "end": one.end} for one in units]

    splitter.sentence_splitter = OurSentences()
    splitter._is_warmed_up = True

    def split(text: str, _: list[Unit]) -> list[CutPoint]:
        pieces = splitter.run(documents=[Document(content=text)])["documents"]
        return cut_points_of_pieces(text, [piece.content or "" for piece in pieces])

    return split


def chonkie_chunker(embedder: Any) -> Splitter:
    """Defaults, over the same embedder."""
    import numpy as np
    from chonkie import SemanticChunker
    from chonkie.embeddings import BaseEmbeddings

    class Ours(BaseEmbeddings):
        def embed(self, text: str) -> Any:
            return self.embed_batch([text])[0]

        def embed_batch(self, texts: list[str]) -> Any:
            documents = [Document(id=str(number), content=text or " ") for number, text in enumerate(texts)]
            return [
                np.asarray(one.embedding, dtype=np.float32) for one in embedder.run(documents=documents)["documents"]
            ]

        @property
        def dimension(self) -> int:
            return len(self.embed("kiln"))

        def get_tokenizer(self) -> Any:
            return "character"

    chunker = SemanticChunker(embedding_model=Ours(), chunk_size=8192)

    def split(text: str, _: list[Unit]) -> list[CutPoint]:
        return cut_points_of_pieces(text, [chunk.text for chunk in chunker.chunk(text)])

    return split


def shown(value: float | None) -> str:
    return f"{'-':>8}" if value is None else f"{value:8.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--documents", type=int, help="about this many documents of each set, evenly chosen")
    parser.add_argument("--no-rivals", action="store_true", help="the rivals take ten times as long as ours")
    parser.add_argument("--model", help="a model of Sentence Transformers instead of the static one")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    try:
        sets = read(arguments.data, arguments.documents)
    except FileNotFoundError as error:
        sys.exit(f"{error} Name the folder that holds rust_rfcs and wikitext2 with --data.")
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        model = arguments.model or static_model(Path(folder))
        embedder = OfflineSentenceTransformersDocumentEmbedder(model=model, progress_bar=False, batch_size=64)
        embedder.warm_up()
        runs = contenders(embedder, rivals=not arguments.no_rivals)
        for removed in (False, True):
            for name, texts in sets.items():
                cases = [case for case in (hidden_case(text, removed=removed) for text in texts) if case.right]
                title = f"{name}, heading lines {'removed' if removed else 'shown without marks'}"
                print(f"\n{title}: {len(cases)} documents, {sum(len(case.right) for case in cases)} cuts")
                print(f"{'':44}" + "".join(f"{column:>8}" for column in COLUMNS.values()))
                for run, split in runs.items():
                    row = as_row(measure(cases, split))
                    print(f"{run:44}" + "".join(shown(row[column]) for column in COLUMNS), flush=True)
                    results.setdefault(title, {})[run] = row
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
