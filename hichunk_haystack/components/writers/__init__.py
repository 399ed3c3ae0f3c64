# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from hichunk_haystack.components.writers.hierarchy_deleter import HierarchyDeleter
from hichunk_haystack.components.writers.hierarchy_writer import HierarchyWriter

__all__ = ["HierarchyDeleter", "HierarchyWriter"]
