# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import logging
import os
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import docx
import pytest
import yaml
from docx.oxml import OxmlElement
from haystack import Document, Pipeline, component
from haystack.components.converters import CSVToDocument, PyPDFToDocument, TextFileToDocument
from pypdf import PdfReader, PdfWriter

from hichunk_haystack.components.converters import FileConverter
from hichunk_haystack.markdown import parse_markdown
from tests.conftest import REPOSITORY
from tests.snippets import blocks

LATIN_1 = "Käse und Öl".encode("latin-1")


def write(folder: Path, **files: str | bytes) -> None:
    """Write files; "__" in a name stands for the dot."""
    for name, content in files.items():
        path = folder / name.replace("__", ".")
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def keys(result: dict) -> list[str]:
    return [document.meta["file_path"] for document in result["documents"]]


def failures(result: dict) -> dict[str, str]:
    return {failure["path"]: failure["error"] for failure in result["failed"]}


def pdf(*pages: str) -> bytes:
    """A small PDF with a line of text on each page."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>",
    ]
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources 3 0 R /Contents {5 + 2 * number} 0 R >>",
            f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        ]
    data = b"%PDF-1.4\n"
    offsets = []
    for number, text in enumerate(objects, 1):
        offsets.append(len(data))
        data += f"{number} 0 obj\n{text}\nendobj\n".encode()
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    trailer = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(data)}\n%%EOF\n"
    return data + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{trailer}".encode()


def encrypted(data: bytes) -> bytes:
    writer = PdfWriter(clone_from=PdfReader(BytesIO(data)))
    writer.encrypt("secret", algorithm="RC4-128")
    out = BytesIO()
    writer.write(out)
    return out.getvalue()


def saved(document: docx.document.Document) -> bytes:
    out = BytesIO()
    document.save(out)
    return out.getvalue()


@pytest.fixture
def converter(tmp_path: Path) -> FileConverter:
    return FileConverter(root=str(tmp_path))


# --- text


@pytest.mark.parametrize(
    "text",
    [
        "# Kiln\r\n\r\nFire it.\r\n",
        "no final newline",
        "\n\n  leading and trailing \t \n\n\n",
        "<b>*raw*</b> | a | `x`\n\n[a]: b\n",
        "tab\tform feed\f vertical\v next line\x85 line separator\u2028",
        "窯 😀 e\u0301",
        "x" * 3_000_000,
    ],
)
@pytest.mark.parametrize("name", ["a.md", "a.txt", "A.MD", "a.markdown"])
def test_text_is_kept_as_it_is(tmp_path: Path, converter: FileConverter, text: str, name: str) -> None:
    (tmp_path / name).write_bytes(text.encode())
    result = converter.run([name])
    assert [document.content for document in result["documents"]] == [text]
    assert result["documents"][0].meta == {"file_path": name}
    assert result["failed"] == []


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-16-be"])
def test_a_byte_order_mark_tells_the_encoding_and_is_no_text(
    tmp_path: Path, converter: FileConverter, encoding: str
) -> None:
    mark = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}.get(encoding, b"")
    (tmp_path / "a.md").write_bytes(mark + "# Über\r\nText.".encode(encoding))
    (document,) = converter.run(["a.md"])["documents"]
    assert document.content == "# Über\r\nText."
    assert parse_markdown(document.content).headings == [(0, 1, "Über")]


def test_another_encoding_fails_unless_it_is_named(tmp_path: Path, converter: FileConverter) -> None:
    write(tmp_path, a__txt=LATIN_1, b__txt="gut")
    result = converter.run(["."])
    assert keys(result) == ["b.txt"]
    assert failures(result) == {
        "a.txt": "It is not UTF-8 text (byte 0xe4 at 1); save it as UTF-8, or set fallback_encoding of the "
        "FileConverter, in the pipeline's YAML ('cp1252' is usual in Western Europe)."
    }
    result = FileConverter(root=str(tmp_path), fallback_encoding="cp1252").run(["."])
    assert [document.content for document in result["documents"]] == ["Käse und Öl", "gut"]
    assert result["documents"][0].meta == {"file_path": "a.txt", "encoding": "cp1252"}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "The file is empty; fill it or leave it out."),
        (b" \r\n\t\n", "There is no text in it; pictures of text"),
        (b"\xef\xbb\xbf", "There is no text in it; pictures of text"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "It is binary, not text"),
        (b"valid UTF-8 \0 with NUL", "It is binary, not text"),
        ("UTF-16 without a mark".encode("utf-16-le"), "It is binary, not text"),
        (b"\xff\xfeodd", "It begins like utf-16 text but is not (at byte 4)"),
        (b"\xef\xbb\xbf\xff", "It begins like utf-8-sig text but is not (at byte 0)"),
    ],
)
def test_what_is_no_text_fails_by_name(tmp_path: Path, data: bytes, reason: str) -> None:
    write(tmp_path, bad__md=data, good__md="Good.")
    converter = FileConverter(root=str(tmp_path), fallback_encoding="latin-1")
    result = converter.run(["bad.md", "good.md"])
    assert keys(result) == ["good.md"]
    assert failures(result)["bad.md"].startswith(reason)


def test_a_fallback_that_does_not_fit_either(tmp_path: Path) -> None:
    write(tmp_path, a__txt=b"\x81\x8d")
    result = FileConverter(root=str(tmp_path), fallback_encoding="cp1252").run(["a.txt"])
    assert failures(result)["a.txt"] == "It is neither UTF-8 nor cp1252 text (byte 0x81 at 0); save it as UTF-8."


# --- HTML


def test_html_keeps_headings_lists_tables_and_code(tmp_path: Path, converter: FileConverter) -> None:
    write(
        tmp_path,
        a__html="""<html><head><title>T</title><meta charset="iso-8859-1"></head><body>
        <nav><a href="/">Home</a></nav>
        <h1>Öfen<a class="headerlink" href="#ofen">¶</a></h1><p>Fire it slowly.</p>
        <h2 id="related-navigation">Glaze firing</h2><p>Cone 6, <b>never</b> faster than <code>60 K</code>.</p>
        <h3>Cooling</h3><ul><li>Wait a day.</li><li>Open the lid.<ul><li>slowly</li></ul></li></ul>
        <table><tr><th>Cone</th><th>Heat</th></tr><tr><td>6</td><td>1222</td></tr></table>
        <pre><code># no heading
