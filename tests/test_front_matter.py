# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from haystack import Document
from hypothesis import given, settings
from hypothesis import strategies as st

from hichunk_haystack.components.embedders import (
    Bm25DocumentEmbedder,
    HierarchyEmbedder,
    LateChunkingEmbedder,
    LeafEmbedder,
)
from hichunk_haystack.components.preprocessors import (
    AutoHierarchicalSplitter,
    MarkdownHierarchicalSplitter,
    PlainTextHierarchicalSplitter,
    TokenHierarchicalSplitter,
)
from hichunk_haystack.components.writers import HierarchyWriter
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from hichunk_haystack.front_matter import FRONT_MATTER, front_matter_end, front_matter_title, is_searched
from hichunk_haystack.integrity import check
from hichunk_haystack.markdown import parse_markdown
from hichunk_haystack.tree import is_leaf
from tests.word_embedder import WordEmbedder

FIELDS = "---\ntitle: About the kiln\nowner: Ingrid\nreviewed: 2026-02-16\ntags:\n  - clay\n- fire\n---\n"
BODY = "\n# Kiln\n\nFire it slowly, then let it cool for a whole day.\n\n## Glaze\n\nDip the pot for three seconds.\n"


@pytest.mark.parametrize(
    "text",
    [
        FIELDS,
        "---\ntitle: x\n...\n",
        "\ufeff---\r\ntitle: x\r\n---\r\n",
        '\n \n---\n# a comment\n"title": x\n---  \n',
        "---\ntext: |\n  many lines,\n\n  more of them\n---\n",
        "---\ntags: [\na\n]\n---\n".replace("a\n", "  a\n"),
        '+++\ntitle = "x"\n[extra]\nlist = [\n"a",\n]\n+++\n',
        "---\ntitle: x\n---",
    ],
)
def test_it_ends_behind_the_line_that_closes_it(text: str) -> None:
    assert front_matter_end(text) == len(text)
    assert front_matter_end(f"{text}\n{BODY}") in (len(text), len(text) + 1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "---",
        "---\n---\n",
        "---\n# only a comment\n---\n",
        "---\n\ntitle: x\n---\n",  # a rule, and a heading with a line under it
        "---\nSome text\n---\n",
        "---\ntitle: x\nSome text\n---\n",
        "---\ntitle: x\n# never closed\n",
        "Text\n---\ntitle: x\n---\n",
        "--- \nhttp://example.org\n---\n",
        "+++\ntext\n+++\n",
        "---\ntitle: x\n" + "a: b\n" * 30_000 + "---\n",
    ],
)
def test_what_is_none(text: str) -> None:
    assert front_matter_end(text) == 0


@given(st.text(alphabet="-+:=#a \n\r.[]'\"\ufeff", max_size=60))
@settings(max_examples=200, deadline=None)
def test_whatever_a_text_begins_with(text: str) -> None:
    end = front_matter_end(text)
    assert end == 0 or text[:end].rstrip().endswith(("---", "...", "+++"))
    structure = parse_markdown(text)
    assert all(0 < offset < len(text) for offset in structure.boundaries)
    assert all(offset >= end for offset, _, _ in structure.headings)


def test_a_heading_between_two_rules_is_one() -> None:
    text = "# Kiln\n\nFire it.\n\n---\n## Glaze\ndip: it\n---\n\nMore.\n"
    assert [title for _, _, title in parse_markdown(text).headings] == ["Kiln", "Glaze", "dip: it"]


@pytest.mark.parametrize("fields", [FIELDS, FIELDS.replace("clay", "töpfe 😀").replace("\n", "\r\n"), f"\n{FIELDS}"])
def test_what_stands_behind_it_is_read_as_if_it_were_not_there(fields: str) -> None:
    alone, whole = parse_markdown(BODY), parse_markdown(fields + BODY)
    assert whole.headings == [(offset + len(fields), level, title) for offset, level, title in alone.headings]
    behind = {offset: kind for offset, kind in whole.kinds.items() if offset >= len(fields)}
    assert behind == {offset + len(fields): kind for offset, kind in alone.kinds.items()}
    assert [kind for offset, kind in whole.kinds.items() if offset < len(fields)] == ["front matter"]


SPLITTERS: list[Callable[[int], Any]] = [
    lambda tokens: MarkdownHierarchicalSplitter(leaf_tokens=tokens, min_leaf_tokens=1),
    lambda tokens: AutoHierarchicalSplitter(leaf_tokens=tokens, min_leaf_tokens=1),
    lambda tokens: PlainTextHierarchicalSplitter(leaf_tokens=tokens, min_leaf_tokens=1),
    lambda tokens: TokenHierarchicalSplitter(chunk_sizes=[tokens]),
]


