"""Noise columns: the error of learned metrics as useless columns are added (thesis, figures 4.1 to 4.3).

The data are four UCI sets with 0 to 256 added columns of random signs. Splits are 60/20/20, z-scored by the training
part. The score is the error of 3 nearest neighbors. C (MLR-MAP), mu (LMNN) and gamma (ITML) are chosen on the
validation part. MLR is learned by the default solver. ADMM (T = 10) and projected sub-gradients then solve the same
problem with the same C. Their projections are counted until their objective is within C epsilon of the default
solver's, or until the limit of cuts. Epsilon is 0.01, the thesis's accuracy of the mean loss. The thesis has figures
without numbers, so the claims are its statements.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from benchmarks.support.columns import KeptRows, Lines, Table, find_row, format_number, list_values
from benchmarks.support.metric_learn_process import ENVIRONMENT, MetricLearn
from benchmarks.support.parts import kept_parts
from benchmarks.support.report import Claim, Progress, Settings, at_least, load_found, main
from experiments.support.uci import SETS, knn_errors, one_core_each
from musicsim._arrays import Float64Array, Int64Array
from musicsim.metric import MLR, factor

BUNDLE, ADMM, SUBGRADIENT = "MLR-MAP, bundle", "MLR-MAP, ADMM", "MLR-MAP, sub-gradient"
RIVALS = ("LMNN", "ITML")
EPSILON = 0.01
"""Times C, above the objective of the default solver: where the other two have arrived."""
NOISY = 64
"""Columns from which on the thesis finds MLR better than its rivals."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """Splits and grids; `subgradient_up_to` is the largest number of noise columns for sub-gradients."""

    splits: int
    noise: tuple[int, ...]
    Cs: tuple[float, ...]
    mus: tuple[float, ...]
    gammas: tuple[float, ...]
    tol: float
    max_cuts: int
    counting_cuts: int
    subgradient_up_to: int
    lmnn_max_iter: int


SHORT = Protocol(
    splits=4, noise=(0, 64, 256), Cs=(0.1, 1.0, 10.0, 100.0), mus=(0.1, 0.5, 0.9), gammas=(1.0, 100.0, 1e4),
    tol=1e-2, max_cuts=40, counting_cuts=60, subgradient_up_to=64, lmnn_max_iter=100,
)  # fmt: skip
# The thesis's splits and widths, with the grids of the short form: those of the thesis take a day.
FULL = replace(SHORT, splits=50, noise=(0, 32, 64, 128, 256))


@dataclass(frozen=True, slots=True)
class Part:
    """A split, padded and z-scored: training, validation and test rows."""

    set: str
    n_noise: int
    split: int
    X: tuple[Float64Array, ...]
    y: tuple[Int64Array, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """One method on one split; `seconds` are CPU seconds, the mean over the grid."""

    set: str
    n_noise: int
    split: int
    method: str
    error: float
    rank: int
    chosen: str
    seconds: float
    projections: int | None = None
    arrived: bool | None = None


def _parts(sets: Mapping[str, tuple[Float64Array, Int64Array]], protocol: Protocol, seed: int) -> Iterator[Part]:
    """Yield the widest first, because they take longest."""
    from sklearn.model_selection import ShuffleSplit
    from sklearn.preprocessing import StandardScaler

    for n_noise, (nth, name) in product(sorted(protocol.noise, reverse=True), enumerate(SETS)):
        if name not in sets:
            continue
        X, y = sets[name]
        shuffle = ShuffleSplit(protocol.splits, test_size=0.4, random_state=seed)
        for split, (train, rest) in enumerate(shuffle.split(X)):
            rng = np.random.default_rng([seed, nth, n_noise, split])
            padded = np.c_[X, rng.choice([-1.0, 1.0], size=(len(X), n_noise))]
            scaled = StandardScaler().fit(padded[train]).transform(padded)
            rows = (train, *np.array_split(rest, 2))
            yield Part(name, n_noise, split, tuple(scaled[r] for r in rows), tuple(y[r] for r in rows))


def _error(L: Float64Array, part: Part, nth: int) -> float:
    """Return the error of the validation (1) or the test part (2), in %."""
    X, y = part.X, part.y
    return 100 * float(knn_errors(X[0] @ L.T, y[0], X[nth] @ L.T, y[nth], (3,))[0])


def _result(part: Part, method: str, L: Float64Array, chosen: str, seconds: float, **more: Any) -> Result:
    rank = len(factor(L.T @ L, 0.95))
    return Result(part.set, part.n_noise, part.split, method, _error(L, part, 2), rank, chosen, seconds, **more)


def _measure(part: Part, has_rivals: bool, protocol: Protocol, seed: int) -> list[Result]:
    results = [_result(part, "Euclidean", np.eye(part.X[0].shape[1]), "", 0.0), *_mlr(part, protocol)]
    with MetricLearn() if has_rivals else nullcontext() as metric_learn:
        if metric_learn is not None:
            lmnn = [
                # the default rate, 1e-7, is too small for any progress; a step that does not help is halved
                {"regularization": mu, "max_iter": protocol.lmnn_max_iter, "learn_rate": 1e-3}
                for mu in protocol.mus
            ]
            itml = [{"gamma": gamma, "random_state": seed} for gamma in protocol.gammas]
            results.append(_rival(part, "LMNN", lmnn, metric_learn))
            results.append(_rival(part, "ITML", itml, metric_learn))
    return results


def _mlr(part: Part, protocol: Protocol) -> Iterator[Result]:
    X, y = part.X[0], part.y[0]
    started = time.process_time()
    path = MLR("map", tol=protocol.tol, max_cuts=protocol.max_cuts).fit_path(X, y, protocol.Cs)
    seconds = (time.process_time() - started) / len(path)
    best = min(path, key=lambda mlr: _error(mlr.components_, part, 1))  # ties go to the smallest C
    chosen = f"C {best.C:g}"
    yield _result(part, BUNDLE, best.components_, chosen, seconds, projections=best.n_projections_)
    allowed = EPSILON * best.C
    tol = min(0.1, 0.5 * allowed / best.objective_)  # relative to the objective reached, hence half
    for method, solver in ((ADMM, "admm"), (SUBGRADIENT, "subgradient")):
        if solver == "subgradient" and part.n_noise > protocol.subgradient_up_to:
            continue
        mlr = MLR("map", C=best.C, solver=solver, admm_steps=10, tol=tol, max_cuts=protocol.counting_cuts)
        started = time.process_time()
        mlr.fit(X, y, lambda step: step["objective"] <= best.objective_ + allowed)
        seconds = time.process_time() - started
        arrived = mlr.objective_ <= best.objective_ + allowed
        yield _result(part, method, mlr.components_, chosen, seconds, projections=mlr.n_projections_, arrived=arrived)


def _rival(part: Part, method: str, grid: list[dict[str, Any]], metric_learn: MetricLearn) -> Result:
    fits = [metric_learn.fit(method.lower(), part.X[0], part.y[0], **parameters) for parameters in grid]
    best = min(range(len(grid)), key=lambda i: _error(fits[i][0], part, 1))
    name, value = next(iter(grid[best].items()))
    seconds = float(np.mean([spent["cpu"] for _, spent in fits]))
    return _result(part, method, fits[best][0], f"{name} {value:g}", seconds)


def _row(results: list[Result], mlr: list[Result]) -> dict[str, Any]:
    """Return the row of one method on one set and width; `mlr` are the default solver's results, split by split."""
    from scipy.stats import wilcoxon

    first = results[0]
    errors = np.array([r.error for r in results])
    chosen = [r.chosen for r in results]
    counts = [r.projections for r in results if r.projections is not None]
    row: dict[str, Any] = {
        "set": first.set,
        "noise": first.n_noise,
        "method": first.method,
        "error, %": float(errors.mean()),
        "sd": float(errors.std(ddof=1)),
        "splits": len(errors),
        "rank": float(np.mean([r.rank for r in results])),
        "CPU s": float(np.mean([r.seconds for r in results])),
        "projections": float(np.median(counts)) if counts else None,
        "arrived": sum(bool(r.arrived) for r in results) if first.arrived is not None else None,
        "chosen most often": max(chosen, key=chosen.count),
    }
    differences = errors - [r.error for r in mlr]
    if first.method in RIVALS and len(errors) > 5 and differences.any():  # with fewer, p is never below 0.05
        row["p"] = float(wilcoxon(differences, alternative="greater").pvalue)
    return row


