# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from haystack import Document, Pipeline
from haystack.components.preprocessors import HierarchicalDocumentSplitter
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer

from hichunk_haystack.components.embedders import (
    LateChunkingEmbedder,
    OfflineSentenceTransformersDocumentEmbedder,
    OfflineSentenceTransformersTextEmbedder,
)
from hichunk_haystack.components.embedders.late_chunking_model import TokenModel
from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.models import resolve_model
from hichunk_haystack.tree import is_leaf

TEXT = "# Kiln\n\nFire it slowly over eight hours.\n\nIt cools for a whole day.\n\n# Wheel\n\nCentre the clay first.\n"


@pytest.fixture(scope="module")
def model() -> SentenceTransformer:
    return SentenceTransformer(resolve_model("sentence-transformers/all-MiniLM-L6-v2"), device="cpu")


def tree(text: str = TEXT, leaf_tokens: int = 12) -> list[Document]:
    splitter = MarkdownHierarchicalSplitter(leaf_tokens=leaf_tokens, min_leaf_tokens=1)
    return splitter.run([Document(content=text)])["documents"]


def embed(nodes: list[Document], **options: Any) -> list[Document]:
    return LateChunkingEmbedder(progress_bar=False, **options).run(nodes)["documents"]


def vectors(nodes: list[Document]) -> Any:
    return np.array([node.embedding for node in nodes if is_leaf(node)])


def test_a_leaf_is_the_mean_of_its_tokens_in_the_whole_text(model: SentenceTransformer) -> None:
    nodes = tree()
    found = embed(nodes)
    encoded = model.tokenizer(TEXT, return_tensors="pt", return_offsets_mapping=True)
    offsets = encoded.pop("offset_mapping")[0].tolist()
    with torch.inference_mode():
        tokens = model[0](dict(encoded))["token_embeddings"][0].numpy()
    for node in filter(is_leaf, found):
        start, end = node.meta["split_idx_start"], node.meta["split_idx_end"]
        # The special tokens have the offsets (0, 0).
        inside = [place for place, (a, b) in enumerate(offsets) if b > a and start <= a < end]
        mean = tokens[inside].mean(axis=0)
        assert node.embedding == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)
    assert [node.embedding is not None for node in found] == [is_leaf(node) for node in nodes]


def test_a_leaf_knows_what_stands_around_it() -> None:
    query = np.array(OfflineSentenceTransformersTextEmbedder().run("How long does the kiln cool?")["embedding"])
    nodes = tree()
    leaf = next(number for number, node in enumerate(filter(is_leaf, nodes)) if "It cools" in (node.content or ""))
    late = vectors(embed(nodes))
    plain = OfflineSentenceTransformersDocumentEmbedder(progress_bar=False).run(
        [Document(content=node.content) for node in nodes if is_leaf(node)]
    )["documents"]
    assert query @ late[leaf] > query @ np.array(plain[leaf].embedding) + 0.05


def test_windows_of_a_long_text_give_nearly_what_one_window_gives() -> None:
    text = "".join(f"Step {number}: fire kiln number {number} slowly, then let it cool.\n\n" for number in range(26))
    nodes = tree(text, leaf_tokens=20)
    whole = vectors(embed(nodes, window_tokens=512))
    assert len(whole) > 20
    for batch_size in (1, 4):
        parts = vectors(embed(nodes, window_tokens=128, overlap_tokens=64, batch_size=batch_size))
        assert np.linalg.norm(parts, axis=1) == pytest.approx(np.ones(len(parts)))
        assert (parts * whole).sum(axis=1).min() > 0.75


def test_documents_are_not_changed_and_come_back_in_order() -> None:
    nodes = [*tree(), Document(content="A plain document."), *tree("# Bees\n\nThey sleep.\n")]
    nodes.reverse()
    before = deepcopy(nodes)
    found = embed(nodes)
    assert nodes == before
    for node, old in zip(found, nodes, strict=True):
        assert (node.id, node.content, node.meta) == (old.id, old.content, old.meta)
        assert (node.embedding is not None) == is_leaf(node)
    # In whatever order leaves come, their text is that of the document.
    by_id = {node.id: node.embedding for node in embed(nodes[::-1])}
    for node in filter(is_leaf, found):
        assert node.embedding == pytest.approx(by_id[node.id], abs=1e-5)


async def test_run_async_gives_the_same() -> None:
    embedder = LateChunkingEmbedder(progress_bar=False)
    nodes = tree()
    assert await embedder.run_async(nodes) == embedder.run(nodes)


def test_a_prefix_is_read_but_not_pooled() -> None:
    nodes = tree()
    plain, prefixed = vectors(embed(nodes)), vectors(embed(nodes, prefix="passage: "))
    likeness = (plain * prefixed).sum(axis=1)
    assert likeness.max() < 0.9999
    assert likeness.min() > 0.9


def test_trees_of_haystack_and_odd_texts(caplog: pytest.LogCaptureFixture) -> None:
    stock = HierarchicalDocumentSplitter(block_sizes={6, 3}).run([Document(content="Fire the kiln and let it cool.")])
    assert all((node.embedding is not None) == is_leaf(node) for node in embed(stock["documents"]))
    blank = Document(id="blank", content=" \n")
    found = embed([blank, Document(id="odd", content="\ud83d ä😀字"), Document(id="none", content=None)])
    assert [node.embedding is not None for node in found] == [False, True, False]
    assert "A leaf of document 'blank' has no token" in caplog.text
    assert embed([]) == []


def test_bfloat16_is_near_enough() -> None:
    nodes = tree()
    exact = vectors(embed(nodes))
    quick = vectors(embed(nodes, model_kwargs={"dtype": "bfloat16"}))
    assert (exact * quick).sum(axis=1).min() > 0.99


# -- options and models


def test_yaml_and_back() -> None:
    pipeline = Pipeline()
    pipeline.add_component("embedder", LateChunkingEmbedder(window_tokens=128, overlap_tokens=32, prefix="p: "))
    text = pipeline.dumps()
    again = Pipeline.loads(text, allowed_modules=["hichunk_haystack"])
    assert again.dumps() == text
    parameters = again.to_dict()["components"]["embedder"]["init_parameters"]
    assert (parameters["model"], parameters["window_tokens"], parameters["overlap_tokens"]) == (
        "sentence-transformers/all-MiniLM-L6-v2", 128, 32
    )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window_tokens": 3}, "window_tokens is 3"),
        ({"overlap_tokens": -1}, "overlap_tokens is -1"),
        ({"meta_fields_to_embed": ["x"]}, "meta_fields_to_embed is no option of late chunking"),
    ],
)
def test_options_that_make_no_sense_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LateChunkingEmbedder(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window_tokens": 513}, "the model reads at most 512 tokens at once"),
        ({"window_tokens": 20, "overlap_tokens": 18}, "it must have more than the overlap of 18"),
        ({"window_tokens": 4, "prefix": "a long prefix"}, "has room for -1"),
    ],
)
def test_windows_that_do_not_fit_the_model_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        embed(tree(), **options)


def test_a_model_without_vectors_of_tokens_is_refused(tokenizer_files: dict[str, str]) -> None:
    static = SentenceTransformer(
        modules=[StaticEmbedding(Tokenizer.from_file(tokenizer_files["bpe"]), embedding_dim=4)], device="cpu"
    )
    with pytest.raises(ValueError, match="Late chunking needs a transformer"):
        TokenModel(static, window_tokens=None, overlap_tokens=None, prefix="")


def test_what_is_no_document_is_refused() -> None:
    with pytest.raises(TypeError, match="but got a str"):
        embed(["text"])  # type: ignore[list-item]
