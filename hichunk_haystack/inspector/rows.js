// SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
//
// SPDX-License-Identifier: Apache-2.0

// A tree of rows after the ARIA pattern: one of them in the tab order, arrows between them, rows made when their parent
// is opened. `model`: label, roots (keys), children(key), parent(key), row(key) -> elements, name(key) -> text for
// screen readers, select(key), added() after rows were made.
const MOST_ROWS = 400;

class TreeView {
  constructor(model) {
    this.model = model;
    this.items = new Map();
    this.selected = null;
    this.element = el("ul", { role: "tree", class: "tree", "aria-label": model.label });
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.element.addEventListener("click", (event) => this.click(event));
    this.add(this.element, model.roots, 1);
    const first = this.element.querySelector("[role=treeitem]");
    if (first) first.tabIndex = 0;
    this.focused = first;
  }

  add(list, keys, depth) {
    const from = list.querySelectorAll(":scope > [data-key]").length;
    const upto = Math.min(keys.length, from + MOST_ROWS);
    const rows = document.createDocumentFragment();
    for (let place = from; place < upto; place++) rows.append(this.item(keys[place], depth, place, keys.length));
    list.append(rows);
    if (upto < keys.length) {
      const more = el(
        "li",
        { role: "treeitem", class: "more", tabindex: -1, "aria-level": depth, "aria-selected": "false" },
        el("div", { class: "row" }, `Show ${whole(Math.min(MOST_ROWS, keys.length - upto))} more of ${whole(keys.length)}`)
      );
      more.showMore = () => {
        more.remove();
        this.add(list, keys, depth);
      };
      list.append(more);
    }
    this.model.added?.();
  }

  item(key, depth, place, size) {
    const children = this.model.children(key);
    const item = el(
      "li",
      {
        role: "treeitem", tabindex: -1, "data-key": key, "aria-level": depth, "aria-setsize": size, "aria-posinset": place + 1,
        "aria-selected": "false", "aria-expanded": children.length ? "false" : undefined, "aria-label": this.model.name(key),
      },
      el("div", { class: "row" }, el("span", { class: "twist", "aria-hidden": "true" }), this.model.row(key))
    );
    item.style.setProperty("--depth", depth - 1);
    this.items.set(key, item);
    return item;
  }

  expand(item) {
    if (item.getAttribute("aria-expanded") !== "false") return;
    item.setAttribute("aria-expanded", "true");
    if (!item.querySelector(":scope > ul")) {
      const list = el("ul", { role: "group" });
      item.append(list);
      this.add(list, this.model.children(this.keyOf(item)), Number(item.getAttribute("aria-level")) + 1);
    }
  }

  collapse(item) {
    if (item.getAttribute("aria-expanded") !== "true") return;
    item.setAttribute("aria-expanded", "false");
    if (item !== this.focused && item.contains(this.focused)) this.focus(item);
  }

  expandAll(depth = Infinity) {
    const waiting = [...this.element.children];
    while (waiting.length) {
      const item = waiting.shift();
      if (Number(item.getAttribute("aria-level")) < depth) this.expand(item);
      waiting.push(...item.querySelectorAll(":scope > ul > [role=treeitem]"));
    }
  }

  // The row of a node; all above it are opened, and as many of its siblings shown as it takes.
  reveal(key) {
    const path = [];
    for (let above = key; above !== null && above !== undefined; above = this.model.parent(above)) path.unshift(above);
    for (const [depth, step] of path.entries()) {
      let item = this.items.get(step);
      while (!item) {
        const list = depth ? this.items.get(path[depth - 1]).querySelector(":scope > ul") : this.element;
        const more = list.querySelector(":scope > .more");
        if (!more) return null;
        more.showMore();
        item = this.items.get(step);
      }
      if (depth < path.length - 1) this.expand(item);
    }
    return this.items.get(key);
  }

