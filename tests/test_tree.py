# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import copy
import threading
from itertools import pairwise

import pytest
from haystack import Document
from haystack.token_counters import ApproximateTokenCounter
from haystack.token_counters.types import TokenCounter
from hypothesis import assume, given
from hypothesis import strategies as st

from hichunk_haystack.tokens import HuggingFaceTokenCounter, count_texts
from hichunk_haystack.tree import CutPoint, Node, TreeBuilder, from_documents, is_leaf, leaf_id, to_documents

WORDPIECE = HuggingFaceTokenCounter()


def leaves(nodes: list[Node]) -> list[Node]:
    return [node for node in nodes if not node.children]


def texts(source: str, nodes: list[Node]) -> list[str]:
    return [source[node.start : node.end] for node in leaves(nodes)]


def check_contract(source: str, nodes: list[Node], counter: TokenCounter, leaf_tokens: int) -> None:
    """What holds for every tree, whatever the cut points."""
    assert nodes[0].parent is None
    assert (nodes[0].start, nodes[0].end, nodes[0].level) == (0, len(source), 0)
    assert "".join(texts(source, nodes)) == source
    for number, node in enumerate(nodes):
        assert node.start < node.end
        assert len(node.children) != 1
        if node.children:
            spans = [(nodes[child].start, nodes[child].end) for child in node.children]
            assert spans[0][0] == node.start
            assert spans[-1][1] == node.end
            assert all(before[1] == after[0] for before, after in pairwise(spans))
        for child in node.children:
            assert child > number
            assert nodes[child].parent == number
            assert nodes[child].level == node.level + 1
            assert nodes[child].headings[: len(node.headings)] == node.headings
    counts = count_texts(counter, [source[node.start : node.end] for node in nodes])
    assert [node.tokens for node in nodes] == counts
    for node, count in zip(nodes, counts, strict=True):
        if not node.children:
            # Only a character that is several tokens by itself may be above the bound.
            assert count <= leaf_tokens or node.end - node.start == 1


SNIPPETS = [
    *("The kiln cools. ", "clay ", "Dr. Fox ", "\n", "\n\n", "# ", "ä😀字", "再见！", "。", "\t", "  ", "\r\n", "\x00"),
    *("e\u0301", "👩‍👩‍👧", "ثلاثة ", "1.5 ", "- item\n", "| a | b |\n", "[SEP]", "\ud800", "x" * 40),
]
prose = st.lists(st.sampled_from(SNIPPETS) | st.text(max_size=6), min_size=1, max_size=40).map("".join)


@st.composite
def sources(draw: st.DrawFn) -> tuple[str, list[CutPoint], int, int]:
    text = draw(prose.filter(lambda text: text.strip()))
    cut = st.builds(CutPoint, st.integers(0, len(text)), st.integers(1, 5), st.none() | st.sampled_from(["A", "B"]))
    leaf_tokens = draw(st.integers(1, 30))
    return text, draw(st.lists(cut, max_size=8)), leaf_tokens, draw(st.integers(0, leaf_tokens))


@given(sources(), st.sampled_from([None, [], [40, 80]]))
def test_contract_holds(source: tuple[str, list[CutPoint], int, int], inner_tokens: list[int] | None) -> None:
    text, cut_points, leaf_tokens, minimum = source
    builder = TreeBuilder(WORDPIECE, leaf_tokens=leaf_tokens, min_leaf_tokens=minimum, inner_tokens=inner_tokens)
    check_contract(text, builder.build(text, cut_points), WORDPIECE, leaf_tokens)


@pytest.mark.parametrize("kind", ["bpe", "unigram", "approximate"])
def test_contract_holds_for_counts_that_do_not_add_up(kind: str, tokenizer_files: dict[str, str]) -> None:
    counter = ApproximateTokenCounter(3) if kind == "approximate" else HuggingFaceTokenCounter(tokenizer_files[kind])

    @given(sources())
    def check(source: tuple[str, list[CutPoint], int, int]) -> None:
        text, cut_points, leaf_tokens, minimum = source
        builder = TreeBuilder(counter, leaf_tokens=leaf_tokens, min_leaf_tokens=minimum)
        check_contract(text, builder.build(text, cut_points), counter, leaf_tokens)

    check()


@given(sources(), st.lists(sources(), max_size=3))
def test_building_many_gives_what_building_one_gives(
    first: tuple[str, list[CutPoint], int, int], others: list[tuple[str, list[CutPoint], int, int]]
) -> None:
    builder = TreeBuilder(WORDPIECE, leaf_tokens=first[2], min_leaf_tokens=0)
    together = builder.build_many([(text, cuts, None) for text, cuts, *_ in [first, *others]])
    assert together == [builder.build(text, cuts) for text, cuts, *_ in [first, *others]]


