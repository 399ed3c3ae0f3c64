# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""The YAML pipelines in real hayhooks servers, over HTTP and over MCP, each on an embedded Qdrant folder of its own."""

import json
import shutil
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from haystack_integrations.document_stores.qdrant.document_store import QdrantStoreError
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult

from hichunk_haystack.commits import COMMIT_FIELDS
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from tests.hayhooks_server import Server, hayhooks
from tests.pipeline_files import INDEXING, QUERY, declared, edited, indexed, served

# Each page is one source of two leaves (a section each; 100 tokens at most, 20 at least).
KILN = """# Kiln

## Firing

Fire the kiln slowly up to two hundred degrees, so that the water in the clay has time to leave; only then may it climb
by a hundred degrees in an hour.

## Cooling

Leave the door shut for a whole day after the last cone has bent. Pots that meet cold air while they glow will crack,
and so will the shelves.
"""
BEES = """# Bees

## Spring

Open the hive on the first warm day of April and look for the queen; a colony without eggs in its combs has lost her and
needs a new one within a week.

## Winter

Give twelve kilograms of sugar syrup before the end of September. A hive that rattles in January is hungry, and fondant
is laid right above the cluster.
"""
FIRING, WINTER = "How fast may the kiln be heated?", "How much sugar do the bees need before winter?"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the two pages."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "kiln.md").write_text(KILN)
    (folder / "bees.md").write_text(BEES)
    return folder


def run(client: httpx.Client, name: str, **values: Any) -> dict[str, Any]:
    """Run a pipeline of a server and give its declared outputs."""
    answer = client.post(f"/{name}/run", json=values)
    assert answer.status_code == 200, answer.text
    return served(INDEXING if name.startswith("indexing") else QUERY, answer.json()["result"])


def check_firing(answer: dict[str, Any], pages: Path) -> None:
    """
    All four leaves are hits and both pages fit into 1,024 tokens, so both come back whole, the better one first.

    Short notes that other tests index may follow.
    """
    sources = [citation["source"] for citation in answer["citations"]]
    assert sources[:2] == [str(pages / "kiln.md"), str(pages / "bees.md")]
    assert [document["content"] for document in answer["documents"]][:2] == [KILN, BEES]
    assert answer["context"].startswith(f"[1] {pages.name}/kiln.md")
    assert KILN.split("## Firing")[1].strip() in answer["context"]
    assert [(node["merged"], len(node["hits"])) for node in answer["trace"]["nodes"][:2]] == [(True, 2), (True, 2)]
    assert answer["tokens_used"] <= answer["trace"]["token_budget"] == 1024


# -- over HTTP


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, pages: Path) -> Iterator[Server]:
    """A server that has deployed both files at its start, from a folder, and has indexed the two pages."""
    folder = tmp_path_factory.mktemp("server")
    pipelines = folder / "pipelines"
    pipelines.mkdir()
    for file in (INDEXING, QUERY):
        shutil.copy(file, pipelines)
    with hayhooks("run", folder=folder, HAYHOOKS_PIPELINES_DIR=str(pipelines)) as server:
        with server.client() as client:
            assert client.get("/status").json()["pipelines"] == ["indexing", "query"], server.log.read_text()
            assert run(client, "indexing", paths=[str(pages)]) == indexed(4, added=2)
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


def deploy(client: httpx.Client, name: str, file: Path, **options: Any) -> httpx.Response:
    source = file.read_text(encoding="utf-8")
    return client.post("/deploy-yaml", json={"name": name, "source_code": source, "save_file": False, **options})


def test_a_question_is_answered_from_what_another_pipeline_of_the_process_indexed(
    client: httpx.Client, pages: Path
) -> None:
    check_firing(run(client, "query", query=FIRING), pages)
    assert run(client, "query", query=WINTER)["citations"][0]["source"] == str(pages / "bees.md")


