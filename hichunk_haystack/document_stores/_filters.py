# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Filters in Qdrant's form, with one condition for a list of values."""

from typing import Any, cast

from haystack_integrations.document_stores.qdrant.filters import convert_filters_to_qdrant
from qdrant_client.http import models as rest


def compact_filter(filters: dict[str, Any] | rest.Filter | None) -> rest.Filter | None:
    """
    Convert a Haystack filter, with each "in" and "not in" as a single condition.

    Haystack's integration makes a condition of each value. The embedded engine tests them one by one for each point,
    which takes ten times as long for a filter on a hundred sources.

    :param filters: A Haystack filter, or one of Qdrant's own.
    :returns: Qdrant's filter that finds the same points.
    """
    converted = convert_filters_to_qdrant(filters)
    if not isinstance(converted, rest.Filter):
        return converted
    folded = _fold(converted)
    return folded if isinstance(folded, rest.Filter) else rest.Filter(must=[folded])


def _fold(condition: Any) -> Any:
    if not isinstance(condition, rest.Filter):
        return condition
    should, must_not = _any_of(condition.should), _any_of(condition.must_not)
    alone = not condition.must and condition.min_should is None
    if should is not None and alone and not condition.must_not:
        return should
    if must_not is not None and alone and not condition.should:
        return rest.Filter(must_not=[must_not])
    parts = {name: getattr(condition, name) for name in ("must", "should", "must_not")}
    folded = {name: [_fold(part) for part in value] for name, value in parts.items() if isinstance(value, list)}
    return condition.model_copy(update=folded)


def _any_of(conditions: Any) -> rest.FieldCondition | None:
    """Several "equals" on one field as one "any of", where the values are of a kind that Qdrant takes together."""
    if not isinstance(conditions, list) or len(conditions) < 2:  # noqa: PLR2004 - one value is no list
        return None
    values = []
    for each in conditions:
        plain = rest.FieldCondition(key=each.key, match=each.match) if isinstance(each, rest.FieldCondition) else None
        if plain is None or plain != each or not isinstance(each.match, rest.MatchValue):
            return None
        values.append(each.match.value)
    same_field = len({each.key for each in conditions}) == 1
    kinds = {type(value) for value in values}
    if not same_field or kinds not in ({str}, {int}):
        return None
    return rest.FieldCondition(key=conditions[0].key, match=rest.MatchAny(any=cast(list[str], values)))
