# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import json
import logging
from collections import Counter
from pathlib import Path

import pytest

from hichunk_haystack.hichunk.answers import parse_answer
from hichunk_haystack.tokens import HuggingFaceTokenCounter
from hichunk_haystack.training import Example, make_examples, read_markdown, write_jsonl
from hichunk_haystack.training.__main__ import main
from tests.conftest import data_set
from tests.hichunk.gold import shown_lines

POTTERY = """\
Welcome to the pottery.

## Kiln

It stands in the yard.

#### Firing

Fire it slowly.

## Wheel

Centre the clay.
"""


def section(number: int, parts: int, sentences: int) -> str:
    body = "".join(
        f"## Part {number}.{part}\n\n" + f"Sentence of part {number}.{part} here. " * sentences + "\n\n"
        for part in range(parts)
    )
    return f"# Section {number}\n\nIntroduction of section {number}.\n\n{body}"


LONG = "Foreword of the book.\n\n" + "".join(section(number, 8, 30) for number in range(6))


def examples(text: str, counter: HuggingFaceTokenCounter, **options: object) -> list[Example]:
    return list(make_examples([("pottery.md", text)], token_counter=counter, **options))  # type: ignore[arg-type]


def test_a_page(counter: HuggingFaceTokenCounter) -> None:
    first = examples(POTTERY, counter)[0]
    assert (first.kind, first.residual, first.lines, first.levels) == ("original", 0, 7, (1, 2, 1))
    assert shown_lines(first.prompt) == [
        "Welcome to the pottery.",
        "Kiln",
        "It stands in the yard.",
        "Firing",
        "Fire it slowly.",
        "Wheel",
        "Centre the clay.",
    ]
    assert first.answer == "1, Level One, True\n3, Level Two, True\n5, Level One, True"
    assert first.tokens == sum(counter.count_texts([first.prompt, first.answer]))
    assert first.to_chat() == {
        "messages": [{"role": "user", "content": first.prompt}, {"role": "assistant", "content": first.answer}]
    }


def test_shuffled_sections_keep_their_own_text_and_what_stands_before_them(counter: HuggingFaceTokenCounter) -> None:
    orders = set()
    for seed in range(8):
        for example in examples(POTTERY, counter, seed=seed):
            lines = shown_lines(example.prompt)
            assert lines[0] == "Welcome to the pottery."
            kiln = lines.index("Kiln")
            assert lines[kiln : kiln + 4] == ["Kiln", "It stands in the yard.", "Firing", "Fire it slowly."]
            orders.add(tuple(lines))
    # Two sections have two orders; neither is told twice for one document and seed.
    assert len(orders) == 2


def test_a_title_above_all_sections_stays_and_what_is_below_it_is_shuffled(counter: HuggingFaceTokenCounter) -> None:
    text = "# Pottery\n\n" + POTTERY
    orders = {tuple(shown_lines(example.prompt)) for seed in range(8) for example in examples(text, counter, seed=seed)}
    assert {order[:2] for order in orders} == {("Pottery", "Welcome to the pottery.")}
    assert len(orders) == 2


def test_shortened_sections_have_fewer_parts_and_lines(counter: HuggingFaceTokenCounter) -> None:
    found = [example for example in examples(LONG, counter, window_tokens=16384) if example.kind == "shortened"]
    (example,) = found
    lines = shown_lines(example.prompt)
    assert sum(line.startswith("Section ") for line in lines) == 6
    parts = Counter(line.removeprefix("Part ")[0] for line in lines if line.startswith("Part "))
    # The text before the parts and 8 parts make 9 subsections, of which 5 to 9 are kept: 4 to 8 parts.
    assert all(4 <= parts[str(number)] <= 8 for number in range(6))
    assert parts.total() < 6 * 8
    sentences = Counter(line for line in lines if line.startswith("Sentence"))
    # A title and 14 to 24 sentences make 15 to 25 lines; the paragraph has 30.
    assert all(14 <= count <= 24 for count in sentences.values())


def test_every_answer_is_that_of_the_lines_shown(counter: HuggingFaceTokenCounter) -> None:
    found = examples(LONG, counter, window_tokens=1500, copies=3)
    assert Counter(example.kind for example in found).keys() == {"original", "shuffled", "shortened"}
    assert sum(example.residual > 0 for example in found) > len(found) / 4
    for example in found:
        lines = shown_lines(example.prompt)
        assert len(lines) == example.lines
        assert not any(line.startswith("#") for line in lines)
        assert counter.count_texts([example.prompt])[0] <= 1500
        answer = parse_answer(example.answer, len(lines))
        expected = {
            number: (1 if line.startswith("Section") else 2, True)
            for number, line in enumerate(lines)
            if line.startswith(("Section", "Part"))
        }
        assert (answer.cuts, answer.problem, dict(answer.dropped)) == (expected, None, {})
        assert list(example.levels) == [level for level, _ in expected.values()]


