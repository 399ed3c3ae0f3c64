// SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
//
// SPDX-License-Identifier: Apache-2.0

// What both pages are made of. Documents' texts reach the page by text nodes and attributes only, never as markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// Control characters as their pictures: they would show as nothing. Tabs and line breaks stay. Halves of characters show
// as U+FFFD.
const CONTROLS = new RegExp("[\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f]", "g");
const shown = (text) => String(text).toWellFormed().replace(CONTROLS, (c) => (c === "\u007f" ? "\u2421" : String.fromCharCode(0x2400 + c.charCodeAt(0))));
const flat = (text) => shown(text).replace(/\s+/g, " ").trim();
function cut(text, length) {
  const characters = Array.from(text.slice(0, 2 * length + 2));
  return characters.length > length ? characters.slice(0, length - 1).join("").trimEnd() + "\u2026" : text;
}

const WHOLE = new Intl.NumberFormat("en-US");
const whole = (value) => (typeof value === "number" ? WHOLE.format(Math.round(value)) : "?");
const plural = (value, one, many) => `${whole(value)} ${value === 1 ? one : many || one + "s"}`;
const tokens = (value) => plural(value, "token");
function decimal(value, digits = 3) {
  if (value === null || value === undefined) return "\u2013";
  return typeof value === "number" ? value.toFixed(digits) : String(value);
}
function exact(value) {
  if (typeof value !== "number") return String(value);
  const text = Number.isInteger(value) ? whole(value) : String(Number(value.toFixed(value < 10 ? 2 : 1)));
  return text.replace("-", "\u2212");
}
const percent = (share) => `${Math.round(100 * share)} %`;

// Titles run in their own direction, and can't turn that of what stands around them.
const isolated = (text, attributes) => el("bdi", attributes, text);

function say(text) {
  document.getElementById("live").textContent = text;
}

// The root has a colour of its own; the others come again after seven levels.
const COLOURS = 7;
const levelClass = (level) => `level-${level > 0 ? ((level - 1) % COLOURS) + 1 : 0}`;

// Where a text begins, without the marks of headings and without titles that are shown beside it.
function lead(text, headings = []) {
  let rest = flat(text);
  for (let before = null; before !== rest; ) {
    before = rest;
    rest = rest.replace(/^#{1,6}\s+/, "");
    const title = headings.find((one) => one && rest.startsWith(one) && !/^[\p{L}\p{N}]/u.test(rest.slice(one.length)));
    if (title) rest = rest.slice(title.length).trimStart();
  }
  return rest || flat(text);
}

const THEMES = ["system", "light", "dark"];

function remembered(name) {
  try {
    return localStorage.getItem("hichunk-" + name);
  } catch {
    return null;
  }
}

function remember(name, value) {
  try {
    localStorage.setItem("hichunk-" + name, value);
  } catch {
    // Pages from disk may have no storage; the choice then lasts as long as the page.
  }
}

function themeButton() {
  const button = el("button", { type: "button", id: "theme", class: "quiet" });
  const set = (theme) => {
    document.documentElement.dataset.theme = theme;
    button.textContent = { system: "\u25d0 System", light: "\u25cb Light", dark: "\u25cf Dark" }[theme];
    button.setAttribute("aria-label", `Colours: ${theme}. Change.`);
    button.dataset.theme = theme;
  };
  set(THEMES.includes(remembered("theme")) ? remembered("theme") : "system");
  button.addEventListener("click", () => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    // From the system's colours first to the other ones, so that each click is seen.
    const order = dark ? ["system", "light", "dark"] : ["system", "dark", "light"];
    const theme = order[(order.indexOf(button.dataset.theme) + 1) % order.length];
    set(theme);
    remember("theme", theme);
  });
  return button;
}

function pageHeader(kind, title, ...rest) {
  return el(
    "header",
    { class: "page" },
    el("div", { class: "headline" }, el("p", { class: "kind" }, kind), el("h1", { dir: "auto" }, flat(title)), rest),
    themeButton()
  );
}

function start() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const live = el("p", { id: "live", class: "unseen", role: "status", "aria-live": "polite" });
  const page = el("div", { class: "shell page-" + data.kind });
  document.body.append(page, live);
  if (data.kind === "tree") showTrees(page, data);
  else showQuery(page, data);
  document.documentElement.dataset.ready = "true";
}

document.addEventListener("DOMContentLoaded", start);
