# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""The page of a source in a real browser."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from haystack import Document
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from hichunk_haystack.inspector import tree_page
from hichunk_haystack.tree import CutPoint, TreeBuilder, to_documents
from tests.inspector.cases import COUNTER, HANDBOOK, HOSTILE, POTS, leaves_of, split

Open = Callable[..., Any]

ROWS = "[role=tree] [role=treeitem]"
VISIBLE = f"return [...document.querySelectorAll('{ROWS}')].filter((row) => row.firstElementChild.checkVisibility())"


def names(page: Any) -> list[str]:
    """What a screen reader is told of each row that can be seen."""
    return page.run(VISIBLE + ".map((row) => row.getAttribute('aria-label'))")


def press(page: Any, *keys: str) -> None:
    for key in keys:
        page.chrome.switch_to.active_element.send_keys(key)


def in_view(page: Any, selector: str) -> bool:
    return page.run(
        "const box = document.querySelector(arguments[0]).getBoundingClientRect();"
        "const pane = document.querySelector('.reading').getBoundingClientRect();"
        "return box.bottom > pane.top && box.top < pane.bottom",
        selector,
    )


def test_totals_and_text(open_page: Open) -> None:
    nodes = split(POTS)
    page = open_page(tree_page(nodes))
    facts = dict(zip(page.texts(".totals dt"), page.texts(".totals dd"), strict=True))
    lengths = sorted(leaf.meta["token_count"] for leaf in leaves_of(nodes))
    assert facts == {
        "tokens": str(nodes[0].meta["token_count"]),
        "characters": str(len(POTS)),
        "nodes": str(len(nodes)),
        "leaves": str(len(lengths)),
        "levels": str(1 + max(node.meta["__level"] for node in nodes)),
    }
    assert f"leaves of {lengths[0]} to {lengths[-1]} tokens" in page.text(".histogram figcaption")
    assert "".join(page.texts(".leaf .body")) == POTS
    # Each leaf has a bar for each node that it lies in.
    assert page.run(
        "return [...document.querySelectorAll('.leaf')].map((leaf) => leaf.querySelectorAll('.bar').length)"
    ) == [leaf.meta["__level"] + 1 for leaf in leaves_of(nodes)]
    # Titles stand out where their sections begin; not in the text of a leaf that goes on.
    assert [line.strip() for line in page.texts(".leaf b")] == [
        "# Pots", "## Throwing", "### Bowls", "### Mugs", "## Firing",
    ]  # fmt: skip


def test_the_tree_by_keyboard(open_page: Open) -> None:
    nodes = split(POTS)
    page = open_page(tree_page(nodes))
    tokens = {tuple(node.meta["headings"]): node.meta["token_count"] for node in reversed(nodes)}
    root = f"Pots, level 0, {tokens['Pots',]} tokens, 3 children"
    throwing = f"Throwing, level 1, {tokens['Pots', 'Throwing']} tokens, 3 children"
    firing = f"Firing, level 1, {tokens['Pots', 'Firing']} tokens, 3 children"
    assert [name.split(", level")[0] for name in names(page)][:6] == [
        "Pots", "# Pots", "Throwing", "## Throwing", "Bowls", "Mugs",
    ]  # fmt: skip
    page.chrome.find_element(By.ID, "search").send_keys(Keys.TAB)
    assert page.active() == root
    press(page, Keys.DOWN, Keys.DOWN)
    assert page.active() == throwing
    press(page, Keys.RIGHT)  # it is open already: to its first child
    assert page.active().startswith("## Throwing, level 2")
    press(page, Keys.DOWN, Keys.DOWN, Keys.DOWN)
    assert page.active() == firing
    press(page, Keys.LEFT)
    opened = len(names(page))
    press(page, Keys.RIGHT)
    assert len(names(page)) == opened + 3
    press(page, Keys.LEFT, Keys.LEFT)
    assert page.active() == root
    press(page, "f")
    assert page.active() == firing
    press(page, Keys.HOME)
    assert page.active() == root
    press(page, Keys.LEFT)
    assert names(page) == [root]
    press(page, Keys.RIGHT, Keys.END)
    assert page.active() == firing
    press(page, Keys.ENTER)
    assert page.run("return document.activeElement.getAttribute('aria-selected')") == "true"
    assert "".join(page.texts(".leaf.marked .body")) == POTS[POTS.index("## Firing") :]
    assert page.text("#live").startswith(firing)
    # One row is in the tab order, whatever was done.
    assert page.count(f"{ROWS}[tabindex='0']") == 1
    assert all(page.each(ROWS, "one.ariaLevel && one.ariaSetSize && one.ariaPosInSet"))


