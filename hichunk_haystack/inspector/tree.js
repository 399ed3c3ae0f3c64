// SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
//
// SPDX-License-Identifier: Apache-2.0

// The page of a source: its tree on the left, its text with the borders of its leaves on the right.

const LONGEST_ROW = 90;
const MOST_FOUND = 200;

function showTrees(page, data) {
  const place = el("div", { class: "source" });
  let choice = null;
  if (data.sources.length > 1) {
    choice = el(
      "select",
      { id: "source", "aria-label": "Source", onchange: () => open(choice.selectedIndex) },
      data.sources.map((source) => el("option", {}, flat(source.name)))
    );
  }
  const open = (number) => place.replaceChildren(...new SourceView(data.sources[number]).elements());
  page.append(pageHeader("Source tree", data.title, choice), place);
  open(0);
}

class SourceView {
  constructor(source) {
    this.source = source;
    this.nodes = source.nodes;
    const size = this.nodes.level.length;
    this.children = Array.from({ length: size }, () => []);
    for (let node = 0; node < size; node++) {
      if (this.nodes.parent[node] !== null) this.children[this.nodes.parent[node]].push(node);
    }
    this.levels = Math.max(...new Set(this.nodes.level)) + 1;
  }

  elements() {
    this.tree = new TreeView({
      label: "Nodes",
      numeric: true,
      roots: [0],
      children: (node) => this.children[node],
      parent: (node) => this.nodes.parent[node],
      name: (node) => this.name(node),
      row: (node) => this.row(node),
      select: (node) => this.select(node, "tree"),
    });
    this.tree.expandAll(this.children[0].length > 60 ? 2 : 3);
    this.found = el("ul", { class: "found", hidden: true, "aria-label": "Titles found" });
    const search = el("input", {
      type: "search", id: "search", placeholder: "Search titles", "aria-label": "Search titles", autocomplete: "off",
      spellcheck: "false", oninput: () => this.search(search.value),
      onkeydown: (event) => {
        if (event.key === "Enter" && this.found.firstElementChild) this.found.querySelector("button")?.click();
      },
    });
    this.details = el("div", { class: "details", id: "details" });
    this.text = el("div", { class: "text", id: "text" });
    this.mono = el("button", { type: "button", class: "quiet mono-button", onclick: () => this.setMono(!this.text.classList.contains("mono")) }, "Monospace");
    this.setMono(remembered("mono") === "true");
    this.addLeaves();
    this.text.addEventListener("click", (event) => this.click(event));
    this.show(0);
    return [
      this.totals(),
      el(
        "div",
        { class: "panes" },
        el("nav", { class: "pane side", "aria-label": "Tree" }, el("div", { class: "tools" }, search), this.tree.element, this.found),
        el("main", { class: "pane reading", tabindex: 0, "aria-label": "Text" }, this.details, this.text)
      ),
    ];
  }

  // The node's own titles, or where its text begins.
  titles(node) {
    const titles = this.nodes.titles[node].map(flat).filter(Boolean);
    return titles.length ? titles.join(" \u203a ") : null;
  }

  excerpt(node) {
    const headings = [];
    for (let above = node; above !== null; above = this.nodes.parent[above]) headings.push(...this.nodes.titles[above].map(flat));
    // A leaf may be white space only; its neighbours inside of the node then speak for it.
    for (let leaf = this.nodes.first[node]; leaf <= this.nodes.last[node]; leaf++) {
      const text = lead(this.source.texts[leaf].slice(0, 400), headings);
      if (text) return cut(text, LONGEST_ROW);
    }
    return "(white space)";
  }

  title(node) {
    return this.titles(node) || (node === 0 ? flat(this.source.name) : this.excerpt(node));
  }

  name(node) {
    const children = this.children[node].length;
    const kind = children ? plural(children, "child", "children") : "leaf";
    return `${cut(this.title(node), LONGEST_ROW)}, level ${this.nodes.level[node]}, ${tokens(this.nodes.tokens[node])}, ${kind}`;
  }

  row(node) {
    const own = this.titles(node) || node === 0;
    return [
      el("span", { class: `dot ${levelClass(this.nodes.level[node])}${this.children[node].length ? "" : " ring"}` }),
      isolated(cut(this.title(node), LONGEST_ROW), { class: own ? "title" : "title excerpt" }),
      el("span", { class: "number" }, whole(this.nodes.tokens[node])),
    ];
  }

