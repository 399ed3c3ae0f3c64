# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""The project's YAML pipelines, used by the names of their `inputs` and `outputs`, as hayhooks does."""

from pathlib import Path
from typing import Any

import yaml
from haystack import Pipeline

PIPELINES = Path(__file__).resolve().parents[1] / "pipelines"
INDEXING = PIPELINES / "indexing.yml"
QUERY = PIPELINES / "query.yml"


def declared(file: Path, kind: str) -> dict[str, list[str]]:
    """
    Read what a pipeline declares.

    :param file: The YAML file.
    :param kind: "inputs" or "outputs".
    :returns: Name -> paths of the form "component.socket".
    """
    paths = yaml.safe_load(file.read_text(encoding="utf-8"))[kind]
    return {name: [path] if isinstance(path, str) else path for name, path in paths.items()}


def data(file: Path, **values: Any) -> dict[str, dict[str, Any]]:
    """
    Put values into the places that a pipeline declares for them.

    :param file: The YAML file.
    :param values: A value for each declared input.
    :returns: What `Pipeline.run` takes.
    """
    result: dict[str, dict[str, Any]] = {}
    for name, paths in declared(file, "inputs").items():
        for path in paths:
            component, socket = path.split(".")
            result.setdefault(component, {})[socket] = values[name]
    return result


def served(file: Path, result: dict[str, Any]) -> dict[str, Any]:
    """
    Take the declared outputs from a pipeline's result, in Python or over HTTP.

    :param file: The YAML file.
    :param result: Component -> outputs.
    :returns: Name -> value.
    """
    found = {}
    for name, (path,) in declared(file, "outputs").items():
        component, socket = path.split(".")
        found[name] = result[component][socket]
    return found


def index(pipeline: Pipeline, *paths: str | Path) -> dict[str, Any]:
    """
    Index files with the indexing pipeline.

    :param pipeline: The pipeline.
    :param paths: Files and folders.
    :returns: Its declared outputs.
    """
    return served(INDEXING, pipeline.run(data(INDEXING, paths=[str(path) for path in paths])))


def indexed(leaves: int, *, added: int = 0, replaced: int = 0, unchanged: int = 0, deleted: int = 0) -> dict[str, Any]:
    """
    Tell what the indexing pipeline answers when no file failed.

    :param leaves: Leaves written.
    :param added: Sources that are new.
    :param replaced: Sources that were there in another version.
    :param unchanged: Sources that were left alone.
    :param deleted: Nodes of older versions that were deleted.
    :returns: Its declared outputs.
    """
    return {
        "sources": added + replaced, "leaves": leaves, "added": added, "replaced": replaced, "unchanged": unchanged,
        "deleted": deleted, "failed": [],
    }  # fmt: skip


def ask(pipeline: Pipeline, question: str, token_budget: int | None = None) -> dict[str, Any]:
    """
    Ask the query pipeline.

    :param pipeline: The pipeline.
    :param question: The question.
    :param token_budget: The budget for this query, given to every component that takes one.
    :returns: Its declared outputs.
    """
    return served(QUERY, pipeline.run(with_budget(pipeline, data(QUERY, query=question), token_budget)))


def with_budget(
    pipeline: Pipeline, inputs: dict[str, dict[str, Any]], token_budget: int | None
) -> dict[str, dict[str, Any]]:
    """
    Add a budget to what a query gets.

    :param pipeline: The pipeline.
    :param inputs: What `Pipeline.run` takes.
    :param token_budget: The budget; `None` leaves those of the YAML.
    :returns: The inputs with the budget.
    """
    if token_budget is None:
        return inputs
    takers = [name for name, sockets in pipeline.inputs().items() if "token_budget" in sockets]
    assert takers, "no component takes a budget for a query"
    return inputs | {name: inputs.get(name, {}) | {"token_budget": token_budget} for name in takers}


def edited(file: Path, folder: Path, *changes: tuple[str, str]) -> Path:
    """
    Write a changed copy of a pipeline.

    :param file: The YAML file.
    :param folder: Where the copy goes.
    :param changes: Pairs of a text that the file holds and what stands there instead.
    :returns: Path of the copy.
    """
    text = file.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text, f"{file.name} does not hold '{old}'"
        text = text.replace(old, new)
    copy = folder / file.name
    copy.write_text(text, encoding="utf-8")
    return copy
