# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Documents and questions with evidence, in the layout of HiCBench (arXiv 2509.11552)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hichunk_haystack.evaluation.evidence import Span


@dataclass(frozen=True)
class Question:
    """
    A question with the pieces of text that answer it.

    :param text: The question.
    :param document: Name of the document that it is asked of.
    :param evidences: Pieces of text, usually sentences.
    :param spans: Where they stand in the document, in characters; empty where that is not known.
    :param answers: Right answers.
    :param facts: Statements that a good answer makes.
    """

    text: str
    document: str
    evidences: tuple[str, ...]
    spans: tuple[Span, ...] = ()
    answers: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()


@dataclass
class Dataset:
    """
    Documents and what is asked of them.

    :param name: The folder's name.
    :param documents: Texts by name.
    :param questions: In the order of the file; empty for a set that is there for its structure only.
    """

    name: str
    documents: dict[str, str]
    questions: list[Question] = field(default_factory=list)


def load_dataset(folder: str | Path) -> Dataset:
    """
    Load a data set: `docs/*.md` (or `*.txt`), and `qas.jsonl` beside it where there are questions.

    A line of `qas.jsonl` is an object of `input` (the question), `_id` (the document's name without its ending),
    `evidences` (texts), and where known `spans` ([start, end] in characters), `answers` and `facts`.

    :param folder: The folder.
    :returns: The data set.
    :raises FileNotFoundError: If there are no documents.
    :raises ValueError: If a document or a question can't be read, or two documents have one name; the message names
        the file, and the line of a question.
    """
    folder = Path(folder)
    files = sorted(path for path in (folder / "docs").glob("*") if path.suffix in (".md", ".txt"))
    if not files:
        msg = f"'{folder}' is no data set: there are no .md or .txt files in '{folder / 'docs'}'."
        raise FileNotFoundError(msg)
    # Offsets count characters as they stand: line ends are not to be changed.
    documents: dict[str, str] = {}
    for path in files:
        if path.stem in documents:
            msg = f"'{folder / 'docs'}' holds '{path.stem}' as .md and as .txt. Take one away."
            raise ValueError(msg)
        documents[path.stem] = _text(path)
    return Dataset(folder.name, documents, _questions(folder / "qas.jsonl", documents))


def save_dataset(dataset: Dataset, folder: str | Path) -> None:
    """
    Write a data set in the layout that `load_dataset` reads.

    :param dataset: The data set.
    :param folder: Where to; it is made if it is not there.
    """
    docs = Path(folder) / "docs"
    docs.mkdir(parents=True, exist_ok=True)
    for name, text in dataset.documents.items():
        (docs / f"{name}.md").write_bytes(text.encode("utf-8"))
    lines = [
        json.dumps(
            {
                "input": question.text,
                "_id": question.document,
                "evidences": question.evidences,
                "spans": question.spans,
                "answers": question.answers,
                "facts": question.facts,
            },
            ensure_ascii=False,
        )
        for question in dataset.questions
    ]
    (Path(folder) / "qas.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _questions(file: Path, documents: Mapping[str, str]) -> list[Question]:
    questions: list[Question] = []
    if not file.exists():
        return questions
    for number, line in enumerate(_text(file).removeprefix("\ufeff").split("\n"), 1):
        if not line.strip():
            continue
        try:
            questions.append(_question(json.loads(line), documents))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            reason = f"'{error.args[0]}' is missing" if isinstance(error, KeyError) else str(error)
            msg = f"{file}, line {number}: {reason}. A question has 'input', '_id', 'evidences', and perhaps 'spans'."
            raise ValueError(msg) from error
    return questions


def _text(path: Path) -> str:
    """A file's text as it stands, line ends too."""
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        msg = f"{path} is not UTF-8: {error.reason} at byte {error.start}. Convert it."
        raise ValueError(msg) from error


def _question(raw: Any, documents: Mapping[str, str]) -> Question:
    if not isinstance(raw, dict):
        msg = "it is no JSON object"
        raise ValueError(msg)
    if not isinstance(raw["input"], str):
        msg = f"'input' is {raw['input']!r}, and no text"
        raise ValueError(msg)
    document = raw["_id"]
    if document not in documents:
        msg = f"there is no document '{document}'"
        raise ValueError(msg)
    spans = tuple((int(start), int(end)) for start, end in raw.get("spans") or ())
    for start, end in spans:
        if not 0 <= start <= end <= len(documents[document]):
            msg = f"the span [{start}, {end}] does not lie in '{document}' ({len(documents[document])} characters)"
            raise ValueError(msg)
    answers, facts = _texts(raw.get("answers"), "answers"), _texts(raw.get("facts"), "facts")
    return Question(raw["input"], document, _texts(raw["evidences"], "evidences"), spans, answers, facts)


def _texts(values: Any, name: str) -> tuple[str, ...]:
    """A list of texts; a single text is one, not its characters."""
    texts = [values] if isinstance(values, str) else list(values or ())
    if not all(isinstance(text, str) for text in texts):
        msg = f"'{name}' holds something that is no text"
        raise ValueError(msg)
    return tuple(texts)