def claims(by: dict[tuple[str, int, str], list[Result]], protocol: Protocol) -> Iterator[Claim]:
    """Yield claims about results by set, number of noise columns and method."""
    noisy = [(name, n) for name, n in product(SETS, protocol.noise) if n >= NOISY and (name, n, BUNDLE) in by]
    for rival in RIVALS:
        pairs = [(by[*case, BUNDLE], by[*case, rival]) for case in noisy if (*case, rival) in by]
        better = sum(np.mean([r.error for r in ours]) < np.mean([r.error for r in theirs]) for ours, theirs in pairs)
        yield at_least(
            f"sets and numbers of noise columns from {NOISY} on where MLR's mean error is below {rival}'s, "
            f"of {len(noisy)}",
            int(better) if pairs else None,
            len(noisy),
        )
    ratios = []
    stuck = {ADMM: 0, SUBGRADIENT: 0}
    for (name, n, method), theirs in by.items():
        if method != SUBGRADIENT:
            continue
        for ours, other in zip(by[name, n, ADMM], theirs, strict=True):
            assert ours.projections is not None
            assert other.projections is not None
            if ours.arrived and other.arrived:
                ratios.append(other.projections / ours.projections)
            stuck[ADMM] += not ours.arrived
            stuck[SUBGRADIENT] += not other.arrived
    yield at_least(
        f"times fewer projections of ADMM than of sub-gradients, median of the {len(ratios)} runs where both come "
        f"within C epsilon (of the same runs {stuck[ADMM]} of ADMM do not, {stuck[SUBGRADIENT]} of sub-gradients)",
        float(np.median(ratios)) if ratios else None,
        10.0,
    )


