# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Hierarchical chunking, and retrieval within a token budget, for Haystack."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hichunk_haystack.loading import load_pipeline

    __version__: str

__all__ = ["__version__", "load_pipeline"]


def __getattr__(name: str) -> Any:
    """Haystack takes seconds to import: it is not, before something needs it."""
    value: Any
    if name == "load_pipeline":
        from hichunk_haystack.loading import load_pipeline

        value = load_pipeline
    elif name == "__version__":
        from importlib.metadata import version

        value = version("hichunk-haystack")
    else:
        msg = f"module '{__name__}' has no attribute '{name}'"
        raise AttributeError(msg)
    globals()[name] = value
    return value
