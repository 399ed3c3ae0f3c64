# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What the command does before it needs a model: help, wrong use, and errors, each in one line."""

import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import typer

from hichunk_haystack.cli.app import app
from hichunk_haystack.cli.delete import resolve
from hichunk_haystack.cli.errors import UserError
from hichunk_haystack.cli.screen import passed_over
from hichunk_haystack.pipeline_files import pipeline_file
from tests.cli.command import HICHUNK, REPOSITORY, environment, hichunk, told
from tests.snippets import blocks

COMMANDS = ("index", "ask", "tree", "inspect", "sources", "delete", "check", "bench", "serve")


def test_help_names_every_command_and_imports_nothing_heavy(tmp_path: Path) -> None:
    done = hichunk("--help", folder=tmp_path, command=[sys.executable, "-X", "importtime", *HICHUNK[1:]])
    assert all(re.search(rf"^\W*{name}\s", done.stdout, re.MULTILINE) for name in COMMANDS)
    imported = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert "typer" in imported
    assert not imported & {"haystack", "torch", "qdrant_client", "numpy", "transformers"}


def test_version(tmp_path: Path) -> None:
    assert hichunk("--version", folder=tmp_path).stdout == f"hichunk-haystack {version('hichunk-haystack')}\n"


def test_the_installed_script(tmp_path: Path) -> None:
    script = Path(sys.executable).with_name("hichunk")
    if not script.exists():
        pytest.skip("the package was installed here before it had a script")
    assert hichunk("--version", folder=tmp_path, command=[str(script)]).stdout.startswith("hichunk-haystack ")


def test_without_typer_it_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['typer'] = None; from hichunk_haystack.cli import main; main()"
    line = told(folder=tmp_path, command=[sys.executable, "-c", code])
    assert line == (
        "The command needs libraries that are missing (typer): pip install 'hichunk-haystack[cli]' (in a clone of the "
        "repository: pip install '.[cli]')."
    )


def test_the_help_names_pipelines_of_the_right_kind() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for name, example in (("index", "indexing_hybrid"), ("delete", "indexing_hybrid"), ("ask", "query_hybrid")):
        (option,) = [each for each in commands[name].params if each.name == "pipeline"]
        assert example in option.help


@pytest.mark.parametrize(
    ("paths", "says"),
    [
        (["a/b.csv"], "Passed over 1 file of a type that is not read (.csv)"),
        (["b.LOG", "a.csv", "a.log"], "Passed over 3 files of types that are not read (.csv, .log)"),
        (["README", "x.y/README"], "Passed over 2 files of a type that is not read (no suffix)"),
        (
            [f"a.{letter}" for letter in "jihgfedcba"],
            "Passed over 10 files of types that are not read (.a, .b, .c, .d, .e, .f, .g, .h, ...)",
        ),
    ],
)
def test_types_that_are_passed_over_are_named(paths: list[str], says: str) -> None:
    assert passed_over(paths) == says


@pytest.mark.parametrize(
    "arguments",
    [("index",), ("nonsense",), ("ask", "x", "--budget", "0"), ("tree",), ("delete",), ("serve", "--port", "0")],
)
def test_wrong_use_has_exit_code_2(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = hichunk(*arguments, folder=tmp_path, code=2)
    assert done.stdout == ""
    assert "Usage: hichunk" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("index", "no.md", "none"), 1, "There is no 'no.md' and no 'none'"),
        (("ask", "How?"), 1, "There is no index in '.*qdrant': make one with `hichunk index PATHS`"),
        (("sources",), 1, "There is no index in"),
        (("check", "--store", "elsewhere"), 1, "There is no index in 'elsewhere'"),
        (("delete", "a.md", "--json"), 2, "add --yes"),
        (("ask", " "), 2, "The question is empty"),
        (("ask", "How?", "--pipeline", "none.yml"), 2, "'none.yml': name a YAML file, or one of .*query_hybrid"),
        (("ask", "How?", "--pipeline", "indexing"), 1, "has no BudgetAutoMergingRetriever"),
        (("ask", "How?", "--set", "order"), 2, "write NAME=VALUE"),
        (("tree", "a.md", "--pipeline", "query"), 1, "has no splitter"),
        (("inspect",), 2, "either a file or, with --query, a question"),
        (("inspect", "a.md", "--query", "How?"), 2, "either a file or, with --query, a question"),
        (("inspect", "a.md", "--compare", "policy=none"), 2, "go with --query"),
        (("inspect", "a.md", "-o", "."), 2, "'.' can't be the page"),
    ],
)
def test_an_error_is_one_line_with_a_way_out(arguments: tuple[str, ...], code: int, says: str, tmp_path: Path) -> None:
    assert re.search(says, told(*arguments, folder=tmp_path, code=code))
    assert list(tmp_path.iterdir()) == []  # no folder for an index that nobody made


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("components: [1,", "is no YAML"),
        ("- a list", "is no pipeline: under `components`"),
        ("components: {a: {init_parameters: {}}}", "is no pipeline: under `components`"),
        ("components: {a: {type: x.Y}}\nconnections: [a]", "is no pipeline: each of `connections`"),
        ("components: {a: {type: x.Y}}", "has no component with a `document_store`"),
        (
            "components: {a: {type: x.Y, init_parameters: {document_store: {}}}}",
            "Haystack is not told to trust. If you do, set HAYSTACK_DESERIALIZATION_ALLOWLIST=x.",
        ),
    ],
)
def test_a_file_that_is_no_pipeline(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "my.yml").write_text(text)
    line = told("sources", "--pipeline", "my.yml", folder=tmp_path)
    assert line.startswith("'my.yml' ")
    assert says in line