def run(settings: Settings, progress: Progress) -> tuple[list[dict[str, Any]], list[Claim]]:
    """Measure 4 splits of three widths; with ``--full`` 50 of five, as in the thesis."""
    sets = load_found(SETS, settings, progress)
    protocol = FULL if settings.full else SHORT
    settings.facts.update(asdict(protocol))
    by: dict[tuple[str, int, str], list[Result]] = {}
    measure = kept_parts("noise", settings).cache(_measure)
    with one_core_each() as pool:
        parts = _parts(sets, protocol, settings.seed)
        futures = [pool.submit(measure, part, ENVIRONMENT.exists(), protocol, settings.seed) for part in parts]
        for future in futures:
            results = future.result()
            for result in results:
                by.setdefault((result.set, result.n_noise, result.method), []).append(result)
            progress(f"{results[0].set}, {results[0].n_noise} columns of noise, split {results[0].split + 1}")
    rows = []
    methods = ("Euclidean", BUNDLE, ADMM, SUBGRADIENT, *RIVALS)
    for name, n, method in product(sets, protocol.noise, methods):
        if (name, n, method) in by:
            rows.append(_row(by[name, n, method], by[name, n, BUNDLE]))
        elif method in RIVALS:
            absent = "metric-learn is not there: `make rivals`"
            rows.append({"set": name, "noise": n, "method": method, "chosen most often": absent})
    return rows, list(claims(by, protocol))


# --- tables of the documents --------------------------------------------------------------------------------


def _tabulate(rows: KeptRows) -> Lines:
    methods = ("MLR-MAP, bundle", "LMNN", "ITML")
    columns = list_values(rows, "noise")
    yield "error in %: MLR / LMNN / ITML", *(f"{n} columns of noise" if n else "without noise" for n in columns)
    for name in list_values(rows, "set"):
        of = ([find_row(rows, set=name, noise=n, method=method) for method in methods] for n in columns)
        yield name, *(" / ".join(format_number(row["error, %"]) for row in cell) for cell in of)


TABLES: dict[str, Table] = {"noise": _tabulate}


DIFFERS = {
    "of": "thesis, figures 4.1 to 4.3",
    "splits": "as in the thesis: 50",
    "grid": "4 values of C, 3 of mu and 3 of gamma, fewer than in the thesis; at most 40 cuts",
    "size": "as in the thesis: four UCI sets",
}
"""The paper's table or figure, and how even the full protocol differs from the paper's."""


if __name__ == "__main__":
    main(
        "noise", __doc__.splitlines()[0], run, differs=DIFFERS, data=("balance", "ionosphere", "wdbc", "wine"),
        rivals=("scikit-learn", "metric-learn"), has_parts=True,
        short="4 of 50 splits, and three of five numbers of noise columns",
    )  # fmt: skip
