# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What `make demo` runs, as a process of its own."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hichunk_haystack.tokens import HuggingFaceTokenCounter
from tests.hayhooks_server import REPOSITORY, environment

DEMO = REPOSITORY / "examples" / "demo.py"
HANDBOOK = REPOSITORY / "examples" / "handbook"
BUDGET = 1024
WET = "Books that fell into water are frozen in the staff kitchen within two hours."
SECONDS = 280  # for one run; about 300 leaves are embedded, at 5 in a second on a busy machine


@dataclass(frozen=True)
class Answer:
    """What the demo prints for one question."""

    question: str
    context: str
    merged: list[int]
    """How many leaves each merged node stands for."""
    returned: int
    used: int
    budget: int


def run(demo: Path, folder: Path, **variables: str | None) -> "subprocess.CompletedProcess[str]":
    """Run the demo in a folder; a variable that is `None` is not set."""
    set_here = {**environment(folder), **variables}
    return subprocess.run(
        [sys.executable, str(demo)],
        cwd=folder,
        env={name: value for name, value in set_here.items() if value is not None},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
    )


def answers(output: str) -> Iterator[Answer]:
    """Read the demo's output: each question between lines of "=", its context, and numbers below a line of "-"."""
    _, *parts = output.split(f"\n{'=' * 100}\n")
    for question, rest in zip(parts[::2], parts[1::2], strict=True):
        context, numbers = rest.strip().split(f"\n\n{'-' * 100}\n")
        last = re.search(r"(\d+) passages? returned, (\d+) of (\d+) tokens used", numbers)
        assert last, numbers
        merged = [int(leaves) for leaves in re.findall(r"^merged: (\d+) (?:leaf|leaves)", numbers, re.MULTILINE)]
        yield Answer(question, context, merged, *map(int, last.groups()))


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the demo prints about the sample handbook."""
    done = run(DEMO, tmp_path_factory.mktemp("demo"))
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_sample_handbook_is_indexed_as_a_whole(output: str) -> None:
    first = output.splitlines()[0]
    files = [path for path in HANDBOOK.iterdir() if path.suffix in {".md", ".txt"}]
    assert re.fullmatch(rf"Indexed {len(files)} sources as \d+ leaves, from {re.escape(str(HANDBOOK))}", first)
    assert "left out" not in output


def test_three_questions_are_answered_within_the_budget(output: str, counter: HuggingFaceTokenCounter) -> None:
    found = list(answers(output))
    assert len(found) == 3
    for answer in found:
        assert counter.count_texts([answer.context]) == [answer.used]
        assert BUDGET - 120 < answer.used <= answer.budget == BUDGET
        numbers = [int(number) for number in re.findall(r"^\[(\d+)\] ", answer.context, re.MULTILINE)]
        assert numbers == list(range(1, answer.returned + 1))


def test_the_lathe_and_its_price_are_in_the_first_passage(output: str) -> None:
    lathe = next(answers(output))
    assert "wood lathe" in lathe.question
    first = lathe.context.split("\n[2] ")[0]
    assert first.startswith("[1] handbook/07-slipway-equipment.md > ")
    assert re.search(r"^\| W07 \| Wood lathe \|.*\| 3 hours \| €2 per hour \|$", first, re.MULTILINE)


def test_the_leaves_on_injuries_merge_into_their_section(output: str) -> None:
    _, hurt, _ = answers(output)
    assert "hurt" in hurt.question
    assert hurt.context.startswith("[1] handbook/06-slipway-safety.md > The Slipway: safety and inductions")
    section = hurt.context.split("> When somebody gets hurt\n")[1].split("\n\n[")[0]
    # All of the section, from its first words to its last subsection.
    for part in ("### First minutes", "Press the mushroom button", "### Burns and eyes", "### Afterwards"):
        assert part in section
    assert max(hurt.merged) >= 2


def test_the_wet_book_is_found(output: str) -> None:
    _, _, water = answers(output)
    assert "water" in water.question
    assert WET in " ".join(water.context.split())


def test_own_files_and_an_own_question_and_a_collection_for_each_folder(tmp_path: Path) -> None:
    # A copy, so that what the demo makes beside itself is made here.
    for part in ("examples/demo.py", "pipelines/indexing.yml", "pipelines/query.yml"):
        (tmp_path / part).parent.mkdir(exist_ok=True)
        shutil.copy(REPOSITORY / part, tmp_path / part)
    demo = tmp_path / "examples" / "demo.py"
    texts = {"pots": "# Kiln\n\nFire it slowly.\n", "bees": "# Bees\n\nOpen the hive in April.\n"}
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.md").write_text(text)
    (tmp_path / "bees" / "empty.md").touch()
    for name in ("a.csv", "b.csv", "hives.LOG"):
        (tmp_path / "bees" / name).write_text("1,2\n")
    for name, left_out in (("pots", False), ("bees", True)):
        done = run(demo, tmp_path, DOCS=name, Q="When is the hive opened?", QDRANT_PATH=None)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"Indexed 1 source as 1 leaf, from {name}\n")
        assert ("left out" in done.stdout and "empty.md: The file is empty" in done.stdout) is left_out
        assert ("  Passed over 3 files of types that are not read (.csv, .log)\n" in done.stdout) is left_out
        assert "empty.md" not in done.stderr  # it is told once
        assert "\n1 leaf found, 1 passage returned, " in done.stdout
        (answer,) = answers(done.stdout)
        assert answer.question == "When is the hive opened?"
        heading, text = texts[name].strip().split("\n\n")
        assert answer.context == f"[1] {name}/{name}.md > {heading.removeprefix('# ')}\n{text}"
    assert len(list((tmp_path / ".demo").iterdir())) == 2


def test_a_folder_that_does_not_exist_is_told_in_a_sentence(tmp_path: Path) -> None:
    done = run(DEMO, tmp_path, DOCS="no/such/folder")
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.strip().splitlines()
    assert "'no/such/folder'" in line
    assert "make demo DOCS=" in line
    assert list(tmp_path.iterdir()) == []


def test_own_files_without_a_question_are_indexed_only(tmp_path: Path) -> None:
    (tmp_path / "kiln.md").write_text("# Kiln\n\nFire it slowly.\n")
    done = run(DEMO, tmp_path, DOCS="kiln.md", Q="")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "Indexed 1 source as 1 leaf, from kiln.md",
        "Ask with Q='...': make demo DOCS=folder Q='What does the warranty cover?'",
    ]


def test_a_folder_with_nothing_in_it_ends_with_a_sentence(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    done = run(DEMO, tmp_path, DOCS=str(docs), Q="Is there anything?")
    assert (done.returncode, done.stdout) == (1, "")
    last = done.stderr.strip().splitlines()[-1]
    assert last == (
        f"Nothing to index: {docs}: The folder is empty (hidden files do not count); put files into it, or name "
        "another one."
    )
