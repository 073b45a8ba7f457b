"""Geometric mean metrics: the mean itself, GMML against iterative learners, and the scaling of L-GMML.

The mean: A # B of random positive definite matrices of d rows against the naive way, two roots by scipy's sqrtm and two
inverses. CPU seconds are the minimum of some rounds. The table also has the whole fit of GMML on 2,000 songs of 20
classes.

Rivals: GMML against ITML and LMNN of metric-learn and against R-MLR (L2,1 norm, C = 10^4, gap of 1e-2), which the paper
compares with. They fit 1,000 songs of 100 dimensions. ITML and LMNN have default parameters, but the short form gives
ITML 30 sweeps instead of 1,000. L-GMML has 50 metrics by example, the number of the paper's table 3, on the same songs.

t and reg of GMML and L-GMML are chosen on the songs themselves: one half is the queries, the other the database.
`with_choice_s` includes these fits and their scores; the rivals have one fixed setting. AUC and MAP are those of 500
held-out queries of the same classes, because a faster learner that ranks worse is not comparable. One thread, CPU
seconds.

Growth: queries of 20 documents with artificial labels. The seconds are those of a metric (its pairs, its mean, its
anchor), of the table of all distances, and of an epoch of WARP. They are given by the documents n, the columns d and
the metrics m, with the slopes of their logarithms. An epoch visits as many tuples as there are relevant documents and
every row of the table once. So it grows with n m and not with d.
"""

import os
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks.support.columns import SHARE_3, SIGNIFICANT_2, Column, KeptRow, Table, drop_zeros, list_columns
from benchmarks.support.metric_learn_process import MetricLearn
from benchmarks.support.ranking_tasks import ClassTask, nearly_separable
from benchmarks.support.report import Claim, Progress, Row, Settings, at_least, at_most, main, race
from musicsim._arrays import Float64Array, Int64Array
from musicsim.evaluation.ranking import distance_scores
from musicsim.metric import GMML, LGMML, MLR, LGMMLByExample, geometric_mean
from musicsim.relevance import Relevance

_DOCUMENTS_A_QUERY = 20
_BASE = {"n": 40_000, "d": 40, "m": 40}
"""So large that no table stays in the cache."""
_EPOCHS = 10
_ITML_SWEEPS = 30
_SONGS = 2000
_LOCAL = "L-GMML by example, m 50"


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of the function, and its CPU seconds."""
    started = time.process_time()
    return function(), time.process_time() - started


# --- the mean ----------------------------------------------------------------------------------------------------


def naive_mean(A: Float64Array, B: Float64Array) -> Float64Array:
    """Return A^1/2 (A^-1/2 B A^-1/2)^1/2 A^1/2 by roots of general matrices."""
    root = linalg.sqrtm(A)
    inverse = linalg.inv(root)
    mean: Float64Array = np.real(root @ linalg.sqrtm(inverse @ B @ inverse) @ root)
    return mean


def mean_rows(sizes: tuple[int, ...], seed: int, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Measure each size in both ways."""
    rows: list[Row] = []
    claims = []
    rng = np.random.default_rng(seed)
    for d in sizes:
        A, B = (F @ F.T / d + 0.01 * np.eye(d) for F in rng.standard_normal((2, d, d)))
        seconds = race(
            {"ours": lambda A=A, B=B: geometric_mean(A, B), "sqrtm": lambda A=A, B=B: naive_mean(A, B)},
            repeats=3 if d < 1000 else 1,
        )
        off = np.abs(geometric_mean(A, B) - naive_mean(A, B)).max() / np.abs(A).max()
        X, y = rng.standard_normal((_SONGS, d)), np.arange(_SONGS) % 20
        fit_s = timed(lambda X=X, y=y: GMML().fit(X, y))[1]
        row = {"part": "mean", "d": d, "ours_s": seconds["ours"], "rival_s": seconds["sqrtm"]}
        rows.append({**row, "difference": off, "gmml_fit_s": fit_s})
        claims.append(
            at_least(f"A # B at d = {d}: CPU seconds of sqrtm over ours", seconds["sqrtm"] / seconds["ours"], 1.0)
        )
        progress(f"mean, d = {d}: {seconds['ours']:.3f} s, sqrtm {seconds['sqrtm']:.3f} s")
    claim = f"GMML of {_SONGS} songs at d = {sizes[-1]}, CPU seconds of the fit"
    claims.append(at_most(claim, rows[-1]["gmml_fit_s"], 5.0))
    return rows, claims


# --- rivals ------------------------------------------------------------------------------------------------------


