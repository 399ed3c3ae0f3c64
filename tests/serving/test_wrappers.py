# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""The wrappers of `pipelines/` in a real hayhooks server, over HTTP and over MCP."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from tests.hayhooks_server import Server, hayhooks
from tests.hichunk.endpoint import serve
from tests.pipeline_files import INDEXING, PIPELINES, QUERY, served
from tests.snippets import blocks

WRAPPERS = ("ask", "delete_sources", "inspect_query", "list_sources", "upload_files")
# Longer than one upload may be, and shorter than 100 MB, so that both sides of the limit are tried.
LIMIT_MB = 60

KILN = "# Kiln\n\nFire the kiln slowly up to two hundred degrees, so that the water in the clay has time to leave.\n"
KILN_AGAIN = "# Kiln\n\nThe kiln was sold in May. Whoever wants to fire clay asks the school on the hill.\n"
BEES = "# Bees\n\nGive the bees twelve kilograms of sugar syrup before September ends, or they starve in January.\n"
FIRE, SUGAR = "How is clay fired in the kiln?", "How much sugar do the bees need?"


def reply(prompt: str) -> str:
    """The language model: it knows no more than what the passages say."""
    return "Up to two hundred degrees, slowly [1]." if "two hundred degrees" in prompt else "The passages do not say."


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that has deployed both YAML files and all wrappers from one folder, with a language model."""
    folder = tmp_path_factory.mktemp("serving")
    pipelines = folder / "pipelines"
    pipelines.mkdir()
    for file in (INDEXING, QUERY):
        shutil.copy(file, pipelines)
    for name in WRAPPERS:
        shutil.copytree(PIPELINES / name, pipelines / name, ignore=shutil.ignore_patterns("__pycache__"))
    with serve(reply) as model:
        variables = {
            "HAYHOOKS_PIPELINES_DIR": str(pipelines), "HICHUNK_UPLOADS": str(folder / "uploads"),
            "HICHUNK_MAX_UPLOAD_MB": str(LIMIT_MB), "HICHUNK_BASE_URL": model.url, "HICHUNK_MODEL": "small",
        }  # fmt: skip
        with hayhooks("run", folder=folder, **variables) as running:
            yield running


@pytest.fixture
def uploads(server: Server) -> Path:
    return server.log.parent / "uploads"


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    """Every test starts from an empty index and leaves one."""
    with server.client() as client:
        yield client
        run(client, "delete_sources", sources=[source["name"] for source in listed(client)])


def run(client: httpx.Client, name: str, **values: Any) -> Any:
    answer = client.post(f"/{name}/run", json=values)
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


def upload(client: httpx.Client, *files: tuple[str, str | bytes]) -> dict[str, Any]:
    answer = client.post("/upload_files/run", files=[("files", file) for file in files])
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


def listed(client: httpx.Client) -> list[dict[str, Any]]:
    return run(client, "list_sources")["sources"]


def names(client: httpx.Client) -> list[str]:
    return [source["name"] for source in listed(client)]


def stored(uploads: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in uploads.iterdir() if file.is_file()}


def test_yaml_files_and_wrappers_are_deployed_side_by_side(client: httpx.Client) -> None:
    assert sorted(client.get("/status").json()["pipelines"]) == sorted(["indexing", "query", *WRAPPERS])


def test_upload_ask_replace_ask_again_delete_ask_again(client: httpx.Client, uploads: Path) -> None:
    answer = upload(client, ("kiln.md", KILN), ("bees.md", BEES))
    assert answer == {
        "files": [{"file": "kiln.md", "source": "kiln.md"}, {"file": "bees.md", "source": "bees.md"}],
        "sources": 2, "leaves": 2, "added": 2, "replaced": 0, "unchanged": 0, "deleted": 0, "failed": [],
    }  # fmt: skip
    assert [(one["name"], one["leaves"], one["complete"], one["uploaded"]) for one in listed(client)] == [
        ("bees.md", 1, True, True), ("kiln.md", 1, True, True),
    ]  # fmt: skip
    found = run(client, "ask", query=FIRE)
    assert found["citations"][0]["source"] == "kiln.md"
    assert "two hundred degrees" in found["context"]

    assert upload(client, ("kiln.md", KILN_AGAIN))["replaced"] == 1
    found = run(client, "ask", query=FIRE)
    assert "school on the hill" in found["context"]
    assert "two hundred degrees" not in found["context"]
    # The plain YAML deployment reads the same index.
    plain = served(QUERY, client.post("/query/run", json={"query": FIRE}).json()["result"])
    assert plain["context"] == found["context"]
    assert stored(uploads) == {"kiln.md": KILN_AGAIN, "bees.md": BEES}

    assert run(client, "delete_sources", sources=["kiln.md", "none.md"]) == {
        "sources": 1, "deleted": 1, "files": 1, "missing": ["none.md"],
    }  # fmt: skip
    assert stored(uploads) == {"bees.md": BEES}
    found = run(client, "ask", query=FIRE)
    assert [citation["source"] for citation in found["citations"]] == ["bees.md"]
    # Once more: nothing is there, and nothing happens.
    assert run(client, "delete_sources", sources=["kiln.md"])["missing"] == ["kiln.md"]


def test_the_same_again_is_not_indexed_again(client: httpx.Client) -> None:
    upload(client, ("kiln.md", KILN))
    answer = upload(client, ("kiln.md", KILN))
    assert (answer["unchanged"], answer["leaves"]) == (1, 0)
    assert answer["files"] == [{"file": "kiln.md", "source": "kiln.md"}]


def test_names_with_tricks_stay_in_the_folder(client: httpx.Client, uploads: Path) -> None:
    outside = uploads.parent / "escaped.md"
    tricks = {
        "../escaped.md": "escaped.md",
        str(uploads.parent / "absolute.md"): "absolute.md",
        "..\\..\\windows.md": "windows.md",
        "窯.md": "窯.md",
        "[*].md": "[_].md",
    }
    answer = upload(client, *((given, f"# {number}\n\nKiln number {number}.\n") for number, given in enumerate(tricks)))
    assert answer["failed"] == []
    assert [each["source"] for each in answer["files"]] == list(tricks.values())
    assert sorted(names(client)) == sorted(tricks.values())
    assert sorted(stored(uploads)) == sorted(tricks.values())
    assert not outside.exists()
    assert not (uploads.parent / "absolute.md").exists()


def test_a_raw_name_with_nul_or_nothing_in_it_does_no_harm(client: httpx.Client, uploads: Path) -> None:
    def part(disposition: bytes, content: bytes) -> bytes:
        return b"--edge\r\nContent-Disposition: form-data; " + disposition + b"\r\n\r\n" + content + b"\r\n"

    body = b"".join(
        [
            part(b'name="files"; filename="a\0b.md"', b"# NUL\n\nA kiln.\n"),
            part(b'name="files"; filename=".."', b"# Dots\n\nA kiln.\n"),
            part(b'name="files"; filename="good.md"', b"# Good\n\nA kiln.\n"),
            b"--edge--\r\n",
        ]
    )
    answer = client.post(
        "/upload_files/run", content=body, headers={"Content-Type": "multipart/form-data; boundary=edge"}
    )
    assert answer.status_code == 200, answer.text
    result = answer.json()["result"]
    assert [each["source"] for each in result["files"]] == ["ab.md", "good.md"]
    assert [each["file"] for each in result["failed"]] == [".."]
    assert sorted(stored(uploads)) == ["ab.md", "good.md"]


def test_what_fails_is_named_and_the_rest_is_indexed(client: httpx.Client, uploads: Path) -> None:
    upload(client, ("plan.pdf.md", KILN))
    (uploads / "folder.md").mkdir()
    answer = upload(
        client,
        ("kiln.md", KILN),
        ("broken.pdf", b"%PDF-1.7 no"),
        ("what.xyz", "?"),
        ("KILN.md", BEES),
        ("empty.md", ""),
        ("blank.md", " \n\n"),
        ("folder.md", KILN),
    )
    assert [each["source"] for each in answer["files"]] == ["kiln.md"]
    assert sorted(each["file"] for each in answer["failed"]) == [
        "KILN.md", "blank.md", "broken.pdf", "empty.md", "folder.md", "what.xyz",
    ]  # fmt: skip
    assert "Another file of this upload" in next(e["error"] for e in answer["failed"] if e["file"] == "KILN.md")
    assert "No converter" in next(e["error"] for e in answer["failed"] if e["file"] == "what.xyz")
    (uploads / "folder.md").rmdir()
    # Nothing is left of what failed.
    assert sorted(stored(uploads)) == ["kiln.md", "plan.pdf.md"]
    assert list((uploads / ".incoming").iterdir()) == []


def test_a_new_version_that_fails_leaves_the_old_one(client: httpx.Client, uploads: Path) -> None:
    upload(client, ("kiln.md", KILN))
    answer = upload(client, ("kiln.md", b"\xff\xfe\x00"))
    assert [each["file"] for each in answer["failed"]] == ["kiln.md"]
    assert stored(uploads) == {"kiln.md": KILN}
    assert "two hundred degrees" in run(client, "ask", query=FIRE)["context"]


def test_deleting_touches_no_file_outside_of_the_folder(client: httpx.Client, uploads: Path, tmp_path: Path) -> None:
    page = tmp_path / "own.md"
    page.write_text(BEES)
    client.post("/indexing/run", json={"paths": [str(page)]}).raise_for_status()
    assert [(one["name"], one["uploaded"]) for one in listed(client)] == [(str(page), False)]
    tricks = ["../hayhooks.log", ".incoming", "/etc/hostname", "", "."]
    assert run(client, "delete_sources", sources=tricks) == {
        "sources": 0, "deleted": 0, "files": 0, "missing": tricks,
    }  # fmt: skip
    assert run(client, "delete_sources", sources=[str(page)]) == {
        "sources": 1, "deleted": 1, "files": 0, "missing": [],
    }  # fmt: skip
    assert page.exists()
    assert (uploads.parent / "hayhooks.log").exists()


def test_an_upload_above_the_limit_is_refused_and_nothing_is_stored(client: httpx.Client, uploads: Path) -> None:
    upload(client, ("kiln.md", KILN))
    with tempfile.TemporaryFile() as large:
        large.truncate(100_000_000)
        answer = client.post("/upload_files/run", files=[("files", ("kiln.md", large)), ("files", ("bees.md", BEES))])
    assert answer.status_code == 413
    assert f"The upload holds 100.0 MB, the limit is {LIMIT_MB}.0 MB" in answer.json()["detail"]
    assert stored(uploads) == {"kiln.md": KILN}
    assert names(client) == ["kiln.md"]


def test_an_upload_without_a_file_is_refused(client: httpx.Client) -> None:
    assert client.post("/upload_files/run", data={}).status_code == 422
    answer = client.post("/upload_files/run", files=[("other", ("kiln.md", KILN))])
    assert answer.status_code == 422
    assert "files" in answer.text


def test_two_uploads_at_once(client: httpx.Client, uploads: Path) -> None:
    """Of two files of one name the later one counts, in the folder as in the index; others do not mind each other."""
    with ThreadPoolExecutor(4) as pool:
        answers = list(
            pool.map(
                lambda file: upload(client, file),
                [
                    ("kiln.md", KILN),
                    ("kiln.md", KILN_AGAIN),
                    ("bees.md", BEES),
                    ("clay.md", "Clay is dug.\n"),
                ],
            )
        )
    assert [answer["failed"] for answer in answers] == [[], [], [], []]
    assert names(client) == ["bees.md", "clay.md", "kiln.md"]
    texts = {document["content"] for document in run(client, "ask", query=FIRE)["documents"]}
    assert stored(uploads)["kiln.md"] in texts
    assert len(texts & {KILN, KILN_AGAIN}) == 1


def test_a_budget_holds_and_a_bad_one_is_told(client: httpx.Client) -> None:
    upload(client, ("kiln.md", KILN), ("bees.md", BEES))
    found = run(client, "ask", query=SUGAR, budget=50)
    assert 0 < found["tokens_used"] <= 50
    assert [citation["source"] for citation in found["citations"]] == ["bees.md"]
    for values, says in (({"query": " "}, "empty"), ({"query": SUGAR, "budget": 0}, "at least 1 token")):
        answer = client.post("/ask/run", json=values)
        assert answer.status_code == 422
        assert says in answer.json()["detail"]


def test_a_page_shows_what_the_merge_did(client: httpx.Client) -> None:
    upload(client, ("kiln.md", KILN))
    answer = client.post("/inspect_query/run", json={"query": "<script>alert(1)</script> How is clay fired?"})
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.text.startswith("<!DOCTYPE html>")
    assert "two hundred degrees" in answer.text
    assert "<script>alert(1)" not in answer.text


def chat(client: httpx.Client, *contents: Any, **more: Any) -> httpx.Response:
    messages = [{"role": "user", "content": content} for content in contents]
    return client.post("/v1/chat/completions", json={"model": "ask", "messages": messages, **more})


def test_a_chat_is_answered_by_the_model_with_its_sources(client: httpx.Client) -> None:
    upload(client, ("kiln.md", KILN), ("bees.md", BEES))
    says = "Up to two hundred degrees, slowly [1].\n\n[1] kiln.md > Kiln"
    answer = chat(client, SUGAR, FIRE).json()
    assert answer["choices"][0]["message"]["content"] == says
    parts = [{"type": "text", "text": FIRE}, {"type": "image_url", "image_url": {"url": "x"}}]
    assert chat(client, parts).json()["choices"][0]["message"]["content"] == says
    with client.stream("POST", "/v1/chat/completions", json={
        "model": "ask", "messages": [{"role": "user", "content": FIRE}], "stream": True,
    }) as stream:  # fmt: skip
        chunks = [json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: {")]
    assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks) == says


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not on this machine")
def test_the_commands_of_the_docs(client: httpx.Client, server: Server, tmp_path: Path) -> None:
    (code,) = [code for _, code in blocks((PIPELINES.parent / "docs" / "serving.md").read_text()) if "curl" in code]
    code = code.replace("localhost:1416", server.url).replace("page.html", str(tmp_path / "page.html"))
    code = code.replace("curl -s", "curl -sf --noproxy '*' -w '\\n'")
    done = subprocess.run(["bash", "-ec", code], cwd=PIPELINES.parent, capture_output=True, text=True, check=True)
    uploaded, asked, sources, deleted = [json.loads(line)["result"] for line in done.stdout.splitlines()]
    assert len(uploaded["files"]) == 2
    assert "112" in asked["context"]
    assert [source["name"] for source in sources["sources"]] == ["06-slipway-safety.md", "14-telephone-list.txt"]
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")
    assert (deleted["sources"], deleted["files"]) == (1, 1)


# -- over MCP


@pytest.fixture(scope="module")
def mcp_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An MCP server on the folder of the repository itself; it takes the wrappers only."""
    folder = tmp_path_factory.mktemp("mcp")
    pipelines = folder / "pipelines"
    for name in WRAPPERS:
        shutil.copytree(PIPELINES / name, pipelines / name, ignore=shutil.ignore_patterns("__pycache__"))
    with hayhooks("mcp", "run", folder=folder, HAYHOOKS_PIPELINES_DIR=str(pipelines)) as server:
        yield server


async def test_over_mcp_answers_are_json_and_files_are_no_tools(mcp_server: Server) -> None:
    async with (
        httpx.AsyncClient(timeout=120, follow_redirects=True, trust_env=False) as client,
        streamable_http_client(f"{mcp_server.url}/mcp/", http_client=client) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert set(tools) & set(WRAPPERS) == {"ask", "delete_sources", "list_sources"}
        assert tools["ask"].inputSchema["required"] == ["query"]
        assert tools["ask"].description

        async def call(tool: str, **arguments: Any) -> Any:
            answer = await session.call_tool(tool, arguments)
            (content,) = answer.content
            assert not answer.isError, content
            return json.loads(content.text)

        assert await call("list_sources") == {"sources": []}
        assert (await call("ask", query=FIRE, budget=100))["context"] == ""
        assert (await call("delete_sources", sources=["kiln.md"]))["missing"] == ["kiln.md"]
