# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Which indexed files count as gone."""

import os
from pathlib import Path

import pytest

from hichunk_haystack.cli.gone import folders_of, gone_below
from hichunk_haystack.components.converters import FileConverter
from tests.cli.command import told


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "old").mkdir(parents=True)
    (folder / "kiln.md").write_text("# Kiln\n")
    return folder


def test_what_is_below_the_folders_and_not_there(docs: Path, tmp_path: Path) -> None:
    names = [
        str(docs / "kiln.md"),  # is there
        str(docs / "wheel.md"),
        str(docs / "old" / "glaze.md"),
        str(docs / "gone" / "deep" / "clay.md"),
        str(docs / "kiln.md" / "part.md"),  # where a folder was there is a file now
        str(tmp_path / "docs2" / "wheel.md"),  # a folder whose name starts alike
        str(tmp_path / "wheel.md"),  # above
        str(docs / ".." / "wheel.md"),
        "wheel.md",  # no path of ours
        "https://example.org/docs/wheel.md",
        str(docs / "nul\0.md"),
        str(docs),
        7,
    ]
    assert gone_below([str(docs)], names) == names[1:5]
    assert gone_below([], names) == []


def test_names_below_a_root(docs: Path, tmp_path: Path) -> None:
    names = ["docs/kiln.md", "docs/wheel.md", "other/wheel.md", "../docs/wheel.md", "docs/\ud800.md"]
    folders = folders_of(["docs", "none"], root=str(tmp_path))
    assert folders == list(dict.fromkeys([str(docs), os.path.realpath(docs)]))
    assert gone_below(folders, names, root=str(tmp_path)) == ["docs/wheel.md"]


def test_what_is_no_file_does_not_count_below_a_root(tmp_path: Path) -> None:
    names = ["policy-7", "https://example.org/wheel.md", "wheel.md"]
    assert gone_below([str(tmp_path)], names, root=str(tmp_path)) == ["wheel.md"]


def test_a_folder_is_known_by_both_its_names(docs: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(docs)
    names = [str(docs / "wheel.md"), str(link / "wheel.md"), str(link / "kiln.md")]
    assert gone_below(folders_of([str(link)]), names) == names[:2]
    assert gone_below(folders_of([str(docs)]), names) == names[:1]


def test_a_link_to_nothing_is_there(docs: Path) -> None:
    (docs / "link.md").symlink_to(docs / "none.md")
    assert gone_below([str(docs)], [str(docs / "link.md")]) == []


def test_a_file_whose_name_is_no_text_is_there(docs: Path) -> None:
    try:
        with open(os.fsencode(docs) + b"/caf\xe9.md", "w") as file:
            file.write("# Coffee\n")
    except OSError:
        pytest.skip("this disk takes no such names")
    names = [document.meta["file_path"] for document in FileConverter(progress_bar=False).run([docs])["documents"]]
    assert names == [str(docs / "caf\\xe9.md"), str(docs / "kiln.md")]
    assert gone_below([str(docs)], names) == []
    os.unlink(os.fsencode(docs) + b"/caf\xe9.md")
    assert gone_below([str(docs)], names) == names[:1]


def test_what_cannot_be_looked_at_is_there(docs: Path) -> None:
    names = [str(docs / "old" / ("x" * 300 + ".md"))]  # longer than any name: the system refuses to look
    assert gone_below([str(docs)], names) == []
    if os.geteuid() != 0:
        (docs / "old").chmod(0)
        try:
            assert gone_below([str(docs)], [str(docs / "old" / "wheel.md")]) == []
        finally:
            (docs / "old").chmod(0o700)


def test_folders_among_paths(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(docs.parent)
    assert folders_of(["docs/*.md", "docs/kiln.md", "none"]) == []
    assert os.path.join(os.getcwd(), "docs") in folders_of(["./docs/"])


def test_pruning_needs_a_folder(docs: Path) -> None:
    line = told("index", "docs/kiln.md", "--prune", folder=docs.parent, code=2)
    assert line == "--prune looks for files that have gone from folders: name a folder among the paths."
