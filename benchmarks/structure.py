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
the highest is 1. Lall is F1 without regard to levels. F1 per document, averaged; and F1 over all cuts of a set.

The default model is the static one of the package `wordllama` (fast); `--model sentence-transformers/all-MiniLM-L6-v2`
is slower. Rivals need the extra `compare`: they give one level, so that only L1 and Lall are shown.
"""

import argparse
import importlib.util
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from haystack import Document

from hichunk_haystack.components.embedders import OfflineSentenceTransformersDocumentEmbedder
from hichunk_haystack.components.preprocessors.semantic import semantic_structure
from hichunk_haystack.markdown import parse_markdown
from hichunk_haystack.plain_text import plain_headings
from hichunk_haystack.segmentation import title_like, whole_blocks
from hichunk_haystack.text_units import Unit, find_units

DEFAULT_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
Cuts = dict[int, int]
Splitter = Callable[[str, list[Unit]], Cuts]


@dataclass
class Case:
    text: str
    units: list[Unit]
    gold: Cuts


def make_case(markdown: str, *, removed: bool) -> Case:
    """Hide the headings of a text."""
    parts: list[str] = []
    gold: list[tuple[int, int]] = []
    position = length = 0
    for offset, level, _ in parse_markdown(markdown).headings:
        if offset < position:
            continue
        end = _line_end(markdown, offset)
        line = markdown[offset:end]
        if not line.lstrip().startswith("#"):  # the underline of a setext heading
            end = _line_end(markdown, end)
        shown = "" if removed else re.sub(r"^\s*#+\s*|\s*#*\s*$", "", line) + "\n"
        parts += [markdown[position:offset], shown]
        gold.append((length + offset - position, level))
        length += offset - position + len(shown)
        position = end
    text = "".join([*parts, markdown[position:]])
    units = whole_blocks(find_units(text))
    first = len(text) - len(text.lstrip())
    found: Cuts = {}
    for offset, level in gold:
        # The unit that starts there, or the first behind: without its line a section starts with its text.
        at = next((unit.start for unit in units if unit.start >= offset), None)
        if at is not None and offset > first and at > first:
            found[at] = min(level, found.get(at, level))
    ranks = {level: number + 1 for number, level in enumerate(sorted(set(found.values())))}
    return Case(text, units, {offset: ranks[level] for offset, level in found.items()})


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end + 1


def read(data: Path, documents: int | None) -> dict[str, list[str]]:
    sets: dict[str, list[str]] = {}
    for name, least in (("rust_rfcs", 4000), ("wikitext2", 0)):
        texts = [path.read_bytes().decode() for path in sorted((data / name / "docs").glob("*.md"))]
        texts = [text for text in texts if len(text.split()) >= least]
        if name == "wikitext2":
            # Each line is a paragraph there, and blank lines stand around headings only: they would give them away.
            texts = [re.sub(r"\n+", "\n\n", text) for text in texts]
        # Evenly over the set, whatever its order.
        step = max(1, len(texts) // documents) if documents else 1
        sets[name] = texts[::step]
    return sets


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
    def semantic(text: str, _: list[Unit], *, layout: bool) -> Cuts:
        found = semantic_structure(
            Document(content=text), embedder, levels=2, layout=layout, units_per_call=1024, language="en"
        )
        if found.root_meta:
            sys.exit(str(found.root_meta))
        return {cut.offset: cut.level for cut in found.cut_points}

    def lines(text: str, units: list[Unit]) -> Cuts:
        titles = title_like(text, units)
        return {unit.start: 1 for unit, title in zip(units, titles, strict=True) if title and unit.start}

    def plain(text: str, _: list[Unit]) -> Cuts:
        return {offset: level for offset, level, _ in plain_headings(text) if offset}

    def every_third_paragraph(_: str, units: list[Unit]) -> Cuts:
        return {unit.start: 1 for unit in [unit for unit in units if unit.strength == 4][3::3]}

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

    splitter = EmbeddingBasedDocumentSplitter(document_embedder=embedder)

    class OurSentences:
        def split_sentences(self, text: str) -> list[dict[str, Any]]:
            units = whole_blocks(find_units(text))
            return [{"sentence": text[one.start : one.end], "start": one.start, "end": one.end} for one in units]

    splitter.sentence_splitter = OurSentences()  # type: ignore[assignment]
    splitter._is_warmed_up = True

    def split(text: str, units: list[Unit]) -> Cuts:
        pieces = splitter.run(documents=[Document(content=text)])["documents"]
        return on_units(text, units, [piece.content or "" for piece in pieces])

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

    def split(text: str, units: list[Unit]) -> Cuts:
        return on_units(text, units, [chunk.text for chunk in chunker.chunk(text)])

    return split


def on_units(text: str, units: list[Unit], pieces: Iterable[str]) -> Cuts:
    """Where pieces start, moved to the nearest start of a unit: a rival's own sentences cost it nothing."""
    starts = [unit.start for unit in units]
    cuts: Cuts = {}
    position = 0
    for piece in pieces:
        found = text.find(piece[:200], position)
        start = found if found >= 0 else position
        nearest = min(starts, key=lambda one: abs(one - start))
        if nearest > 0:
            cuts[nearest] = 1
        position = start + max(1, len(piece) - 200)
    return cuts


