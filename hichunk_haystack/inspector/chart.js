// SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
//
// SPDX-License-Identifier: Apache-2.0

// Each merge that was considered as a point: how full the context was, how much of the node was held; and the line
// that it had to reach.

class ThresholdChart {
  constructor(run) {
    const { options } = run.trace;
    const name = options.policy === "hichunk" ? "tokens" : "children_share";
    const line = options.policy === "hichunk" ? [options.theta_start, options.theta_end] : [options.threshold, options.threshold];
    this.points = [];
    run.frames.forEach(({ step }, position) => {
      const condition = step && step.conditions && step.conditions.find((one) => one.name === name);
      if (!condition) return;
      const y = name === "tokens" ? condition.has / Math.max(1, step.tokens) : condition.has;
      this.points.push({ position, x: 1 - step.left / run.trace.token_budget, y: Math.min(1, y), merged: step.action === "merged", condition });
    });
    this.element = null;
    if (!this.points.length) return;
    const [width, height, left, bottom] = [560, 210, 38, 30];
    const x = (share) => left + share * (width - left - 10);
    const y = (share) => 10 + (1 - share) * (height - bottom - 10);
    const line_ = (x1, y1, x2, y2, kind) => svg("line", { x1, y1, x2, y2, class: kind });
    const label = (at, down, text, anchor) => svg("text", { x: at, y: down, "text-anchor": anchor }, text);
    const grid = [0, 0.5, 1].flatMap((share) => [
      line_(x(0), y(share), x(1), y(share), "grid"),
      label(left - 6, y(share) + 4, `${Math.round(100 * share)}%`, "end"),
      label(x(share), height - 12, `${Math.round(100 * share)}%`, share === 1 ? "end" : share ? "middle" : "start"),
    ]);
    this.cursor = line_(0, 0, 0, 0, "gap");
    const threshold = line_(x(0), y(line[0]), x(1), y(line[1]), "threshold");
    const above = svg("path", { class: "enough", d: `M${x(0)} ${y(line[0])}L${x(1)} ${y(line[1])}L${x(1)} ${y(1)}L${x(0)} ${y(1)}z` });
    for (const point of this.points) {
      point.mark = svg("circle", { cx: x(point.x), cy: y(point.y), r: 4.5, class: point.merged ? "merged" : "refused" }, svg("title", {}, run.sentence(run.frames[point.position].step)));
      point.mark.addEventListener("click", () => run.jump(point.position));
      point.at = [x(point.x), y(point.y), y(line[0] + (line[1] - line[0]) * point.x)];
    }
    this.drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" }, above, grid, threshold, this.cursor, this.points.map((point) => point.mark));
    const what = name === "tokens" ? "of a node\u2019s text held" : "of a node\u2019s children held";
    const part = name === "tokens" ? "text" : "children";
    const wording = line[0] === line[1] ? percent(line[0]) : `${percent(line[0])} with an empty budget, ${percent(line[1])} with a full one`;
    const made = this.points.filter((point) => point.merged).length;
    this.chartText = `Of a node\u2019s ${part} this much must be held for a merge: ${wording}. ${plural(this.points.length, "merge")} considered, ${whole(made)} made.`;
    this.element = el(
      "section",
      { class: "block chart", "aria-label": `Threshold, ${flat(run.run.label)}` },
      el("h3", {}, "The threshold"),
      el("p", { class: "axis" }, `\u2191 ${what}`, el("span", {}, "budget used \u2192")),
      this.drawing,
      el("p", { class: "dim" }, this.chartText)
    );
  }

  show(position) {
    if (!this.element) return;
    let current = null;
    for (const point of this.points) {
      point.mark.classList.toggle("ahead", point.position > position);
      point.mark.classList.toggle("current", point.position === position);
      if (point.position === position) current = point;
    }
    const [x, y, line] = current ? current.at : [0, 0, 0];
    for (const [name, value] of [["x1", x], ["x2", x], ["y1", y], ["y2", line]]) this.cursor.setAttribute(name, value);
    this.drawing.setAttribute("aria-label", this.chartText);
  }
}
