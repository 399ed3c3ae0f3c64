# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""How the `FileConverter` finds files: folders, patterns, links."""

from pathlib import Path

import pytest
from haystack import Document

from hichunk_haystack.components.converters import FileConverter
from tests.components.converters.files import failures, keys, write

# --- finding files


def test_folders_are_read_to_the_bottom_in_order_without_hidden_files(tmp_path: Path, converter: FileConverter) -> None:
    (tmp_path / "docs" / "b" / "deep").mkdir(parents=True)
    (tmp_path / "docs" / ".git").mkdir()
    (tmp_path / "docs" / "x.md").mkdir()
    write(tmp_path / "docs", z__md="z", a__TXT="a", picture__png=b"\x89PNG", README="r", __hidden__md="h")
    write(tmp_path / "docs" / "b" / "deep", m__md="m", n__py="n")
    write(tmp_path / "docs" / ".git", config__md="c")
    write(tmp_path / "docs" / "x.md", k__md="k")
    result = converter.run(["docs"])
    assert keys(result) == ["docs/a.TXT", "docs/b/deep/m.md", "docs/x.md/k.md", "docs/z.md"]
    assert result["skipped"] == ["docs/README", "docs/b/deep/n.py", "docs/picture.png"]
    assert result["failed"] == []


def test_the_same_file_has_the_same_key_and_id_however_it_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs").mkdir()
    write(tmp_path / "docs", a__md="a")
    monkeypatch.chdir(tmp_path)
    ways = ["docs", "docs/a.md", Path("docs/a.md"), "./docs/../docs//a.md", str(tmp_path / "docs" / "a.md"), "**/*.md"]
    documents = [FileConverter().run([way])["documents"][0] for way in ways]
    assert {document.meta["file_path"] for document in documents} == {str(tmp_path / "docs" / "a.md")}
    assert {document.id for document in documents} == {Document(content="a", meta=documents[0].meta).id}
    assert len(FileConverter().run(ways)["documents"]) == 1
    assert {FileConverter(root="docs").run([way])["documents"][0].meta["file_path"] for way in ("a.md", ".", "*")} == {
        "a.md"
    }


def test_files_of_one_name_in_two_folders_stay_two_sources(tmp_path: Path, converter: FileConverter) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder, kiln__md="the same text")
    result = converter.run(["."])
    assert keys(result) == ["a/kiln.md", "b/kiln.md"]
    assert len({document.id for document in result["documents"]}) == 2


def test_patterns(tmp_path: Path, converter: FileConverter) -> None:
    (tmp_path / "b").mkdir()
    write(tmp_path, a__md="a", c__png=b"png", __h__md="h")
    write(tmp_path / "b", d__md="d")
    write(tmp_path, **{"[x]__md": "x"})
    assert keys(converter.run(["*.md"])) == ["[x].md", "a.md"]
    assert keys(converter.run(["**/*.md"])) == ["[x].md", "a.md", "b/d.md"]
    assert keys(converter.run(["**"])) == ["[x].md", "a.md", "b/d.md"]
    assert keys(converter.run([".*.md"])) == [".h.md"]
    # What exists by that very name is no pattern.
    assert keys(converter.run(["[x].md"])) == ["[x].md"]
    everything = converter.run(["*"])
    assert keys(everything) == ["[x].md", "a.md", "b/d.md"]
    assert everything["skipped"] == ["c.png"]


def test_links(tmp_path: Path, converter: FileConverter) -> None:
    docs = tmp_path / "docs"
    (docs / "real").mkdir(parents=True)
    write(docs / "real", z__md="z")
    (docs / "a-link.md").symlink_to(docs / "real" / "z.md")
    (docs / "a-folder").symlink_to(docs / "real")
    (docs / "real" / "loop").symlink_to(docs)
    (docs / "real" / "itself").symlink_to("itself")
    (tmp_path / "elsewhere").mkdir()
    write(tmp_path / "elsewhere", e__md="e")
    (docs / "elsewhere").symlink_to(tmp_path / "elsewhere")
    (docs / "broken.md").symlink_to("nowhere.md")
    result = converter.run(["docs"])
    # By their own names where they have one here; by the link's where that is all there is.
    assert keys(result) == ["docs/elsewhere/e.md", "docs/real/z.md"]
    assert failures(result) == {
        "docs/broken.md": "It is a link to something that does not exist; mend or remove the link."
    }
    assert result["skipped"] == ["docs/real/itself"]
    assert keys(converter.run(["docs/a-link.md"])) == ["docs/a-link.md"]


@pytest.mark.parametrize("paths", ["a.md", Path("a.md"), ["a.md"], ("a.md",)])
def test_one_path_need_not_be_in_a_list(tmp_path: Path, converter: FileConverter, paths: object) -> None:
    write(tmp_path, a__md="a")
    assert keys(converter.run(paths)) == ["a.md"]  # type: ignore[arg-type]


def test_no_paths_give_nothing(converter: FileConverter) -> None:
    assert converter.run([]) == {"documents": [], "failed": [], "skipped": []}
