# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""
What HiChunkSplitter costs: calls and tokens per document, by the size of the window.

The documents' own headings answer, in place of a model: what is asked and how much is answered is the same as with a
model that finds exactly these sections, and no time is spent on one.

    python benchmarks/hichunk_cost.py FOLDER [--windows 2048 4096 8192 16384] [--limit 100]
"""

import argparse
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from hichunk_haystack.hichunk.lines import Lines, make_lines
from hichunk_haystack.hichunk.prompts import TEMPLATES, write_answer
from hichunk_haystack.hichunk.windows import Plan, Question, Report, predict_cuts
from hichunk_haystack.tokens import HuggingFaceTokenCounter


def ask(lines: Lines, plan: Plan, answer_format: str) -> Report:
    """Run one document through its windows."""
    report = Report()
    work = predict_cuts(lines, plan, report)
    question: Question | None = next(work)
    while question is not None:
        shown = enumerate(question.shown)
        found = [(number, lines.headings[line][0], True) for number, line in shown if line in lines.headings]
        try:
            question = work.send(write_answer(found, answer_format))
        except StopIteration:
            question = None
    assert report.cut_points == len(lines.headings)
    return report


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path, help="Markdown documents")
    parser.add_argument("--windows", type=int, nargs="+", default=[1024, 2048, 4096, 8192, 16384])
    parser.add_argument("--limit", type=int, help="take only so many documents, the longest")
    parser.add_argument("--answer-format", choices=sorted(TEMPLATES), default="lines")
    options = parser.parse_args(arguments)
    paths = sorted(options.folder.rglob("*.md"), key=lambda path: (-path.stat().st_size, path.name))[: options.limit]
    texts = [text for text in (path.read_bytes().decode() for path in paths) if text.strip()]
    counter = HuggingFaceTokenCounter()
    tokens = sum(counter.count_texts(texts))
    start = time.perf_counter()
    documents = [make_lines(text, hide_heading_marks=True) for text in texts]
    cutting = time.perf_counter() - start
    shown = sum(len(lines.shown) for lines in documents)
    print(
        f"{len(texts)} documents, {sum(map(len, texts)):,} characters, {tokens:,} tokens, {shown:,} lines "
        f"(cut in {cutting:.1f} s)\n"
    )
    print(
        "| window | windows and calls a document | most | tokens asked a document | of its length | answered | all, s |"
    )
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for window_tokens in options.windows:
        plan = Plan(TEMPLATES[options.answer_format], counter, window_tokens=window_tokens)
        start = time.perf_counter()
        reports = [ask(lines, plan, options.answer_format) for lines in documents]
        seconds = time.perf_counter() - start
        total: Counter[str] = Counter()
        for report in reports:
            told = asdict(report)
            total.update({key: told[key] for key in ("windows", "calls", "prompt_tokens", "answer_tokens")})
        assert total["calls"] == total["windows"]
        count = len(reports)
        print(
            f"| {window_tokens:,} | {total['calls'] / count:.2f} | {max(report.windows for report in reports)} "
            f"| {total['prompt_tokens'] / count:,.0f} | {total['prompt_tokens'] / tokens:.2f} "
            f"| {total['answer_tokens'] / count:,.0f} | {seconds:.1f} |"
        )


if __name__ == "__main__":
    main()
