"""Search by a Milvus server: agreement with local search, staying in sync, and the time per query.

Milvus Lite, a file, with the client of any Milvus: 200,000 songs of 105 dimensions (``--full``: 1,000,000), drawn by
:mod:`benchmarks.large_library`. They are searched first by comparison with all songs (FLAT), then, under a new model,
by a graph (HNSW). The truth is :class:`musicsim.search.ExactIndex`. Effects that only a cluster shows are not measured:
shards, replicas, a network. Needs the extras milvus and bench.
"""

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest import mock

import numpy as np

from benchmarks.large_library import write_library
from benchmarks.support.report import Claim, Progress, Row, Settings, at_least, main
from musicsim._arrays import Float32Array
from musicsim.explorer.refresh.fitting import new_record
from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.search.query import find_similar
from musicsim.explorer.snapshot.filtering import condition_of
from musicsim.explorer.snapshot.snapshot import Snapshot, take_snapshot
from musicsim.extensions.index_server.push import push
from musicsim.extensions.index_server.remote_index import remote_of
from musicsim.library import Library
from musicsim.library.db import schema
from musicsim.search import ExactIndex

__all__ = ["run"]

_N, _N_FULL, _DIMENSIONS = 200_000, 1_000_000, 105
_QUERIES, _K, _FEW = 40, 10, 5
_MOVED = 1_000  # songs that are removed and restored
_NOISE = 0.01  # per coordinate, between a song and a query near it


def run(settings: Settings, progress: Progress) -> tuple[Sequence[Row], Sequence[Claim]]:
    """Push, search, filter, remove and restore songs, and push a new model."""
    n = _N_FULL if settings.full else _N
    settings.facts.update({"songs": n, "dimensions": _DIMENSIONS, "queries": _QUERIES})
    with (
        tempfile.TemporaryDirectory(prefix="musicsim-milvus-") as name,
        mock.patch.dict(os.environ, MUSICSIM_INDEX=f"milvus:{name}/songs.db"),
        write_library(Path(name) / "library", n, n_dimensions=_DIMENSIONS, random_state=settings.seed) as library,
    ):
        progress("written")
        return _Run(library, settings.seed, progress).all()


