"""Indexes for the ten nearest neighbors: time to build, memory, and time per query at a recall.

Seconds and milliseconds are CPU time on one thread, after numba has compiled. Queries come one at a time, as in a
service, except in the row that says batch. `mb` is the memory of an index without its input rows, but including a copy
of them if it makes one. Recall@10 is the share of results no further than the true tenth neighbor.

A knob is the number of leaves, cells or candidates searched. An index with a knob is measured at settings a factor of
1.4 apart, from the quickest one up to a recall of 0.99. Rounds alternate between all indexes, and the minimum time of
each setting counts. `ms_90` is the time at recall 0.90, log time being linear in recall between the two settings around
it. It is never extrapolated: it is empty if the recall was not reached, and the quickest setting's time if that setting
is above it already. An index without a knob has `recall` and `ms` instead. So does ours with the setting that `tune`
chooses for 0.95; its `build_s` includes the trials.

Data: see `support.search_data`. `hard` are 200 overlapping clusters of intrinsic dimension 20 (full form: also 2,000),
`separated` 2,000 clusters of random covariance. "like the app's" are the vectors of a drawn library, `songs` real
descriptors. A million rows are in `ten_million`. Forests have 8 and 24 trees, partitions one setting (full form: five),
annoy 50 trees (full form: also 10 and 20). The claims use the quickest at a level. The tree of the thesis
(PCA, spill 0.05 and 0.1, defeatist search) is grown to three depths, whose leaves have about 1,000, 316 and 100 rows.
"""

import gc
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.neighbors import KDTree
from threadpoolctl import threadpool_limits

from benchmarks.large_library import VECTOR_DIMENSIONS, drawn_vectors
from benchmarks.support.columns import SIGNIFICANT_2, KeptRows, Lines, Table, format_significant, list_values
from benchmarks.support.report import Claim, Progress, Row, Settings, at_least, at_most, load_found, main, version
from benchmarks.support.rival import Answer, RivalError, RivalProcess, timed
from benchmarks.support.search_data import REAL_SETS, hard, hold_out, separated
from musicsim._arrays import Float32Array, Int64Array
from musicsim.extras import install_command
from musicsim.search import ExactIndex, PartitionIndex, SpillForest, SpillTree, tune

__all__ = ["Case", "Contender", "recall", "time_at"]

K = 10
LEVELS = {"ms_90": 0.90, "ms_95": 0.95, "ms_98": 0.98, "ms_99": 0.99}
N_QUERIES = 500
_ROUNDS = 3
_TREES = (8, 24)
_LEAF_SIZES = (1000, 316, 100)
_RIVALS = ("faiss-cpu", "voyager", "annoy")
_FOREST, _PARTITION = "musicsim SpillForest", "musicsim PartitionIndex"
_OURS, _HNSW, _ANNOY = "ours", "voyager", "annoy"
_GRAPHS = ("faiss HNSW", _HNSW)
# Settings of partitions: cells, explained, ranked.
_PARTITIONS = ((3.0, 0.99, 1.5), (2.0, 0.98, 1.0), (1.0, 0.99, 1.0), (1.0, 0.95, 1.0), (1.0, 0.9, 3.0))

Ask = Callable[[Float32Array, int], Int64Array | Answer]


@dataclass(frozen=True, slots=True)
class Built:
    """An index that is ready: its search function, which takes a setting of the knob, and its size in bytes.

    `n_bytes` is read last, because some indexes must be written to disk for it. A rival's index is in a separate
    process.
    """

    ask: Ask
    n_bytes: Callable[[], int]


@dataclass(frozen=True, slots=True)
class Contender:
    """A kind of index: its origin, how to build it, and the settings of its knob, quickest first.

    `knob` is empty if there is nothing to set. Slow ones get fewer queries. `rival` is the distribution to install.
    """

    name: str
    setting: str
    build: Callable[[Float32Array], Built]
    knob: tuple[int, ...] = ()
    n_queries: int = N_QUERIES
    rival: str = ""

    def row(self, case: "Case") -> dict[str, Any]:
        """Return the first columns of its row."""
        return {"data": case.name, "rows": len(case.X), "index": self.name, "setting": self.setting}


@dataclass(frozen=True, slots=True)
class Case:
    """Rows, queries, and the goals that apply: those of "hard", of "separated", or none."""

    name: str
    kind: str
    X: Float32Array
    Q: Float32Array
    contenders: Sequence[Contender]

    def __str__(self) -> str:
        return f"{self.name}, {len(self.X):,} rows"


