"""Exact search in bit codes against faiss: microseconds per query for the ten nearest and for all within 2 bits.

Microseconds are CPU time on one thread, after numba has compiled. `top10_us` is for calls with 500 queries (fewer if
they are slow, but at least 20), `one_us` for calls with one query. `radius2_us` is for all codes within 2 bits, 500
queries per call. All contenders are measured the same way: rounds alternate between them, and the minimum time of each
counts.

`recall` is the share of the ten places that have a code no further than the true tenth. `within` is the share of the
codes within 2 bits that were found, or empty without such codes. The truth is computed with numpy for 50 queries.
`mb` is the memory of an index, including its copy of the codes (empty if the library does not report it).

Codes: see `_hamming_data`. faiss BinaryHash has buckets of 16 bits and searches those up to 2 bits away. MultiHash has
a table for each 16 bits and searches up to 1 bit away. Both may miss codes, see `recall`. usearch compares with all
codes in its exact form. Its graph is built over 100,000 codes only, because a million take 15 minutes or more.

The paper (Nair, Mahajan, Sundararajan, WWW 2012, 1 and 5.4) reports 13.7 us per query: 100,000 queries among 1.46
million codes of 32 bits in 1.37 s. It uses an inverted index on a Xeon of 2.33 GHz.
"""

import gc
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.support.cascade import HammingCascade
from benchmarks.support.hamming_data import KINDS, bytes_of
from benchmarks.support.parts import kept_parts
from benchmarks.support.report import Claim, Progress, Row, Settings, at_least, at_most, main, version
from benchmarks.support.rival import Answer, RivalError, RivalProcess, timed
from musicsim._arrays import Int64Array, Uint16Array, Uint64Array
from musicsim.extras import install_command
from musicsim.search import HammingIndex

__all__ = ["Built", "Case", "Contender", "claims", "measure", "truth"]

K, RADIUS = 10, 2
N_CODES, N_MANY, N_FEW = 1_460_000, 10_000_000, 100_000
N_QUERIES, _TRUE_QUERIES, _SINGLE_QUERIES = 500, 50, 50
_ROUNDS = 3
# Maximum seconds of a round of one contender.
_ROUND_S = 0.3
_MIN_QUERIES = 20

_SCAN, _BALLS = "musicsim scan", "musicsim balls"
_FLAT, _HASH, _MULTI = "faiss BinaryFlat", "faiss BinaryHash", "faiss BinaryMultiHash"

# Microseconds of MultiHash by bits, on codes like the clustered ones, at the time the goals were set.
_MULTI_THEN = {64: 190.0, 256: 242.0}


@dataclass(frozen=True)
class Built:
    """An index that is ready: the ten nearest ids of queries, (n, 10), those within 2 bits, and its size in bytes."""

    nearest: Callable[[Uint64Array], Int64Array | Answer]
    within: Callable[[Uint64Array], Sequence[Int64Array] | Answer] | None = None
    n_bytes: int | None = None

    def one_by_one(self, Q: Uint64Array) -> object:
        """Search the nearest of one query at a time."""
        return [self.nearest(q[None]) for q in Q]

    def facts(self) -> tuple[bool, int | None]:
        """Return whether it finds the codes within 2 bits, and its size in bytes."""
        return self.within is not None, self.n_bytes


class RemoteBuilt(Built):
    """An index of a rival, in a separate process."""

    def __init__(self, process: RivalProcess) -> None:
        has_within, n_bytes = process.call("facts").value
        within = partial(process.call, "within") if has_within else None
        super().__init__(partial(process.call, "nearest"), within, n_bytes)
        object.__setattr__(self, "_process", process)

    def one_by_one(self, Q: Uint64Array) -> Answer:
        """Search the nearest of one query at a time, in the other process."""
        return self._process.call("one_by_one", Q)


@dataclass(frozen=True, slots=True)
class Contender:
    """A kind of index; `rival` is the distribution to install."""

    name: str
    build: Callable[[Uint64Array, int], Built]
    rival: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """Codes of a kind, and the contenders that search them."""

    kind: str
    n_codes: int
    n_bits: int
    contenders: Sequence[Contender]

    def row(self, index: str) -> dict[str, Any]:
        """Return the first columns of an index's row."""
        return {"data": self.kind, "codes": self.n_codes, "bits": self.n_bits, "index": index}

    def __str__(self) -> str:
        return f"{self.kind}, {self.n_codes:,} codes of {self.n_bits} bits"


