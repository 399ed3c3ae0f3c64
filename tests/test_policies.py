# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from typing import Any

import pytest

from hichunk_haystack.merging import Ancestor, Hit, MergeOptions, merge
from hichunk_haystack.policies import POLICIES, Candidate, at_least, hichunk, ratio
from tests.merge_cases import build, ids, nodes_of, run, to_hit

# Two sections of four leaves of 50 tokens under one root of 400.
TREE = [[50, 50, 50, 50], [50, 50, 50, 50]]


def candidate(**changes: Any) -> Candidate:
    """A section of 300 tokens and four children, two of which are held with 100 tokens, in an empty context."""
    values = {
        "tokens": 300, "children": 4, "level": 1, "held_children": 2, "held_tokens": 100, "fill": 0.0, "climbed": 0,
        "only_child": False,
    }  # fmt: skip
    return Candidate(**{**values, **changes})


@pytest.mark.parametrize(("fill", "threshold"), [(0, 100), (0.25, 125), (0.5, 150), (1, 200)])
def test_the_threshold_of_hichunk_runs_from_a_third_to_two_thirds(fill: float, threshold: float) -> None:
    # 300/3 * (1 + fill).
    children, tokens = hichunk(candidate(fill=fill), MergeOptions())
    assert (children["has"], children["needs"], children["met"]) == (2, 2, True)
    assert tokens["has"] == 100
    assert tokens["needs"] == pytest.approx(threshold)
    assert tokens["met"] is (fill == 0)


@pytest.mark.parametrize(("fill", "threshold"), [(0, 30), (0.5, 135), (1, 240)])
def test_both_ends_of_the_threshold_can_be_set(fill: float, threshold: float) -> None:
    # 300 * (0.1 + 0.7 * fill).
    tokens = hichunk(candidate(fill=fill), MergeOptions(theta_start=0.1, theta_end=0.8))[1]
    assert tokens["needs"] == pytest.approx(threshold)


def test_equal_ends_give_a_fixed_threshold() -> None:
    options = MergeOptions(theta_start=0.5, theta_end=0.5)
    assert [hichunk(candidate(fill=fill), options)[1]["needs"] for fill in (0, 0.5, 1)] == [150, 150, 150]


def test_a_sum_of_floats_that_equals_its_threshold_is_enough() -> None:
    # 0.1 + 0.2 is a little more than 0.3 as a float.
    assert at_least("share", 0.3, 0.1 + 0.2)["met"]
    assert not at_least("share", 0.3, 0.31)["met"]
    # Whole tokens are compared as they are.
    assert not at_least("budget", 10**12 - 1, 10**12)["met"]


@pytest.mark.parametrize(
    ("held", "children", "threshold", "met"),
    [
        (2, 4, 0.5, True),
        (1, 4, 0.5, False),
        (4, 4, 1, True),
        (3, 4, 1, False),
        (1, 100, 0.01, True),
        (2, 3, 2 / 3, True),
    ],
)
def test_the_ratio_counts_children_and_includes_its_threshold(
    held: int, children: int, threshold: float, met: bool
) -> None:
    (condition,) = ratio(candidate(held_children=held, children=children), MergeOptions(threshold=threshold))
    assert condition == {"name": "children_share", "has": held / children, "needs": threshold, "met": met}


def test_ratio_does_not_ask_how_long_the_children_are() -> None:
    # Two of three children, 20 of 320 tokens: hichunk does not merge them.
    tree = [[10, 10, 300], 1]
    assert ids(run(tree, "r00 r01", 1000, policy="ratio", threshold=0.6)) == ["r0"]
    assert ids(run(tree, "r00 r01", 1000)) == ["r00", "r01"]


def test_ratio_merges_level_by_level_whatever_the_order_of_the_hits() -> None:
    # Half of the leaves of both sections give both sections, and those the root.
    for hits in ("r00 r01 r10 r11", "r11 r00 r10 r01"):
        assert ids(run(TREE, hits, 1000, policy="ratio", threshold=0.5)) == ["r"]
    # Two of four leaves are no share of 0.51.
    assert ids(run(TREE, "r00 r01", 1000, policy="ratio", threshold=0.51)) == ["r00", "r01"]


