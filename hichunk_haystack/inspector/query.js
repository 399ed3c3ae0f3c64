// SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
//
// SPDX-License-Identifier: Apache-2.0

// The page of a query: its hits, the merge step by step, what was left out. All of it comes from the trace, whose schema
// is in docs/budget_auto_merging_retriever.md. Several traces of one query stand side by side.

const ICONS = {
  first: "M3 3v10M13 3L6 8l7 5z", back: "M11 3L4 8l7 5z", play: "M4 3l9 5-9 5z", pause: "M4 3h3v10H4zM9 3h3v10H9z",
  forward: "M5 3l7 5-7 5z", last: "M13 3v10M3 3l7 5-7 5z",
};
// Traces hold so many characters of a hit, or all of it.
const LONGEST_EXCERPT = 160;

// Trees of more nodes than this start folded.
const MOST_OPEN = 1000;
const icon = (name) => svg("svg", { viewBox: "0 0 16 16", class: "icon", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));

function showQuery(page, data) {
  const views = data.runs.map((run, number) => new RunView(run, number, data.runs));
  let link = null;
  if (views.length > 1) {
    const box = el("input", { type: "checkbox", id: "together", checked: true });
    link = el("label", { class: "together" }, box, "Move together");
    for (const view of views) {
      view.moved = () => {
        if (!box.checked) return;
        for (const other of views) if (other !== view) other.follow(view);
      };
    }
  }
  page.append(pageHeader("Query", data.query, link), el("main", { class: `runs of-${Math.min(views.length, 3)}` }, views.map((view) => view.element)));
}

class RunView extends Trace {
  constructor(run, number, runs) {
    super(run.trace);
    this.run = run;
    this.number = number;
    this.play = null;
    this.element = this.build(runs);
    this.move(this.frames.length - 1, true);
  }

  // --- elements ---

  build(runs) {
    const { trace } = this;
    const id = (name) => `${name}-${this.number}`;
    const named = (name) => (runs.length > 1 ? `${name}, ${flat(this.run.label)}` : name);
    const last = this.frames.length - 1;
    this.bar = new BudgetBar(this);
    this.slider = el("input", { type: "range", min: 0, max: last, value: last, step: 1, id: id("slider"), "aria-label": `Step of ${this.run.label}`, oninput: () => this.jump(Number(this.slider.value)) });
    this.counter = el("output", { class: "counter", for: id("slider") });
    const button = (name, label, act) => el("button", { type: "button", class: "icon-button " + name, "aria-label": label, title: label, onclick: act }, icon(name));
    this.playButton = button("play", "Play", () => this.toggle());
    this.words = el("p", { class: "sentence", role: "status", "aria-live": "polite" });
    const deck = el(
      "div",
      { class: "deck" },
      this.bar.amount,
      this.bar.element,
      el(
        "div",
        { class: "controls" },
        button("first", "To the start", () => this.jump(0)),
        button("back", "A step back", () => this.jump(this.position - 1)),
        this.playButton,
        button("forward", "A step forward", () => this.jump(this.position + 1)),
        button("last", "To the end", () => this.jump(last)),
        el("div", { class: "track" }, this.slider, this.ticks()),
        this.counter
      ),
      this.words
    );
    this.card = el("div", { class: "conditions" });
    this.chart = new ThresholdChart(this);
    this.bestScore = trace.hits.reduce((best, { score }) => (typeof score === "number" && score > best ? score : best), 0);
    this.hitRows = new Map();
    const hits = el("ol", { class: "hits" }, trace.hits.map((hit) => this.hitRow(hit)));
    this.tree = new TreeView(this.treeModel());
    this.tree.expandAll(this.parent.size > MOST_OPEN ? 2 : Infinity);
    const missing = trace.missing.length
      ? el("p", { class: "warning" }, `Not in the store: ${trace.missing.map((node) => flat(node)).join(", ")}. What lies below was kept as it is.`)
      : null;
    return el(
      "section",
      { class: "run", "aria-labelledby": id("run") },
      el("div", { class: "run-head" }, el("h2", { id: id("run"), dir: "auto" }, flat(this.run.label)), runFacts(trace), optionChips(this.run, runs), missing),
      deck,
      el(
        "div",
        { class: "columns" },
        el(
          "div",
          { class: "column" },
          el("section", { class: "block now", "aria-label": named("Conditions of this step") }, el("h3", {}, "This step"), this.card),
          el("section", { class: "block", "aria-label": named("Hits") }, el("h3", {}, "Hits by rank"), trace.hits.length ? hits : el("p", { class: "dim" }, "Nothing was found."))
        ),
        el(
          "div",
          { class: "column" },
          this.chart.element,
          el("section", { class: "block", "aria-label": named("Trees of the sources hit") }, el("h3", {}, "Sources hit"), this.stateLegend(), this.tree.element),
          el("section", { class: "block", "aria-label": named("Answer") }, el("h3", {}, "What came back"), answerList(this))
        )
      )
    );
  }

