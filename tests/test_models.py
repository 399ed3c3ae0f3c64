# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import json
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest
from huggingface_hub import constants, file_download

from hichunk_haystack.models import PACKAGED_MODELS, ModelNotFoundError, packaged_model, resolve_model

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
WHOLE = {"config.json": "{}", "model.safetensors": "weights", "tokenizer.json": "{}"}
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the hub, and the hub switched off."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path / "hub"


class Hub(BaseHTTPRequestHandler):
    """A hub that has one repository, for real requests of the real client."""

    files: ClassVar[dict[str, bytes]] = {
        "/org/model/resolve/main/tokenizer.json": b'{"a": 1}',
        "/org/model/resolve/main/config.json": b"{}",
    }
    asked: ClassVar[list[tuple[str, str, str | None]]] = []

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        if self.path.startswith("/org/"):  # the client also asks for a list of its own, once
            self.asked.append((self.command, self.path, self.headers.get("authorization")))
        body = self.files.get(self.path)
        self.send_response(200 if body is not None else 404)
        self.send_header("X-Repo-Commit", COMMIT)
        if body is None:
            self.send_header("X-Error-Code", "EntryNotFound")
        else:
            self.send_header("ETag", '"abc"')
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        if with_body and body is not None:
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Hub]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = Thread(target=server.serve_forever)
    thread.start()
    _use_hub(monkeypatch, f"http://127.0.0.1:{server.server_port}")
    Hub.asked.clear()
    yield Hub
    server.shutdown()
    thread.join()
    server.server_close()


def _use_hub(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", address)
    template = address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(file_download, "HUGGINGFACE_CO_URL_TEMPLATE", template, raising=False)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)


def put(cache: Path, name: str, files: dict[str, str], revision: str = "main") -> Path:
    """Lay files into the cache as the hub's client does: blobs, links to them in a snapshot, a reference."""
    repository = cache / f"models--{name.replace('/', '--')}"
    snapshot = repository / "snapshots" / COMMIT
    (repository / "blobs").mkdir(parents=True, exist_ok=True)
    (repository / "refs").mkdir(exist_ok=True)
    (repository / "refs" / revision).write_text(COMMIT, encoding="utf-8")
    for number, (file, text) in enumerate(files.items()):
        blob = repository / "blobs" / str(number)
        blob.write_text(text, encoding="utf-8")
        (snapshot / file).parent.mkdir(parents=True, exist_ok=True)
        (snapshot / file).symlink_to(blob)
    return snapshot


def test_a_path_is_taken_as_it_is(tmp_path: Path) -> None:
    assert resolve_model(str(tmp_path)) == str(tmp_path)
    file = tmp_path / "tokenizer.json"
    file.write_text("{}", encoding="utf-8")
    assert resolve_model(str(file), probe="tokenizer.json") == str(file)


def test_the_packaged_model_needs_no_network() -> None:
    folder = Path(resolve_model(MINILM))
    assert folder == packaged_model(MINILM)
    assert (folder / "model.safetensors").is_file()
    assert resolve_model(MINILM, probe="tokenizer.json") == str(folder)


def test_no_package_for_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert packaged_model("nobody/nothing-here") is None
    monkeypatch.setitem(PACKAGED_MODELS, "org/model", ("no_such_package_here", "model", "no-such-package-here"))
    assert packaged_model("org/model") is None
    with pytest.raises(ModelNotFoundError, match=r"pip install no-such-package-here \(or hichunk-haystack\[local\]\)"):
        resolve_model("org/model")


def test_a_whole_copy_in_the_cache_comes_first(cache: Path) -> None:
    snapshot = put(cache, MINILM, WHOLE)
    assert resolve_model(MINILM) == str(snapshot)
    assert resolve_model(MINILM, probe="tokenizer.json") == str(snapshot)


def test_the_real_model_in_the_cache_is_whole(cache: Path) -> None:
    packaged = packaged_model(MINILM)
    assert packaged is not None
    repository = cache / "models--sentence-transformers--all-MiniLM-L6-v2"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT, encoding="utf-8")
    (repository / "snapshots").mkdir()
    (repository / "snapshots" / COMMIT).symlink_to(packaged, target_is_directory=True)
    assert resolve_model(MINILM) == str(repository / "snapshots" / COMMIT)


