# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from hichunk_haystack.components.routers.unchanged_source_filter import UnchangedSourceFilter

__all__ = ["UnchangedSourceFilter"]
