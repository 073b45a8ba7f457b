"""Functions that push songs to the index server (:mod:`musicsim.extensions.index_server.remote_index`).

A push sends only the songs whose digests differ from those in the collection. Therefore, it resumes an interrupted
push. Only a complete collection gets the alias for searches; until then, every machine searches its own index.
"""

import logging
import operator
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import filelock
import numpy as np

from musicsim import places
from musicsim._arrays import Int64Array
from musicsim.errors import OwnerOnlyError
from musicsim.explorer import INDEXED_FROM, Snapshot, readable_arrays, take_snapshot
from musicsim.extensions.index_server import remote_index as index
from musicsim.library import Library, save_arrays
from musicsim.progress import Progress, no_progress
from musicsim.public import refuse_visitors

_log = logging.getLogger(__name__)

_BATCH_BYTES = 4 << 20  # maximum bytes of vectors in one call; servers accept 64 MB
_MAX_BATCH = 5_000
_READ_BATCH = 10_000
_MAX_RATIO = 10  # maximum ratio of entries to songs; a collection may also contain entries from an earlier state
LONG_S = 600.0  # seconds allowed for one call, which may build the index of a collection


def push(snapshot: Snapshot, progress: Progress = no_progress, *, exact: bool | None = None) -> bool:
    """Push a snapshot's songs and their vectors to the server; return False if there was nothing to do.

    With `exact`, the server compares a query with all songs; otherwise it builds a graph (HNSW).
    """
    refuse_visitors()  # musicsim's network guard does not cover gRPC
    remote = index.remote_of(snapshot)
    if remote is None or snapshot.record is None or not snapshot.n_indexed:
        return False
    folder = snapshot.library.models.path(snapshot.record.id)
    with suppress(filelock.Timeout), filelock.FileLock(folder / "push.lock", timeout=0):
        name = index.give_name(snapshot.library)
        collection = index.collection_of(name, snapshot.record.id)
        return Push(snapshot, remote, folder, collection, exact).run(index.prefix_of(name), progress)
    return False


