# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from hichunk_haystack.components.embedders.leaf_embedder import LeafEmbedder
from hichunk_haystack.components.embedders.offline_sentence_transformers_document_embedder import (
    OfflineSentenceTransformersDocumentEmbedder,
)
from hichunk_haystack.components.embedders.offline_sentence_transformers_text_embedder import (
    OfflineSentenceTransformersTextEmbedder,
)

__all__ = ["LeafEmbedder", "OfflineSentenceTransformersDocumentEmbedder", "OfflineSentenceTransformersTextEmbedder"]