@dataclass(slots=True)
class Measured:
    """A contender on a case: seconds to build, and recall and minimum milliseconds at each setting of the knob."""

    contender: Contender
    build_s: float
    built: Built
    recalls: list[float] = field(default_factory=list)
    ms: list[float] = field(default_factory=list)

    def first_round(self, case: Case, true: Int64Array) -> None:
        """Measure one setting after the other, until the highest level is reached."""
        Q = case.Q[: self.contender.n_queries]
        settings = self.contender.knob or (0,)
        self.built.ask(Q[:5], settings[0])
        for value in settings:
            found, ms = self._answers(Q, value)
            self.recalls.append(recall(case.X, Q, found, true[: len(Q)]))
            self.ms.append(ms)
            if self.recalls[-1] >= max(LEVELS.values()):
                break

    def further_round(self, case: Case) -> None:
        Q = case.Q[: self.contender.n_queries]
        for i, value in enumerate((self.contender.knob or (0,))[: len(self.ms)]):
            self.ms[i] = min(self.ms[i], self._answers(Q, value)[1])

    def _answers(self, Q: Float32Array, value: int) -> tuple[Int64Array, float]:
        found = timed(self.built.ask, Q, value)
        return found.value, 1e3 * found.seconds / len(Q)

    def row(self, case: Case) -> Row:
        one = not self.contender.knob
        levels = {column: None if one else time_at(level, self.recalls, self.ms) for column, level in LEVELS.items()}
        return {
            **self.contender.row(case),
            "build_s": self.build_s,
            "mb": self.built.n_bytes() / 1e6,
            **levels,
            "recall": self.recalls[0] if one else None,
            "ms": self.ms[0] if one else None,
        }

    def __str__(self) -> str:
        points = zip(self.contender.knob, self.recalls, self.ms, strict=False)
        return f"{self.contender.name}: " + ", ".join(f"{v} {r:.3f} {ms:.3f} ms" for v, r, ms in points)


# --- measures -------------------------------------------------------------------------------------


def recall(X: Float32Array, Q: Float32Array, found: Int64Array, true: Int64Array) -> float:
    """Return the share of places that have a row no further than the furthest true neighbor, each row counted once.

    Parameters
    ----------
    X : ndarray of shape (n_rows, d)
    Q : ndarray of shape (n_queries, d)
    found : int ndarray of shape (n_queries, k)
        Ids in any order; -1 for a missing result.
    true : int ndarray of shape (n_queries, k)
        The exact neighbors.
    """
    hits = 0
    for q, ids, neighbors in zip(Q.astype(np.float64), found, true, strict=True):
        different = np.unique(ids[ids >= 0])
        furthest = np.linalg.norm(X[neighbors] - q, axis=1).max()
        # rows at the same distance are equally good; the tolerance covers rounding only
        hits += np.count_nonzero(np.linalg.norm(X[different] - q, axis=1) <= furthest * (1 + 1e-9))
    return hits / true.size


def time_at(level: float, recalls: Sequence[float], ms: Sequence[float]) -> float | None:
    """Return milliseconds at a recall, log time being linear in recall between two settings; None if not reached.

    Settings are in the order of their effort. A setting that was measured slower than a later one gets the later one's
    time. The first one's time is used for all levels up to its recall.
    """
    least = np.minimum.accumulate(ms[::-1])[::-1]
    for i, reached in enumerate(recalls):
        if reached < level:
            continue
        if i == 0:
            return float(least[0])
        share = (level - recalls[i - 1]) / (reached - recalls[i - 1])
        return math.exp((1 - share) * math.log(least[i - 1]) + share * math.log(least[i]))
    return None


def build(contender: Contender, X: Float32Array, held: ExitStack) -> Measured:
    """Build an index; a rival's is built in a process that ends with `held`."""
    gc.collect()
    if contender.rival:
        rival = held.enter_context(RivalProcess(contender.build, X))
        built = Built(partial(rival.call, "ask"), lambda: rival.call("n_bytes").value)
        return Measured(contender, rival.seconds, built)
    made = timed(contender.build, X)
    return Measured(contender, made.seconds, made.value)


