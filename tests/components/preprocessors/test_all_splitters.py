# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""What every splitter keeps, whatever it finds in a text."""

import copy
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from haystack import Document, component, default_from_dict, default_to_dict
from haystack.dataclasses import ChatMessage

from hichunk_haystack.components.preprocessors import (
    AutoHierarchicalSplitter,
    HiChunkSplitter,
    MarkdownHierarchicalSplitter,
    PlainTextHierarchicalSplitter,
    SemanticHierarchicalSplitter,
    TokenHierarchicalSplitter,
)
from hichunk_haystack.tokens import HuggingFaceTokenCounter
from hichunk_haystack.tree import from_documents
from tests.hichunk.gold import NUMBERED, row
from tests.test_tree import check_contract
from tests.word_embedder import WordEmbedder

LEAF = 24


@component
class ShortLinesGenerator:
    """In place of a model: says that a section starts at each short line that ends no sentence."""

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]) -> dict[str, list[ChatMessage]]:
        lines = NUMBERED.findall(messages[0].text or "")
        starts = [int(number) for number, line in lines if len(line) < 30 and line.strip()[-1:].isalnum()]
        rows = [row(number, 1 + place % 3) for place, number in enumerate(starts)]
        return {"replies": [ChatMessage.from_assistant("\n".join(rows))]}

    def to_dict(self) -> dict[str, Any]:
        return default_to_dict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "ShortLinesGenerator":
        return default_from_dict(cls, data)


SPLITTERS: dict[str, Callable[[], Any]] = {
    "auto": lambda: AutoHierarchicalSplitter(leaf_tokens=LEAF, min_leaf_tokens=4),
    "auto with embedder": lambda: AutoHierarchicalSplitter(
        embedder=WordEmbedder(), leaf_tokens=LEAF, min_leaf_tokens=4
    ),
    "hichunk": lambda: HiChunkSplitter(
        ShortLinesGenerator(), window_tokens=2048, leaf_tokens=LEAF, min_leaf_tokens=4, progress_bar=False
    ),
    "markdown": lambda: MarkdownHierarchicalSplitter(leaf_tokens=LEAF, min_leaf_tokens=4),
    "plain text": lambda: PlainTextHierarchicalSplitter(leaf_tokens=LEAF, min_leaf_tokens=4),
    "semantic": lambda: SemanticHierarchicalSplitter(WordEmbedder(), leaf_tokens=LEAF, min_leaf_tokens=4),
    "token": lambda: TokenHierarchicalSplitter([200, LEAF]),
}
PROSE = "The kiln is fired slowly, over eight hours. Then it cools for a whole day. "
TEXTS = {
    "one character": "k",
    "one accent": "\u0301",
    "markdown": f"Before.\n\n# Kiln\n\n{PROSE * 4}\n\n### Glaze\n\n- dip\n- wait\n\n| a | b |\n|---|---|\n"
    + "| 1 | 2 |\n" * 20,
    "plain": f"1 Kiln\n\n{PROSE * 3}\n\n1.1 Cooling\n\n{PROSE * 3}\n\n2 Wheel\n\n{PROSE * 3}\n",
    "no headings": f"{PROSE * 5}\n\n{PROSE * 5}\n\nGlaze is mixed with water. Sieve it twice.\n\n" * 3,
    "carriage returns": f"# Kiln\r\n\r\n{PROSE}\r\n\r\n## Cooling\r\n\r\n{PROSE}\r\n" * 3,
    "lone carriage returns": f"Kiln\r\r{PROSE}\r\r" * 4,
    "NUL": f"{PROSE}\x00{PROSE}\x00\x00\n\n\x00# Kiln\x00\n\n{PROSE}",
    "combining marks": "e\u0301a\u0308 " * 100 + "o" + "\u0301" * 300,
    "emoji": "👩‍👩‍👧👍🏽 🏳️‍🌈🇫🇷 " * 60,
    "right to left": "الفرن يسخن ببطء. ثم يبرد ليوم كامل.\n\n" * 10 + "כבשן קדרות. ",
    "Chinese": "窑要慢慢烧。然后冷却一天！好吗？" * 20,
    "page breaks": f"{PROSE * 2}\f{PROSE * 2}\n\f\n\f\f1 Kiln\n\n{PROSE}\f",
    "byte order mark": f"\ufeff# Kiln\n\n{PROSE * 3}",
    "blank around": f"\n\n \t\n{PROSE * 4}\n\n\n   ",
    "listing": "```python\n" + "def fire(kiln):\n    heat(kiln)\n    return kiln\n\n" * 20 + "```\n",
    "code cut off": "```rust\nfn a() { /* \n" + "x \" ' ` ( [ {\n" * 40,
    "pipes": "| a\n|\n||\n|||\n+---+\n| b | c |\n" * 10,
    "lone surrogate": f"{PROSE}\ud800{PROSE}",
    "long word": "x" * 5_000,
}


@pytest.fixture(params=SPLITTERS, scope="module")
def make(request: pytest.FixtureRequest) -> Callable[[], Any]:
    return SPLITTERS[request.param]


