# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import copy
import logging
from concurrent.futures import ThreadPoolExecutor

import pytest
from haystack import Document, Pipeline
from haystack.components.preprocessors import HierarchicalDocumentSplitter
from haystack.token_counters import ApproximateTokenCounter

from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.tokens import HuggingFaceTokenCounter
from hichunk_haystack.tree import from_documents
from tests.test_tree import check_contract

PAGE = """\
---
owner: workshop
---

Welcome to the pottery.

# Kiln

The kiln stands in the yard.

### Firing

Fire it slowly, over eight hours.

```sh
# this is no heading
kiln --start
```

Set-up / tear-down
------------------

1. Open the door.
2. Let it cool for a day.
"""


def split(text: str, **options: object) -> list[Document]:
    splitter = MarkdownHierarchicalSplitter(**{"min_leaf_tokens": 1, **options})  # type: ignore[arg-type]
    return splitter.run([Document(content=text)])["documents"]


def leaves(nodes: list[Document]) -> list[Document]:
    return [node for node in nodes if not node.meta["__children_ids"]]


def test_a_page() -> None:
    nodes = split(PAGE)
    assert [(node.meta["__level"], node.meta["headings"], (node.content or "").split("\n")[0]) for node in nodes] == [
        (0, [], "---"),
        (1, [], "---"),
        (1, ["Kiln"], "# Kiln"),
        (2, ["Kiln"], "# Kiln"),
        (2, ["Kiln", "Firing"], "### Firing"),
        (2, ["Kiln", "Set-up / tear-down"], "Set-up / tear-down"),
    ]
    assert "".join(leaf.content or "" for leaf in leaves(nodes)) == PAGE


@pytest.mark.parametrize(
    "text",
    [
        "# Only a title",
        "Before.\n\n# A\n\nAfter.",
        "# Tabs\n\n\tcode\tcode\n",
        "# One\r\n\r\ntext\r\n\r\n## Two\r\n\r\nmore\r\n",
        "# One\n\ntext   \n\n\n\n   \n",
        "# No newline at the end",
        "\n\n   \n# Late\n\ntext\n",
        "\ufeff# After a byte order mark\n\ntext\n",
    ],
)
@pytest.mark.parametrize("leaf_tokens", [1, 5, 200])
def test_leaves_join_to_the_source(text: str, leaf_tokens: int) -> None:
    nodes = split(text, leaf_tokens=leaf_tokens)
    check_contract(text, from_documents(nodes), HuggingFaceTokenCounter(), leaf_tokens)
    assert "".join(leaf.content or "" for leaf in leaves(nodes)) == text


def test_text_without_headings_is_grouped() -> None:
    text = "\n\n".join(["one two three four five six seven eight nine ten"] * 40)
    nodes = split(text, leaf_tokens=20)
    assert {node.meta["__level"] for node in nodes} == {0, 1, 2, 3}
    assert all(node.meta["headings"] == [] for node in nodes)


def test_a_leaf_names_the_source_not_its_parent() -> None:
    nodes = split("\n\n".join(["one two three four five six seven eight nine ten"] * 40), leaf_tokens=20)
    deepest = max(nodes, key=lambda node: node.meta["__level"])
    assert deepest.meta["source_id"] == nodes[0].id != deepest.meta["__parent_id"]


def test_the_bound_in_force_is_told() -> None:
    nodes = split("\n\n".join(["one two three four five six seven eight nine ten"] * 40), leaf_tokens=20)
    # 400 tokens: groups of at most 320 and 80 over leaves of 20; the root has no bound.
    assert [sorted({n.meta["__block_size"] for n in nodes if n.meta["__level"] == level}) for level in range(4)] == [
        [0],
        [320],
        [80],
        [20],
    ]


def test_tables_are_cut_between_rows() -> None:
    header = "| day | kiln | potter |\n|---|---|---|\n"
    rows = [f"| day {number} | kiln {number % 3} | potter {number} |\n" for number in range(60)]
    for leaf in leaves(split(header + "".join(rows), leaf_tokens=60)):
        text = leaf.content or ""
        assert text.endswith("|\n")
        assert text.startswith("| day")
        assert text != header


def test_a_listing_without_a_full_stop_is_cut_between_lines() -> None:
    lines = [f"let kiln_{number} = fire(clay, {number})\n" for number in range(500)]
    nodes = leaves(split("```rust\n" + "".join(lines) + "```\n", leaf_tokens=200))
    assert all(node.meta["token_count"] <= 200 and (node.content or "").endswith("\n") for node in nodes)


def test_a_title_above_the_limit() -> None:
    text = "# " + "clay " * 300 + "\n\ntext\n"
    nodes = split(text, leaf_tokens=128)
    assert all(leaf.meta["token_count"] <= 128 for leaf in leaves(nodes))
    assert "".join(leaf.content or "" for leaf in leaves(nodes)) == text


def test_ten_thousand_nested_list_items() -> None:
    text = "- " * 10_000 + "clay\n" + "".join("  " * depth + "- clay\n" for depth in range(1_000))
    nodes = split(text)
    assert "".join(leaf.content or "" for leaf in leaves(nodes)) == text