def measure(case: Case, progress: Progress) -> list[Row]:
    """Measure all contenders of a case; only those with a knob stay in memory until the last one is measured.

    The row of a failed or crashed rival has the error in `failed`.
    """
    true = ExactIndex().fit(case.X).query(case.Q, K)[1]
    rows: dict[int, Row] = {}
    racing: dict[int, Measured] = {}

    @contextmanager
    def may_fail(place: int) -> Iterator[None]:
        contender = case.contenders[place]
        try:
            yield
        except RivalError as error:
            progress(f"{case}: {contender.name}, {contender.setting}: left out, {error}")
            rows[place] = {**contender.row(case), "failed": str(error)}

    with ExitStack() as held:
        for place, contender in enumerate(case.contenders):
            if contender.rival and not version(contender.rival):
                continue
            with may_fail(place), ExitStack() as own:
                index = build(contender, case.X, own)
                progress(f"{case}: {contender.name}, {contender.setting}: built in {index.build_s:.2f} s")
                index.first_round(case, true)
                if contender.knob:
                    racing[place] = index
                    held.push(own.pop_all())
                else:
                    index.further_round(case)
                    rows[place] = index.row(case)
        for _ in range(_ROUNDS - 1):
            for place in sorted(racing.keys() - rows.keys()):
                with may_fail(place):
                    racing[place].further_round(case)
        for place in sorted(racing.keys() - rows.keys()):
            progress(f"{case}: {racing[place]}")
            with may_fail(place):
                rows[place] = racing[place].row(case)
    return [rows[place] for place in sorted(rows)]


# --- contenders -----------------------------------------------------------------------------------


def one_by_one(ask: Callable[[Float32Array, int], Any]) -> Ask:
    """Search one query at a time, passed as a vector (d,); fill up fewer than K results with -1."""

    def ask_all(Q: Float32Array, value: int) -> Int64Array:
        found = np.full((len(Q), K), -1, dtype=np.int64)
        for row, q in zip(found, Q, strict=True):
            ids = ask(q, value)
            row[: len(ids)] = ids
        return found

    return ask_all


def geometric(first: int, last: int) -> tuple[int, ...]:
    """Return whole numbers a factor of 1.41 apart, from the first to the last."""
    steps = math.ceil(2 * math.log2(last / first)) + 1
    return tuple(sorted({round(first * 2 ** (i / 2)) for i in range(steps)}))


def _exact(X: Float32Array, *, batch: bool) -> Built:
    index = ExactIndex().fit(X)

    def ask(Q: Float32Array, _: int) -> Int64Array:
        return index.query(Q, K)[1]

    return Built(ask if batch else one_by_one(lambda q, _: ask(q[None], 0)[0]), lambda: 4 * len(X))


def _forest(X: Float32Array, n_trees: int, seed: int) -> Built:
    index = SpillForest(n_trees, n_jobs=1, random_state=seed).fit(X)
    ask = one_by_one(lambda q, n_probes: index.query(q[None], K, n_probes=n_probes)[1][0])
    return Built(ask, lambda: index.nbytes_)


def _partition(X: Float32Array, cells: float, explained: float, ranked: float, seed: int) -> Built:
    index = PartitionIndex(cells, explained=explained, ranked=ranked, n_jobs=1, random_state=seed).fit(X)
    ask = one_by_one(lambda q, n_probes: index.query(q[None], K, n_probes=n_probes)[1][0])
    return Built(ask, lambda: index.nbytes_)


def _tuned(X: Float32Array, seed: int) -> Built:
    index = tune(X, K, 0.95, n_jobs=1, random_state=seed)
    # too small for a forest: the index stays exact, and does not have a size to report
    return Built(one_by_one(lambda q, _: index.query(q[None], K)[1][0]), lambda: getattr(index, "nbytes_", 4 * len(X)))


def _spill_tree(X: Float32Array, spill: float, depth: int, seed: int) -> Built:
    # as in the thesis: directions from all rows of a node, and splitting stops only at the depth
    tree = SpillTree("pca", spill, depth, leaf_size=K, n_sample=None, n_jobs=1, random_state=seed).fit(X)
    return Built(one_by_one(lambda q, _: tree.query(q[None], K)[1][0]), lambda: tree.nbytes_)


