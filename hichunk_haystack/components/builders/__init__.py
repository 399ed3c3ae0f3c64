# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from hichunk_haystack.components.builders.context_builder import ContextBuilder
from hichunk_haystack.components.builders.plain_outputs import PlainOutputs

__all__ = ["ContextBuilder", "PlainOutputs"]