  // Mark a node as chosen, without telling the model.
  choose(key, scroll = true) {
    const item = this.reveal(key);
    if (!item) return;
    if (this.selected) this.selected.setAttribute("aria-selected", "false");
    this.selected = item;
    item.setAttribute("aria-selected", "true");
    this.tabStop(item);
    if (scroll) item.firstElementChild.scrollIntoView({ block: "nearest" });
  }

  tabStop(item) {
    if (this.focused) this.focused.tabIndex = -1;
    this.focused = item;
    item.tabIndex = 0;
  }

  focus(item) {
    this.tabStop(item);
    item.focus({ preventScroll: true });
    item.firstElementChild.scrollIntoView({ block: "nearest" });
  }

  keyOf(item) {
    const key = item.dataset.key;
    return this.model.numeric ? Number(key) : key;
  }

  act(item) {
    if (item.showMore) {
      const before = item.previousElementSibling;
      item.showMore();
      this.focus(before.nextElementSibling || before);
      return;
    }
    this.choose(this.keyOf(item), false);
    this.model.select(this.keyOf(item));
  }

  click(event) {
    const item = event.target.closest("[role=treeitem]");
    if (!item || !event.target.closest(".row")) return;
    if (event.target.closest(".twist") && item.hasAttribute("aria-expanded")) {
      this.toggle(item);
      this.focus(item);
      return;
    }
    this.focus(item);
    this.act(item);
  }

  toggle(item) {
    if (item.getAttribute("aria-expanded") === "true") this.collapse(item);
    else this.expand(item);
  }

  // Rows that can be seen, in order.
  rows() {
    const closed = "[aria-expanded=false] > ul *";
    return [...this.element.querySelectorAll("[role=treeitem]")].filter((item) => !item.matches(closed));
  }

  beside(item, direction) {
    if (direction > 0) {
      if (item.getAttribute("aria-expanded") === "true") {
        const child = item.querySelector(":scope > ul > [role=treeitem]");
        if (child) return child;
      }
      for (let at = item; at && at !== this.element; at = at.parentElement.closest("[role=treeitem]")) {
        if (at.nextElementSibling) return at.nextElementSibling;
      }
      return null;
    }
    let at = item.previousElementSibling;
    if (!at) return item.parentElement.closest("[role=treeitem]");
    while (at.getAttribute("aria-expanded") === "true") {
      const last = at.querySelector(":scope > ul > [role=treeitem]:last-child");
      if (!last) break;
      at = last;
    }
    return at;
  }

  key(event) {
    const item = event.target.closest("[role=treeitem]");
    if (!item || event.altKey || event.ctrlKey || event.metaKey) return;
    const open = item.getAttribute("aria-expanded");
    let next = null;
    if (event.key === "ArrowDown") next = this.beside(item, 1);
    else if (event.key === "ArrowUp") next = this.beside(item, -1);
    else if (event.key === "ArrowRight") {
      if (open === "false") this.expand(item);
      else if (open === "true") next = item.querySelector(":scope > ul > [role=treeitem]");
    } else if (event.key === "ArrowLeft") {
      if (open === "true") this.collapse(item);
      else next = item.parentElement.closest("[role=treeitem]");
    } else if (event.key === "Home") next = this.element.firstElementChild;
    else if (event.key === "End") next = this.rows().at(-1);
    else if (event.key === "Enter" || event.key === " ") this.act(item);
    else if (event.key === "*") for (const sibling of item.parentElement.children) this.expand(sibling);
    else if (event.key.length === 1 && event.key.trim()) next = this.typed(item, event.key);
    else return;
    event.preventDefault();
    if (next) this.focus(next);
  }

  // The next row whose title starts with what was typed within a second.
  typed(item, letter) {
    const now = Date.now();
    this.prefix = now - (this.typedAt || 0) < 1000 ? this.prefix + letter.toLowerCase() : letter.toLowerCase();
    this.typedAt = now;
    const rows = this.rows();
    const from = rows.indexOf(item) + (this.prefix.length === 1 ? 1 : 0);
    const order = [...rows.slice(from), ...rows.slice(0, from)];
    return order.find((row) => (row.getAttribute("aria-label") || "").toLowerCase().startsWith(this.prefix)) || null;
  }
}
