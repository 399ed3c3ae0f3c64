# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hichunk_haystack.serving import safe_name


@pytest.mark.parametrize(
    ("client", "name"),
    [
        ("kiln.md", "kiln.md"),
        ("../../etc/passwd", "passwd"),
        ("/etc/cron.d/job.md", "job.md"),
        ("..\\..\\windows\\system.ini", "system.ini"),
        ("C:\\Users\\ada\\plan.md", "plan.md"),
        ("C:plan.md", "C_plan.md"),
        ("a/..\\../b.md", "b.md"),
        ("kiln.md\0.exe", "kiln.md.exe"),
        ("line\nbreak\r.md", "linebreak.md"),
        ("gpj\u202egnp.md", "gpjgnp.md"),
        (".htaccess", "htaccess"),
        ("...md", "md"),
        ("plan.md. . ", "plan.md"),
        ("plan.md~", "plan.md~"),
        ("NUL", "_NUL"),
        ("com1.md", "_com1.md"),
        ("console.md", "console.md"),
        ("a*b?.md", "a_b_.md"),
        ("[a].md", "[a].md"),
        ("cafe\u0301.md", "caf\u00e9.md"),
        ("窯の説明 (最終).md", "窯の説明 (最終).md"),
        ("\u0645\u06cc\u200c\u0634\u0648\u062f.md", "\u0645\u06cc\u200c\u0634\u0648\u062f.md"),
        ("\ud800kiln.md", "kiln.md"),
        ("x" * 300 + ".md", "x" * 197 + ".md"),
        ("ü" * 300 + ".md", "ü" * 98 + ".md"),  # 196 of 197 bytes; half a letter is none
        ("x." + "y" * 300, "x." + "y" * 198),
    ],
)  # fmt: skip
def test_names(client: str, name: str) -> None:
    assert safe_name(client) == name


@pytest.mark.parametrize("client", [None, "", " ", ".", "..", "../", "a/", "\\", "\0", "/", "___", "\u202e", ". ."])
def test_nothing_is_left(client: str | None) -> None:
    assert safe_name(client) is None


@given(st.text())
def test_a_safe_name_is_safe_and_stays(client: str) -> None:
    name = safe_name(client)
    if name is not None:
        assert safe_name(name) == name
        assert os.path.basename(name) == name
        assert not name.startswith(".")
        assert len(name.encode()) <= 201  # a reserved name gets one character more
        assert not set(name) & set('\0/\\:*?"<>|')


@given(st.text(alphabet="./\\ ~a\0\u202e:NULCOM1", max_size=30))
def test_tricks_are_safe_and_stay(client: str) -> None:
    name = safe_name(client)
    if name is not None:
        assert safe_name(name) == name
        assert os.path.normpath(os.path.join("/uploads", name)) == f"/uploads/{name}"
