# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Filters in Qdrant's form, with one condition for a list of values."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

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


_FIELD = re.compile(r"id|meta(?:\.[A-Za-z0-9_-]+)+")

Test = Callable[[Mapping[str, Any]], bool]


class QuickTest(NamedTuple):
    """
    A filter as a function.

    :param fields: What of a payload it looks at.
    :param holds: Says of a payload whether it matches.
    """

    fields: list[str]
    holds: Test

    def points(self, records: Iterable[rest.Record]) -> rest.PointIdsList:
        """
        Gives the points that match.

        :param records: Points with these fields.
        :returns: Their ids.
        """
        return rest.PointIdsList(points=[record.id for record in records if self.holds(record.payload or {})])


def quick_test(filters: Any) -> QuickTest | None:
    """
    Make a function of a filter, which costs the same for one value as for a thousand.

    The embedded engine compares each point with each value: a thousand sources that are written again would take a
    minute. For a single value it takes three times as long, too.

    :param filters: A Haystack filter.
    :returns: What finds the same points as `compact_filter`; `None` where there is anything in it besides "==", "in"
        and "not in" with texts or whole numbers, AND and OR.
    """
    fields: dict[str, None] = {}
    test = _test(filters, fields)
    return None if test is None else QuickTest(list(fields), test)


def _test(filters: Any, fields: dict[str, None]) -> Test | None:
    if not isinstance(filters, dict):
        return None
    operator = filters.get("operator")
    if operator in ("AND", "OR"):
        tests = [_test(each, fields) for each in filters.get("conditions") or ()]
        known = [test for test in tests if test is not None]
        if not known or len(known) < len(tests):
            return None
        return (
            (lambda payload: all(test(payload) for test in known))
            if operator == "AND"
            else (lambda payload: any(test(payload) for test in known))
        )
    field, values = filters.get("field"), filters.get("value")
    if operator == "==":
        operator, values = "in", [values]
    if operator not in ("in", "not in") or not isinstance(field, str) or not _FIELD.fullmatch(field):
        return None
    if not isinstance(values, list) or {type(value) for value in values} not in ({str}, {int}):
        return None
    fields[field] = None
    wanted, path = frozenset(values), field.split(".")
    is_in = operator == "in"
    return lambda payload: _matches(_value(payload, path), wanted) is is_in


def _value(payload: Any, path: Sequence[str]) -> Any:
    for name in path:
        if not isinstance(payload, dict):
            return None
        payload = payload.get(name)
    return payload


def _matches(value: Any, wanted: frozenset[Any]) -> bool:
    # True is 1 and 1.0 is 1 to Python, not to Qdrant.
    return any(type(each) in (str, int) and each in wanted for each in (value if isinstance(value, list) else (value,)))


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