def test_tree_and_text_follow_each_other(open_page: Open) -> None:
    text = HANDBOOK[5].read_text(encoding="utf-8")
    nodes = split(text, leaf_tokens=60, min_leaf_tokens=10)
    page = open_page(tree_page(nodes))
    last = leaves_of(nodes)[-1]
    assert not in_view(page, ".leaf:last-child")
    # From the tree to the text: the last row that can be seen.
    page.chrome.find_element(By.CSS_SELECTOR, "[role=treeitem]").click()
    press(page, Keys.END, Keys.ENTER)
    page.settle()
    marked = "".join(page.texts(".leaf.marked .body"))
    assert text.endswith(marked)
    assert f", {next(node for node in nodes if node.content == marked).meta['token_count']} tokens," in page.active()
    assert in_view(page, ".leaf:last-child")
    # From the text to the tree: the leaf that is clicked, though its row was not there yet.
    before = page.count(ROWS)
    page.run("document.querySelector('.reading').scrollTop = 0")
    inner = next(place for place, leaf in enumerate(leaves_of(nodes)) if leaf.meta["__level"] > 2)
    body = page.chrome.find_elements(By.CSS_SELECTOR, ".leaf .body")[inner]
    page.run("arguments[0].scrollIntoView({block: 'center'})", body)
    body.click()
    assert "".join(page.texts(".leaf.marked .body")) == leaves_of(nodes)[inner].content
    level, tokens = leaves_of(nodes)[inner].meta["__level"], leaves_of(nodes)[inner].meta["token_count"]
    chosen = page.run("return document.querySelector('[aria-selected=true]').getAttribute('aria-label')")
    assert f"level {level}, {tokens} tokens, leaf" in chosen
    assert page.count(ROWS) > before
    # A bar in the margin chooses the node of its level.
    page.click(".leaf.marked .bar", 1)
    parent = leaves_of(nodes)[inner].meta["__parent_id"]
    assert "".join(page.texts(".leaf.marked .body")) == next(node.content for node in nodes if node.id == parent)
    assert page.text("#details code") == parent
    # And the path above the text.
    page.click("#details .path button")
    assert "".join(page.texts(".leaf.marked .body")) == text
    assert last.content in text


def test_monospace_for_tables_and_code(open_page: Open) -> None:
    page = open_page(tree_page(split(POTS)))
    fonts = []
    for pressed in ("true", "false"):
        page.click(".mono-button")
        assert page.each(".mono-button", "one.ariaPressed") == [pressed]
        fonts.append("mono" in page.each(".leaf .body", "getComputedStyle(one).fontFamily")[0].lower())
    assert fonts == [True, False]


def test_search_in_titles(open_page: Open) -> None:
    nodes = split(HANDBOOK[5].read_text(encoding="utf-8"))
    page = open_page(tree_page(nodes))
    field = page.chrome.find_element(By.ID, "search")
    field.send_keys("MINUTES")
    assert page.texts(".found .title") == ["First minutes"]
    assert page.text("#live") == "1 title found"
    field.send_keys(Keys.ENTER)
    assert page.active().startswith("First minutes, level")
    assert page.text(".leaf.marked .body").lstrip("# ").startswith(("First minutes", "When somebody gets hurt"))
    field.send_keys("no such title")
    assert page.text(".found .told") == "No title found"
    assert names(page) == []
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(Keys.DELETE)
    assert len(names(page)) > 5


def test_several_sources(open_page: Open) -> None:
    page = open_page(tree_page([*split(POTS, "b.md"), *split("# Boats\n\nOf wood.\n", "a.md")]))
    assert page.texts("#source option") == ["a.md", "b.md"]
    assert "".join(page.texts(".leaf .body")) == "# Boats\n\nOf wood.\n"
    page.chrome.find_element(By.ID, "source").send_keys("b")
    assert "".join(page.texts(".leaf .body")) == POTS


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_themes(open_page: Open, theme: str) -> None:
    page = open_page(tree_page(split(POTS)), theme=theme)

    def lightness(selector: str, what: str) -> float:
        colour = page.run("return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]", selector, what)
        numbers = [float(number) for number in colour.strip("rgba()").split(",")[:3]]
        return sum(numbers) / 3

    def is_dark() -> bool:
        assert abs(lightness(".leaf .body", "color") - lightness(".reading", "backgroundColor")) > 128
        return lightness("html", "backgroundColor") < 80

    assert is_dark() is (theme == "dark")
    button = page.chrome.find_element(By.ID, "theme")
    seen = []
    for _ in range(3):
        button.click()
        seen.append((button.get_attribute("data-theme"), is_dark()))
    other = "light" if theme == "dark" else "dark"
    assert seen == [(other, other == "dark"), (theme, theme == "dark"), ("system", theme == "dark")]


