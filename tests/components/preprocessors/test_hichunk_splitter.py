# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import copy
import logging
import random
from pathlib import Path
from typing import Any

import pytest
from haystack import Document
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.utils import Secret
from hypothesis import given
from hypothesis import strategies as st

from hichunk_haystack.components.preprocessors import MarkdownHierarchicalSplitter
from hichunk_haystack.components.preprocessors.hichunk_splitter import HiChunkSplitError, HiChunkSplitter
from hichunk_haystack.hichunk.prompts import JSON_TEMPLATE
from hichunk_haystack.tokens import HuggingFaceTokenCounter
from hichunk_haystack.tree import from_documents
from tests.components.preprocessors.scripted_splitter import (
    POTTERY,
    TYPE,
    WORDPIECE,
    asked,
    page,
    splitter,
    two_sections,
)
from tests.hichunk.gold import shown_lines
from tests.hichunk.test_windows import LIES
from tests.test_tree import check_contract, prose


def test_a_text_without_headings_gets_the_sections_that_the_model_names() -> None:
    chunker = splitter(two_sections)
    source = Document(content=POTTERY, meta={"file_path": "pottery.txt"})
    result = chunker.run([source])
    assert shown_lines(asked(chunker)[0]) == [
        "Kiln and wheel",
        "The kiln stands in the yard.",
        "It is fired slowly, over eight hours.",
        "How to centre",
        "Centre the clay before you open it.",
        "Keep the sponge wet all the time.",
    ]
    assert [
        (node.meta["__level"], node.meta["headings"], (node.content or "").split("\n")[0])
        for node in result["documents"]
    ] == [
        (0, [], "Kiln and wheel"),
        (1, ["Kiln and wheel"], "Kiln and wheel"),
        (1, ["How to centre"], "How to centre"),
    ]
    assert result["report"] == [
        {
            "source_id": source.id,
            "file_path": "pottery.txt",
            "windows": 1,
            "calls": 1,
            "cached": 0,
            "prompt_tokens": WORDPIECE.count_texts(asked(chunker))[0],
            # 0 , level one , true, twice
            "answer_tokens": 12,
            "retries": 0,
            "dropped": {},
            "fallbacks": 0,
            "lines": 6,
            "cut_points": 2,
            "error": None,
        }
    ]


def test_a_line_that_is_no_title_starts_a_section_without_one_and_a_heading_keeps_its_title() -> None:
    nodes = splitter(lambda _: "0, Level One, False\n3, Level One, False").run([Document(content=POTTERY)])["documents"]
    assert [node.meta["headings"] for node in nodes] == [[], [], []]
    marked = POTTERY.replace("How to", "# How to")
    nodes = splitter(lambda _: "0, Level One\n3, Level One, False").run([Document(content=marked)])["documents"]
    assert [node.meta["headings"] for node in nodes] == [[], [], ["How to centre"]]


def test_json_may_be_asked_for() -> None:
    chunker = splitter(lambda _: '{"cut_points": [{"line": 3, "level": 1, "title": true}]}', answer_format="json")
    nodes = chunker.run([Document(content=POTTERY)])["documents"]
    assert [node.meta["headings"] for node in nodes] == [[], [], ["How to centre"]]
    assert asked(chunker)[0].startswith(JSON_TEMPLATE.split("{lines}")[0])


def test_the_instruction_can_be_ones_own_and_marks_can_be_hidden() -> None:
    chunker = splitter(
        two_sections, prompt_template="Cut it!\n{lines}\nNow.", hide_heading_marks=True, sentence_chars=10
    )
    chunker.run([Document(content="# Kiln\n\nFire it slowly over eight hours.")])
    assert asked(chunker) == ["Cut it!\n0 @ Kiln\n1 @ Fire it sl\nNow."]


