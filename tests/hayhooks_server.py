# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Real hayhooks servers on loopback ports, each in a process group of its own."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

REPOSITORY = Path(__file__).resolve().parents[1]

# Seconds; importing torch takes most of it on a busy machine.
_START = 240
_STOP = 15
_LOG_CHARACTERS = 6_000


@dataclass(frozen=True)
class Server:
    """A server that has come up."""

    url: str
    log: Path

    def client(self) -> httpx.Client:
        """Make a client that goes straight to the server, whatever proxies this machine has."""
        return httpx.Client(base_url=self.url, timeout=120, trust_env=False)


@contextmanager
def hayhooks(*command: str, folder: Path, **variables: str) -> Iterator[Server]:
    """
    Run a hayhooks server, and end it with all its children.

    :param command: What to run, "run" or "mcp", "run".
    :param folder: Where it works and writes: its Qdrant folder, its home and its log.
    :param variables: Environment variables besides those that every server of these tests gets.
    :returns: The server, once it answers.
    """
    port = _free_port()
    log = folder / "hayhooks.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [Path(sys.executable).with_name("hayhooks"), *command, "--host", "127.0.0.1", "--port", str(port)],
            cwd=folder,
            env=environment(folder) | variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        server = Server(f"http://127.0.0.1:{port}", log)
        _wait(server, process)
        yield server
    finally:
        _end(process)


def environment(folder: Path) -> dict[str, str]:
    """
    Give a child process what it needs, with nothing from outside that would change what it does.

    :param folder: Where it may write.
    :returns: Its environment variables.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HAYHOOKS_", "QDRANT_", "XDG_"))}
    return kept | {
        "HAYSTACK_DESERIALIZATION_ALLOWLIST": "hichunk_haystack",
        "HAYSTACK_TELEMETRY_ENABLED": "False",
        "HF_HUB_OFFLINE": "1",
        "HOME": str(folder),
        "PYTHONPATH": str(REPOSITORY),  # what is tested here, whatever is installed
        "PYTHONUNBUFFERED": "1",
        "QDRANT_PATH": str(folder / "qdrant"),
    }


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _wait(server: Server, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + _START
    with server.client() as client:
        while process.poll() is None and time.monotonic() < deadline:
            with suppress(httpx.TransportError):
                if client.get("/status").is_success:
                    return
            time.sleep(0.2)
    ended = process.returncode
    what = f"did not answer within {_START} seconds" if ended is None else f"ended with exit code {ended}"
    msg = f"hayhooks {what}. The end of its log:\n{server.log.read_text(errors='replace')[-_LOG_CHARACTERS:]}"
    raise RuntimeError(msg)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the whole process group, also what its leader left behind."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_STOP)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