def test_ratio_keeps_the_budget() -> None:
    # After two leaves 100 of 190 are used; the section would take 100 more.
    assert ids(run(TREE, "r00 r01", 190, policy="ratio")) == ["r00", "r01"]
    assert ids(run(TREE, "r00 r01", 200, policy="ratio")) == ["r0"]


def test_parent_always_gives_the_parent() -> None:
    assert ids(run(TREE, "r02", 1000, policy="parent")) == ["r0"]
    assert ids(run(TREE, "r02 r11 r03", 1000, policy="parent")) == ["r0", "r1"]


def test_parent_levels_up() -> None:
    assert ids(run(TREE, "r02", 1000, policy="parent", parent_levels=2)) == ["r"]
    # No more than there are.
    assert ids(run(TREE, "r02", 1000, policy="parent", parent_levels=9)) == ["r"]


def test_a_parent_that_does_not_fit_leaves_what_does() -> None:
    # r is 400 tokens, r0 200, the leaf 50.
    assert ids(run(TREE, "r02", 399, policy="parent", parent_levels=2)) == ["r0"]
    assert ids(run(TREE, "r02", 199, policy="parent", parent_levels=2)) == ["r02"]
    # 200 for r0, and of the 110 that are left the leaf of r1 takes 50.
    assert ids(run(TREE, "r02 r11", 310, policy="parent")) == ["r0", "r11"]


def test_none_packs_the_leaves() -> None:
    plan = run(TREE, "r00 r01 r02 r03 r10", 220, policy="none")
    assert ids(plan) == ["r00", "r01", "r02", "r03"]
    assert not any(node.merged for node in plan.nodes)
    # An only child stays what it is.
    assert ids(run([[[40]], 40], "r000", 1000, policy="none")) == ["r000"]


def test_a_policy_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_children(candidate: Candidate, options: MergeOptions) -> Any:
        return (at_least("children", candidate.held_children, candidate.children),)

    monkeypatch.setitem(POLICIES, "all_children", all_children)
    assert ids(run(TREE, "r00 r01 r02", 1000, policy="all_children")) == ["r00", "r01", "r02"]
    assert ids(run(TREE, "r00 r01 r02 r03", 1000, policy="all_children")) == ["r0"]


@pytest.mark.parametrize(("level", "merged"), [(0, "r"), (1, "r0 r1"), (2, "r00 r01 r02 r03 r10 r11 r12 r13")])
def test_nothing_is_merged_above_the_highest_level_allowed(level: int, merged: str) -> None:
    hits = "r00 r01 r02 r03 r10 r11 r12 r13"
    for policy in ("hichunk", "ratio"):
        assert ids(run(TREE, hits, 1000, policy=policy, max_merge_level=level)) == merged.split()


def test_a_hit_above_the_highest_level_allowed_is_still_a_hit() -> None:
    assert ids(run(TREE, "r", 1000, max_merge_level=1)) == ["r"]


def test_the_root_comes_back_only_if_it_fits() -> None:
    hits = "r00 r01 r02 r03 r10 r11 r12"
    # With three leaves of r1 350 tokens are held: r1 takes 50 more, and r0 and r1 are all of the root.
    assert ids(run(TREE, hits, 400)) == ["r"]
    assert ids(run(TREE, hits, 399)) == ["r0", "r10", "r11", "r12"]


@pytest.mark.parametrize(
    ("overflow", "nodes"),
    [
        # 80 fit, 300 do not.
        ("skip", [("r1", 80), ("r2", 30)]),
        ("stop", [("r1", 80)]),
        # 120 - 80 = 40 of the 300, and that is the end.
        ("truncate", [("r1", 80), ("r0", 40)]),
    ],
)
def test_a_hit_that_does_not_fit(overflow: str, nodes: list[tuple[str, int]]) -> None:
    plan = run([[300], [80], [30]], "r1 r0 r2", 120, policy="none", overflow=overflow)
    assert [(node.id, node.tokens) for node in plan.nodes] == nodes
    assert [node.truncated for node in plan.nodes] == [tokens == 40 for _, tokens in nodes]


