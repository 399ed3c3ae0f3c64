# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from typing import Any

from haystack import component, default_from_dict
from haystack.document_stores.types import FilterPolicy
from haystack_integrations.components.retrievers.qdrant import QdrantEmbeddingRetriever


@component
class QdrantLeafRetriever(QdrantEmbeddingRetriever):
    """
    Haystack's `QdrantEmbeddingRetriever`, which can also be loaded from YAML with a `HierarchyQdrantDocumentStore`.

    Haystack's own always makes a `QdrantDocumentStore` out of the YAML and refuses any other; in Python it takes ours
    just as well, and all parameters and outputs are the same. Leaves are what it finds, since inner nodes have no
    vectors.

    ```python
    from haystack import Document

    from hichunk_haystack.components.retrievers import QdrantLeafRetriever
    from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore

    store = HierarchyQdrantDocumentStore(location=":memory:", embedding_dim=2)
    store.write_documents([Document(content="Fire the kiln slowly.", embedding=[1.0, 0.0])])
    retriever = QdrantLeafRetriever(document_store=store, top_k=1)
    print(retriever.run(query_embedding=[1.0, 0.1])["documents"][0].content)  # Fire the kiln slowly.
    ```
    """

    __module__ = "hichunk_haystack.components.retrievers"

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "QdrantLeafRetriever":
        """
        Revive the component, with whatever class of store the data names.

        :param data: What `to_dict` gave.
        :returns: The component.
        """
        parameters = dict(data["init_parameters"])
        if "filter_policy" in parameters:
            parameters["filter_policy"] = FilterPolicy.from_str(parameters["filter_policy"])
        return default_from_dict(cls, {**data, "init_parameters": parameters})
