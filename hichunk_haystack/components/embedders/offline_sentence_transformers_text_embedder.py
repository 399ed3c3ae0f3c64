# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from typing import Any

from haystack import component

from hichunk_haystack.components.embedders.offline import OfflineEmbedder
from hichunk_haystack.components.offline import DEFAULT_MODEL
from hichunk_haystack.unicode import well_formed


@component
class OfflineSentenceTransformersTextEmbedder(OfflineEmbedder):
    """
    Haystack's `SentenceTransformersTextEmbedder`, which also works where the model hub cannot be reached.

    It finds its model as `OfflineSentenceTransformersDocumentEmbedder` does, and shares the loaded model with it when
    both are set alike. Needs `pip install hichunk-haystack[local]`.

    ```python
    from hichunk_haystack.components.embedders import OfflineSentenceTransformersTextEmbedder

    embedder = OfflineSentenceTransformersTextEmbedder()
    embedder.warm_up()
    print(len(embedder.run("How hot is the kiln?")["embedding"]))  # 384
    ```
    """

    __module__ = "hichunk_haystack.components.embedders"

    STOCK = "SentenceTransformersTextEmbedder"

    def __init__(self, *, model: str = DEFAULT_MODEL, progress_bar: bool = False, **options: Any) -> None:
        """
        Create the component; the model is loaded by `warm_up`.

        :param model: Public name of a model, or a folder that holds one; the same as for the documents.
        :param progress_bar: Whether to show a progress bar for each query.
        :param options: The other parameters of `SentenceTransformersTextEmbedder`, such as `prefix`, `device` or
            `model_kwargs`.
        :raises ImportError: If the optional packages are not installed.
        """
        self._hold(model=model, progress_bar=progress_bar, **options)

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, list[float]]:
        """
        Embed a text.

        :param text: Usually a query.
        :returns: A dictionary with `embedding`.
        :raises TypeError: If this is not a string.
        :raises ModelNotFoundError: If the model can be had nowhere.
        """
        self.warm_up()
        # A query may come from JSON, or from a command line, that is no text; tokenizers refuse it.
        return self._stock.run(text=well_formed(text) if isinstance(text, str) else text)
