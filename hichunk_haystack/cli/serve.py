# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""`hichunk serve`."""

import importlib.util
import os
import signal
import socket
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
import yaml

from hichunk_haystack.cli.errors import UserError
from hichunk_haystack.cli.options import Store, Verbose
from hichunk_haystack.cli.screen import warn
from hichunk_haystack.cli.specs import PipelineSpec, read_spec
from hichunk_haystack.extras import pip_install

_ALLOWED = "HAYSTACK_DESERIALIZATION_ALLOWLIST"


def serve(
    host: Annotated[str, typer.Option("--host", help="Address to listen at. There is no log-in.")] = "localhost",
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port to listen at.")] = 1416,
    pipelines: Annotated[
        list[str] | None,
        typer.Option(
            "--pipeline", "-p", metavar="YAML", help="What to serve instead of indexing and query; repeatable."
        ),
    ] = None,
    store: Store = None,
    verbose: Verbose = False,  # noqa: ARG001 - the guard around commands reads it
) -> None:
    """Serve the pipelines over HTTP with hayhooks, until Ctrl-C."""
    specs = [read_spec(name, "indexing", store) for name in pipelines or ("indexing", "query")]
    for spec in specs:
        _check(spec)
    if importlib.util.find_spec("hayhooks") is None:
        msg = f"Serving needs hayhooks: {pip_install('hayhooks')}."
        raise UserError(msg)
    _check_port(host, port)
    allowed = os.environ.get(_ALLOWED, "")
    os.environ[_ALLOWED] = ",".join(part for part in (allowed, "hichunk_haystack") if part)
    from hayhooks.cli.base import run

    # What ends the process has to leave through here, or the folder would stay.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    with TemporaryDirectory(prefix="hichunk-") as folder:
        for spec in specs:
            text = yaml.safe_dump(spec.data, sort_keys=False, allow_unicode=True)
            Path(folder, f"{spec.path.stem}.yml").write_text(text, encoding="utf-8")
        names = " and ".join(f"/{spec.path.stem}/run" for spec in specs)
        warn(f"Serving {names} at http://{host}:{port} (what they take: /docs). Ctrl-C ends it.")
        run(host=host, port=port, pipelines_dir=folder)
    raise KeyboardInterrupt  # which the server has taken for itself


def _check(spec: PipelineSpec) -> None:
    """hayhooks only logs what it can't serve."""
    for kind in ("inputs", "outputs"):
        if not isinstance(spec.data.get(kind), dict):
            msg = f"'{spec.path}' declares no `{kind}`, which hayhooks needs; `hichunk` itself comes with examples."
            raise UserError(msg)


def _check_port(host: str, port: int) -> None:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        msg = f"Can't listen at {host}:{port} ({error.strerror or error}): choose another one with --port or --host."
        raise UserError(msg) from None
