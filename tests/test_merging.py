# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import ast
import sys
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

import hichunk_haystack.merging
from hichunk_haystack.merging import Ancestor, Hit, MergeOptions, merge
from tests.merge_cases import POLICY_NAMES, build, cases, ids, leaves_of, nodes_of, run, seeds, some_rules, to_hit
from tests.naive_merge import Rule, Text, above, as_options, naive_merge


# 4 policies, 300 trees and hit lists each, 6 sets of options for each of them: 7,200 cases.
@pytest.mark.parametrize("policy", POLICY_NAMES)
@settings(max_examples=300)
@given(case=cases(overlapping=True), seed=seeds)
def test_agrees_with_the_naive_rule(policy: str, case: tuple[list[Text], int], seed: int) -> None:
    hits, budget = case
    scores = Random(seed).choices([None, 0.1, 0.2, 0.5, 0.9], k=len(hits))
    scored = [to_hit(hit, score) for hit, score in zip(hits, scores, strict=True)]
    for rule in some_rules(seed, 6, policy):
        plan = merge(scored, budget, MergeOptions(**as_options(rule)))
        expected = [
            (
                passage.node.id,
                len(passage.words),
                [hit.id for hit in passage.hits],
                max((hit.score for hit in scored if hit.score and hit.id in map(str, passage.hits)), default=None),
            )
            for passage in naive_merge(hits, budget, rule)
        ]
        assert (rule, [(node.id, node.tokens, node.hits, node.score) for node in plan.nodes]) == (rule, expected)


@settings(max_examples=200)
@given(cases(), seeds)
def test_an_antichain_within_the_budget_comes_out(case: tuple[list[Text], int], seed: int) -> None:
    for rule in some_rules(seed, 3):
        check_plan(*case, rule)


def check_plan(hits: list[Text], budget: int, rule: Rule) -> None:
    by_id = {node.id: node for hit in hits for node in [hit, *above(hit)]}
    options = MergeOptions(**as_options(rule))
    plan = merge([to_hit(hit) for hit in hits], budget, options)
    held = [by_id[node.id] for node in plan.nodes]
    assert not any(a in above(b) or b in above(a) or a is b for a, b in combinations(held, 2))
    texts = [by_id[node.id].words[: node.tokens] for node in plan.nodes]
    words = [word for text in texts for word in text]
    assert len(words) == len(set(words))
    # Where the overhead leaves no room it does not count.
    room = min(budget, options.source_cap(budget))
    overhead = rule.document_overhead if room > rule.document_overhead else 0
    assert plan.used == len(words) + overhead * len(held) <= budget
    assert bool(held) == bool(hits)
    for source in {node.source_id for node in plan.nodes}:
        taken = sum(node.tokens + overhead for node in plan.nodes if node.source_id == source)
        assert taken <= options.source_cap(budget)
    # Every hit that is covered is represented by exactly one node; every other one is named with what became of it.
    represented = [hit for node in plan.nodes for hit in node.hits]
    left_out = {step["hit"] for step in plan.steps if step["action"] in ("does_not_fit", "not_tried")}
    assert len(represented) == len(set(represented))
    for hit in {hit.id for hit in hits}:
        assert hit in represented or hit in left_out
    for node in plan.nodes:
        assert all(by_id[node.id] in [by_id[hit], *above(by_id[hit])] for hit in node.hits)
        assert node.merged or node.id in {hit.id for hit in hits}


