// SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
//
// SPDX-License-Identifier: Apache-2.0

// The budget as a bar: a segment for each node that is held, as wide as its share, and how much is used and left.

class BudgetBar {
  constructor(view) {
    this.view = view;
    this.budget = view.trace.token_budget;
    this.held = new Map();
    this.segments = new Map();
    this.width = 0;
    this.used = el("b", { class: "used" });
    this.left = el("span", { class: "left" });
    this.amount = el("p", { class: "amount" }, this.used, ` of ${tokens(this.budget)}`, this.left);
    this.element = el("div", { class: "budget-bar", role: "img" });
    new ResizeObserver(() => this.resized()).observe(this.element);
  }

  // Segments stay as long as their nodes are held; only what changes is touched.
  show({ held, used, step }) {
    const { budget } = this;
    this.held = new Map(held.map((entry) => [entry.id, entry]));
    const sum = held.reduce((total, entry) => total + entry.tokens, 0);
    const overhead = held.length ? (used - sum) / held.length : 0;
    const changed = step && step.action !== "not_merged" ? step.node : null;
    for (const [id, segment] of this.segments) {
      if (this.held.has(id)) continue;
      segment.remove();
      this.segments.delete(id);
    }
    let next = this.element.firstChild;
    for (const entry of held) {
      const segment = this.segments.get(entry.id) || this.segment(entry);
      if (segment === next) next = next.nextSibling;
      else this.element.insertBefore(segment, next);
      const share = Math.max(0, entry.tokens + overhead) / budget;
      if (segment.share !== share) {
        segment.share = share;
        segment.style.setProperty("--share", share);
        this.label(segment, entry);
      }
      const kind = `segment ${entry.kind}${entry.id === changed ? " new" : ""}`;
      if (segment.className !== kind) segment.className = kind;
    }
    this.element.setAttribute("aria-label", `${whole(used)} of ${tokens(budget)} used by ${plural(held.length, "node")}`);
    this.used.textContent = whole(used);
    this.left.textContent = `${whole(budget - used)} left`;
  }

  segment(entry) {
    const title = `${this.view.title(entry.id)}: ${tokens(entry.tokens)}`;
    const segment = el("div", { title, "data-node": entry.id, onclick: () => this.view.tree.choose(entry.id) }, el("span"));
    this.segments.set(entry.id, segment);
    return segment;
  }

  // What there is room for.
  label(segment, entry) {
    const room = this.width * segment.share;
    const hit = this.view.hits.get(entry.id);
    const short = hit ? String(hit.rank) : whole(entry.tokens);
    const long = entry.kind === "merged" && room > 90 ? this.view.title(entry.id) : short;
    segment.firstChild.textContent = room > 8 + 8 * short.length ? long : "";
  }

  resized() {
    this.width = this.element.clientWidth;
    for (const [id, segment] of this.segments) this.label(segment, this.held.get(id));
  }
}