def source(text: str, number: int = 0) -> Document:
    # An id of its own: Haystack can make none of a lone surrogate.
    return Document(id=f"source {number}", content=text, meta={"file_path": "a.txt", "tags": ["x"]})


@pytest.mark.parametrize("name", TEXTS)
def test_the_tree_contract(make: Callable[[], Any], name: str) -> None:
    text = TEXTS[name]
    document = source(text)
    before = copy.deepcopy(document.meta)
    nodes = make().run([document])["documents"]
    check_contract(text, from_documents(nodes), HuggingFaceTokenCounter(), LEAF)
    assert nodes[0].id == document.id
    assert len({node.id for node in nodes}) == len(nodes)
    assert all(node.content == text[node.meta["split_idx_start"] : node.meta["split_idx_end"]] for node in nodes)
    assert all(node.meta["source_id"] == document.id and node.meta["tags"] == ["x"] for node in nodes)
    assert (document.content, document.meta) == (text, before)


def test_all_texts_at_once_in_threads_and_again(make: Callable[[], Any]) -> None:
    splitter = make()
    documents = [source(text, number) for number, text in enumerate(TEXTS.values())]
    together = splitter.run(documents)["documents"]
    with ThreadPoolExecutor(4) as pool:
        apart = [node for nodes in pool.map(lambda one: splitter.run([one])["documents"], documents) for node in nodes]
    assert apart == together
    assert make().run(documents)["documents"] == together


@pytest.mark.parametrize("text", ["", " ", "\n\t\r\n", "\f\u2028", None])
def test_no_text_no_nodes(make: Callable[[], Any], text: str | None) -> None:
    assert make().run([Document(content=text), source(PROSE)])["documents"][0].content == PROSE
    assert make().run([Document(content=text)])["documents"] == []
    assert make().run([])["documents"] == []


_COUNTS: dict[str, int] = {}


@pytest.fixture
def counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one splitter had counted is not counted again for the next: they cut a line without structure alike."""
    count = HuggingFaceTokenCounter.count_texts

    def remembered(self: HuggingFaceTokenCounter, texts: Sequence[str]) -> list[int]:
        new = list(dict.fromkeys(text for text in texts if text not in _COUNTS))
        _COUNTS.update(zip(new, count(self, new), strict=True))
        return [_COUNTS[text] for text in texts]

    monkeypatch.setattr(HuggingFaceTokenCounter, "count_texts", remembered)


@pytest.mark.usefixtures("counted_once")
def test_a_line_of_five_megabytes(make: Callable[[], Any]) -> None:
    text = "x" * 5_000_000
    nodes = make().run([source(text)])["documents"]
    leaves = [node for node in nodes if not node.meta["__children_ids"]]
    assert "".join(leaf.content for leaf in leaves) == text
    assert all(leaf.meta["token_count"] <= LEAF for leaf in leaves)


def test_serialisation_and_what_is_no_document(make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAYSTACK_DESERIALIZATION_ALLOWLIST", "tests,hichunk_haystack")
    splitter = make()
    assert type(splitter).from_dict(splitter.to_dict()).to_dict() == splitter.to_dict()
    with pytest.raises(TypeError, match="got a str"):
        splitter.run(["text"])


def test_a_table_cut_between_rows_keeps_its_header_in_meta(make: Callable[[], Any]) -> None:
    header = "| day | kiln | potter |\n|---|---|---|\n"
    rows = "".join(f"| day {number} | kiln {number % 3} | potter {number} |\n" for number in range(20))
    nodes = make().run([source(f"{PROSE}\n\n{header}{rows}\n{PROSE}\n")])["documents"]
    leaves = [node for node in nodes if not node.meta["__children_ids"]]
    inside = [leaf for leaf in leaves if leaf.content.startswith("| day ") and not leaf.content.startswith("| day |")]
    assert len(inside) > 5
    assert all(leaf.meta["table_header"] == header.rstrip() for leaf in inside)
    # So does a group of rows, which may be what a merge returns.
    starts = {leaf.meta["split_idx_start"] for leaf in inside}
    for node in nodes:
        assert node.meta.get("table_header") == (header.rstrip() if node.meta["split_idx_start"] in starts else None)


_MEMORY = """
import sys
from pathlib import Path
from haystack import Document
from tests.components.preprocessors.test_all_splitters import SPLITTERS, PROSE

def peak(splitter, numbers):
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from what is held now
    for number in numbers:
        splitter.run([Document(content=f"# Kiln {number}\\n\\n" + (PROSE * 10 + "\\n\\n") * 100)])
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) // 1024

for name, make in SPLITTERS.items():
    splitter = make()
    print(name, peak(splitter, range(2)), peak(splitter, range(2, 12)), sep="|")
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="needs Linux's peak of memory, which can be reset"
)
def test_memory_grows_with_the_largest_document() -> None:
    done = subprocess.run([sys.executable, "-c", _MEMORY], check=True, capture_output=True, text=True)
    peaks = [line.split("|") for line in done.stdout.splitlines()]
    assert [name for name, _, _ in peaks] == list(SPLITTERS)
    # Ten more documents of 75,000 characters; their nodes would be 12 MiB.
    assert [name for name, few, many in peaks if int(many) > int(few) + 7] == []