  totals() {
    const { nodes, source } = this;
    const lengths = source.leaves.map((node) => nodes.tokens[node]).sort((a, b) => a - b);
    const facts = [
      [whole(nodes.tokens[0]), "tokens"],
      [whole(source.characters), "characters"],
      [whole(nodes.level.length), nodes.level.length === 1 ? "node" : "nodes"],
      [whole(lengths.length), lengths.length === 1 ? "leaf" : "leaves"],
      [whole(this.levels), this.levels === 1 ? "level" : "levels"],
    ];
    return el(
      "section",
      { class: "totals", "aria-label": "Totals" },
      el("dl", { class: "facts" }, facts.map(([value, name]) => el("div", {}, el("dd", {}, value), el("dt", {}, name)))),
      this.histogram(lengths),
      el(
        "ul",
        { class: "legend", "aria-label": "Level colours" },
        Array.from({ length: this.levels }, (_, level) =>
          el("li", {}, el("span", { class: "dot " + levelClass(level) }), level === 0 ? "root" : `level ${level}`)
        )
      )
    );
  }

  histogram(lengths) {
    const longest = lengths.at(-1) || 1;
    const number = Math.min(24, Math.max(1, longest));
    const width = Math.ceil((longest + 1) / number);
    const bins = new Array(Math.ceil((longest + 1) / width)).fill(0);
    for (const length of lengths) bins[Math.floor(length / width)] += 1;
    const most = Math.max(...bins);
    const median = lengths[Math.floor((lengths.length - 1) / 2)];
    const text = `leaves of ${whole(lengths[0])} to ${whole(longest)} tokens, half of them up to ${whole(median)}`;
    return el(
      "figure",
      { class: "histogram" },
      el(
        "div",
        { class: "bars", role: "img", "aria-label": `Lengths of leaves: ${text}` },
        bins.map((count, bin) => {
          const bar = el("span", { title: `${plural(count, "leaf", "leaves")} of ${whole(bin * width)} to ${whole(bin * width + width - 1)} tokens` });
          bar.style.setProperty("--share", count ? Math.max(0.04, count / most) : 0);
          return bar;
        })
      ),
      el("figcaption", {}, text)
    );
  }

  addLeaves() {
    const rows = document.createDocumentFragment();
    this.blocks = this.source.texts.map((text, leaf) => {
      const block = this.leafBlock(text, leaf);
      rows.append(block);
      return block;
    });
    this.text.append(rows);
    this.text.style.setProperty("--levels", this.levels);
  }

  leafBlock(text, leaf) {
    const node = this.source.leaves[leaf];
    const bars = el("div", { class: "margin", "aria-hidden": "true" });
    for (let above = node; above !== null; above = this.nodes.parent[above]) {
      const edges = (this.nodes.first[above] === leaf ? " begins" : "") + (this.nodes.last[above] === leaf ? " ends" : "");
      const bar = el("i", { class: `bar ${levelClass(this.nodes.level[above])}${edges}`, "data-node": above });
      bar.style.setProperty("--level", this.nodes.level[above]);
      bars.append(bar);
    }
    const repeats = this.source.overlaps[leaf];
    const note = `leaf ${leaf + 1} \u00b7 ${tokens(this.nodes.tokens[node])}${repeats ? ` \u00b7 repeats ${plural(repeats, "character")}` : ""}`;
    const block = el("section", { class: "leaf", "data-leaf": leaf, "aria-label": note }, bars, el("p", { class: "note" }, note), this.leafText(text, node));
    // As high as it will be, so that the scroll bar is true before it has been drawn.
    const lines = Math.ceil(text.length / 100) + text.split("\n").length * 0.6;
    block.style.setProperty("--height", `${Math.round(20 + 26 * lines)}px`);
    return block;
  }

  // The first line in bold where it is a title.
  leafText(text, node) {
    const body = el("div", { class: "body", dir: "auto" });
    const parent = this.nodes.parent[node];
    const first = /^\s*[^\n]*/.exec(text)[0];
    let titled = node;
    while (this.nodes.parent[titled] !== null && !this.nodes.titles[titled].length && this.nodes.first[titled] === this.nodes.first[node] && parent !== null) {
      titled = this.nodes.parent[titled];
    }
    const titles = this.nodes.first[titled] === this.nodes.first[node] ? this.nodes.titles[titled] : [];
    // Line breaks at the end take no room: the border says it.
    const end = /[\r\n]*$/.exec(text).index || text.length;
    const from = titles.some((title) => title && first.includes(title)) ? Math.min(first.length, end) : 0;
    if (from) body.append(el("b", {}, shown(text.slice(0, from))));
    body.append(shown(text.slice(from, end)), el("span", { class: "tail" }, text.slice(end)));
    return body;
  }

