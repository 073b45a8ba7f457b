"""Songs on their way to the server that answers searches (:mod:`musicsim.extensions.index_server.remote_index`).

Each library and model has a collection. Its entries are compared with the songs by their digests, so the next push
continues one that was killed. A whole collection gets the alias for searches; until then every machine searches its own
index. At the end the collections of other models are dropped.
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

from musicsim._arrays import Int64Array
from musicsim.errors import OwnerOnlyError
from musicsim.explorer.models.artifacts import readable_arrays
from musicsim.explorer.snapshot.neighbours import INDEXED_FROM
from musicsim.explorer.snapshot.snapshot import Snapshot, take_snapshot
from musicsim.extensions.index_server.remote_index import (
    NAMES,
    NUMBERS,
    IndexServerError,
    RemoteIndex,
    alias_of,
    collection_of,
    give_name,
    index_server,
    prefix_of,
    remote_of,
)
from musicsim.library import Library
from musicsim.library.db.cache import save_arrays
from musicsim.progress import Progress, no_progress
from musicsim.public import refuse_visitors

_log = logging.getLogger(__name__)

_BATCH_BYTES = 4 << 20  # of vectors in one call: servers take 64 MB
_MAX_BATCH = 5_000
_READ_AT_ONCE = 10_000
_MOST_HELD = 10  # times the songs here: a collection may hold those of an earlier state
_LONG_S = 600.0  # one call may build the index of a collection


def push(snapshot: Snapshot, progress: Progress = no_progress, *, exact: bool | None = None) -> bool:
    """Bring the songs under the model in use to the server, as they are in a snapshot.

    Parameters
    ----------
    exact : bool, optional
        Whether the server compares with all songs, or builds a graph (HNSW), which it does by default from as many
        songs as this machine builds an index from. Collections that are there stay as they are.

    Returns
    -------
    bool
        Whether there was anything to do; also False where no server is named, or another process is at it.

    Raises
    ------
    IndexServerError
        If the server does not answer, or refuses.
    """
    refuse_visitors()  # the barrier does not cover gRPC
    remote = remote_of(snapshot)
    if remote is None or snapshot.record is None or not snapshot.n_indexed:
        return False
    folder = snapshot.library.models.path(snapshot.record.id)
    with suppress(filelock.Timeout), filelock.FileLock(folder / "push.lock", timeout=0):
        name = give_name(snapshot.library)
        collection = collection_of(name, snapshot.record.id)
        return _Push(snapshot, remote, folder, collection, exact).run(prefix_of(name), progress)
    return False


class _Push:
    """One state of the songs, and the collection that is to have it."""

    def __init__(
        self, snapshot: Snapshot, remote: RemoteIndex, folder: Path, collection: str, exact: bool | None
    ) -> None:
        self._snapshot, self._remote, self._collection = snapshot, remote, collection
        self._exact = snapshot.n_indexed < INDEXED_FROM if exact is None else exact
        self._record = folder / "pushed.npz"  # content of the alias
        self._ask = partial(self._remote.server.ask, timeout=_LONG_S)

    def run(self, prefix: str, progress: Progress) -> bool:
        """Bring the songs there; names of the library's collections begin with `prefix`."""
        pushed = {"ids": self._snapshot.row_ids, "digests": self._remote.digests}
        alias = alias_of(self._collection, **pushed)
        is_there = self._ask("has_collection", alias)
        if not is_there:
            progress("bringing songs to the index server")
            self._bring(*self._held(), progress)
            self._ask("create_alias", self._collection, alias)
            save_arrays(self._record, **pushed)
        with self._remote.server.understood():
            others = [name for name in self._ask("list_collections") if name.startswith(prefix)]
        for name in others:
            if name != self._collection:
                self._drop(name)
        return not is_there

    def _held(self) -> tuple[Int64Array, Int64Array]:
        """Return ids and digests of the collection, which is made if it is missing, and remove its aliases."""
        if not self._ask("has_collection", self._collection):
            self._create()
            return np.empty(0, np.int64), np.empty(0, np.int64)
        recorded = readable_arrays(self._record)
        is_so = bool(recorded) and alias_of(self._collection, **recorded) in self._aliases(self._collection)
        self._drop_aliases(self._collection)
        self._ask("load_collection", self._collection)
        # after a push that was killed, or that of a copy of the library, the server itself is asked
        return (recorded["ids"], recorded["digests"]) if is_so else self._remote.server.call(self._read)

    def _create(self) -> None:
        from pymilvus import DataType, MilvusClient

        schema = MilvusClient.create_schema(auto_id=False)
        for name in ("id", "digest", *NAMES):
            schema.add_field(name, DataType.INT64, is_primary=name == "id")
        for name in NUMBERS:
            schema.add_field(name, DataType.DOUBLE)
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=self._snapshot.X.shape[1])
        index = MilvusClient.prepare_index_params()
        kind, params = ("FLAT", {}) if self._exact else ("HNSW", {"M": 16, "efConstruction": 200})
        index.add_index("vector", index_type=kind, metric_type="L2", params=params)
        # strong: what was just pushed is found
        options = {"schema": schema, "index_params": index, "consistency_level": "Strong"}
        self._ask("create_collection", self._collection, **options)

    def _bring(self, ids: Int64Array, digests: Int64Array, progress: Progress) -> None:
        """Let the collection, which has some songs, have those of the snapshot and no others."""
        here = self._snapshot.row_ids
        gone = ids[~np.isin(ids, here)]
        for start in range(0, len(gone), _MAX_BATCH):
            self._ask("delete", self._collection, ids=gone[start : start + _MAX_BATCH].tolist())
        order = np.argsort(ids)
        places = np.searchsorted(ids, here, sorter=order)
        known = np.flatnonzero(places < len(ids))
        known = known[ids[order[places[known]]] == here[known]]
        is_new = np.ones(len(here), bool)
        is_new[known] = False
        changed = known[digests[order[places[known]]] != self._remote.digests[known]]
        batch = max(1, min(_MAX_BATCH, _BATCH_BYTES // (4 * self._snapshot.X.shape[1])))
        for rows, method in ((np.flatnonzero(is_new), "insert"), (changed, "upsert")):
            for start in range(0, len(rows), batch):
                progress("bringing songs to the index server", start, len(rows))
                self._ask(method, self._collection, self._entries(rows[start : start + batch]))
        self._ask("flush", self._collection)
        self._ask("load_collection", self._collection)

    def _read(self, client: Any) -> tuple[Int64Array, Int64Array]:
        """Return ids and digests of the collection from the server: 30 s for 200,000 songs on Milvus Lite."""
        ids, digests = [], []
        found = client.query_iterator(
            self._collection, batch_size=_READ_AT_ONCE, filter="", output_fields=["id", "digest"]
        )
        most = _MOST_HELD * (self._snapshot.n_indexed + _READ_AT_ONCE)
        with self._remote.server.understood():
            while batch := found.next():
                ids += [operator.index(entry["id"]) for entry in batch]
                digests += [operator.index(entry["digest"]) for entry in batch]
                if len(ids) > most:
                    raise ValueError(f"more than {most:,} songs. Drop the collection {self._collection} there")
            found.close()
            return np.array(ids, dtype=np.int64), np.array(digests, dtype=np.int64)

    def _entries(self, rows: Int64Array) -> list[dict[str, Any]]:
        columns = {"id": self._snapshot.row_ids, "digest": self._remote.digests, **self._remote.values}
        lists = {name: values[rows].tolist() for name, values in columns.items()}
        vectors = self._snapshot.vectors_at(rows)
        return [
            {name: values[i] for name, values in lists.items()} | {"vector": vector} for i, vector in enumerate(vectors)
        ]

    def _drop(self, collection: str) -> None:
        self._drop_aliases(collection)
        self._ask("drop_collection", collection)

    def _drop_aliases(self, collection: str) -> None:
        for alias in self._aliases(collection):
            self._ask("drop_alias", alias)

    def _aliases(self, collection: str) -> list[str]:
        said = self._ask("list_aliases", collection)
        with self._remote.server.understood():
            return list(said["aliases"])


_wanted: dict[Path, Snapshot] = {}
_pushing: set[Path] = set()
_lock = threading.Lock()


def push_in_background(snapshot: Snapshot) -> None:
    """Bring the songs to the server on a thread of its own, and after them those of the last snapshot given since."""
    refuse_visitors()
    folder = snapshot.library.folder
    if remote_of(snapshot) is None:
        return
    with _lock:
        _wanted[folder] = snapshot
        if folder in _pushing:
            return
        _pushing.add(folder)
    threading.Thread(target=_push_wanted, args=(folder,), name="push", daemon=True).start()


def _push_wanted(folder: Path) -> None:
    while True:
        with _lock:
            snapshot = _wanted.pop(folder, None)
            if snapshot is None:
                _pushing.discard(folder)
                return
        _push_if_it_can(snapshot)


def push_after_refresh(library: Library, progress: Progress) -> None:
    """Bring the songs of a refreshed library to the server."""
    if index_server() is not None:
        _push_if_it_can(take_snapshot(library), progress)


def _push_if_it_can(snapshot: Snapshot, progress: Progress = no_progress) -> None:
    """Bring the songs to the server, and note in the log where it is away: searches say so, too."""
    try:
        push(snapshot, progress)
    except (IndexServerError, OwnerOnlyError) as error:
        _log.warning("The songs were not brought to the index server: %s", error)
