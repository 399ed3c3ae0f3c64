# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What the hayhooks wrappers in `pipelines/` serve: uploaded files with their index, questions, and a chat."""

from hichunk_haystack.serving.library import Library, TooLargeError, open_library
from hichunk_haystack.serving.names import safe_name
from hichunk_haystack.serving.questions import Questions, open_questions
from hichunk_haystack.serving.served_pipeline import ServedPipeline

__all__ = ["Library", "Questions", "ServedPipeline", "TooLargeError", "open_library", "open_questions", "safe_name"]
