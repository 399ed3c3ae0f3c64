// SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
//
// SPDX-License-Identifier: Apache-2.0

// What a trace says: the known part of the trees, what was held after each step, and each step in words. The schema is in
// docs/budget_auto_merging_retriever.md.

const STATES = {
  waiting: "not reached", held: "held", merged: "merged", inside: "inside", cut: "cut", left: "left out", open: "not held",
};
const CONDITIONS = {
  children: "children held", tokens: "tokens held", children_share: "share of children held", budget: "budget left",
  level: "level", source_share: "left of its source\u2019s share", in_store: "in the store",
};

class Trace {
  constructor(trace) {
    this.trace = trace;
    this.hits = new Map(trace.hits.map((hit) => [hit.id, hit]));
    this.chosen = new Map(trace.nodes.map((node) => [node.id, node]));
    this.readTree();
    this.frames = this.makeFrames();
  }

  // The nodes that are known: hits and what is above them, children in reading order.
  readTree() {
    const { trace } = this;
    this.parent = new Map();
    this.children = new Map();
    this.roots = [];
    const add = (id, parent) => {
      if (this.parent.has(id)) return;
      this.parent.set(id, parent);
      if (parent === null) this.roots.push(id);
      else {
        if (!this.children.has(parent)) this.children.set(parent, []);
        this.children.get(parent).push(id);
      }
    };
    for (const hit of trace.hits) {
      const chain = [hit.id, ...hit.ancestors];
      for (let place = chain.length - 1; place >= 0; place--) add(chain[place], place + 1 < chain.length ? chain[place + 1] : null);
    }
    for (const list of this.children.values()) {
      list.sort((a, b) => (this.node(a).start ?? Infinity) - (this.node(b).start ?? Infinity) || 0);
    }
  }

  node(id) {
    return this.hits.get(id) || this.trace.ancestors[id] || this.chosen.get(id) || { tokens: 0, level: null, headings: [], start: null };
  }

  tokensOf(id) {
    return this.node(id).tokens;
  }

  source(id) {
    let root = id;
    while (this.parent.get(root)) root = this.parent.get(root);
    const key = (this.hits.get(id) || this.hits.get(root) || {}).source_id || root;
    return flat((this.trace.sources || {})[key] || "") || `source ${cut(flat(key), 12)}`;
  }

  headings(id) {
    return (this.node(id).headings || []).map(flat).filter(Boolean);
  }

  // A node's own title: what its parent's headings do not have.
  title(id) {
    const headings = this.headings(id);
    const parent = this.parent.get(id);
    const above = parent ? this.headings(parent).length : 0;
    if (headings.length > above) return headings.slice(above).join(" \u203a ");
    const { excerpt } = this.hits.get(id) || this.chosen.get(id) || {};
    if (excerpt) return cut(lead(excerpt, headings), 90) || "(white space)";
    if (!parent) return this.source(id);
    return headings.length ? `part of ${headings.at(-1)}` : "an untitled part";
  }

  titled(id) {
    const parent = this.parent.get(id);
    return !parent || this.headings(id).length > this.headings(parent).length;
  }

  quoted(id) {
    return `\u201c${cut(this.title(id), 60)}\u201d`;
  }

  // What is held after each step, in the order of the bar.
  makeFrames() {
    const frames = [{ held: [], used: 0, step: null, turn: 0 }];
    let held = [];
    let turn = 0;
    for (const step of this.trace.steps) {
      if (["held", "truncated", "merged"].includes(step.action)) {
        const gone = new Set(step.replaced || []);
        const first = held.findIndex((entry) => gone.has(entry.id));
        const kept = held.filter((entry) => !gone.has(entry.id));
        const entry = { id: step.node, tokens: step.tokens, kind: step.action === "truncated" ? "cut" : step.action };
        kept.splice(first < 0 ? kept.length : first, 0, entry);
        held = kept;
      }
      if (!("conditions" in step)) turn += 1;
      frames.push({ held, used: step.used, step, turn });
    }
    this.lastStep = new Map();
    this.leftOut = new Map();
    frames.forEach(({ step }, position) => {
      if (!step) return;
      if (["does_not_fit", "not_tried"].includes(step.action)) this.leftOut.set(step.hit, position);
      for (const id of [step.hit, step.node]) if (id) this.lastStep.set(id, position);
    });
    return frames;
  }

