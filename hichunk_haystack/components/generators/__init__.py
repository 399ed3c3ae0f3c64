# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from hichunk_haystack.components.generators.endpoint_chat_generator import EndpointChatGenerator

__all__ = ["EndpointChatGenerator"]
