# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import logging
import os
import subprocess
import sys
from pathlib import Path

import docx
import pytest
import yaml
from haystack import Document, Pipeline, component
from haystack.components.converters import CSVToDocument, PyPDFToDocument, TextFileToDocument

from hichunk_haystack.components.converters import FileConverter
from tests.components.converters.files import LATIN_1, failures, keys, pdf, saved, write
from tests.conftest import REPOSITORY
from tests.snippets import blocks

# --- what can go wrong


def test_every_bad_path_is_named_and_the_good_ones_come_through(
    tmp_path: Path, converter: FileConverter, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "pictures").mkdir()
    write(tmp_path / "pictures", a__png=b"x")
    write(tmp_path, a__md="a", z__md="z", b__xyz="b", README="r")
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "broken.md").symlink_to("nowhere")
    paths = [
        "a.md", "missing.md", "no*.md", "https://example.org/a.md", "file:///etc/hosts", "", " ", "a\0b.md", None, 7,
        "b.xyz", "README", "empty", "pictures", "pipe.md", "broken.md", "../outside.md", "/etc/hostname", "a**.md",
        "z.md",
    ]  # fmt: skip
    with caplog.at_level(logging.WARNING):
        result = converter.run(paths)  # type: ignore[arg-type]
    assert keys(result) == ["a.md", "z.md"]
    errors = failures(result)
    assert len(result["failed"]) == len(paths) - 2
    for path, part in {
        "missing.md": "no such file or folder; check the path",
        "no*.md": "matches no file",
        "https://example.org/a.md": "URLs are not fetched; download the page",
        "file:///etc/hosts": "URLs are not fetched",
        "": "The path is empty",
        " ": "The path is empty",
        "a\0b.md": "no NUL",
        "None": "not a NoneType",
        "7": "not a int",
        "b.xyz": "for files of type '.xyz'; set one for '.xyz' in converters of the FileConverter, in the pipeline's",
        "README": "files without a suffix; give the file the suffix of its type.",
        "empty": "The folder is empty (hidden files do not count)",
        "pictures": "(1 of other types)",
        "pipe.md": "not a regular file",
        "broken.md": "a link to something that does not exist",
        "../outside.md": f"outside of the folder that files may come from (root, '{tmp_path}')",
        "/etc/hostname": "outside of the folder",
    }.items():
        assert part in errors[path], path
        assert f"'{path}' is left out" in caplog.text
    assert "a**.md" in errors


def test_a_file_and_a_folder_that_may_not_be_read(tmp_path: Path, converter: FileConverter) -> None:
    (tmp_path / "closed").mkdir()
    write(tmp_path, a__md="a", b__md="b")
    (tmp_path / "a.md").chmod(0)
    if os.access(tmp_path / "a.md", os.R_OK):
        pytest.skip("who runs this may read everything")
    (tmp_path / "closed").chmod(0)
    errors = failures(converter.run(["."]))
    (tmp_path / "closed").chmod(0o700)
    assert errors["a.md"] == "It can't be read (Permission denied); check the file and who may read it."
    assert errors["closed"] == "The folder can't be read (Permission denied); check who may read it."


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs Linux's /proc")
def test_a_file_whose_reading_fails(tmp_path: Path, converter: FileConverter) -> None:
    write(tmp_path, a__md="a")
    (tmp_path / "mem.md").symlink_to("/proc/self/mem")
    result = converter.run(["."])
    assert keys(result) == ["a.md"]
    assert failures(result)["mem.md"] == "It can't be read (Input/output error); check the file and who may read it."


@component
class RemovesFiles:
    """A converter that takes files away while others are waiting."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    @component.output_types(documents=list[Document])
    def run(self, sources: list[str]) -> dict[str, list[Document]]:
        (Path(self.folder) / "b.md").unlink()
        return {"documents": [Document(content=Path(source).read_text(), meta={"by": "us"}) for source in sources]}


def test_a_file_that_goes_away_meanwhile(tmp_path: Path) -> None:
    write(tmp_path, a__rm="a", b__md="b", c__md="c")
    result = FileConverter({".rm": RemovesFiles(str(tmp_path))}, root=str(tmp_path)).run(["."])
    assert keys(result) == ["a.rm", "c.md"]
    assert failures(result) == {"b.md": "It is there no more; was it moved or deleted meanwhile?"}


@pytest.mark.parametrize("name", ["a.docx", "a.html", "a.pdf"])
def test_junk_under_another_name(tmp_path: Path, converter: FileConverter, name: str) -> None:
    (tmp_path / name).write_bytes(b"\0\1\2\3" * 100)
    write(tmp_path, b__md="b")
    result = converter.run(["."])
    assert keys(result) == ["b.md"]
    assert len(failures(result)[name]) > 20


def test_a_name_that_is_no_valid_text(tmp_path: Path, converter: FileConverter) -> None:
    with open(os.path.join(os.fsencode(tmp_path), b"k\xe4se.md"), "wb") as file:
        file.write(b"Cheese.")
    result = converter.run(["."])
    assert keys(result) == ["k\\xe4se.md"]
    assert result["documents"][0].content == "Cheese."


MISSING = """
import sys
for name in ("trafilatura", "pypdf", "docx"):
    sys.modules[name] = None