def _quality(task: ClassTask, distances: Float64Array) -> dict[str, float]:
    scores = distance_scores(distances, task.query_relevance)
    return {"AUC": float(np.nanmean(scores["auc"])), "MAP": float(np.nanmean(scores["map"]))}


def _by(task: ClassTask, components: Float64Array) -> dict[str, float]:
    return _quality(task, cdist(task.queries @ components.T, task.X @ components.T))


def _chosen(task: ClassTask, learner: type, grid: list[dict[str, Any]], name: str) -> Row:
    """Return the setting with which one half of the songs ranks the other best, and its fit on all of them."""
    half = Relevance.from_labels(task.y).restrict(np.arange(1, len(task.y), 2), np.arange(0, len(task.y), 2))

    def mean_ap(given: dict[str, Any]) -> float:
        model = learner(**given).fit(task.X[::2], task.y[::2])
        return float(np.nanmean(distance_scores(_distances(model, task.X[1::2], task.X[::2]), half)["map"]))

    best, choosing_s = timed(lambda: max(grid, key=mean_ap))
    model, seconds = timed(lambda: learner(**best).fit(task.X, task.y))
    default = learner(**{name: best[name] for name in best.keys() - {"t", "reg"}}, t=0.5).fit(task.X, task.y)
    row = {"part": "rivals", "method": name, "chosen": f"t {best['t']:g}, reg {best['reg']:g}", "ours_s": seconds}
    row |= {"with_choice_s": seconds + choosing_s, **_quality(task, _distances(model, task.queries, task.X))}
    return {**row, "AUC at t = 1/2": _quality(task, _distances(default, task.queries, task.X))["AUC"]}


def _distances(model: Any, queries: Float64Array, songs: Float64Array) -> Float64Array:
    if isinstance(model, LGMMLByExample):
        return model.distances(queries, songs)
    return cdist(model.transform(queries), model.transform(songs))


