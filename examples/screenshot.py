# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""
Make the README's picture of the inspector.

The sample handbook is indexed in memory, a question is asked, the page is opened in a headless Chromium and stopped at
the merge with the most merged nodes on the budget bar. Needs the extras `local`, `files` and `test`, Chromium and its
driver (Debian: chromium and chromium-driver), and looks best with the font Inter (Debian: fonts-inter).

    python examples/screenshot.py [OUTPUT]      writes docs/inspector.png by default
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")

from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
from haystack.document_stores.in_memory import InMemoryDocumentStore
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

from hichunk_haystack.components.converters import FileConverter
from hichunk_haystack.components.embedders import (
    LeafEmbedder,
    OfflineSentenceTransformersDocumentEmbedder,
    OfflineSentenceTransformersTextEmbedder,
)
from hichunk_haystack.components.preprocessors import AutoHierarchicalSplitter
from hichunk_haystack.components.retrievers import BudgetAutoMergingRetriever
from hichunk_haystack.components.writers import HierarchyWriter
from hichunk_haystack.inspector import Run, query_page, save_page

REPOSITORY = Path(__file__).resolve().parents[1]
QUESTION = "What do I do when a storm is coming?"
BUDGET = 1536
WIDTH, HEIGHT = 1400, 1010


def ask() -> Run:
    store = InMemoryDocumentStore()
    pages = FileConverter().run(paths=[str(REPOSITORY / "examples" / "handbook")])["documents"]
    nodes = AutoHierarchicalSplitter(leaf_tokens=100).run(pages)["documents"]
    nodes = LeafEmbedder(OfflineSentenceTransformersDocumentEmbedder()).run(nodes)["documents"]
    HierarchyWriter(store).run(nodes)
    vector = OfflineSentenceTransformersTextEmbedder().run(QUESTION)["embedding"]
    leaves = InMemoryEmbeddingRetriever(store, top_k=60).run(vector)["documents"]
    merger = BudgetAutoMergingRetriever(store, token_budget=BUDGET, document_overhead=28)
    result = merger.run(leaves)
    return Run("Sample handbook", result["trace"], result["documents"])


def most_merged(steps: list[dict[str, Any]]) -> int:
    """Number of the step after which the most merged nodes are held."""
    merged: set[str] = set()
    counts = [0]
    for step in steps:
        merged.difference_update(step.get("replaced", ()))
        if step["action"] == "merged":
            merged.add(step["node"])
        counts.append(len(merged))
    return counts.index(max(counts))


def take(page: Path, step: int, output: Path) -> None:
    options = Options()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for switch in ("--headless=new", "--no-sandbox", "--disable-background-networking", "--hide-scrollbars"):
        options.add_argument(switch)
    chrome = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        motion = {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]}
        chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", motion)
        chrome.get(page.as_uri())
        chrome.execute_script(
            "const slider = document.querySelector('input[type=range]');"
            "slider.value = arguments[0]; slider.dispatchEvent(new Event('input'))",
            step,
        )
        chrome.save_screenshot(str(output))
    finally:
        chrome.quit()


def main() -> None:
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else REPOSITORY / "docs" / "inspector.png"
    if shutil.which("chromedriver") is None:
        sys.exit("There is no chromedriver. On Debian: apt-get install chromium chromium-driver")
    run = ask()
    step = most_merged(run.trace["steps"])
    with tempfile.TemporaryDirectory() as folder:
        take(save_page(query_page(QUESTION, [run]), Path(folder) / "page.html"), step, output)
    print(f"{output}: {output.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