class _Run:
    """The rows and claims of one library on a server."""

    def __init__(self, library: Library, seed: int, progress: Progress) -> None:
        self._library, self._progress = library, progress
        self._rng = np.random.default_rng(seed)
        self._rows: list[Row] = []
        self._claims: list[Claim] = []

    def all(self) -> tuple[Sequence[Row], Sequence[Claim]]:
        """Run all parts in order."""
        self._timed("push, FLAT", lambda: push(self._now(), exact=True))
        Q = self._queries()
        self._recall("FLAT", Q, 1.0)
        self._filters(Q)
        self._moves()
        self._timed("a new model", lambda: _use_new_model(self._library, self._rng))
        self._claim("a new model is searched here until it is pushed", self._now().search_trouble is not None)
        self._timed("push of a new model, HNSW", lambda: push(self._now(), exact=False))
        remote = remote_of(self._now())
        assert remote is not None
        self._claim("the collection of the old model is dropped", len(remote.server.ask("list_collections")) == 1)
        Q = self._queries()
        self._recall("HNSW", Q, 0.98)
        self._searches()
        return self._rows, self._claims

    def _now(self) -> Snapshot:
        return take_snapshot(self._library)

    def _claim(self, what: str, holds: bool) -> None:
        self._claims.append(Claim(what, str(holds), "True", holds))

    def _timed(self, what: str, do: Callable[[], object]) -> None:
        started = time.perf_counter()
        do()
        self._rows.append({"what": what, "s": time.perf_counter() - started})
        self._progress(f"{what}: {self._rows[-1]['s']:.1f} s")

    def _queries(self) -> Float32Array:
        X = self._now().X
        Q = X[self._rng.integers(len(X), size=_QUERIES)]
        return Q + _NOISE * self._rng.standard_normal(Q.shape, dtype=np.float32)

    def _ask(self, now: Snapshot, Q: Float32Array, how: str, ask: Callable[[Float32Array], object]) -> list[object]:
        """Return the results of each query; record the median time."""
        seconds, found = [], []
        for q in Q:
            started = time.perf_counter()
            found.append(ask(q))
            seconds.append(time.perf_counter() - started)
        self._rows.append({"what": how, "ms a query": 1e3 * float(np.median(seconds))})
        return found

    def _recall(self, kind: str, Q: Float32Array, goal: float) -> None:
        """Measure the share of the ten nearest, and of the 500 candidates of a search, that the server finds."""
        now = self._now()
        assert now.search_trouble is None, now.search_trouble
        truth = ExactIndex().fit(now.X)
        for k in (_K, 500):
            right = truth.query(Q, k)[1]
            found = self._ask(now, Q, f"{kind}: {k} nearest", lambda q, k=k: remote_of(now).nearest(q, k, None, None))
            shares = [np.isin(rows, near).mean() for rows, near in zip(found, right, strict=True)]
            self._claims.append(at_least(f"{kind}: recall of the {k} nearest", float(np.mean(shares)), goal))
            self._ask(now, Q, f"this machine: {k} nearest, compared with all", lambda q, k=k: truth.query(q[None], k))
        self._progress(f"{kind}: recall {self._claims[-2].value:.4f}, {self._claims[-1].value:.4f}")

    def _filters(self, Q: Float32Array) -> None:
        now = self._now()
        artist, genre, folder = (getattr(now.columns, name).names[7] for name in ("artist", "genre", "folder"))
        for filters in (
            Filters(artists=frozenset({artist})),
            Filters(no_artists=frozenset({artist})),
            Filters(genres=frozenset({genre})),
            Filters(folders=frozenset({folder})),
            Filters(years=(1970, 1979)),
            Filters(duration_s=(100.0, 200.0), genres=frozenset({genre})),
            Filters(words="not 1970s, short"),
            Filters(tags=frozenset({genre}), years=(1960, 1999)),
        ):
            condition = condition_of(now, filters)
            assert condition is not None
            allowed = condition.rows(now.columns)
            asked = next(name for name in vars(filters) if getattr(filters, name))
            found = self._ask(
                now, Q[:_FEW], f"FLAT: of {int(allowed.sum())} songs by {asked}",
                lambda q, a=allowed, c=condition: remote_of(now).nearest(q, _K, a, c),
            )  # fmt: skip
            right = now.index.query(Q[:_FEW], _K, allowed=allowed)[1]
            same = all(np.array_equal(one, other) for one, other in zip(found, right, strict=True))
            self._claim(f"filter by {asked}: the same songs as found here", same)
        self._progress("filters")

    def _moves(self) -> None:
        """Remove songs and restore them."""
        f = schema.files.c
        ids = self._rng.choice(self._now().row_ids, _MOVED, replace=False).tolist()
        for what, missing_since in (("are removed", 1.0), ("are added", None)):
            with self._library.write() as connection:
                connection.execute(schema.files.update().where(f.song_id.in_(ids)).values(missing_since=missing_since))
            self._timed(f"push after {_MOVED} songs {what}", lambda: push(self._now()))
            now = self._now()
            remote = remote_of(now)
            assert remote is not None
            count = remote.server.ask("query", remote.alias, output_fields=["count(*)"])[0]["count(*)"]
            self._claim(f"in step after {_MOVED} songs {what}", now.search_trouble is None and count == now.n_indexed)

    def _searches(self) -> None:
        """Time whole searches, including hub reduction, with each engine."""
        now = self._now()
        ids = self._rng.choice(now.row_ids, 3 * _FEW, replace=False).tolist()
        found = {}
        with mock.patch.dict(os.environ, MUSICSIM_INDEX="local"):
            here = self._now()
        for how, snapshot in (("Milvus", now), ("this machine", here)):
            find_similar(snapshot, ids[0])  # the moments of hub reduction are cached
            started = time.perf_counter()
            found[how] = [[hit.song.id for hit in find_similar(snapshot, song_id)] for song_id in ids]
            self._rows.append(
                {"what": f"a whole search, {how}", "ms a query": 1e3 * (time.perf_counter() - started) / len(ids)}
            )
        same = np.mean([np.isin(*pair).mean() for pair in zip(*found.values(), strict=True)])
        self._claims.append(at_least("whole searches: songs in common with those found here", float(same), 0.98))


def _use_new_model(library: Library, rng: np.random.Generator) -> None:
    """Start using a model with different neighbors."""
    now = take_snapshot(library)
    assert now.model is not None
    record = new_record("learned", "another", now.model, now.n_indexed)
    now.model.save(library.models.path(record.id))
    library.models.register(record)
    features = library.models.features().X
    library.models.append(record.id, now.row_ids.tolist(), features, rng.permutation(now.X))
    library.models.finish(record.id, activate=True)


if __name__ == "__main__":
    main(
        "milvus", "search by a Milvus server", run, rivals=("pymilvus", "milvus-lite", "faiss-cpu"),
        short="200,000 of 1,000,000 songs",
    )  # fmt: skip
