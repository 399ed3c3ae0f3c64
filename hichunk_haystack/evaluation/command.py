# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""The benchmark of one data set from the folder to the saved table."""

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hichunk_haystack.components.embedders import OfflineSentenceTransformersDocumentEmbedder
from hichunk_haystack.components.offline import DEFAULT_MODEL
from hichunk_haystack.evaluation import report
from hichunk_haystack.evaluation.benchmark import run
from hichunk_haystack.evaluation.contenders.corpus import Corpus
from hichunk_haystack.evaluation.contenders.lineup import lineup
from hichunk_haystack.evaluation.contenders.reranked import load_cross_encoder
from hichunk_haystack.evaluation.datasets import Dataset, load_dataset
from hichunk_haystack.evaluation.dense import dense_questions
from hichunk_haystack.evaluation.embedding_cache import CachedEmbedder
from hichunk_haystack.sections import CutPoint
from hichunk_haystack.tokens import HuggingFaceTokenCounter

_PACKAGES = ("hichunk-haystack", "haystack-ai", "llama-index-core", "sentence-transformers", "torch")


def compare(
    folder: Path,
    output: Path,
    budgets: Sequence[int],
    *,
    model: str,
    every: bool = False,
    most: int | None = None,
    cross_encoder: str | None = None,
) -> str:
    """
    Run the benchmark on a data set, and save table, plot and results.

    :param folder: The data set; where it has no questions, dense ones are made from its headings.
    :param output: Where to save: `NAME.md`, `NAME.png`, `NAME.json`, and `embeddings.sqlite` for all data sets.
    :param budgets: Token budgets.
    :param model: A model of Sentence Transformers; its tokenizer counts.
    :param every: Whether each splitter of ours runs with each policy.
    :param most: The most questions, evenly chosen; all by default.
    :param cross_encoder: A cross-encoder (see `load_cross_encoder`); by default nothing is reranked.
    :returns: Title and table.
    :raises FileNotFoundError: If the folder is no data set.
    :raises ValueError: If a budget is below 1, or a question can't be read.
    """
    if any(budget < 1 for budget in budgets):
        msg = f"A budget is {min(budgets)}; it must be at least 1 token."
        raise ValueError(msg)
    corpus = read_questions(folder, output, model=model, most=most)
    dataset = corpus.dataset
    stem = dataset.name + ("" if most is None else f"-{len(dataset.questions)}")
    settings = {"model": model, "versions": _versions()}
    reads = None if cross_encoder is None else load_cross_encoder(cross_encoder)
    contenders = lineup(corpus, every=every, cross_encoder=reads)
    results = run(corpus, contenders, budgets, output / f"{stem}.json", settings)
    title = f"{dataset.name}: {len(dataset.documents)} documents, {len(dataset.questions)} questions"
    text = f"{title}\n\nERec in percent by token budget, {model}; {_versions()}\n\n{report.table(results, budgets)}\n"
    (output / f"{stem}.md").write_text(text, encoding="utf-8")
    report.plot(results, budgets, title, output / f"{stem}.png")
    return text


def read_questions(folder: Path, output: Path, *, model: str = DEFAULT_MODEL, most: int | None = None) -> Corpus:
    """
    Read a data set for contenders.

    :param folder: The data set; where it has no questions, dense ones are made from its headings.
    :param output: Where `embeddings.sqlite` is kept.
    :param model: A model of Sentence Transformers; its tokenizer counts.
    :param most: The most questions, evenly chosen; all by default.
    :returns: The corpus.
    :raises FileNotFoundError: If the folder is no data set.
    :raises ValueError: If a question can't be read, or there are none.
    """
    dataset, cut_points = _questions(load_dataset(folder))
    if most is not None and most < len(dataset.questions):
        step = len(dataset.questions) / most
        dataset.questions = [dataset.questions[int(number * step)] for number in range(most)]
    embedder = OfflineSentenceTransformersDocumentEmbedder(
        model=model,
        batch_size=64,
        progress_bar=False,
        # Twice as fast on a processor, and the vectors differ by less than their fourth digit.
        model_kwargs={"dtype": "bfloat16"},
    )
    cached = CachedEmbedder(embedder, output / "embeddings.sqlite")
    return Corpus(dataset, cached, HuggingFaceTokenCounter(model), cut_points)


def _questions(dataset: Dataset) -> tuple[Dataset, dict[str, list[CutPoint]] | None]:
    """The set with its own questions, or with dense ones."""
    if dataset.questions:
        return dataset, None
    made, hidden = dense_questions(dataset.documents, name=f"{dataset.name}-dense")
    if not made.questions:
        msg = f"'{dataset.name}' has no qas.jsonl, and no headings to make questions from."
        raise ValueError(msg)
    return made, {name: one.cut_points for name, one in hidden.items()}


def _versions() -> str:
    found = []
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)
