# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Keeping libraries from writing between the lines, and from sending usage statistics."""

import logging
import os
import sys
import warnings
from typing import Any

# Read when the libraries are imported.
_QUIET = {
    "HAYSTACK_LOGGING_IGNORE_STRUCTLOG": "true",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
}


def set_up_logging(verbose: bool) -> None:
    """
    Show the libraries' log on standard error, or nothing of it.

    The loggers' levels stay as they are: a converter's warnings tell why a file was left out.

    :param verbose: Whether to show it.
    """
    os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")
    if verbose:
        logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
        return
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    warnings.filterwarnings("ignore")
    # Without any handler, Python writes warnings to standard error.
    logging.getLogger().addHandler(logging.NullHandler())


def hide_progress(pipeline: Any, *, always: bool = False) -> None:
    """
    Switch progress bars off where standard error is no terminal.

    :param pipeline: The pipeline.
    :param always: In terminals too, where there is nothing to wait for but one question.
    """
    if sys.stderr.isatty() and not always:
        return
    for name in pipeline.graph.nodes:
        instance = pipeline.get_component(name)
        for each in (instance, *vars(instance).values()):
            if getattr(each, "progress_bar", None) is True:
                each.progress_bar = False