@pytest.mark.parametrize("splitter", SPLITTERS)
@pytest.mark.parametrize("leaf_tokens", [8, 40, 200])
def test_leaves_that_are_nothing_else_are_marked_and_join_to_the_source(splitter: Any, leaf_tokens: int) -> None:
    text = FIELDS + BODY
    nodes = splitter(leaf_tokens).run([Document(content=text, meta={"front_matter": {"title": "x"}})])["documents"]
    leaves = [node for node in nodes if is_leaf(node)]
    assert "".join(leaf.content or "" for leaf in leaves) == text
    body = len(FIELDS) + 1
    for node in nodes:
        alone = is_leaf(node) and node.meta["split_idx_end"] <= body
        assert node.meta.get(FRONT_MATTER, False) is alone
        assert is_searched(node) is (is_leaf(node) and not alone)
        assert node.meta["front_matter"] == {"title": "x"}
    assert any(map(is_searched, nodes))


def test_nothing_but_front_matter_is_searched() -> None:
    nodes = MarkdownHierarchicalSplitter(min_leaf_tokens=1).run([Document(content=FIELDS)])["documents"]
    assert all(is_searched(node) for node in nodes)


@pytest.fixture
def nodes() -> list[Document]:
    splitter = MarkdownHierarchicalSplitter(leaf_tokens=40, min_leaf_tokens=1)
    fields = FIELDS.replace("About the kiln", "Kiln")  # what the heading says, so that nothing else changes
    found = splitter.run([Document(content=fields + BODY, meta={"file_path": "kiln.md"})])["documents"]
    assert [node.meta["headings"] for node in found if node.meta.get(FRONT_MATTER)] == [[]]
    return found


@pytest.mark.parametrize(
    "make",
    [
        lambda: LeafEmbedder(WordEmbedder(), progress_bar=False),
        lambda: HierarchyEmbedder(WordEmbedder(), progress_bar=False),
        lambda: LateChunkingEmbedder(progress_bar=False),
    ],
)
def test_it_gets_no_vector(nodes: list[Document], make: Callable[[], Any]) -> None:
    found = make().run(nodes)["documents"]
    assert [node.embedding is not None for node in found] == [is_searched(node) for node in nodes]


def test_it_does_not_count_in_what_stands_around_a_leaf(nodes: list[Document]) -> None:
    body = MarkdownHierarchicalSplitter(leaf_tokens=40, min_leaf_tokens=1).run([Document(content=BODY.lstrip())])
    ours, theirs = (
        HierarchyEmbedder(WordEmbedder(), context={"document": 0}, reading_tokens=30, progress_bar=False).run(each)
        for each in (nodes, body["documents"])
    )
    assert [node.embedding for node in ours["documents"] if is_searched(node)] == [
        pytest.approx(node.embedding) for node in theirs["documents"] if is_leaf(node)
    ]


@pytest.mark.parametrize("kind", [LeafEmbedder, HierarchyEmbedder])
def test_it_gets_one_where_that_is_wanted(nodes: list[Document], kind: Any) -> None:
    found = kind(WordEmbedder(), embed_front_matter=True, progress_bar=False).run(nodes)["documents"]
    assert all((node.embedding is not None) is is_leaf(node) for node in found)


def test_front_matter_over_several_leaves_leaves_the_node_above_it_without_a_mean() -> None:
    splitter = MarkdownHierarchicalSplitter(leaf_tokens=10, min_leaf_tokens=1)
    found = splitter.run([Document(content=FIELDS + BODY)])["documents"]
    assert sum(node.meta.get(FRONT_MATTER, False) for node in found) > 1
    embedded = HierarchyEmbedder(WordEmbedder(), inner="mean", progress_bar=False).run(found)["documents"]
    for node in embedded:
        only_fields = node.meta["split_idx_end"] <= len(FIELDS) + 1
        assert (node.embedding is None) is only_fields


