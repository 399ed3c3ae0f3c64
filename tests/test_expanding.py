# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from hichunk_haystack.expanding import Neighbour, Place, choose, climb, siblings
from hichunk_haystack.plans import Ancestor, Hit

# A source of 100 tokens: a section of 40 with leaves of 10, 10 and 20, and one of 60 with two leaves of 30.
ROOT = Ancestor("root", 100, 2)
FIRST, SECOND = Ancestor("first", 40, 3, 1), Ancestor("second", 60, 2, 1)
CHILDREN = {"root": ["first", "second"], "first": ["a", "b", "c"], "second": ["d", "e"]}
LEAVES = {
    **{name: Hit(name, tokens, None, "s", (FIRST, ROOT)) for name, tokens in (("a", 10), ("b", 10), ("c", 20))},
    **{name: Hit(name, 30, None, "s", (SECOND, ROOT)) for name in "de"},
}
NODES = {
    **LEAVES, "first": Hit("first", 40, None, "s", (ROOT,)), "second": Hit("second", 60, None, "s", (ROOT,)),
    "root": Hit("root", 100, None, "s"),
}  # fmt: skip


def hits(names: str, **scores: float) -> list[Hit]:
    return [LEAVES[name]._replace(score=scores.get(name)) for name in names]


def ids(places: list[Place]) -> list[str]:
    return [place.hit.id for place in places]


def test_a_level_up_costs_what_it_adds() -> None:
    # "first" has 40 tokens in the place of 10; 29 more are not enough for it.
    assert climb(hits("a"), 29, 1) == ([Place(LEAVES["a"])], 29)
    places, room = climb(hits("a", a=0.5), 30, 1)
    assert (ids(places), room) == (["first"], 0)
    assert places[0] == Place(Hit("first", 40, 0.5, "s", (ROOT,)), ("a",), 1)
    # It takes all results in it along, whose tokens and overhead are free then: 40 + 5 less 3 times 5, 10, 10 and 20.
    places, room = climb(hits("cab", a=0.9, b=0.2), 0, 1, overhead=5)
    assert (ids(places), room) == (["first"], 10)
    assert (places[0].hit.score, places[0].stands_for) == (0.9, ("c", "a", "b"))


def test_all_go_a_level_up_before_one_goes_two() -> None:
    # 30 for the first section, 30 for the second; the source would take 100 less 100: nothing.
    assert ids(climb(hits("ad"), 60, 1)[0]) == ["first", "second"]
    assert climb(hits("ad"), 60, 2) == ([Place(Hit("root", 100, None, "s"), ("a", "d"), 2)], 0)
    # 59: the second section does not fit. Then the source would take 30.
    assert ids(climb(hits("ad"), 59, 1)[0]) == ["first", "d"]
    assert climb(hits("ad"), 59, 2)[1] == 29
    # 90: the source comes as a second step of the first result, and takes the other one along.
    assert climb(hits("ac"), 70, 9) == ([Place(Hit("root", 100, None, "s"), ("a", "c"), 2)], 0)
    # The best goes first: there is room for one of both.
    assert ids(climb(hits("da"), 30, 1)[0]) == ["second", "a"]
    assert ids(climb(hits("ad"), 30, 1)[0]) == ["first", "d"]


def test_the_place_is_that_of_the_first_below() -> None:
    # "d" climbs first and fails; "b" takes "a", which stands in front of it.
    places, _ = climb([LEAVES["a"], LEAVES["d"], LEAVES["b"]], 20, 1)
    assert ids(places) == ["first", "d"]
    assert places[0].stands_for == ("a", "b")


def test_what_is_not_available_ends_the_climb() -> None:
    asked = []

    def available(node: str, gone: object) -> bool:
        asked.append((node, gone))
        return node != "first"

    assert ids(climb(hits("ad"), 100, 2, available=available)[0]) == ["root"]
    assert asked == [("first", ["a"]), ("second", ["d"]), ("root", ["a", "d"])]


def test_odd_results() -> None:
    assert climb([], 10, 3) == ([], 10)
    assert ids(climb(hits("a"), -1, 3)[0]) == ["a"]
    assert ids(climb([Hit("alone", 5)], 100, 3)[0]) == ["alone"]
    # The same one twice counts twice until a node stands for both.
    assert climb(hits("aa"), 100, 1) == ([Place(Hit("first", 40, None, "s", (ROOT,)), ("a",), 1)], 80)
    # One that lies in another result stays.
    assert ids(climb([NODES["first"], LEAVES["a"]], 10, 1)[0]) == ["first", "a"]


def test_numbers_beyond_any_tree_take_no_time() -> None:
    assert ids(climb(hits("ad"), 100, 10**12)[0]) == ["root"]
    assert ids(climb(hits("ad"), 59, 10**12)[0]) == ["first", "d"]
    assert len(list(siblings(hits("b"), CHILDREN, 10**12))) == 2