def test_what_comes_after_the_end_is_named_and_what_is_covered_still_counts() -> None:
    # r0 is whole with two of its leaves; r10 does not fit any more; r02 lies under r0.
    plan = run([[40, 40, 40], [90, 10]], "r00 r01 r10 r02 r11", 200, overflow="stop")
    assert ids(plan) == ["r0"]
    assert plan.nodes[0].hits == ["r00", "r01", "r02"]
    fates = {step["hit"]: step["action"] for step in plan.steps if "conditions" not in step}
    assert fates == {"r00": "held", "r01": "held", "r10": "does_not_fit", "r02": "covered", "r11": "not_tried"}


@pytest.mark.parametrize("overflow", ["skip", "stop", "truncate"])
def test_the_answer_is_never_empty(overflow: str) -> None:
    # A section of 50,000 tokens, a budget of 500, and of 1.
    for budget in (500, 1):
        plan = run([[50_000], [60_000]], "r1 r0", budget, overflow=overflow)
        assert [(node.id, node.tokens, node.truncated) for node in plan.nodes] == [("r1", budget, True)]
        assert plan.used == budget
    assert merge([], 500, MergeOptions(overflow=overflow)).nodes == []


@pytest.mark.parametrize("policy", ["hichunk", "ratio", "parent", "none"])
def test_one_hit_in_a_section_far_above_the_budget(policy: str) -> None:
    # The section has 50,000 tokens, the hit 200 of them, the budget is 500.
    tree = [[200, 49_800], 10]
    assert ids(run(tree, "r00", 500, policy=policy)) == ["r00"]
    # The same as the only hit of the section's only leaf.
    plan = run([[50_000]], "r0", 500, policy=policy)
    assert [(node.id, node.tokens) for node in plan.nodes] == [("r0", 500)]


def test_a_smaller_hit_that_fits_is_better_than_a_bigger_one_cut() -> None:
    assert ids(run([[300], [80]], "r0 r1", 100)) == ["r1"]


def test_an_overhead_that_takes_all_of_the_budget_counts_for_nothing() -> None:
    plan = run([[300]], "r0", 21, document_overhead=20)
    assert (plan.nodes[0].tokens, plan.used) == (1, 21)
    for budget in (20, 5):
        plan = run([[300]], "r0", budget, document_overhead=20)
        assert (plan.nodes[0].tokens, plan.used) == (budget, budget)
    # A hit that fits as it is stays whole.
    plan = run([[7]], "r0", 10, document_overhead=20)
    assert (plan.nodes[0].tokens, plan.nodes[0].truncated, plan.used) == (7, False, 7)


def test_a_cut_takes_what_can_really_be_cut() -> None:
    hits = [Hit("a", 100), Hit("b", 100)]
    # Of "a" nothing can be cut, of "b" 7 tokens.
    plan = merge(hits, 10, cut=lambda hit, allowed: {"a": 0, "b": 7}[hit])
    assert [(node.id, node.tokens) for node in plan.nodes] == [("b", 7)]
    assert plan.used == 7
    # A cut that claims more than is allowed does not break the budget.
    assert merge(hits, 10, cut=lambda hit, allowed: 99).used == 10


def test_a_hit_above_held_ones_is_not_cut() -> None:
    # r0 is 200 tokens with r00 held below it; cut to 100 it would lose r03, which may be what was looked for.
    plan = run(TREE, "r03 r0 r10", 150, policy="none", overflow="truncate")
    assert ids(plan) == ["r03", "r10"]


def test_document_order_takes_sources_by_their_best_hit_and_positions_inside() -> None:
    first, second = build([[10] * 4, 500], "a"), build([[10] * 4, 500], "b")
    by_id = {node.id: to_hit(node) for tree in (first, second) for node in nodes_of(tree)}
    hits = [by_id[name] for name in ("b03", "a02", "b01", "a00")]
    rank = merge(hits, 1000, MergeOptions(policy="none"))
    document = merge(hits, 1000, MergeOptions(policy="none", order="document"))
    assert ids(rank) == ["b03", "a02", "b01", "a00"]
    assert ids(document) == ["b01", "b03", "a00", "a02"]