def _faiss(X: Float32Array, description: str, knob: str = "", **options: int) -> Built:
    """Build the index of a faiss factory string; `knob` and the options are names of faiss's parameters."""
    import faiss

    faiss.omp_set_num_threads(1)
    parameters = faiss.ParameterSpace()
    index = faiss.index_factory(X.shape[1], description)
    for name, value in options.items():
        parameters.set_index_parameter(index, name, value)
    index.train(X)
    index.add(X)
    ask_all = one_by_one(lambda q, _: index.search(q[None], K)[1][0])

    def ask(Q: Float32Array, value: int) -> Int64Array:
        if knob:
            parameters.set_index_parameter(index, knob, value)
        return ask_all(Q, value)

    return Built(ask, lambda: faiss.serialize_index(index).nbytes)


def _voyager(X: Float32Array, seed: int) -> Built:
    import voyager

    index = voyager.Index(
        voyager.Space.Euclidean, X.shape[1], M=16, ef_construction=100, random_seed=seed, max_elements=len(X)
    )
    index.add_items(X, num_threads=1)
    ask = one_by_one(lambda q, ef: index.query(q, K, num_threads=1, query_ef=ef)[0])
    return Built(ask, lambda: len(index.as_bytes()))


def _annoy(X: Float32Array, n_trees: int, seed: int) -> Built:
    from annoy import AnnoyIndex

    index = AnnoyIndex(X.shape[1], "euclidean")
    index.set_seed(seed)
    for i, x in enumerate(X):
        index.add_item(i, x.tolist())  # it reads a list much faster than an array
    index.build(n_trees, n_jobs=1)

    def n_bytes() -> int:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "annoy")
            index.save(str(path))
            return path.stat().st_size

    ask = one_by_one(lambda q, search_k: index.get_nns_by_vector(q.tolist(), K, search_k=search_k))
    return Built(ask, n_bytes)


def _kd_tree(X: Float32Array) -> Built:
    tree = KDTree(X)
    ask = one_by_one(lambda q, _: tree.query(q[None], K, return_distance=False)[0])
    return Built(ask, lambda: sum(np.asarray(part).nbytes for part in tree.get_arrays()))


def n_lists(n_rows: int) -> int:
    """Return the number of lists of faiss's IVF: a power of two, 1,024 for 200,000 rows, growing with their root."""
    return 2 ** round(math.log2(2.3 * math.sqrt(n_rows)))


def depth_for(leaf_size: int, n_rows: int, spill: float) -> int:
    """Return the depth at which a leaf has about `leaf_size` rows, each side getting the share 1/2 + spill."""
    return max(1, round(math.log(n_rows / leaf_size) / -math.log(0.5 + spill)))


def contenders(n_rows: int, seed: int, *, full: bool, slow: bool = True) -> list[Contender]:
    """Return all indexes for this many rows; `slow` says whether there is time for voyager.

    The short form leaves out `tune`, faiss HNSW, annoy with fewer trees, other partitions and spill trees.
    """
    lists = n_lists(n_rows)
    beam = geometric(10, 1_280)

    def annoy(n_trees: int) -> Contender:
        build = partial(_annoy, n_trees=n_trees, seed=seed)
        return Contender(_ANNOY, f"{n_trees} trees", build, geometric(125, 512_000), rival="annoy")

    def tree(spill: float, leaf_size: int) -> Contender:
        depth = depth_for(leaf_size, n_rows, spill)
        build = partial(_spill_tree, spill=spill, depth=depth, seed=seed)
        return Contender("musicsim SpillTree", f"PCA, spill {spill:g}, depth {depth}", build)

    ivf = partial(_faiss, description=f"IVF{lists},Flat", knob="nprobe")
    hnsw = partial(_faiss, description="HNSW16,Flat", knob="efSearch", efConstruction=100)
    flat = partial(_faiss, description="Flat")
    graph_setting = "M 16, ef_construction 100"
    return [
        *(
            Contender(_FOREST, f"{n} trees", partial(_forest, n_trees=n, seed=seed), geometric(2, 8_192))
            for n in _TREES
        ),
        *(
            Contender(
                _PARTITION,
                f"cells {cells:g}, explained {explained:g}, ranked {ranked:g}",
                partial(_partition, cells=cells, explained=explained, ranked=ranked, seed=seed),
                geometric(1, 512),
            )
            for cells, explained, ranked in (_PARTITIONS if full else _PARTITIONS[:1])
        ),
        *([Contender("musicsim tune", "recall 0.95", partial(_tuned, seed=seed))] if full else []),
        *(tree(spill, leaf_size) for spill in (0.05, 0.1) for leaf_size in (_LEAF_SIZES if full else _LEAF_SIZES[1:2])),
        Contender("musicsim ExactIndex", "GEMM", partial(_exact, batch=False), n_queries=100),
        Contender("musicsim ExactIndex", "GEMM, batch", partial(_exact, batch=True)),
        Contender("faiss IndexFlat", "", flat, n_queries=100, rival="faiss-cpu"),
        Contender("scikit-learn KDTree", "leaf_size 40", _kd_tree, n_queries=20),
        *(annoy(n_trees) for n_trees in ((50, 20, 10) if full else (50,))),
        Contender("faiss IVF", f"{lists} lists", ivf, geometric(1, lists), rival="faiss-cpu"),
        *([Contender("faiss HNSW", graph_setting, hnsw, beam, rival="faiss-cpu")] if full else []),
        *([Contender(_HNSW, graph_setting, partial(_voyager, seed=seed), beam, rival="voyager")] if slow else []),
    ]