def test_siblings_in_turn() -> None:
    assert list(siblings(hits("bd"), CHILDREN, 2)) == [
        Neighbour(0, "a", -1), Neighbour(0, "c", 1), Neighbour(1, "e", 1)
    ]  # fmt: skip
    assert list(siblings(hits("c"), CHILDREN, 2)) == [Neighbour(0, "b", -1), Neighbour(0, "a", -2)]
    assert list(siblings(hits("c"), {}, 2)) == list(siblings([Hit("alone", 5)], CHILDREN, 2)) == []


def test_siblings_that_fit() -> None:
    wanted = list(siblings(hits("bd"), CHILDREN, 2))
    assert choose(hits("bd"), wanted, NODES, 60) == {(0, -1): "a", (0, 1): "c", (1, 1): "e"}
    # 10 go to "a", and 19 are too few for what comes behind.
    assert choose(hits("bd"), wanted, NODES, 29) == {(0, -1): "a"}
    # With an overhead of 1: 11 and 21; "e" has 30.
    assert choose(hits("bd"), wanted, NODES, 40, 1) == {(0, -1): "a", (0, 1): "c"}
    # What stands in a result, or holds one, is not taken.
    assert choose([NODES["first"], LEAVES["a"]], [Neighbour(1, "b", 1)], NODES, 99) == {}
    assert choose(hits("a"), [Neighbour(0, "first", 1)], NODES, 99) == {}


@st.composite
def trees(draw: st.DrawFn) -> tuple[dict[str, Hit], dict[str, list[str]]]:
    """Nodes by id, and children: a tree of up to three levels below the root, inner nodes as long as their children."""
    nodes: dict[str, Hit] = {}
    children: dict[str, list[str]] = {}

    def grow(name: str, depth: int) -> int:
        count = draw(st.integers(2, 3)) if depth < 1 else draw(st.integers(0, 3)) if depth < 3 else 0
        below = [f"{name}.{number}" for number in range(count)]
        lengths[name] = sum(grow(child, depth + 1) for child in below) if below else draw(st.integers(0, 9))
        if below:
            children[name] = below
        return lengths[name]

    def place(name: str, above: tuple[Ancestor, ...]) -> None:
        nodes[name] = Hit(name, lengths[name], None, "s", above)
        link = Ancestor(name, lengths[name], len(children.get(name, ())))
        for child in children.get(name, ()):
            place(child, (link, *above))

    lengths: dict[str, int] = {}
    grow("r", 0)
    place("r", ())
    return nodes, children


def nested(one: Hit, other: Hit) -> bool:
    return other.id in {one.id, *(node.id for node in one.ancestors)} or one.id in {node.id for node in other.ancestors}


@given(trees(), st.data(), st.integers(0, 60), st.integers(0, 4), st.integers(0, 3), st.integers(0, 3))
def test_never_above_the_budget_nothing_twice_nothing_lost(
    tree: tuple[dict[str, Hit], dict[str, list[str]]],
    data: st.DataObject,
    spare: int,
    levels: int,
    reach: int,
    overhead: int,
) -> None:
    nodes, children = tree
    results: list[Hit] = []
    for name in data.draw(st.lists(st.sampled_from(sorted(nodes)), min_size=1, max_size=6, unique=True)):
        if not any(nested(nodes[name], hit) for hit in results):
            results.append(nodes[name])
    gone = set(data.draw(st.lists(st.sampled_from(sorted(nodes)), max_size=2)))
    budget = sum(hit.tokens + overhead for hit in results) + spare
    places, room = climb(results, spare, levels, overhead, lambda name, below: name not in gone)
    held = [place.hit for place in places]
    assert room >= 0
    assert sum(hit.tokens + overhead for hit in held) + room == budget
    for one, other in combinations(held, 2):
        assert not nested(one, other)
    for hit in results:
        (holder,) = [place for place in places if hit.id in (place.stands_for or (place.hit.id,))]
        assert holder.hit.id in {hit.id, *(node.id for node in hit.ancestors)}
        assert holder.climbed <= levels
        assert holder.hit.id == hit.id or holder.hit.id not in gone
    # In rank order: by the first result in each.
    ranks = {hit.id: rank for rank, hit in enumerate(results)}
    firsts = [min(ranks[name] for name in place.stands_for or (place.hit.id,)) for place in places]
    assert firsts == sorted(firsts)
    chosen = choose(held, siblings(held, children, reach), nodes, room, overhead)
    everything = [*held, *(nodes[name] for name in chosen.values())]
    assert sum(hit.tokens + overhead for hit in everything) <= budget
    for one, other in combinations(everything, 2):
        assert not nested(one, other)
    for (number, step), name in chosen.items():
        line = children[held[number].ancestors[0].id]
        assert line.index(name) - line.index(held[number].id) == step
        assert 1 <= abs(step) <= reach
