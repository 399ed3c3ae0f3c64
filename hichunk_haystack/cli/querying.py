# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Asking a query's pipeline, whatever its components are called."""

from dataclasses import dataclass, field
from typing import Any

from hichunk_haystack.cli.errors import UserError
from hichunk_haystack.cli.quiet import hide_progress
from hichunk_haystack.cli.screen import working
from hichunk_haystack.cli.settings import BUILDER, MERGER
from hichunk_haystack.cli.specs import PipelineSpec, filled_by

_QUESTION = ("query", "question", "text")


@dataclass
class Answer:
    """
    What came of a question.

    :param trace: The merge's trace.
    :param merged: The documents that the merge gave.
    :param context: The context with its citations; `None` where the pipeline builds none.
    :param citations: Its citations.
    :param documents: The documents in it.
    :param tokens_used: Its tokens; without a context those of the merge.
    :param token_budget: The budget that these keep to.
    :param replies: What a language model in the pipeline said.
    """

    trace: dict[str, Any]
    merged: list[Any]
    context: str | None = None
    citations: list[dict[str, Any]] = field(default_factory=list)
    documents: list[Any] = field(default_factory=list)
    tokens_used: int = 0
    token_budget: int = 0
    replies: list[str] = field(default_factory=list)


def run_query(spec: PipelineSpec, question: str) -> Answer:
    """
    Ask a question.

    :param spec: A pipeline with a merge.
    :param question: The question.
    :returns: The answer.
    :raises UserError: If the pipeline takes no question, or there is nothing to search.
    """
    with working("Searching ..."):
        return _run(spec, question)


def _run(spec: PipelineSpec, question: str) -> Answer:
    pipeline = spec.load()
    hide_progress(pipeline, always=True)
    places = spec.declared(*_QUESTION) or [
        (name, socket)
        for name, sockets in pipeline.inputs().items()
        for socket, facts in sockets.items()
        if socket in _QUESTION and facts["type"] is str
    ]
    if not places:
        msg = f"'{spec.path}' takes no question: declare `inputs: {{query: component.socket}}`."
        raise UserError(msg)
    data: dict[str, dict[str, Any]] = {}
    for name, socket in places:
        data.setdefault(name, {})[socket] = question
    merger, builders = spec.find(MERGER)[-1], spec.find(BUILDER)[-1:]
    result = pipeline.run(data, include_outputs_from={merger, *builders})
    merge, built = result.get(merger, {}), result.get(builders[0], {}) if builders else {}
    if not merge.get("trace", {}).get("hits"):
        component: Any = pipeline.get_component(merger)
        if component.document_store.count_documents() == 0:
            filling = filled_by(spec)
            command = f"`hichunk index PATHS{'' if filling in (None, 'indexing') else f' -p {filling}'}`"
            whose = "" if filling else " and the --pipeline that belongs to it"
            msg = (
                f"The index that '{spec.path.name}' searches is empty: fill it with {command}{whose}, or name another "
                "one with --store."
            )
            raise UserError(msg)
    if "trace" not in merge:
        msg = f"The question never came to the merge of '{spec.path}': check its connections."
        raise UserError(msg)
    replies = [outputs["reply"] for outputs in result.values() if outputs.get("reply")]
    replies += [reply for outputs in result.values() for reply in outputs.get("replies") or ()]
    # A merge may have a part of the budget only.
    budget = getattr(pipeline.get_component(builders[0]), "token_budget", None) if built else None
    return Answer(
        trace=merge["trace"],
        merged=merge["documents"],
        context=built.get("context"),
        citations=built.get("citations", []),
        documents=built.get("documents", merge["documents"]),
        tokens_used=built.get("tokens_used", merge["trace"]["tokens_used"]),
        token_budget=budget or merge["trace"]["token_budget"],
        replies=[str(getattr(reply, "text", reply)) for reply in replies],
    )