def test_pipelines_posted_while_the_server_runs_share_the_folder(
    client: httpx.Client, pages: Path, tmp_path: Path
) -> None:
    for name, file in (("indexing-posted", INDEXING), ("query-posted", QUERY)):
        assert deploy(client, name, file).json() == {"name": name, "success": True, "endpoint": f"/{name}/run"}
    assert run(client, "query-posted", query=FIRING) == run(client, "query", query=FIRING)
    # A page that one indexing pipeline wrote is replaced by the other, and both query pipelines see it.
    note = tmp_path / "note.md"
    for name, text in (
        ("indexing", "# Wheel\n\nCentre the clay.\n"),
        ("indexing-posted", "# Wheel\n\nWet the clay.\n"),
    ):
        note.write_text(text)
        assert run(client, name, paths=[str(note)])["sources"] == 1
        for query in ("query", "query-posted"):
            found = run(client, query, query="What is done with the clay on the wheel?")["documents"]
            assert [document["content"] for document in found if "Wheel" in document["content"]] == [text]


def test_a_pipeline_deployed_over_itself_goes_on_with_the_same_data(client: httpx.Client) -> None:
    deploy(client, "query-again", QUERY)
    before = run(client, "query-again", query=WINTER)
    assert deploy(client, "query-again", QUERY).status_code == 409
    assert deploy(client, "query-again", QUERY, overwrite=True).status_code == 200
    assert run(client, "query-again", query=WINTER) == before


def test_answers_hold_what_the_yaml_declares_and_no_document_that_went_between_components(
    client: httpx.Client, pages: Path
) -> None:
    asked = client.post("/query/run", json={"query": WINTER}).json()["result"]
    paths = {f"{component}.{socket}" for component, sockets in asked.items() for socket in sockets}
    assert paths == {path for paths in declared(QUERY, "outputs").values() for path in paths}
    # Counts, and which files failed or were skipped: the converter's documents and the nodes stay inside.
    answer = client.post("/indexing/run", json={"paths": [str(pages / "bees.md")]})
    assert "rattles in January" not in answer.text
    assert "documents" not in {socket for sockets in answer.json()["result"].values() for socket in sockets}