  // What is held that stands for a node: itself or one above it.
  holder(id, held) {
    for (let at = id; at; at = this.parent.get(at)) {
      if (held.has(at)) return held.get(at);
    }
    return null;
  }

  state(id, position, held) {
    const holder = this.holder(id, held);
    if (holder) {
      if (holder.id !== id) {
        // What was cut may have lost the part.
        if (holder.kind === "cut") return { state: "left", note: "above it is cut" };
        return { state: "inside", of: holder.id };
      }
      return { state: holder.kind };
    }
    if (!this.hits.has(id)) return { state: "open" };
    const out = this.leftOut.get(id);
    if (out === undefined || out > position) return { state: "waiting" };
    const { step } = this.frames[out];
    if (step.action === "not_tried") return { state: "left", note: "the plan had ended" };
    const room = step.reason === "source_share" ? `its source may take ${whole(step.left)}` : `${whole(step.left)} left`;
    return { state: "left", note: `needs ${whole(step.needs)}, ${room}` };
  }

  // --- in words ---

  sentence(step) {
    const hit = this.hits.get(step.hit);
    const who = hit ? `Hit ${hit.rank}` : "A hit";
    const replaced = (step.replaced || []).length;
    if (step.action === "held") {
      return `${who} is held: ${tokens(step.tokens)}.` + (replaced ? ` It takes the place of ${plural(replaced, "node")} below it.` : "");
    }
    if (step.action === "covered") return `${who} is there already: ${step.node === step.hit ? "it is held" : `${this.quoted(step.node)} holds it`}.`;
    if (step.action === "truncated") return `${who} is cut to ${whole(step.tokens)} of its ${tokens(step.of)}.`;
    if (step.action === "not_tried") return `${who} is left out: the plan had ended.`;
    if (step.action === "does_not_fit") {
      const room = step.reason === "source_share" ? `its source may take ${whole(step.left)} more` : `${whole(step.left)} are left`;
      return `${who} is left out: it needs ${tokens(step.needs)}, ${room}.`;
    }
    if (step.action === "merged") {
      return `${this.quoted(step.node)} takes the place of ${plural(replaced, "node")}: ${whole(step.held_tokens)} of its ${tokens(step.tokens)} were held.`;
    }
    if (step.action === "not_merged") {
      const missed = step.conditions.find((condition) => !condition.met);
      return `${this.quoted(step.node)} is not merged into: ${missed ? this.missed(missed) : "its policy says no"}.`;
    }
    return `${who}: ${flat(step.action)}.`;
  }

  missed({ name, has, needs }) {
    if (name === "children") return `${plural(has, "child", "children")} held of ${whole(needs)} needed`;
    if (name === "tokens") return `${whole(has)} of its tokens held, ${exact(needs)} needed`;
    if (name === "budget" && needs < 0) return "the merge frees some: fewer passages";
    if (name === "budget") return `it needs ${tokens(needs)}, ${whole(has)} are left`;
    if (name === "in_store") return "it is not in the store";
    if (name === "level") return `it is on level ${whole(has)}, above ${whole(needs)}`;
    return `${CONDITIONS[name] || flat(name)} ${exact(has)}, needed ${exact(needs)}`;
  }

  why(step, { name, needs }) {
    const { tokens: length, children, left } = step;
    if (name === "children") return `it has ${whole(children)}`;
    if (name === "tokens") return `${percent(needs / Math.max(1, length))} of ${whole(length)}, with ${percent(1 - left / this.trace.token_budget)} of the budget used`;
    if (name === "budget" && needs < 0) return "the merge frees some: fewer passages";
    if (name === "budget") return this.trace.options.budget_check === "paper" ? "all of the node" : "what the merge adds";
    return "";
  }

  conditionText(condition) {
    return `${CONDITIONS[condition.name] || flat(condition.name)} ${exact(condition.has)} ${condition.met ? "\u2265" : "<"} ${exact(condition.needs)} ${condition.met ? "\u2713" : "\u2717"}`;
  }
}