def _leaves_below(node: Document, by_id: dict[str, Document]) -> list[str]:
    """Ids of a node's leaves in reading order, by way of its children."""
    if is_leaf(node):
        return [node.id]
    return [leaf for child in node.meta["__children_ids"] for leaf in _leaves_below(by_id[child], by_id)]


@given(sources())
def test_documents_keep_the_contract(source: tuple[str, list[CutPoint], int, int]) -> None:
    text, cut_points, leaf_tokens, minimum = source
    assume("\ud800" not in text)  # Haystack can't make an id of it
    document = Document(content=text, meta={"file_path": "a.md", "tags": ["x"]})
    before = copy.deepcopy(document.to_dict())
    builder = TreeBuilder(WORDPIECE, leaf_tokens=leaf_tokens, min_leaf_tokens=minimum)
    nodes = builder.build(text, cut_points)
    documents = to_documents(nodes, document, builder.key)

    assert document.to_dict() == before
    assert documents[0].id == document.id
    assert len({node.id for node in documents}) == len(documents)
    assert [node.id for node in to_documents(nodes, document, builder.key)] == [node.id for node in documents]
    by_id = {node.id: node for node in documents}
    leaves = [node.id for node in sorted(documents, key=lambda each: each.meta["split_idx_start"]) if is_leaf(node)]
    below = {node.id: _leaves_below(node, by_id) for node in documents}
    for node in documents:
        meta = node.meta
        assert node.content == text[meta["split_idx_start"] : meta["split_idx_end"]]
        assert (meta["source_id"], meta["file_path"], meta["tags"]) == (document.id, "a.md", ["x"])
        assert all(by_id[child].meta["__parent_id"] == node.id for child in meta["__children_ids"])
        chain = []
        above = meta["__parent_id"]
        while above is not None:
            parent = by_id[above].meta
            chain.append(
                {
                    "id": above,
                    "level": parent["__level"],
                    "tokens": parent["token_count"],
                    "children": len(parent["__children_ids"]),
                    "start": parent["split_idx_start"],
                    "end": parent["split_idx_end"],
                    "titles": len(parent["headings"]),
                    "first_leaf": leaves.index(below[above][0]),
                    "leaves": len(below[above]),
                }
            )
            above = parent["__parent_id"]
        assert meta["__ancestors"] == chain
        assert is_leaf(node) == (not meta["__children_ids"])
        # What is below a node can be read without reading the node.
        ids = [leaf_id(meta["__tree_id"], number) for number in range(len(leaves))] if len(documents) > 1 else leaves
        if not is_leaf(node):
            first, count = meta["__leaf_range"]
            assert ids[first : first + count] == below[node.id]
    assert from_documents(reversed(documents)) == nodes


def test_the_same_text_cut_in_another_way_is_another_tree() -> None:
    """A language model may answer otherwise at the next time."""
    text = "# A\n\nSame words here.\n\n# B\n\nOther words here.\n"
    builder, source = TreeBuilder(WORDPIECE, leaf_tokens=20, min_leaf_tokens=1), Document(content=text)
    first, second = CutPoint(0, 1, "A"), CutPoint(text.index("# B"), 1, "B")
    trees = [
        to_documents(builder.build(text, cuts), source, builder.key)
        for cuts in ([first, second], [first], [first, CutPoint(second.offset, 1, "C")])
    ]
    assert len({node.meta["__tree_id"] for tree in trees for node in tree}) == 3
    assert [tree[0].id for tree in trees] == [source.id] * 3


def test_equal_passages_have_two_ids_and_other_settings_other_ids() -> None:
    text = "# A\n\nSame words here.\n\n# B\n\nSame words here.\n"
    cuts = [CutPoint(0, 1, "A"), CutPoint(text.index("# B"), 1, "B")]
    source = Document(content=text)
    ids = []
    for leaf_tokens in (8, 9):
        builder = TreeBuilder(WORDPIECE, leaf_tokens=leaf_tokens, min_leaf_tokens=1)
        ids.append({node.id for node in to_documents(builder.build(text, cuts), source, builder.key)})
    assert len(ids[0]) == 3
    assert ids[0] & ids[1] == {source.id}


def outline(source: str, nodes: list[Node]) -> list[tuple[int, list[str], str]]:
    return [(node.level, node.headings, source[node.start : node.end]) for node in nodes]