from hichunk_haystack.components.converters import FileConverter
result = FileConverter(root=sys.argv[1], progress_bar=False).run(["."])
print([document.content for document in result["documents"]])
for failure in result["failed"]:
    print(failure["path"], failure["error"])
"""


def test_missing_libraries_fail_only_the_files_that_need_them(tmp_path: Path) -> None:
    write(tmp_path, a__md="Good.", b__html="<p>x</p>", c__pdf=pdf("x"), d__docx=saved(docx.Document()))
    out = subprocess.run(
        [sys.executable, "-c", MISSING, str(tmp_path)], capture_output=True, text=True, check=True
    ).stdout
    lines = out.strip().split("\n")
    assert lines[0] == "['Good.']"
    assert [line.split()[0] for line in lines[1:]] == ["b.html", "c.pdf", "d.docx"]
    for line in lines[1:]:
        assert line.endswith(
            "pip install 'hichunk-haystack[files]' (in a clone of the repository: pip install '.[files]')."
        )


# --- converters of one's own, meta


def test_own_converters_by_suffix_and_mime_type(tmp_path: Path) -> None:
    write(tmp_path, a__rst=LATIN_1, b__txt=LATIN_1, c__csv="x,y\r\n1,2\r\n", d__MD="d", e__html="<p>raw</p>")
    own = {
        ".RST": TextFileToDocument(encoding="latin-1"),
        "text/plain": TextFileToDocument(encoding="latin-1"),
        "text/csv": CSVToDocument(),
        ".html": TextFileToDocument(),
    }
    result = FileConverter(own, root=str(tmp_path)).run(["."])
    assert result["failed"] == []
    assert result["skipped"] == []
    # Their converters would store the bare name: a.rst in every folder would be one source.
    assert {document.meta["file_path"]: document.content for document in result["documents"]} == {
        "a.rst": "Käse und Öl",
        "b.txt": "Käse und Öl",
        "c.csv": "x,y\r\n1,2\r\n",
        "d.MD": "d",
        "e.html": "<p>raw</p>",
    }


@pytest.mark.parametrize("key", ["md", "", "markdown"])
def test_keys_that_are_neither_suffix_nor_mime_type(key: str) -> None:
    with pytest.raises(ValueError, match=f"'{key}' in converters is neither a suffix such as '.rst'"):
        FileConverter({key: TextFileToDocument()})


def test_what_is_no_converter_is_named() -> None:
    with pytest.raises(TypeError, match=r"converters\['\.md'\] is a Pipeline; it must be a Haystack converter"):
        FileConverter({".md": Pipeline()})


def test_an_unknown_encoding_is_named() -> None:
    with pytest.raises(ValueError, match="fallback_encoding is 'klingon', which Python does not know"):
        FileConverter(fallback_encoding="klingon")


def test_meta_for_all_and_for_each(tmp_path: Path, converter: FileConverter) -> None:
    (tmp_path / "docs").mkdir()
    write(tmp_path / "docs", a__md="a", b__md="b")
    write(tmp_path, c__md="c")
    meta = {"tags": ["x"], "file_path": "no"}
    for document in converter.run(["docs", "c.md"], meta=meta)["documents"]:
        assert document.meta["tags"] == ["x"]
        assert document.meta["tags"] is not meta["tags"]
        assert document.meta["file_path"] != "no"
    result = converter.run(["docs", "c.md"], meta=[{"n": 1}, {"n": 2}])
    assert [document.meta["n"] for document in result["documents"]] == [1, 1, 2]
    with pytest.raises(ValueError, match="length"):
        converter.run(["docs"], meta=[{}, {}])


@component
class NeedsWarmUp:
    """A converter that works only after its warm-up."""

    warm = False

    def warm_up(self) -> None:
        self.warm = True

    @component.output_types(documents=list[Document])
    def run(self, sources: list[str]) -> dict[str, list[Document]]:
        return {"documents": [Document(content="warm" if self.warm else "cold")]}


def test_converters_of_ones_own_are_warmed_up(tmp_path: Path) -> None:
    write(tmp_path, a__odd="a")
    converter = FileConverter({".odd": NeedsWarmUp(), ".txt": TextFileToDocument()}, root=str(tmp_path))
    converter.warm_up()
    assert converter.run(["a.odd"])["documents"][0].content == "warm"


@component
class Warns:
    """A converter that logs a warning about each file, as Haystack's do, and gives something only for some."""

    @component.output_types(documents=list[Document])
    def run(self, sources: list[str]) -> dict[str, list[Document]]:
        logging.getLogger(__name__).warning("about %s", sources[0], extra={"error": "it is\nodd."})
        return {"documents": [Document(content="x")] if sources[0].endswith("a.odd") else []}


