# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""The page of a query in a real browser, held against the trace."""

import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from haystack import Document
from haystack.components.preprocessors import HierarchicalDocumentSplitter
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from hichunk_haystack.inspector import Run, query_page
from tests.inspector.cases import HOSTILE, POTS, handbook_runs, leaves_of, merged, replay, split

Open = Callable[..., Any]

# Moves a run's slider to each position, as a user does, and reads what can be seen there.
WALK = """
const run = document.querySelectorAll(".run")[arguments[0]];
const slider = run.querySelector("input[type=range]");
const seen = [];
for (let position = 0; position <= Number(slider.max); position++) {
  slider.value = position;
  slider.dispatchEvent(new Event("input"));
  seen.push({
    held: [...run.querySelectorAll(".segment")].map((segment) => segment.dataset.node),
    shares: [...run.querySelectorAll(".segment")].map((segment) => Number(segment.style.getPropertyValue("--share"))),
    used: run.querySelector(".used").textContent,
    left: run.querySelector(".amount .left").textContent,
    counter: run.querySelector(".counter").textContent,
    sentence: run.querySelector(".sentence").textContent,
    spoken: slider.getAttribute("aria-valuetext"),
    conditions: [...run.querySelectorAll("[data-condition]")].map((row) => [
      row.dataset.condition, row.querySelector(".has").textContent, row.querySelector(".needs").textContent,
      row.classList.contains("met"),
    ]),
  });
}
return seen;
"""
STATES = """
const run = document.querySelectorAll(".run")[arguments[0]];
return Object.fromEntries([...run.querySelectorAll("[data-hit]")].map((row) => [row.dataset.hit, row.dataset.state]));
"""