@dataclass(slots=True)
class Measured:
    """An index and the minimum microseconds of each kind of search."""

    name: str
    built: Built
    build_s: float
    us: dict[str, float] = field(default_factory=dict)
    n_queries: dict[str, int] = field(default_factory=dict)

    def ways(self) -> dict[str, Callable[[Uint64Array], object]]:
        built = self.built
        ways: dict[str, Callable[[Uint64Array], object]] = {"top10_us": built.nearest, "one_us": built.one_by_one}
        return ways if built.within is None else ways | {"radius2_us": built.within}

    def warm_up(self, Q: Uint64Array) -> None:
        """Run a few queries, and set the number of queries per round from their time."""
        for way, ask in self.ways().items():
            ask(Q[:2])
            a_query = timed(ask, Q[:_MIN_QUERIES]).seconds / _MIN_QUERIES
            most = _SINGLE_QUERIES if way == "one_us" else len(Q)
            self.n_queries[way] = int(np.clip(_ROUND_S / max(a_query, 1e-9), _MIN_QUERIES, most))

    def round(self, Q: Uint64Array) -> None:
        for way, ask in self.ways().items():
            asked = Q[: self.n_queries[way]]
            us = 1e6 * timed(ask, asked).seconds / len(asked)
            self.us[way] = min(us, self.us.get(way, math.inf))


@dataclass(frozen=True, slots=True)
class Truth:
    """Expected results for some queries: the tenth distance, and the number of codes within 2 bits."""

    X: Uint64Array
    Q: Uint64Array
    tenth: Int64Array
    n_near: int

    def shares(self, built: Built) -> tuple[float, float | None]:
        """Return the recall of the ten nearest, and of the codes within 2 bits (None without such codes)."""
        hits = self._count(timed(built.nearest, self.Q).value, self.tenth)
        if built.within is None or not self.n_near:
            return hits / (K * len(self.Q)), None
        found = self._count(timed(built.within, self.Q).value, np.full(len(self.Q), RADIUS))
        return hits / (K * len(self.Q)), found / self.n_near

    def _count(self, found: Sequence[Int64Array] | Int64Array, limits: Int64Array) -> int:
        """Return the number of codes no further than a limit, each counted once per query."""
        different = [np.unique(ids[ids >= 0]) for ids in found]
        return sum(
            np.count_nonzero(differing(self.X[ids], q) <= limit)
            for ids, q, limit in zip(different, self.Q, limits, strict=True)
        )


def differing(X: Uint64Array, q: Uint64Array) -> Uint16Array:
    """Return the number of bits in which each code differs from one, word after word."""
    total = np.zeros(len(X), np.uint16)
    for words, word in zip(X.T, q, strict=True):
        total += np.bitwise_count(words ^ word)
    return total


def truth(X: Uint64Array, Q: Uint64Array) -> Truth:
    """Compare queries with all codes, with numpy."""
    tenth, n_near = np.zeros(len(Q), np.int64), 0
    for i, q in enumerate(Q):
        counts = np.bincount(differing(X, q))
        tenth[i] = np.searchsorted(np.cumsum(counts), K)
        n_near += counts[: RADIUS + 1].sum()
    return Truth(X, Q, tenth, int(n_near))


def measure(case: Case, seed: int, progress: Progress) -> list[Row]:
    """Build and measure all contenders of a case; the row of a failed or crashed rival has the error in `failed`."""
    X, Q = KINDS[case.kind](case.n_codes, N_QUERIES, case.n_bits, seed)
    progress(f"{case}: drawn")
    rows: dict[str, Row] = {}
    racing: dict[str, Measured] = {}

    @contextmanager
    def may_fail(name: str) -> Iterator[None]:
        try:
            yield
        except RivalError as error:
            progress(f"{case}: {name}: left out, {error}")
            rows[name] = {**case.row(name), "failed": str(error)}

    with ExitStack() as held:
        for contender in case.contenders:
            if contender.rival and not version(contender.rival):
                continue
            with may_fail(contender.name):
                index = build(contender, X, case.n_bits, held)
                index.warm_up(Q)
                racing[contender.name] = index
        for _ in range(_ROUNDS):
            for name in [name for name in racing if name not in rows]:
                with may_fail(name):
                    racing[name].round(Q)
        true = truth(X, Q[:_TRUE_QUERIES])
        for name in [name for name in racing if name not in rows]:
            with may_fail(name):
                rows[name] = _row(case, racing[name], true)
            progress(f"{case}: {name}: " + ", ".join(f"{way} {us:.1f}" for way, us in racing[name].us.items()))
    return list(rows.values())


