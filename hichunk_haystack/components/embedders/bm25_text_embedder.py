# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from typing import Any

from haystack import component, default_from_dict, default_to_dict
from haystack.dataclasses import SparseEmbedding

from hichunk_haystack.bm25 import query_vector


@component
class Bm25TextEmbedder:
    """
    Gives a query the sparse embedding that goes with those of `Bm25DocumentEmbedder`: each of its words once.

    ```python
    from hichunk_haystack.components.embedders import Bm25TextEmbedder

    print(Bm25TextEmbedder().run("What is error E1047?")["sparse_embedding"].values)  # [1.0, 1.0, 1.0, 1.0, 1.0]
    ```
    """

    __module__ = "hichunk_haystack.components.embedders"

    @component.output_types(sparse_embedding=SparseEmbedding)
    def run(self, text: str) -> dict[str, SparseEmbedding]:
        """
        Embed a text.

        :param text: Usually a query.
        :returns: A dictionary with `sparse_embedding`.
        :raises TypeError: If this is not a string.
        """
        if not isinstance(text, str):
            msg = f"Bm25TextEmbedder takes a text, but got a {type(text).__name__}."
            raise TypeError(msg)
        indices, values = query_vector(text)
        return {"sparse_embedding": SparseEmbedding(indices=indices, values=values)}

    def to_dict(self) -> dict[str, Any]:
        """
        Serialise the component.

        :returns: Dictionary with the type; there are no init parameters.
        """
        return default_to_dict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Bm25TextEmbedder":
        """
        Revive the component.

        :param data: What `to_dict` gave.
        :returns: The component.
        """
        return default_from_dict(cls, data)
