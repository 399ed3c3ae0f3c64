# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""YAML pipelines before they are loaded: parts of them are found by type, changed, and loaded alone."""

import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from hichunk_haystack.cli.errors import WRONG_USE, UserError, explain
from hichunk_haystack.pipeline_files import pipeline_file, pipeline_folder

if TYPE_CHECKING:
    from haystack import Pipeline

QDRANT_STORE = "HierarchyQdrantDocumentStore"
_PLACE = ("location", "url", "host", "path")

# Names of classes that may need PyTorch.
_HEAVY = ("Embedder", "Ranker", "Semantic", "Late", "Generator")


class _Loader(yaml.SafeLoader):
    """YAML as Haystack reads it."""


def _tuple(loader: _Loader, node: Any) -> tuple[Any, ...]:
    return tuple(loader.construct_sequence(node))


_Loader.add_constructor("tag:yaml.org,2002:python/tuple", _tuple)


@dataclass
class PipelineSpec:
    """
    A pipeline as its YAML has it.

    :param path: Where it was read.
    :param data: What stands there.
    """

    path: Path
    data: dict[str, Any]

    @property
    def components(self) -> dict[str, dict[str, Any]]:
        """Components by name."""
        found: dict[str, dict[str, Any]] = self.data["components"]
        return found

    def class_of(self, name: str) -> str:
        """Give the class of a component, without its module."""
        return class_name(self.components[name])

    def find(self, *classes: str) -> list[str]:
        """Give the names of the components of some classes."""
        return [name for name in self.components if self.class_of(name) in classes]

    def edges(self) -> list[tuple[str, str]]:
        """Give the names of the components that are connected."""
        ends = [(each["sender"], each["receiver"]) for each in self.data.get("connections") or ()]
        return [(sender.split(".")[0], receiver.split(".")[0]) for sender, receiver in ends]

    def above(self, name: str) -> list[str]:
        """Give the names of a component and of all that it depends on."""
        found, new = {name}, [name]
        while new:
            receiver = new.pop()
            for sender in [one for one, other in self.edges() if other == receiver and one not in found]:
                found.add(sender)
                new.append(sender)
        return [each for each in self.components if each in found]

    def part(self, names: Iterable[str]) -> "PipelineSpec":
        """Give a pipeline of some of the components, connected as they are here."""
        kept = set(names)
        connections = [
            each
            for each, ends in zip(self.data.get("connections") or (), self.edges(), strict=True)
            if kept.issuperset(ends)
        ]
        components = {name: value for name, value in self.components.items() if name in kept}
        return PipelineSpec(self.path, {**self.data, "components": components, "connections": connections})

    def declared(self, *names: str) -> list[tuple[str, str]]:
        """Give component and socket of what the YAML declares as an input of one of some names."""
        inputs = self.data.get("inputs")
        inputs = inputs if isinstance(inputs, dict) else {}
        for name in names:
            paths = inputs.get(name) or []
            found = [path.partition(".") for path in ([paths] if isinstance(paths, str) else paths)]
            if found:
                return [(component, socket) for component, _, socket in found if component in self.components]
        return []

    def move_stores(self, place: str | None) -> None:
        """
        Put all our stores elsewhere, for all of this process.

        :param place: A folder, or the URL of a server; `None` leaves them where they are.
        :raises UserError: If there is no store of ours.
        """
        if place is None:
            return
        stores = [each["init_parameters"] for each in typed(self.data) if class_name(each) == QDRANT_STORE]
        if not stores:
            msg = f"--store moves a {QDRANT_STORE}, and '{self.path}' has none; change the YAML instead."
            raise UserError(msg, WRONG_USE)
        for parameters in stores:
            for key in _PLACE:
                parameters.pop(key, None)
        is_url = place.startswith(("http://", "https://"))
        os.environ.pop("QDRANT_URL", None)
        os.environ["QDRANT_URL" if is_url else "QDRANT_PATH"] = place

    def require_index(self) -> None:
        """
        Check that there is an index, before the store makes an empty one.

        :raises UserError: If there is no such folder.
        """
        for each in typed(self.data):
            parameters = each["init_parameters"]
            if class_name(each) != QDRANT_STORE or any(parameters.get(key) for key in _PLACE if key != "path"):
                continue
            if os.environ.get("QDRANT_URL", "").strip():
                continue
            folder = os.environ.get("QDRANT_PATH", "").strip() or parameters.get("path") or "qdrant_data"
            if not os.path.isdir(os.path.expanduser(folder)):
                msg = f"There is no index in '{folder}': make one with `hichunk index PATHS`, or name it with --store."
                raise UserError(msg)

    def indexes(self) -> set[str]:
        """Give the names of the collections that our stores write or read."""
        return {
            str(each["init_parameters"].get("index"))
            for each in typed(self.data["components"])
            if class_name(each) == QDRANT_STORE
        }

    def load(self) -> "Pipeline":
        """
        Make the pipeline.

        :returns: The pipeline.
        :raises UserError: If it can't be made.
        """
        with _without_torch(self):
            from haystack import Pipeline

            from hichunk_haystack.loading import ALLOWED_MODULES
        try:
            return Pipeline.from_dict(self.data, allowed_modules=ALLOWED_MODULES)
        except Exception as error:  # whatever components raise when they are made
            refused = re.search(r"Refusing to deserialize .*? module '([^']+)'", str(error))
            reason = explain(error)
            if refused:
                reason = (
                    f"it names the module '{refused[1]}', which Haystack is not told to trust. If you do, set "
                    f"HAYSTACK_DESERIALIZATION_ALLOWLIST={refused[1].split('.')[0]}."
                )
            msg = f"'{self.path}' can't be loaded: {reason}"
            raise UserError(msg) from error


