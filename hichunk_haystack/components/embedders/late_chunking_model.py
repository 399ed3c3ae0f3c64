# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""A sentence-transformers model, asked for the vectors of tokens instead of those of texts."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from haystack import logging

from hichunk_haystack.late_chunking import leaf_of_tokens, token_windows
from hichunk_haystack.unicode import well_formed

logger = logging.getLogger(__name__)


class TokenModel:
    """Gives the vectors of leaves in the text that they stand in."""

    def __init__(self, model: Any, *, window_tokens: int | None, overlap_tokens: int | None, prefix: str) -> None:
        """
        Look at a model.

        :param model: A `SentenceTransformer`.
        :param window_tokens: The most tokens read at once, special ones included; by default what the model reads.
        :param overlap_tokens: Tokens that windows share; by default a quarter of a window.
        :param prefix: Stands in front of each window.
        :raises ValueError: If the model gives no vectors of tokens, or can't read such windows.
        """
        self.model = model
        tokenizer = model.tokenizer
        modules = list(model.children())
        config = getattr(getattr(modules[0], "auto_model", None), "config", None)
        if config is None or not getattr(tokenizer, "is_fast", False):
            msg = (
                f"Late chunking needs a transformer with a fast tokenizer; this model is a {type(modules[0]).__name__} "
                f"with a {type(tokenizer).__name__}."
            )
            raise ValueError(msg)
        if getattr(modules[1], "pooling_mode", "mean") not in ("mean", ("mean",), ["mean"]):
            logger.warning(
                "The model pools by '{mode}' and was not trained for the mean of its tokens that late chunking takes.",
                mode=str(modules[1].pooling_mode),
            )
        most = getattr(config, "max_position_embeddings", None)
        size = window_tokens or model.max_seq_length or most
        if size is None or (most is not None and size > most):
            msg = f"window_tokens is {size}; the model reads at most {most} tokens at once."
            raise ValueError(msg)
        probe = tokenizer("a", return_special_tokens_mask=True)["special_tokens_mask"]
        behind = probe[::-1].index(0)
        around = tokenizer(prefix)["input_ids"]
        self.head: list[int] = around[: len(around) - behind]
        self.tail: list[int] = around[len(around) - behind :]
        self.size = size - len(around)
        self.overlap = self.size // 4 if overlap_tokens is None else overlap_tokens
        if self.size < 1 or self.overlap >= self.size:
            msg = (
                f"A window of {size} tokens has room for {self.size} beside the prefix and the special ones; it must "
                f"have more than the overlap of {self.overlap}."
            )
            raise ValueError(msg)

    def embed(
        self, text: str, leaf_starts: Sequence[int], batch_size: int, step: Callable[[int], Any]
    ) -> list[list[float] | None]:
        """
        Embed the leaves of a text.

        :param text: The text.
        :param leaf_starts: Where its leaves begin, in characters, in order, the first at 0.
        :param batch_size: Windows read at once.
        :param step: Told the number of leaves that are done since it was told last.
        :returns: A normalised vector for each leaf; `None` for one without a token.
        """
        encoded = self.model.tokenizer(
            well_formed(text), add_special_tokens=False, return_offsets_mapping=True, truncation=False, verbose=False
        )
        ids = encoded["input_ids"]
        leaves = np.array(leaf_of_tokens([start for start, _ in encoded["offset_mapping"]], leaf_starts), dtype=int)
        counts = np.bincount(leaves, minlength=len(leaf_starts))
        sums: Any = None
        done = 0
        windows = token_windows(len(ids), self.size, self.overlap)
        for first in range(0, len(windows), batch_size):
            batch = windows[first : first + batch_size]
            vectors = self._token_vectors([ids[window.start : window.end] for window in batch])
            if sums is None:
                sums = np.zeros((len(leaf_starts), vectors.shape[-1]))
            for window, row in zip(batch, vectors, strict=True):
                low, high = window.low - window.start, window.high - window.start
                np.add.at(sums, leaves[window.low : window.high], row[len(self.head) + low : len(self.head) + high])
            reached = int(leaves[batch[-1].high - 1])
            step(reached - done)
            done = reached
        step(len(leaf_starts) - done)
        if sums is None:
            return [None] * len(leaf_starts)
        pooled = self._finished(sums / np.maximum(counts, 1)[:, None])
        return [vector.tolist() if count else None for vector, count in zip(pooled, counts, strict=True)]

    def _token_vectors(self, windows: Sequence[list[int]]) -> Any:
        import torch

        rows = [[*self.head, *window, *self.tail] for window in windows]
        features = self.model.tokenizer.pad({"input_ids": rows}, return_tensors="pt").to(self.model.device)
        with torch.inference_mode():
            answer = self.model[0](dict(features))
        return answer["token_embeddings"].float().cpu().numpy()

    def _finished(self, pooled: Any) -> Any:
        """What the model does behind its pooling (a projection, as a rule nothing), and the length of 1."""
        import torch

        with torch.inference_mode():
            vectors = torch.tensor(pooled, dtype=torch.float32, device=self.model.device)
            for module in list(self.model.children())[2:]:
                dtype = next((parameter.dtype for parameter in module.parameters()), vectors.dtype)
                vectors = module({"sentence_embedding": vectors.to(dtype)})["sentence_embedding"].float()
            return torch.nn.functional.normalize(vectors, dim=-1).cpu().numpy()