@settings(max_examples=100)
@given(cases(), seeds)
def test_the_steps_tell_how_the_budget_filled(case: tuple[list[Text], int], seed: int) -> None:
    hits, budget = case
    rule = some_rules(seed, 1)[0]
    options = MergeOptions(**as_options(rule))
    plan = merge([to_hit(hit) for hit in hits], budget, options)
    overhead = rule.document_overhead if min(budget, options.source_cap(budget)) > rule.document_overhead else 0
    # Played back, the steps give the plan: what was held or merged into stands until something replaces it.
    lengths = {node.id: len(node.words) for hit in hits for node in [hit, *above(hit)]}
    held: dict[str, int] = {}
    for step in plan.steps:
        if step["action"] in ("held", "merged", "truncated"):
            for gone in step.get("replaced", []):
                del held[gone]
            held[step["node"]] = step["tokens"] if step["action"] == "truncated" else lengths[step["node"]]
        assert step["used"] == sum(held.values()) + overhead * len(held)
        if "conditions" in step:
            assert (step["action"] == "merged") == all(condition["met"] for condition in step["conditions"])
            assert all(condition["met"] or condition["has"] < condition["needs"] for condition in step["conditions"])
    assert held == {node.id: node.tokens for node in plan.nodes}


@given(cases())
def test_a_plan_is_the_same_each_time_and_changes_nothing(case: tuple[list[Text], int]) -> None:
    hits = [to_hit(hit, 1.0) for hit in case[0]]
    before = list(hits)
    assert merge(hits, case[1]) == merge(hits, case[1])
    assert hits == before


# One section of three leaves of 100 tokens: its threshold is 100 with an empty context and 200 with a full one.
SECTION = [[100, 100, 100], [100, 100, 100]]


def test_two_of_three_children_merge() -> None:
    # used = 200 of 1000 after the second hit; 200 held >= 300/3 * 1.2 = 120; 100 more fit.
    plan = run(SECTION, "r00 r01", 1000)
    assert ids(plan) == ["r0"]
    assert plan.used == 300
    merged = plan.steps[-2]
    assert (merged["action"], merged["held_children"], merged["held_tokens"]) == ("merged", 2, 200)
    assert merged["threshold"] == pytest.approx(120)
    assert (merged["needs"], merged["left"]) == (100, 800)


def test_one_child_alone_does_not_merge() -> None:
    # 290 of 300 tokens, but one child.
    assert ids(run([[290, 5, 5]], "r00", 1000)) == ["r00"]


def test_children_too_short_do_not_merge() -> None:
    # 2 * 10 tokens of 320, threshold 320/3 * 1.02 = 108.8.
    assert ids(run([[10, 10, 300], 100], "r00 r01", 1000)) == ["r00", "r01"]


def test_no_budget_left_no_merge() -> None:
    # After the second hit 200 of 250 are used: the third leaf, 100 tokens, does not fit any more.
    assert ids(run(SECTION, "r00 r01", 250)) == ["r00", "r01"]


def test_the_net_growth_or_the_whole_parent_must_fit() -> None:
    # 200 of 310 used, 110 left: the 100 that are added fit, the 300 of the whole parent do not.
    assert ids(run(SECTION, "r00 r01", 310)) == ["r0"]
    assert ids(run(SECTION, "r00 r01", 310, budget_check="paper")) == ["r00", "r01"]
    # 500 - 200 = 300: now the whole parent fits as well.
    assert ids(run(SECTION, "r00 r01", 500, budget_check="paper")) == ["r0"]
    assert ids(run(SECTION, "r00 r01", 499, budget_check="paper")) == ["r00", "r01"]


@pytest.mark.parametrize(
    ("filler", "held", "merges"),
    [
        # used = 100 + 100 of 1,000,000, as good as empty: threshold 600/3 = 200.
        (0, "r00 r01", True),
        # Half full (500 of 1000, the two hits counted): threshold 300 > 200.
        (300, "r00 r01", False),
        # The same with three children: used = 600, 600/3 * 1.6 = 320 > 300.
        (300, "r00 r01 r02", False),
        # Three children, used = 400 of 1000: 600/3 * 1.4 = 280 <= 300.
        (100, "r00 r01 r02", True),
    ],
)
def test_the_threshold_rises_with_the_budget_used(filler: int, held: str, merges: bool) -> None:
    tree = build([[100] * 6])
    by_id = {node.id: node for node in nodes_of(tree)}
    hits = [to_hit(by_id[name]) for name in held.split()]
    if filler:
        hits.insert(0, Hit("filler", filler))
    budget = 1000 if filler else 1_000_000
    if not filler:
        # With a budget this large the threshold is a hair above 200.
        hits = [Hit(hit.id, hit.tokens + 1, None, hit.source_id, hit.ancestors) for hit in hits]
    assert ("r0" in ids(merge(hits, budget))) is merges


