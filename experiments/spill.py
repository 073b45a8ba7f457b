"""Spill trees: how many of the 100 nearest songs are found, by the share of songs examined (thesis, section 6.4).

Trees of depth 13 for four split rules and four spills tau. Cut off at depth 5 to 13, each gives the retrieval set of a
held-out song (algorithm 6.3). Recall is the share of its true 100 nearest songs in that set (6.6), "recall@10" that of
its ten nearest. Scores are medians over the queries, as in figure 6.4, and "rows examined" is the median size of the
set. The quartiles contain half of the queries. A direction is computed from at most 4,096 rows of a node; the thesis
uses all. On 100,000 rows medians differed by 0.03 at most (tau 0 and 0.1, depths 7, 9 and 13). Thresholds are quantiles
of all rows.

- generated: songs like those of the thesis, see `_song_vectors`; its own are not available. Recall depends on the
  number of rows. Among fewer songs the 100 nearest are farther away and more of them are lost. The ten nearest of
  100,000 are about the same share as 100 of the thesis's 890,205. ``--full`` takes as many rows as the thesis. Claims
  are about these songs.
- songs, SIFT: other real vectors, and far fewer; to depth 13 as long as leaves have ten rows. Columns of the songs are
  z-scored, so that all have the same variance, which gives KD little to choose by.

"At equal share" interpolates the recall at a given share between two depths, with share on a logarithmic scale. It is
empty if every depth examines more rows. "Topics" shows how the printed scores depend on the data: PCA trees on 100,000
songs with fewer or more topics. With few topics, songs are close together and their high-dimensional noise decides
which are nearest. Milliseconds are CPU time, one query at a time on one thread; the full scan is `ExactIndex`. The
thesis looks up its leaves in advance; here a query descends the tree.
"""

import itertools
import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from threadpoolctl import threadpool_limits

from benchmarks.support.columns import KeptRows, Lines, Table, find_row, format_share, list_values
from benchmarks.support.parts import kept_parts
from benchmarks.support.report import Claim, Progress, Row, Settings, at_least, at_most, load_found, main, race
from benchmarks.support.search_data import REAL_SETS, hold_out
from experiments.support.song_vectors import N_TOPICS, intrinsic_dimension, song_vectors, spectrum
from musicsim._arrays import BoolArray, Float32Array, Float64Array, Int64Array
from musicsim.search import ExactIndex, SpillTree

__all__ = ["Point", "at_share", "hits", "measure"]

GENERATED = "generated"
RULES = ("pca", "kd", "2means", "random")
SPILLS = (0.0, 0.01, 0.05, 0.1)
DEEPEST = 13
N_SAMPLE = 4_096
DEPTHS = range(5, DEEPEST + 1)
REAL_DEPTHS = range(3, DEEPEST + 1)
REAL = ("songs, 13 Spotify descriptors", "SIFT, 128 values")
MIN_LEAF_ROWS = 10
"""Rows of the leaves of real vectors, at least."""

K, NEAR = 100, 10
SHARES = (1.0, 3.0)
"""Of the rows, in %."""
TOPICS = (12, N_TOPICS, 200)
N_ROWS, N_QUERIES = 100_000, 300
FULL_ROWS, FULL_QUERIES = 890_205, 1_000
_BYTES_A_ROW = 3_000
"""Rows, a tree with spill 0.1 and what it takes to grow it."""

TIMED = {0.05: 119.5, 0.1: 17.8}
"""Times faster than a full scan in the thesis, by spill."""
_TIMED_KS = (10, 50, 100)
_TIMED_QUERIES, _SCANS = 100, 20
_QUERIES_AT_ONCE = 16

WITHOUT, WITH = ("pca", 0.0, 7), ("pca", 0.1, DEEPEST)
IN_THESIS = {WITHOUT: (6_955, 0.24), WITH: (6_819, 0.53)}
"""Rows examined, and recall."""

WIDTH, LOCAL_WIDTH = "dimensions of 95 % of the variance", "intrinsic dimension of the 100 nearest"

Setting = tuple[str, float, int]


@dataclass(frozen=True, slots=True)
class Point:
    """A tree cut off at a depth: rows that each query retrieves, and shares of its neighbors among them."""

    sizes: Int64Array
    recall: Float64Array
    recall_near: Float64Array

    def share(self, n_rows: int) -> float:
        """Return the median share examined, in %."""
        return 100.0 * float(np.median(self.sizes)) / n_rows


Points = dict[Setting, Point]


# --- measures -------------------------------------------------------------------------------------


def hits(retrieved: Sequence[Int64Array], true: Int64Array, n_rows: int) -> BoolArray:
    """Return a mask of the true neighbors, (n_queries, k), in the retrieval set of their query (6.6)."""
    inside = np.zeros(n_rows, dtype=bool)
    found = np.empty(true.shape, dtype=bool)
    for i, ids in enumerate(retrieved):
        inside[ids] = True
        found[i] = inside[true[i]]
        inside[ids] = False
    return found


