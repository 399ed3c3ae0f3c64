# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Hierarchical chunking, and retrieval within a token budget, for Haystack."""

from importlib.metadata import version

from hichunk_haystack.loading import load_pipeline

__version__ = version("hichunk-haystack")

__all__ = ["__version__", "load_pipeline"]