def test_a_threshold_that_is_met_exactly() -> None:
    # used = 120 of 600: 300/3 * 1.2 = 120, and 120 are held.
    assert ids(run([[60, 60, 180]], "r00 r01", 600))[0] == "r0"


def test_a_climb_of_three_levels() -> None:
    # Pairs of leaves under pairs of pairs: each merge makes the next one possible.
    tree = [[[10, 10], [10, 10]], [[10, 10], [10, 10]]]
    hits = "r000 r001 r010 r011 r100 r101 r110 r111"
    plan = run(tree, hits, 1000)
    assert ids(plan) == ["r"]
    assert (plan.used, plan.nodes[0].hits) == (80, hits.split())
    assert [step["node"] for step in plan.steps if step["action"] == "merged"][:3] == ["r00", "r01", "r0"]


def test_all_leaves_of_a_document_give_the_root_once() -> None:
    assert ids(run([[5, 5], [5, 5]], "r00 r01 r10 r11", 100)) == ["r"]


def test_an_only_child_stands_for_its_parent() -> None:
    # r0 has one child r00, which has one child r000: the hit r000 is r0 at once, and with r1 there are two children.
    plan = run([[[40]], 40, 40], "r000 r1", 1000)
    assert ids(plan) == ["r"]
    assert ids(run([[[40]], 40, 400], "r000", 1000)) == ["r0"]


def test_two_sources_do_not_touch_each_other() -> None:
    first, second = build([[30, 30, 30], 90], "a"), build([[30, 30, 30], 90], "b")
    a = {node.id: to_hit(node) for node in nodes_of(first)}
    b = {node.id: to_hit(node) for node in nodes_of(second)}
    plan = merge([a["a00"], b["b01"], a["a02"], b["b1"]], 400)
    # a0 from two of its leaves; b01 and b1 have different parents: b1 alone is one child of b, b01 none of b.
    assert ids(plan) == ["a0", "b01", "b1"]
    assert [node.source_id for node in plan.nodes] == ["a", "b", "b"]


def test_a_hit_under_a_held_node_counts_for_it() -> None:
    tree = build(SECTION)
    by_id = {node.id: node for node in nodes_of(tree)}
    plan = merge([to_hit(by_id["r00"], 0.5), to_hit(by_id["r01"], 0.4), to_hit(by_id["r02"], 0.9)], 1000)
    assert [(node.id, node.score, node.hits) for node in plan.nodes] == [("r0", 0.9, ["r00", "r01", "r02"])]


def test_an_ancestor_among_the_hits_takes_the_place_of_what_is_below_it() -> None:
    assert ids(run(SECTION, "r00 r10 r0", 1000)) == ["r0", "r10"]
    assert ids(run(SECTION, "r0 r00 r10", 1000)) == ["r0", "r10"]


def test_a_hit_that_did_not_fit_counts_for_what_covers_it_in_the_end() -> None:
    # Each node costs 10 more: the big leaf does not fit beside the small one (30 + 110 of 130), but the section, which
    # costs 20 + 100 + 10, does in its place.
    tree = build([[20, 100]])
    by_id = {node.id: node for node in nodes_of(tree)}
    hits = [to_hit(by_id["r00"], 0.5), to_hit(by_id["r01"], 0.9), to_hit(by_id["r0"], 0.1)]
    plan = merge(hits, 130, MergeOptions(policy="none", document_overhead=10))
    assert [(node.id, node.hits, node.score) for node in plan.nodes] == [("r0", ["r00", "r01", "r0"], 0.9)]