# --- the run --------------------------------------------------------------------------------------


def _quickest(rows: Sequence[Row], column: str) -> float | None:
    return min((row[column] for row in rows if row[column] is not None), default=None)


def claims(kind: str, label: str, rows: Sequence[Row]) -> list[Claim]:
    """Return the claims on a kind of mixture; of our forests and partitions and of annoys the quickest counts.

    The build time is that of our slowest index.
    """
    names = {_OURS: (_FOREST, _PARTITION), _HNSW: (_HNSW,), _ANNOY: (_ANNOY,)}
    by_name = {name: [row for row in rows if row["index"] in members] for name, members in names.items()}
    made = []
    if by_name[_HNSW] or kind == "hard":  # the short form has it on `hard` only
        slowest = max(row["build_s"] for row in by_name[_OURS])
        ratio = by_name[_HNSW][0]["build_s"] / slowest if by_name[_HNSW] else None
        made.append(at_least(f"{label}: builds, times faster than {_HNSW}", ratio, 15.0))
    for column in ("ms_90", "ms_95", "ms_98"):
        ours, theirs = _quickest(by_name[_OURS], column), _quickest(by_name[_ANNOY], column)
        ratio = theirs / ours if theirs is not None and ours is not None else None
        what = f"{label}: recall@{K} {LEVELS[column]:.2f}, times faster than {_ANNOY}"
        made.append(at_least(what, ratio, 2.0 if kind == "hard" else 1.0))
    if kind == "hard":
        made.append(at_most(f"{label}: recall@{K} 0.95, ms", _quickest(by_name[_OURS], "ms_95"), 0.3))
    return made


def leads(label: str, rows: Sequence[Row]) -> list[Claim]:
    """Compare ours with the best of all rivals in the same run.

    At 0.95 our quickest index is compared with the memory of the quickest rival, and with the build time of the graph
    (HNSW) that is built sooner.
    """
    ours, rivals = ([row for row in rows if (row["index"] in (_FOREST, _PARTITION)) is own] for own in (True, False))
    rivals = [row for row in rivals if not row["index"].startswith(("musicsim", "scikit-learn"))]
    made = []
    for column in ("ms_90", "ms_95", "ms_98"):
        quickest, best = _quickest(ours, column), _quickest(rivals, column)
        ratio = best / quickest if quickest is not None and best is not None else None
        made.append(at_least(f"{label}: recall@{K} {LEVELS[column]:.2f}, times faster than any rival", ratio, 1.0))
    there = [[row for row in some if row["ms_95"] is not None] for some in (ours, rivals)]
    graphs = [row["build_s"] for row in rivals if row["index"] in _GRAPHS]
    if graphs and all(there):
        chosen, rival = (min(some, key=itemgetter("ms_95")) for some in there)
        made.append(
            at_least(
                f"{label}: the index that is, builds, times faster than HNSW", min(graphs) / chosen["build_s"], 10.0
            )
        )
        made.append(at_most(f"{label}: its memory, times the best rival's", chosen["mb"] / rival["mb"], 1.2))
    return made


