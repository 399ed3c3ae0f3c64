# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What the offline embedders and rankers have in common: the stock component inside, and finding its model."""

import asyncio
from copy import copy, deepcopy
from importlib import import_module
from typing import Any, ClassVar, Self

from haystack import default_from_dict, default_to_dict

from hichunk_haystack.extras import pip_install
from hichunk_haystack.models import resolve_model

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"


class OfflineModel:
    """
    Holds one of Haystack's Sentence Transformers components and finds its model.

    The stock component is held and not inherited from, since importing it takes seconds (PyTorch and transformers) and
    needs an optional package: here that happens when a component is made, and its absence is told in a clear sentence.
    """

    KIND: ClassVar[str]
    """What it is, "embedder" or "ranker"."""

    STOCK: ClassVar[str]
    """Name of the stock class in `haystack_integrations.components.<KIND>s.sentence_transformers`."""

    NAME: ClassVar[str] = "model"
    """The stock component's attribute that holds the model's name."""

    LOADED: ClassVar[str]
    """The one that holds the model itself, once it is loaded."""

    def _hold(self, **parameters: Any) -> None:
        """Make the stock component. (Not in `__init__`: `super()` fails in a class that Haystack decorates.)"""
        self._stock = _stock_class(self.KIND, self.STOCK)(**parameters)

    def warm_up(self) -> None:
        """
        Find the model and load it, once.

        :raises ModelNotFoundError: If the model can be had nowhere; the message names it, and says how to get it.
        """
        stock = self._stock
        if getattr(stock, self.LOADED) is not None:
            return
        # The copy knows where the model is here; the original keeps the name under which it is dumped.
        loader = copy(stock)
        found = resolve_model(
            getattr(stock, self.NAME),
            revision=getattr(stock, "revision", None),
            token=stock.token.resolve_value() if stock.token else None,
            local_only=getattr(stock, "local_files_only", False),
        )
        setattr(loader, self.NAME, found)
        loader.warm_up()
        setattr(stock, self.LOADED, getattr(loader, self.LOADED))

    async def warm_up_async(self) -> None:
        """
        Find the model and load it, once, without blocking the event loop for the seconds that this takes.

        :raises ModelNotFoundError: If the model can be had nowhere; the message names it, and says how to get it.
        """
        await asyncio.to_thread(self.warm_up)

    def to_dict(self) -> dict[str, Any]:
        """
        Serialise the component.

        :returns: Dictionary with the type and all init parameters of the stock component; `model` as it was given.
        """
        stock = copy(self._stock)
        stock.model_kwargs = deepcopy(stock.model_kwargs)  # the stock method writes into them
        return default_to_dict(self, **stock.to_dict()["init_parameters"])

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
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


def _stock_class(kind: str, name: str) -> Any:
    try:
        stock = import_module(f"haystack_integrations.components.{kind}s.sentence_transformers")
    except ImportError as error:
        msg = (
            f"This {kind} needs the package sentence-transformers-haystack ({error}): {pip_install('local')}, which "
            "brings an embedding model along, or pip install sentence-transformers-haystack."
        )
        raise ImportError(msg) from error
    return getattr(stock, name)
