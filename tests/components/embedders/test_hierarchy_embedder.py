# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from haystack import Document, Pipeline, component
from haystack.components.preprocessors import HierarchicalDocumentSplitter

from hichunk_haystack.components.embedders import HierarchyEmbedder, LeafEmbedder
from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.tree import ANCESTORS, LEVEL, is_leaf
from tests.word_embedder import WordEmbedder

TEXT = """\
Pottery takes patience.

# Kiln

Fire it slowly, then let it cool for a whole day. Never open it while it is hot.

Write down how long it took and how hot it was.

# Wheel

Centre the clay before you open it.
"""


@pytest.fixture
def nodes() -> list[Document]:
    splitter = MarkdownHierarchicalSplitter(leaf_tokens=16, min_leaf_tokens=1, inner_tokens=[32])
    return splitter.run([Document(content=TEXT, meta={"file_path": "pottery.md"})])["documents"]


def embedder(**options: Any) -> HierarchyEmbedder:
    return HierarchyEmbedder(WordEmbedder(), **{"reading_tokens": 40, "progress_bar": False, **options})


def unit(vector: Any) -> np.ndarray:
    return np.asarray(vector) / np.linalg.norm(vector)


def test_without_context_leaves_have_what_a_leaf_embedder_gives(nodes: list[Document]) -> None:
    plain = LeafEmbedder(WordEmbedder(), progress_bar=False).run(nodes)["documents"]
    for ours, theirs in zip(embedder(context=False).run(nodes)["documents"], plain, strict=True):
        assert (ours.embedding is None) == (theirs.embedding is None)
        if theirs.embedding is not None:
            assert ours.embedding == pytest.approx(unit(theirs.embedding))


def test_order_text_and_meta_stay_and_nothing_of_the_caller_changes(nodes: list[Document]) -> None:
    before = deepcopy(nodes)
    found = embedder(inner="both").run(nodes)["documents"]
    assert nodes == before
    assert [(node.id, node.content, node.meta) for node in found] == [
        (node.id, node.content, node.meta) for node in nodes
    ]


def test_inner_nodes_get_no_vector_unless_asked(nodes: list[Document]) -> None:
    found = embedder().run(nodes)["documents"]
    assert {is_leaf(node): node.embedding is None for node in found} == {True: False, False: True}


@pytest.mark.parametrize("inner", ["mean", "embed", "both"])
def test_all_inner_nodes_get_vectors_of_length_1(nodes: list[Document], inner: str) -> None:
    for node in embedder(inner=inner).run(nodes)["documents"]:
        assert np.linalg.norm(node.embedding) == pytest.approx(1)


def test_what_is_embedded_and_what_is_a_mean(nodes: list[Document]) -> None:
    found = {mode: embedder(inner=mode, context=False).run(nodes)["documents"] for mode in ("mean", "embed", "both")}
    texts = WordEmbedder()
    for place, node in enumerate(nodes):
        if is_leaf(node):
            continue
        own = unit(texts.embed("\n".join([*_missing_headings(node), node.content or ""])))
        assert found["embed"][place].embedding == pytest.approx(own)
        read_whole = node.meta["token_count"] <= 40
        same = found["embed"] if read_whole else found["mean"]
        assert found["both"][place].embedding == same[place].embedding


def _missing_headings(node: Document) -> list[str]:
    """Titles that the node's own text does not start with: none in this text, where sections start with theirs."""
    return [title for title in node.meta["headings"] if not (node.content or "").startswith("#")]


def test_the_root_is_the_mean_of_its_children(nodes: list[Document]) -> None:
    found = embedder(inner="mean", context=False).run(nodes)["documents"]
    below = [np.asarray(node.embedding) for node in found if node.meta[LEVEL] == 1]
    assert found[0].embedding == pytest.approx(unit(sum(below)))


def test_passages_as_means_ask_the_embedder_for_the_leaves_only(nodes: list[Document]) -> None:
    leaves = sum(map(is_leaf, nodes))
    for options, more in (({}, False), ({"context": False}, False), ({"passages": "embed"}, True)):
        words = WordEmbedder()
        HierarchyEmbedder(words, reading_tokens=40, progress_bar=False, **options).run(nodes)
        assert (words.seen > leaves) is more


