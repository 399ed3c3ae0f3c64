# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Settings of a query that are changed for one run: budget, number of hits, options of the merge."""

import inspect
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import yaml

from hichunk_haystack.budgets import share_budget
from hichunk_haystack.cli.errors import WRONG_USE, UserError
from hichunk_haystack.cli.specs import PipelineSpec, class_name, typed

MERGER = "BudgetAutoMergingRetriever"
BUILDER = "ContextBuilder"
_EXPANDER = "NeighbourExpander"
_BUDGET, _TOP_K = "token_budget", "top_k"
_SHORT = {"budget": _BUDGET, "top-k": _TOP_K}
_NOT_SET_HERE = ("self", "document_store", "token_counter")


def parse_settings(texts: Sequence[str], **named: Any) -> dict[str, Any]:
    """
    Read settings.

    :param texts: Texts of the form "NAME=VALUE", several of them in one divided by commas.
    :param named: Settings that have options of their own; `None` where they are not given.
    :returns: Values by name.
    :raises UserError: If one can't be read.
    """
    found: dict[str, Any] = {}
    for text in [part for one in texts for part in one.split(",")]:
        name, sign, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not (sign and name and value.strip()):
            msg = f"'{text}' is no setting: write NAME=VALUE, such as policy=ratio or budget=2048."
            raise UserError(msg, WRONG_USE)
        try:
            found[_SHORT.get(name, name)] = yaml.safe_load(value)
        except yaml.YAMLError:
            found[_SHORT.get(name, name)] = value.strip()
    return found | {_SHORT.get(name, name): value for name, value in named.items() if value is not None}


def with_settings(spec: PipelineSpec, settings: dict[str, Any]) -> PipelineSpec:
    """
    Change settings in a query's pipeline.

    :param spec: The pipeline. It is not changed.
    :param settings: `token_budget` for all that keep to one, each its share of it; `top_k` for all that search; and
        options of the merge.
    :returns: The pipeline with the settings.
    :raises UserError: If there is no merge in it, or a setting makes no sense.
    """
    spec = PipelineSpec(spec.path, deepcopy(spec.data))
    mergers = spec.find(MERGER)
    if not mergers:
        msg = f"'{spec.path}' has no {MERGER}, which `hichunk` needs to ask: start from `query.yml`."
        raise UserError(msg)
    for name, value in settings.items():
        if name == _BUDGET:
            keepers = [*mergers, *spec.find(_EXPANDER, BUILDER)]
            given = {each: spec.components[each]["init_parameters"].get(_BUDGET) for each in keepers}
            own = {each: tokens if isinstance(tokens, int) else None for each, tokens in given.items()}
            for each, tokens in share_budget(own, value).items():
                spec.components[each]["init_parameters"][_BUDGET] = tokens
            continue
        if name == _TOP_K:
            above = [spec.components[each] for merger in mergers for each in spec.above(merger) if each not in mergers]
            takers = [each["init_parameters"] for each in typed(above) if _searches(each)]
        else:
            takers = [spec.components[each]["init_parameters"] for each in mergers]
        for parameters in takers:
            parameters[name] = value
    return spec


def check_settings(settings: dict[str, Any]) -> None:
    """
    Check settings before a model is loaded for them.

    :param settings: The settings.
    :raises UserError: If one makes no sense.
    """
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    from hichunk_haystack.components.retrievers import BudgetAutoMergingRetriever

    known = [
        name for name in inspect.signature(BudgetAutoMergingRetriever.__init__).parameters if name not in _NOT_SET_HERE
    ]
    for name in settings:
        if name not in (*known, _TOP_K):
            msg = f"There is no setting '{name}'; there are {_TOP_K}, budget, {', '.join(known)}."
            raise UserError(msg, WRONG_USE)
    top_k = settings.get(_TOP_K, 1)
    if not isinstance(top_k, int) or top_k < 1:
        msg = f"{_TOP_K} is {top_k}; it must be a whole number from 1 on."
        raise UserError(msg, WRONG_USE)
    try:
        BudgetAutoMergingRetriever(
            InMemoryDocumentStore(), **{name: value for name, value in settings.items() if name != _TOP_K}
        )
    except ValueError as error:
        raise UserError(str(error), WRONG_USE) from None
    except TypeError:
        shown = ", ".join(f"{name}={value}" for name, value in settings.items())
        msg = f"A value of {shown} is of the wrong kind, such as a text for a number."
        raise UserError(msg, WRONG_USE) from None


def label_of(settings: dict[str, Any]) -> str:
    """
    Name a run by its settings.

    :param settings: The settings.
    :returns: The label; "as in the YAML" without any.
    """
    return ", ".join(f"{name}={value}" for name, value in settings.items()) or "as in the YAML"


def _searches(data: dict[str, Any]) -> bool:
    return class_name(data).endswith("Retriever") or _TOP_K in data["init_parameters"]