NORMALIZE = json.dumps(
    [
        {"path": "", "type": "sentence_transformers.models.Transformer"},
        {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
    ]
)
STATIC = json.dumps([{"path": "0_Static", "type": "sentence_transformers.models.StaticEmbedding"}])
SHARDS = json.dumps({"weight_map": {"layer.0": "model-1-of-2.safetensors", "layer.1": "model-2-of-2.safetensors"}})
SHARDED = {"config.json": "{}", "model.safetensors.index.json": SHARDS, "vocab.txt": ""}


@pytest.mark.parametrize(
    ("files", "whole"),
    [
        (WHOLE, True),
        ({**WHOLE, "modules.json": NORMALIZE, "1_Pooling/config.json": "{}"}, True),
        ({**WHOLE, "modules.json": NORMALIZE}, False),
        ({"config.json": "{}"}, False),
        ({"config.json": "{}", "model.safetensors": ""}, False),
        ({"config.json": "{}", "model.safetensors": "", "tokenizer_config.json": "{}"}, False),
        ({"config.json": "{}", "pytorch_model.bin": "", "vocab.txt": ""}, True),
        ({"config.json": "{}", "onnx/model.onnx": "", "sentencepiece.bpe.model": ""}, True),
        ({"modules.json": STATIC, "0_Static/model.safetensors": "", "0_Static/tokenizer.json": ""}, True),
        ({"modules.json": STATIC, "0_Static/tokenizer.json": ""}, False),
        ({**SHARDED, "model-1-of-2.safetensors": ""}, False),
        ({**SHARDED, "model-1-of-2.safetensors": "", "model-2-of-2.safetensors": ""}, True),
    ],
)  # fmt: skip
def test_a_partial_copy_does_not_hide_the_packaged_model(cache: Path, files: dict[str, str], whole: bool) -> None:
    snapshot = put(cache, MINILM, files)
    assert resolve_model(MINILM) == str(snapshot if whole else packaged_model(MINILM))


def test_a_partial_copy_alone_is_not_enough(cache: Path) -> None:
    snapshot = put(cache, "org/model", {"config.json": "{}"})
    with pytest.raises(ModelNotFoundError, match="its cache holds only a part of it") as caught:
        resolve_model("org/model")
    assert str(snapshot) in str(caught.value)
    assert "HF_HUB_OFFLINE" in str(caught.value)


def test_a_tokenizer_needs_its_one_file_only(cache: Path) -> None:
    snapshot = put(cache, "org/model", {"tokenizer.json": "{}"})
    assert resolve_model("org/model", probe="tokenizer.json") == str(snapshot)
    with pytest.raises(ModelNotFoundError):
        resolve_model("org/model", probe="other.json")


def test_a_revision_is_not_answered_with_the_packaged_model(cache: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=f"hf download {MINILM} --revision v2") as caught:
        resolve_model(MINILM, revision="v2")
    assert "pip install" not in str(caught.value)
    snapshot = put(cache, MINILM, WHOLE, revision="v2")
    assert resolve_model(MINILM, revision="v2") == str(snapshot)


@pytest.mark.parametrize("name", ["./models/none", "a/b/c", "/no/such/folder", "white space", ""])
def test_what_is_neither_path_nor_name(name: str) -> None:
    with pytest.raises(ModelNotFoundError, match="neither a folder or file on this machine nor the name of a model"):
        resolve_model(name)


def test_the_hub_is_asked_and_its_file_is_kept(hub: type[Hub], cache: Path) -> None:
    folder = Path(resolve_model("org/model", probe="tokenizer.json", token="hf_secret"))
    assert folder == cache / "models--org--model" / "snapshots" / COMMIT
    assert (folder / "tokenizer.json").read_bytes() == b'{"a": 1}'
    assert {authorization for _, _, authorization in hub.asked} == {"Bearer hf_secret"}
    hub.asked.clear()
    assert resolve_model("org/model", probe="tokenizer.json") == str(folder)
    assert hub.asked == []


def test_a_model_of_the_hub_keeps_its_name_and_is_not_downloaded_here(hub: type[Hub], cache: Path) -> None:
    assert resolve_model("org/model") == "org/model"
    # It has no modules.json, as models of transformers have none.
    assert [(command, path.rsplit("/", 1)[1]) for command, path, _ in hub.asked] == [
        ("HEAD", "modules.json"),
        ("HEAD", "config.json"),
    ]
    assert not cache.exists()


def test_a_model_that_the_hub_has_not(hub: type[Hub]) -> None:
    with pytest.raises(ModelNotFoundError, match="the hub could not give it"):
        resolve_model("org/other")


def test_only_local_files(hub: type[Hub]) -> None:
    with pytest.raises(ModelNotFoundError, match="only local files are allowed"):
        resolve_model("org/model", local_only=True)
    assert hub.asked == []


def test_a_hub_out_of_reach_costs_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    _use_hub(monkeypatch, "http://127.0.0.1:9")  # nobody listens there
    start = time.monotonic()
    with pytest.raises(ModelNotFoundError, match=r"the hub could not give it .*Ways to get it: download it once"):
        resolve_model("nobody/nothing-here")
    assert time.monotonic() - start < 5
