# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import asyncio
import threading
from collections import Counter
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from haystack import Document, Pipeline, component
from haystack.components.embedders import MockDocumentEmbedder
from haystack.dataclasses import SparseEmbedding
from haystack_integrations.components.embedders.sentence_transformers import SentenceTransformersDocumentEmbedder

from hichunk_haystack.components.embedders import LeafEmbedder, OfflineSentenceTransformersDocumentEmbedder
from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.models import resolve_model
from hichunk_haystack.tree import is_leaf

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
TEXT = """\
Pottery takes patience.

# Kiln

Fire it slowly, then let it cool for a whole day.

## Glaze

Dip the pot for three seconds.

# Wheel

Centre the clay before you open it.
"""
LEAF_TEXTS = [
    "Pottery takes patience.\n\n",
    "# Kiln\n\nFire it slowly, then let it cool for a whole day.\n\n",
    "Kiln\n## Glaze\n\nDip the pot for three seconds.\n\n",
    "# Wheel\n\nCentre the clay before you open it.\n",
]


class RecordingEmbedder(MockDocumentEmbedder):
    """Haystack's offline embedder, which notes what it is given and can be told to fail."""

    def __init__(self, fail_at: int | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.fail_at = fail_at
        self.calls: list[list[str | None]] = []
        self.bars: list[bool] = []
        self.threads: list[str] = []
        self.closed: list[str] = []

    # Haystack compares the signature with that of the inherited `run_async`, whose annotations are texts.
    @component.output_types(documents=list[Document], meta=dict[str, Any])
    def run(self, documents: "list[Document]") -> "dict[str, Any]":
        if len(self.calls) == self.fail_at:
            msg = "connection lost"
            raise ConnectionError(msg)
        self.calls.append([document.content for document in documents])
        self.bars.append(self.progress_bar)
        self.threads.append(threading.current_thread().name)
        return super().run(documents=documents)

    def close(self) -> None:
        self.closed.append("close")

    async def close_async(self) -> None:
        self.closed.append("close_async")


@component
class TermCountEmbedder:
    """A small sparse embedder that knows only the synchronous way, and keeps what it is given."""

    def __init__(self) -> None:
        self.threads: list[str] = []
        self.warm = 0

    def warm_up(self) -> None:
        self.warm += 1

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        self.threads.append(threading.current_thread().name)
        result = []
        for document in documents:
            terms = sorted(Counter(len(word) for word in (document.content or "").split()).items())
            sparse = SparseEmbedding([term for term, _ in terms], [float(count) for _, count in terms])
            result.append(replace(document, sparse_embedding=sparse))
        return {"documents": result}


@component
class Careless:
    """Does to its documents what the test says, as careless embedders do."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        for document in documents:
            document.meta["embedded_by"] = "careless"
        done = [replace(document, embedding=[1.0, 0.0]) for document in documents]
        if self.kind == "drops":
            done = done[1:]
        elif self.kind == "reverses":
            done = done[::-1]
        elif self.kind == "forgets":
            done[0] = replace(done[0], embedding=None)
        return {"documents": done}


@pytest.fixture(scope="module")
def nodes() -> list[Document]:
    source = Document(content=TEXT, meta={"file_path": "pottery.md"})
    return MarkdownHierarchicalSplitter(leaf_tokens=20, min_leaf_tokens=1).run([source])["documents"]


def embed(nodes: list[Document], embedder: Any, **options: Any) -> list[Document]:
    return LeafEmbedder(embedder, progress_bar=False, **options).run(nodes)["documents"]


def test_the_tree_is_as_the_tests_below_take_it(nodes: list[Document]) -> None:
    assert [node.content for node in nodes if is_leaf(node)] == [
        "Pottery takes patience.\n\n",
        "# Kiln\n\nFire it slowly, then let it cool for a whole day.\n\n",
        "## Glaze\n\nDip the pot for three seconds.\n\n",
        "# Wheel\n\nCentre the clay before you open it.\n",
    ]
    assert [is_leaf(node) for node in nodes] == [False, True, False, True, True, True]


def test_a_real_model_embeds_the_leaves_only(nodes: list[Document]) -> None:
    before = deepcopy(nodes)
    result = embed(nodes, OfflineSentenceTransformersDocumentEmbedder(model=MODEL, progress_bar=False))

    assert [node.id for node in result] == [node.id for node in nodes]
    assert result[0] is nodes[0]
    assert result[2] is nodes[2]
    assert nodes == before  # the caller's documents have no embedding, nor anything else new
    assert [replace(node, embedding=None) for node in result] == nodes

    stock = SentenceTransformersDocumentEmbedder(model=resolve_model(MODEL), progress_bar=False)
    stock.warm_up()
    expected = stock.run([Document(content=text) for text in LEAF_TEXTS])["documents"]
    leaves = [node for node in result if is_leaf(node)]
    for leaf, wanted in zip(leaves, expected, strict=True):
        assert leaf.embedding == pytest.approx(wanted.embedding, abs=1e-5)
        assert len(leaf.embedding or []) == 384


def test_headings_go_in_front_of_the_text_that_is_embedded_or_not(nodes: list[Document]) -> None:
    with_headings, without = RecordingEmbedder(), RecordingEmbedder()
    embed(nodes, with_headings)
    embed(nodes, without, embed_headings=False)
    assert set(with_headings.calls[0]) == set(LEAF_TEXTS)
    assert set(without.calls[0]) == {node.content for node in nodes if is_leaf(node)}


def test_the_heading_path_is_bounded() -> None:
    embedder = RecordingEmbedder()
    embed([Document(content="text", meta={"headings": ["x" * 300]})], embedder)
    assert embedder.calls == [["x" * 200 + "\ntext"]]


def test_slices_go_from_long_to_short_and_the_order_comes_back() -> None:
    embedder = RecordingEmbedder(dimension=3)
    documents = [Document(content=letter * length) for letter, length in zip("abcde", (2, 5, 1, 4, 3), strict=True)]
    result = embed(documents, embedder, leaves_per_call=2)
    assert embedder.calls == [["bbbbb", "dddd"], ["eee", "aa"], ["c"]]
    assert [document.id for document in result] == [document.id for document in documents]
    alone = MockDocumentEmbedder(dimension=3).run(documents)["documents"]
    assert [document.embedding for document in result] == [document.embedding for document in alone]


def test_documents_without_a_tree_count_as_leaves() -> None:
    documents = [Document(content="one"), Document(content=None, meta={"a": 1})]
    result = embed(documents, MockDocumentEmbedder())
    assert [document.embedding is not None for document in result] == [True, True]
    assert [document.content for document in result] == ["one", None]


def test_nothing_to_embed(nodes: list[Document]) -> None:
    embedder = RecordingEmbedder()
    inner = [node for node in nodes if not is_leaf(node)]
    assert embed(inner, embedder) == inner
    assert embed([], embedder) == []
    assert embedder.calls == []


def test_a_leaf_is_embedded_again_and_another_kind_of_embedding_stays() -> None:
    sparse = SparseEmbedding([4], [1.0])
    old = Document(content="kiln", embedding=[9.0], sparse_embedding=sparse)
    dense = embed([old], MockDocumentEmbedder(embedding=[1.0, 2.0]))[0]
    assert dense.embedding == [1.0, 2.0]
    assert dense.sparse_embedding == sparse
    both = embed([dense], TermCountEmbedder())[0]
    assert both.embedding == [1.0, 2.0]
    assert both.sparse_embedding == SparseEmbedding([4], [1.0])
    assert old.embedding == [9.0]


def test_subclasses_of_document_stay_what_they_are() -> None:
    class Page(Document):
        pass

    assert type(embed([Page(content="text")], MockDocumentEmbedder())[0]) is Page


def test_an_embedder_that_changes_its_documents_does_not_reach_the_caller(nodes: list[Document]) -> None:
    before = deepcopy(nodes)
    result = embed(nodes, Careless("changes"))
    assert nodes == before
    # What an embedder says about a document is kept.
    assert [node.meta.get("embedded_by") for node in result] == [None, "careless", None, *["careless"] * 3]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("drops", "for 4 leaves it gave back 3 documents"),
        ("reverses", "for 4 leaves it gave back 4 documents, not the same in the same order"),
        ("forgets", "it gave no embedding for 1 of 4 leaves"),
    ],
)
def test_an_answer_that_does_not_fit_is_an_error(nodes: list[Document], kind: str, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        embed(nodes, Careless(kind))


def test_a_failure_says_how_far_it_came_and_the_next_run_is_whole() -> None:
    documents = [Document(content="x" * length, meta={"file_path": f"{length}.md"}) for length in (5, 4, 3, 2, 1)]
    embedder = RecordingEmbedder(fail_at=1)
    leaf_embedder = LeafEmbedder(embedder, leaves_per_call=2, progress_bar=False)
    with pytest.raises(
        RuntimeError, match=r"after 2 of 5 leaves, at leaves of '3.md', '2.md': ConnectionError"
    ) as caught:
        leaf_embedder.run(documents)
    assert isinstance(caught.value.__cause__, ConnectionError)
    assert all(document.embedding is None for document in documents)
    embedder.fail_at = None
    assert all(document.embedding for document in leaf_embedder.run(documents)["documents"])


def test_only_one_progress_bar_shows(nodes: list[Document], capsys: pytest.CaptureFixture[str]) -> None:
    embedder = RecordingEmbedder(progress_bar=True)
    bars: list[bool] = embedder.bars
    before = embedder.to_dict()

    LeafEmbedder(embedder, leaves_per_call=3).run(nodes)
    assert bars == [False, False]
    assert "4/4" in capsys.readouterr().err
    assert embedder.progress_bar is True
    assert embedder.to_dict() == before

    LeafEmbedder(embedder, progress_bar=False).run(nodes)
    assert bars == [False, False, True]
    assert "4/4" not in capsys.readouterr().err


def test_the_real_embedder_keeps_its_bar_to_itself(nodes: list[Document], capsys: pytest.CaptureFixture[str]) -> None:
    embedder = OfflineSentenceTransformersDocumentEmbedder(model=MODEL, progress_bar=True)
    embedder.warm_up()
    capsys.readouterr()
    LeafEmbedder(embedder).run(nodes)
    shown = capsys.readouterr().err
    assert "Embedding: 100%" in shown
    assert "Batches" not in shown
    assert embedder.progress_bar is True
    embedder.run(nodes[:1])
    assert "Batches" in capsys.readouterr().err


async def test_async_gives_the_same_with_a_model_in_a_thread(nodes: list[Document]) -> None:
    embedder = LeafEmbedder(
        OfflineSentenceTransformersDocumentEmbedder(model=MODEL), leaves_per_call=2, progress_bar=False
    )
    assert await embedder.run_async(nodes) == await asyncio.to_thread(embedder.run, nodes)


async def test_async_uses_the_asynchronous_side_where_there_is_one(nodes: list[Document]) -> None:
    asynchronous, synchronous = RecordingEmbedder(), TermCountEmbedder()
    here = threading.current_thread().name
    result = await LeafEmbedder(asynchronous, progress_bar=False).run_async(nodes)
    assert asynchronous.threads == [here]
    assert result["documents"] == embed(nodes, RecordingEmbedder())

    await LeafEmbedder(synchronous, progress_bar=False).run_async(nodes)
    assert len(synchronous.threads) == 1
    assert synchronous.threads[0] != here
    assert synchronous.warm == 1


async def test_async_failures_say_the_same(nodes: list[Document]) -> None:
    with pytest.raises(RuntimeError, match="after 2 of 4 leaves"):
        await LeafEmbedder(RecordingEmbedder(fail_at=1), leaves_per_call=2, progress_bar=False).run_async(nodes)


async def test_closing_reaches_the_embedder() -> None:
    embedder = RecordingEmbedder()
    leaf_embedder = LeafEmbedder(embedder)
    leaf_embedder.close()
    await leaf_embedder.close_async()
    assert embedder.closed == ["close", "close_async"]
    without = LeafEmbedder(TermCountEmbedder())
    without.close()
    await without.close_async()


def test_what_is_no_document_is_refused() -> None:
    with pytest.raises(TypeError, match="got a str"):
        embed(["text"], MockDocumentEmbedder())  # type: ignore[list-item]


@pytest.mark.parametrize("name", ["leaves_per_call", "max_heading_characters"])
def test_numbers_below_one_are_refused(name: str) -> None:
    options: dict[str, Any] = {name: 0}
    with pytest.raises(ValueError, match=f"{name} is 0"):
        LeafEmbedder(MockDocumentEmbedder(), **options)


def test_serialisation() -> None:
    embedder = LeafEmbedder(
        MockDocumentEmbedder(dimension=3),
        embed_headings=False,
        max_heading_characters=80,
        embed_context=False,
        embed_front_matter=True,
        leaves_per_call=16,
        progress_bar=False,
    )
    data = embedder.to_dict()
    assert data == {
        "type": "hichunk_haystack.components.embedders.LeafEmbedder",
        "init_parameters": {
            "document_embedder": MockDocumentEmbedder(dimension=3).to_dict(),
            "embed_headings": False,
            "max_heading_characters": 80,
            "embed_table_header": True,
            "embed_context": False,
            "embed_front_matter": True,
            "leaves_per_call": 16,
            "progress_bar": False,
        },
    }
    assert LeafEmbedder.from_dict(data).to_dict() == data
    assert LeafEmbedder(MockDocumentEmbedder()).to_dict()["init_parameters"] == {
        "document_embedder": MockDocumentEmbedder().to_dict(),
        "embed_headings": True,
        "max_heading_characters": 200,
        "embed_table_header": True,
        "embed_context": True,
        "embed_front_matter": False,
        "leaves_per_call": 128,
        "progress_bar": True,
    }


def test_yaml_with_the_real_embedder(nodes: list[Document]) -> None:
    pipeline = Pipeline()
    pipeline.add_component(
        "embedder",
        LeafEmbedder(OfflineSentenceTransformersDocumentEmbedder(model=MODEL, progress_bar=False), progress_bar=False),
    )
    text = pipeline.dumps()
    loaded = Pipeline.loads(text, allowed_modules=["hichunk_haystack"])
    assert loaded.dumps() == text
    assert loaded == pipeline
    result = loaded.run({"embedder": {"documents": nodes}})["embedder"]["documents"]
    assert [node.embedding is not None for node in result] == [is_leaf(node) for node in nodes]
    assert loaded.dumps() == text  # the path of the packaged model does not show


def test_a_leaf_without_a_utf_8_form_is_embedded_with_the_others() -> None:
    nodes = [Document(id="odd", content="Fire \udcff it.", meta={"headings": ["\ud800"]}), Document(content="Dip it.")]
    embedder = LeafEmbedder(OfflineSentenceTransformersDocumentEmbedder(progress_bar=False), progress_bar=False)
    found = embedder.run(nodes)["documents"]
    assert [node.content for node in found] == [node.content for node in nodes]
    assert all(node.embedding for node in found)
