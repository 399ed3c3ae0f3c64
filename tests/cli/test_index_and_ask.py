# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""The way of an index: made, asked, looked at, checked, emptied; through the command alone, with the real model."""

import json
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import httpx
import pytest
from qdrant_client import QdrantClient

from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from tests.cli.command import HICHUNK, REPOSITORY, answered, environment, hichunk, told

QUESTION = "How long may the wood lathe be booked, and what does it cost per hour?"
LATHE = "| 3 hours | €2 per hour |"
SAFETY, EQUIPMENT = "06-slipway-safety.md", "07-slipway-equipment.md"

# Other names, no declared inputs, nothing that gathers outputs.
OWN = """
components:
  cite:
    type: hichunk_haystack.components.builders.ContextBuilder
    init_parameters: {token_budget: 50}
  lift:
    type: hichunk_haystack.components.retrievers.BudgetAutoMergingRetriever
    init_parameters: {document_store: STORE, document_overhead: 28}
  look:
    type: hichunk_haystack.components.retrievers.QdrantLeafRetriever
    init_parameters: {document_store: STORE}
  vector:
    type: hichunk_haystack.components.embedders.OfflineSentenceTransformersTextEmbedder
connections:
  - {sender: vector.embedding, receiver: look.query_embedding}
  - {sender: look.documents, receiver: lift.documents}
  - {sender: lift.documents, receiver: cite.documents}
""".replace(
    "STORE",
    "{type: hichunk_haystack.document_stores.HierarchyQdrantDocumentStore, "
    "init_parameters: {index: hichunk, embedding_dim: 384}}",
)