def build(contender: Contender, X: Uint64Array, n_bits: int, held: ExitStack) -> Measured:
    """Build an index; a rival's is built in a process that ends with `held`."""
    gc.collect()
    if contender.rival:
        process = held.enter_context(RivalProcess(contender.build, X, n_bits))
        return Measured(contender.name, RemoteBuilt(process), process.seconds)
    made = timed(contender.build, X, n_bits)
    return Measured(contender.name, made.value, made.seconds)


def _row(case: Case, index: Measured, true: Truth) -> Row:
    recall, within = true.shares(index.built)
    return {
        **case.row(index.name),
        "build_s": index.build_s,
        "mb": None if index.built.n_bytes is None else index.built.n_bytes / 1e6,
        **{way: index.us.get(way) for way in ("top10_us", "one_us", "radius2_us")},
        "recall": recall,
        "within": within,
    }


# --- contenders -----------------------------------------------------------------------------------


def _ours(X: Uint64Array, n_bits: int, method: str) -> Built:
    index = HammingIndex(method, n_bits=n_bits, n_jobs=1).fit(X)
    return Built(lambda Q: index.query(Q, K)[1], lambda Q: index.radius(Q, RADIUS)[1], index.nbytes_)


def _cascade(X: Uint64Array, n_bits: int) -> Built:
    # the first 32 bits are a separate code here
    def short(codes: Uint64Array) -> Uint64Array:
        return codes[:, :1] & np.uint64(0xFFFFFFFF)

    cascade = HammingCascade(100, n_short_bits=32, n_long_bits=n_bits, n_jobs=1).fit(short(X), X)
    return Built(lambda Q: cascade.query(short(Q), Q, k=K)[1], n_bytes=cascade.nbytes_)


def _split(bounds: Int64Array, ids: Int64Array) -> list[Int64Array]:
    """Split faiss's radius results by query."""
    ends = bounds.astype(np.int64).tolist()
    return [ids[start:end] for start, end in pairwise(ends)]


