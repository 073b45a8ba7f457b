"""Metric learning to rank: its three solvers side by side, LMNN and NCA on the same songs, and its scaling.

Solvers: "a" has CAL10K's shape (2,122 songs of 253 dimensions, AUC, C = 100, tol 1e-3), "b" is nearly separable (1,000
x 100, AUC, C = 10^4, tol 1e-2). The default solver's seconds are the minimum of three fits. The baselines of the thesis
get one fit and a limit of wall time, 20 s in the short form and 300 s in the full one. `ended` is the reason that a fit
ended: the gap, the time, or the number of cuts. `near_s` is the wall time until the objective was within 1e-3 of the
default solver's. oracle, qp and psd (the projections) are shares of the wall time; `eigh` counts projections.

Rivals: metric-learn's LMNN and scikit-learn's NCA on the songs of "b", with their default parameters, one fit of LMNN
and the minimum of three of NCA. Their matrix products get one thread, and CPU seconds are compared, so that the second
core does not help anyone. AUC and MAP are those of 500 held-out queries of the same classes, which rank the songs of
the fit: a faster rival that ranks worse is not comparable.

Growth: ten cuts on songs like those of "b", each size in a separate process. Its peak memory, `mb`, includes the
libraries; `mb_before` is the peak before the fit. A fit of hundreds of cuts stores up to 256 planes of 8 d^2 bytes
more.

Large (``--full``): 20,000 songs of 256 dimensions like those of "a", C = 100, tol 1e-2. One fit uses all queries,
another samples of 2,000 per cut. The last cut of the samples uses all queries: its objective and bound are the
certificate. One fit each.

Everything is compiled before the clock starts.
"""

import multiprocessing
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from threadpoolctl import threadpool_limits

from benchmarks.support.columns import NUMBER_0, NUMBER_1, SHARE_3, Column, KeptRow, Table, list_columns
from benchmarks.support.memory import peak_bytes
from benchmarks.support.metric_learn_process import MetricLearn
from benchmarks.support.ranking_tasks import ClassTask, Task, cal10k_like, nearly_separable
from benchmarks.support.report import Claim, Progress, Row, Settings, at_least, at_most, main
from musicsim._arrays import Float64Array
from musicsim.evaluation import ranking_scores
from musicsim.metric import MLR

_RUNS = 3
_MAX_CUTS = 100_000
"""Out of reach: it is the gap or the limit of time that ends a fit."""
_GROWTH_CUTS = 10
_NEAR = 1e-3
_PARAMETERS: Mapping[str, Mapping[str, float]] = {"a": {"C": 100.0, "tol": 1e-3}, "b": {"C": 1e4, "tol": 1e-2}}
_LARGE = (20_000, 256)
_LARGE_PARAMETERS: Mapping[str, float] = {"C": 100.0, "tol": 1e-2}
_SAMPLED: Mapping[str, Any] = {"n_queries": 2_000, "max_cuts": 40}
_PARTS = {"oracle": "oracle", "qp": "qp", "psd": "projection"}
_SOLVERS = ("bundle", "admm", "subgradient")


# --- measures ---------------------------------------------------------------------------------


def timed(function: Callable[[], Any], runs: int = 1) -> tuple[Any, dict[str, float]]:
    """Return the result of the function, and the minimum wall and CPU seconds of its runs."""
    seconds = {"wall_s": np.inf, "cpu_s": np.inf}
    for _ in range(runs):
        wall, cpu = time.perf_counter(), time.process_time()
        result = function()
        here = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
        seconds = {name: min(seconds[name], round(here[name], 3)) for name in seconds}
    return result, seconds