def rival_rows(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Fit all learners on the same songs."""
    task = nearly_separable(settings.seed)
    X, y = task.X, task.y
    rows: list[Row] = [{"part": "rivals", "method": "no metric", **_by(task, np.eye(X.shape[1]))}]
    GMML().fit(X, y)  # the first call loads libraries
    grid = [{"t": t, "reg": reg} for t in (0.0, 0.25, 0.5) for reg in (1e-3, 1e-2, 1e-1)]
    ours = _chosen(task, GMML, grid, "GMML")
    local = _chosen(task, LGMMLByExample, [{**g, "n_metrics": 50, "random_state": settings.seed} for g in grid], _LOCAL)
    rows += [ours, local]
    progress(f"GMML {ours['ours_s']:.3f} s, L-GMML {local['ours_s']:.2f} s")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        MLR(max_cuts=3, regularizer="l21").fit(X[:100], y[:100])  # compiles
        mlr, of_mlr = timed(lambda: MLR(C=1e4, regularizer="l21", tol=1e-2, max_cuts=200).fit(X, y))
    theirs: list[Row] = [{"part": "rivals", "method": "R-MLR", "rival_s": of_mlr, **_by(task, mlr.components_)}]
    progress(f"R-MLR {of_mlr:.1f} s")
    for name, given in (("itml", {} if settings.full else {"max_iter": _ITML_SWEEPS}), ("lmnn", {})):
        row = {"part": "rivals", "method": name.upper()}
        try:
            with MetricLearn() as rival:  # a crash costs only its own row
                settings.facts["metric-learn"] = rival.version
                components, used = rival.fit(name, X, y, random_state=settings.seed, **given)
        except FileNotFoundError as error:
            progress(str(error))
            settings.facts["metric-learn"] = "not installed: make rivals"
        except RuntimeError as error:
            progress(str(error))
            row["failed"] = str(error)
        else:
            row |= {"rival_s": used["cpu"], **_by(task, components)}
            progress(f"{name.upper()} {used['cpu']:.1f} s")
        theirs.append(row)
    claims = []
    for row in theirs:
        method, is_there = row["method"], "rival_s" in row
        ratio = row["rival_s"] / ours["ours_s"] if is_there else None
        claims.append(at_least(f"CPU seconds of {method} over those of GMML, a fit each", ratio, 10.0))
        claims.append(
            at_least(f"AUC of GMML less that of {method}", ours["AUC"] - row["AUC"] if is_there else None, 0.0)
        )
    ratio = of_mlr / local["ours_s"]
    claims.append(at_least("CPU seconds of R-MLR over those of L-GMML by example, a fit each", ratio, 1.0))
    for measure in ("AUC", "MAP"):
        lead = local[measure] - ours[measure]
        claims.append(at_least(f"{measure} of L-GMML by example less that of GMML", lead, 0.0))
    return rows + theirs, claims


# --- growth ------------------------------------------------------------------------------------------------------


def documents(n: int, d: int, seed: int) -> tuple[Float64Array, Int64Array, Int64Array]:
    """Return X, labels 0 to 2 by a noisy direction, and groups."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    taste = X @ rng.standard_normal(d) / np.sqrt(d) + rng.standard_normal(n)
    y = (taste > 0.8).astype(np.int64) + (taste > 1.8)
    return X, y, np.full(n // _DOCUMENTS_A_QUERY, _DOCUMENTS_A_QUERY)


def growth_row(n: int, d: int, m: int, seed: int) -> Row:
    """Fit once; callbacks mark the ends of its stages."""
    X, y, group = documents(n, d, seed)
    marks: list[tuple[str, float]] = []
    started = time.process_time()

    def callback(step: dict[str, Any]) -> bool:
        marks.append((step["stage"], time.process_time()))
        return False

    LGMML(n_metrics=m, n_epochs=_EPOCHS, max_features=1.0, random_state=seed).fit(X, y, group, callback)
    metrics = [at for stage, at in marks if stage == "metrics"]
    epochs = [at for stage, at in marks if stage == "weights"]
    return {
        "part": "growth", "n": n, "d": d, "m": m,
        "metric_s": (metrics[-1] - metrics[0]) / (m - 1),
        "table_s": epochs[0] - metrics[-1] - (epochs[-1] - epochs[0]) / (_EPOCHS - 1),
        "epoch_s": (epochs[-1] - epochs[0]) / (_EPOCHS - 1),
        "fit_s": time.process_time() - started,
    }  # fmt: skip


def growth_rows(full: bool, seed: int, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Double each size in turn."""
    factors = (1, 2, 4, 8) if full else (1, 2, 4)
    growth_row(2000, 10, 3, seed)  # compiles
    rows, claims = [], []
    for axis, least in _BASE.items():
        here = []
        for factor in factors:
            row = growth_row(**{**_BASE, axis: least * factor}, seed=seed)
            here.append(row)
            progress(f"{axis} = {row[axis]}: {row['epoch_s']:.3f} s an epoch, {row['fit_s']:.1f} s in all")
        rows += here
        logs = np.log([row[axis] for row in here])
        for what, goal in (("epoch_s", 1.15 if axis != "d" else 0.2), ("fit_s", 2.0 if axis == "d" else 1.15)):
            slope = float(np.polyfit(logs, np.log([row[what] for row in here]), 1)[0])
            name = "an epoch" if what == "epoch_s" else "the whole fit"
            claims.append(at_most(f"exponent of CPU seconds of {name} in {axis}", slope, goal))
    return rows, claims


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Run every part on one thread."""
    os.environ["OMP_NUM_THREADS"] = "1"  # for the process of metric-learn
    with threadpool_limits(1):
        rows, claims = mean_rows((100, 500, 1000), settings.seed, progress)
        growth, of_growth = growth_rows(settings.full, settings.seed, progress)
        rivals, of_rivals = rival_rows(settings, progress)
    settings.facts.update(epochs=_EPOCHS, documents_a_query=_DOCUMENTS_A_QUERY)
    return [*rows, *rivals, *growth], [*claims, *of_rivals, *of_growth]


# --- tables of the documents --------------------------------------------------------------------------------


def _describe_fit(row: KeptRow) -> str:
    if "chosen" not in row:
        return str(row["method"])
    return f"{row['method']}, {row['chosen']} (at t = 1/2, the AUC is {SHARE_3(row['AUC at t = 1/2'])})"


TABLES: dict[str, Table] = {
    "lgmml: fits": list_columns(
        Column("", _describe_fit, drop_zeros),
        Column("seconds per fit", lambda row: row.get("ours_s", row.get("rival_s")), SIGNIFICANT_2),
        Column("AUC", "AUC", SHARE_3),
        Column("MAP", "MAP", SHARE_3),
        where=lambda row: row["part"] == "rivals",
    )
}


if __name__ == "__main__":
    main(
        "lgmml", "geometric mean metrics", run, rivals=("scikit-learn",),
        short="30 sweeps of ITML, and sizes that grow to four instead of eight times the smallest. The full "
        "form is worth running, because the exponent of an epoch in n is close to its limit",
    )  # fmt: skip