def test_a_traceback_only_with_v(tmp_path: Path) -> None:
    done = hichunk("sources", "-v", folder=tmp_path, code=1)
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("There is no index")


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    line = told("sources", "--store", "http://127.0.0.1:9", folder=tmp_path, QDRANT_URL="http://127.0.0.1:8")
    assert line.startswith("The Qdrant server 'http://127.0.0.1:9' does not answer")


def test_an_unknown_model_is_told_with_ways_to_get_it(tmp_path: Path) -> None:
    yaml = pipeline_file("indexing").read_text().replace("sentence-transformers/all-MiniLM-L6-v2", "no/model")
    (tmp_path / "my.yml").write_text(yaml)
    (tmp_path / "a.md").write_text("Fire it slowly.\n")
    line = told("tree", "a.md", "-p", "my.yml", folder=tmp_path)
    assert line.startswith("Model 'no/model' is not on this machine")


def test_the_reader_of_a_pipe_may_leave(tmp_path: Path) -> None:
    text = "".join(f"# Kiln {number}\n\nFire it slowly.\n\n" for number in range(3000))  # more than a pipe holds
    (tmp_path / "long.md").write_text(text)
    with subprocess.Popen(
        [*HICHUNK, "tree", "long.md"],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""


def test_the_docs_show_commands_that_exist() -> None:
    root = typer.main.get_command(app)
    shown = set()
    for page in (REPOSITORY / "docs" / "command_line.md", REPOSITORY / "README.md"):
        for language, code in blocks(page.read_text(encoding="utf-8")):
            for line in code.splitlines() if language == "bash" else ():
                words = shlex.split(line, comments=True)
                if words[:1] != ["hichunk"]:
                    continue
                with root.make_context("hichunk", words[1:]) as context:
                    name, command, rest = root.resolve_command(context, [*context._protected_args, *context.args])
                    command.make_context(name, rest, parent=context).close()
                    shown.add(name)
    assert shown == set(COMMANDS)


# -- which source is meant


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("/docs/a.md", "/docs/a.md"),
        ("b.md", "/docs/b.md"),
        ("old/a.md", "/docs/old/a.md"),
        ("7", 7),
    ],
)
def test_a_source_is_named_by_the_end_of_its_path(name: str, found: str | int) -> None:
    assert resolve(name, ["/docs/a.md", "/docs/b.md", "/docs/old/a.md", 7]) == found


@pytest.mark.parametrize(
    ("name", "says"), [("a.md", "can be /docs/a.md, /docs/old/a.md"), (".md", "is not indexed"), ("", "is not indexed")]
)
def test_a_source_that_is_not_clear_is_not_guessed(name: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        resolve(name, ["/docs/a.md", "/docs/b.md", "/docs/old/a.md", 7])


def test_a_relative_path_is_the_file_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert resolve("a.md", [f"{tmp_path}/a.md", "/docs/a.md"]) == os.path.join(os.path.realpath(tmp_path), "a.md")
