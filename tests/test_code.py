# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import pytest

from hichunk_haystack.code import code_boundaries


def cut(text: str, language: str) -> list[tuple[str, str]]:
    """(how good a cut in front is, line)"""
    lines, offset = [], 0
    for line in text.splitlines(keepends=True):
        lines.append((offset, line))
        offset += len(line)
    found = code_boundaries(lines, language)
    return [(found[offset].name if offset in found else "-", line.rstrip()) for offset, line in lines]


def test_python() -> None:
    text = '''import os
@cached
def fire(kiln,
         hours):
    # slowly
    text = """def no():
    function"""
    return kiln(
        hours)

class Kiln:
    def open(self): pass
'''
    assert cut(text, "python") == [
        ("-", "import os"),
        ("BLOCK", "@cached"),
        ("SENTENCE", "def fire(kiln,"),
        ("SENTENCE", "         hours):"),
        ("LINE", "    # slowly"),
        ("LINE", '    text = """def no():'),
        ("SENTENCE", '    function"""'),
        ("LINE", "    return kiln("),
        ("SENTENCE", "        hours)"),
        ("SENTENCE", ""),
        ("BLOCK", "class Kiln:"),
        ("BLOCK", "    def open(self): pass"),
    ]


def test_rust() -> None:
    text = """use kiln;
/// Fires it.
#[inline]
pub(crate) fn fire<'a>(x: &'a str) -> char {
    let c = '{'; // }
    x.trim()
        .len();
    c
}
impl Kiln {
    pub const fn open(&self) {}
}
"""
    assert [row for row in cut(text, "rs") if row[0] in ("BLOCK", "LINE")] == [
        ("BLOCK", "/// Fires it."),
        ("LINE", "    let c = '{'; // }"),
        ("LINE", "    x.trim()"),
        ("LINE", "    c"),
        ("BLOCK", "impl Kiln {"),
        ("BLOCK", "    pub const fn open(&self) {}"),
    ]


@pytest.mark.parametrize(
    ("language", "function", "statement"),
    [
        ("go", "func (k *Kiln) Fire() {", "for i := range k {"),
        ("js", "export async function fire() {", "if (kiln) {"),
        ("ts", "export const fire = async (kiln: Kiln) => {", "const kiln = open()"),
        ("java", "public static void fire(Kiln kiln) {", "for (Kiln k : kilns) {"),
        ("c++", "int Kiln::fire(int hours) {", "kiln = open(hours);"),
        ("kotlin", "private fun fire() {", "while (open()) {"),
        ("ruby", "def fire", "puts kiln"),
        ("sh", "fire() {", "fire --slowly"),
    ],
)
def test_functions_of_other_languages(language: str, function: str, statement: str) -> None:
    assert cut(f"first\n{function}\n", language)[1][0] == "BLOCK"
    assert cut(f"first\n{statement}\n", language)[1][0] == "LINE"


def test_an_unknown_language_is_cut_between_any_lines() -> None:
    assert cut("def a():\n  (\n  )\n", "kilnscript") == [("-", "def a():"), ("LINE", "  ("), ("LINE", "  )")]
    assert code_boundaries([], "python") == {}
