# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from haystack import Document
from hypothesis import given
from hypothesis import strategies as st

from hichunk_haystack.inspector import Run, query_page, save_page, tree_page
from tests.inspector.cases import HOSTILE, POTS, leaves_of, merged, split

EVIL = f"{HOSTILE[0]}{HOSTILE[1]}{HOSTILE[2]} \u2028\u202e\ud800\x00"


class Parts(HTMLParser):
    """The elements of a page, and what stands in them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None], str]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self.elements.append(("/" + tag, {}, ""))

    def handle_data(self, data: str) -> None:
        if self.elements:
            tag, attributes, text = self.elements[-1]
            self.elements[-1] = (tag, attributes, text + data)

    def of(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [(attributes, text) for name, attributes, text in self.elements if name == tag]

    def data(self) -> dict[str, Any]:
        ((_, text),) = [(a, t) for a, t in self.of("script") if a.get("type") == "application/json"]
        return json.loads(text)


def hashed(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_the_policy_allows_what_the_page_carries_and_nothing_else() -> None:
    parts = Parts(tree_page(split(POTS)))
    (policy,) = [a["content"] or "" for a, _ in parts.of("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    ((_, style),) = parts.of("style")
    (script,) = [text for attributes, text in parts.of("script") if not attributes]
    assert rules == {
        "default-src": "'none'",
        "style-src": f"'sha256-{hashed(style)}'",
        "script-src": f"'sha256-{hashed(script)}'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    # Nothing in the page is fetched, and no element carries a style or a handler of its own.
    for _, attributes, _ in parts.elements:
        assert not {"src", "srcset", "style", "onclick", "onload"} & attributes.keys()
        assert attributes.get("href", "data:,") == "data:,"
    assert "url(" not in style
    assert "@import" not in style


def test_the_script_writes_text_never_markup() -> None:
    folder = resources.files("hichunk_haystack.inspector")
    names = sorted(path.name for path in folder.iterdir() if path.name.endswith(".js"))
    page = tree_page(split(POTS))
    for name in names:
        script = (folder / name).read_text(encoding="utf-8")
        assert script in page
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|fetch\(", script
        )


def test_hostile_texts_stay_data() -> None:
    nodes = split(f"# {EVIL}\n\nSome words.\n", name=EVIL)
    page = tree_page(nodes, title=EVIL)
    assert page.isascii()
    parts = Parts(page)
    assert [tag for tag, _, _ in parts.elements if tag in ("script", "img")] == ["script", "script"]
    assert page.count("<!--") == 1  # the licence
    data = parts.data()
    assert data["title"] == EVIL
    assert "".join(data["sources"][0]["texts"]) == nodes[0].content
    # An HTML parser takes NUL and surrogates away, so they are replaced in the tab's title.
    assert parts.of("title")[0][1].startswith(HOSTILE[0] + HOSTILE[1])


@given(st.text(alphabet=st.characters(codec=None), max_size=60))
def test_any_text_comes_through(text: str) -> None:
    trace = merged([], [Document(id="x", content="Words.")]).trace
    parts = Parts(query_page(text, [Run(text, trace, [{"id": "x", "content": text}])]))
    data = parts.data()
    assert (data["query"], data["runs"][0]["label"], data["runs"][0]["texts"]["x"]) == (text, text, text)
    assert len(parts.of("script")) == 2


@pytest.mark.parametrize("score", [float("nan"), float("inf"), -float("inf"), None, 0.5])
def test_any_score_comes_through(score: float | None) -> None:
    run = merged([], [Document(id="x", content="Words.", score=score)])
    shown = Parts(query_page("How?", [run])).data()["runs"][0]["trace"]["hits"][0]["score"]
    assert shown == (score if score in (None, 0.5) else str(score))


def test_titles() -> None:
    nodes = split(POTS)
    assert Parts(tree_page(nodes)).of("title")[0][1] == "pots.md"
    assert Parts(tree_page([*nodes, *split(POTS, "b.md")])).of("title")[0][1] == "2 sources"
    run = merged(nodes, leaves_of(nodes))
    assert Parts(query_page("Who & what?", [run])).of("title")[0][1] == "Who & what?"
    assert Parts(query_page("x" * 500, [run])).of("title")[0][1] == "x" * 119 + "…"


def test_save_page(tmp_path: Path) -> None:
    page = tree_page(split(POTS))
    path = save_page(page, tmp_path / "new" / "page.html")
    assert path.is_absolute()
    assert path.read_bytes() == page.encode()
