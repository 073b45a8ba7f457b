"""Relevance.from_plays: the ten items that share most listeners, by Jaccard index, exactly.

The plays are those of hetrec2011-lastfm-2k, if the optional data folder exists, and generated ones. The generated plays
are 5 million of 100,000 listeners, or with ``--full`` 50 million of 1,000,000. The popularity of their 187,000 artists
follows Zipf's law with a flat head: a sixth of the listeners play the first artist. A listener has about 51 artists,
log-normal. Counts are log-normal too; four fifths reach the threshold of 10.

First calls run in separate processes, from a sparse matrix and from three columns in random order. They are measured in
wall and CPU seconds, including imports and the loading of compiled code, and in peak memory, including the plays. Then
a warm call is compared with the naive way: scipy's sparse product by blocks, and a partial sort of each row. On
hetrec2011-lastfm-2k it is also compared with scikit-learn's Jaccard distance of dense rows, for a few items, with its
seconds scaled up to all items. The rivals must return the same results.
"""

import multiprocessing
import resource
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.support.report import Claim, Progress, Row, Settings, at_least, at_most, load_found, main
from musicsim._arrays import Float32Array, Float64Array, Int32Array, Int64Array, IntegerArray
from musicsim.datasets import open_text
from musicsim.relevance import Relevance

HETREC = "hetrec2011-lastfm-2k"
FIRST_CALL = f"{HETREC}: CPU seconds, the first call of a process"
K, THRESHOLD = 10, 10
N_ARTISTS = 187_000
BLOCK = 256
"""Items whose similarities scipy's product holds at once."""
N_DENSE = 20
"""Items that scikit-learn is timed on."""

Plays = tuple[Int32Array, Int32Array, Float32Array]
Found = dict[int, list[int]]


def generated_plays(n_users: int, seed: int) -> Plays:
    """Draw listeners, artists and counts, about 51 per listener, each pair once, in random order."""
    rng = np.random.default_rng(seed)
    popularity = 1.0 / (np.arange(N_ARTISTS) + 31.0)
    heights = np.cumsum(popularity / popularity.sum())
    drawn = np.maximum(rng.lognormal(np.log(46.0), 0.5, size=n_users), 1.0).astype(np.int64)
    user = np.repeat(np.arange(n_users), drawn)
    rank = np.minimum(np.searchsorted(heights, rng.random(len(user))), N_ARTISTS - 1)
    pairs = np.unique(user * N_ARTISTS + rank)
    rng.shuffle(pairs)
    users, ranks = np.divmod(pairs, N_ARTISTS)
    names = rng.permutation(N_ARTISTS)  # the popular ones are not the first
    counts = np.ceil(rng.lognormal(np.log(30.0), 1.3, size=len(users)))
    return users.astype(np.int32), names[ranks].astype(np.int32), counts.astype(np.float32)


def recorded_plays() -> Plays:
    """Return listeners, artists and counts of hetrec2011-lastfm-2k, both numbered from 0."""
    with open_text(HETREC, "user_artists.dat") as lines:
        table = np.loadtxt(lines, dtype=np.int64, skiprows=1)
    users, artists = (np.unique(table[:, i], return_inverse=True)[1].astype(np.int32) for i in (0, 1))
    return users, artists, table[:, 2].astype(np.float32)


def matrix(plays: Plays) -> sparse.csr_array:
    users, items, counts = plays
    return sparse.csr_array((counts, (users, items)))


def _best(item: int, others: IntegerArray, similarity: Float64Array) -> list[int]:
    """Return the `K` most similar of `others`, ascending; ties go to the lower item."""
    left = np.flatnonzero((similarity > 0.0) & (others != item))
    if len(left) > K:
        least = np.partition(similarity[left], -K)[-K]
        left = left[similarity[left] >= least]
        left = left[np.lexsort((others[left], -similarity[left]))[:K]]
    return sorted(others[left].tolist())


def by_scipy(plays: sparse.csr_array) -> Found:
    """Compute blocks of the sparse product ``F.T @ F``, and the best of each row."""
    heard = plays.copy()
    heard.data = (heard.data >= THRESHOLD).astype(np.int32)
    heard.eliminate_zeros()
    by_item = heard.T.tocsr()
    listeners = np.diff(by_item.indptr)
    found: Found = {}
    for start in range(0, len(listeners), BLOCK):
        shared = by_item[start : start + BLOCK] @ heard
        for row in range(shared.shape[0]):
            part = slice(shared.indptr[row], shared.indptr[row + 1])
            others, both = shared.indices[part], shared.data[part]
            similarity = both / (listeners[start + row] + listeners[others] - both)
            found[start + row] = _best(start + row, others, similarity)
    return found


def by_scikit_learn(plays: sparse.csr_array, items: Int64Array) -> Found:
    """Compute Jaccard distances of dense rows; every item in `items` must have listeners."""
    from sklearn.metrics import pairwise_distances

    by_item = (plays >= THRESHOLD).toarray().T
    similarity = 1.0 - pairwise_distances(by_item[items], by_item, metric="jaccard")
    every = np.arange(len(by_item))
    return {int(item): _best(item, every, row) for item, row in zip(items, similarity, strict=True)}


def ours(plays: Any) -> Relevance:
    return Relevance.from_plays(plays, K, THRESHOLD)


