# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Bad input, end to end through the YAML pipelines: every answer names what is wrong and the way out."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from haystack import Document, Pipeline
from haystack.core.errors import DeserializationError, PipelineRuntimeError

from hichunk_haystack import load_pipeline
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from hichunk_haystack.tree import CHILDREN
from tests.pipeline_files import INDEXING, QUERY, ask, data, edited, index, served

KILN = "# Kiln\n\nFire it slowly.\n"
WHEEL = "# Wheel\n\nCentre the clay.\n"
DIMENSION = ("embedding_dim: 384", "embedding_dim: 256")

Load = Callable[..., Pipeline]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the embedded Qdrant."""
    monkeypatch.delenv("QDRANT_URL", raising=False)
    monkeypatch.setenv("QDRANT_PATH", str(tmp_path / "qdrant"))
    return tmp_path / "qdrant"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with one good file."""
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "kiln.md").write_text(KILN)
    return folder


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    """Loads a pipeline with changes to its YAML, and closes it after the test."""
    loaded = []

    def load(file: Path, *changes: tuple[str, str]) -> Pipeline:
        loaded.append(load_pipeline(edited(file, tmp_path, *changes)))
        return loaded[-1]

    yield load
    for pipeline in loaded:
        pipeline.close()


def stored_text(path: Path) -> str:
    """What the leaves in the store say of a file, in order."""
    store = HierarchyQdrantDocumentStore(index="hichunk", embedding_dim=384)
    nodes = store.filter_documents({"field": "meta.file_path", "operator": "==", "value": str(path)})
    store.close()
    leaves = sorted((node for node in nodes if not node.meta[CHILDREN]), key=lambda node: node.meta["split_idx_start"])
    return "".join(leaf.content or "" for leaf in leaves)


# -- files


def _link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def _link_to_nothing(path: Path) -> None:
    path.symlink_to("gone.md")