def measure(tree: SpillTree, Q: Float32Array, true: Int64Array, depth: int) -> Point:
    """Compare retrieval sets of the tree cut off at `depth` with the true neighbors, nearest first."""

    def ask(start: int) -> tuple[list[int], BoolArray]:
        part = slice(start, start + _QUERIES_AT_ONCE)
        retrieved = tree.retrieve(Q[part], depth=depth)
        return [len(ids) for ids in retrieved], hits(retrieved, true[part], tree.n_samples_)

    with ThreadPoolExecutor(effective_n_jobs(-1)) as pool:
        parts = list(pool.map(ask, range(0, len(Q), _QUERIES_AT_ONCE)))
    found = np.concatenate([part[1] for part in parts])
    return Point(np.concatenate([part[0] for part in parts]), found.mean(axis=1), found[:, :NEAR].mean(axis=1))


def at_share(share: float, shares: Sequence[float], recalls: Sequence[float]) -> float | None:
    """Interpolate recall at a share between two depths, with share on a logarithmic scale; None outside them."""
    order = np.argsort(shares)
    x, y = np.log(np.asarray(shares)[order]), np.asarray(recalls)[order]
    return float(np.interp(math.log(share), x, y)) if x[0] <= math.log(share) <= x[-1] else None


def depths_for(n_rows: int, tau: float) -> list[int]:
    """Return depths at which leaves of real vectors are not too small."""
    return [depth for depth in REAL_DEPTHS if n_rows * (0.5 + tau) ** depth >= MIN_LEAF_ROWS]


def _tree(X: Float32Array, rule: str, tau: float, seed: int) -> SpillTree:
    return SpillTree(rule, tau, DEEPEST, leaf_size=1, n_sample=N_SAMPLE, random_state=seed).fit(X)


def _truth(X: Float32Array, Q: Float32Array) -> tuple[Float32Array, Int64Array]:
    with threadpool_limits(1):
        return ExactIndex().fit(X).query(Q, K)


def timing_rows(tree: SpillTree, X: Float32Array, Q: Float32Array) -> Iterator[Row]:
    """Yield milliseconds per query by the tree and by a full scan."""
    scan = ExactIndex().fit(X)
    tree.set_params(n_jobs=1)
    for k in _TIMED_KS:

        def of_tree(k: int = k) -> None:
            for q in Q[:_TIMED_QUERIES]:
                tree.query(q[None], k)

        def of_scan(k: int = k) -> None:
            for q in Q[:_SCANS]:
                scan.query(q[None], k)

        with threadpool_limits(1):
            seconds = race({"tree": of_tree, "scan": of_scan}, repeats=3)
        tree_ms = 1e3 * seconds["tree"] / min(len(Q), _TIMED_QUERIES)
        scan_ms = 1e3 * seconds["scan"] / min(len(Q), _SCANS)
        yield {
            "timed, tau": tree.spill,
            "k": k,
            "tree, ms": tree_ms,
            "full scan, ms": scan_ms,
            "times faster": scan_ms / tree_ms,
            "thesis times faster": TIMED[tree.spill],
        }


# --- tables ---------------------------------------------------------------------------------------


def curve_rows(points: Points, n_rows: int) -> Iterator[Row]:
    """Yield figure 6.4: one row per rule, spill and depth."""
    for (rule, tau, depth), point in points.items():
        low, middle, high = np.quantile(point.recall, (0.25, 0.5, 0.75))
        rows_in_thesis, recall_in_thesis = IN_THESIS.get((rule, tau, depth), (None, None))
        yield {
            "rule": rule,
            "tau": tau,
            "depth": depth,
            "rows examined": float(np.median(point.sizes)),
            "thesis rows examined": rows_in_thesis,
            "share examined, %": point.share(n_rows),
            "recall@100": float(middle),
            "thesis recall@100": recall_in_thesis,
            "lower quartile": float(low),
            "upper quartile": float(high),
            "recall@10": float(np.median(point.recall_near)),
        }


def share_rows(data: str, points: Points, n_rows: int) -> Iterator[Row]:
    """Yield one row per rule and spill."""
    for rule in RULES:
        for tau in SPILLS:
            own = [point for (r, t, _), point in points.items() if (r, t) == (rule, tau)]
            shares = [point.share(n_rows) for point in own]
            row: dict[str, Any] = {"at equal share": data, "rows": n_rows, "rule": rule, "tau": tau}
            for share in SHARES:
                for name, recalls in (
                    ("recall@100", [p.recall for p in own]),
                    ("recall@10", [p.recall_near for p in own]),
                ):
                    medians = [float(np.median(recall)) for recall in recalls]
                    row[f"{name} at {share:g} %"] = at_share(share, shares, medians)
            yield row


