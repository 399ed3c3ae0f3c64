# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""The store of a pipeline, without the rest of it."""

from typing import Any, NamedTuple

from hichunk_haystack.cli.errors import UserError
from hichunk_haystack.cli.specs import PipelineSpec


class OpenStore(NamedTuple):
    """
    A store.

    :param store: The document store.
    :param source_key: Name of the meta field that identifies a source.
    """

    store: Any
    source_key: str


def open_store(spec: PipelineSpec) -> OpenStore:
    """
    Make the store that a pipeline writes to or reads.

    :param spec: The pipeline.
    :returns: The store.
    :raises UserError: If the pipeline has none, or nothing was ever indexed there.
    """
    name = _holder(spec)
    part = spec.part([name])
    part.require_index()
    return _store_of(part.load(), name)


def store_of(spec: PipelineSpec, pipeline: Any) -> OpenStore:
    """
    Give the store that a loaded pipeline writes to or reads.

    :param spec: The pipeline.
    :param pipeline: The same, loaded.
    :returns: The store.
    :raises UserError: If the pipeline has none.
    """
    return _store_of(pipeline, _holder(spec))


def has_store(spec: PipelineSpec) -> bool:
    """
    Say whether a pipeline has a store.

    :param spec: The pipeline.
    :returns: Whether it has.
    """
    return bool(_holders(spec))


def _holders(spec: PipelineSpec) -> list[str]:
    return [name for name, each in spec.components.items() if "document_store" in each["init_parameters"]]


def _holder(spec: PipelineSpec) -> str:
    holders = _holders(spec)
    writers = [name for name in holders if spec.class_of(name).endswith("Writer")]
    if not holders:
        msg = f"'{spec.path}' has no component with a `document_store`; name a pipeline that has one with --pipeline."
        raise UserError(msg)
    return (writers or holders)[0]


def _store_of(pipeline: Any, name: str) -> OpenStore:
    component = pipeline.get_component(name)
    return OpenStore(component.document_store, getattr(component, "source_key", "file_path"))
