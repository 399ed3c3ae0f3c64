# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""`hichunk tree`, and the page of a file."""

import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import HICHUNK, answered, environment, hichunk, told

# Two sections, each a leaf of its own: together they are longer than a leaf of 12 tokens may be.
TEXT = "# Kiln\n\nFire it slowly.\n\n## Cooling\n\nLeave the door shut for a whole day.\n"
YAML = """
components:
  read: {type: hichunk_haystack.components.converters.FileConverter, init_parameters: {}}
  cut:
    type: hichunk_haystack.components.preprocessors.MarkdownHierarchicalSplitter
    init_parameters: {leaf_tokens: 12, min_leaf_tokens: 1}
  write:
    type: hichunk_haystack.components.writers.HierarchyWriter
    init_parameters: {document_store: {type: no.such.Store, init_parameters: {}}}
connections:
  - {sender: read.documents, receiver: cut.documents}
  - {sender: cut.documents, receiver: write.documents}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file and a pipeline of other names and settings, whose store is never made."""
    (tmp_path / "kiln.md").write_text(TEXT)
    (tmp_path / "my.yml").write_text(YAML)
    return tmp_path


def test_the_tree_as_data(folder: Path) -> None:
    (shown,) = answered("tree", "kiln.md", "-p", "my.yml", folder=folder)
    assert shown["source"] == "kiln.md"
    assert (shown["level"], shown["start"], shown["end"], shown["leaves"]) == (0, 0, len(TEXT), 2)
    leaves = []
    waiting = [shown]
    while waiting:
        node = waiting.pop(0)
        waiting = node["children"] + waiting
        if not node["children"]:
            leaves.append(node)
    border = TEXT.index("## Cooling")
    assert [(leaf["start"], leaf["end"]) for leaf in leaves] == [(0, border), (border, len(TEXT))]
    assert sum(leaf["tokens"] for leaf in leaves) == shown["tokens"]


def test_depth_cuts_the_tree_and_tells_how_much_is_below(folder: Path) -> None:
    (shown,) = answered("tree", "kiln.md", "-p", "my.yml", "--depth", 0, folder=folder)
    assert (shown["leaves"], shown["children"]) == (2, [])
    lines = hichunk("tree", "kiln.md", "-p", "my.yml", "--depth", 0, folder=folder).stdout.splitlines()
    assert lines == [f"kiln.md  {shown['tokens']} tokens, 2 leaves"]


def test_the_tree_in_lines(folder: Path) -> None:
    lines = hichunk("tree", "kiln.md", "-p", "my.yml", folder=folder).stdout.splitlines()
    assert lines[0].startswith("kiln.md  ")
    assert lines[-1].startswith("└─ ") or lines[-1].startswith("   └─ ")
    assert any("Fire it slowly." in line and line.endswith(" tokens") for line in lines)
    assert any("Cooling" in line and "Leave the door shut for a whole day." in line for line in lines)
    # Nothing but the file was read and nothing was written.
    assert sorted(path.name for path in folder.iterdir()) == ["kiln.md", "my.yml"]


def test_a_terminal_gets_no_control_characters_of_the_text(folder: Path) -> None:
    (folder / "evil.md").write_text("# \x1b[31mRed\x1b]0;title\x07\n\nFire \x1b[2Jit slowly.\n")
    here, there = pty.openpty()
    done = subprocess.run(
        [*HICHUNK, "tree", "evil.md", "-p", "my.yml"],
        cwd=folder,
        env=environment(folder, TERM="xterm"),
        stdout=there,
        stderr=subprocess.PIPE,
        timeout=120,
        check=False,
    )
    os.close(there)
    shown = os.read(here, 100_000).decode()
    os.close(here)
    assert done.returncode == 0, done.stderr
    assert "�[31mRed" in shown
    assert "\x1b[2J" not in shown
    assert "\x1b]0;" not in shown


def test_a_folder_gives_a_tree_for_each_file(folder: Path) -> None:
    (folder / "wheel.txt").write_text("Centre the clay.\n")
    (folder / "empty.md").write_text("")
    assert [each["source"] for each in answered("tree", ".", folder=folder)] == ["kiln.md", "wheel.txt"]


@pytest.mark.parametrize(
    ("file", "says"),
    [("none.md", "There is no such file"), ("empty.md", "The file is empty"), ("my.yml", "can't be split")],
)
def test_a_file_that_is_not_read(file: str, says: str, folder: Path) -> None:
    (folder / "empty.md").write_text("")
    line = told("tree", file, folder=folder)
    assert line.startswith(f"'{file}' can't be split. ")
    assert says in line


def test_a_page_of_the_file(folder: Path) -> None:
    done = hichunk("inspect", "kiln.md", "-p", "my.yml", "-o", "pages/kiln.html", folder=folder)
    page = folder / "pages" / "kiln.html"
    assert done.stdout.startswith(f"Wrote {page} ")
    text = page.read_text(encoding="ascii")
    assert text.startswith("<!DOCTYPE html>")
    assert "Leave the door shut for a whole day." in text


def test_the_page_never_replaces_the_file(folder: Path) -> None:
    line = told("inspect", "kiln.md", "-o", "./kiln.md", folder=folder, code=2)
    assert "'kiln.md' can't be the page" in line
    assert (folder / "kiln.md").read_text() == TEXT
