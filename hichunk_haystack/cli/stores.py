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
    holders = [name for name, each in spec.components.items() if "document_store" in each["init_parameters"]]
    writers = [name for name in holders if spec.class_of(name).endswith("Writer")]
    if not holders:
        msg = f"'{spec.path}' has no component with a `document_store`; name a pipeline that has one with --pipeline."
        raise UserError(msg)
    name = (writers or holders)[0]
    part = spec.part([name])
    part.require_index()
    component: Any = part.load().get_component(name)
    return OpenStore(component.document_store, getattr(component, "source_key", "file_path"))