def topic_row(n_topics: int, about: dict[str, Any], points: Points) -> Row:
    """Return the printed scores on songs with `n_topics` topics; `about` is from :func:`_about`."""
    n_rows = about["rows"]
    row: dict[str, Any] = {"topics": n_topics, **{name: about[name] for name in (WIDTH, LOCAL_WIDTH)}}
    for setting in (WITHOUT, WITH):
        name = f"tau {setting[1]:g}, depth {setting[2]}"
        row[f"{name}: recall@100"] = float(np.median(points[setting].recall))
        row[f"{name}: recall@10"] = float(np.median(points[setting].recall_near))
        row[f"{name}: share examined, %"] = points[setting].share(n_rows)
    return row


# --- claims ---------------------------------------------------------------------------------------


def claims(points: Points, n_rows: int, timings: Sequence[Row]) -> Iterator[Claim]:
    """Yield the thesis's findings of 6.4.4 and 6.4.5, on the generated songs."""
    median = {setting: float(np.median(point.recall)) for setting, point in points.items()}
    for setting, (_, recall_in_thesis) in IN_THESIS.items():
        yield at_least(f"PCA, tau {setting[1]:g}, depth {setting[2]}: recall@100", median[setting], recall_in_thesis)
    yield at_most(
        "PCA, tau 0.1, depth 13: share examined, %", points[WITH].share(n_rows), 100 * IN_THESIS[WITH][0] / FULL_ROWS
    )
    times = median[WITH] / median[WITHOUT] if median[WITHOUT] else None
    yield at_least("PCA: times the recall of tau 0, depth 7 at tau 0.1, depth 13 ('nearly doubled')", times, 2.0)
    places = [(tau, depth) for tau in SPILLS for depth in DEPTHS]
    yield at_least(
        "share of tau and depth where PCA finds as much as KD or more",
        _share(median["pca", *place] >= median["kd", *place] for place in places),
        1.0,
    )
    for better in ("pca", "kd"):
        for worse in ("2means", "random"):
            yield at_least(
                f"share of tau and depth where {better} finds more than {worse}",
                _share(median[better, *place] > median[worse, *place] for place in places),
                1.0,
            )
    yield at_least(
        "share of steps down a depth in which recall falls or stays",
        _share(median[r, t, d + 1] <= median[r, t, d] for r in RULES for t in SPILLS for d in DEPTHS[:-1]),
        1.0,
    )
    yield at_least(
        "share of steps up in tau in which recall grows or stays",
        _share(
            median[r, more, d] >= median[r, less, d]
            for r in RULES
            for less, more in itertools.pairwise(SPILLS)
            for d in DEPTHS
        ),
        1.0,
    )
    gains = {r: float(np.mean([median[r, SPILLS[-1], d] - median[r, 0.0, d] for d in DEPTHS])) for r in RULES}
    most = max(gain for rule, gain in gains.items() if rule != "pca")
    yield at_least("gain of recall by spill 0.1, mean over depths, PCA less the best other", gains["pca"] - most, 0.0)
    for tau, goal in TIMED.items():
        found = [float(row["times faster"]) for row in timings if row["timed, tau"] == tau]
        yield at_least(
            f"PCA, tau {tau:g}, depth {DEEPEST}: times faster than a full scan, least of k 10, 50, 100",
            min(found, default=None),
            goal,
        )


def _share(holds: Iterator[bool]) -> float:
    return float(np.mean(list(holds)))


# --- runs -----------------------------------------------------------------------------------------


