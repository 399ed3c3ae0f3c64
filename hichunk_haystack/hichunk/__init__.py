# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Cut points from a language model, for documents of any length (HiChunk, arXiv 2509.11552)."""