def _forbidden(path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read every file")
    path.write_text(KILN)
    path.chmod(0)


@pytest.mark.parametrize(
    ("name", "make", "says"),
    [
        ("loop.md", _link_to_itself, "can't be read"),
        ("link.md", _link_to_nothing, "does not exist"),
        ("forbidden.md", _forbidden, "Permission denied"),
        ("empty.md", lambda path: path.write_bytes(b""), "The file is empty; fill it or leave it out."),
        ("blank.txt", lambda path: path.write_bytes(b" \n\n\t\n"), "no text in it"),
        ("binary.md", lambda path: path.write_bytes(bytes(range(256)) * 64), "binary, not text"),
        ("latin.md", lambda path: path.write_bytes("# Töpfe\n".encode("latin-1")), "UTF-8"),
        ("broken.pdf", lambda path: path.write_bytes(b"%PDF-1.7\nnothing more"), "sound file"),
        ("broken.docx", lambda path: path.write_bytes(b"PK\x03\x04nothing more"), "sound file"),
    ],
)
def test_a_bad_file_among_good_ones_is_named_and_the_good_ones_are_indexed(
    load: Load, files: Path, name: str, make: Callable[[Path], object], says: str
) -> None:
    (files / "wheel.md").write_text(WHEEL)
    make(files / name)
    answer = index(load(INDEXING), files)
    assert (answer["sources"], answer["leaves"]) == (2, 2)
    (failure,) = answer["failed"]
    assert failure["path"] == str(files / name)
    assert says in failure["error"]
    assert (stored_text(files / "kiln.md"), stored_text(files / "wheel.md")) == (KILN, WHEEL)


def test_nothing_but_bad_files_is_no_error_and_indexes_nothing(load: Load, files: Path) -> None:
    (files / "kiln.md").write_bytes(b"")
    answer = index(load(INDEXING), files / "kiln.md", files / "none.md")
    assert (answer["sources"], answer["leaves"]) == (0, 0)
    assert {Path(failure["path"]).name for failure in answer["failed"]} == {"kiln.md", "none.md"}


def test_a_file_that_turns_bad_keeps_what_was_indexed_of_it(load: Load, files: Path) -> None:
    indexing = load(INDEXING)
    index(indexing, files)
    (files / "kiln.md").write_bytes(b"\0\1\2")
    assert index(indexing, files)["failed"][0]["path"] == str(files / "kiln.md")
    assert stored_text(files / "kiln.md") == KILN


@pytest.mark.parametrize(
    ("text", "most_leaves"),
    [
        # The tokenizer takes any word of more than 100 characters as one token; 16 characters count as one at least:
        # 300,000 / 16 = 18,750 tokens, so 293 leaves of up to 64 tokens.
        ("a" * 300_000, 293),
        # 10,000 lists, each the only item of the one around it: a token a mark, so 10,000 tokens and one word.
        ("- " * 10_000 + "deep\n", 157),
        # 300 items that are each nested in the one before: 300 * 301 / 2 * 2 blanks, three tokens an item.
        ("".join("  " * depth + f"- item {depth}\n" for depth in range(300)), 20),
    ],
    ids=["one long line", "nested on a line", "nested by blanks"],
)
def test_a_text_that_is_hard_to_cut_is_indexed_whole(load: Load, files: Path, text: str, most_leaves: int) -> None:
    (files / "hard.md").write_text(text)
    answer = index(load(INDEXING), files / "hard.md")
    assert answer["failed"] == []
    assert 1 < answer["leaves"] <= most_leaves
    assert stored_text(files / "hard.md") == text


# -- settings


@pytest.mark.parametrize("budget", [0, -5])
@pytest.mark.parametrize("run_async", [False, True])
async def test_a_budget_for_a_query_that_makes_no_sense_is_named(load: Load, budget: int, run_async: bool) -> None:
    query = load(QUERY)
    inputs = data(QUERY, query="How is it fired?") | {"merger": {"token_budget": budget}}
    with pytest.raises(PipelineRuntimeError, match=f"token_budget is {budget}; it must be at least 1 token"):
        await query.run_async(inputs) if run_async else query.run(inputs)


@pytest.mark.parametrize(
    ("file", "change", "says"),
    [
        (QUERY, ("token_budget: 1024", "token_budget: 0"), "token_budget is 0; it must be at least 1 token"),
        (QUERY, ("token_budget: 1024", "token_budget: -1024"), "token_budget is -1024; it must be at least 1 token"),
        (INDEXING, ("leaf_tokens: 64", "leaf_tokens: 0"), "leaf_tokens is 0; a leaf needs at least 1 token"),
        (INDEXING, ("leaf_tokens: 64", "leaf_tokens: -7"), "leaf_tokens is -7; a leaf needs at least 1 token"),
        (INDEXING, ("min_leaf_tokens: 10", "min_leaf_tokens: 65"), "min_leaf_tokens is 65; it must lie between"),
    ],
)
def test_a_number_in_the_yaml_that_makes_no_sense_is_named(
    load: Load, file: Path, change: tuple[str, str], says: str
) -> None:
    with pytest.raises(DeserializationError, match=says):
        load(file, change)


def test_a_component_that_is_not_allowed_is_named_with_the_way_to_allow_it() -> None:
    # Haystack's own answer to plain `Pipeline.loads`; the README and `load_pipeline` build on it.
    with pytest.raises(DeserializationError, match="allowed_modules") as caught:
        Pipeline.loads(QUERY.read_text(encoding="utf-8"))
    assert "hichunk_haystack" in str(caught.value)


# -- the store


@pytest.mark.parametrize("run_async", [False, True])
async def test_a_query_on_a_missing_folder_answers_empty_and_says_why(
    load: Load, folder: Path, caplog: pytest.LogCaptureFixture, run_async: bool
) -> None:
    query = load(QUERY)
    inputs = data(QUERY, query="How is it fired?")
    answer = served(QUERY, await query.run_async(inputs) if run_async else query.run(inputs))
    assert (answer["context"], answer["documents"], answer["citations"], answer["tokens_used"]) == ("", [], [], 0)
    _warns_of_empty(caplog, "hichunk", folder)


def test_a_query_on_a_missing_collection_answers_empty_and_says_why(
    load: Load, files: Path, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    index(load(INDEXING), files)
    assert ask(load(QUERY, ("index: hichunk", "index: hichnuk")), "How is it fired?")["context"] == ""
    _warns_of_empty(caplog, "hichnuk", folder)
    caplog.clear()
    assert "Fire it slowly." in ask(load(QUERY), "How is it fired?")["context"]
    assert not [record for record in caplog.records if "empty" in record.getMessage()]


def test_a_collection_without_vectors_is_told_from_an_empty_one(
    load: Load, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = HierarchyQdrantDocumentStore(index="hichunk", embedding_dim=384)
    store.write_documents([Document(content="Fire it slowly.")])
    assert ask(load(QUERY), "How is it fired?")["context"] == ""
    store.close()
    (message,) = [record.getMessage() for record in caplog.records if "'hichunk'" in record.getMessage()]
    assert "embedding" in message


def _warns_of_empty(caplog: pytest.LogCaptureFixture, collection: str, folder: Path) -> None:
    (message,) = [record.getMessage() for record in caplog.records if "is empty" in record.getMessage()]
    assert f"'{collection}'" in message
    assert str(folder) in message
    assert "index" in message.lower()


def test_an_index_of_another_dimension_is_named_when_writing(load: Load, files: Path) -> None:
    index(load(INDEXING), files)
    with pytest.raises(PipelineRuntimeError) as caught:
        index(load(INDEXING, DIMENSION), files)
    message = str(caught.value)
    assert "Collection 'hichunk' holds embeddings of 384 dimensions, but the store is set to 256" in message
    assert "`embedding_dim=384`" in message
    assert stored_text(files / "kiln.md") == KILN


@pytest.mark.parametrize("run_async", [False, True])
async def test_an_index_of_another_dimension_is_named_when_asking(load: Load, files: Path, run_async: bool) -> None:
    index(load(INDEXING), files)
    query = load(QUERY, DIMENSION)
    inputs = data(QUERY, query="How is it fired?")
    with pytest.raises(PipelineRuntimeError) as caught:
        await query.run_async(inputs) if run_async else query.run(inputs)
    message = str(caught.value)
    # It is the store's setting that is wrong, not the collection nor the model.
    assert "Collection 'hichunk' holds embeddings of 384 dimensions, but the store is set to 256" in message
    assert "`embedding_dim=384`" in message


def test_a_model_of_another_dimension_than_the_collection_is_named(load: Load, files: Path) -> None:
    with pytest.raises(PipelineRuntimeError) as caught:
        index(load(INDEXING, DIMENSION), files)
    message = str(caught.value)
    assert "has 384 dimensions, collection 'hichunk' takes 256" in message
    assert "embedding_dim" in message
    assert str(files / "kiln.md") in message
    with pytest.raises(PipelineRuntimeError, match=r"query's embedding has 384 dimensions, .*'hichunk' .*256"):
        ask(load(QUERY, DIMENSION), "How is it fired?")


def test_a_file_in_place_of_the_folder_is_named(load: Load, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QDRANT_PATH", str(files / "kiln.md"))
    with pytest.raises(PipelineRuntimeError) as caught:
        ask(load(QUERY), "How is it fired?")
    assert str(files / "kiln.md") in str(caught.value)
    assert "QDRANT_PATH" in str(caught.value)
    assert (files / "kiln.md").read_text() == KILN


def test_a_server_that_does_not_answer_is_named(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QDRANT_URL", "http://127.0.0.1:9")  # the port of a service that throws everything away
    with pytest.raises(PipelineRuntimeError) as caught:
        ask(load(QUERY), "How is it fired?")
    assert "http://127.0.0.1:9" in str(caught.value)
    assert "QDRANT_URL" in str(caught.value)
