# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Which levels of trees to search, and the filters that keep a search to a level or to what lies under nodes."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from qdrant_client.http import models as rest

from hichunk_haystack.document_stores._filters import compact_filter
from hichunk_haystack.nodes import ANCESTORS, LEVEL

LEAF = "leaf"
INNER = "inner"

Level = int | str
"""A level of inner nodes (0 is the root's), `inner` for all of them, or `leaf`."""


def read_quotas(quotas: Mapping[Any, int], *, coarse_to_fine: bool) -> dict[Level, int]:
    """
    Check quotas, and put them in the order in which levels are searched from coarse to fine.

    :param quotas: Level -> how many nodes to find. Numbers may be strings, as they are in JSON.
    :param coarse_to_fine: Whether they are searched so.
    :returns: The quotas, from the root down, leaves last.
    :raises ValueError: If a level or number makes no sense; the message names it.
    """
    found: dict[Level, int] = {}
    for name, quota in quotas.items():
        level: Level | None = name if name in (LEAF, INNER) else _number(name)
        if level is None:
            msg = f"quotas names level {name!r}; levels are 'leaf', 'inner', and numbers from 0 (the root) on."
            raise ValueError(msg)
        if not isinstance(quota, int) or isinstance(quota, bool) or quota < 1:
            msg = f"quotas gives {quota!r} to level {name!r}; it must be a number of nodes, at least 1."
            raise ValueError(msg)
        if level in found:
            msg = f"quotas names level {name!r} twice."
            raise ValueError(msg)
        found[level] = quota
    if not found:
        msg = "quotas names no level; name some, such as {'leaf': 40, 'inner': 8}."
        raise ValueError(msg)
    if coarse_to_fine:
        if LEAF not in found or len(found) == 1:
            msg = f"From coarse to fine there must be 'leaf' and a level above it; quotas names {list(quotas)}."
            raise ValueError(msg)
        if INNER in found and len(found) > 2:  # noqa: PLR2004 - beside 'leaf' alone
            msg = "From coarse to fine 'inner' stands alone beside 'leaf': it holds all other levels."
            raise ValueError(msg)
    return dict(sorted(found.items(), key=lambda one: (one[0] == LEAF, one[0] if isinstance(one[0], int) else -1)))


def level_filter(level: Level, within: Sequence[str] | None, asked: Any) -> rest.Filter | None:
    """
    Keep a search of inner nodes to a level, and to what lies under nodes.

    :param level: The level.
    :param within: Ids of nodes; `None` for no such bound.
    :param asked: The user's filter.
    :returns: Qdrant's filter, `None` where nothing is bounded.
    """
    conditions: list[Any] = []
    if isinstance(level, int):
        conditions.append(rest.FieldCondition(key=f"meta.{LEVEL}", match=rest.MatchValue(value=level)))
    if within is not None:
        conditions.append(_under(within))
    return _all_of(conditions, asked)


def inside_filter(steps: Sequence[tuple[Level, Sequence[str]]], asked: Any) -> rest.Filter | None:
    """
    Keep a search of leaves to what lies inside the nodes found, level by level.

    A leaf that stands higher than a searched level has no node of that level above it. It is kept to what was found
    above it, and is not lost.

    :param steps: (level, ids of the nodes found there), from the root down. Where nothing was found nothing is bounded.
    :param asked: The user's filter.
    :returns: Qdrant's filter, `None` where nothing is bounded.
    """
    found = [(level if isinstance(level, int) else 0, ids) for level, ids in steps if ids]
    if not found:
        return _all_of([], asked)
    ways: list[Any] = [_not_below(found[0][0])]
    for (_, ids), (deeper, _) in pairwise(found):
        ways.append(rest.Filter(must=[_not_below(deeper), _under(ids)]))
    ways.append(_under(found[-1][1]))
    return _all_of([rest.Filter(should=ways)], asked)


def _number(name: Any) -> int | None:
    if isinstance(name, bool):
        return None
    if isinstance(name, str) and name.isascii() and name.isdigit():
        return int(name)
    return name if isinstance(name, int) and name >= 0 else None


def _under(ids: Sequence[str]) -> rest.FieldCondition:
    return rest.FieldCondition(key=f"meta.{ANCESTORS}[].id", match=rest.MatchAny(any=list(ids)))


def _not_below(level: int) -> rest.FieldCondition:
    return rest.FieldCondition(key=f"meta.{LEVEL}", range=rest.Range(lte=level))


def _all_of(conditions: list[Any], asked: Any) -> rest.Filter | None:
    wanted = compact_filter(asked)
    if wanted is not None:
        # First, as the embedded engine stops at the first condition that fails.
        conditions = [wanted, *conditions]
    return rest.Filter(must=conditions) if conditions else None
