# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""
Copying a collection, from the embedded folder to a server for instance: points as they are, nothing embedded again.

    python -m hichunk_haystack.copying qdrant_data http://localhost:6333 --index hichunk
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from haystack_integrations.document_stores.qdrant.converters import DENSE_VECTORS_NAME
from haystack_integrations.document_stores.qdrant.document_store import QdrantStoreError
from qdrant_client import QdrantClient
from qdrant_client.http import models as rest
from tqdm import tqdm

from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore
from hichunk_haystack.document_stores._level_vectors import INNER_VECTORS_NAME
from hichunk_haystack.document_stores._local_client import LocalClient

_SIMILARITIES = {
    rest.Distance.COSINE: "cosine",
    rest.Distance.DOT: "dot_product",
    rest.Distance.EUCLID: "l2",
}


@dataclass
class CopyReport:
    """
    What a copy has done.

    :param points: Points in the source.
    :param copied: Points that were written.
    :param there: Points that the target had already.
    """

    points: int = 0
    copied: int = 0
    there: int = 0


def copy_collection(
    source: HierarchyQdrantDocumentStore,
    target: HierarchyQdrantDocumentStore,
    *,
    page_size: int = 500,
    overwrite: bool = False,
    progress_bar: bool = True,
) -> CopyReport:
    """
    Copy all points of a store's collection to another store: ids, vectors and payload.

    The target's collection is made as the target store is set, with its indexes, if it is not there. Points that it
    has already are left alone, so a copy that was interrupted goes on where it stopped when it is run again. What
    changes in the source meanwhile may be missed: let nothing write to it.

    ```python
    from haystack import Document

    from hichunk_haystack.copying import copy_collection
    from hichunk_haystack.document_stores import HierarchyQdrantDocumentStore

    source = HierarchyQdrantDocumentStore(location=":memory:", embedding_dim=2)
    source.write_documents([Document(content="leaf", embedding=[1.0, 0.0]), Document(content="root")])
    target = HierarchyQdrantDocumentStore(location=":memory:", embedding_dim=2)
    print(copy_collection(source, target, progress_bar=False))  # CopyReport(points=2, copied=2, there=0)
    ```

    :param source: Where to read.
    :param target: Where to write.
    :param page_size: Points of one request; what is written is bounded in bytes as well.
    :param overwrite: Whether to write points that are there already, too.
    :param progress_bar: Whether to show a progress bar over the points.
    :returns: What was done.
    :raises ValueError: If `page_size` is below 1, or both are the same collection.
    :raises QdrantStoreError: If the collections keep different vectors, the target fails (the message tells how far it
        came), or afterwards holds less than the source.
    """
    if page_size < 1:
        msg = f"page_size is {page_size}; it must be at least 1."
        raise ValueError(msg)
    reader, writer = _client(source), _client(target)
    kinds = [_vectors(client.get_collection(store.index)) for client, store in ((reader, source), (writer, target))]
    if kinds[0] != kinds[1]:
        msg = (
            f"Collection '{source.index}' keeps vectors {kinds[0]}, the target '{target.index}' {kinds[1]}: set "
            "embedding_dim, similarity, use_sparse_embeddings and inner_embeddings alike."
        )
        raise QdrantStoreError(msg)
    if source.index == target.index and _place(source) == _place(target):
        msg = f"Source and target are the same collection '{source.index}' in {_place(source)}."
        raise ValueError(msg)
    report = CopyReport(points=source.count_documents())
    after: Any = None
    with tqdm(total=report.points, desc="Copying", unit="point", disable=not progress_bar) as progress:
        while True:
            page, after = _read_page(source, page_size, after)
            wanted = page if overwrite else _missing(writer, target.index, page)
            if wanted:
                try:
                    writer.upsert(collection_name=target.index, points=[_point(record) for record in wanted], wait=True)
                except Exception as error:
                    done = report.copied + report.there
                    msg = (
                        f"The copy stopped after {done} of {report.points} points: {error} What is copied stays; the "
                        "same call goes on from there."
                    )
                    raise QdrantStoreError(msg) from error
            report.copied += len(wanted)
            report.there += len(page) - len(wanted)
            progress.update(len(page))
            if after is None:
                break
    count = target.count_documents()
    if count < report.copied + report.there:
        msg = f"The target holds {count} points, fewer than the {report.copied + report.there} that were copied to it."
        raise QdrantStoreError(msg)
    return report


def _client(store: HierarchyQdrantDocumentStore) -> QdrantClient:
    """The store's client, once its collection is there."""
    store.count_documents()
    assert store._client is not None
    return store._client