def test_when_the_model_is_no_good_the_tree_is_that_of_the_headings(rust_book: dict[str, str]) -> None:
    sources = [Document(content=text) for text in list(rust_book.values())[20:24]]
    chunker = splitter(lambda _: "I am not sure.", window_tokens=2048, min_leaf_tokens=20)
    expected = MarkdownHierarchicalSplitter(token_counter=WORDPIECE).run(sources)["documents"]
    result = chunker.run(sources)
    keys = ("__level", "split_idx_start", "split_idx_end", "headings", "token_count", "source_id")
    assert [[node.meta[key] for key in keys] for node in result["documents"]] == [
        [node.meta[key] for key in keys] for node in expected
    ]
    assert all(report["fallbacks"] == report["windows"] for report in result["report"])


def test_one_documents_failure_leaves_the_others(caplog: pytest.LogCaptureFixture) -> None:
    sources = [page("one"), page("two"), page("three")]

    def reply(prompt: str) -> str | Exception:
        return ConnectionError("refused") if "Page two" in prompt else "0, Level One, True\n3, Level One, True"

    with caplog.at_level(logging.WARNING):
        result = splitter(reply).run(sources)
    assert [node.meta["file_path"] for node in result["documents"]] == ["one.txt"] * 3 + ["two.txt"] + ["three.txt"] * 3
    assert [report["fallbacks"] for report in result["report"]] == [0, 1, 0]
    assert [record.getMessage() for record in caplog.records] == [
        "'two.txt': 1 of 1 windows came to nothing; window 1, lines 0 to 5: ConnectionError: refused"
    ]
    with pytest.raises(
        HiChunkSplitError, match=r"1 of 3 documents could not be chunked\. 'two\.txt': window 1"
    ) as caught:
        splitter(reply, on_failure="raise").run(sources)
    assert [node.meta["file_path"] for node in caught.value.documents] == ["one.txt"] * 3 + ["three.txt"] * 3
    assert [report["error"] is None for report in caught.value.report] == [True, False, True]


def test_documents_without_text_and_one_that_comes_twice_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    empty, blank, source = Document(content=None, meta={"file_path": "none.md"}), Document(content=" \n"), page("one")
    chunker = splitter(two_sections)
    with caplog.at_level(logging.WARNING):
        result = chunker.run([empty, source, blank, source])
    assert len(result["documents"]) == 3
    assert [report["file_path"] for report in result["report"]] == ["one.txt"]
    assert len(asked(chunker)) == 1
    messages = "\n".join(record.getMessage() for record in caplog.records)
    assert "'none.md' has no text" in messages
    assert f"document '{blank.id}' has no text" in messages
    assert "'one.txt' comes twice" in messages
    assert chunker.run([]) == {"documents": [], "report": []}


def test_what_is_no_document_is_refused_before_the_model_is_asked() -> None:
    chunker = splitter(two_sections)
    with pytest.raises(TypeError, match="takes Documents, but got a str"):
        chunker.run([page("one"), "text"])  # type: ignore[list-item]
    assert asked(chunker) == []


def test_the_callers_documents_are_not_changed() -> None:
    source = Document(content=POTTERY, meta={"tags": ["clay"]}, embedding=[0.1])
    before = copy.deepcopy(source)
    nodes = splitter(two_sections).run([source])["documents"]
    nodes[0].meta["tags"].append("changed")
    assert source == before


def test_ids_hang_on_what_the_model_answered() -> None:
    def ids(answer: str) -> list[str]:
        return [node.id for node in splitter(lambda _: answer).run([Document(content=POTTERY)])["documents"]]

    first = ids("0, Level One, True\n3, Level One, True")
    assert ids("- 3, level 1, yes\n- 0, level 1, yes") == first
    other = ids("0, Level One, True\n4, Level One, False")
    # The root keeps the source's id; no other node of one tree is taken for a node of the other.
    assert first[0] == other[0] == Document(content=POTTERY).id
    assert not set(first[1:]) & set(other[1:])