def test_a_narrow_window_has_no_sideways_scrolling(open_page: Open) -> None:
    page = open_page(tree_page(split(HANDBOOK[6].read_text(encoding="utf-8"), leaf_tokens=60)), width=400, height=800)
    assert page.run("return document.documentElement.scrollWidth") <= 400
    assert (
        page.run(
            "return document.querySelector('.reading').scrollWidth - document.querySelector('.reading').clientWidth"
        )
        <= 0
    )


def test_a_source_of_a_megabyte(open_page: Open) -> None:
    parts, size = [], 0
    while size < 1_000_000:
        for path in HANDBOOK:
            parts.append(f"# Copy {len(parts)}\n\n" + path.read_text(encoding="utf-8").replace("# ", "## "))
            size += len(parts[-1])
    text = "\n\n".join(parts)
    nodes = split(text, leaf_tokens=100, min_leaf_tokens=20, inner_tokens=None)
    assert len(leaves_of(nodes)) > 2_500
    html = tree_page(nodes)
    begun = time.monotonic()
    page = open_page(html)
    page.settle()
    # Measured: 0.5 s. The bound says that nothing grows out of hand, on any machine.
    assert time.monotonic() - begun < 5
    # Rows are made when they are opened.
    assert page.count(ROWS) < len(nodes) / 4
    begun = time.monotonic()
    page.chrome.find_element(By.ID, "search").send_keys(f"Copy {len(parts) - 1}", Keys.ENTER)
    page.settle()
    page.settle()
    assert time.monotonic() - begun < 5
    (number,) = [
        place for place, leaf in enumerate(leaves_of(nodes)) if leaf.content.startswith(f"# Copy {len(parts) - 1}\n")
    ]
    assert page.run("return Number(document.querySelector('.leaf.marked').dataset.leaf)") == number
    assert in_view(page, ".leaf.marked")
    # What is far away is not laid out.
    assert (
        page.run("return document.querySelector('.leaf .body').checkVisibility({contentVisibilityAuto: true})") is False
    )
    assert "".join(page.texts(".leaf .body")) == text


def test_thousands_of_siblings_come_in_portions(open_page: Open) -> None:
    nodes = split("".join(f"# Number {place}\n\nWords of it.\n\n" for place in range(1000)))
    page = open_page(tree_page(nodes))
    assert len(names(page)) == 402  # the root, 400 children, and what shows more
    page.run("arguments[0].focus()", page.chrome.find_element(By.CSS_SELECTOR, ".more"))
    press(page, Keys.ENTER)
    assert page.active().startswith("Number 400,")
    assert len(names(page)) == 802
    page.chrome.find_element(By.ID, "search").send_keys("number 987", Keys.ENTER)
    assert page.active().startswith("Number 987,")
    assert page.run("return document.activeElement.ariaPosInSet") == "988"


def test_a_tree_of_many_levels_leaves_room_for_the_text(open_page: Open) -> None:
    # Markdown has six levels; models may find more.
    text = "".join(f"Part {level} of it. " for level in range(60))
    cuts = [CutPoint(text.index(f"Part {level} of"), level, f"Part {level}") for level in range(1, 60)]
    builder = TreeBuilder(COUNTER, leaf_tokens=16, min_leaf_tokens=1, max_level=100)
    page = open_page(tree_page(to_documents(builder.build(text, cuts), Document(content=text))), width=400, height=800)
    assert page.texts(".totals dd")[-1] == "60"
    assert min(page.each(".leaf .body", "one.clientWidth")) > 200
    page.click(".leaf .body", 59)
    assert page.each("[aria-selected=true]", "one.ariaLevel") == ["60"]
    assert page.run("return document.documentElement.scrollWidth") <= 400


def test_hostile_texts_show_as_text(open_page: Open) -> None:
    text = (
        "".join(f"# {title.splitlines()[0]}\n\n{title}\n\n" for title in HOSTILE)
        + "# End\n\nlone \ud83d and \x00 nul\n"
    )
    page = open_page(tree_page(split(text, "<i>name</i>.md"), title=HOSTILE[0]))
    assert page.run("return window.pwned") is None
    assert page.count("img, i:not(.bar), .shell script, .side b, .body > :not(b):not(.tail)") == 0
    shown = "".join(page.texts(".leaf .body"))
    # Control characters show as their pictures; a lone surrogate leaves the browser as U+FFFD.
    assert shown == text.replace("\x07", "\u2407").replace("\x00", "\u2400").replace("\ud83d", "\ufffd")
    assert page.text("h1") == HOSTILE[0]
    page.each(".leaf", "one.click()")
    assert page.run("return window.pwned") is None
    # A title can't turn the direction of the numbers behind it.
    assert set(page.each(".row .title", "one.tagName")) == {"BDI"}