def test_a_leaf_moves_towards_what_stands_around_it(nodes: list[Document]) -> None:
    alone = embedder(context=False, inner="mean").run(nodes)["documents"]
    document = np.asarray(alone[0].embedding)
    mixed = embedder(context={"passages": 0, "sections": 0, "neighbours": 0, "document": 1}).run(nodes)["documents"]
    for before, after in zip(alone, mixed, strict=True):
        if is_leaf(before):
            assert after.embedding == pytest.approx(unit(np.asarray(before.embedding) + document))


def test_a_document_without_a_tree_keeps_its_vector() -> None:
    found = embedder().run([Document(content="Fire the kiln.")])["documents"]
    assert found[0].embedding == pytest.approx(unit(WordEmbedder().embed("Fire the kiln.")))


def test_trees_of_one_call_do_not_touch_each_other(nodes: list[Document]) -> None:
    splitter = MarkdownHierarchicalSplitter(leaf_tokens=16, min_leaf_tokens=1, inner_tokens=[32])
    other = splitter.run([Document(content="# Boats\n\nTake the oars out first.\n\n# Nets\n\nDry them.\n")])[
        "documents"
    ]
    alone = {node.id: node.embedding for node in embedder(inner="both").run(nodes)["documents"]}
    together = embedder(inner="both").run([*other, *nodes])["documents"]
    assert {node.id: node.embedding for node in together if node.id in alone} == alone


async def test_async_gives_the_same(nodes: list[Document]) -> None:
    assert await embedder(inner="both").run_async(nodes) == embedder(inner="both").run(nodes)


def test_nothing_in_nothing_out() -> None:
    assert embedder().run([]) == {"documents": []}


def test_a_sparse_embedder_is_refused(nodes: list[Document]) -> None:
    from hichunk_haystack.components.embedders import Bm25DocumentEmbedder

    with pytest.raises(ValueError, match="mixes dense vectors"):
        HierarchyEmbedder(Bm25DocumentEmbedder(), progress_bar=False).run(nodes)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"inner": "all"}, "inner is 'all'"),
        ({"passages": "none"}, "passages is 'none'"),
        ({"reading_tokens": 0}, "reading_tokens is 0"),
        ({"context": {"roof": 1}}, "no weight 'roof'"),
        ({"leaves_per_call": 0}, "leaves_per_call is 0"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        embedder(**options)


@pytest.mark.parametrize("context", [True, False, {"document": 2.0}])
def test_it_comes_back_from_yaml_as_it_was(context: Any) -> None:
    from hichunk_haystack.components.embedders import OfflineSentenceTransformersDocumentEmbedder

    ours = HierarchyEmbedder(
        OfflineSentenceTransformersDocumentEmbedder(),
        context=context,
        passages="embed",
        reading_tokens=128,
        inner="both",
        mean_by_tokens=True,
        embed_headings=False,
        max_heading_characters=50,
        embed_table_header=False,
        embed_context=False,
        embed_front_matter=True,
        leaves_per_call=7,
        progress_bar=False,
    )
    data = ours.to_dict()
    assert data["type"] == "hichunk_haystack.components.embedders.HierarchyEmbedder"
    parameters = dict(data["init_parameters"])
    nested = parameters.pop("document_embedder")
    assert nested["type"].endswith("OfflineSentenceTransformersDocumentEmbedder")
    assert parameters == {
        "context": context,
        "passages": "embed",
        "reading_tokens": 128,
        "inner": "both",
        "mean_by_tokens": True,
        "embed_headings": False,
        "max_heading_characters": 50,
        "embed_table_header": False,
        "embed_context": False,
        "embed_front_matter": True,
        "leaves_per_call": 7,
        "progress_bar": False,
    }
    pipeline = Pipeline()
    pipeline.add_component("embedder", ours)
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["hichunk_haystack"])
    assert again.dumps() == pipeline.dumps()


def test_an_embedder_that_fails_is_told(nodes: list[Document]) -> None:
    @component
    class Broken:
        @component.output_types(documents=list[Document])
        def run(self, documents: list[Document]) -> dict[str, list[Document]]:
            msg = f"no power for {len(documents)}"
            raise OSError(msg)

    with pytest.raises(RuntimeError, match="no power"):
        HierarchyEmbedder(Broken(), progress_bar=False).run(nodes)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ([float("nan")] * 32, "NaN or infinity in it, for a text of 'pottery.md' that begins with '# Wheel"),
        ([float("inf")] * 32, "NaN or infinity"),
        ([1.0], "(1 dimensions, and 32 before|32 dimensions, and 1 before)"),
    ],
)
def test_one_bad_vector_spoils_no_others(nodes: list[Document], bad: list[float], said: str) -> None:
    class Spoiling(WordEmbedder):
        def run(self, documents: list[Document]) -> dict[str, list[Document]]:
            found = super().run(documents)["documents"]
            return {"documents": [replace(each, embedding=bad) if "Centre" in each.content else each for each in found]}

    with pytest.raises(RuntimeError, match=said):
        HierarchyEmbedder(Spoiling(), progress_bar=False).run(nodes)


