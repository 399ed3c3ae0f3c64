# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from hichunk_haystack.components.embedders.bm25_document_embedder import Bm25DocumentEmbedder
from hichunk_haystack.components.embedders.bm25_text_embedder import Bm25TextEmbedder
from hichunk_haystack.components.embedders.hierarchy_embedder import HierarchyEmbedder
from hichunk_haystack.components.embedders.late_chunking_embedder import LateChunkingEmbedder
from hichunk_haystack.components.embedders.leaf_embedder import LeafEmbedder
from hichunk_haystack.components.embedders.offline_sentence_transformers_document_embedder import (
    OfflineSentenceTransformersDocumentEmbedder,
)
from hichunk_haystack.components.embedders.offline_sentence_transformers_text_embedder import (
    OfflineSentenceTransformersTextEmbedder,
)

__all__ = [
    "Bm25DocumentEmbedder",
    "Bm25TextEmbedder",
    "HierarchyEmbedder",
    "LateChunkingEmbedder",
    "LeafEmbedder",
    "OfflineSentenceTransformersDocumentEmbedder",
    "OfflineSentenceTransformersTextEmbedder",
]