def _read_page(store: HierarchyQdrantDocumentStore, size: int, after: Any) -> tuple[list[rest.Record], Any]:
    """Points as they are stored: the store's own client would give vectors of inner nodes another name."""
    assert store._connection is not None
    return store._connection.call(
        "scroll", collection_name=store.index, limit=size, offset=after, with_payload=True, with_vectors=True
    )


def _place(store: HierarchyQdrantDocumentStore) -> str:
    assert store._connection is not None
    return store._connection.place


def _vectors(info: rest.CollectionInfo) -> dict[str, str]:
    """What vectors a collection keeps, by name; the only one of a simple collection is called "vector"."""
    params = info.config.params
    dense = params.vectors if isinstance(params.vectors, dict) else {"vector": params.vectors}
    kinds = {name: f"{each.size} {each.distance.value}" for name, each in sorted(dense.items()) if each is not None}
    return {**kinds, **dict.fromkeys(sorted(params.sparse_vectors or {}), "sparse")}


def _missing(client: QdrantClient, index: str, page: Sequence[rest.Record]) -> list[rest.Record]:
    if not page:
        return []
    ids = [record.id for record in page]
    found = client.retrieve(collection_name=index, ids=ids, with_payload=False, with_vectors=False)
    there = {str(record.id) for record in found}
    return [record for record in page if str(record.id) not in there]


def _point(record: rest.Record) -> rest.PointStruct:
    # Without a vector, embedded Qdrant answers {}, and a server null.
    return rest.PointStruct(id=record.id, vector=record.vector or {}, payload=record.payload or {})  # type: ignore[arg-type]


def _settings_of(folder: str, index: str) -> dict[str, Any]:
    """Read from an embedded collection what a store has to be told."""
    client = LocalClient(folder)
    try:
        if not client.collection_exists(index):
            names = ", ".join(sorted(each.name for each in client.get_collections().collections)) or "none"
            msg = f"There is no collection '{index}' in '{folder}'; those there are: {names}."
            raise QdrantStoreError(msg)
        params = client.get_collection(index).config.params
    finally:
        client.close()
    named = params.vectors if isinstance(params.vectors, dict) else {}
    dense = named.get(DENSE_VECTORS_NAME) if named else params.vectors
    assert isinstance(dense, rest.VectorParams)
    return {
        "index": index,
        "embedding_dim": dense.size,
        "similarity": _SIMILARITIES[dense.distance],
        "use_sparse_embeddings": bool(named),
        "inner_embeddings": INNER_VECTORS_NAME in named,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Copy a collection of an embedded folder to a server or another folder.

    :param arguments: Of the command line.
    :returns: The exit code.
    """
    parser = argparse.ArgumentParser(
        prog="python -m hichunk_haystack.copying",
        description="Copy a collection from an embedded Qdrant folder to a server (or another folder). "
        "Run it again if it was interrupted. A server's key is taken from QDRANT_API_KEY.",
    )
    parser.add_argument("folder", help="the embedded folder, such as qdrant_data")
    parser.add_argument("target", help="a server's URL, or a folder")
    parser.add_argument("--index", default="hichunk", help="the collection (hichunk)")
    parser.add_argument("--to-index", help="its name in the target; the same by default")
    parser.add_argument("--shards", type=int, help="shards of a collection that is made")
    parser.add_argument("--page-size", type=int, default=500, help="points of one request (500)")
    parser.add_argument("--overwrite", action="store_true", help="write points that are there already, too")
    given = parser.parse_args(arguments)
    if not Path(given.folder).is_dir():
        parser.error(f"there is no folder '{given.folder}'")
    try:
        return _copy(given)
    except (QdrantStoreError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _copy(given: argparse.Namespace) -> int:
    with _as_named():
        settings = _settings_of(given.folder, given.index)
        where = {"url": given.target} if "://" in given.target else {"path": given.target}
        aims = {**settings, "index": given.to_index or given.index, "shard_number": given.shards, **where}
        source = HierarchyQdrantDocumentStore(path=given.folder, **settings)
        target = HierarchyQdrantDocumentStore(**aims)
        try:
            report = copy_collection(source, target, page_size=given.page_size, overwrite=given.overwrite)
        finally:
            source.close()
            target.close()
    sys.stdout.write(f"{report.points} points: {report.copied} copied, {report.there} were there.\n")
    return 0


@contextmanager
def _as_named() -> Iterator[None]:
    """Keeps the variables that move a store's folder from moving the ones that were named."""
    moved = {name: os.environ.pop(name) for name in ("QDRANT_URL", "QDRANT_PATH") if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(moved)


if __name__ == "__main__":
    sys.exit(main())