def test_nodes_that_come_twice_count_once(nodes: list[Document]) -> None:
    once = embedder(inner="mean").run(nodes)["documents"]
    assert embedder(inner="mean").run([*nodes, *nodes[:3]])["documents"] == [*once, *once[:3]]


# -- trees of Haystack's own splitter


def haystack_tree(*texts: str) -> list[Document]:
    splitter = HierarchicalDocumentSplitter(block_sizes={3, 6}, split_overlap=0, split_by="word")
    return splitter.run([Document(content=text) for text in texts])["documents"]


def stripped(nodes: list[Document]) -> list[Document]:
    """Our nodes with no more than Haystack's know: no links with lengths, offsets from the parent's start."""
    by_id = {node.id: node for node in nodes}
    found = []
    for node in nodes:
        names = ("__level", "__parent_id", "__children_ids", "__block_size", "token_count")
        meta = {name: node.meta[name] for name in names}
        parent = by_id.get(node.meta["__parent_id"])
        start = node.meta["split_idx_start"]
        meta["split_idx_start"] = start if parent is None else start - parent.meta["split_idx_start"]
        found.append(replace(node, meta=meta))
    return found


@pytest.mark.parametrize("inner", [None, "mean", "embed", "both"])
@pytest.mark.parametrize("passages", ["mean", "embed"])
def test_a_tree_that_names_parents_only_is_embedded_like_one_of_ours(
    nodes: list[Document], inner: Any, passages: Any
) -> None:
    run = embedder(inner=inner, passages=passages, embed_headings=False).run
    ours, theirs = run(nodes)["documents"], run(stripped(nodes))["documents"]
    assert [node.embedding is None for node in theirs] == [node.embedding is None for node in ours]
    for one, other in zip(ours, theirs, strict=True):
        if one.embedding is not None:
            assert other.embedding == pytest.approx(one.embedding)


def test_links_without_lengths_are_looked_up(nodes: list[Document]) -> None:
    poor = [
        replace(node, meta={**node.meta, ANCESTORS: [{"id": link["id"]} for link in node.meta[ANCESTORS]]})
        for node in nodes
    ]
    run = embedder(inner="mean").run
    assert [node.embedding for node in run(poor)["documents"]] == [node.embedding for node in run(nodes)["documents"]]


def test_haystacks_own_trees_get_vectors_at_every_level() -> None:
    nodes = haystack_tree("Fire it slowly then let it cool for a whole day and wait", "One two")
    before = deepcopy(nodes)
    found = embedder(inner="mean").run(nodes)["documents"]
    assert nodes == before
    assert [node.meta for node in found] == [node.meta for node in nodes]
    assert len({node.meta["__level"] for node in found}) == 3
    by_id = {node.id: node for node in found}
    for node in found:
        assert np.linalg.norm(node.embedding) == pytest.approx(1)
        if node.meta["__level"] == 1 and node.meta["__children_ids"]:
            plain = LeafEmbedder(WordEmbedder(), progress_bar=False).run(
                [by_id[child] for child in node.meta["__children_ids"]]
            )["documents"]
            assert node.embedding == pytest.approx(unit(sum(unit(leaf.embedding) for leaf in plain)))
    # Context is there as well: the same words in another document have another vector.
    alone = embedder(context=False).run(nodes)["documents"]
    leaf = next(node for node in nodes if node.meta["__level"] == 2)
    assert by_id[leaf.id].embedding != next(node.embedding for node in alone if node.id == leaf.id)


def test_leaves_whose_parents_are_not_given_are_embedded_alone() -> None:
    leaves = [node for node in haystack_tree("Fire it slowly then let it cool for a day") if is_leaf(node)]
    found = embedder(inner="mean").run(leaves)["documents"]
    assert all(node.embedding is not None for node in found)