def test_sections_nest_and_own_text_is_a_child() -> None:
    text = "Before.\n# A\nOwn text.\n## B\nUnder B.\n# C\nUnder C.\n"
    cuts = [CutPoint(text.index(mark), level, mark[-1]) for mark, level in (("# A", 1), ("## B", 2), ("# C", 1))]
    nodes = TreeBuilder(WORDPIECE, min_leaf_tokens=1).build(text, cuts)
    assert outline(text, nodes) == [
        (0, [], text),
        (1, [], "Before.\n"),
        (1, ["A"], "# A\nOwn text.\n## B\nUnder B.\n"),
        (2, ["A"], "# A\nOwn text.\n"),
        (2, ["A", "B"], "## B\nUnder B.\n"),
        (1, ["C"], "# C\nUnder C.\n"),
    ]


def test_a_jump_of_levels_nests_without_an_empty_level() -> None:
    text = "# A\nText a.\n### D\nText d.\n## B\nText b.\n"
    cuts = [CutPoint(0, 1, "A"), CutPoint(text.index("### D"), 3, "D"), CutPoint(text.index("## B"), 2, "B")]
    nodes = TreeBuilder(WORDPIECE, min_leaf_tokens=1).build(text, cuts)
    assert [(node.level, node.headings) for node in nodes] == [
        (0, ["A"]),  # the only section stands for the whole source
        (1, ["A"]),
        (1, ["A", "D"]),
        (1, ["A", "B"]),
    ]


def test_a_heading_without_text_joins_its_first_subsection() -> None:
    text = "# Kiln\n\n## Firing\n\nFire the kiln slowly.\n\n## Cooling\n\nLet it cool for a day.\n"
    cuts = [CutPoint(0, 1, "Kiln"), CutPoint(8, 2, "Firing"), CutPoint(text.index("## C"), 2, "Cooling")]
    nodes = TreeBuilder(WORDPIECE, min_leaf_tokens=6).build(text, cuts)
    assert outline(text, nodes)[1:] == [
        (1, ["Kiln", "Firing"], "# Kiln\n\n## Firing\n\nFire the kiln slowly.\n\n"),
        (1, ["Kiln", "Cooling"], "## Cooling\n\nLet it cool for a day.\n"),
    ]


def test_small_sections_join_inside_their_parent_only() -> None:
    # B and C have 4 tokens each, D has 11: B and C go together, the small last E goes to D, F's parent is another.
    parts = ["# A\n\n", "## B\n\nb.\n\n", "## C\n\nc.\n\n", "## D\n\nFire the kiln well and slowly.\n\n"]
    parts += ["## E\n\n", "# F\n\n"]
    text = "".join(parts)
    starts = [sum(map(len, parts[:number])) for number in range(len(parts))]
    cuts = [CutPoint(start, parts[n].index(" "), parts[n].strip("# \n")[0]) for n, start in enumerate(starts)]
    nodes = TreeBuilder(WORDPIECE, min_leaf_tokens=8).build(text, cuts)
    # F alone is too small for a section of its own: it joins A, the only neighbour inside the root, at its last leaf.
    assert texts(text, nodes) == ["".join(parts[:3]), "".join(parts[3:])]


def test_levels_deeper_than_the_maximum_are_ignored() -> None:
    text = "# A\nText a.\n## B\nText b.\n# C\nText c.\n"
    cuts = [CutPoint(0, 1), CutPoint(text.index("## B"), 2), CutPoint(text.index("# C"), 1)]
    nodes = TreeBuilder(WORDPIECE, min_leaf_tokens=1, max_level=1).build(text, cuts)
    assert texts(text, nodes) == ["# A\nText a.\n## B\nText b.\n", "# C\nText c.\n"]


def test_of_two_cut_points_at_one_place_the_higher_counts() -> None:
    text = "One here. Two here."
    nodes = TreeBuilder(WORDPIECE, min_leaf_tokens=1).build(text, [CutPoint(10, 3, "low"), CutPoint(10, 1, "high")])
    assert [node.headings for node in nodes[1:]] == [[], ["high"]]


def test_leaves_are_cut_at_paragraphs_and_balanced() -> None:
    # Six paragraphs of 10 tokens, 25 to a leaf: 60 tokens need three leaves of 20, not 20 + 20 + 20 by chance but
    # rather than 25-token leaves through the middle of a paragraph.
    text = "\n\n".join(["one two three four five six seven eight nine ten"] * 6)
    nodes = TreeBuilder(WORDPIECE, leaf_tokens=25, min_leaf_tokens=1, inner_tokens=[]).build(text, [])
    assert [node.tokens for node in leaves(nodes)] == [20, 20, 20]
    assert all(piece.strip().count("\n\n") == 1 for piece in texts(text, nodes))


def test_no_tiny_rest() -> None:
    text = "clay " * 210
    assert [node.tokens for node in leaves(TreeBuilder(WORDPIECE).build(text, []))] == [105, 105]


