# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""
Questions to a real hayhooks server on loopback by several clients at once, while uploads are indexed.

Every answer is checked: the question about page n must cite page n first, and give back its text byte for byte. The
uploads that run meanwhile add pages, and replace one by versions of itself, of which an answer must hold exactly one.

    python benchmarks/serving.py --seconds 30 --clients 8
"""

import argparse
import random
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from shutil import copy, copytree, ignore_patterns

import httpx
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.hayhooks_server import Server, hayhooks
from tests.pipeline_files import INDEXING, PIPELINES, QUERY

WRAPPERS = ("ask", "upload_files")
CRAFTS = (
    "basket weaving", "bee keeping", "book binding", "boat building", "bread baking", "candle making", "cheese making",
    "clock repair", "felt making", "glass blowing", "knife grinding", "leather tanning", "lock picking", "paper making",
    "pottery", "roof thatching", "rope making", "sail making", "shoe mending", "soap boiling", "stone carving",
    "violin making", "weather forecasting", "wool spinning",
)  # fmt: skip


@dataclass
class Outcome:
    """What the clients saw."""

    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    uploads: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


def page(craft: str) -> str:
    return f"# {craft.title()}\n\nThe course on {craft} takes {len(craft)} evenings. Bring an apron for {craft}.\n"


def version(number: int) -> str:
    return f"# Harbour Master\n\nThe harbour master's door code is {number}; it changes at every tide.\n"


def upload(client: httpx.Client, **files: str) -> None:
    answer = client.post("/upload_files/run", files=[("files", (f"{name}.md", text)) for name, text in files.items()])
    answer.raise_for_status()
    failed = answer.json()["result"]["failed"]
    if failed:
        raise RuntimeError(failed)


def ask(server: Server, outcome: Outcome, until: float, seed: int) -> None:
    """One client."""
    chance = random.Random(seed)
    with server.client() as client:
        while time.monotonic() < until:
            craft = chance.choice([*CRAFTS, None, None])
            question = f"How many evenings does the course on {craft} take?" if craft else "Harbour master's door code?"
            begin = time.perf_counter()
            try:
                answer = client.post("/ask/run", json={"query": question, "budget": 300})
                answer.raise_for_status()
            except httpx.HTTPError as error:
                with outcome.lock:
                    outcome.errors.append(f"{question}: {error}")
                continue
            took = time.perf_counter() - begin
            fault = check(craft, answer.json()["result"])
            with outcome.lock:
                outcome.seconds.append(took)
                if fault:
                    outcome.wrong.append(f"{question}: {fault}")


def check(craft: str | None, result: dict) -> str:
    """What is wrong with an answer; empty where nothing is."""
    first = result["citations"][0]["source"] if result["citations"] else None
    texts = {document["content"] for document in result["documents"]}
    if result["tokens_used"] > 300:
        return f"{result['tokens_used']} tokens for a budget of 300"
    if craft is not None:
        wanted = f"{craft}.md"
        if first != wanted:
            return f"{first} is cited first, not {wanted}"
        return "" if page(craft) in texts else "the page's text is not what was uploaded"
    codes = [text for text in texts if text.startswith("# Harbour Master")]
    # While a source is replaced, its old and its new version may both be there for a moment.
    if not 1 <= len(codes) <= 2:
        return f"{len(codes)} versions of the page that is replaced"
    known = all(text == version(int(text.split("code is ")[1].split(";")[0])) for text in codes)
    return "" if known else "a version that never was"


def write(server: Server, outcome: Outcome, until: float) -> None:
    """The indexing run: new pages, and the same page again and again in another version."""
    with server.client() as client:
        while time.monotonic() < until:
            number = outcome.uploads + 1
            try:
                filler = "\n\n".join(f"## Part {n}\n\nOrder {number} of {n} bolts, washers and nuts." for n in range(6))
                upload(client, **{f"order {number}": f"# Order {number}\n\n{filler}\n", "harbour": version(number)})
            except (httpx.HTTPError, RuntimeError) as error:
                with outcome.lock:
                    outcome.errors.append(f"upload {number}: {error}")
                continue
            outcome.uploads = number


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--clients", type=int, default=8)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pipelines = folder / "pipelines"
        pipelines.mkdir()
        for file in (INDEXING, QUERY):
            copy(file, pipelines)
        for wrapper in WRAPPERS:
            copytree(PIPELINES / wrapper, pipelines / wrapper, ignore=ignore_patterns("__pycache__"))
        variables = {"HAYHOOKS_PIPELINES_DIR": str(pipelines), "HICHUNK_UPLOADS": str(folder / "uploads")}
        with hayhooks("run", folder=folder, **variables) as server:
            outcome = Outcome()
            with server.client() as client:
                upload(client, harbour=version(0), **{craft: page(craft) for craft in CRAFTS})
                client.post("/ask/run", json={"query": "warm up"}).raise_for_status()
            until = time.monotonic() + given.seconds
            with ThreadPoolExecutor(given.clients + 1) as pool:
                jobs = [pool.submit(ask, server, outcome, until, seed) for seed in range(given.clients)]
                jobs.append(pool.submit(write, server, outcome, until))
                for job in jobs:
                    job.result()
    tell(outcome, given.seconds, given.clients)
    return 1 if outcome.errors or outcome.wrong or not outcome.seconds else 0


def tell(outcome: Outcome, seconds: float, clients: int) -> None:
    times = np.array(outcome.seconds or [np.nan]) * 1000
    p50, p95, p99 = np.percentile(times, [50, 95, 99])
    print(f"{clients} clients, {seconds:.0f} s, embedded Qdrant, one process; {outcome.uploads} uploads meanwhile")
    print("| questions | per second | p50 | p95 | p99 | errors | wrong answers |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    print(
        f"| {len(outcome.seconds)} | {len(outcome.seconds) / seconds:.1f} | {p50:.0f} ms | {p95:.0f} ms | {p99:.0f} ms "
        f"| {len(outcome.errors)} | {len(outcome.wrong)} |"
    )
    for trouble in [*outcome.errors[:5], *outcome.wrong[:5]]:
        print(trouble)


if __name__ == "__main__":
    sys.exit(main())
