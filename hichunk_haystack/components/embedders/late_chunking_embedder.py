# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import asyncio
from dataclasses import replace
from typing import Any

from haystack import Document, component, default_to_dict, logging
from tqdm import tqdm

from hichunk_haystack.chains import Lengths
from hichunk_haystack.components.embedders.late_chunking_model import TokenModel
from hichunk_haystack.components.embedders.offline import OfflineEmbedder
from hichunk_haystack.components.offline import DEFAULT_MODEL
from hichunk_haystack.components.preprocessors.splitting import describe
from hichunk_haystack.front_matter import is_searched
from hichunk_haystack.late_chunking import join_leaves
from hichunk_haystack.nodes import is_leaf
from hichunk_haystack.reading_order import leaves_in_order
from hichunk_haystack.tokens import HuggingFaceTokenCounter

logger = logging.getLogger(__name__)

_OPTIONS = (
    "device", "token", "batch_size", "trust_remote_code", "revision", "local_files_only", "model_kwargs",
    "tokenizer_kwargs", "config_kwargs",
)  # fmt: skip


@component
class LateChunkingEmbedder(OfflineEmbedder):
    """
    Embeds leaves in the text around them: late chunking (arXiv 2409.04701).

    The model reads long windows of the document, and a leaf's vector is the mean of its tokens' vectors in there. So
    "It cools for a day" knows of the kiln two sentences before, without a word added and with no language model. Texts
    above the window are read in windows that overlap, and each token's vector is taken where it stands further from an
    edge.

    It takes the place of a `LeafEmbedder` with its embedder. Queries are embedded as always, by the same model. Models
    that pool by the mean and read much at once gain most; all-MiniLM-L6-v2 reads 256 tokens. Needs
    `pip install hichunk-haystack[local]`.

    ```python
    from haystack import Document

    from hichunk_haystack.components.embedders import LateChunkingEmbedder
    from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter

    text = "# Kiln\\n\\nFire it slowly.\\n\\nIt cools for a day.\\n"
    nodes = MarkdownHierarchicalSplitter(leaf_tokens=9, min_leaf_tokens=1).run([Document(content=text)])["documents"]
    for node in LateChunkingEmbedder(progress_bar=False).run(nodes)["documents"]:
        print(node.meta["__level"], node.embedding is not None)
    ```
    """

    __module__ = "hichunk_haystack.components.embedders"

    STOCK = "SentenceTransformersDocumentEmbedder"

    def __init__(
        self,
        *,
        model: str = DEFAULT_MODEL,
        window_tokens: int | None = None,
        overlap_tokens: int | None = None,
        prefix: str = "",
        progress_bar: bool = True,
        **options: Any,
    ) -> None:
        """
        Create the component; the model is loaded by `warm_up`.

        :param model: Public name of a sentence-transformers model, or a folder that holds one.
        :param window_tokens: The most tokens read at once; by default what the model is set to read.
        :param overlap_tokens: Tokens that two windows share; by default a quarter of a window.
        :param prefix: Stands in front of each window, for models that want one.
        :param progress_bar: Whether to show a progress bar over the leaves.
        :param options: `device`, `token`, `batch_size` (windows read at once), `model_kwargs` and so on, as for
            `SentenceTransformersDocumentEmbedder`.
        :raises ImportError: If the optional packages are not installed.
        :raises ValueError: If an option makes no sense; the message names it.
        """
        for name in options:
            if name not in _OPTIONS:
                msg = f"{name} is no option of late chunking; there are {', '.join(_OPTIONS)}."
                raise ValueError(msg)
        for name, value, least in (("window_tokens", window_tokens, 4), ("overlap_tokens", overlap_tokens, 0)):
            if value is not None and value < least:
                msg = f"{name} is {value}; it must be at least {least}, or None."
                raise ValueError(msg)
        self._hold(model=model, progress_bar=progress_bar, prefix=prefix, **options)
        self.window_tokens = window_tokens
        self.overlap_tokens = overlap_tokens
        self._lengths = Lengths(HuggingFaceTokenCounter())

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """
        Embed the leaves.

        :param documents: Nodes of trees, all leaves of a tree together, and documents without a tree. They are not
            changed.
        :returns: A dictionary with `documents`: all of them in the same order, the leaves with embeddings. A leaf
            without any token gets none, with a warning.
        :raises TypeError: If something in the list is not a `Document`.
        :raises ModelNotFoundError: If the model can be had nowhere.
        :raises ValueError: If the model can't be used for late chunking.
        """
        for document in documents:
            if not isinstance(document, Document):
                msg = f"LateChunkingEmbedder takes Haystack Documents, but got a {type(document).__name__}."
                raise TypeError(msg)
        self.warm_up()
        stock = self._stock
        model = TokenModel(
            stock.embedding_backend.model,
            window_tokens=self.window_tokens,
            overlap_tokens=self.overlap_tokens,
            prefix=stock.prefix,
        )
        by_id = {document.id: document for document in documents}
        trees, apart = leaves_in_order(documents, self._lengths)
        texts = [([hit.id for hit in hits], [hit.start or 0 for hit in hits]) for hits in trees]
        texts += [([name], [0]) for name in apart]
        vectors: dict[str, list[float] | None] = {}
        total = sum(len(names) for names, _ in texts)
        with tqdm(total=total, desc="Embedding", unit="leaf", disable=not self.progress_bar) as progress:
            for names, places in texts:
                text, starts = join_leaves([by_id[name].content or "" for name in names], places)
                found = model.embed(text, starts, stock.batch_size, progress.update)
                vectors.update(zip(names, found, strict=True))
        result = []
        for document in documents:
            if not is_leaf(document):
                result.append(document)
                continue
            # The model has read it along with the rest.
            vector = vectors[document.id] if is_searched(document) else None
            if vector is None and is_searched(document):
                logger.warning(
                    "A leaf of {source} has no token, and gets no embedding (id '{id}').",
                    source=describe(document),
                    id=document.id,
                )
            result.append(replace(document, embedding=vector))
        return {"documents": result}

    @component.output_types(documents=list[Document])
    async def run_async(self, documents: list[Document]) -> dict[str, list[Document]]:
        """
        Embed the leaves in a thread.

        :param documents: Nodes of trees, all leaves of a tree together, and documents without a tree. They are not
            changed.
        :returns: What `run` returns.
        :raises TypeError: If something in the list is not a `Document`.
        :raises ModelNotFoundError: If the model can be had nowhere.
        :raises ValueError: If the model can't be used for late chunking.
        """
        return await asyncio.to_thread(self.run, documents)

    def to_dict(self) -> dict[str, Any]:
        """
        Serialise the component.

        :returns: Dictionary with the type and the init parameters; `model` as it was given.
        """
        stock = OfflineEmbedder.to_dict(self)["init_parameters"]
        kept = {name: stock[name] for name in ("model", "prefix", "progress_bar", *_OPTIONS)}
        return default_to_dict(self, **kept, window_tokens=self.window_tokens, overlap_tokens=self.overlap_tokens)