def test_sentences_before_words_before_characters() -> None:
    builder = TreeBuilder(WORDPIECE, leaf_tokens=6, min_leaf_tokens=1)
    assert texts(
        "Fire the kiln slowly. Cool it for days.", builder.build("Fire the kiln slowly. Cool it for days.", [])
    ) == ["Fire the kiln slowly. ", "Cool it for days."]
    long = "one two three four five six seven eight nine ten"
    assert texts(long, builder.build(long, [])) == ["one two three four five ", "six seven eight nine ten"]


def test_chinese_is_cut_after_its_marks() -> None:
    # 300 characters, a mark after each 19th and 29th in turn, 60 tokens to a leaf: one token a character.
    text = ("字" * 19 + "。" + "字" * 29 + "！") * 6
    nodes = TreeBuilder(WORDPIECE, leaf_tokens=60, min_leaf_tokens=1).build(text, [])
    assert all(piece[-1] in "。！" and len(piece) <= 60 for piece in texts(text, nodes))


def test_characters_that_are_several_tokens(tokenizer_files: dict[str, str]) -> None:
    counter = HuggingFaceTokenCounter(tokenizer_files["bpe"])  # 2, 4 and 3 tokens
    nodes = TreeBuilder(counter, leaf_tokens=2, min_leaf_tokens=0).build("ä😀字", [])
    assert texts("ä😀字", nodes) == ["ä", "😀", "字"]


def test_long_runs_of_leaves_are_grouped() -> None:
    # 64 leaves of 10 tokens: groups of 160 (16 times) over groups of 40 (4 times).
    text = "\n\n".join(["one two three four five six seven eight nine ten"] * 64)
    nodes = TreeBuilder(WORDPIECE, leaf_tokens=10, min_leaf_tokens=1).build(text, [])
    by_level: dict[int, list[int]] = {}
    for node in nodes:
        by_level.setdefault(node.level, []).append(node.tokens)
    assert by_level == {0: [640], 1: [160] * 4, 2: [40] * 16, 3: [10] * 64}


def test_a_word_that_the_tokenizer_does_not_know_is_cut_by_its_length() -> None:
    text = "x" * 5_000_000
    nodes = TreeBuilder(WORDPIECE).build(text, [])  # one unknown token to the tokenizer
    assert all(node.end - node.start <= 16 * 200 for node in leaves(nodes))
    assert "".join(texts(text, nodes)) == text


def test_white_space_never_makes_a_leaf() -> None:
    text = "clay" + "\n" * 100_000 + "kiln"
    assert [node.tokens for node in TreeBuilder(WORDPIECE).build(text, [])] == [3]


@pytest.mark.parametrize("text", ["", " ", "\n\t\r\n"])
def test_no_text_no_tree(text: str) -> None:
    assert TreeBuilder(WORDPIECE).build(text, [CutPoint(0, 1)]) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"leaf_tokens": 0}, "leaf_tokens is 0"),
        ({"leaf_tokens": -3}, "leaf_tokens is -3"),
        ({"leaf_tokens": 10, "min_leaf_tokens": 11}, "min_leaf_tokens is 11"),
        ({"max_level": 0}, "max_level is 0"),
        ({"inner_tokens": [200]}, "inner_tokens holds 200"),
    ],
)
def test_bounds_that_make_no_sense(options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TreeBuilder(WORDPIECE, **{"min_leaf_tokens": 0, **options})


def test_cut_points_that_make_no_sense() -> None:
    with pytest.raises(ValueError, match="offset is -1"):
        CutPoint(-1, 1)
    with pytest.raises(ValueError, match="level is 0"):
        CutPoint(0, 0)
    with pytest.raises(ValueError, match=r"lies at 9, behind the end of the source \(4 characters\)"):
        TreeBuilder(WORDPIECE).build("clay", [CutPoint(9, 1)])


def test_reading_back_what_is_no_tree() -> None:
    builder = TreeBuilder(WORDPIECE, leaf_tokens=3, min_leaf_tokens=1)
    documents = to_documents(builder.build("one two three four", []), Document(content="one two three four"))
    with pytest.raises(ValueError, match="have 0"):
        from_documents(documents[1:])
    with pytest.raises(ValueError, match="named as a child"):
        from_documents(documents[:-1])


def test_meta_that_can_not_be_copied_stops_no_source() -> None:
    lock = threading.Lock()
    source = Document(content="Fire it slowly.", meta={"tags": ["clay"], "locks": [lock]})
    (node,) = to_documents(TreeBuilder(HuggingFaceTokenCounter()).build("Fire it slowly.", []), source)
    assert node.meta["tags"] == ["clay"]
    assert node.meta["tags"] is not source.meta["tags"]
    assert node.meta["locks"] == [lock]