def fit(task: Task, limit_s: float = np.inf, **parameters: Any) -> MLR:
    """Fit until the gap is closed or the time is over; the caller reports the reason."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return MLR(**parameters).fit(task.X, task.relevance, callback=lambda step: step["seconds"] >= limit_s)


def warm_up() -> None:
    """Run a tiny fit by each solver, so that nothing is compiled on the clock."""
    tiny = nearly_separable(n_songs=80, d=10)
    for solver in _SOLVERS:
        fit(tiny, solver=solver, max_cuts=3)


# --- parts ------------------------------------------------------------------------------------


def solver_rows(name: str, task: Task, limit_s: float, progress: Progress) -> tuple[list[dict[str, Any]], list[Claim]]:
    """Fit one task with every solver; the default one is the first row."""
    given = _PARAMETERS[name]
    rows: list[dict[str, Any]] = []
    for solver in _SOLVERS:
        is_ours = solver == "bundle"
        limit = np.inf if is_ours else limit_s

        def once(solver: str = solver, limit: float = limit) -> MLR:
            return fit(task, limit, solver=solver, max_cuts=_MAX_CUTS, **given)

        mlr, seconds = timed(once, _RUNS if is_ours else 1)
        last = mlr.history_[-1]
        target = (1.0 + _NEAR) * (mlr.objective_ if is_ours else rows[0]["objective"])
        row = _row(name, solver, seconds, mlr)
        row |= {"objective": mlr.objective_, "bound": mlr.dual_bound_, "gap": round(last["gap"], 5)}
        row["near_s"] = next((round(s["seconds"], 2) for s in mlr.history_ if s["objective"] <= target), None)
        row["ended"] = "gap" if last["gap"] <= given["tol"] else "time"
        if isinstance(task, ClassTask):
            row |= held_out_scores(task, mlr.components_)
        rows.append(row)
        progress(f"{name}, {solver}: {seconds['wall_s']:.1f} s, gap {last['gap']:.2g}, ended by {row['ended']}")
    return rows, _solver_claims(name, rows)


def _size(X: Float64Array) -> str:
    return f"{len(X):,} x {X.shape[1]}"


def _row(task: str, method: str, seconds: Mapping[str, float], mlr: MLR) -> dict[str, Any]:
    """Return the columns that all our fits share."""
    total = mlr.history_[-1]["seconds"]
    parts = {part: round(mlr.seconds_[key] / total, 2) for part, key in _PARTS.items()}
    return {
        "task": task,
        "method": method,
        **seconds,
        "cuts": mlr.n_cuts_,
        "cut_s": round(seconds["wall_s"] / mlr.n_cuts_, 3),
        "eigh": mlr.n_projections_,
        **parts,
    }


def held_out_scores(task: ClassTask, components: Float64Array) -> dict[str, float]:
    """Return the scores of a metric that ranks the songs of the fit for the held-out queries."""
    scores = ranking_scores(task.queries @ components.T, task.X @ components.T, task.query_relevance)
    return {"auc": round(scores["auc"], 3), "map": round(scores["map"], 3)}


def _solver_claims(name: str, rows: list[dict[str, Any]]) -> list[Claim]:
    ours, tol = rows[0], _PARAMETERS[name]["tol"]
    is_closed = ours["ended"] == "gap"
    what = f"{name}: certified relative gap of {tol:g}"
    if name == "a":
        claims = [at_most(f"{what}, wall seconds", ours["wall_s"] if is_closed else None, 5.0)]
    else:
        claims = [at_most(f"{what}, CPU seconds", ours["cpu_s"] if is_closed else None, 20.0)]
    claims.append(at_most(f"{name}: the relative gap itself", ours["gap"], tol))
    for row in rows[1:]:
        # there is a claim on a baseline only if it converges
        if row["method"] == "admm" or row["near_s"] is not None:
            claim = f"{name}: objective of {row['method']} above the default solver's, share (ended by {row['ended']})"
            claims.append(at_most(claim, row["objective"] / ours["objective"] - 1.0, _NEAR))
    least, highest = min(row["objective"] for row in rows), max(row["bound"] for row in rows)
    claims.append(at_least(f"{name}: least objective over highest bound, of all solvers", least / highest, 1.0))
    return claims


def rival_rows(task: ClassTask, ours: Row, settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Measure LMNN and NCA on the songs of task "b", and plain distance; `ours` is the row to compare with."""
    name, X = ours["task"], task.X
    rows = [{"task": name, "method": "no metric", **held_out_scores(task, np.eye(X.shape[1]))}]
    with threadpool_limits(1):
        nca, seconds = timed(lambda: NeighborhoodComponentsAnalysis(random_state=settings.seed).fit(X, task.y), _RUNS)
    progress(f"NCA: {seconds['cpu_s']:.1f} CPU s, {nca.n_iter_} iterations")
    rows.append({"task": name, "method": "NCA", **seconds, **held_out_scores(task, nca.components_)})
    lmnn = {"task": name, "method": "LMNN"}
    try:
        with _one_thread_in_children(), MetricLearn() as rival:
            settings.facts["metric-learn"] = rival.version
            components, used = rival.fit("lmnn", X, task.y, random_state=settings.seed)
    except (FileNotFoundError, RuntimeError) as error:
        progress(str(error))
        is_absent = isinstance(error, FileNotFoundError)
        settings.facts["metric-learn"] = "not installed: make rivals" if is_absent else str(error)
        rows.append({**lmnn, "ended": settings.facts["metric-learn"]})
    else:
        progress(f"LMNN: {used['cpu']:.1f} CPU s")
        seconds = {"wall_s": used["wall"], "cpu_s": used["cpu"]}
        rows.append({**lmnn, **seconds, **held_out_scores(task, components)})
    return rows, [_rival_claim(ours, theirs) for theirs in rows[1:]]


def _rival_claim(ours: Row, theirs: Row) -> Claim:
    ratio = theirs["cpu_s"] / ours["cpu_s"] if "cpu_s" in theirs else None
    return at_least(f"b: CPU seconds of {theirs['method']} over ours", ratio, 1.0)


@contextmanager
def _one_thread_in_children() -> Iterator[None]:
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before


