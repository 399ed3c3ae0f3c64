# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""A headless Chromium, and pages opened in it from disk."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

from hichunk_haystack.inspector import save_page

_SWITCHES = (
    "--headless=new", "--no-sandbox", "--disable-background-networking", "--disable-dev-shm-usage", "--disable-gpu",
)  # fmt: skip


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """One browser for all tests of a process."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        reason = "there is no chromium with its chromedriver here: apt-get install chromium chromium-driver"
        if os.environ.get("HICHUNK_BROWSER") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    folder = str(tmp_path_factory.mktemp("chromium"))
    options = Options()
    options.binary_location = browser
    for switch in _SWITCHES:
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # Both would leave files in these otherwise.
    service = Service(driver, env={**os.environ, "TMPDIR": folder, "HOME": folder})
    chrome = webdriver.Chrome(options=options, service=service)
    chrome.set_page_load_timeout(60)
    yield chrome
    chrome.quit()


class Page:
    """A page that was opened, and what it did."""

    def __init__(self, chrome: webdriver.Chrome) -> None:
        self.chrome = chrome

    def run(self, script: str, *arguments: Any) -> Any:
        return self.chrome.execute_script(script, *arguments)

    def each(self, selector: str, what: str) -> list[Any]:
        """Of each element that a selector finds, here `one`, what an expression gives."""
        return self.run(f"return [...document.querySelectorAll(arguments[0])].map((one) => {what})", selector)

    def count(self, selector: str) -> int:
        return len(self.each(selector, "0"))

    def texts(self, selector: str) -> list[str]:
        return self.each(selector, "one.textContent")

    def click(self, selector: str, place: int = 0) -> None:
        """Click one of the elements that a selector finds, as its own code would be called; it need not be in view."""
        self.run("document.querySelectorAll(arguments[0])[arguments[1]].click()", selector, place)

    def slide(self, selector: str, position: int) -> None:
        self.run(
            "const slider = document.querySelector(arguments[0]);"
            "slider.value = arguments[1]; slider.dispatchEvent(new Event('input'))",
            selector,
            position,
        )

    def text(self, selector: str) -> str:
        return self.texts(selector)[0]

    def active(self) -> str | None:
        """Name of the element that has the focus."""
        return self.run("return document.activeElement.getAttribute('aria-label')")

    def settle(self) -> None:
        """Wait until what was changed has been drawn."""
        self.chrome.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => setTimeout(done, 0))")


@pytest.fixture
def open_page(chromium: webdriver.Chrome, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Open a page from disk; when the test is over, nothing may have gone wrong in it, or over the network."""
    opened = []

    def open_it(text: str, *, theme: str = "light", width: int = 1280, height: int = 900) -> Page:
        opened.append(save_page(text, tmp_path / f"page{len(opened)}.html").as_uri())
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        chromium.get(opened[-1])
        page = Page(chromium)
        assert page.run("return document.documentElement.dataset.ready") == "true"
        page.run("localStorage.clear()")
        return page

    chromium.get("about:blank")
    for log in ("browser", "performance"):
        chromium.get_log(log)
    yield open_it
    assert chromium.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in chromium.get_log("performance")]
    urls = {event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"}
    assert {url for url in urls if not url.startswith("data:")} == set(opened)
