# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What the offline embedders have besides: what a `LeafEmbedder` asks of an embedder."""

from copy import copy
from typing import Self

from hichunk_haystack.components.offline import OfflineModel


class OfflineEmbedder(OfflineModel):
    """One of Haystack's Sentence Transformers embedders; its progress bar can be switched off in a copy."""

    KIND = "embedder"
    LOADED = "embedding_backend"

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

    def __copy__(self) -> Self:
        """A copy can be changed and leaves this one as it is; both share the model."""
        clone = object.__new__(type(self))
        clone.__dict__.update(self.__dict__, _stock=copy(self._stock))
        return clone