def test_unreadable_files_are_named_and_the_others_are_indexed(
    client: httpx.Client, pages: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty.md").touch()
    paths = [str(tmp_path / "none.md"), str(tmp_path / "empty.md"), str(pages / "kiln.md")]
    answer = run(client, "indexing", paths=paths)
    assert (answer["sources"], answer["unchanged"]) == (0, 1)
    assert [failure["path"] for failure in answer["failed"]] == paths[:2]
    assert "no such file" in answer["failed"][0]["error"]
    assert "empty" in answer["failed"][1]["error"]


def test_one_path_need_not_be_in_a_list(client: httpx.Client, pages: Path) -> None:
    assert run(client, "indexing", paths=str(pages / "kiln.md")) == indexed(0, unchanged=1)


@pytest.mark.parametrize(
    ("path", "body", "status", "says"),
    [
        ("/query/run", {}, 422, "query"),
        ("/query/run", {"question": FIRING}, 422, "query"),
        ("/query/run", {"query": 7}, 422, "valid string"),
        ("/indexing/run", {}, 422, "paths"),
        ("/indexing/run", {"paths": [7]}, 422, "valid string"),
        ("/answers/run", {"query": FIRING}, 404, "Not Found"),
    ],
)
def test_a_bad_request_is_answered_and_the_server_lives_on(
    client: httpx.Client, path: str, body: dict[str, Any], status: int, says: str
) -> None:
    answer = client.post(path, json=body)
    assert answer.status_code == status
    assert says in json.dumps(answer.json()["detail"])
    assert run(client, "query", query=FIRING)["context"]


def test_a_pipeline_that_does_not_load_is_refused_with_the_reason(client: httpx.Client, tmp_path: Path) -> None:
    answer = deploy(client, "no-budget", edited(QUERY, tmp_path, ("token_budget: 1024", "token_budget: 0")))
    assert answer.status_code == 500
    assert "token_budget is 0; it must be at least 1 token" in answer.json()["detail"]
    assert "no-budget" not in client.get("/status").json()["pipelines"]


def test_a_wrong_input_path_is_named_when_it_runs(client: httpx.Client, tmp_path: Path) -> None:
    assert deploy(client, "wrong-path", edited(QUERY, tmp_path, ("embedder.text", "embedder.txt"))).status_code == 200
    answer = client.post("/wrong-path/run", json={"query": FIRING})
    assert answer.status_code == 500
    assert "Input 'txt' not found in component 'embedder'" in answer.json()["detail"]
    assert run(client, "query", query=FIRING)["context"]


def _without_record(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without what roots say of the run that wrote them."""
    for document in answer["documents"]:
        document["meta"] = {name: value for name, value in document["meta"].items() if name not in COMMIT_FIELDS}
    return answer


def test_many_queries_at_once_while_a_page_is_indexed_again_get_the_answers_they_get_alone(
    client: httpx.Client, pages: Path, tmp_path: Path
) -> None:
    deploy(client, "indexing-anew", edited(INDEXING, tmp_path, ("leaves in context", "another version")))
    alone = {question: run(client, "query", query=question) for question in (FIRING, WINTER)}
    with ThreadPoolExecutor(9) as pool:
        written = pool.submit(run, client, "indexing-anew", paths=[str(pages / "bees.md")])
        asked = [(question, pool.submit(run, client, "query", query=question)) for question in [FIRING, WINTER] * 4]
        for question, answer in asked:
            assert _without_record(answer.result()) == _without_record(alone[question])
        assert written.result() == indexed(2, replaced=1)


def test_a_second_process_is_told_which_folder_is_taken_and_what_to_do(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = server.log.parent / "qdrant"
    monkeypatch.delenv("QDRANT_URL", raising=False)
    monkeypatch.setenv("QDRANT_PATH", str(folder))
    with pytest.raises(QdrantStoreError) as caught:
        HierarchyQdrantDocumentStore(index="hichunk", embedding_dim=384).count_documents()
    assert str(folder) in str(caught.value)
    assert "QDRANT_URL" in str(caught.value)


# -- over MCP


@pytest.fixture(scope="module")
def mcp_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """
    An MCP server with both files as its tools.

    hayhooks' MCP server loads YAML files only when its set of pipelines is fixed at the start; else it takes nothing
    but folders with a `pipeline_wrapper.py`.
    """
    folder = tmp_path_factory.mktemp("mcp")
    pipelines = folder / "pipelines"
    pipelines.mkdir()
    for file in (INDEXING, QUERY):
        shutil.copy(file, pipelines)
    variables = {"HAYHOOKS_DURABLE_MODE": "true", "HAYHOOKS_PIPELINES_DIR": str(pipelines)}
    with hayhooks("mcp", "run", folder=folder, **variables) as server:
        yield server


@asynccontextmanager
async def session(server: Server) -> AsyncIterator[ClientSession]:
    """Talk to a server as an agent does; straight, whatever proxies this machine has."""
    async with (
        httpx.AsyncClient(timeout=120, follow_redirects=True, trust_env=False) as client,
        streamable_http_client(f"{server.url}/mcp/", http_client=client) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        yield session


async def call(server: Server, tool: str, **arguments: Any) -> CallToolResult:
    async with session(server) as talk:
        return await talk.call_tool(tool, arguments)


def strict_json(answer: CallToolResult) -> Any:
    """Read an answer as JSON, which has no NaN."""
    (content,) = answer.content
    assert not answer.isError, content

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    return json.loads(content.text, parse_constant=refuse)


async def test_both_pipelines_are_tools_that_say_what_they_need(mcp_server: Server) -> None:
    async with session(mcp_server) as talk:
        tools = {tool.name: tool.inputSchema for tool in (await talk.list_tools()).tools}
    assert tools["query"]["required"] == ["query"]
    assert tools["query"]["properties"]["query"]["type"] == "string"
    assert tools["indexing"]["required"] == ["paths"]
    assert {each["type"] for each in tools["indexing"]["properties"]["paths"]["anyOf"]} == {"array", "string"}


async def test_over_mcp_the_answers_are_json(mcp_server: Server, pages: Path) -> None:
    missing = str(pages / "none.md")
    answer = served(INDEXING, strict_json(await call(mcp_server, "indexing", paths=[str(pages), missing])))
    assert (answer["sources"], answer["leaves"]) == (2, 4)
    assert [failure["path"] for failure in answer["failed"]] == [missing]
    answer = served(QUERY, strict_json(await call(mcp_server, "query", query=FIRING)))
    check_firing(answer, pages)


async def test_a_bad_call_over_mcp_is_an_error_that_says_what_is_wrong(mcp_server: Server) -> None:
    answer = await call(mcp_server, "query")
    assert answer.isError
    assert "'query' is a required property" in answer.content[0].text
    answer = await call(mcp_server, "answers", query=FIRING)
    assert answer.isError
    assert "'answers' not found" in answer.content[0].text
    # The server lives on.
    assert "context" in served(QUERY, strict_json(await call(mcp_server, "query", query=FIRING)))
