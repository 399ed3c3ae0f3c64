# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""A process that indexes or deletes is killed at random moments (SIGKILL): what is left answers, and is repaired."""

import multiprocessing
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from haystack.document_stores.in_memory import InMemoryDocumentStore

from hichunk_haystack.components.retrievers import BudgetAutoMergingRetriever, QdrantLeafRetriever
from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from hichunk_haystack.integrity import check, repair
from hichunk_haystack.stored_sources import list_sources
from tests.killed_work import DIMENSION, delete, index, open_store, split, work
from tests.word_embedder import WordEmbedder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no fork server")

PATHS = [f"{letter}.md" for letter in "abcdef"]
KILLS = 20
# Deletion is short, so fewer moments are enough.
KILLED_DELETIONS = 10
processes = multiprocessing.get_context("forkserver") if sys.platform != "win32" else None


def pages(version: int) -> dict[str, str]:
    """Six sources; all but the last one change with the version, in text and in size."""
    return {
        path: "".join(
            f"# Section {section}\n\nAbout {path[0]} in version {version if path != 'f.md' else 0}.\n\n"
            for section in range(4 + (version + number) % 3)
        )
        for number, path in enumerate(PATHS)
    }


def run_and_kill(folder: str, call: Callable[..., Any], argument: Any, delay: float) -> tuple[bool, float]:
    """Run work in a process and kill it; whether it was done by then, and how long it ran."""
    assert processes is not None
    ours, theirs = processes.Pipe()
    process = processes.Process(target=work, args=(folder, call, argument, theirs))
    process.start()
    assert ours.poll(60), "the process does not start"
    assert ours.recv() == "start"
    begin = time.perf_counter()
    done = ours.poll(delay)
    seconds = time.perf_counter() - begin
    process.kill()
    process.join()
    return done, seconds


def ask(store: HierarchyQdrantDocumentStore, path: str) -> list[Any]:
    """Find leaves of a source by its name and merge them, as a query does."""
    question = WordEmbedder(DIMENSION).embed(f"About {path[0]} in version")
    leaves = QdrantLeafRetriever(store, top_k=50).run(query_embedding=question)["documents"]
    return BudgetAutoMergingRetriever(store, token_budget=2000).run(leaves)["documents"]


def check_answers(store: HierarchyQdrantDocumentStore, versions: list[dict[str, str]], there: set[str]) -> None:
    """What a query gets is, word for word, part of the old or of the new version; nothing that must be there lacks."""
    found = ask(store, PATHS[0])
    for document in found:
        path, start, end = (document.meta[name] for name in ("file_path", "split_idx_start", "split_idx_end"))
        assert document.content
        assert document.content in [version[path][start:end] for version in versions if path in version]
    assert there <= {document.meta["file_path"] for document in found}


@pytest.fixture(scope="module", autouse=True)
def _prepared() -> None:
    """Imports once, in the process that all others are forked from."""
    if processes is not None:
        processes.set_forkserver_preload(["tests.killed_work"])


def test_indexing_killed_at_random_moments(tmp_path: Path) -> None:
    chance = random.Random(7)
    folder = str(tmp_path / "qdrant")
    done, seconds = run_and_kill(folder, index, pages(0), 60)
    assert done
    unfinished = 0
    for version in range(1, KILLS + 1):
        old, new = pages(version - 1), pages(version)
        done, _ = run_and_kill(folder, index, new, chance.uniform(0, seconds))
        store = open_store(folder)
        check_answers(store, [old, new], set(PATHS))
        sound = check(store).sound
        unfinished += not sound
        if version % 3 == 0:  # what repairs may also be the repair
            repair(store)
            check_answers(store, [old, new], set())
        index(store, new)
        assert {node.id for node in store.filter_documents()} == {node.id for node in split(new)}
        assert check(store).sound
        assert index(store, new)["changed"]["unchanged"] == len(PATHS)
        store.close()
    assert unfinished > 0, "no process was killed while it was writing"

    clean, store = InMemoryDocumentStore(), open_store(folder)
    index(clean, pages(KILLS))
    expected = {node.id: node for node in clean.filter_documents()}
    for node in store.get_nodes_by_id(list(expected), with_embeddings=True):
        assert (node.content, node.meta) == (expected[node.id].content, expected[node.id].meta)
        assert (node.embedding is None) == (expected[node.id].embedding is None)
    store.close()


def test_deletion_killed_at_random_moments(tmp_path: Path) -> None:
    chance = random.Random(11)
    folder = str(tmp_path / "qdrant")
    there = pages(0)
    store = open_store(folder)
    index(store, there)
    store.close()
    gone, kept = PATHS[:3], {path: there[path] for path in PATHS[3:]}
    done, seconds = run_and_kill(folder, delete, gone, 60)
    assert done
    killed = 0
    for _ in range(KILLED_DELETIONS):
        store = open_store(folder)
        index(store, there)  # brings back what is missing, and leaves alone what is not
        assert check(store).sound
        store.close()
        done, _ = run_and_kill(folder, delete, gone, chance.uniform(0, seconds))
        killed += not done
        store = open_store(folder)
        check_answers(store, [there], set(kept))
        delete(store, gone)
        assert [source.name for source in list_sources(store)] == list(kept)
        assert {node.id for node in store.filter_documents()} == {node.id for node in split(kept)}
        store.close()
    assert killed > 0, "no process was killed while it was deleting"