def number(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    return handbook_runs()


def test_every_step_of_every_policy_shows_what_the_trace_says(open_page: Open, runs: list[Run]) -> None:
    page = open_page(query_page("How are boats kept?", runs))
    page.run("document.querySelector('#together').checked = false")
    actions, kinds = set(), set()
    for place, run in enumerate(runs):
        trace, budget = run.trace, run.trace["token_budget"]
        seen = page.run(WALK, place)
        frames = replay(trace)
        assert len(seen) == len(frames) == len(trace["steps"]) + 1
        for position, (shown, (held, used)) in enumerate(zip(seen, frames, strict=True)):
            assert shown["held"] == held
            assert (number(shown["used"]), number(shown["left"].split()[0])) == (used, budget - used)
            assert sum(shown["shares"]) == pytest.approx(used / budget)
            assert shown["counter"] == f"{position} / {len(trace['steps'])}"
            assert f"Step {position} of {len(trace['steps'])}, {used:,} of {budget:,} tokens used" in shown["spoken"]
            step = trace["steps"][position - 1] if position else {"action": "start"}
            conditions = step.get("conditions", [])
            actions.add(step["action"])
            kinds |= {condition["name"] for condition in conditions}
            assert [(name, met) for name, _, _, met in shown["conditions"]] == [
                (condition["name"], condition["met"]) for condition in conditions
            ]
            for (_, has, needs, _), condition in zip(shown["conditions"], conditions, strict=True):
                assert number(has) == pytest.approx(condition["has"], abs=0.051)
                assert number(needs) == pytest.approx(condition["needs"], abs=0.051)
            if "needs" in step and not conditions:
                assert f"it needs {step['needs']:,} token" in shown["sentence"]
                assert f" {step['left']:,} " in shown["sentence"]
        # In the end, each hit is what the trace says became of it.
        expected = {"returned": "held", "merged": "inside", "truncated": "cut", "left_out": "left"}
        assert page.run(STATES, place) == {hit["id"]: expected[hit["outcome"]] for hit in trace["hits"]}
        facts = page.each(".run", "[...one.querySelectorAll('.facts dd')].map((fact) => fact.textContent)")[place]
        assert [number(fact) for fact in facts] == [
            len(trace["hits"]),
            len(trace["documents"]),
            sum(node["merged"] for node in trace["nodes"]),
            sum(hit["outcome"] == "left_out" for hit in trace["hits"]),
            trace["tokens_used"],
        ]
    # The cases were worth it.
    assert actions == {"start", "held", "covered", "does_not_fit", "not_tried", "truncated", "merged", "not_merged"}
    assert kinds == {"children", "tokens", "children_share", "budget", "level", "source_share"}


def test_hits_tree_and_answer(open_page: Open, runs: list[Run]) -> None:
    run = runs[0]
    trace = run.trace
    page = open_page(query_page("How are boats kept?", [run]))
    assert page.text("h1") == "How are boats kept?"
    assert page.texts(".hit .rank") == [str(hit["rank"]) for hit in trace["hits"]]
    scores = [re.findall(r"[\d.]+", text)[0] for text in page.texts(".hit .score")]
    assert scores == [f"{hit['score']:.3f}" for hit in trace["hits"]]
    assert all(
        f"· {hit['tokens']} token" in text for hit, text in zip(trace["hits"], page.texts(".hit .where"), strict=True)
    )
    # All nodes that are known, and how many siblings were not found.
    known = {hit["id"] for hit in trace["hits"]} | set(trace["ancestors"])
    keys = page.each("[role=treeitem]", "one.dataset.key")
    assert {key for key in keys if not key.startswith("rest:")} == known
    for node_id, node in trace["ancestors"].items():
        children = {
            below
            for hit in trace["hits"]
            for below, above in zip([hit["id"], *hit["ancestors"]], hit["ancestors"], strict=False)
            if above == node_id
        }
        assert (f"rest:{node_id}" in keys) == (node["children"] > len(children))
    # The answer, in order, with its whole texts.
    assert page.texts(".passage") == [document.content for document in run.documents]
    assert [int(re.search(r"([\d,]+) token", text)[1].replace(",", "")) for text in page.texts("summary .where")] == [
        document["tokens"] for document in trace["documents"]
    ]
    # A hit tells its reasons and takes the slider to its step.
    hit = next(hit for hit in trace["hits"] if hit["outcome"] == "left_out")
    page.run("document.querySelectorAll('button.hit')[arguments[0]].click()", hit["rank"] - 1)
    reasons = page.run(
        "return [...document.querySelectorAll('.reasons:not([hidden]) li')].map((one) => one.textContent)"
    )
    own = [step for step in trace["steps"] if step["hit"] == hit["id"]]
    assert len(reasons) == len(own)
    assert f"Hit {hit['rank']} is left out: it needs {own[0]['needs']} tokens" in reasons[0]
    assert page.text(".sentence") in reasons[-1]
    assert (
        page.run("return document.querySelectorAll('button.hit')[arguments[0]].ariaExpanded", hit["rank"] - 1) == "true"
    )


def test_the_slider_by_keyboard_and_the_buttons(open_page: Open, runs: list[Run]) -> None:
    page = open_page(query_page("How are boats kept?", [runs[0]]))
    frames = replay(runs[0].trace)
    last = len(frames) - 1
    slider = page.chrome.find_element(By.CSS_SELECTOR, "input[type=range]")
    assert slider.get_attribute("value") == str(last)

    def used() -> float:
        return number(page.text(".used"))

    slider.send_keys(Keys.HOME)
    assert (used(), page.text(".sentence")) == (0, "Nothing is held yet.")
    for position in (1, 2, 3):
        slider.send_keys(Keys.RIGHT)
        assert used() == frames[position][1]
    slider.send_keys(Keys.LEFT)
    assert used() == frames[2][1]
    press = {
        name: page.chrome.find_element(By.CSS_SELECTOR, f".icon-button.{name}")
        for name in ("first", "back", "forward", "last", "play")
    }
    press["forward"].click()
    assert used() == frames[3][1]
    press["back"].click()
    press["back"].click()
    assert used() == frames[1][1]
    press["last"].click()
    assert used() == frames[-1][1]
    press["first"].click()
    assert used() == 0
    press["play"].click()
    assert press["play"].get_attribute("aria-label") == "Pause"
    WebDriverWait(page.chrome, 20, poll_frequency=0.05).until(lambda _: int(slider.get_attribute("value")) > 2)
    press["play"].click()
    stopped = slider.get_attribute("value")
    assert press["play"].get_attribute("aria-label") == "Play"
    assert page.text(".counter") == f"{stopped} / {last}"
    # All controls have names.
    assert all(page.each("button, input", "one.ariaLabel || one.textContent || one.labels.length"))


def test_two_runs_move_together_by_hits(open_page: Open, runs: list[Run]) -> None:
    one, other = runs[0], runs[2]
    page = open_page(query_page("How are boats kept?", [one, other]))
    assert page.texts(".run h2") == ["run 0", "run 2"]
    assert page.texts(".differs b") == ["hichunk", "ratio"]

    def to(position: int) -> tuple[int, int]:
        """Move the first run; tell which hits both have taken last."""
        page.slide("#slider-0", position)
        positions = page.each("input[type=range]", "Number(one.value)")
        taken = []
        for run, at in zip((one, other), positions, strict=True):
            taken.append(sum("conditions" not in step for step in run.trace["steps"][:at]))
        return taken[0], taken[1]

    for position in (0, 1, 5, 9, 14):
        first, second = to(position)
        assert first == second
    assert to(len(one.trace["steps"]))[1] == len(other.trace["hits"])
    page.chrome.find_element(By.ID, "together").click()
    page.slide("#slider-0", 0)
    assert page.each("input[type=range]", "Number(one.value)") == [0, len(other.trace["steps"])]


def test_the_threshold_as_it_rose(open_page: Open, runs: list[Run]) -> None:
    trace = runs[0].trace
    page = open_page(query_page("How are boats kept?", [runs[0]]))
    considered = [step for step in trace["steps"] if any(c["name"] == "tokens" for c in step.get("conditions", []))]
    what = "[one.cx.baseVal.value, one.cy.baseVal.value, one.classList.contains('merged')]"
    points = page.each(".chart circle", what)
    assert len(points) == len(considered)
    # Further right the fuller the budget, higher the more of the node was held; made or not.
    for (x, y, made), step in zip(points, considered, strict=True):
        assert x == pytest.approx(38 + 512 * (1 - step["left"] / trace["token_budget"]), abs=0.1)
        assert y == pytest.approx(10 + 170 * (1 - step["held_tokens"] / step["tokens"]), abs=0.1)
        assert made == (step["action"] == "merged")
    assert "33 % with an empty budget, 67 % with a full one" in page.text(".chart .dim")
    page.each(".chart circle", "one.dispatchEvent(new Event('click'))")
    assert page.text(".counter").split(" /")[0] == str(1 + trace["steps"].index(considered[-1]))
    page.run("document.querySelectorAll('.chart circle')[2].dispatchEvent(new Event('click'))")
    assert page.text(".counter").split(" /")[0] == str(1 + trace["steps"].index(considered[2]))


def test_nothing_found_and_no_tree(open_page: Open) -> None:
    plain = merged([], [Document(id="p", content="Fire it slowly. " * 30)], "cut", token_budget=9)
    page = open_page(query_page("Why?", [merged([], [], "empty"), plain, Run("bare", plain.trace)]))
    assert page.texts(".sentence") == [
        "There is nothing to merge.",
        f"Hit 1 is cut to {plain.trace['tokens_used']} of its 120 tokens.",
        f"Hit 1 is cut to {plain.trace['tokens_used']} of its 120 tokens.",
    ]
    # Without documents it shows how the passage begins.
    assert page.texts(".passage") == [plain.documents[0].content, ("Fire it slowly. " * 30)[:160] + "…"]
    assert page.count(".segment") == page.count(".segment.cut") == 2


def test_trees_of_haystacks_own_splitter(open_page: Open) -> None:
    splitter = HierarchicalDocumentSplitter(block_sizes={20, 5}, split_overlap=0, split_by="word")
    nodes = splitter.run([Document(content="Centre the clay before you open it. " * 12)])["documents"]
    run = merged(nodes, leaves_of(nodes)[:7], token_budget=100)
    assert any(step["action"] == "merged" for step in run.trace["steps"])
    page = open_page(query_page("How is it centred?", [run]))
    assert [seen["held"] for seen in page.run(WALK, 0)] == [held for held, _ in replay(run.trace)]
    # They have no titles: what they say stands there.
    assert "Centre the clay before you" in "".join(page.texts("[role=treeitem] .title"))


def test_thousands_of_hits(open_page: Open) -> None:
    nodes = split("".join(f"# Number {place}\n\nWords of it. And more words of it.\n\n" for place in range(2500)))
    run = merged(nodes, leaves_of(nodes), token_budget=20_000)
    begun = time.monotonic()
    page = open_page(query_page("Which?", [run]))
    page.settle()
    # Measured: below a second.
    assert time.monotonic() - begun < 8
    last = len(run.trace["steps"])
    begun = time.monotonic()
    for position in range(last - 20, last):
        page.slide("#slider-0", position)
        assert number(page.text(".used")) == run.trace["steps"][position - 1]["used"]
    assert time.monotonic() - begun < 8
    # Rows that are made later know their states too.
    page.each("[role=treeitem].more", "one.firstElementChild.click()")
    page.each("[role=treeitem][aria-expanded=false] .twist", "one.click()")
    assert all(page.each("[role=treeitem][data-key]:not([data-key^='rest:'])", "one.dataset.state"))


def test_a_missing_parent_is_told(open_page: Open) -> None:
    nodes = split(POTS)
    throwing = next(node for node in nodes if node.meta["headings"] == ["Pots", "Throwing"])
    hits = [node for node in nodes if node.meta["__parent_id"] == throwing.id]
    run = merged([node for node in nodes if node is not throwing], hits, token_budget=throwing.meta["token_count"])
    page = open_page(query_page("How are bowls made?", [run]))
    assert throwing.id in page.text(".warning")
    page.each("button.hit", "one.click()")
    assert any("it is not in the store" in reason for reason in page.texts(".reasons li"))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_narrow_windows_and_both_themes(open_page: Open, runs: list[Run], theme: str) -> None:
    page = open_page(
        query_page("How are boats kept in a storm that lasts for days? " * 3, runs[:2]), theme=theme, width=400
    )
    assert page.run("return document.documentElement.scrollWidth") <= 400
    colour = page.run("return getComputedStyle(document.documentElement).backgroundColor")
    assert (int(re.findall(r"\d+", colour)[0]) < 80) is (theme == "dark")


def test_hostile_texts_show_as_text(open_page: Open) -> None:
    text = "".join(f"# {title.splitlines()[0]}\n\n{title}\n\n" for title in HOSTILE)
    nodes = split(text, HOSTILE[1])
    hits = [replace(leaf, score=0.5) for leaf in leaves_of(nodes)]
    run = merged(nodes, hits, HOSTILE[0], policy="none")
    odd = replace(hits[0], id="<b>'\"\\] id", meta={})
    page = open_page(query_page(HOSTILE[0], [run, merged([], [odd], HOSTILE[3])]))
    assert page.run("return window.pwned") is None
    assert page.count("img, .shell script, .title b") == 0
    assert page.text("h1") == HOSTILE[0]
    assert page.text("h2") == HOSTILE[0]
    assert page.texts(".passage")[: len(run.documents)] == [
        (document.content or "").replace("\x07", "\u2407") for document in run.documents
    ]
    for place in (0, 1):
        assert page.run(WALK, place)[-1]["held"]
    page.each("button.hit", "one.click()")
    assert page.run("return window.pwned") is None