def test_it_is_stored_without_a_warning_and_found_sound(
    nodes: list[Document], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = HierarchyQdrantDocumentStore(path=str(tmp_path / "qdrant"), embedding_dim=32)
    embedded = LeafEmbedder(WordEmbedder(), progress_bar=False).run(nodes)["documents"]
    HierarchyWriter(store, progress_bar=False).run(embedded)
    assert "no embedding" not in caplog.text
    assert check(store).sound
    query = WordEmbedder().embed("About the kiln, owner Ingrid")
    found = store._query_by_embedding(query, top_k=10)
    assert {node.id for node in found} == {node.id for node in nodes if is_searched(node)}
    store.close()


def test_it_is_found_by_its_words_where_these_are_embedded(nodes: list[Document]) -> None:
    dense = LeafEmbedder(WordEmbedder(), progress_bar=False).run(nodes)["documents"]
    both = LeafEmbedder(Bm25DocumentEmbedder(), embed_front_matter=True, progress_bar=False).run(dense)["documents"]
    (fields,) = [node for node in both if node.meta.get(FRONT_MATTER)]
    assert fields.embedding is None
    assert fields.sparse_embedding is not None
    assert replace(fields, sparse_embedding=None) == next(node for node in nodes if node.id == fields.id)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (FIELDS, "About the kiln"),
        ("---\r\nTitle:  'Kiln: a   guide' # new\r\n---\r\n", "Kiln: a guide"),
        ('---\nid: 1\n"title": "Fire & \\u00e9"\n---\n', "Fire & é"),
        ('+++\ntitle = "x"\n[extra]\n+++\n', "x"),
        ("---\nsubtitle: x\n  title: y\n---\n", None),
        ("---\ntitle: >\n  of many\n  lines\n---\n", None),
        ("---\ntitle:\n---\n", None),
        ("---\ntitle: 1984\n---\n", "1984"),
        ("---\ntitle: !!timestamp soon\n---\n", "soon"),
        ('---\ntitle: "\\ud800"\n---\n', "\ufffd"),
        ("---\ntitle: [a, b]\n---\n", None),
        ("---\ntitle: 'open\n---\n", None),
        ("---\ntitle: *nothing\n---\n", None),
        (f"---\ntitle: {'x' * 301}\n---\n", None),
        ("title: x\n", None),
    ],
)
def test_title(text: str, title: str | None) -> None:
    assert front_matter_title(text) == title


@pytest.mark.parametrize(
    "splitter",
    [
        MarkdownHierarchicalSplitter(leaf_tokens=30, min_leaf_tokens=1),
        AutoHierarchicalSplitter(leaf_tokens=30, min_leaf_tokens=1),
        TokenHierarchicalSplitter(chunk_sizes=[60, 30]),
    ],
)
def test_a_title_that_no_heading_gives_stands_above_all_others(splitter: Any) -> None:
    text = "---\ntitle: Pottery\n---\n" + BODY * 2
    nodes = splitter.run([Document(content=text)])["documents"]
    plain = splitter.run([Document(content=text.replace("title", "other"))])["documents"]
    assert [node.meta["headings"] for node in nodes] == [["Pottery", *node.meta["headings"]] for node in plain]
    assert "".join(node.content or "" for node in nodes if is_leaf(node)) == text
    deepest = max(nodes, key=lambda node: node.meta["__level"])
    assert [link["titles"] for link in deepest.meta["__ancestors"]] == [
        len(next(node for node in nodes if node.id == link["id"]).meta["headings"])
        for link in deepest.meta["__ancestors"]
    ]


@pytest.mark.parametrize("line_end", ["\n", "\r", "\r\n", " \r\n"])
def test_many_blank_lines_take_no_time(line_end: str) -> None:
    assert front_matter_end(line_end * 100_000 + "x") == 0
    assert front_matter_title(line_end * 100_000 + "---\ntitle: x\n---\n") == "x"


def test_a_title_that_a_later_heading_gives_stands_above_all() -> None:
    text = "---\ntitle: Installation\n---\n# Overview\n\nIt is a kiln.\n\n# Installation\n\nPut it on the floor.\n"
    nodes = MarkdownHierarchicalSplitter(leaf_tokens=20, min_leaf_tokens=1).run([Document(content=text)])["documents"]
    assert {tuple(node.meta["headings"]) for node in nodes} == {
        ("Installation",), ("Installation", "Overview"), ("Installation", "Installation"),
    }  # fmt: skip


def test_a_title_that_a_heading_gives_is_not_repeated() -> None:
    splitter = MarkdownHierarchicalSplitter(leaf_tokens=30, min_leaf_tokens=1)
    nodes = splitter.run([Document(content="---\ntitle: kiln\n---\n" + BODY)])["documents"]
    assert {tuple(node.meta["headings"]) for node in nodes} == {(), ("Kiln",), ("Kiln", "Glaze")}
