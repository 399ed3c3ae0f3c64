# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import math
from pathlib import Path

import pytest
from haystack import Document
from haystack_integrations.components.retrievers.qdrant import QdrantSparseEmbeddingRetriever

from hichunk_haystack.components.embedders import Bm25DocumentEmbedder, Bm25TextEmbedder, LeafEmbedder
from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from hichunk_haystack.tree import is_leaf
from tests.word_embedder import WordEmbedder

TEXTS = {"a": "kiln kiln glaze", "b": "kiln wheel clay clay", "c": "wheel"}


def bm25(query: list[str], text: str) -> float:
    """Okapi BM25 by its formula, with k1 = 1.2, b = 0.75 and an average of 4 words."""
    words = {key: value.split() for key, value in TEXTS.items()}
    score = 0.0
    for word in query:
        n = sum(word in each for each in words.values())
        idf = math.log((len(words) - n + 0.5) / (n + 0.5) + 1)
        tf, length = words[text].count(word), len(words[text])
        score += idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * length / 4))
    return score


def test_embedded_qdrant_scores_as_bm25_also_after_changes_and_when_opened_again(tmp_path: Path) -> None:
    def store() -> HierarchyQdrantDocumentStore:
        return HierarchyQdrantDocumentStore(
            path=str(tmp_path), embedding_dim=2, use_sparse_embeddings=True, sparse_idf=True
        )

    def found(held: HierarchyQdrantDocumentStore) -> dict[str, float | None]:
        query = Bm25TextEmbedder().run("The kiln or the clay?")["sparse_embedding"]
        hits = QdrantSparseEmbeddingRetriever(document_store=held).run(query_sparse_embedding=query)["documents"]
        return {hit.id: hit.score for hit in hits}

    expected = {text: pytest.approx(bm25(["kiln", "clay"], text), rel=1e-5) for text in "ab"}
    documents = [Document(id=key, content=text, embedding=[1.0, 0.0]) for key, text in TEXTS.items()]
    first = store()
    embedder = Bm25DocumentEmbedder(average_words=4)
    # A document that goes again, and nodes without sparse vectors, are not part of the corpus.
    gone = Document(id="gone", content="kiln clay", embedding=[1.0, 0.0])
    first.write_documents(embedder.run([*documents, gone])["documents"])
    first.write_documents([Document(id="inner", content="kiln")])
    first.delete_documents(["gone"])
    assert found(first) == expected
    first.close()
    second = store()
    assert found(second) == expected
    second.close()


def test_documents_are_not_changed_and_one_without_words_gets_an_empty_embedding() -> None:
    documents = [Document(content="kiln"), Document(content="---"), Document(content=None)]
    result = Bm25DocumentEmbedder().run(documents)["documents"]
    assert [document.sparse_embedding for document in documents] == [None, None, None]
    assert [len(document.sparse_embedding.indices) for document in result] == [1, 0, 0]
    store = HierarchyQdrantDocumentStore(
        location=":memory:", embedding_dim=2, use_sparse_embeddings=True, sparse_idf=True
    )
    assert store.write_documents(result) == 3


def test_behind_a_dense_leaf_embedder_and_before_it() -> None:
    text = "# Kiln\n\nFire it slowly.\n\n# Wheel\n\nCentre the clay.\n"
    nodes = MarkdownHierarchicalSplitter(leaf_tokens=10, min_leaf_tokens=1).run([Document(content=text)])["documents"]
    dense = LeafEmbedder(WordEmbedder(), progress_bar=False)
    sparse = LeafEmbedder(Bm25DocumentEmbedder(), progress_bar=False)
    one = sparse.run(dense.run(nodes)["documents"])["documents"]
    other = dense.run(sparse.run(nodes)["documents"])["documents"]
    for first, second, node in zip(one, other, nodes, strict=True):
        assert (first.embedding, first.sparse_embedding) == (second.embedding, second.sparse_embedding)
        assert (first.sparse_embedding is not None) == (first.embedding is not None) == is_leaf(node)
        assert first.content == node.content


def test_headings_and_contexts_are_searched() -> None:
    leaf = Document(content="Open it.", meta={"headings": ["Kiln"], "leaf_context": "On glazing."})
    embedded = LeafEmbedder(Bm25DocumentEmbedder(), progress_bar=False).run([leaf])["documents"][0]
    assert embedded.content == "Open it."
    assert embedded.sparse_embedding is not None
    for word in ("kiln", "glazing", "open"):
        index = Bm25TextEmbedder().run(word)["sparse_embedding"].indices[0]
        assert index in embedded.sparse_embedding.indices


def test_to_dict_and_back() -> None:
    embedder = Bm25DocumentEmbedder(k1=0.9, b=0.4, average_words=120)
    data = {
        "type": "hichunk_haystack.components.embedders.Bm25DocumentEmbedder",
        "init_parameters": {"k1": 0.9, "b": 0.4, "average_words": 120},
    }
    assert embedder.to_dict() == data
    assert Bm25DocumentEmbedder.from_dict(data).to_dict() == data
    data = {"type": "hichunk_haystack.components.embedders.Bm25TextEmbedder", "init_parameters": {}}
    assert Bm25TextEmbedder().to_dict() == data
    assert Bm25TextEmbedder.from_dict(data).to_dict() == data


@pytest.mark.parametrize(("option", "value"), [("k1", -1), ("b", 1.5), ("b", -0.1), ("average_words", 0)])
def test_numbers_that_make_no_sense_are_named(option: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{option} is {value}; it must"):
        Bm25DocumentEmbedder(**{option: value})


def test_what_is_no_document_or_text_is_refused() -> None:
    with pytest.raises(TypeError, match="but got a str"):
        Bm25DocumentEmbedder().run(["text"])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="but got a list"):
        Bm25TextEmbedder().run(["text"])  # type: ignore[arg-type]
