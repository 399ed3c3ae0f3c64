# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from haystack import Document
from haystack.components.preprocessors import HierarchicalDocumentSplitter

from hichunk_haystack.sources import Source, as_source_name, group_by_source, stale_filters


def node(node_id: str, root: str | None = None, tree: str | None = None, **meta: Any) -> Document:
    if root:
        meta["source_id"] = root
    if tree:
        meta["__tree_id"] = tree
    return Document(id=node_id, content=node_id, meta=meta)


def test_documents_of_one_file_are_one_source() -> None:
    sources = group_by_source(
        [
            node("r1", "r1", "t1", file_path="a.pdf"),
            node("r2", "r2", "t2", file_path="b.md"),
            node("r3", "r3", "t3", file_path="a.pdf"),
        ],
        "file_path",
    )
    assert [(source.name, source.keys, source.roots, source.trees) for source in sources] == [
        ("'a.pdf'", {"a.pdf"}, {"r1", "r3"}, {"t1", "t3"}),
        ("'b.md'", {"b.md"}, {"r2"}, {"t2"}),
    ]


def test_the_root_counts_where_there_is_no_key() -> None:
    sources = group_by_source(
        [
            node("r", "r", "t", file_path=None),
            node("leaf", "r", "t"),
            node("other", "s", "u", file_path=["not", "a", "value"]),
            node("odd", "v", "w", file_path=True),
        ],
        "file_path",
    )
    assert [(source.name, source.keys, source.roots) for source in sources] == [
        ("document 'r'", set(), {"r"}),
        ("'['not', 'a', 'value']'", set(), {"s"}),
        ("'True'", set(), {"v"}),
    ]


def test_two_values_of_the_key_under_one_root_are_one_source() -> None:
    sources = group_by_source(
        [node("r", "r", "t", file_path="old"), node("x", "r", "t2", file_path="new")], "file_path"
    )
    assert [(source.keys, source.roots, source.trees) for source in sources] == [({"old", "new"}, {"r"}, {"t", "t2"})]


def test_plain_documents_are_a_source_each_and_chunks_follow_their_document() -> None:
    sources = group_by_source([node("a"), node("b"), node("c1", "c"), node("c2", "c")], "file_path")
    assert [(source.roots, source.loose, source.replaceable) for source in sources] == [
        (set(), {"a"}, False),
        (set(), {"b"}, False),
        ({"c"}, {"c1", "c2"}, True),
    ]


def test_in_haystacks_own_trees_the_source_id_names_the_parent_and_does_not_count() -> None:
    splitter = HierarchicalDocumentSplitter(block_sizes={4, 2}, split_overlap=0, split_by="word")
    document = Document(content="one two three four five six", meta={"file_path": "a.txt"})
    stock = splitter.run([document])["documents"]
    assert any("source_id" in item.meta for item in stock)
    (source,) = group_by_source(stock, "file_path")
    assert (source.keys, source.roots, len(source.loose)) == ({"a.txt"}, set(), len(stock))


def test_of_two_documents_with_one_id_the_later_counts() -> None:
    first, second = node("x", "r", "t"), node("x", "r", "t", extra=1)
    (source,) = group_by_source([first, second], "file_path")
    assert source.nodes == [second]


def test_parents_come_before_their_children() -> None:
    def at(node_id: str, level: int, *children: str) -> Document:
        return node(node_id, "root", "t", __level=level, __children_ids=list(children))

    given = [at("l1", 3), at("inner2", 2, "l1"), at("l2", 1), at("root", 0, "inner1", "l2"), at("inner1", 1, "inner2")]
    (source,) = group_by_source(given, "file_path")
    assert [item.id for item in source.in_writing_order()] == ["root", "inner1", "inner2", "l1", "l2"]


def test_the_filter() -> None:
    sources = [
        Source("a", keys={"a.md"}, roots={"r"}, trees={"t"}),
        Source("b", roots={"s"}, loose={"x"}),
        Source("alone", loose={"y"}),
    ]
    assert list(stale_filters(sources, "path")) == [
        {
            "operator": "AND",
            "conditions": [
                {"field": "meta.__tree_id", "operator": "not in", "value": ["t"]},
                {"field": "id", "operator": "not in", "value": ["x"]},
                {
                    "operator": "OR",
                    "conditions": [
                        {"field": "meta.path", "operator": "in", "value": ["a.md"]},
                        {"field": "meta.source_id", "operator": "in", "value": ["r", "s"]},
                    ],
                },
            ],
        }
    ]
    assert list(stale_filters(sources[2:], "path")) == []


@pytest.mark.parametrize(("count", "filters"), [(333, 1), (334, 2), (2000, 7)])
def test_filters_are_bounded(count: int, filters: int) -> None:
    sources = [Source(str(n), keys={f"k{n}"}, roots={f"r{n}"}, trees={f"t{n}"}) for n in range(count)]
    found = list(stale_filters(sources, "path"))
    assert len(found) == filters
    named = [value for part in found for value in part["conditions"][1]["conditions"][0]["value"]]
    assert named == [f"k{n}" for n in range(count)]
    for part in found:
        trees, theirs = part["conditions"]
        keys, roots = theirs["conditions"]
        # A filter that spares another part's trees, or does not spare its own, would delete what was just written.
        assert [v[1:] for v in trees["value"]] == [v[1:] for v in keys["value"]] == [v[1:] for v in roots["value"]]


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("a.md", "a.md"),
        (Path("shelf/a.md"), "shelf/a.md"),
        (7, 7),
        (np.int64(7), 7),
        (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (b"a.md", "a.md"),
        ("t\udcf6pfe.md", "t\\udcf6pfe.md"),
        (True, None),
        (None, None),
        (1.5, None),
        (["a.md"], None),
        (object(), None),
    ],
)
def test_a_source_is_named_by_what_is_stored(value: Any, name: str | int | None) -> None:
    assert as_source_name(value) == name
    (source,) = group_by_source([node("r", "r", "t", file_path=value)], "file_path")
    assert source.keys == (set() if name is None else {name})


def test_a_source_id_that_is_no_name_does_not_stop_the_others() -> None:
    flat = [Document(id=letter, content="x", meta={"source_id": [letter]}) for letter in "ab"]
    assert [(source.keys, source.roots) for source in group_by_source(flat, "file_path")] == [(set(), set())] * 2