  ticks() {
    const last = Math.max(1, this.frames.length - 1);
    const marks = this.frames.map(({ step }, position) => {
      const kind = { merged: "merged", does_not_fit: "left", not_tried: "left", truncated: "cut" }[step && step.action];
      if (!kind) return null;
      const mark = el("i", { class: kind });
      mark.style.setProperty("--at", position / last);
      return mark;
    });
    return el("div", { class: "ticks", "aria-hidden": "true" }, marks);
  }

  hitRow(hit) {
    const state = el("span", { class: "state" });
    const meter = el("span", { class: "meter", "aria-hidden": "true" });
    meter.style.setProperty("--share", typeof hit.score === "number" && this.bestScore > 0 ? Math.max(0, hit.score / this.bestScore) : 0);
    const reasons = el("ul", { class: "reasons", hidden: true, id: `reasons-${this.number}-${hit.rank}` });
    const headings = this.headings(hit.id);
    const button = el(
      "button",
      {
        type: "button", class: "hit", "aria-expanded": "false", "aria-controls": reasons.id,
        onclick: () => {
          reasons.hidden = !reasons.hidden;
          button.setAttribute("aria-expanded", String(!reasons.hidden));
          if (reasons.hidden) return;
          if (!reasons.firstChild) reasons.append(...this.reasons(hit));
          this.jump(this.lastOwn(hit.id));
        },
      },
      el("span", { class: "rank" }, hit.rank),
      el(
        "span",
        { class: "what" },
        isolated(headings.length ? headings.at(-1) : this.source(hit.id), { class: "title" }),
        isolated(cut(lead(hit.excerpt, headings), 150), { class: "excerpt" }),
        el("span", { class: "where" }, isolated(this.source(hit.id)), ` \u00b7 ${tokens(hit.tokens)}`)
      ),
      el("span", { class: "score" }, el("span", { class: "unseen" }, "score "), decimal(hit.score), meter),
      state
    );
    const row = el("li", { "data-hit": hit.id }, button, reasons);
    this.hitRows.set(hit.id, { row, state });
    return row;
  }

  lastOwn(id) {
    let found = 0;
    this.frames.forEach(({ step }, position) => {
      if (step && step.hit === id) found = position;
    });
    return found;
  }

  reasons(hit) {
    const own = this.trace.steps.filter((step) => step.hit === hit.id);
    const lines = own.map((step) =>
      el("li", { class: step.action }, this.sentence(step), step.conditions && el("span", { class: "numbers" }, step.conditions.map((condition) => this.conditionText(condition)).join("  \u00b7  ")))
    );
    if (!own.length) lines.push(el("li", {}, "Nothing was done with it."));
    return lines;
  }

  treeModel() {
    const rest = (id) => {
      const known = (this.children.get(id) || []).length;
      const all = (this.trace.ancestors[id] || {}).children || 0;
      return this.trace.ancestors[id] && all > known ? all - known : 0;
    };
    const isRest = (key) => key.startsWith("rest:") && !this.parent.has(key);
    return {
      label: `Trees of the sources hit, ${this.run.label}`,
      roots: this.roots,
      children: (key) => (isRest(key) ? [] : [...(this.children.get(key) || []), ...(rest(key) ? ["rest:" + key] : [])]),
      parent: (key) => (isRest(key) ? key.slice(5) : this.parent.get(key)),
      name: (key) => (isRest(key) ? `${plural(rest(key.slice(5)), "child", "children")} not found` : this.treeName(key)),
      row: (key) => {
        if (isRest(key)) return [el("span", { class: "title dim" }, `+ ${whole(rest(key.slice(5)))} not found`)];
        const hit = this.hits.get(key);
        return [
          el("span", { class: "mark", "aria-hidden": "true" }),
          hit && el("span", { class: "badge" }, hit.rank),
          isolated(this.parent.get(key) ? this.title(key) : this.rootTitle(key), { class: this.titled(key) ? "title" : "title excerpt" }),
          el("span", { class: "number" }, whole(this.tokensOf(key))),
        ];
      },
      added: () => this.showTreeStates(),
      select: (key) => {
        const position = this.lastStep.get(key);
        if (position !== undefined) this.jump(position);
      },
    };
  }

  rootTitle(id) {
    const title = this.title(id);
    const source = this.source(id);
    return title === source ? title : `${source} \u00b7 ${title}`;
  }

  treeName(id) {
    const hit = this.hits.get(id);
    const held = this.held || new Map();
    const { state } = this.state(id, this.position || 0, held);
    const title = this.parent.get(id) ? this.title(id) : this.rootTitle(id);
    return `${cut(title, 90)}, ${hit ? `hit ${hit.rank}, ` : ""}${tokens(this.tokensOf(id))}, ${STATES[state]}`;
  }

  stateLegend() {
    return el(
      "ul",
      { class: "legend", "aria-label": "States" },
      ["held", "merged", "inside", "cut", "left", "waiting"].map((state) => el("li", { "data-state": state }, el("span", { class: "mark" }), STATES[state]))
    );
  }

  // --- moving ---