def test_residual_lines_are_lines_from_before_and_vary(counter: HuggingFaceTokenCounter) -> None:
    found = [example for example in examples(LONG, counter, window_tokens=1500, copies=4) if example.residual]
    lengths = set()
    for example in found:
        lines = shown_lines(example.prompt)
        residual, own = lines[: example.residual], lines[example.residual :]
        # The first residual line starts the section (or foreword) that goes on.
        assert residual[0].startswith(("Section", "Foreword", "Part"))
        assert own
        lengths.add(len(residual))
    assert len(lengths) > 3


def test_json_answers_and_ones_own_instruction(counter: HuggingFaceTokenCounter) -> None:
    first = examples(POTTERY, counter, answer_format="json", prompt_template="Cut:\n{lines}")[0]
    assert first.prompt.startswith("Cut:\n0 @ Welcome")
    assert json.loads(first.answer) == {
        "cut_points": [
            {"line": 1, "level": 1, "title": True},
            {"line": 3, "level": 2, "title": True},
            {"line": 5, "level": 1, "title": True},
        ]
    }
    with pytest.raises(ValueError, match="prompt_template holds"):
        examples(POTTERY, counter, prompt_template="Cut.")


def test_the_same_seed_gives_the_same_whatever_else_is_there(counter: HuggingFaceTokenCounter) -> None:
    options = {"seed": 3, "window_tokens": 1500, "token_counter": counter}
    alone = list(make_examples([("b.md", LONG)], **options))  # type: ignore[arg-type]
    among = list(make_examples([("a.md", POTTERY), ("b.md", LONG), ("c.md", "no headings"), ("d.md", "")], **options))  # type: ignore[arg-type]
    assert [example for example in among if example.source == "b.md"] == alone
    assert {example.source for example in among} == {"a.md", "b.md"}
    other = list(make_examples([("b.md", LONG)], **{**options, "seed": 4}))  # type: ignore[arg-type]
    assert [example for example in other if example.kind == "original"] == [
        example for example in alone if example.kind == "original"
    ]
    assert other != alone


def test_files_in_and_jsonl_out(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    counter: HuggingFaceTokenCounter,
) -> None:
    folder = tmp_path / "docs"
    (folder / "more").mkdir(parents=True)
    (folder / "b.md").write_bytes(POTTERY.encode())
    (folder / "more" / "a.md").write_bytes("# Eins\r\n\r\nÄä 再见。\r\n".encode())
    (folder / "bad.md").write_bytes(b"# \xff")
    (folder / "other.txt").write_bytes(b"# no Markdown by its name")
    with caplog.at_level(logging.WARNING):
        documents = list(read_markdown(folder))
    assert documents == [("b.md", POTTERY), ("more/a.md", "# Eins\r\n\r\nÄä 再见。\r\n")]
    assert "bad.md' is left out" in caplog.text

    target = tmp_path / "train.jsonl"
    target.write_text("old")
    found = list(make_examples(documents, token_counter=counter))
    counts = write_jsonl(target, found)
    rows = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
    assert rows == [example.to_chat() for example in found]
    assert counts["examples"] == len(rows) == sum(counts["kinds"].values())
    assert (counts["documents"], counts["kinds"]["original"], counts["with_residual"]) == (2, 2, 0)
    assert counts["lines"] == sum(example.lines for example in found)
    assert counts["cut_points"]["Level One"] == sum(example.levels.count(1) for example in found)

    main([str(folder), str(tmp_path / "again.jsonl")])
    assert json.loads(capsys.readouterr().out) == counts
    assert (tmp_path / "again.jsonl").read_bytes() == target.read_bytes()
    with pytest.raises(FileNotFoundError, match="is no folder"):
        list(read_markdown(tmp_path / "nowhere"))


def test_a_run_that_fails_leaves_the_older_file(tmp_path: Path, counter: HuggingFaceTokenCounter) -> None:
    target = tmp_path / "train.jsonl"
    target.write_text("old")

    def failing():
        yield from examples(POTTERY, counter)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_jsonl(target, failing())
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_examples_of_real_documents(counter: HuggingFaceTokenCounter) -> None:
    paths = sorted((data_set("rust_rfcs") / "docs").glob("*.md"))[:12]
    documents = [(path.name, path.read_bytes().decode()) for path in paths]
    for example in make_examples(documents, token_counter=counter, window_tokens=1024):
        count = len(shown_lines(example.prompt))
        answer = parse_answer(example.answer, count)
        assert (answer.problem, dict(answer.dropped), len(answer.cuts)) == (None, {}, len(example.levels))
        assert counter.count_texts([example.prompt])[0] <= 1024
