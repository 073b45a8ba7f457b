"""Ten million songs on one machine: vectors on the disk, an index in memory.

Vectors of 105 dimensions, like the app's (`large_library.drawn_vectors`), are in a file that is mapped. There are a
million, and ``--full`` also measures ten million (4.2 GB, and 1.1 GB for the index, in the folder for temporary files).
Each index is built in one process, saved, and opened in another one, which starts with none of the files in memory.

`s` are wall seconds, `cpu_s` CPU seconds of all threads. Queries come one at a time on one thread. `ms` is the median
wall time, `ms_p95` its 95th percentile, `cpu_ms` the mean CPU time. `mb` is the peak memory of the process, sampled ten
times per second. It includes the pages of the index, but not those of the vectors, which the system may drop anytime.

An index is measured at settings a factor of 1.4 apart; that of a recall is the first that reaches it. Recall is the
share of the true ten nearest found, for held-out queries. Filters are drawn masks. Batches of queries are measured on
one core and on all. "hubs reduced" are complete results of the app: the 500 nearest, re-ordered by mutual proximity
(`HubReduction`), compared with the same of the true 500.

Rivals: faiss IVF-PQ of 35 bytes per row, and usearch (HNSW, M 16), mapped from the disk. The nearest of faiss are
ranked in numpy by the vectors of the file, because its own refinement would load these into memory. With ten million
vectors, usearch is left out, because it would build for hours.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.large_library import VECTOR_DIMENSIONS, drawn_vectors
from benchmarks.search import geometric, n_lists, recall
from benchmarks.support.columns import (
    NUMBER_0,
    SHARE_3,
    SIGNIFICANT_2,
    KeptRow,
    KeptRows,
    Lines,
    Table,
    group_rows,
    list_values,
)
from benchmarks.support.memory import MostHeld, alone
from benchmarks.support.report import Claim, Progress, Row, Settings, at_least, at_most, main, version
from musicsim._arrays import BoolArray, Float32Array, Int64Array
from musicsim.explorer.snapshot.model_rows import HubReduction
from musicsim.search import ExactIndex, MutualProximity, PartitionIndex

__all__ = ["Songs", "measure"]

K = 10
LEVELS = (0.95, 0.99)
_ROWS, _FULL_ROWS = 1_000_000, 10_000_000
_N_QUERIES, _N_ADDED, _CANDIDATES = 200, 1_000, 500
_BATCH, _REPEATS = 10, 3
_CORES = {"one core": 1, "every core": -1}
_SHARES = (0.1, 0.01, 0.001)
_PROBES = geometric(2, 2_048)
_BLOCK = 65_536
_OURS, _FAISS, _USEARCH = "PartitionIndex", "faiss IVF-PQ", "usearch"
_RIVALS = {_FAISS: "faiss-cpu", _USEARCH: "usearch"}
# Goals for ten million rows.
_BUILD_S, _OPEN_S, _ADD_S, _MS, _MAX_MB = 1_200.0, 2.0, 1.0, {0.95: 10.0, 0.99: 30.0}, 3_000.0
_PER_CORE = 0.9

Ask = Callable[[Float32Array], Int64Array]


@dataclass(frozen=True, slots=True)
class Songs:
    """Files of vectors: `n` rows, the rows that are added later, and queries; `truth` has the expected results."""

    folder: Path
    n: int

    @property
    def file(self) -> Path:
        return self.folder / "vectors.f32"

    def rows(self, n: int) -> Float32Array:
        """Return the first rows, mapped."""
        return np.memmap(self.file, np.float32, mode="r", shape=(n, VECTOR_DIMENSIONS))

    def queries(self) -> Float32Array:
        return np.load(self.folder / "queries.npy")

    def truth(self) -> dict[str, Int64Array]:
        with np.load(self.folder / "truth.npz") as arrays:
            return dict(arrays)

    def mask(self, share: float) -> BoolArray:
        """Draw the rows that a filter accepts."""
        return np.random.default_rng(0).random(self.n, dtype=np.float32) < share

    def is_not_in_memory(self) -> None:
        """Make the system drop the files from memory, unless a process has them mapped."""
        for path in self.folder.rglob("*"):
            if path.is_file():
                with path.open("rb") as stream:
                    os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def write(folder: Path, n: int, seed: int) -> Songs:
    """Draw the rows, the ones to add and the queries; return the location of their files."""
    songs, n_rows = Songs(folder, n), n + _N_ADDED
    queries, first = [], 0
    with songs.file.open("wb") as stream:
        for block in drawn_vectors(n_rows + _N_QUERIES, VECTOR_DIMENSIONS, seed):
            part = max(0, n_rows - first)
            block[:part].tofile(stream)
            queries.append(block[part:])
            first += len(block)
        os.fsync(stream.fileno())  # the system drops only pages that are on the disk
    np.save(folder / "queries.npy", np.concatenate(queries))
    return songs


def compare_with_all(songs: Songs) -> dict[str, Any]:
    """Write the expected results, by comparing with every row."""
    X, Q = songs.rows(songs.n), songs.queries()
    index = ExactIndex().fit(X)
    distances, ids = index.query(Q, _CANDIDATES)
    reduced = _hubs_reduced(X)
    of_shares = {str(share): index.query(Q, K, allowed=songs.mask(share))[1] for share in _SHARES}
    hubs = [reduced(*found) for found in zip(Q, distances, ids, strict=True)]
    np.savez(songs.folder / "truth.npz", near=ids[:, :K], hubs=np.array(hubs), **of_shares)
    return {}


def _hubs_reduced(X: Float32Array) -> Callable[[Float32Array, Any, Int64Array], Int64Array]:
    """Return a function that re-orders candidates of a query as the app does, and returns the first ten."""
    # as in large libraries, however small this one is: moments of candidates are computed for each query
    hubs = HubReduction(len(X), lambda rows: X[rows], MutualProximity, max_in_advance=0)

    def first_ten(q: Float32Array, distances: Any, ids: Int64Array) -> Int64Array:
        return ids[np.argsort(hubs.adjust_distances(q, distances, ids), kind="stable")[:K]]

    return first_ten


# --- ours -----------------------------------------------------------------------------------------


def build_ours(songs: Songs, seed: int) -> dict[str, Any]:
    """Build over the mapped rows and save."""
    with MostHeld(songs.file) as most:
        wall, cpu = time.perf_counter(), time.process_time()
        index = PartitionIndex(random_state=seed).fit(songs.rows(songs.n))
        index.save(songs.folder / _OURS)
        found = {"s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
    about = f"{index.n_leaves_} cells, {index.n_axes_} axes, {index.nbytes_ / 1e6:.0f} MB saved"
    return {**found, "mb": most.bytes / 1e6, "setting": about}


def ask_ours(songs: Songs) -> dict[str, Any]:
    """Open, search, add; in a process that has compiled nothing, with no files in the system's memory."""
    _compile(songs)
    songs.is_not_in_memory()
    Q, truth, steps = songs.queries(), songs.truth(), []
    with threadpool_limits(1), MostHeld(songs.file) as most:
        wall, cpu = time.perf_counter(), time.process_time()
        X = songs.rows(songs.n)
        index = PartitionIndex.load(songs.folder / _OURS, X)
        steps.append({"what": "open", "s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu})
        index.n_jobs = 1

        def ask(n_probes: int, q: Float32Array) -> Int64Array:
            return index.query(q[None], K, n_probes=n_probes)[1][0]

        cold = _answers(partial(ask, _PROBES[4]), Q, truth["near"], X)
        steps.append({"what": "first queries, nothing in memory", "setting": f"{_PROBES[4]} cells", **cold})
        at_level = _at_levels([(f"{n} cells", partial(ask, n)) for n in _PROBES], Q, truth["near"], X)
        for level, found in at_level.items():
            steps.append({"what": _query(level), **found})
        n_probes = int(at_level[LEVELS[0]].get("setting", f"{_PROBES[-1]}").split()[0])
        many = np.tile(Q, (_BATCH, 1))
        for cores, index.n_jobs in _CORES.items():
            seconds = min(_wall(partial(index.query, many, K, n_probes=n_probes)) for _ in range(_REPEATS))
            steps.append({"what": f"{len(many):,} queries at once, {cores}", "s": seconds})
        index.n_jobs = 1
        for share in _SHARES:
            mask = songs.mask(share)

            def of_some(q: Float32Array, mask: BoolArray = mask) -> Int64Array:
                return index.query(q[None], K, allowed=mask, n_probes=n_probes)[1][0]

            found = _answers(of_some, Q, truth[str(share)], X)
            steps.append({"what": _of_share(share), "setting": f"{n_probes} cells", **found})
        reduced = _hubs_reduced(X)

        def without_hubs(q: Float32Array) -> Int64Array:
            distances, ids = index.query(q[None], _CANDIDATES, n_probes=n_probes)
            return reduced(q, distances[0], ids[0])

        found = _answers(without_hubs, Q, truth["hubs"])
        steps.append({"what": "hubs reduced", "setting": f"{n_probes} cells", **found})
        wall, cpu = time.perf_counter(), time.process_time()
        grown = PartitionIndex.load(songs.folder / _OURS, songs.rows(songs.n + _N_ADDED))
        seconds = {"s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
        new = songs.rows(songs.n + _N_ADDED)[songs.n :]
        own = [grown.query(row[None], 1, n_probes=n_probes)[1][0] for row in new]
        share = float(np.mean(np.ravel(own) == np.arange(songs.n, songs.n + _N_ADDED)))
        steps.append({"what": f"open with {_N_ADDED:,} more", "recall": share, **seconds})
    return {"mb": most.bytes / 1e6, "steps": steps}


def _compile(songs: Songs) -> None:
    """Compile the search kernels or read them from the cache, with a few rows."""
    few = np.array(songs.rows(2_000))
    with tempfile.TemporaryDirectory() as folder:
        PartitionIndex(random_state=0).fit(few[:1_900]).save(Path(folder, "few"))
        index = PartitionIndex.load(Path(folder, "few"), few)
        index.query(few[:1])
        index.query(few[:1], allowed=np.arange(len(few)) % 2 == 0)


def _wall(do: Callable[[], object]) -> float:
    started = time.perf_counter()
    do()
    return time.perf_counter() - started


# --- rivals ---------------------------------------------------------------------------------------


def _by_vectors(X: Float32Array, q: Float32Array, ids: Int64Array) -> Int64Array:
    """Return the ten nearest of the candidates by the vectors of the file."""
    ids = np.sort(ids[ids >= 0])
    differences = X[ids] - q
    return ids[np.argsort(np.einsum("ij,ij->i", differences, differences), kind="stable")[:K]]


def build_faiss(songs: Songs, seed: int) -> dict[str, Any]:
    import faiss

    X, lists = songs.rows(songs.n), n_lists(songs.n)
    with MostHeld(songs.file) as most:
        wall, cpu = time.perf_counter(), time.process_time()
        index = faiss.index_factory(VECTOR_DIMENSIONS, f"IVF{lists},PQ35")
        chosen = np.random.default_rng(seed).choice(songs.n, min(64 * lists, songs.n), replace=False)
        index.train(X[np.sort(chosen)])
        for start in range(0, songs.n, _BLOCK):
            index.add(X[start : start + _BLOCK])
        faiss.write_index(index, str(songs.folder / "faiss"))
        found = {"s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
    return {**found, "mb": most.bytes / 1e6, "setting": f"{lists} lists, 35 bytes a row"}


def ask_faiss(songs: Songs) -> dict[str, Any]:
    import faiss

    faiss.omp_set_num_threads(1)
    songs.is_not_in_memory()
    X, Q, near = songs.rows(songs.n), songs.queries(), songs.truth()["near"]
    with threadpool_limits(1), MostHeld(songs.file) as most:
        wall, cpu = time.perf_counter(), time.process_time()
        index = faiss.read_index(str(songs.folder / "faiss"))
        seconds = {"s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}

        def ask(nprobe: int, n_ranked: int, q: Float32Array) -> Int64Array:
            index.nprobe = nprobe
            return _by_vectors(X, q, index.search(q[None], n_ranked)[1][0])

        settings = [(f"{n} lists, {ranked} ranked", partial(ask, n, ranked)) for n in _PROBES for ranked in (50, 200)]
        steps = [{"what": "open", **seconds}]
        for level, found in _at_levels(settings, Q, near, X).items():
            steps.append({"what": _query(level), **found})
    return {"mb": most.bytes / 1e6, "steps": steps}


def build_usearch(songs: Songs, seed: int) -> dict[str, Any]:
    from usearch.index import Index

    X = songs.rows(songs.n)
    with MostHeld(songs.file) as most:
        wall, cpu = time.perf_counter(), time.process_time()
        index = Index(ndim=VECTOR_DIMENSIONS, metric="l2sq", dtype="f32", connectivity=16, expansion_add=100)
        for start in range(0, songs.n, _BLOCK):
            block = np.array(X[start : start + _BLOCK])
            index.add(np.arange(start, start + len(block)), block, threads=2)
        index.save(str(songs.folder / "usearch"))
        found = {"s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
    return {**found, "mb": most.bytes / 1e6, "setting": "M 16, expansion_add 100"}


def ask_usearch(songs: Songs) -> dict[str, Any]:
    from usearch.index import Index

    songs.is_not_in_memory()
    X, Q, near = songs.rows(songs.n), songs.queries(), songs.truth()["near"]
    with threadpool_limits(1), MostHeld(songs.file) as most:
        wall, cpu = time.perf_counter(), time.process_time()
        index = Index.restore(str(songs.folder / "usearch"), view=True)
        seconds = {"s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}

        def ask(expansion: int, q: Float32Array) -> Int64Array:
            index.expansion_search = expansion
            return index.search(q, K, threads=1).keys.astype(np.int64)

        settings = [(f"expansion {n}", partial(ask, n)) for n in geometric(16, 1_024)]
        steps = [{"what": "open", **seconds}]
        for level, found in _at_levels(settings, Q, near, X).items():
            steps.append({"what": _query(level), **found})
    return {"mb": most.bytes / 1e6, "steps": steps}


# --- measures -------------------------------------------------------------------------------------


def _answers(ask: Ask, Q: Float32Array, true: Int64Array, X: Float32Array | None = None) -> dict[str, Any]:
    """Return the recall and the time per query; with the rows, a row as near as the true tenth counts as found."""
    seconds, found = [], np.full((len(Q), K), -1, np.int64)
    cpu = time.process_time()
    for row, q in zip(found, Q, strict=True):
        started = time.perf_counter()
        ids = ask(q)
        seconds.append(time.perf_counter() - started)
        row[: len(ids)] = ids
    cpu = (time.process_time() - cpu) / len(Q)
    if X is not None:
        share = recall(X, Q, found, true)
    else:
        share = float(np.mean([np.isin(a, b).mean() for a, b in zip(true, found, strict=True)]))
    ms, p95 = 1e3 * np.percentile(seconds, [50, 95])
    return {"recall": share, "ms": ms, "ms_p95": p95, "cpu_ms": 1e3 * cpu}


def _at_levels(
    settings: Iterable[tuple[str, Ask]], Q: Float32Array, true: Int64Array, X: Float32Array
) -> dict[float, dict[str, Any]]:
    """Measure the first setting that reaches each recall; the second of two runs counts. Empty if none reaches it."""
    found: dict[float, dict[str, Any]] = {level: {} for level in LEVELS}
    for setting, ask in settings:
        _answers(ask, Q, true, X)
        answers = {"setting": setting, **_answers(ask, Q, true, X)}
        for level in LEVELS:
            if not found[level] and answers["recall"] >= level:
                found[level] = answers
        if all(found.values()):
            break
    return found


def _query(level: float) -> str:
    return f"query at recall {level:.2f}"


def _of_share(share: float) -> str:
    return f"of {share:.1%} of the songs"


def measure(folder: Path, n: int, seed: int, progress: Progress, *, rivals: Sequence[str]) -> list[Row]:
    """Measure all indexes over n songs drawn into a folder; a rival that crashes leaves its rows out."""
    songs = write(folder, n, seed)
    progress(f"{n:,} vectors written")
    alone(compare_with_all, songs)
    progress("compared with all")
    rows: list[Row] = []
    for name, build, ask in (
        (_OURS, build_ours, ask_ours),
        (_FAISS, build_faiss, ask_faiss),
        (_USEARCH, build_usearch, ask_usearch),
    ):
        if name not in (_OURS, *rivals):
            continue
        try:
            for what, found in (("build", alone(build, songs, seed)), ("answer", alone(ask, songs))):
                rows += _rows(name, n, what, found)
        except (BrokenProcessPool, ImportError, RuntimeError) as error:
            progress(f"{name}: left out, {error}")
        for row in rows:
            if row["index"] == name:
                progress(str(row))
    return rows


def _rows(name: str, n: int, what: str, found: dict[str, Any]) -> list[Row]:
    steps = found.pop("steps", [{"what": what, "s": found["s"], "cpu_s": found.get("cpu_s")}])
    return [{"index": name, "rows": n, "setting": found.get("setting"), **step, "mb": found["mb"]} for step in steps]


def _claims(rows: Sequence[Row], n: int) -> list[Claim]:
    of_ours = {row["what"]: row for row in rows if row["index"] == _OURS}

    def figure(what: str, column: str) -> float | None:
        return of_ours.get(what, {}).get(column)

    songs = f"{n:,} songs"
    answers = [*(_of_share(share) for share in _SHARES), "hubs reduced"]
    claims = [
        at_most(f"{songs}: seconds to build and save", figure("build", "s"), _BUILD_S),
        at_most(f"{songs}: MB held while building", figure("build", "mb"), _MAX_MB),
        at_most(f"{songs}: seconds to open", figure("open", "s"), _OPEN_S),
        at_most(f"{songs}: MB held while answering", figure("open", "mb"), _MAX_MB),
        *(
            at_most(f"{songs}: ms of a query at recall {level:.2f}", figure(_query(level), "ms"), _MS[level])
            for level in LEVELS
        ),
        *(at_most(f"{songs}: ms of a query, {what}", figure(what, "ms"), _MS[0.95]) for what in answers),
        *(at_least(f"{songs}: recall {what}", figure(what, "recall"), 0.95) for what in answers),
    ]
    on_one, on_all = (figure(f"{_N_QUERIES * _BATCH:,} queries at once, {cores}", "s") for cores in _CORES)
    claims.append(
        at_least(
            f"{songs}: times as fast on every core, for each of them",
            on_one / on_all / os.cpu_count() if on_one and on_all else None,
            _PER_CORE,
        )
    )
    added = f"open with {_N_ADDED:,} more"
    claims.append(at_most(f"{songs}: seconds to {added}", figure(added, "s"), _ADD_S))
    for rival in (_FAISS, _USEARCH):
        for level in LEVELS:
            theirs = [r.get("ms") for r in rows if r["index"] == rival and r["what"] == _query(level)]
            ours = figure(_query(level), "ms")
            if theirs and theirs[0] and ours:
                claims.append(
                    at_least(f"{songs}: times as fast as {rival} at recall {level:.2f}", theirs[0] / ours, 1.0)
                )
    return claims


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Measure in a folder for temporary files."""
    settings.facts["vectors"] = f"{VECTOR_DIMENSIONS} dimensions, drawn like the app's"
    rivals = [name for name, package in _RIVALS.items() if version(package)]
    rows: list[Row] = []
    claims: list[Claim] = []
    for n in (_ROWS, _FULL_ROWS) if settings.full else (_ROWS,):
        of_size = [name for name in rivals if n == _ROWS or name != _USEARCH]
        with tempfile.TemporaryDirectory() as folder:
            found = measure(Path(folder), n, settings.seed, progress, rivals=of_size)
        rows, claims = [*rows, *found], [*claims, *_claims(found, n)]
    return rows, claims


# --- tables of the documents --------------------------------------------------------------------------------


def _tabulate_indexes(rows: KeptRows) -> Lines:
    yield (
        "vectors, index", "build: s, CPU s", "a query at a recall of .95, ms", "at a recall of .99, ms",
        "memory while searching, MB",
    )  # fmt: skip
    for (n, index), of_index in group_rows(rows, "rows", "index"):
        own = {row["what"]: row for row in of_index}
        build, queries = own["build"], [own.get(f"query at recall 0.{level}") for level in (95, 99)]
        yield (
            f"{n:,}, {index}",
            f"{NUMBER_0(build['s'])}, {NUMBER_0(build['cpu_s'])}",
            *(f"{SIGNIFICANT_2(row['ms'])} ({SHARE_3(row['recall'])})" if row else "–" for row in queries),
            NUMBER_0(own["open"]["mb"]),
        )


def _step(row: KeptRow) -> str:
    if row.get("ms") is None:
        return f"{SIGNIFICANT_2(row['s'])} s"
    recall = "" if row.get("recall") is None else f"; recall {SHARE_3(row['recall'])}"
    return f"{SIGNIFICANT_2(row['ms'])} ms; 95% take less than {SIGNIFICANT_2(row['ms_p95'])} ms{recall}"


def _tabulate_steps(rows: KeptRows) -> Lines:
    yield "PartitionIndex", *(f"{n:,} vectors" for n in list_values(rows, "rows"))
    for (what,), of_sizes in group_rows([row for row in rows if row["index"] == "PartitionIndex"], "what"):
        yield what, *map(_step, of_sizes)


TABLES: dict[str, Table] = {"ten_million: indexes": _tabulate_indexes, "ten_million: steps": _tabulate_steps}


if __name__ == "__main__":
    main(
        "ten_million", "ten million songs on one machine", run, rivals=tuple(_RIVALS.values()),
        short="one million vectors only. The full form is worth running, because the goals are for ten million",
    )  # fmt: skip