  move(position, quiet = false) {
    const last = this.frames.length - 1;
    this.position = Math.max(0, Math.min(last, position));
    const frame = this.frames[this.position];
    this.held = new Map(frame.held.map((entry) => [entry.id, entry]));
    const { step } = frame;
    this.slider.value = this.position;
    this.slider.style.setProperty("--share", last ? this.position / last : 0);
    this.counter.textContent = `${this.position} / ${last}`;
    const text = step ? this.sentence(step) : this.trace.hits.length ? "Nothing is held yet." : "There is nothing to merge.";
    this.words.textContent = text;
    this.words.dataset.action = step ? step.action : "start";
    this.slider.setAttribute("aria-valuetext", `Step ${this.position} of ${last}, ${whole(frame.used)} of ${tokens(this.trace.token_budget)} used. ${text}`);
    this.bar.show(frame);
    this.showConditions(step);
    this.showStates();
    this.chart.show(this.position);
    if (!quiet && this.moved) this.moved();
  }

  jump(position) {
    this.stop();
    this.move(position);
  }

  // To the same hit as another run: hits are taken one by one in both.
  follow(other) {
    const turn = other.frames[other.position].turn;
    let position = this.frames.length - 1;
    if (other.position < other.frames.length - 1) while (position > 0 && this.frames[position].turn > turn) position -= 1;
    this.stop();
    this.move(position, true);
  }

  toggle() {
    if (this.play !== null) {
      this.stop();
      return;
    }
    const last = this.frames.length - 1;
    if (this.position === last) this.move(0);
    // Screen readers would be told each step.
    this.words.setAttribute("aria-live", "off");
    this.showPlaying("pause", "Pause");
    this.play = setInterval(() => {
      this.move(this.position + 1);
      if (this.position >= last) this.stop();
    }, Math.min(700, Math.max(120, 20000 / Math.max(1, last))));
  }

  stop() {
    if (this.play === null) return;
    clearInterval(this.play);
    this.play = null;
    this.words.setAttribute("aria-live", "polite");
    this.showPlaying("play", "Play");
  }

  showPlaying(name, label) {
    this.playButton.replaceChildren(icon(name));
    this.playButton.setAttribute("aria-label", label);
    this.playButton.title = label;
  }

  showConditions(step) {
    if (!step) {
      this.card.replaceChildren(el("p", { class: "dim" }, "Press play, or move the slider through the plan."));
      return;
    }
    if (step.conditions) {
      this.card.replaceChildren(
        el("p", { class: "verdict " + step.action }, step.action === "merged" ? "Merge into \u201c" : "No merge into \u201c", isolated(cut(this.title(step.node), 90)), "\u201d", el("span", { class: "dim" }, ` \u00b7 level ${step.level} \u00b7 ${tokens(step.tokens)}`)),
        el(
          "table",
          {},
          el("thead", {}, el("tr", {}, ["condition", "has", "needs", ""].map((name) => el("th", { scope: "col" }, name)))),
          el(
            "tbody",
            {},
            step.conditions.map((condition) =>
              el(
                "tr",
                { class: condition.met ? "met" : "unmet", "data-condition": condition.name },
                el("th", { scope: "row" }, CONDITIONS[condition.name] || flat(condition.name), el("small", {}, this.why(step, condition))),
                el("td", { class: "has" }, exact(condition.has)),
                el("td", { class: "needs" }, exact(condition.needs)),
                el("td", { class: "met" }, condition.met ? "\u2713" : "\u2717", el("span", { class: "unseen" }, condition.met ? " met" : " not met"))
              )
            )
          )
        )
      );
      return;
    }
    const hit = this.hits.get(step.hit);
    this.card.replaceChildren(
      el("p", { class: "verdict " + step.action }, `Hit ${hit.rank} `, isolated(this.headings(hit.id).join(" \u203a ") || this.source(hit.id)), el("span", { class: "dim" }, ` \u00b7 score ${decimal(hit.score)}`)),
      el("p", { class: "quote", dir: "auto" }, flat(hit.excerpt) + (hit.excerpt.length < LONGEST_EXCERPT ? "" : "\u2026"))
    );
  }

  showStates() {
    for (const [id, { row, state }] of this.hitRows) {
      const now = this.state(id, this.position, this.held);
      row.classList.toggle("current", Boolean(this.frames[this.position].step) && this.frames[this.position].step.hit === id);
      const note = now.of ? `in ${cut(this.title(now.of), 40)}` : now.note || "";
      if (row.dataset.state === now.state && state.dataset.note === note) continue;
      row.dataset.state = now.state;
      state.dataset.note = note;
      state.replaceChildren(el("b", {}, now.state === "inside" ? "merged" : STATES[now.state]), note && el("bdi", {}, note));
    }
    this.showTreeStates();
  }

  showTreeStates() {
    // Rows are made while the tree is, too.
    if (!this.tree || !this.held) return;
    for (const [key, item] of this.tree.items) {
      if (!this.parent.has(key)) continue;
      const { state } = this.state(key, this.position, this.held);
      if (item.dataset.state === state) continue;
      item.dataset.state = state;
      item.setAttribute("aria-label", this.treeName(key));
    }
  }
}