# Haystack's own retriever over a store in memory, which is empty whenever a process starts.
EMPTY = """
components:
  find:
    type: haystack.components.retrievers.in_memory.bm25_retriever.InMemoryBM25Retriever
    init_parameters: {document_store: STORE}
  lift:
    type: hichunk_haystack.components.retrievers.BudgetAutoMergingRetriever
    init_parameters: {document_store: STORE}
connections:
  - {sender: find.documents, receiver: lift.documents}
""".replace(
    "STORE", "{type: haystack.document_stores.in_memory.document_store.InMemoryDocumentStore, init_parameters: {}}"
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two pages of the handbook, an empty one and something else, all indexed by the command."""
    folder = tmp_path_factory.mktemp("home")
    pages = folder / "pages"
    pages.mkdir()
    for name in (SAFETY, EQUIPMENT):
        shutil.copy(REPOSITORY / "examples" / "handbook" / name, pages)
    (pages / "empty.md").touch()
    (pages / "data.xyz").write_text("1 2 3")
    (folder / "own.yml").write_text(OWN)
    (folder / "empty.yml").write_text(EMPTY)
    done = hichunk("index", "pages", "--json", folder=folder, code=1)
    assert done.stderr == ""
    answer = json.loads(done.stdout)
    assert (answer["sources"], answer["added"], answer["replaced"], answer["unchanged"]) == (2, 2, 0, 0)
    assert [Path(each["path"]).name for each in answer["failed"]] == ["empty.md"]
    assert [Path(each).name for each in answer["skipped"]] == ["data.xyz"]
    assert answer["leaves"] == sum(source["leaves"] for source in answered("sources", folder=folder))
    (pages / "empty.md").unlink()
    return folder


@pytest.fixture
def copy(home: Path, tmp_path: Path) -> Path:
    """A copy of the index, to be spoilt."""
    return Path(shutil.copytree(home / "qdrant", tmp_path / "copy"))


def test_changed_files_are_replaced_and_others_left_alone(home: Path, copy: Path) -> None:
    page = home / "pages" / SAFETY
    text = page.read_text(encoding="utf-8")
    try:
        page.write_text(text + "\nRing twice.\n", encoding="utf-8")
        done = hichunk("index", "pages/0*.md", "gone.md", "--store", copy, folder=home, code=1)
    finally:
        page.write_text(text, encoding="utf-8")
    assert done.stdout.startswith("Indexed 1 source as ")
    assert "(1 replaced, 1 unchanged)" in done.stdout
    assert done.stderr.startswith("Left out gone.md: There is no such file")
    assert len(done.stderr.splitlines()) == 1


def test_files_that_have_gone_are_told_and_pruned_below_the_given_folders(
    home: Path, copy: Path, tmp_path: Path
) -> None:
    gone = home / "pages" / SAFETY
    other = tmp_path / "pages"  # ends like the other one, and holds something to index
    other.mkdir()
    (other / "kiln.md").write_text("# Kiln\n\nFire it slowly.\n")
    kept = gone.rename(tmp_path / "kept")
    try:
        told_of = hichunk("index", "pages", "--store", copy, folder=home)
        elsewhere = answered("index", other, "--prune", "--store", copy, folder=home)
        pruned = answered("index", "pages", "--prune", "--store", copy, folder=home)
    finally:
        kept.rename(gone)
    assert "\nPassed over 1 file of a type that is not read (.xyz)\n" in told_of.stdout
    assert told_of.stdout.splitlines()[-1] == (
        "1 indexed file has gone from the disk; with --prune, `hichunk index` removes it from the index"
    )
    assert (elsewhere["added"], elsewhere["gone"], elsewhere["pruned"]) == (1, [], [])
    assert (pruned["unchanged"], pruned["gone"], pruned["pruned"]) == (1, [], [str(gone)])
    names = [source["name"] for source in answered("sources", "--store", copy, folder=home)]
    assert names == sorted([str(home / "pages" / EQUIPMENT), str(other / "kiln.md")])
    assert answered("check", "--store", copy, folder=home)["sound"]


def test_the_answer_cites_its_source_and_keeps_to_the_budget(home: Path) -> None:
    done = hichunk("ask", QUESTION, "--budget", 300, folder=home)
    assert done.stderr == ""
    assert done.stdout.startswith(f"[1] pages/{EQUIPMENT} > ")
    assert LATHE in done.stdout
    assert "merged " in done.stdout
    *_, last = done.stdout.splitlines()
    used, _, of = last.removesuffix(" tokens used").rpartition(" of ")
    assert of == "300"
    assert int(used.split()[-1]) <= 300


def test_a_pipeline_of_ones_own_takes_every_setting(home: Path) -> None:
    answer = answered(
        "ask", QUESTION, "-p", "own.yml", "--budget", 200, "--policy", "none", "--top-k", 7, "--set", "order=document",
        folder=home,
    )  # fmt: skip
    trace = answer["trace"]
    assert (trace["token_budget"], len(trace["hits"])) == (200, 7)
    assert (trace["options"]["policy"], trace["options"]["order"]) == ("none", "document")
    assert answer["tokens_used"] <= answer["token_budget"] == 200
    # More than the builder's own 50, and whole leaves: the budget reached both.
    assert sum(citation["tokens"] for citation in answer["citations"]) > 50
    assert not any(node["merged"] for node in trace["nodes"])
    assert LATHE in answer["context"]
    assert {Path(citation["source"]).name for citation in answer["citations"]} <= {SAFETY, EQUIPMENT}
    assert answer["question"] == QUESTION


def test_what_the_context_has_no_room_for_is_not_told_as_merged_into_it(home: Path) -> None:
    # The merge has 4,096 tokens, the context 50.
    lines = hichunk("ask", QUESTION, "-p", "own.yml", folder=home).stdout.splitlines()
    merged = [line for line in lines if line.startswith("merged ")]
    left_out = [line for line in merged if line.endswith(" (left out of the context: no room)")]
    assert left_out
    assert lines[-1].endswith(" of 50 tokens used")
    # The best one is there, cut.
    assert len(left_out) >= len(merged) - 1
    # All of it, where there is room.
    wide = hichunk("ask", QUESTION, "-p", "own.yml", "--budget", 4096, folder=home).stdout
    assert "merged " in wide
    assert "left out of the context" not in wide


def test_two_settings_side_by_side_on_a_page(home: Path) -> None:
    answer = answered("inspect", "-q", QUESTION, "-b", 600, "-c", "policy=none,top-k=5", "-o", "q.html", folder=home)
    assert answer["page"] == str(home / "q.html")
    page = Path(answer["page"]).read_text(encoding="ascii")
    assert "token_budget=600" in page
    assert "token_budget=600, policy=none, top_k=5" in page


def test_an_empty_index_is_told(home: Path) -> None:
    line = told("ask", QUESTION, "-p", "empty.yml", folder=home)
    assert line.startswith("The index that 'empty.yml' searches is empty: fill it with `hichunk index PATHS` and the ")
    line = told("ask", QUESTION, "-p", "query_hybrid", folder=home)
    assert "'query_hybrid.yml' searches is empty: fill it with `hichunk index PATHS -p indexing_hybrid`, or" in line


def test_sources_are_listed_a_line_each(home: Path) -> None:
    lines = hichunk("sources", folder=home).stdout.splitlines()
    assert [Path(line.split("  ")[-1]).name for line in lines] == [SAFETY, EQUIPMENT]
    assert all(" leaves  " in line and " tokens  " in line for line in lines)


def test_a_folder_in_use_is_told(home: Path, copy: Path) -> None:
    client = QdrantClient(path=str(copy))
    try:
        line = told("sources", "--store", copy, folder=home)
    finally:
        client.close()
    assert str(copy) in line
    assert "is in use by another process" in line


def test_deleting_asks_first_and_leaves_files_alone(home: Path, copy: Path) -> None:
    done = hichunk("delete", SAFETY, "--store", copy, folder=home, code=1, typed="n\n")
    assert "Delete 1 source from the index? [y/N]" in done.stdout
    assert done.stderr == "Nothing was deleted; --yes deletes without asking.\n"
    done = hichunk("delete", SAFETY, "--store", copy, folder=home, typed="y\n")
    assert "Deleted 1 source, " in done.stdout
    assert (home / "pages" / SAFETY).exists()
    answer = answered("delete", f"pages/{EQUIPMENT}", "-y", "--store", copy, folder=home)
    assert answer["sources"] == [str(home / "pages" / EQUIPMENT)]
    assert answer["deleted"] > 20  # 21 leaves and what is above them
    assert hichunk("sources", "--store", copy, folder=home).stdout == "Nothing is indexed.\n"


def test_a_tree_that_is_not_whole_is_found_and_repaired(
    home: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hichunk("check", "--store", copy, folder=home).stdout.splitlines()[-1] == "All trees are whole."
    monkeypatch.delenv("QDRANT_URL", raising=False)
    monkeypatch.delenv("QDRANT_PATH", raising=False)
    store = HierarchyQdrantDocumentStore(path=str(copy), index="hichunk", embedding_dim=384)
    of_page = {"field": "meta.file_path", "operator": "==", "value": str(home / "pages" / SAFETY)}
    leaf = next(node for node in store.filter_documents(of_page) if not node.meta["__children_ids"])
    store.delete_documents([leaf.id])
    store.close()
    answer = answered("check", "--store", copy, folder=home, code=1)
    assert (answer["sound"], answer["missing_children"]) == (False, [leaf.id])
    repaired = hichunk("check", "--repair", "--store", copy, folder=home, code=1).stdout
    assert f"Index again: {home / 'pages' / SAFETY}" in repaired
    answer = answered("check", "--store", copy, folder=home)
    assert (answer["sound"], answer["sources"]) == (True, 1)


def _heed_ctrl_c() -> None:
    """What a shell starts in the background ignores SIGINT, and so do its children: tests may run there."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_ends_with_130_and_one_line(home: Path, copy: Path) -> None:
    with subprocess.Popen(
        [*HICHUNK, "delete", SAFETY, "--store", str(copy)],
        cwd=home,
        env=environment(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_heed_ctrl_c,  # noqa: PLW1509 - it takes no lock
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        shown = ""
        while "[y/N]" not in shown:
            more = process.stdout.read(1)
            assert more, process.stderr.read()
            shown += more
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr.read() == "\nInterrupted.\n"


def test_served_pipelines_answer_until_ctrl_c(home: Path, copy: Path, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        assert f"127.0.0.1:{port}" in told("serve", "--host", "127.0.0.1", "--port", port, folder=home)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    log = tmp_path / "log"
    command = [*HICHUNK, "serve", "--host", "127.0.0.1", "--port", str(port), "--store", str(copy), "-p", "query"]
    with log.open("wb") as file:
        process = subprocess.Popen(
            command,
            cwd=home,
            env=environment(home, TMPDIR=str(temporary)),
            stdout=file,
            stderr=file,
            preexec_fn=_heed_ctrl_c,  # noqa: PLW1509 - it takes no lock
        )
    try:
        client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120, trust_env=False)
        deadline = time.monotonic() + 240
        while True:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            try:
                assert client.get("/status").json()["pipelines"] == ["query"]
                break
            except httpx.TransportError:
                time.sleep(0.2)
        answer = client.post("/query/run", json={"query": QUESTION}).json()["result"]["answer"]
        assert LATHE in answer["context"]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130, log.read_text()
    finally:
        process.kill()
        process.wait()
    assert list(temporary.glob("hichunk-*")) == []
    assert "Traceback" not in log.read_text()


def test_what_hayhooks_could_not_serve_is_refused(home: Path) -> None:
    line = told("serve", "-p", "own.yml", folder=home)
    assert line.startswith("'own.yml' declares no `inputs`")
