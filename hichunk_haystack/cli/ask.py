# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""`hichunk ask`."""

from typing import Annotated, Any

import typer

from hichunk_haystack.cli.errors import WRONG_USE, UserError
from hichunk_haystack.cli.options import AsJson, Budget, PipelineName, Policy, Set, Store, TopK, Verbose
from hichunk_haystack.cli.querying import Answer, run_query
from hichunk_haystack.cli.screen import amount, say, say_json
from hichunk_haystack.cli.settings import check_settings, parse_settings, with_settings
from hichunk_haystack.cli.specs import PipelineSpec, read_spec


def ask(
    question: Annotated[str, typer.Argument(help="The question, in quotes.")],
    budget: Budget = None,
    policy: Policy = None,
    top_k: TopK = None,
    more: Set = None,
    pipeline: PipelineName = None,
    store: Store = None,
    as_json: AsJson = False,
    verbose: Verbose = False,  # noqa: ARG001 - the guard around commands reads it
) -> None:
    """Ask the index: the context with its citations, what merged, and the tokens used."""
    settings = parse_settings(more or [], budget=budget, policy=policy, top_k=top_k)
    answer = run_query(prepare(read_spec(pipeline, "query", store), settings, question), question)
    if as_json:
        say_json({"question": question, **_as_data(answer)})
    else:
        _tell(answer)


def prepare(spec: PipelineSpec, settings: dict[str, Any], question: str) -> PipelineSpec:
    """
    Check what can be checked before a model is loaded.

    :param spec: The pipeline.
    :param settings: Settings for this run.
    :param question: The question.
    :returns: The pipeline with the settings.
    :raises UserError: If something is wrong with them, or there is no index.
    """
    if not question.strip():
        msg = "The question is empty: write it in quotes."
        raise UserError(msg, WRONG_USE)
    changed = with_settings(spec, settings)
    changed.require_index()
    if settings:
        check_settings(settings)
    return changed


def _as_data(answer: Answer) -> dict[str, Any]:
    found = {
        "context": answer.context,
        "citations": answer.citations,
        "documents": answer.documents,
        "tokens_used": answer.tokens_used,
        "token_budget": answer.token_budget,
        "trace": answer.trace,
    }
    return {"replies": answer.replies, **found} if answer.replies else found


def _tell(answer: Answer) -> None:
    for reply in answer.replies:
        say(reply, "\n")
    if answer.context is not None:
        say(answer.context or "Nothing was found.", "\n")
    else:
        for document in answer.documents:
            say(document.content or "", "\n")
    trace = answer.trace
    shown = _shown(answer)
    for node in trace["nodes"]:
        if node["merged"]:
            place = " > ".join([trace["sources"].get(node["source_id"]) or node["source_id"], *node["headings"]])
            hits, tokens = amount(len(node["hits"]), "leaf"), amount(node["tokens"], "token")
            rest = "" if node["id"] in shown else " (left out of the context: no room)"
            say(("merged ", "green"), f"{hits} into one passage of {tokens}: {place}{rest}")
    left_out = sum(hit["outcome"] == "left_out" for hit in trace["hits"])
    say(
        f"{amount(len(trace['hits']), 'leaf')} found, {amount(len(answer.documents), 'passage')} returned, ",
        f"{left_out} left out; " if left_out else "",
        (f"{answer.tokens_used:,} of {amount(answer.token_budget, 'token')} used", "bold"),
    )


def _shown(answer: Answer) -> set[str]:
    """Ids of the merge's nodes that stand in the context: themselves, or within what has been put in their place."""
    documents = {document.id for document in answer.documents}
    shown = {node for part in answer.trace["documents"] if part["id"] in documents for node in part["nodes"]}
    spans = [
        tuple(document.meta.get(key) for key in ("source_id", "split_idx_start", "split_idx_end"))
        for document in answer.documents
    ]
    for node in answer.trace["nodes"]:
        for source, start, end in spans:
            known = isinstance(start, int) and isinstance(end, int) and node["start"] is not None
            if known and source == node["source_id"] and start <= node["start"] and node["end"] <= end:
                shown.add(node["id"])
    return shown