def f1(predicted: set[int], gold: set[int]) -> float | None:
    if not gold and not predicted:
        return None
    return 2 * len(predicted & gold) / (len(predicted) + len(gold))


def at_level(cuts: Cuts, level: int) -> set[int]:
    return {offset for offset, own in cuts.items() if own == level}


def score(cases: list[Case], split: Splitter) -> dict[str, float]:
    rows: dict[str, list[float]] = {"L1": [], "L2": [], "Lall": []}
    both = predicted_in_all = gold_in_all = 0
    start = time.perf_counter()
    for case in cases:
        cuts = split(case.text, case.units)
        for name, value in (
            ("L1", f1(at_level(cuts, 1), at_level(case.gold, 1))),
            ("L2", f1(at_level(cuts, 2), at_level(case.gold, 2))),
            ("Lall", f1(set(cuts), set(case.gold))),
        ):
            if value is not None:
                rows[name].append(value)
        both += len(cuts.keys() & case.gold.keys())
        predicted_in_all += len(cuts)
        gold_in_all += len(case.gold)
    means = {name: statistics.mean(values) if values else 0.0 for name, values in rows.items()}
    return {
        **means,
        "precision": both / max(1, predicted_in_all),
        "recall": both / max(1, gold_in_all),
        "Lall over all cuts": 2 * both / max(1, predicted_in_all + gold_in_all),
        "seconds": time.perf_counter() - start,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--documents", type=int, help="about this many documents of each set, evenly chosen")
    parser.add_argument("--no-rivals", action="store_true", help="the rivals take ten times as long as ours")
    parser.add_argument("--model", help="a model of Sentence Transformers instead of the static one")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    sets = read(arguments.data, arguments.documents)
    if not all(sets.values()):
        sys.exit(f"{arguments.data} holds no rust_rfcs/docs and wikitext2/docs. Name the folder with --data.")
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        model = arguments.model or static_model(Path(folder))
        embedder = OfflineSentenceTransformersDocumentEmbedder(model=model, progress_bar=False, batch_size=64)
        embedder.warm_up()
        runs = contenders(embedder, rivals=not arguments.no_rivals)
        for removed in (False, True):
            for name, texts in sets.items():
                cases = [case for case in (make_case(text, removed=removed) for text in texts) if case.gold]
                title = f"{name}, heading lines {'removed' if removed else 'shown without marks'}"
                print(f"\n{title}: {len(cases)} documents, {sum(len(case.gold) for case in cases)} cuts")
                print(f"{'':44}{'L1':>7}{'L2':>7}{'Lall':>7}{'prec':>7}{'rec':>7}{'all':>7}{'s':>8}")
                for run, split in runs.items():
                    row = score(cases, split)
                    print(
                        f"{run:44}"
                        + "".join(f"{value:7.3f}" for value in list(row.values())[:-1])
                        + f"{row['seconds']:8.1f}",
                        flush=True,
                    )
                    results.setdefault(title, {})[run] = row
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