def test_warnings_of_a_converter_become_the_reason_or_are_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, a__odd="a", b__odd="b")
    result = FileConverter({".odd": Warns()}, root=str(tmp_path)).run(["."])
    assert failures(result)["b.odd"].startswith("Warns found nothing that it can read (it is odd); check that")
    messages = [record.getMessage() for record in caplog.records]
    assert f"about {tmp_path}/a.odd" in messages
    assert f"about {tmp_path}/b.odd" not in messages


# --- as a component


async def test_run_async_gives_the_same(tmp_path: Path, converter: FileConverter) -> None:
    write(tmp_path, a__md="a", b__md="")
    assert await converter.run_async(["."], meta={"x": 1}) == converter.run(["."], meta={"x": 1})


def test_to_dict_and_from_dict() -> None:
    converter = FileConverter({".rst": TextFileToDocument(encoding="latin-1")}, root="docs", fallback_encoding="cp1252")
    data = converter.to_dict()
    assert data == {
        "type": "hichunk_haystack.components.converters.FileConverter",
        "init_parameters": {
            "converters": {
                ".rst": {
                    "type": "haystack.components.converters.txt.TextFileToDocument",
                    "init_parameters": {"encoding": "latin-1", "store_full_path": False},
                }
            },
            "root": "docs",
            "fallback_encoding": "cp1252",
            "progress_bar": True,
        },
    }
    revived = FileConverter.from_dict(data)
    assert revived.to_dict() == data
    assert isinstance((revived.converters or {})[".rst"], TextFileToDocument)
    assert FileConverter.from_dict(FileConverter().to_dict()).to_dict()["init_parameters"]["converters"] is None


def test_in_a_pipeline_from_yaml(tmp_path: Path) -> None:
    write(tmp_path, a__pdf=pdf("Fire."), b__md="b")
    pipeline = Pipeline()
    # The converter's own form holds a tuple, which safe YAML loaders refuse.
    pipeline.add_component("files", FileConverter({".pdf": PyPDFToDocument()}, root=str(tmp_path)))
    text = pipeline.dumps()
    assert "tuple" not in text
    loaded = Pipeline.loads(text, allowed_modules=["hichunk_haystack"])
    assert loaded.dumps() == text
    assert keys(loaded.run({"files": {"paths": ["."]}})["files"]) == ["a.pdf", "b.md"]


def test_the_progress_bar_is_for_terminals(
    tmp_path: Path, converter: FileConverter, capfd: pytest.CaptureFixture
) -> None:
    write(tmp_path, a__md="a")
    converter.run(["."])
    assert "Converting" not in "".join(capfd.readouterr())


def test_the_yaml_of_the_docs_reads_more_types_and_another_encoding(tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "file_converter.md").read_text(encoding="utf-8")
    (text,) = [code for language, code in blocks(page) if language == "yaml"]
    converter = FileConverter.from_dict(yaml.safe_load(text)["converter"])
    write(tmp_path, a__log="Kiln lit.", b__csv="kiln,1000\n", c__txt=LATIN_1)
    result = converter.run([str(tmp_path)])
    assert (result["failed"], result["skipped"]) == ([], [])
    assert [document.content for document in result["documents"]] == ["Kiln lit.", "kiln,1000\n", "Käse und Öl"]