def test_the_same_leaf_twice_counts_once_with_its_best_score() -> None:
    leaf = leaves_of(build(SECTION))[0]
    plan = merge([to_hit(leaf, 0.2), to_hit(leaf, 0.9), to_hit(leaf, None)], 1000)
    assert [(node.id, node.score, node.tokens) for node in plan.nodes] == [("r00", 0.9, 100)]


def test_a_hit_that_does_not_fit_is_left_out_and_the_next_is_tried() -> None:
    plan = run([[300], [80], [30]], "r1 r0 r2", 120)
    assert ids(plan) == ["r1", "r2"]
    assert [step["hit"] for step in plan.steps if step["action"] == "does_not_fit"] == ["r0"]


def test_each_document_costs_its_overhead() -> None:
    # 100 + 20 each: two of three fit into 240; merging them to 300 + 20 does not.
    plan = run(SECTION, "r00 r01 r10", 240, document_overhead=20)
    assert (ids(plan), plan.used) == (["r00", "r01"], 240)
    # 340 are just enough for the section: 300 + 20, though three leaves would take 360.
    assert run(SECTION, "r00 r01 r02", 340, document_overhead=20).used == 320


def test_what_is_not_available_is_not_merged_into() -> None:
    tree = build(SECTION)
    by_id = {node.id: node for node in nodes_of(tree)}
    hits = [to_hit(by_id[name]) for name in ("r00", "r01", "r10", "r11")]
    assert ids(merge(hits, 1000, available=lambda node_id: node_id != "r0")) == ["r00", "r01", "r1"]


@pytest.mark.parametrize(
    "options", [{}, {"policy": "ratio"}, {"order": "document", "top_parents": 50}, {"overflow": "stop"}]
)
@pytest.mark.parametrize("budget", [100, 3000, 10**9])
def test_the_work_grows_in_proportion_to_the_hits(options: dict[str, Any], budget: int) -> None:
    def calls(number: int) -> int:
        """Calls of functions, Python's and C's, for so many hits on a tree of fanout 4 whose leaves have 10 tokens."""
        above = [
            [Ancestor(f"{level}.{at}", 10 * 4**level, 4, 7 - level) for at in range(4 ** (7 - level))]
            for level in range(1, 8)
        ]
        leaves = Random(1).sample(range(4**7), number)
        hits = [
            Hit(
                f"0.{at}",
                10,
                None,
                "s",
                tuple(level[at // 4 ** (up + 1)] for up, level in enumerate(above)),
                at,
                at + 1,
            )
            for at in leaves
        ]
        found = 0

        def count(*_: Any) -> None:
            nonlocal found
            found += 1

        sys.setprofile(count)
        try:
            merge(hits, budget, MergeOptions(**options))
        finally:
            sys.setprofile(None)
        return found

    # Ten times as many hits: ten times as many calls. Where work grows with the square, a hundred times as many.
    assert calls(4000) <= 12 * calls(400)


def test_documents_without_a_tree_pass_through() -> None:
    assert ids(merge([Hit("x", 10), Hit("y", 10)], 15)) == ["x"]


@pytest.mark.parametrize("budget", [0, -5])
def test_a_budget_that_makes_no_sense(budget: int) -> None:
    with pytest.raises(ValueError, match=f"budget is {budget}"):
        merge([], budget)


@pytest.mark.parametrize("module", ["merging", "plans", "policies"])
def test_the_merge_knows_nothing_of_haystack(module: str) -> None:
    tree = ast.parse(Path(hichunk_haystack.merging.__file__).with_name(f"{module}.py").read_text())
    imported = {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }
    of_ours = {"hichunk_haystack.plans", "hichunk_haystack.policies"}
    assert imported <= {"collections.abc", "dataclasses", "typing"} | of_ours