def test_serialisation_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAYSTACK_DESERIALIZATION_ALLOWLIST", "hichunk_haystack")
    generator = OpenAIChatGenerator(api_key=Secret.from_env_var("KEY"), model="hichunk-4b", api_base_url="http://a/v1")
    defaults = {
        "chat_generator": generator.to_dict(),
        "prompt_template": None,
        "answer_format": "lines",
        "window_tokens": 16384,
        "sentence_chars": 100,
        "hide_heading_marks": False,
        "leaf_tokens": 200,
        "min_leaf_tokens": 20,
        "max_level": 10,
        "inner_tokens": None,
        "language": "en",
        "token_counter": None,
        "max_retries": 2,
        "on_failure": "structure",
        "max_workers": 4,
        "cache_dir": None,
        "progress_bar": True,
    }
    assert HiChunkSplitter(generator).to_dict() == {"type": TYPE, "init_parameters": defaults}
    changed = {
        "chat_generator": {**generator.to_dict()},
        "prompt_template": "Cut: {lines}",
        "answer_format": "json",
        "window_tokens": 4096,
        "sentence_chars": 80,
        "hide_heading_marks": True,
        "leaf_tokens": 100,
        "min_leaf_tokens": 10,
        "max_level": 4,
        "inner_tokens": [500],
        "language": "zh",
        "token_counter": HuggingFaceTokenCounter("some/model").to_dict(),
        "max_retries": 0,
        "on_failure": "single",
        "max_workers": 1,
        "cache_dir": "answers",
        "progress_bar": False,
    }
    data = {"type": TYPE, "init_parameters": changed}
    revived = HiChunkSplitter.from_dict(copy.deepcopy(data))
    assert revived.to_dict() == data
    assert isinstance(revived.chat_generator, OpenAIChatGenerator)
    assert isinstance(revived.token_counter, HuggingFaceTokenCounter)
    assert HiChunkSplitter(generator, cache_dir=Path("answers")).to_dict()["init_parameters"]["cache_dir"] == "answers"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"answer_format": "xml"}, "answer_format is 'xml'; it must be one of lines, json"),
        ({"on_failure": "ignore"}, "on_failure is 'ignore'; it must be one of structure, single, raise"),
        ({"prompt_template": "Cut it."}, r"prompt_template holds \{lines\} 0 times"),
        ({"sentence_chars": 9}, "sentence_chars is 9; it must be at least 10"),
        ({"max_retries": -1}, "max_retries is -1"),
        ({"max_workers": 0}, "max_workers is 0"),
        ({"leaf_tokens": 0}, "leaf_tokens is 0"),
    ],
)
def test_parameters_that_make_no_sense_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        splitter(two_sections, **options)


def test_a_window_that_the_instruction_fills_is_refused() -> None:
    with pytest.raises(ValueError, match="window_tokens is 100, but the instruction alone takes"):
        splitter(two_sections, window_tokens=100).run([page("one")])


@given(prose.filter(lambda text: text.strip()), st.integers(0, 2**32), st.sampled_from(["structure", "single"]))
def test_the_tree_contract_holds_whatever_the_model_says(text: str, seed: int, on_failure: str) -> None:
    chance = random.Random(seed)

    def reply(prompt: str) -> str | Exception:
        if chance.random() < 0.2:
            return chance.choice([RuntimeError("out of memory"), *LIES])
        count = len(shown_lines(prompt))
        rows = range(chance.randrange(1, 12))
        return "\n".join(f"{chance.randrange(-2, count + 2)}, Level {chance.choice([1, 1, 2, 3, 9, 12])}" for _ in rows)

    source = text * 4
    chunker = splitter(
        reply, prompt_template="{lines}", window_tokens=64, leaf_tokens=20, on_failure=on_failure, max_retries=1
    )
    nodes = chunker.run([Document(id="source", content=source)])["documents"]
    check_contract(source, from_documents(nodes), WORDPIECE, 20)
    assert len({node.id for node in nodes}) == len(nodes)
    assert all(
        (node.content or "") == source[node.meta["split_idx_start"] : node.meta["split_idx_end"]] for node in nodes
    )