class Push:
    """One push of a snapshot's songs to a collection."""

    def __init__(
        self, snapshot: Snapshot, remote: index.RemoteIndex, folder: Path, collection: str, exact: bool | None
    ) -> None:
        self._snapshot, self._remote, self._collection = snapshot, remote, collection
        self._exact = snapshot.n_indexed < INDEXED_FROM if exact is None else exact
        self._record = folder / "pushed.npz"  # song ids and digests for which the alias was created
        self._ask = partial(self._remote.server.ask, timeout=LONG_S)

    def run(self, prefix: str, progress: Progress) -> bool:
        """Push the songs, and drop the library's other collections (those whose names begin with `prefix`)."""
        pushed = {"ids": self._snapshot.row_ids, "digests": self._remote.digests}
        alias = index.alias_of(self._collection, **pushed)
        is_there = self._ask("has_collection", alias)
        if not is_there:
            progress("pushing songs to the index server")
            self._update(*self._entries_there(), progress)
            self._ask("create_alias", self._collection, alias)
            save_arrays(self._record, **pushed)
        with self._remote.server.understood():
            collections = [name for name in self._ask("list_collections") if name.startswith(prefix)]
        for collection in collections:
            if collection != self._collection:
                self._drop_aliases(collection)
                self._ask("drop_collection", collection)
        return not is_there

    def _entries_there(self) -> tuple[Int64Array, Int64Array]:
        """Return the ids and digests in the collection, and drop its aliases; create the collection if needed."""
        if not self._ask("has_collection", self._collection):
            self._create()
            return np.empty(0, np.int64), np.empty(0, np.int64)
        recorded = readable_arrays(self._record)
        is_current = bool(recorded) and index.alias_of(self._collection, **recorded) in self._aliases(self._collection)
        self._drop_aliases(self._collection)
        self._ask("load_collection", self._collection)
        # the record is wrong after an interrupted push, or after a push from a copy of the library
        return (recorded["ids"], recorded["digests"]) if is_current else self._remote.server.call(self.read_entries)

    def _create(self) -> None:
        from pymilvus import DataType, MilvusClient

        schema = MilvusClient.create_schema(auto_id=False)
        for name in ("id", "digest", *index.NAMES):
            schema.add_field(name, DataType.INT64, is_primary=name == "id")
        for name in index.NUMBERS:
            schema.add_field(name, DataType.DOUBLE)
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=self._snapshot.X.shape[1])
        index_params = MilvusClient.prepare_index_params()
        kind, params = ("FLAT", {}) if self._exact else ("HNSW", {"M": 16, "efConstruction": 200})
        index_params.add_index("vector", index_type=kind, metric_type="L2", params=params)
        # with "Strong", searches find entries that were just pushed
        options = {"schema": schema, "index_params": index_params, "consistency_level": "Strong"}
        self._ask("create_collection", self._collection, **options)

    def _update(self, ids: Int64Array, digests: Int64Array, progress: Progress) -> None:
        here = self._snapshot.row_ids
        removed = ids[~np.isin(ids, here)]
        for start in range(0, len(removed), _MAX_BATCH):
            self._ask("delete", self._collection, ids=removed[start : start + _MAX_BATCH].tolist())
        at = places.places_among(ids, here)
        changed = np.flatnonzero(at >= 0)
        changed = changed[digests[at[changed]] != self._remote.digests[changed]]
        batch = max(1, min(_MAX_BATCH, _BATCH_BYTES // (4 * self._snapshot.X.shape[1])))
        for rows, method in ((np.flatnonzero(at < 0), "insert"), (changed, "upsert")):
            for start in range(0, len(rows), batch):
                progress("pushing songs to the index server", start, len(rows))
                self._ask(method, self._collection, self._entries(rows[start : start + batch]))
        self._ask("flush", self._collection)
        self._ask("load_collection", self._collection)

    def read_entries(self, client: Any) -> tuple[Int64Array, Int64Array]:
        """Read the ids and digests of the collection's entries; takes 30 s for 200,000 songs on Milvus Lite."""
        ids, digests = [], []
        entries = client.query_iterator(
            self._collection, batch_size=_READ_BATCH, filter="", output_fields=["id", "digest"]
        )
        max_entries = _MAX_RATIO * (self._snapshot.n_indexed + _READ_BATCH)
        with self._remote.server.understood():
            while batch := entries.next():
                ids += [operator.index(entry["id"]) for entry in batch]
                digests += [operator.index(entry["digest"]) for entry in batch]
                if len(ids) > max_entries:
                    raise ValueError(f"more than {max_entries:,} songs; drop the collection {self._collection}")
            entries.close()
            return np.array(ids, dtype=np.int64), np.array(digests, dtype=np.int64)

    def _entries(self, rows: Int64Array) -> list[dict[str, Any]]:
        columns = {"id": self._snapshot.row_ids, "digest": self._remote.digests, **self._remote.values}
        values = [column[rows].tolist() for column in columns.values()]
        names = (*columns, "vector")
        return [
            dict(zip(names, row, strict=True)) for row in zip(*values, self._snapshot.vectors_at(rows), strict=True)
        ]

    def _drop_aliases(self, collection: str) -> None:
        for alias in self._aliases(collection):
            self._ask("drop_alias", alias)

    def _aliases(self, collection: str) -> list[str]:
        answer = self._ask("list_aliases", collection)
        with self._remote.server.understood():
            return list(answer["aliases"])


_queued: dict[Path, Snapshot] = {}
_pushing: set[Path] = set()
_lock = threading.Lock()


def push_in_background(snapshot: Snapshot) -> None:
    """Push on a separate thread; if new snapshots arrive during a push, push only the latest afterwards."""
    refuse_visitors()
    folder = snapshot.library.folder
    if index.remote_of(snapshot) is None:
        return
    with _lock:
        _queued[folder] = snapshot
        if folder in _pushing:
            return
        _pushing.add(folder)
    threading.Thread(target=_push_queued, args=(folder,), name="push", daemon=True).start()


def _push_queued(folder: Path) -> None:
    while True:
        with _lock:
            snapshot = _queued.pop(folder, None)
            if snapshot is None:
                _pushing.discard(folder)
                return
        _try_to_push(snapshot)


def push_after_refresh(library: Library, progress: Progress) -> None:
    if index.index_server() is not None:
        _try_to_push(take_snapshot(library), progress)


def _try_to_push(snapshot: Snapshot, progress: Progress = no_progress) -> None:
    try:
        push(snapshot, progress)
    except (index.IndexServerError, OwnerOnlyError) as error:
        _log.warning("the songs were not pushed to the index server: %s", error)
