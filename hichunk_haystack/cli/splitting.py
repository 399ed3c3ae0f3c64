# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Splitting files as an indexing pipeline does, without its embedder and its store."""

from typing import Any

from hichunk_haystack.cli.errors import UserError
from hichunk_haystack.cli.quiet import hide_progress
from hichunk_haystack.cli.screen import working
from hichunk_haystack.cli.specs import PipelineSpec


def paths_socket(spec: PipelineSpec, pipeline: Any) -> tuple[str, str]:
    """
    Find where a pipeline takes paths.

    :param spec: The pipeline.
    :param pipeline: The same, loaded.
    :returns: Component and socket.
    :raises UserError: If there is no such place.
    """
    declared = spec.declared("paths")
    if declared:
        return declared[0]
    for wanted in ("paths", "sources"):
        for name, sockets in pipeline.inputs().items():
            if wanted in sockets:
                return name, wanted
    msg = f"'{spec.path}' takes no files: it needs a component with an open input `paths`, such as a FileConverter."
    raise UserError(msg)


def split_file(spec: PipelineSpec, file: str) -> list[Any]:
    """
    Split a file, or all files of a folder.

    :param spec: An indexing pipeline.
    :param file: The path.
    :returns: The nodes.
    :raises UserError: If there is no splitter, or the file can't be read.
    """
    splitters = [name for name in spec.components if spec.class_of(name).endswith("Splitter")]
    if not splitters:
        msg = f"'{spec.path}' has no splitter; name a pipeline that indexes with --pipeline."
        raise UserError(msg)
    # Of several the one that comes last: what goes into it has been through the others.
    splitter = max(splitters, key=lambda name: len(spec.above(name)))
    part = spec.part(spec.above(splitter))
    with working("Splitting ..."):
        pipeline = part.load()
        hide_progress(pipeline, always=True)
        component, socket = paths_socket(part, pipeline)
        result = pipeline.run({component: {socket: [file]}}, include_outputs_from={component, splitter})
    nodes = result.get(splitter, {}).get("documents") or []
    failed = result.get(component, {}).get("failed") or []
    if not nodes:
        reason = failed[0]["error"] if failed else "There is no text of a type that is known; --pipeline may know more."
        msg = f"'{file}' can't be split. {reason}"
        raise UserError(msg)
    return list(nodes)