def test_a_line_of_five_megabytes() -> None:
    for text in ("x" * 5_000_000, "字" * 200_000):
        nodes = split(text)
        assert "".join(leaf.content or "" for leaf in leaves(nodes)) == text
        assert all(leaf.meta["token_count"] <= 200 for leaf in leaves(nodes))


def test_page_numbers_where_the_source_has_pages() -> None:
    pages = "\f".join("one two three four five six seven eight nine ten\n" for _ in range(3))
    assert [leaf.meta["page_number"] for leaf in leaves(split(pages, leaf_tokens=10))] == [1, 2, 3]
    assert "page_number" not in split("one page")[0].meta


def test_documents_without_text_are_left_out_and_named(caplog: pytest.LogCaptureFixture) -> None:
    good = Document(content="# Kiln\n\nFire it.", meta={"file_path": "kiln.md"})
    empty = [Document(content="", meta={"file_path": "empty.md"}), Document(content=" \n"), Document(content=None)]
    with caplog.at_level(logging.WARNING):
        nodes = MarkdownHierarchicalSplitter().run([*empty, good, good])["documents"]
    assert [node.id for node in nodes] == [good.id]
    assert "empty.md" in caplog.text
    assert f"'kiln.md' comes twice (id '{good.id}')" in caplog.text


def test_something_else_than_documents() -> None:
    with pytest.raises(TypeError, match="got a str"):
        MarkdownHierarchicalSplitter().run(["text"])  # type: ignore[list-item]


def test_the_callers_documents_are_not_changed() -> None:
    source = Document(content=PAGE, meta={"tags": ["a"], "file_path": "p.md"}, embedding=[0.5])
    before = copy.deepcopy(source.to_dict())
    nodes = MarkdownHierarchicalSplitter(min_leaf_tokens=1).run([source])["documents"]
    nodes[1].meta["tags"].append("b")
    assert source.to_dict() == before
    assert nodes[2].meta["tags"] == ["a"]
    assert all(node.embedding is None for node in nodes)


def test_threads_get_what_one_run_gets(rust_book: dict[str, str]) -> None:
    splitter = MarkdownHierarchicalSplitter()
    sources = [Document(content=text) for text in list(rust_book.values())[:16]]
    with ThreadPoolExecutor(4) as pool:
        apart = [node for nodes in pool.map(lambda s: splitter.run([s])["documents"], sources) for node in nodes]
    assert apart == splitter.run(sources)["documents"]


def test_every_chapter_of_a_book(rust_book: dict[str, str]) -> None:
    splitter = MarkdownHierarchicalSplitter()
    sources = [Document(content=text, meta={"file_path": name}) for name, text in rust_book.items()]
    nodes = splitter.run(sources)["documents"]
    assert len({node.id for node in nodes}) == len(nodes)
    counter = HuggingFaceTokenCounter()
    for source in sources:
        tree = [node for node in nodes if node.meta["source_id"] == source.id]
        assert "".join(leaf.content or "" for leaf in leaves(tree)) == source.content
        check_contract(source.content or "", from_documents(tree), counter, 200)


def test_round_trip() -> None:
    splitter = MarkdownHierarchicalSplitter(leaf_tokens=99, token_counter=HuggingFaceTokenCounter("a/b"))
    expected = {
        "type": "hichunk_haystack.components.preprocessors.MarkdownHierarchicalSplitter",
        "init_parameters": {
            "leaf_tokens": 99,
            "min_leaf_tokens": 20,
            "max_level": 10,
            "inner_tokens": None,
            "language": "en",
            "token_counter": {
                "type": "hichunk_haystack.tokens.HuggingFaceTokenCounter",
                "init_parameters": {"model": "a/b"},
            },
            "preset": None,
        },
    }
    assert splitter.to_dict() == expected
    pipeline = Pipeline()
    pipeline.add_component("splitter", splitter)
    loaded = Pipeline.loads(pipeline.dumps(), allowed_modules=["hichunk_haystack"])
    assert loaded.get_component("splitter").to_dict() == expected
    other = MarkdownHierarchicalSplitter(token_counter=ApproximateTokenCounter(3))
    assert MarkdownHierarchicalSplitter.from_dict(other.to_dict()).to_dict() == other.to_dict()


@pytest.mark.parametrize("leaf_tokens", [0, -1])
def test_bounds_that_make_no_sense(leaf_tokens: int) -> None:
    with pytest.raises(ValueError, match=f"leaf_tokens is {leaf_tokens}"):
        MarkdownHierarchicalSplitter(leaf_tokens=leaf_tokens)


def test_no_network_and_no_home_directory(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    tmp_path.chmod(0o500)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert len(split(PAGE)) == 6


def test_meta_names_are_those_of_haystack() -> None:
    ours = split(PAGE)[1].meta
    theirs = HierarchicalDocumentSplitter(block_sizes={5, 10}).run([Document(content="a b c d e f g h i j k l")])
    hierarchy = {name for node in theirs["documents"] for name in node.meta if name.startswith("__")}
    assert hierarchy <= set(ours)
