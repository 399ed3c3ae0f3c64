# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.dataclasses import SparseEmbedding

from hichunk_haystack.bm25 import document_vector


@component
class Bm25DocumentEmbedder:
    """
    Gives documents sparse embeddings that make Qdrant's sparse search a BM25 search. No model, nothing downloaded.

    A word's weight in a document is computed here; how rare it is, Qdrant works out of all that is in the collection.
    For that the store needs `use_sparse_embeddings=True` and `sparse_idf=True`. Words are compared as they are, without
    stems: dense search is there for the rest.

    Wrap it in a `LeafEmbedder`, so that only leaves are found and headings and contexts are searched too.

    ```python
    from haystack import Document

    from hichunk_haystack.components.embedders import Bm25DocumentEmbedder

    documents = [Document(content="Error E1047: the kiln is open.")]
    embedded = Bm25DocumentEmbedder().run(documents)["documents"][0]
    print(len(embedded.sparse_embedding.indices))  # 7: six words, and the number in E1047
    ```
    """

    __module__ = "hichunk_haystack.components.embedders"

    def __init__(self, *, k1: float = 1.2, b: float = 0.75, average_words: float = 80.0) -> None:
        """
        Create the component.

        :param k1: How soon further occurrences of a word stop counting; 0 counts each word once.
        :param b: How much the length of a text counts against it, from 0 to 1.
        :param average_words: Words of an average text, headings and context included. It is a setting since it must
            not change while a collection grows; leaves are of similar length, so that it need not be exact. 80 goes
            with leaves of up to 100 tokens.
        :raises ValueError: If a number makes no sense.
        """
        if k1 < 0:
            msg = f"k1 is {k1}; it must not be negative (1.2 is usual)."
            raise ValueError(msg)
        if not 0 <= b <= 1:
            msg = f"b is {b}; it must lie between 0 and 1 (0.75 is usual)."
            raise ValueError(msg)
        if average_words <= 0:
            msg = f"average_words is {average_words}; it must be above 0 (80 goes with leaves of up to 100 tokens)."
            raise ValueError(msg)
        self.k1 = k1
        self.b = b
        self.average_words = average_words

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """
        Embed documents.

        :param documents: Documents; they are not changed. Without any word in it a document gets an empty embedding.
        :returns: A dictionary with `documents`: copies with `sparse_embedding`.
        :raises TypeError: If something in the list is not a `Document`.
        """
        result = []
        for document in documents:
            if not isinstance(document, Document):
                msg = f"Bm25DocumentEmbedder takes Documents, but got a {type(document).__name__}."
                raise TypeError(msg)
            indices, values = document_vector(document.content or "", self.k1, self.b, self.average_words)
            result.append(replace(document, sparse_embedding=SparseEmbedding(indices=indices, values=values)))
        return {"documents": result}

    def to_dict(self) -> dict[str, Any]:
        """
        Serialise the component.

        :returns: Dictionary with the type and the init parameters.
        """
        return default_to_dict(self, k1=self.k1, b=self.b, average_words=self.average_words)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Bm25DocumentEmbedder":
        """
        Revive the component.

        :param data: What `to_dict` gave.
        :returns: The component.
        """
        return default_from_dict(cls, data)
