# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""`docker-compose.yml` and what it builds, checked without a Docker engine: its parts run against real programs."""

import fnmatch
import importlib.metadata
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import sysconfig
import threading
import time
import tomllib
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
COMPOSE_FILE = ROOT / "docker-compose.yml"
TINY_PIPELINE = """
components:
  prompt:
    type: haystack.components.builders.prompt_builder.PromptBuilder
    init_parameters: {template: "{{ text }}"}
connections: []
inputs: {text: prompt.text}
outputs: {prompt: prompt.prompt}
"""


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return yaml.safe_load(COMPOSE_FILE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def services(compose: dict[str, Any]) -> dict[str, Any]:
    return compose["services"]


@pytest.fixture(scope="module")
def instructions(services: dict[str, Any]) -> list[tuple[str, str]]:
    """The Dockerfile as (keyword, rest) pairs, continued lines joined and comments left out."""
    text = (ROOT / services["hayhooks"]["build"]["dockerfile"]).read_text(encoding="utf-8")
    joined = re.sub(r"\\\n\s*", "", text)
    lines = [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]
    return [(keyword, rest) for keyword, _, rest in (line.partition(" ") for line in lines)]


def interpolate(text: str) -> str:
    """Give `${NAME:-default}` its default and turn `$$` into `$`, as Compose does where nothing is set."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text).replace("$$", "$")


def mounts(service: dict[str, Any]) -> dict[str, Path]:
    """Map each target of a bind mount to the folder of the repository behind it."""
    binds = [volume for volume in service["volumes"] if isinstance(volume, dict) and volume["type"] == "bind"]
    return {volume["target"]: ROOT / interpolate(volume["source"]) for volume in binds}


def copied_sources(instructions: list[tuple[str, str]]) -> list[str]:
    return [source for keyword, rest in instructions if keyword == "COPY" for source in rest.split()[:-1]]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def health_check(service: dict[str, Any], port: int, *, old_port: int) -> subprocess.CompletedProcess[str]:
    """Run a service's health check here, aimed at `port`, within the time limit that the file gives it."""
    kind, program, *arguments = service["healthcheck"]["test"]
    assert kind == "CMD"
    assert str(old_port) in arguments[-1]
    aimed = [interpolate(argument).replace(str(old_port), str(port)) for argument in arguments]
    command = [sys.executable if program == "python" else program, *aimed]
    limit = float(service["healthcheck"]["timeout"].removesuffix("s"))
    return subprocess.run(command, capture_output=True, text=True, timeout=limit + 1, check=False)


@contextmanager
def answering(status: int) -> Iterator[int]:
    """Serve `status` on /readyz and 404 elsewhere, on a free port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(status if self.path == "/readyz" else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class TestComposeFile:
    def test_fits_the_compose_specification(self, compose: dict[str, Any]) -> None:
        pytest.importorskip("check_jsonschema", reason="its package carries the Compose specification's schema")
        jsonschema = pytest.importorskip("jsonschema")
        schema_file = resources.files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json"
        schema = json.loads(schema_file.read_text(encoding="utf-8"))

        validator = jsonschema.validators.validator_for(schema)(schema)

        assert [error.message for error in validator.iter_errors(compose)] == []
        assert list(validator.iter_errors({"services": {"qdrant": {"imagee": "x"}}})), "the schema takes anything"

    def test_compose_itself_reads_it(self) -> None:
        if not (docker := shutil.which("docker")):
            pytest.skip("no docker client")
        if subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode:
            pytest.skip("the docker client has no compose plugin")

        command = [docker, "compose", "--file", str(COMPOSE_FILE), "config", "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

        assert done.returncode == 0, done.stderr

    def test_has_the_two_services_and_only_known_keys(self, compose: dict[str, Any]) -> None:
        known = {"image", "build", "depends_on", "environment", "volumes", "ports", "healthcheck", "restart"}

        assert set(compose) == {"name", "services", "volumes"}
        assert set(compose["services"]) == {"qdrant", "hayhooks"}
        for name, service in compose["services"].items():
            assert set(service) <= known, name
            assert ("image" in service) != ("build" in service), name

    def test_waits_only_for_services_that_report_their_health(self, services: dict[str, Any]) -> None:
        assert services["hayhooks"]["depends_on"] == {"qdrant": {"condition": "service_healthy"}}
        assert services["qdrant"]["healthcheck"]["test"]

    def test_health_checks_have_whole_durations(self, services: dict[str, Any]) -> None:
        for service in services.values():
            check = service["healthcheck"]
            assert set(check) == {"test", "interval", "timeout", "retries", "start_period"}
            assert all(re.fullmatch(r"[1-9]\d*s", check[key]) for key in ("interval", "timeout", "start_period"))
            assert check["retries"] >= 1

    def test_uploads_survive_the_container(self, compose: dict[str, Any]) -> None:
        service = compose["services"]["hayhooks"]
        folder = service["environment"]["HICHUNK_UPLOADS"]
        assert f"uploads:{folder}" in service["volumes"]
        assert f"--owner hayhooks {folder}" in (ROOT / "docker" / "hayhooks.Dockerfile").read_text()

    def test_the_image_holds_what_the_wheel_is_built_from(self) -> None:
        built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
        dockerfile = (ROOT / "docker" / "hayhooks.Dockerfile").read_text()
        for folder in (*built["packages"], *built["force-include"]):
            assert f"COPY {folder} ./{folder}" in dockerfile

    def test_named_volumes_are_declared_and_used(self, compose: dict[str, Any]) -> None:
        volumes = [volume for service in compose["services"].values() for volume in service["volumes"]]
        named = {volume.partition(":")[0] for volume in volumes if isinstance(volume, str)}

        assert named == set(compose["volumes"]) == {"qdrant_storage", "uploads"}
        assert "qdrant_storage:/qdrant/storage" in compose["services"]["qdrant"]["volumes"]

    def test_mounted_folders_exist_and_are_read_only(self, services: dict[str, Any]) -> None:
        binds = [volume for volume in services["hayhooks"]["volumes"] if isinstance(volume, dict)]

        assert all(volume["read_only"] and volume["bind"] == {"create_host_path": False} for volume in binds)
        folders = mounts(services["hayhooks"])
        assert set(folders) == {"/app/pipelines", "/documents"}
        for folder in folders.values():
            assert folder.is_dir(), folder
            assert folder.resolve().is_relative_to(ROOT)
        assert {"indexing.yml", "query.yml"} <= {path.name for path in folders["/app/pipelines"].iterdir()}
        assert list(folders["/documents"].glob("*.md"))

    def test_ports_are_open_to_this_machine_only(self, services: dict[str, Any]) -> None:
        ports = {port for service in services.values() for port in service["ports"]}

        assert ports == {"127.0.0.1:6333:6333", "127.0.0.1:1416:1416"}


class TestVersions:
    def test_images_are_pinned(self, services: dict[str, Any], instructions: list[tuple[str, str]]) -> None:
        images = [service["image"] for service in services.values() if "image" in service]
        images += [rest for keyword, rest in instructions if keyword == "FROM"]

        assert len(images) == 2
        for image in images:
            assert re.fullmatch(r"[\w./-]+:v?\d+\.\d+[\w.-]*", image), image

    def test_qdrant_server_and_client_go_together(self, services: dict[str, Any]) -> None:
        from qdrant_client.common.version_check import is_compatible

        server = services["qdrant"]["image"].partition(":v")[2]

        assert is_compatible(importlib.metadata.version("qdrant-client"), server)
        constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
        pinned = re.search(r"^qdrant-client==([\d.]+)", constraints, re.MULTILINE)
        assert pinned is None or is_compatible(pinned[1], server), "the image installs the constraints' client"

    def test_python_of_the_image_is_one_that_the_package_takes(self, instructions: list[tuple[str, str]]) -> None:
        specifiers = pytest.importorskip("packaging.specifiers")
        python = re.match(r"python:(\d+\.\d+)", dict(instructions)["FROM"])
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

        assert python is not None
        assert specifiers.SpecifierSet(project["requires-python"]).contains(f"{python[1]}.99")


class TestEnvironment:
    def test_every_hayhooks_variable_is_a_setting(
        self, services: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings = pytest.importorskip("hayhooks.settings")
        environment = services["hayhooks"]["environment"]
        ours = {name: value for name, value in environment.items() if name.startswith("HAYHOOKS_")}
        fields = settings.AppSettings.model_fields

        assert ours
        assert {name for name in ours if name.removeprefix("HAYHOOKS_").lower() not in fields} == set()
        for name, value in ours.items():
            monkeypatch.setenv(name, value)
        read = settings.AppSettings()
        assert read.host == "0.0.0.0"  # inside the container; the published port is bound to loopback
        assert read.pipelines_dir in mounts(services["hayhooks"])
        assert read.cors_allow_origins == ["http://localhost:1416", "http://127.0.0.1:1416"]
        assert f":{read.port}:{read.port}" in services["hayhooks"]["ports"][0]

    def test_allowlist_lets_our_components_through(
        self, services: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from haystack.core.serialization import import_class_by_name

        name = "hichunk_haystack.components.preprocessors.MarkdownHierarchicalSplitter"
        variable = "HAYSTACK_DESERIALIZATION_ALLOWLIST"
        monkeypatch.setenv(variable, services["hayhooks"]["environment"][variable])

        assert import_class_by_name(name).__name__ == "MarkdownHierarchicalSplitter"

    def test_pipelines_reach_the_server_by_its_service_name(self, services: dict[str, Any]) -> None:
        url = services["hayhooks"]["environment"]["QDRANT_URL"]

        assert url == "http://qdrant:6333"
        assert "/dev/tcp/127.0.0.1/6333 " in services["qdrant"]["healthcheck"]["test"][-1]

    def test_one_key_for_server_and_client(self, services: dict[str, Any]) -> None:
        hayhooks = services["hayhooks"]["environment"]

        assert services["qdrant"]["environment"]["QDRANT__SERVICE__API_KEY"] == "${QDRANT_API_KEY:-}"
        assert hayhooks["QDRANT_API_KEY"] is None, "a value would set it to an empty string where no key is wanted"
        assert not any("KEY" in key and value for key, value in hayhooks.items())


class TestDockerfile:
    def test_copied_files_exist_and_reach_the_build(self, instructions: list[tuple[str, str]]) -> None:
        rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
        sources = copied_sources(instructions)

        assert {"constraints.txt", "pyproject.toml", "hichunk_haystack"} <= set(sources)
        for source in sources:
            assert (ROOT / source).exists(), source
            # As Docker reads it: the last rule that matches decides.
            matching = [rule for rule in rules if fnmatch.fnmatch(source, rule.removeprefix("!"))]
            assert matching[-1] == f"!{source}", f".dockerignore keeps {source} out of the build"

    def test_files_that_the_build_backend_reads_are_copied(self, instructions: list[tuple[str, str]]) -> None:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        read = [project[key] for key in ("readme",) if isinstance(project.get(key), str)]
        read += [name for pattern in project.get("license-files", []) for name in map(str, ROOT.glob(pattern))]

        assert {Path(name).name for name in read} <= set(copied_sources(instructions))

    def test_installs_extras_that_exist_under_the_constraints(self, instructions: list[tuple[str, str]]) -> None:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        installs = [shlex.split(rest) for keyword, rest in instructions if keyword == "RUN" and "pip install" in rest]
        extras = [part[2:-1].split(",") for install in installs for part in install if part.startswith(".[")]

        assert extras == [["local", "hayhooks", "files"]]
        assert set(extras[0]) <= set(project["optional-dependencies"])
        assert installs
        assert all(install[install.index("--constraint") + 1] == "constraints.txt" for install in installs)

    def test_serves_as_an_ordinary_user_on_the_published_port(
        self, services: dict[str, Any], instructions: list[tuple[str, str]]
    ) -> None:
        keywords = [keyword for keyword, _ in instructions]
        last = dict(instructions)
        program = json.loads(last["CMD"])

        assert last["USER"] not in {"root", "0"}
        assert keywords.index("USER") > max(i for i, keyword in enumerate(keywords) if keyword in {"RUN", "COPY"})
        assert last["EXPOSE"] == services["hayhooks"]["environment"]["HAYHOOKS_PORT"]
        assert program == ["hayhooks", "run"]
        assert program[0] in {script.name for script in importlib.metadata.entry_points(group="console_scripts")}

    def test_build_arguments_are_declared(self, services: dict[str, Any], instructions: list[tuple[str, str]]) -> None:
        declared = {rest.partition("=")[0] for keyword, rest in instructions if keyword == "ARG"}

        assert set(services["hayhooks"]["build"]["args"]) == declared


@pytest.mark.skipif(shutil.which("bash") is None, reason="the health check of the qdrant image is written for bash")
class TestQdrantHealthCheck:
    @pytest.mark.parametrize(("status", "healthy"), [(200, True), (503, False), (404, False)])
    def test_follows_readyz(self, services: dict[str, Any], status: int, healthy: bool) -> None:
        with answering(status) as port:
            assert (health_check(services["qdrant"], port, old_port=6333).returncode == 0) is healthy

    def test_fails_where_nothing_listens(self, services: dict[str, Any]) -> None:
        assert health_check(services["qdrant"], free_port(), old_port=6333).returncode != 0

    def test_gives_up_on_a_silent_server(self, services: dict[str, Any]) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]

            assert health_check(services["qdrant"], port, old_port=6333).returncode != 0


@pytest.fixture
def hayhooks_port(services: dict[str, Any], tmp_path: Path) -> Iterator[int]:
    """A real hayhooks, started with the file's own environment on two tiny pipelines named like ours."""
    pytest.importorskip("hayhooks")
    pipelines = tmp_path / "pipelines"
    pipelines.mkdir()
    for name in ("indexing", "query"):
        (pipelines / f"{name}.yml").write_text(TINY_PIPELINE, encoding="utf-8")
    port = free_port()
    given = {name: value for name, value in services["hayhooks"]["environment"].items() if value is not None}
    moved = {"HAYHOOKS_HOST": "127.0.0.1", "HAYHOOKS_PORT": str(port), "HAYHOOKS_PIPELINES_DIR": str(pipelines)}
    environment = os.environ | {name: interpolate(value) for name, value in given.items()} | moved
    command = [str(Path(sysconfig.get_path("scripts"), "hayhooks")), "run"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=log, stderr=subprocess.STDOUT)
    try:
        wait_until(lambda: connects(port), process, tmp_path / "log")
        yield port
    finally:
        process.terminate()
        process.wait(timeout=20)


def connects(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_until(ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path, seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not ready():
        assert process.poll() is None, f"hayhooks stopped: {log.read_text()[-2000:]}"
        assert time.monotonic() < end, f"hayhooks is not up: {log.read_text()[-2000:]}"
        time.sleep(0.2)


class TestHayhooksHealthCheck:
    def test_wants_both_pipelines(self, services: dict[str, Any], hayhooks_port: int) -> None:
        healthy = health_check(services["hayhooks"], hayhooks_port, old_port=1416)
        undeploy = urllib.request.Request(f"http://127.0.0.1:{hayhooks_port}/undeploy/query", method="POST")
        urllib.request.urlopen(undeploy, timeout=20).close()
        lacking = health_check(services["hayhooks"], hayhooks_port, old_port=1416)

        assert healthy.returncode == 0, healthy.stderr
        assert lacking.returncode == 1
        assert "not deployed: ['query']" in lacking.stderr

    def test_fails_where_nothing_listens(self, services: dict[str, Any]) -> None:
        assert health_check(services["hayhooks"], free_port(), old_port=1416).returncode != 0
