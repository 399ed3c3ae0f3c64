# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What the README, the docs and the docstrings show is run."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.snippets import blocks, docstring_examples

PACKAGE = REPOSITORY / "hichunk_haystack"
README = blocks((REPOSITORY / "README.md").read_text(encoding="utf-8"))
PAGES = sorted((REPOSITORY / "docs").glob("*.md"))
DOCSTRINGS = [
    (f"{path.relative_to(PACKAGE)}:{name}", code)
    for path in sorted(PACKAGE.rglob("*.py"))
    for name, code in docstring_examples(path)
]


def run_python(code: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a snippet in this process (the models are loaded already), as a user in the repository would."""
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setenv("QDRANT_PATH", str(folder / "qdrant"))
    exec(compile(code, "<snippet>", "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize(("name", "code"), DOCSTRINGS, ids=[name for name, _ in DOCSTRINGS])
def test_docstrings(name: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_python(code, tmp_path, monkeypatch)


def test_python_of_the_readme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for language, code in README:
        if language == "python":
            run_python(code, tmp_path, monkeypatch)
    shown = capsys.readouterr().out
    assert "15 sources," in shown
    assert "| 3 hours | €2 per hour |" in shown  # the wood lathe
    assert "Ring 112" in shown


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_python_of_the_docs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for language, code in blocks(page.read_text(encoding="utf-8")):
        if language == "python":
            run_python(code, tmp_path, monkeypatch)


def commands() -> list[str]:
    return [code for language, code in README if language == "bash"]


def test_every_command_of_the_readme_is_run_somewhere() -> None:
    # The install is what `make demo` does; CI runs `make test` itself, and the wheel's install in a clean environment.
    # Docker has no engine here: tests/test_docker_compose.py holds the file against its schema.
    here = {
        "make demo\n": "tests/test_demo.py, and below",
        "make demo DOCS=path/to/files Q='What does the warranty cover?'\n": "below",
        "make test\n": ".ci/run",
        'pip install --constraint constraints.txt ".[local,files,cli]"\n': "Makefile",
    }
    # tests/cli runs the commands of `hichunk`, and reads each line of the README that starts with it.
    rest = [code for code in commands() if code not in here and not code.startswith("hichunk ")]
    assert len(rest) == 2
    assert "hayhooks run" in rest[0]
    assert rest[1].startswith("export QDRANT_URL=")
    assert "--constraint constraints.txt" in (REPOSITORY / "Makefile").read_text()
    assert "make test" in (REPOSITORY / ".ci" / "run").read_text()


def test_make_demo_with_the_users_own_files(tmp_path: Path) -> None:
    docs = tmp_path / "my files"
    docs.mkdir()
    (docs / "a.md").write_text("# Warranty\n\nThe warranty covers the pump for 24 months.\n", encoding="utf-8")
    result = subprocess.run(
        # What is installed already is not installed again.
        [
            "make",
            "demo",
            f"VENV={sys.prefix}",
            f"--old-file={sys.prefix}/.demo",
            f"DOCS={docs}",
            'Q=What\'s "covered" for $5?',
        ],
        cwd=REPOSITORY,
        env={**os.environ, "QDRANT_PATH": str(tmp_path / "qdrant")},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "Indexed 1 source as 1 leaf" in result.stdout
    assert 'What\'s "covered" for $5?' in result.stdout
    assert "[1] my files/a.md > Warranty\n" in result.stdout
    assert "covers the pump for 24 months" in result.stdout


@pytest.mark.skipif(shutil.which("curl") is None, reason="the README's commands use curl")
def test_hayhooks_of_the_readme(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = next(code for code in commands() if "hayhooks run" in code).replace("1416", str(port))
    result = subprocess.run(
        ["bash", "-c", f"set -e\ntrap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n{script}"],
        cwd=REPOSITORY,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HAYHOOKS_PORT": str(port),
            "TMPDIR": str(tmp_path),
            "QDRANT_PATH": str(tmp_path / "qdrant"),
        },
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert '"sources":15' in result.stdout.replace(" ", "")
    assert "Pavel Dorn" in result.stdout
