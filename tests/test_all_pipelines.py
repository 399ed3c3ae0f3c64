# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What holds for every YAML file in `pipelines/`: it loads, comes back as it was dumped, and names real sockets."""

from pathlib import Path

import pytest
import yaml
from haystack import Pipeline

from hichunk_haystack import load_pipeline
from tests.pipeline_files import PIPELINES, declared

each = pytest.mark.parametrize("file", sorted(PIPELINES.glob("*.yml")), ids=lambda file: file.stem)


@each
def test_loads_and_comes_back_as_it_was_dumped(file: Path) -> None:
    once = load_pipeline(file)
    text = once.dumps()
    again = Pipeline.loads(text, allowed_modules=["hichunk_haystack"])
    assert again.to_dict() == once.to_dict()
    assert again.dumps() == text
    # hayhooks reads it so, and knows no Python tuples.
    assert yaml.safe_load(text) == once.to_dict()


@each
def test_a_dump_names_what_the_file_names(file: Path) -> None:
    written = yaml.safe_load(file.read_text(encoding="utf-8"))
    dumped = load_pipeline(file).to_dict()
    assert dumped["components"].keys() == written["components"].keys()
    for name, one in written["components"].items():
        assert dumped["components"][name]["type"] == one["type"]
        assert _holds(dumped["components"][name]["init_parameters"], one["init_parameters"]), name


def _holds(dumped: object, written: object) -> bool:
    """Everything written is in the dump; the dump has the defaults besides."""
    if isinstance(written, dict) and isinstance(dumped, dict):
        return all(name in dumped and _holds(dumped[name], value) for name, value in written.items())
    return dumped == written


@each
def test_declared_sockets_are_real_and_required_ones_declared(file: Path) -> None:
    pipeline = load_pipeline(file)
    takes = pipeline.inputs()
    gives = pipeline.outputs(include_components_with_connected_outputs=True)
    for kind, sockets in (("inputs", takes), ("outputs", gives)):
        for name, paths in declared(file, kind).items():
            for path in paths:
                component, socket = path.split(".")
                assert socket in sockets.get(component, {}), f"{kind}: {name}: {path}"
    named = {path for paths in declared(file, "inputs").values() for path in paths}
    for component, sockets in takes.items():
        for name, socket in sockets.items():
            assert not socket["is_mandatory"] or f"{component}.{name}" in named


@each
def test_all_stores_of_a_file_are_set_alike(file: Path) -> None:
    components = yaml.safe_load(file.read_text(encoding="utf-8"))["components"]
    stores = [
        one["init_parameters"]["document_store"]
        for one in components.values()
        if "document_store" in one["init_parameters"]
    ]
    assert all(store == stores[0] for store in stores)