def growth_row(n_songs: int, d: int, seed: int) -> Row:
    """Run a few cuts on songs of one size; meant for a separate process."""
    warm_up()
    task = nearly_separable(seed, n_songs, d)
    before = peak_bytes()
    mlr, seconds = timed(lambda: fit(task, C=_PARAMETERS["b"]["C"], tol=1e-9, max_cuts=_GROWTH_CUTS))
    row = _row(_size(task.X), "bundle", seconds, mlr)
    return {**row, "ended": "cuts", "mb": round(peak_bytes() / 1e6), "mb_before": round(before / 1e6)}


def growth_rows(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Measure seconds per cut and peak memory by songs and by dimensions."""
    by_songs = [(n, 128) for n in (500, 1000, 2000, 4000, 8000)]
    by_dimensions = [(2000, d) for d in (32, 64, 128, 256, 512)]
    sizes = [*by_songs, *(size for size in by_dimensions if size not in by_songs)]
    if settings.full:
        sizes.append((20_000, 256))
    rows: dict[tuple[int, int], Row] = {}
    # spawned, so that the children start without the memory of this process
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as pool:
        for size in sizes:
            rows[size] = pool.submit(growth_row, *size, settings.seed).result()
            progress(f"{rows[size]['task']}: {rows[size]['cut_s']:.3f} s a cut, {rows[size]['mb']} MB")
    for what, chosen, axis in (("songs", by_songs[2:], 0), ("dimensions", by_dimensions[2:], 1)):
        # without the smallest sizes, where the overhead dominates
        slope = np.polyfit(np.log([size[axis] for size in chosen]), np.log([rows[s]["cpu_s"] for s in chosen]), 1)
        settings.facts[f"exponent of CPU seconds in {what}"] = round(float(slope[0]), 2)
    largest = rows[max(sizes)]
    claim = f"peak memory of {_GROWTH_CUTS} cuts on {largest['task']}, GiB"
    return list(rows.values()), [at_most(claim, largest["mb"] * 1e6 / 2**30, 8.0)]


def large_rows(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Fit many songs, by all queries and by samples of them."""
    task, tol = cal10k_like(settings.seed, *_LARGE), _LARGE_PARAMETERS["tol"]
    name = f"large, {_size(task.X)}"
    sampled = {**_SAMPLED, "random_state": settings.seed}
    rows: list[Row] = []
    for method, more in (("bundle", {"max_cuts": _MAX_CUTS}), ("bundle, sampled", sampled)):

        def once(more: Mapping[str, Any] = more) -> MLR:
            return fit(task, **_LARGE_PARAMETERS, **more)

        mlr, seconds = timed(once)
        gap = mlr.history_[-1]["gap"]
        row = _row(name, method, seconds, mlr)
        row |= {"objective": mlr.objective_, "bound": mlr.dual_bound_, "gap": round(gap, 5)}
        rows.append({**row, "ended": "gap" if gap <= tol else "cuts"})
        progress(f"{name}, {method}: {seconds['wall_s']:.1f} s, gap {gap:.2g}")
    full, sample = rows
    claims = [
        at_most(
            f"{name}: certified relative gap of {tol:g}, wall seconds",
            full["wall_s"] if full["ended"] == "gap" else None,
            60.0,
        ),
        at_most(f"{name}, sampled: wall seconds with a certificate", sample["wall_s"], 60.0),
        at_most(
            f"{name}, sampled: objective above that of all queries, share",
            sample["objective"] / full["objective"] - 1.0,
            tol,
        ),
    ]
    return rows, claims


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    limit_s = 300.0 if settings.full else 20.0
    settings.facts.update(limit_s=limit_s, runs=_RUNS)
    progress("warming up")
    warm_up()
    a, b = cal10k_like(settings.seed), nearly_separable(settings.seed)
    settings.facts.update(a=_size(a.X), b=_size(b.X))
    rows, claims = solver_rows("a", a, limit_s, progress)
    of_b, held = solver_rows("b", b, limit_s, progress)
    claims += held
    rivals, held = rival_rows(b, of_b[0], settings, progress)
    claims += held
    growth, held = growth_rows(settings, progress)
    claims += held
    large, held = large_rows(settings, progress) if settings.full else ([], [])
    return [*rows, *of_b, *rivals, *growth, *large], [*claims, *held]


# --- tables of the documents --------------------------------------------------------------------------------


def _describe_size(row: KeptRow) -> str:
    size = row["task"].removeprefix("large, ").replace(" x ", " × ")
    return f"{size}, samples of queries" if row["method"].endswith("sampled") else size


TABLES: dict[str, Table] = {
    "mlr: sizes": list_columns(
        Column("songs × dimensions", _describe_size),
        Column("s", "wall_s", NUMBER_1),
        Column("CPU s", "cpu_s", NUMBER_1),
        Column("cuts", "cuts"),
        Column("proven gap", "gap", SHARE_3, absent="–"),
        Column("memory, MB", "mb", NUMBER_0, absent="–"),
        where=lambda row: " x " in row["task"],
    )
}


if __name__ == "__main__":
    main(
        "mlr", "metric learning to rank", run, rivals=("scikit-learn",),
        short="a limit of 20 s instead of 300 s per fit, and at most 8,000 instead of 20,000 songs",
    )  # fmt: skip
