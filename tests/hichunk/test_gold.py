# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""
The proof over real documents: from a model that knows the headings comes the tree of the headings.

The model is not shown the heading marks. Two kinds are asked. One knows the level of each heading: then the tree must
equal the gold tree everywhere, whatever the window. The other sees nothing but its window and counts levels from the
highest heading in it: then a level must be right wherever the window showed a heading of each level above, which is
what residual lines are for; and where that holds for all headings of a document, its tree must equal the gold tree.
"""

from collections.abc import Mapping

import pytest
from haystack import Document

from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.components.preprocessors.hichunk_splitter import HiChunkSplitter
from hichunk_haystack.hichunk.asking import answered
from hichunk_haystack.hichunk.lines import make_lines
from hichunk_haystack.hichunk.prompts import LINES_TEMPLATE
from hichunk_haystack.hichunk.windows import Plan, Report, predict_cuts
from hichunk_haystack.tokens import HuggingFaceTokenCounter
from tests.conftest import data_set
from tests.hichunk.gold import GoldGenerator

WINDOWS = [512, 2048, 16384]


def largest_rfcs(count: int) -> dict[str, str]:
    paths = (data_set("rust_rfcs") / "docs").glob("*.md")
    chosen = sorted(paths, key=lambda path: (-path.stat().st_size, path.name))[:count]
    return {path.name: path.read_bytes().decode() for path in chosen}


def shape(nodes: list[Document]) -> list[tuple[object, ...]]:
    """A tree without its ids."""
    keys = ("__level", "split_idx_start", "split_idx_end", "token_count", "__block_size", "headings")
    return [tuple(node.meta[key] for key in keys) for node in nodes]


def check_all_levels_known(texts: Mapping[str, str], window_tokens: int, counter: HuggingFaceTokenCounter) -> None:
    gold = MarkdownHierarchicalSplitter(token_counter=counter)
    for name, text in texts.items():
        generator = GoldGenerator(text)
        splitter = HiChunkSplitter(
            generator, window_tokens=window_tokens, hide_heading_marks=True, token_counter=counter,
            max_retries=0, on_failure="raise", progress_bar=False,
        )  # fmt: skip
        result = splitter.run([Document(content=text)])
        assert shape(result["documents"]) == shape(gold.run([Document(content=text)])["documents"]), name
        (report,) = result["report"]
        # Nothing came from anywhere but the model.
        assert (report["fallbacks"], report["retries"], report["dropped"]) == (0, 0, {})
        assert report["calls"] == report["windows"] == generator.calls
        assert report["cut_points"] == len(generator.headings)
        assert generator.end == len(generator.lines)
        assert counter.count_texts([generator.longest])[0] <= window_tokens


def check_levels_seen(
    texts: Mapping[str, str], window_tokens: int, counter: HuggingFaceTokenCounter
) -> tuple[int, int, int]:
    """Numbers of headings, of those whose level could be seen, and of documents of which all could."""
    how = Plan(LINES_TEMPLATE, counter, window_tokens=window_tokens, max_retries=0, on_failure="raise")
    headings = seen = whole = 0
    for name, text in texts.items():
        generator = GoldGenerator(text, local=True)
        lines = make_lines(text, hide_heading_marks=True)
        cuts = answered(predict_cuts(lines, how, Report()), generator)
        assert set(cuts) == set(lines.headings), name
        right = {line for line, (level, _) in cuts.items() if level == lines.headings[line][0]}
        could = {line for line, visible in generator.seen.items() if visible}
        assert could <= right, name
        headings += len(cuts)
        seen += len(could)
        # All levels right: the same cut points as above, of which the same tree is built.
        whole += could == set(cuts)
    return headings, seen, whole


@pytest.mark.parametrize("window_tokens", WINDOWS)
def test_book_with_all_levels_known(
    window_tokens: int, rust_book: dict[str, str], counter: HuggingFaceTokenCounter
) -> None:
    texts = dict(list(rust_book.items())[::4])
    assert len(texts) == 28
    check_all_levels_known(texts, window_tokens, counter)


@pytest.mark.parametrize("window_tokens", WINDOWS)
def test_long_documents_with_all_levels_known(window_tokens: int, counter: HuggingFaceTokenCounter) -> None:
    check_all_levels_known(largest_rfcs(4), window_tokens, counter)


def test_levels_are_right_wherever_a_window_could_see_them(
    rust_book: dict[str, str], counter: HuggingFaceTokenCounter
) -> None:
    texts = dict(list(rust_book.items())[::4])
    found = {window: check_levels_seen(texts, window, counter) for window in WINDOWS}
    total = found[16384][0]
    assert found[16384] == found[2048] == (total, total, 28)
    # A window of 512 tokens is 374 without the instruction: some 12 lines, and residual lines for the levels above.
    assert 0.9 * total < found[512][1] < total


def test_residual_lines_are_what_keeps_the_levels(
    rust_book: dict[str, str], counter: HuggingFaceTokenCounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = dict(list(rust_book.items())[::4])
    with_residual = check_levels_seen(texts, 512, counter)[1]
    monkeypatch.setattr("hichunk_haystack.hichunk.windows.RESIDUAL_STEPS", ((0, 0, 0),))
    without = check_levels_seen(texts, 512, counter)[1]
    assert without < 0.7 * with_residual


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("window_tokens", WINDOWS)
def test_all_of_the_book_and_a_hundred_long_documents(
    window_tokens: int, rust_book: dict[str, str], counter: HuggingFaceTokenCounter
) -> None:
    for texts in (rust_book, largest_rfcs(100)):
        check_all_levels_known(texts, window_tokens, counter)
        headings, seen, whole = check_levels_seen(texts, window_tokens, counter)
        print(f"window {window_tokens}: {seen} of {headings} levels seen, all in {whole} of {len(texts)} documents")
        assert seen >= {512: 0.9, 2048: 0.99, 16384: 1.0}[window_tokens] * headings
        assert whole >= {512: 0.6, 2048: 0.95, 16384: 1.0}[window_tokens] * len(texts)
