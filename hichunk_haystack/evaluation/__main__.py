# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""
Evidence recall of every contender on data sets, side by side.

    python -m hichunk_haystack.evaluation DATASET ... [--budgets 256 512 1024 2048 4096] [--output FOLDER] [--every]

A data set is a folder with `docs/*.md` and `qas.jsonl`, as HiCBench has it. Where there are no questions, ones with
dense evidence are made from the headings of the documents. For each data set a table is printed, and table, plot and
JSON are saved. A run that was broken off goes on where it stopped; embeddings are kept from run to run.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from hichunk_haystack.components.offline import DEFAULT_MODEL
from hichunk_haystack.evaluation.benchmark import BUDGETS
from hichunk_haystack.evaluation.command import compare


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run the command.

    :param arguments: Arguments; those of the process by default.
    :returns: Exit code: 0, or 2 if a data set can't be read.
    """
    parser = argparse.ArgumentParser(
        prog="python -m hichunk_haystack.evaluation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("datasets", nargs="+", type=Path, metavar="DATASET")
    parser.add_argument("--budgets", nargs="+", type=int, default=list(BUDGETS), help="in tokens")
    parser.add_argument("--output", type=Path, default=Path("evaluation"), help="folder for results and embeddings")
    parser.add_argument("--every", action="store_true", help="each splitter of ours with each policy")
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--questions", type=int, help="at most so many of each data set, evenly chosen")
    parser.add_argument(
        "--cross-encoder", metavar="MODEL", help="of Sentence Transformers; reads the best chunks again; slow"
    )
    options = parser.parse_args(arguments)
    try:
        for folder in options.datasets:
            found = compare(
                folder,
                options.output,
                options.budgets,
                model=options.model,
                every=options.every,
                most=options.questions,
                cross_encoder=options.cross_encoder,
            )
            sys.stdout.write(f"{found}\n")
    except (OSError, ValueError, ImportError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
