# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What a text takes of a bound in tokens, however few of them a tokenizer makes of it."""

from math import ceil

CHARACTERS_PER_TOKEN = 16
"""
No text has more characters than this to a token, as far as bounds and budgets go.

Tokenizers of the WordPiece kind count a word of more than 100 characters as a single unknown token. Without this a line
of five million characters would be "one token" and one leaf.
"""


def weigh(text: str, tokens: int = 0) -> int:
    """
    Say what a text takes of a bound: its tokens, or one for each 16 characters where these are more.

    ```python
    from hichunk_haystack.weights import weigh

    print(weigh("Fire it slowly.", tokens=4), weigh("x" * 1600, tokens=1))  # 4 100
    ```

    :param text: The text; white space in it weighs nothing, as it never has to be cut.
    :param tokens: Its length in tokens, where that is known.
    :returns: Its weight.
    """
    if len(text) <= CHARACTERS_PER_TOKEN * tokens:
        return tokens
    return max(tokens, ceil(sum(map(len, text.split())) / CHARACTERS_PER_TOKEN))