def rows_that_fit() -> int:
    """Return the thesis's number of rows, or as many as fit in half of the machine's memory."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows does not have sysconf
        return FULL_ROWS
    return min(FULL_ROWS, memory // 2 // _BYTES_A_ROW)


def _generated(
    X: Float32Array, Q: Float32Array, true: Int64Array, rule: str, tau: float, seed: int
) -> tuple[Points, list[Row]]:
    """Return the points of figure 6.4 for a rule and a spill, and the timings."""
    tree = _tree(X, rule, tau, seed)
    points = {(rule, tau, depth): measure(tree, Q, true, depth) for depth in DEPTHS}
    return points, list(timing_rows(tree, X, Q)) if rule == "pca" and tau in TIMED else []


def _topics(n_topics: int, seed: int) -> Row:
    X, Q = song_vectors(N_ROWS, N_QUERIES, n_topics=n_topics, seed=seed)
    distances, true = _truth(X, Q)
    points = {
        (rule, tau, depth): measure(_tree(X, rule, tau, seed), Q, true, depth) for rule, tau, depth in (WITHOUT, WITH)
    }
    return topic_row(n_topics, _about(X, distances), points)


def _real(name: str, X: Float32Array, seed: int) -> tuple[dict[str, Any], list[Row]]:
    """Return a description of real vectors, and their rows."""
    X, Q = hold_out(X, N_QUERIES, seed)
    distances, true = _truth(X, Q)
    points: Points = {}
    for rule in RULES:
        for tau in SPILLS:
            tree = _tree(X, rule, tau, seed)
            points |= {(rule, tau, d): measure(tree, Q, true, d) for d in depths_for(len(X), tau)}
    return _about(X, distances), list(share_rows(name, points, len(X)))


def _about(X: Float32Array, distances: Float32Array) -> dict[str, Any]:
    """Return size and spectrum of vectors, and their dimension from the distances of queries to their K nearest."""
    held = np.cumsum(spectrum(X))
    held /= held[-1]
    return {
        "rows": len(X),
        "dimensions": X.shape[1],
        WIDTH: int(np.searchsorted(held, 0.95)) + 1,
        "variance in the first 1, 2, 5, 10, 20, 50, 100": [
            round(float(held[i - 1]), 3) for i in (1, 2, 5, 10, 20, 50, 100) if i <= len(held)
        ],
        LOCAL_WIDTH: round(intrinsic_dimension(distances), 1),
    }


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Build and query all trees; 100,000 generated rows, 890,205 with ``--full``."""
    n_rows, n_queries = (rows_that_fit(), FULL_QUERIES) if settings.full else (N_ROWS, N_QUERIES)
    settings.facts.update(
        queries={GENERATED: n_queries, "others": N_QUERIES}, neighbors=K, rows_in_thesis=FULL_ROWS, data={}
    )
    X, Q = song_vectors(n_rows, n_queries, seed=settings.seed)
    progress(f"{GENERATED}: {n_rows} rows drawn")
    distances, true = _truth(X, Q)
    settings.facts["data"][GENERATED] = _about(X, distances)
    progress(f"{GENERATED}: true neighbors found")
    kept = kept_parts("spill", settings)
    asked = kept.cache(_generated)
    points: Points = {}
    timings: list[Row] = []
    for rule, tau in itertools.product(RULES, SPILLS):
        found, timed = asked(X, Q, true, rule, tau, settings.seed)
        points |= found
        timings += timed
        progress(f"{GENERATED}: {rule}, tau {tau:g}")
    rows = [*curve_rows(points, n_rows), *share_rows(GENERATED, points, n_rows)]
    del X, Q
    for name, X in load_found({name: REAL_SETS[name] for name in REAL}, settings, progress, "real data").items():
        about, found_rows = kept.cache(_real)(name, X, settings.seed)
        settings.facts["data"][name] = about
        rows += found_rows
        progress(name)
    for n_topics in TOPICS:
        rows.append(kept.cache(_topics)(n_topics, settings.seed))
        progress(f"{n_topics} topics")
    return [*rows, *timings], list(claims(points, n_rows, timings))


# --- tables of the documents --------------------------------------------------------------------------------


def _tabulate(rows: KeptRows) -> Lines:
    n_rows = next(row["rows"] for row in rows if row.get("at equal share") == "generated")
    yield ("recall@100, PCA", "thesis, 890,205 songs of the Million Song Dataset", f"ours, {n_rows:,} generated songs")
    for tau, depth in ((0.0, 7), (0.1, 13)):
        row = find_row(rows, rule="pca", tau=tau, depth=depth)
        theirs = 100 * row["thesis rows examined"] / 890_205
        yield (
            f"tau {tau:g}, depth {depth}",
            f"{format_share(row['thesis recall@100'])} at {theirs:.1f}% of the data",
            f"{format_share(row['recall@100'])} at {row['share examined, %']:.1f}% of the data",
        )
    for tau in list_values(rows, "timed, tau"):
        of = [row for row in rows if row.get("timed, tau") == tau]
        ours = [row["times faster"] for row in of]
        theirs = of[0]["thesis times faster"]
        yield (
            f"speedup over a full scan, tau {tau:g}",
            f"{theirs:g} times",
            f"{min(ours):.0f} to {max(ours):.0f} times",
        )


TABLES: dict[str, Table] = {"spill": _tabulate}


DIFFERS = {
    "of": "thesis, section 6.4",
    "splits": "1,000 queries",
    "grid": "directions from at most 4,096 rows of a node instead of all",
    "size": "890,205 generated songs instead of as many real ones",
}
"""The paper's table or figure, and how even the full protocol differs from the paper's."""


if __name__ == "__main__":
    main(
        "spill", __doc__.splitlines()[0], run, differs=DIFFERS, data=("bigann10k", "spotify_msd"), has_parts=True,
        short="100,000 of 890,205 generated rows, and 300 of 1,000 queries on them",
    )  # fmt: skip