def test_a_source_stands_where_its_best_hit_does_even_if_that_one_is_merged() -> None:
    # a2 stands at place 2, that of its first child; b00 is at 1; the leaf a20 0 of a20 came first of all.
    a, b = build([10, 10, [[10, 900], 10, 10]], "a"), build([[10], 900], "b")
    by_id = {node.id: to_hit(node) for tree in (a, b) for node in nodes_of(tree)}
    hits = [by_id[name] for name in ("a200", "b00", "a21", "a22")]
    options = {"policy": "ratio", "threshold": 0.6, "max_merge_level": 1}
    # a20 is not held (one of two children); a21 and a22 are two of the three children of a2, 0.67: a2 is merged.
    assert ids(merge(hits, 2000, MergeOptions(**options))) == ["b0", "a2"]
    assert ids(merge(hits, 2000, MergeOptions(**options, order="document"))) == ["a2", "b0"]


def test_documents_without_a_position_come_last_in_their_source() -> None:
    hits = [Hit("x", 5, source_id="s"), Hit("y", 5, source_id="s", start=7, end=9), Hit("z", 5, source_id="t")]
    assert ids(merge(hits, 100, MergeOptions(order="document"))) == ["y", "x", "z"]


def test_top_parents_get_their_best_hit_in_before_one_section_takes_all() -> None:
    # Four hits of r0 before the first of r1; 200 tokens take four leaves.
    hits = "r00 r01 r02 r03 r10 r11"
    assert ids(run(TREE, hits, 200, policy="none")) == ["r00", "r01", "r02", "r03"]
    assert ids(run(TREE, hits, 200, policy="none", top_parents=2)) == ["r00", "r01", "r02", "r10"]
    # One parent has its best hit first anyway.
    assert ids(run(TREE, hits, 200, policy="none", top_parents=1)) == ["r00", "r01", "r02", "r03"]


def test_top_parents_keep_a_merge_from_taking_the_room_of_others() -> None:
    hits = "r00 r01 r10"
    # r0 takes 200 of 230 with its second leaf, and r10 has no room left.
    assert ids(run(TREE, hits, 230)) == ["r0"]
    # With r10 held before, r0 would need 100 of 80.
    assert ids(run(TREE, hits, 230, top_parents=2)) == ["r00", "r01", "r10"]


@pytest.mark.parametrize(
    ("share", "nodes"),
    [
        (None, ["a0", "a1"]),
        (1, ["a0", "a1"]),
        # 0.4 of 250 and 100 tokens are the same: two leaves of 50, a0 would take 200.
        (0.4, ["a00", "a01", "b00"]),
        (100, ["a00", "a01", "b00"]),
        # 200 tokens: a0 as a whole.
        (0.8, ["a0", "b00"]),
        (200, ["a0", "b00"]),
    ],
)
def test_one_source_takes_no_more_than_its_share(share: float | None, nodes: list[str]) -> None:
    a, b = build([[50, 50, 50, 50], 50, 900], "a"), build([[50, 50], 900], "b")
    by_id = {node.id: to_hit(node) for tree in (a, b) for node in nodes_of(tree)}
    hits = [by_id[name] for name in ("a00", "a01", "a02", "a1", "b00")]
    assert ids(merge(hits, 250, MergeOptions(max_share_per_source=share))) == nodes


def test_a_share_that_is_used_up_does_not_end_it_all() -> None:
    hits = [Hit("a1", 40, source_id="a"), Hit("a2", 40, source_id="a"), Hit("b", 40, source_id="b")]
    for overflow in ("skip", "stop", "truncate"):
        plan = merge(hits, 100, MergeOptions(max_share_per_source=0.5, overflow=overflow))
        assert ids(plan) == ["a1", "b"]
    assert [step["reason"] for step in plan.steps if step["action"] == "does_not_fit"] == ["source_share"]


def test_the_best_hit_is_cut_to_the_share_of_its_source() -> None:
    plan = merge([Hit("a", 400, source_id="a")], 100, MergeOptions(max_share_per_source=0.25))
    assert [(node.id, node.tokens) for node in plan.nodes] == [("a", 25)]


def test_documents_without_a_source_are_sources_of_their_own() -> None:
    plan = merge([Hit("x", 40), Hit("y", 40)], 100, MergeOptions(max_share_per_source=0.4))
    assert ids(plan) == ["x", "y"]


