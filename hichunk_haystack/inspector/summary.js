// SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
//
// SPDX-License-Identifier: Apache-2.0

// What does not change while the slider moves: a run's options and numbers, and what came back.

function optionChips(run, runs) {
  const { options, token_budget: budget } = run.trace;
  const entries = [["policy", options.policy], ["budget", whole(budget)]];
  if (options.policy === "hichunk") entries.push(["share of text", `${percent(options.theta_start)} to ${percent(options.theta_end)}`], ["children", `${whole(options.min_children)} or more`]);
  if (options.policy === "ratio") entries.push(["share of children", exact(options.threshold)]);
  if (options.policy === "parent") entries.push(["levels up", whole(options.parent_levels)]);
  entries.push(["must fit", options.budget_check === "paper" ? "whole node" : "what it adds"], ["overflow", options.overflow], ["order", options.order]);
  if (options.document_overhead) entries.push(["per passage", `+${whole(options.document_overhead)}`]);
  if (options.max_merge_level) entries.push(["up to level", whole(options.max_merge_level)]);
  if (options.top_parents) entries.push(["first of parents", whole(options.top_parents)]);
  if (options.max_share_per_source) entries.push(["a source", exact(options.max_share_per_source)]);
  // What differs from another run; the options of a policy only where the other has that policy too.
  const others = runs.filter((other) => other !== run).map((other) => other.trace);
  const alike = others.filter((other) => other.options.policy === options.policy);
  const differ = (traces, ...names) => traces.some((other) => names.some((name) => other.options[name] !== options[name]));
  const differs = {
    policy: differ(others, "policy"),
    budget: others.some((other) => other.token_budget !== budget),
    "share of text": differ(alike, "theta_start", "theta_end"),
    children: differ(alike, "min_children"),
    "share of children": differ(alike, "threshold"),
    "levels up": differ(alike, "parent_levels"),
    "must fit": differ(others, "budget_check"),
    overflow: differ(others, "overflow"),
    order: differ(others, "order"),
    "per passage": differ(others, "document_overhead"),
    "up to level": differ(others, "max_merge_level"),
    "first of parents": differ(others, "top_parents"),
    "a source": differ(others, "max_share_per_source"),
  };
  return el(
    "ul",
    { class: "chips", "aria-label": "Options" },
    entries.map(([name, value]) => el("li", { class: differs[name] ? "differs" : undefined }, el("span", {}, name), " ", el("b", {}, flat(value))))
  );
}

function runFacts(trace) {
  const count = (outcome) => trace.hits.filter((hit) => hit.outcome === outcome).length;
  const merges = trace.nodes.filter((node) => node.merged).length;
  const facts = [
    [trace.hits.length, trace.hits.length === 1 ? "hit" : "hits"],
    [trace.documents.length, trace.documents.length === 1 ? "passage" : "passages"],
    [merges, "of them merged"],
    [count("left_out"), "left out"],
    [trace.tokens_used, "tokens used"],
  ];
  return el("dl", { class: "facts" }, facts.map(([value, name]) => el("div", {}, el("dd", {}, whole(value)), el("dt", {}, name))));
}

function answerList(view) {
  const list = el("ol", { class: "answer" });
  view.trace.documents.forEach((document, place) => {
    const first = view.chosen.get(document.nodes[0]) || {};
    const hits = document.nodes.reduce((sum, node) => sum + ((view.chosen.get(node) || {}).hits || []).length, 0);
    const full = view.run.texts[document.id];
    const text = full !== undefined ? full : (first.excerpt || "") + ((first.excerpt || "").length < LONGEST_EXCERPT ? "" : "\u2026");
    const kind = document.nodes.length > 1 ? `joined of ${plural(document.nodes.length, "node")}` : first.merged ? "merged" : first.truncated ? "cut" : "as found";
    const headings = (first.headings || []).map(flat).filter(Boolean);
    list.append(
      el(
        "li",
        {},
        el(
          "details",
          { open: place === 0 },
          el(
            "summary",
            {},
            isolated(cut(headings.length ? headings.slice(-2).join(" \u203a ") : view.source(document.nodes[0]), 100), { class: "title" }),
            el("span", { class: "where" }, isolated(view.source(first.hits ? first.hits[0] : document.nodes[0])), ` \u00b7 ${tokens(document.tokens)} \u00b7 ${kind} \u00b7 ${plural(hits, "hit")}`)
          ),
          el("div", { class: "passage", dir: "auto", tabindex: 0 }, shown(text))
        )
      )
    );
  });
  return view.trace.documents.length ? list : el("p", { class: "dim" }, "Nothing.");
}
