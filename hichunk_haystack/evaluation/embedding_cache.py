# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Embeddings of texts, each made once and kept in a file."""

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from haystack import Document
from haystack.components.embedders.types import DocumentEmbedder
from numpy.typing import NDArray
from tqdm import tqdm

Vectors = NDArray[np.float32]

# Texts that are embedded between two commits: what a killed run loses.
_SLICE = 256


class CachedEmbedder:
    """
    Embeds texts with any Haystack document embedder, and remembers the vectors in an SQLite file.

    A run that was killed goes on where it stopped. Vectors of other models, or of other settings of the embedder, stay
    apart.

    ```python
    from hichunk_haystack.components.embedders import OfflineSentenceTransformersDocumentEmbedder
    from hichunk_haystack.evaluation.embedding_cache import CachedEmbedder

    embedder = CachedEmbedder(OfflineSentenceTransformersDocumentEmbedder(progress_bar=False))
    kiln, clay = embedder.embed(["Fire the kiln.", "Centre the clay."])
    print(round(float(kiln @ kiln), 3))  # 1.0: vectors have length 1
    ```
    """

    def __init__(self, document_embedder: DocumentEmbedder, file: str | Path | None = None) -> None:
        """
        Set up.

        :param document_embedder: Any document embedder.
        :param file: Where vectors are kept; nowhere by default.
        """
        self.document_embedder = document_embedder
        self.file = None if file is None else Path(file)
        self.embedded = 0
        embedder: Any = document_embedder
        settings = embedder.to_dict() if hasattr(embedder, "to_dict") else repr(embedder)
        self._settings = json.dumps(settings, sort_keys=True, default=str)

    def embed(self, texts: Sequence[str], description: str = "Embedding") -> Vectors:
        """
        Embed texts.

        :param texts: The texts; equal ones are embedded once.
        :param description: What the progress bar says.
        :returns: A row for each text, normalised to length 1.
        """
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        keys = [self._key(text) for text in texts]
        known = self._read(keys)
        wanted = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        # Texts of similar length share a batch, which saves padding.
        waiting = sorted(wanted, key=lambda key: len(wanted[key]), reverse=True)
        if waiting and hasattr(self.document_embedder, "warm_up"):
            self.document_embedder.warm_up()
        with tqdm(total=len(waiting), desc=description, unit="text", disable=None if waiting else True) as progress:
            for first in range(0, len(waiting), _SLICE):
                part = waiting[first : first + _SLICE]
                made = self._make([wanted[key] for key in part])
                self._write(dict(zip(part, made, strict=True)))
                known.update(zip(part, made, strict=True))
                progress.update(len(part))
        self.embedded += len(waiting)
        return np.stack([known[key] for key in keys])

    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """
        Embed documents, so that it can stand where a document embedder stands.

        :param documents: Documents.
        :returns: A dictionary with `documents`: the same, with embeddings.
        """
        vectors = self.embed([document.content or "" for document in documents])
        embedded = [
            replace(document, embedding=vector.tolist()) for document, vector in zip(documents, vectors, strict=True)
        ]
        return {"documents": embedded}

    def _make(self, texts: list[str]) -> Vectors:
        documents = [Document(id=str(number), content=text) for number, text in enumerate(texts)]
        answer = self.document_embedder.run(documents=documents)["documents"]
        vectors = np.array([document.embedding for document in answer], dtype=np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)

    def _key(self, text: str) -> bytes:
        return hashlib.blake2b(f"{self._settings}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()

    def _open(self) -> sqlite3.Connection:
        assert self.file is not None
        self.file.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.file)
        connection.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")
        return connection

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, Vectors]:
        known: dict[bytes, Vectors] = {}
        if self.file is None or not self.file.exists():
            return known
        with closing(self._open()) as connection:
            unique = list(dict.fromkeys(keys))
            for first in range(0, len(unique), 500):
                part = unique[first : first + 500]
                marks = ",".join("?" * len(part))
                rows = connection.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", part)  # noqa: S608
                known.update((key, np.frombuffer(vector, dtype=np.float32)) for key, vector in rows)
        return known

    def _write(self, vectors: dict[bytes, Vectors]) -> None:
        if self.file is None:
            return
        with closing(self._open()) as connection, connection:
            rows = [(key, vector.astype(np.float32).tobytes()) for key, vector in vectors.items()]
            connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