def _faiss(X: Uint64Array, n_bits: int, kind: str) -> Built:
    import faiss

    faiss.omp_set_num_threads(1)
    if kind == _FLAT:
        index = faiss.IndexBinaryFlat(n_bits)
    elif kind == _HASH:
        index = faiss.IndexBinaryHash(n_bits, 16)
        index.nflip = 2
    else:
        index = faiss.IndexBinaryMultiHash(n_bits, n_bits // 16, 16)
        index.nflip = 1
    index.add(bytes_of(X, n_bits))

    def within(Q: Uint64Array) -> list[Int64Array]:
        # its radius is exclusive
        bounds, _, ids = index.range_search(bytes_of(Q, n_bits), RADIUS + 1)
        return _split(bounds, ids)

    n_bytes = X.shape[0] * n_bits // 8 if kind == _FLAT else None
    return Built(lambda Q: index.search(bytes_of(Q, n_bits), K)[1], within, n_bytes)


def _usearch_exact(X: Uint64Array, n_bits: int) -> Built:
    from usearch.index import MetricKind, search

    codes = bytes_of(X, n_bits)

    def nearest(Q: Uint64Array) -> Int64Array:
        matches = search(codes, bytes_of(Q, n_bits), K, MetricKind.Hamming, exact=True, threads=1)
        return np.asarray(matches.keys).reshape(len(Q), K).astype(np.int64)

    return Built(nearest, n_bytes=codes.nbytes)


def _usearch_graph(X: Uint64Array, n_bits: int) -> Built:
    from usearch.index import Index

    index = Index(ndim=n_bits, metric="hamming", dtype="b1", connectivity=16, expansion_add=100)
    index.expansion_search = 100
    index.add(np.arange(len(X)), bytes_of(X, n_bits), threads=1)

    def nearest(Q: Uint64Array) -> Int64Array:
        matches = index.search(bytes_of(Q, n_bits), K, threads=1)
        return np.asarray(matches.keys).reshape(len(Q), K).astype(np.int64)

    return Built(nearest, n_bytes=index.memory_usage)


def contenders(n_codes: int, n_bits: int) -> list[Contender]:
    """Return the contenders for this many codes and bits."""
    made = [
        Contender(_SCAN, partial(_ours, method="scan")),
        Contender(_BALLS, partial(_ours, method="balls")),
        *(Contender(kind, partial(_faiss, kind=kind), "faiss-cpu") for kind in (_FLAT, _HASH, _MULTI)),
    ]
    if n_bits > 64:
        made.insert(2, Contender("musicsim cascade, 32 bits first", _cascade))
    if n_codes <= N_FEW:
        made.append(Contender("usearch exact", _usearch_exact, "usearch"))
        made.append(Contender("usearch graph, M 16, ef 100", _usearch_graph, "usearch"))
    return made


# --- the run --------------------------------------------------------------------------------------


def claims(case: Case, rows: Sequence[Row]) -> list[Claim]:
    """Return the claims on 1.46 million codes."""
    by_name: dict[str, Row] = {row["index"]: row for row in rows}
    label = f"{case.kind}, {case.n_bits} bits"

    def ratio(theirs: str, ours: str, column: str) -> float | None:
        slow, quick = by_name.get(theirs, {}).get(column), by_name[ours][column]
        return None if slow is None else slow / quick

    def told(name: str, column: str) -> str:
        share: Any = by_name.get(name, {}).get(column)
        return "" if share is None else f" (whose recall is {share:.3f})"

    made = []
    for column, how in (("top10_us", "batch"), ("one_us", "one by one")):
        goal = 1.0 if case.n_bits == 256 else 1.5
        what = f"{label}: top 10 by scan, {how}, times faster than {_FLAT}"
        made.append(at_least(what, ratio(_FLAT, _SCAN, column), goal))
    if case.n_bits == 32:
        ours = by_name[_BALLS]
        made.append(at_most(f"{label}: radius 2 by balls, us", ours["radius2_us"], 13.7))
        what = f"{label}: radius 2 by balls, times faster than {_HASH}{told(_HASH, 'within')}"
        made.append(at_least(what, ratio(_HASH, _BALLS, "radius2_us"), 1.0))
        if ours["within"] is not None:
            made.append(at_least(f"{label}: radius 2 by balls, recall", ours["within"], 1.0))
    else:
        what = f"{label}: top 10 by balls, times faster than {_MULTI}{told(_MULTI, 'recall')}"
        made.append(at_least(what, ratio(_MULTI, _BALLS, "top10_us"), 1.0))
        if case.kind == "clustered":
            what = f"{label}: top 10 by balls, us (goal: {_MULTI} when the goals were set)"
            made.append(at_most(what, by_name[_BALLS]["top10_us"], _MULTI_THEN[case.n_bits]))
    for name in (_SCAN, _BALLS):
        made.append(at_least(f"{label}: top 10 by {name.split()[1]}, recall", by_name[name]["recall"], 1.0))
    return made


def cases(settings: Settings) -> Iterator[Case]:
    """Yield the cases; the short form has ten million codes of 32 and 64 bits, for contenders that build quickly."""
    for kind in KINDS:
        for n_bits in (32, 64, 256):
            yield Case(kind, N_CODES, n_bits, contenders(N_CODES, n_bits))
    for n_bits in (64, 256) if settings.full else (64,):
        yield Case("clustered", N_FEW, n_bits, contenders(N_FEW, n_bits))
    for n_bits in (32, 64, 256) if settings.full else (32,):
        many = contenders(N_MANY, n_bits)
        named = {_SCAN, _BALLS, _FLAT, _HASH}
        yield Case("clustered", N_MANY, n_bits, [one for one in many if settings.full or one.name in named])


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    settings.facts.update(queries=N_QUERIES, k=K, radius=RADIUS, threads=1)
    missing = [name for name in ("faiss-cpu", "usearch") if not version(name)]
    if missing:
        settings.facts["not installed"] = f"{', '.join(missing)}: {install_command('bench')}"
    rows: list[Row] = []
    made: list[Claim] = []
    kept = kept_parts("hamming", settings).cache(measure, ignore=["progress"])
    with threadpool_limits(1):
        for n_bits in (32, 256):  # compile our kernels
            X, Q = KINDS["clustered"](2_000, 4, n_bits, settings.seed)
            for contender in contenders(len(X), n_bits):
                if not contender.rival:
                    built = contender.build(X, n_bits)
                    built.nearest(Q)
                    if built.within:
                        built.within(Q)
        for case in cases(settings):
            measured = kept(case, settings.seed, progress)
            rows += measured
            if case.n_codes == N_CODES:
                made += claims(case, measured)
    settings.facts["CPU seconds"] = round(time.process_time())
    return rows, made


if __name__ == "__main__":
    main(
        "hamming", "exact search in bit codes", run, rivals=("faiss-cpu", "usearch"), has_parts=True,
        short="without ten million codes of 64 and 256 bits, MultiHash on ten million, and usearch on 256 bits",
    )  # fmt: skip
