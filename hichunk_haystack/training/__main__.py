# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""`python -m hichunk_haystack.training folder examples.jsonl`."""

import argparse
import json
import sys
from collections.abc import Sequence

from hichunk_haystack.tokens import DEFAULT_TOKENIZER, HuggingFaceTokenCounter
from hichunk_haystack.training import make_examples, read_markdown, write_jsonl


def main(arguments: Sequence[str] | None = None) -> None:
    """
    Make a JSONL file of training examples from a folder of Markdown, and print counts.

    :param arguments: The command line, by default that of the process.
    """
    parser = argparse.ArgumentParser(prog="python -m hichunk_haystack.training", description=main.__doc__)
    parser.add_argument("folder", help="folder with .md files")
    parser.add_argument("output", help="the JSONL file to write")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--copies", type=int, default=1, help="augmented copies of each document, of each kind")
    parser.add_argument("--window-tokens", type=int, default=8192, help="the most tokens of a prompt")
    parser.add_argument("--answer-format", choices=("lines", "json"), default="lines")
    parser.add_argument("--language", default="en")
    parser.add_argument("--tokenizer", default=DEFAULT_TOKENIZER, help="the tokenizer of the model to train")
    options = parser.parse_args(arguments)
    examples = make_examples(
        read_markdown(options.folder),
        seed=options.seed,
        copies=options.copies,
        window_tokens=options.window_tokens,
        answer_format=options.answer_format,
        language=options.language,
        token_counter=HuggingFaceTokenCounter(options.tokenizer),
    )
    sys.stdout.write(json.dumps(write_jsonl(options.output, examples), indent=2) + "\n")


if __name__ == "__main__":
    main()