def read_spec(name: str | None, default: str, store: str | None = None) -> PipelineSpec:
    """
    Read a pipeline's YAML.

    :param name: Path of a file, or name of a pipeline that comes along.
    :param default: Name of the one to take when none is given.
    :param store: Where to put its stores.
    :returns: The pipeline.
    :raises UserError: If it can't be read, or is no pipeline.
    """
    path = Path(name) if name is not None else pipeline_file(default)
    if name is not None and not path.exists():
        try:
            path = pipeline_file(name)
        except FileNotFoundError as error:
            raise UserError(str(error), WRONG_USE) from None
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506 - it is a safe loader
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        msg = f"'{path}' is no YAML: {' '.join(str(error).split())}."
        raise UserError(msg) from None
    components = data.get("components") if isinstance(data, dict) else None
    if not isinstance(components, dict) or not all(
        isinstance(each, dict) and isinstance(each.get("type"), str) for each in components.values()
    ):
        example = pipeline_file(default)
        msg = f"'{path}' is no pipeline: under `components` it needs a `type` for each, as '{example}' has."
        raise UserError(msg)
    for each in components.values():
        each["init_parameters"] = each.get("init_parameters") or {}
    connections = data.get("connections") or []
    if not all(isinstance(each, dict) and {"sender", "receiver"} <= each.keys() for each in connections):
        msg = f"'{path}' is no pipeline: each of `connections` needs a `sender` and a `receiver`."
        raise UserError(msg)
    spec = PipelineSpec(path, data)
    spec.move_stores(store)
    return spec


def filled_by(spec: PipelineSpec) -> str | None:
    """
    Find the indexing pipeline that belongs to a query's.

    :param spec: The query's pipeline.
    :returns: Name of the first one that comes along and writes to what the query searches; `None` if there is none.
    """
    searched = spec.indexes()
    names = sorted(file.stem for file in pipeline_folder().glob("indexing*.yml"))
    return next((name for name in names if searched and read_spec(name, name).indexes() == searched), None)


def typed(value: Any) -> Iterator[dict[str, Any]]:
    """
    Find what is serialised in a value, components and what they hold.

    :param value: Data of a pipeline, or part of it.
    :returns: The dictionaries with a type and parameters.
    """
    if isinstance(value, dict):
        if isinstance(value.get("type"), str) and isinstance(value.get("init_parameters"), dict):
            yield value
        for each in value.values():
            yield from typed(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from typed(each)


def class_name(data: dict[str, Any]) -> str:
    """
    Give the class of something serialised, without its module.

    :param data: It.
    :returns: The name.
    """
    return str(data["type"]).rsplit(".", 1)[-1]


@contextmanager
def _without_torch(spec: PipelineSpec) -> Iterator[None]:
    """
    Let Haystack be imported without PyTorch where nothing needs it.

    Haystack imports it for the names of devices when it is installed, which takes longer than all the rest.
    """
    types = [each["type"] for each in typed(spec.data["components"])]
    ours = all(each.startswith("hichunk_haystack.") and not any(word in each for word in _HEAVY) for each in types)
    if not ours or "haystack" in sys.modules or "torch" in sys.modules:
        yield
        return
    modules: dict[str, Any] = sys.modules
    modules["torch"] = None  # to import it fails, as where it is not installed
    try:
        yield
    finally:
        del sys.modules["torch"]
