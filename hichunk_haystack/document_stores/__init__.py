# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from .hierarchy_qdrant_document_store import HierarchyQdrantDocumentStore

__all__ = ["HierarchyQdrantDocumentStore"]
