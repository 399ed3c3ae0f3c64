# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What the evaluators have in common: inputs that go together, and means that leave out what is not known."""

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any


def check_lengths(**inputs: Sequence[Any] | None) -> int:
    """
    Check that lists tell of the same questions.

    :param inputs: The lists by name; those that are `None` were not given.
    :returns: Their length.
    :raises ValueError: If they have different lengths, or something is no list.
    """
    given = {name: values for name, values in inputs.items() if values is not None}
    for name, values in given.items():
        if isinstance(values, str) or not isinstance(values, Sequence):
            msg = f"{name} is a {type(values).__name__}; it must be a list with an entry for each question."
            raise ValueError(msg)
    lengths = {name: len(values) for name, values in given.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} {length}" for name, length in lengths.items())
        msg = f"The inputs must have an entry for each question, but have different lengths: {told}."
        raise ValueError(msg)
    return next(iter(lengths.values()), 0)


def mean(scores: Iterable[float | None]) -> float | None:
    """
    Average scores.

    :param scores: Scores; `None` where there is none.
    :returns: The mean of those that are there, `None` if there are none.
    """
    known = [score for score in scores if score is not None]
    return fmean(known) if known else None