fire(kiln)</code></pre>
        <script>var x = 1;</script><footer>Imprint</footer></body></html>""".encode("latin-1"),
    )
    (document,) = converter.run(["a.html"])["documents"]
    assert document.content is not None
    assert [heading[1:] for heading in parse_markdown(document.content).headings] == [
        (1, "Öfen"),
        (2, "Glaze firing"),
        (3, "Cooling"),
    ]
    for expected in ["Fire it slowly.", "**never**", "`60 K`", "- Wait a day.\n", "  - slowly", "| 6 | 1222 |"]:
        assert expected in document.content
    assert "```\n# no heading\nfire(kiln)\n```" in document.content
    for gone in ["Home", "var x", "Imprint", "¶"]:
        assert gone not in document.content


ONE, TWO = "<h1>A</h1><p>First.</p>", "<h2>B</h2><p>Second.</p>"


@pytest.mark.parametrize(
    "page",
    [
        f"<main><div class='sidebar related'>{ONE}{TWO}</div></main><p>Not this.</p>",
        f"<div role='main'><section id='navigation'>{ONE}</section><section id='comments'>{TWO}</section></div>",
        f"<article>{ONE}</article><article>{TWO}</article>",
        f"{ONE}<section id='content'>{TWO}</section>",
        "<div><div><h1>A</h1>First.<h2>B</h2><!-- -->Second.</div></div>",
        "<h1>A</h1>First.<h2>B<br></h2><div>Second.</div>",
        f"<table><tr><td>{ONE}</td></tr><tr><td>{TWO}</td></tr></table>",
        f"{ONE}<form><h2>B</h2><p>Second.</p><button>Send</button></form>",
        "<main><aside><h1>A</h1>First.</aside><details><summary><h2>B</h2></summary>Second.</details></main>",
    ],
)
@pytest.mark.parametrize("frame", ["<html><head><title>T</title></head><body>{}</body></html>", "{}"])
def test_no_part_of_the_main_content_of_a_page_is_lost(
    tmp_path: Path, converter: FileConverter, page: str, frame: str
) -> None:
    write(tmp_path, a__htm=frame.format(page))
    (document,) = converter.run(["a.htm"])["documents"]
    assert document.content == "# A\n\nFirst.\n\n## B\n\nSecond."


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<pre># x</pre><pre>a\nb</pre>Text.", "```\n# x\n```\n```\na\nb\n```\nText."),
        ("<pre><b># x</b><br>y <button>copy</button></pre>Text.", "```\n# x\ny\n```\nText."),
        ("Type <code>a\n b<br>c</code> now.", "Type `a b c` now."),
        ("<ul><li>Type:<pre>a\nb</pre></li><li>Wait.</li></ul>", "- Type:\n```\na\nb\n```\n- Wait."),
        ("One.<br><br>Two <b>bold</b><br>words.", "One.\n\nTwo **bold**\nwords."),
        ("<p># no heading</p>", "\\# no heading"),
    ],
)
def test_code_and_text_of_a_page_keep_to_their_places(
    tmp_path: Path, converter: FileConverter, page: str, expected: str
) -> None:
    write(tmp_path, a__html=f"<html><body><h1>A</h1>{page}<h2>B</h2><p>End.</p></body></html>")
    (document,) = converter.run(["a.html"])["documents"]
    assert (document.content or "").replace("\n\n", "\n") == f"# A\n{expected}\n## B\nEnd.".replace("\n\n", "\n")
    assert [heading[2] for heading in parse_markdown(document.content or "").headings] == ["A", "B"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
@pytest.mark.parametrize(
    "page", ["<html><body><h1>Über</h1><p>Text hier.</p></body></html>", "<h1>Über</h1>Text hier."]
)
def test_html_with_a_byte_order_mark(tmp_path: Path, converter: FileConverter, encoding: str, page: str) -> None:
    (tmp_path / "a.html").write_bytes(page.encode(encoding))
    assert converter.run(["a.html"])["documents"][0].content == "# Über\n\nText hier."


# --- PDF


def test_pdf_keeps_its_pages(tmp_path: Path, converter: FileConverter) -> None:
    write(tmp_path, a__pdf=pdf("Fire the kiln.", "Cool the kiln."))
    assert converter.run(["a.pdf"])["documents"][0].content == "Fire the kiln.\fCool the kiln."


def test_pdfs_that_give_no_text(tmp_path: Path, converter: FileConverter) -> None:
    write(tmp_path, scan__pdf=pdf("", ""), junk__pdf=b"%PDF-1.4 junk", locked__pdf=encrypted(pdf("Fire.")))
    result = converter.run(["."])
    assert result["documents"] == []
    errors = failures(result)
    assert "text recognition" in errors["scan.pdf"]
    assert errors["junk.pdf"].startswith("PyPDFToDocument found nothing that it can read (")
    assert errors["junk.pdf"].endswith("; check that it is a sound file of the type that its name says.")
    assert "not been decrypted" in errors["locked.pdf"]


# --- DOCX


def test_docx_keeps_headings_lists_and_tables(tmp_path: Path, converter: FileConverter) -> None:
    document = docx.Document()
    document.add_heading("Firing", 1)
    document.add_paragraph("Fire it slowly.")
    document.add_paragraph("")
    document.add_paragraph("# five is no heading")
    document.add_paragraph("Wait a day.", style="List Bullet")
    document.add_paragraph("At least.", style="List Bullet 2")
    document.add_paragraph("Open the lid.", style="List Number")
    heading = document.add_heading("Glaze", 2)
    heading.add_run().add_break()
    heading.add_run("firing")
    table = document.add_table(2, 2)
    for cell, text in zip(
        [*table.rows[0].cells, *table.rows[1].cells], ["Cone", "Heat in °C", "6", "a|b"], strict=True
    ):
        cell.text = text
    document.add_paragraph("")
    document.add_heading("", 1)
    document.add_heading("Deep", 9)
    write(tmp_path, a__docx=saved(document))
    (converted,) = converter.run(["a.docx"])["documents"]
    assert (converted.content or "").strip().split("\n") == [
        "# Firing", "",
        "Fire it slowly.", "",
        "\\# five is no heading", "",
        "- Wait a day.",
        "  - At least.",
        "- Open the lid.", "",
        "## Glaze firing", "",
        "| Cone | Heat in °C |",
        "| --- | --- |",
        "| 6    | a\\|b       |", "", "",
        "###### Deep",
    ]  # fmt: skip
    # None of Word's own properties, whose revision count would make every save another source.
    assert converted.meta == {"file_path": "a.docx"}


def test_docx_with_a_title_puts_its_headings_below_it(tmp_path: Path, converter: FileConverter) -> None:
    document = docx.Document()
    document.add_heading("The kiln book", 0)
    document.add_heading("Firing", 1)
    document.add_heading("Glaze", 2)
    document.add_paragraph("Fire it.")
    write(tmp_path, a__docx=saved(document))
    content = converter.run(["a.docx"])["documents"][0].content
    assert content == "# The kiln book\n\n## Firing\n\n### Glaze\n\nFire it."


def test_docx_headings_by_outline_level_and_by_inheritance(tmp_path: Path, converter: FileConverter) -> None:
    document = docx.Document()
    based = document.styles.add_style("Kapitel", docx.enum.style.WD_STYLE_TYPE.PARAGRAPH)
    based.base_style = document.styles["Heading 2"]
    document.add_paragraph("By its style", style="Kapitel")
    for level, text in ((2, "By its own level"), (9, "Body text")):
        paragraph = document.add_paragraph(text, style="Kapitel" if level == 9 else None)
        outline = OxmlElement("w:outlineLvl")
        outline.set(docx.oxml.ns.qn("w:val"), str(level))
        paragraph._p.get_or_add_pPr().append(outline)
    write(tmp_path, a__docx=saved(document))
    content = converter.run(["a.docx"])["documents"][0].content
    assert content == "## By its style\n\n### By its own level\n\nBody text"


def test_docx_headings_by_name_and_lists_by_numbering(tmp_path: Path, converter: FileConverter) -> None:
    document = docx.Document()
    outline = document.styles["Heading 3"].element.pPr.find(docx.oxml.ns.qn("w:outlineLvl"))
    outline.getparent().remove(outline)
    document.add_paragraph("By name", style="Heading 3")
    for number, level, text in ((1, 0, "one"), (1, 3, "two"), (0, 0, "no item")):
        numbering = document.add_paragraph(text)._p.get_or_add_pPr().get_or_add_numPr()
        numbering.get_or_add_ilvl().val = level
        numbering.get_or_add_numId().val = number
    write(tmp_path, a__docx=saved(document))
    # A list item is one deeper than the one before it at most: more spaces would make it code.
    assert converter.run(["a.docx"])["documents"][0].content == "### By name\n\n- one\n  - two\n\nno item"


def test_a_page_that_starts_with_a_heading(tmp_path: Path, converter: FileConverter) -> None:
    document = docx.Document()
    document.add_paragraph("First page.")
    heading = document.add_heading("Second page", 1)
    heading.runs[0]._r.insert(0, OxmlElement("w:lastRenderedPageBreak"))
    write(tmp_path, a__docx=saved(document))
    content = converter.run(["a.docx"])["documents"][0].content or ""
    assert content.split("\n") == ["First page.", "\f", "# Second page"]
    assert parse_markdown(content).headings == [(content.index("#"), 1, "Second page")]


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
