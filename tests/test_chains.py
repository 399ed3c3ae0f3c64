# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from typing import Any

from haystack import Document
from haystack.components.preprocessors import HierarchicalDocumentSplitter
from haystack.document_stores.in_memory import InMemoryDocumentStore

from hichunk_haystack.chains import Lengths, ResolvedHits, resolve_hits
from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.merging import Hit
from hichunk_haystack.reading import with_reads
from hichunk_haystack.tokens import HuggingFaceTokenCounter
from hichunk_haystack.weights import weigh

TEXT = "".join(f"w{number:02d} " for number in range(48))


class CountingCounter(HuggingFaceTokenCounter):
    """A word is a token; remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[str]] = []

    def count_texts(self, texts: Any) -> list[int]:
        self.asked.append(list(texts))
        return [len(text.split()) for text in texts]


def resolve(documents: list[Document], nodes: list[Document], counter: Any = None) -> ResolvedHits:
    store = InMemoryDocumentStore()
    store.write_documents(nodes)
    return with_reads(resolve_hits(documents, Lengths(counter or CountingCounter())), store)


def stock_tree(overlap: int = 0) -> list[Document]:
    splitter = HierarchicalDocumentSplitter(block_sizes={16, 4}, split_overlap=overlap, split_by="word")
    return splitter.run([Document(id="source", content=TEXT)])["documents"]


def leaves(nodes: list[Document]) -> list[Document]:
    return [node for node in nodes if not node.meta["__children_ids"]]


def described(hit: Hit) -> Any:
    return (
        [(above.tokens, above.children, above.level, above.start, above.end) for above in hit.ancestors],
        hit.tokens, hit.source_id, hit.start, hit.end,
    )  # fmt: skip


def test_a_stock_tree_is_read_level_by_level_and_its_offsets_are_added_up() -> None:
    nodes = stock_tree()
    # Three blocks of 16 words of 4 characters, each of four leaves: the 2nd and the 7th.
    resolved = resolve([leaves(nodes)[1], leaves(nodes)[6]], nodes)
    assert [described(hit) for hit in resolved.hits] == [
        ([(16, 4, 1, 0, 64), (48, 3, 0, 0, 192)], 4, "source", 16, 32),
        ([(16, 4, 1, 64, 128), (48, 3, 0, 0, 192)], 4, "source", 96, 112),
    ]
    assert resolved.missing == []


def test_places_are_true_of_the_source_in_trees_with_and_without_overlap() -> None:
    for overlap in (0, 1, 3):
        nodes = stock_tree(overlap)
        assert len(nodes) > 15
        for hit in resolve(nodes, nodes).hits:
            content = next(node.content for node in nodes if node.id == hit.id)
            assert TEXT[hit.start : hit.end] == content
            for above in hit.ancestors:
                assert TEXT[above.start : above.end] == next(node.content for node in nodes if node.id == above.id)


def test_the_root_of_a_stock_tree_has_nothing_above_it() -> None:
    nodes = stock_tree()
    assert described(resolve([nodes[0]], nodes).hits[0]) == ([], 48, "source", 0, 192)


def test_each_level_is_one_read_and_each_text_is_counted_once() -> None:
    nodes = stock_tree()
    counter = CountingCounter()
    work = resolve_hits(leaves(nodes), lengths := Lengths(counter))
    by_id = {node.id: node for node in nodes}
    reads = [sorted(next(work))]
    try:
        while True:
            reads.append(sorted(work.send({node_id: by_id[node_id] for node_id in reads[-1]})))
    except StopIteration as done:
        resolved = done.value
    blocks = [node for node in nodes if node.meta["__level"] == 1]
    assert reads == [sorted(block.id for block in blocks), ["source"]]
    assert len(resolved.hits) == 12
    # 12 leaves, 3 blocks and the source, in one go.
    assert [len(texts) for texts in counter.asked] == [16]
    # The next query counts nothing of it again.
    lengths.of(nodes)
    assert len(counter.asked) == 1
    # Another text under the same id is another length.
    assert lengths.of([Document(id="source", content="just three words")]) == {"source": 3}


def test_a_missing_parent_cuts_the_chain_and_is_named() -> None:
    nodes = stock_tree()
    block = nodes[1]
    leaf = next(node for node in leaves(nodes) if node.meta["__parent_id"] == block.id)
    resolved = resolve([leaf], [node for node in nodes if node.id != block.id])
    assert resolved.missing == [block.id]
    # What is missing stands for the source; the place is relative to it.
    assert described(resolved.hits[0]) == (
        [],
        4,
        block.id,
        leaf.meta["split_idx_start"],
        leaf.meta["split_idx_start"] + 16,
    )
    # The root is missing, the block is there.
    resolved = resolve([leaf], nodes[1:])
    assert resolved.missing == ["source"]
    assert [above.id for above in resolved.hits[0].ancestors] == [block.id]


def test_parents_that_go_in_a_circle_end_somewhere() -> None:
    a = Document(id="a", content="x", meta={"__level": 1, "__parent_id": "b", "__children_ids": ["b"]})
    b = Document(id="b", content="x", meta={"__level": 1, "__parent_id": "a", "__children_ids": ["a"]})
    resolved = resolve([a, b], [a, b])
    assert [hit.id for hit in resolved.hits] == ["a", "b"]
    assert all(len(hit.ancestors) <= 1 for hit in resolved.hits)


def test_our_trees_carry_all_of_it_and_nothing_is_read() -> None:
    text = "# Kiln\n\nFire it slowly. Then let it cool.\n\n# Wheel\n\nCentre the clay first.\n"
    splitter = MarkdownHierarchicalSplitter(leaf_tokens=10, min_leaf_tokens=1)
    nodes = splitter.run([Document(id="source", content=text)])["documents"]
    work = resolve_hits(nodes, Lengths(CountingCounter()))
    try:
        next(work)
    except StopIteration as done:
        resolved = done.value
    for node, hit in zip(nodes, resolved.hits, strict=True):
        assert (hit.tokens, hit.source_id) == (node.meta["token_count"], "source")
        assert text[hit.start : hit.end] == node.content
        assert [above.id for above in hit.ancestors] == [link["id"] for link in node.meta["__ancestors"]]
        assert [above.tokens for above in hit.ancestors] == [link["tokens"] for link in node.meta["__ancestors"]]


def test_documents_without_a_tree() -> None:
    plain = Document(id="plain", content="two words", score=0.5)
    flat = Document(id="flat", content="three more words", meta={"source_id": "s", "split_idx_start": 7})
    known = Document(id="known", content="whatever", meta={"token_count": 99})
    image = Document(id="image")
    resolved = resolve([plain, flat, known, image], [])
    assert [described(hit) for hit in resolved.hits] == [
        ([], 2, "plain", None, None),
        ([], 3, "s", 7, 23),
        ([], 99, "known", None, None),
        ([], 0, "image", None, None),
    ]
    assert resolved.hits[0].score == 0.5


def test_long_words_weigh_by_their_characters() -> None:
    # WordPiece counts each word of more than 100 characters as one unknown token.
    words = ["a" * 1600, "b" * 160, "c d " * 8]
    text = " ".join(words)
    assert [weigh(each, tokens) for each, tokens in zip(words, (1, 1, 16), strict=True)] == [100, 10, 16]
    # White space weighs nothing in a text that is at hand.
    assert weigh("x" + " " * 1000 + "y", 2) == 2
    section = {"id": "s", "level": 1, "tokens": 18, "children": 3, "start": 100, "end": 100 + len(text)}
    bare = {"id": "r", "level": 0, "tokens": 18, "children": 1}
    leaf = Document(
        id="l",
        content=words[0],
        meta={"token_count": 1, "source_id": "r", "split_idx_start": 100, "__ancestors": [section, bare]},
    )
    (hit,) = resolve([leaf], []).hits
    # 1600 + 160 + 32 characters and two blanks: 1794 / 16 = 112.1
    assert (hit.tokens, [above.tokens for above in hit.ancestors]) == (100, [113, 18])


def test_what_a_stock_tree_does_not_carry_is_weighed_by_its_text() -> None:
    text = f"{'a' * 800} {'b' * 800} {'c' * 800} {'d' * 800}"
    splitter = HierarchicalDocumentSplitter(block_sizes={4, 1}, split_overlap=0, split_by="word")
    nodes = splitter.run([Document(id="source", content=text)])["documents"]
    (hit,) = resolve(leaves(nodes)[:1], nodes).hits
    assert (hit.tokens, [above.tokens for above in hit.ancestors][:1]) == (50, [200])
