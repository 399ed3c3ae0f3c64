# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from typing import Any

from haystack import Document, component

from hichunk_haystack.components.offline import OfflineModel
from hichunk_haystack.unicode import well_formed, with_well_formed_text


@component
class OfflineSentenceTransformersSimilarityRanker(OfflineModel):
    """
    Haystack's `SentenceTransformersSimilarityRanker`, a cross-encoder, which looks for its model before it asks for it.

    It takes a model from a folder or from the hub's cache without a word to the network. Where the model is nowhere, an
    error within seconds names it and says how to get it; the stock ranker waits for the hub for a minute or more, and
    its error names none. Needs `pip install hichunk-haystack[local]`.

    ```python
    from hichunk_haystack.components.rankers import OfflineSentenceTransformersSimilarityRanker

    ranker = OfflineSentenceTransformersSimilarityRanker(model="cross-encoder/ms-marco-MiniLM-L-6-v2", top_k=64)
    print(ranker.to_dict()["init_parameters"]["model"])
    ```
    """

    __module__ = "hichunk_haystack.components.rankers"

    KIND = "ranker"
    STOCK = "SentenceTransformersSimilarityRanker"
    LOADED = "_cross_encoder"

    def __init__(self, *, model: str = "cross-encoder/ms-marco-MiniLM-L-6-v2", top_k: int = 10, **options: Any) -> None:
        """
        Create the component; the model is loaded by `warm_up`.

        :param model: Public name of a cross-encoder, or a folder that holds one.
        :param top_k: The most documents that come out.
        :param options: The other parameters of `SentenceTransformersSimilarityRanker`, such as `scale_score`,
            `batch_size`, `device` or `model_kwargs`.
        :raises ImportError: If the optional packages are not installed.
        :raises ValueError: If `top_k` is below 1.
        """
        self._hold(model=model, top_k=top_k, **options)

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: str,
        documents: list[Document],
        top_k: int | None = None,
        scale_score: bool | None = None,
        score_threshold: float | None = None,
    ) -> dict[str, list[Document]]:
        """
        Rank documents by how well they answer a query.

        :param query: The query.
        :param documents: The documents; they are not changed.
        :param top_k: For this query instead of the component's, and so are the next two.
        :param scale_score: Whether scores are brought to 0..1.
        :param score_threshold: Documents of lower scores are left out.
        :returns: A dictionary with `documents`, the best first, each once.
        :raises ModelNotFoundError: If the model can be had nowhere.
        :raises ValueError: If `top_k` is below 1.
        """
        self.warm_up()
        return self._stock.run(
            query=well_formed(query),
            documents=with_well_formed_text(documents),
            top_k=top_k,
            scale_score=scale_score,
            score_threshold=score_threshold,
        )