def test_each_condition_is_told_with_its_numbers() -> None:
    plan = run(TREE, "r00 r01", 250, max_merge_level=1, max_share_per_source=0.9, document_overhead=5)
    step, above = plan.steps[-2:]
    # used = 2 * 55 = 110 of 250; 200/3 * (1 + 0.44) = 96; r0 takes 205 - 110 = 95 of 140 left, of 225 - 110 = 115.
    assert (step["action"], step["hit"], step["node"], step["level"]) == ("merged", "r01", "r0", 1)
    assert step["threshold"] == pytest.approx(96)
    assert [(c["name"], c["has"], pytest.approx(c["needs"]), c["met"]) for c in step["conditions"]] == [
        ("children", 2, 2, True),
        ("tokens", 100, 96, True),
        ("budget", 140, 95, True),
        ("level", 1, 1, True),
        ("source_share", 115, 95, True),
    ]
    assert (step["replaced"], step["used"]) == (["r00", "r01"], 205)
    # The root: one child of two needed, too short, too long for what is left, and above the highest level.
    assert (above["action"], above["node"], above["used"]) == ("not_merged", "r", 205)
    assert [c["name"] for c in above["conditions"] if not c["met"]] == [
        "children", "tokens", "budget", "level", "source_share",
    ]  # fmt: skip


def test_a_merge_into_what_is_not_there_says_so() -> None:
    section = Ancestor("p", 100, 2)
    hits = [Hit("a", 50, 1.0, "s", (section,)), Hit("b", 50, 0.5, "s", (section,))]
    step = merge(hits, 1000, available=lambda _: False).steps[-1]
    assert step["action"] == "not_merged"
    assert step["conditions"][-1] == {"name": "in_store", "has": 0, "needs": 1, "met": False}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "best"}, "policy is 'best'; it must be one of 'hichunk', 'ratio', 'parent', 'none'"),
        ({"budget_check": "gross"}, "budget_check is 'gross'"),
        ({"min_children": 0}, "min_children is 0"),
        ({"theta_start": 0.7}, "theta_start is 0.7 and theta_end 0.66"),
        ({"threshold": 0}, "threshold is 0; it must be above 0 and at most 1"),
        ({"threshold": 1.5}, "threshold is 1.5"),
        ({"parent_levels": 0}, "parent_levels is 0"),
        ({"max_merge_level": -1}, "max_merge_level is -1"),
        ({"overflow": "drop"}, "overflow is 'drop'; it must be one of 'skip', 'stop', 'truncate'"),
        ({"order": "score"}, "order is 'score'; it must be one of 'rank', 'document'"),
        ({"top_parents": 0}, "top_parents is 0"),
        ({"max_share_per_source": 0}, "max_share_per_source is 0"),
        ({"max_share_per_source": 1.5}, "max_share_per_source is 1.5"),
        ({"document_overhead": -1}, "document_overhead is -1"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MergeOptions(**options)


@pytest.mark.parametrize(("share", "cap"), [(None, 1000), (1, 1000), (0.25, 250), (300, 300), (5000, 1000), (1e-9, 1)])
def test_the_cap_of_a_source(share: float | None, cap: int) -> None:
    assert MergeOptions(max_share_per_source=share).source_cap(1000) == cap


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_what_is_too_small_to_be_read_climbs_until_it_is_not(policy: str) -> None:
    # A leaf of 50 tokens gives way to its section of 200; that is enough, and one section alone does not give the root.
    plan = run(TREE, "r00", 1000, policy=policy, min_node_tokens=60, threshold=0.6)
    assert ids(plan) == ["r0"]
    (step, *_) = [step for step in plan.steps if step["action"] == "merged"]
    assert [condition["name"] for condition in step["conditions"]] == ["budget"]
    assert ids(run(TREE, "r00", 1000, policy=policy, min_node_tokens=201, threshold=0.6)) == ["r"]


def test_what_is_too_small_stays_where_the_budget_can_not_take_more() -> None:
    assert ids(run(TREE, "r00 r10", 199, policy="none", min_node_tokens=60)) == ["r00", "r10"]
    assert ids(run(TREE, "r00 r10", 250, policy="none", min_node_tokens=60)) == ["r0", "r10"]
    assert ids(run(TREE, "r00 r10", 1000, policy="none", min_node_tokens=60, max_merge_level=2)) == ["r00", "r10"]
