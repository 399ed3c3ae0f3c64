# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What the `FileConverter` makes of text, HTML, PDF and DOCX."""

from pathlib import Path

import docx
import pytest
from docx.oxml import OxmlElement

from hichunk_haystack.components.converters import FileConverter
from hichunk_haystack.markdown import parse_markdown
from tests.components.converters.files import LATIN_1, encrypted, failures, keys, pdf, saved, write

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