def assert_equal(relevance: Relevance, found: Found) -> None:
    """Raise AssertionError if the rival's lists differ from ours."""
    for item, expected in found.items():
        if relevance.relevant(item).tolist() != expected:
            raise AssertionError(f"item {item}: {relevance.relevant(item)} is not {expected}")


def _peak_gb() -> float:
    """Return the peak memory of this process; getrusage would include the parent's at the fork."""
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        return int(status.partition("VmHWM:")[2].split()[0]) / 1e6
    except OSError:  # not Linux
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e9


def _measure(folder: str, form: str) -> dict[str, float]:
    """Measure wall and CPU seconds and the peak memory of the first call, in a new process."""
    import pandas as pd

    plays = tuple(np.load(Path(folder) / f"{part}.npy") for part in ("users", "items", "counts"))
    given: Any = matrix(plays) if form == "sparse matrix" else pd.DataFrame(dict(zip("uic", plays, strict=True)))
    bytes_given = (
        sum(a.nbytes for a in (given.data, given.indices, given.indptr))
        if sparse.issparse(given)
        else given.memory_usage().sum()
    )
    del plays
    wall, cpu = time.perf_counter(), time.process_time()
    ours(given)
    return {
        "wall s": time.perf_counter() - wall,
        "CPU s": time.process_time() - cpu,
        "plays as given, GB": float(bytes_given) / 1e9,
        "peak, GB": _peak_gb(),
    }


def fresh_rows(data: str, plays: Plays) -> list[Row]:
    """Measure the first call in a separate process, for each form of the plays."""
    rows: list[Row] = []
    with TemporaryDirectory() as folder:
        for part, values in zip(("users", "items", "counts"), plays, strict=True):
            np.save(Path(folder) / f"{part}.npy", values)
        for form in ("sparse matrix", "three columns"):
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                measured = pool.submit(_measure, folder, form).result()
            rows.append({"data": data, "plays": len(plays[0]), "method": f"musicsim, {form}", **measured})
    return rows


def race_rows(data: str, plays: sparse.csr_array, settings: Settings, *, dense: bool) -> tuple[list[Row], Claim]:
    """Measure CPU seconds of warm calls; compare the rivals' results with ours."""
    relevance = ours(plays)
    runs: dict[str, tuple[Callable[[], Any], int]] = {
        "musicsim": (lambda: ours(plays), plays.shape[1]),
        "scipy": (lambda: by_scipy(plays), plays.shape[1]),
    }
    if dense:
        played = np.flatnonzero((plays >= THRESHOLD).sum(axis=0))
        few = np.random.default_rng(settings.seed).choice(played, size=N_DENSE, replace=False)
        runs["scikit-learn, dense"] = (lambda: by_scikit_learn(plays, few), N_DENSE)
    seconds: dict[str, float] = {}
    n_timed: dict[str, int] = {}
    for name, (function, n_timed[name]) in runs.items():
        start = time.process_time()
        found = function()
        seconds[name] = (time.process_time() - start) * plays.shape[1] / n_timed[name]
        if name != "musicsim":
            assert_equal(relevance, found)
    rows: list[Row] = [
        {
            "data": data,
            "plays": plays.nnz,
            "method": f"{name}, once warm",
            "CPU s": spent,
            "items timed": n_timed[name],
            "times ours": spent / seconds["musicsim"],
        }
        for name, spent in seconds.items()
    ]
    return rows, at_least(
        f"{data}: times faster than scipy's product, CPU", seconds["scipy"] / seconds["musicsim"], 1.0
    )


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Measure hetrec2011-lastfm-2k and 5 million generated plays, or 50 million with ``--full``."""
    rows: list[Row] = []
    claims: list[Claim] = []
    data = HETREC
    for plays in load_found({HETREC: recorded_plays}, settings, progress).values():
        fresh = fresh_rows(data, plays)
        raced, claim = race_rows(data, matrix(plays), settings, dense=True)
        rows += [*fresh, *raced]
        claims += [at_most(FIRST_CALL, max(row["CPU s"] for row in fresh), 3.0), claim]
        progress(data)
    n_users = 1_000_000 if settings.full else 100_000
    plays = generated_plays(n_users, settings.seed)
    million = round(len(plays[0]) / 1e6)
    data = f"generated, {million} million"
    settings.facts.update(users=n_users, artists=N_ARTISTS, heard=float((plays[2] >= THRESHOLD).mean()))
    progress(f"{data}: drawn")
    fresh = fresh_rows(data, plays)
    progress(f"{data}: first calls")
    rows += fresh
    minutes = max(row["CPU s"] for row in fresh) / 60
    claims.append(at_most(f"{data}: CPU minutes, of 10 for 50 million", minutes, 10 * million / 50))
    if settings.full:
        claims.append(at_most(f"{data}: peak of memory, GB", max(row["peak, GB"] for row in fresh), 6.0))
    raced, claim = race_rows(data, matrix(plays), settings, dense=False)
    return [*rows, *raced], [*claims, claim]


if __name__ == "__main__":
    main(
        "relevance", __doc__.splitlines()[0], run, data=(HETREC,), rivals=("scikit-learn",),
        short="5 of 50 million generated plays. The full form is worth running, because the goals are for 50 "
        "million plays",
    )  # fmt: skip