def cases(settings: Settings, progress: Progress) -> Iterator[Case]:
    """Yield the data of each case, made just in time."""
    seed, full = settings.seed, settings.full
    mixtures = [("hard", "hard", hard, 200_000), ("separated", "separated", separated, 200_000)]
    if full:
        mixtures.append(("hard, 2,000 clusters", "hard", partial(hard, n_clusters=2_000), 200_000))
    for name, kind, draw, n_rows in mixtures:
        X, Q = draw(n_rows, N_QUERIES, seed=seed)
        slow = full or kind == "hard"
        yield Case(name, kind, X, Q, contenders(n_rows, seed, full=full, slow=slow))
    drawn = np.concatenate(list(drawn_vectors(200_000 + N_QUERIES, VECTOR_DIMENSIONS, seed)))
    X, Q = drawn[:-N_QUERIES], drawn[-N_QUERIES:]
    yield Case("like the app's", "app", X, Q, contenders(len(X), seed, full=full, slow=full))
    wanted = REAL_SETS if full else dict(islice(REAL_SETS.items(), 1))
    for name, vectors in load_found(wanted, settings, progress, "real vectors").items():
        X, Q = hold_out(vectors, N_QUERIES, seed)
        yield Case(name, "real", X, Q, contenders(len(X), seed, full=full))


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    settings.facts.update(queries=N_QUERIES, k=K, threads=1)
    missing = sorted(name for name in _RIVALS if not version(name))
    if missing:
        settings.facts["not installed"] = f"{', '.join(missing)}: {install_command('bench')}"
    rows: list[Row] = []
    made: list[Claim] = []
    with threadpool_limits(1):
        small = hard(5_000, 10, seed=settings.seed)
        for contender in contenders(5_000, settings.seed, full=False, slow=False):  # compile our kernels
            if not contender.rival:
                contender.build(small[0]).ask(small[1], (contender.knob or (0,))[0])
        for case in cases(settings, progress):
            progress(f"{case}: {len(case.X):,} x {case.X.shape[1]} and {len(case.Q)} queries drawn")
            measured = measure(case, progress)
            rows += measured
            measured = [row for row in measured if "failed" not in row]
            if case.kind in ("hard", "separated"):
                made += claims(case.kind, str(case), measured)
            made += leads(str(case), measured)
    settings.facts["CPU seconds"] = round(time.process_time())
    return rows, made


# --- tables of the documents --------------------------------------------------------------------------------


_SEARCH = {
    "`PartitionIndex`": "musicsim PartitionIndex", "`SpillForest`": "musicsim SpillForest", "annoy": "annoy",
    "faiss IVF": "faiss IVF", "faiss HNSW": "faiss HNSW", "voyager (HNSW)": "voyager",
}  # fmt: skip


def _of_search(rows: KeptRows) -> Iterator[tuple[str, list[KeptRows]]]:
    """Yield, for each data set, its name and the rows of each kind of index."""
    for data in list_values(rows, "data"):
        of = [row for row in rows if row["data"] == data]
        yield (
            f"{data}; {of[0]['rows']:,}",
            [[row for row in of if row["index"] == index] for index in _SEARCH.values()],
        )


def _tabulate_queries(rows: KeptRows) -> Lines:
    yield "ms per query at a recall of .90, .95, .98", *_SEARCH
    for data, kinds in _of_search(rows):
        cells = []
        for kind in kinds:
            times = ([row[column] for row in kind if row[column]] for column in ("ms_90", "ms_95", "ms_98"))
            cells.append(", ".join(format_significant(min(some), 3) if some else "–" for some in times))
        yield data, *cells


def _tabulate_building(rows: KeptRows) -> Lines:
    yield "s to build, MB in addition to the rows", *_SEARCH
    for data, kinds in _of_search(rows):
        there = ([row for row in kind if row["ms_95"]] for kind in kinds)
        best = [min(kind, key=itemgetter("ms_95")) if kind else {} for kind in there]
        cells = (f"{SIGNIFICANT_2(row['build_s'])}, {SIGNIFICANT_2(row['mb'])}" if row else "–" for row in best)
        yield data, *cells


TABLES: dict[str, Table] = {"search:queries": _tabulate_queries, "search:building": _tabulate_building}


if __name__ == "__main__":
    main(
        "search",
        "indexes for nearest neighbors",
        run,
        data=("spotify_msd", "mnist_20k", "bigann10k"),
        rivals=("scikit-learn", *_RIVALS),
        short="without 2,000 hard clusters, MNIST, SIFT, tune, faiss HNSW and most settings of annoy, "
        "partitions and spill trees; voyager only on hard and real vectors",
    )