  click(event) {
    if (String(getSelection())) return;
    const bar = event.target.closest(".bar");
    const block = event.target.closest(".leaf");
    if (bar) this.select(Number(bar.dataset.node), "text");
    else if (block) this.select(this.source.leaves[Number(block.dataset.leaf)], "text");
  }

  // Chosen in one place, shown in the other.
  select(node, from) {
    this.show(node);
    for (const block of this.marked || []) block.classList.remove("marked", "opens", "closes");
    const { first, last } = this.nodes;
    this.marked = this.blocks.slice(first[node], last[node] + 1);
    for (const block of this.marked) block.classList.add("marked");
    this.marked[0].classList.add("opens");
    this.marked.at(-1).classList.add("closes");
    if (from !== "tree") this.tree.choose(node);
    if (from !== "text") this.scrollTo(this.marked[0]);
    say(`${this.name(node)}; characters ${whole(this.nodes.start[node])} to ${whole(this.nodes.end[node])}`);
  }

  // For tables and code.
  setMono(on) {
    this.text.classList.toggle("mono", on);
    this.mono.setAttribute("aria-pressed", String(on));
    remember("mono", on);
  }

  scrollTo(block) {
    this.text.style.setProperty("--top", `${this.details.offsetHeight + 6}px`);
    block.scrollIntoView({ block: "start" });
    // What was not drawn yet had a height that was guessed: once more when it is known.
    requestAnimationFrame(() => block.scrollIntoView({ block: "start" }));
  }

  show(node) {
    const path = [];
    for (let above = node; above !== null; above = this.nodes.parent[above]) path.unshift(above);
    const { nodes } = this;
    const parent = nodes.parent[node];
    const facts = [
      `level ${nodes.level[node]}`,
      tokens(nodes.tokens[node]),
      this.children[node].length ? plural(this.children[node].length, "child", "children") : "leaf",
      parent === null ? null : `${percent(nodes.tokens[node] / Math.max(1, nodes.tokens[parent]))} of its parent`,
      `characters ${whole(nodes.start[node])}\u2013${whole(nodes.end[node])}`,
      nodes.bound[node] ? `bound ${whole(nodes.bound[node])}` : null,
    ];
    this.details.replaceChildren(
      this.mono,
      el(
        "ol",
        { class: "path", "aria-label": "Path" },
        path.map((above) =>
          el(
            "li",
            {},
            el(
              "button",
              { type: "button", class: "link", "aria-current": above === node ? "true" : undefined, onclick: () => this.select(above, "path") },
              el("span", { class: "dot " + levelClass(nodes.level[above]) }),
              isolated(cut(this.title(above), 48))
            )
          )
        )
      ),
      el("p", { class: "node-facts" }, facts.filter(Boolean).join(" \u00b7 "), " ", el("code", { title: "Id" }, shown(nodes.id[node])))
    );
  }

  search(query) {
    const wanted = flat(query).toLowerCase();
    this.tree.element.hidden = Boolean(wanted);
    this.found.hidden = !wanted;
    this.found.replaceChildren();
    if (!wanted) return;
    const all = [];
    for (let node = 0; node < this.nodes.level.length; node++) {
      if ((this.titles(node) || (node === 0 ? flat(this.source.name) : "")).toLowerCase().includes(wanted)) all.push(node);
    }
    for (const node of all.slice(0, MOST_FOUND)) {
      this.found.append(
        el("li", {}, el("button", { type: "button", class: "row", onclick: () => this.pick(node) }, this.row(node)))
      );
    }
    const more = all.length > MOST_FOUND ? `, the first ${MOST_FOUND} are shown` : "";
    const told = all.length ? `${plural(all.length, "title")} found${more}` : "No title found";
    this.found.append(el("li", { class: "told" }, told));
    say(told);
  }

  pick(node) {
    document.getElementById("search").value = "";
    this.search("");
    this.select(node, "search");
    this.tree.focus(this.tree.items.get(node));
  }
}
