"""Ranking documents: local geometric mean metrics, other metrics, a linear ranker and boosted trees.

MQ2008 of LETOR 4.0, with its own training, validation and test queries: all five folds if they are in letor/MQ2008, and
otherwise the first. Spreads are over queries: 95 % of resampled test queries. A second set, LightGBM's own example,
lacks a validation part: a fifth of its training queries is used. All settings of all methods are chosen by validation
NDCG@10; test queries are ranked once.

NDCG has gains 2^label - 1; a query without a relevant document counts 0, as in LETOR. L-GMML ranks unseen queries by
the phi that all training queries share. Only a training query has a phi of its own. The rows "known queries" learn from
one half of the documents of each training query and rank the other half. They use the shared phi or each query's own.
"As printed" is `_lgmml_printed`, with the paper's 500 metrics. All other rows of L-GMML are `LGMML`: metrics of several
queries, scaled, with squared distances, and anchors chosen by NDCG@10 of other queries. With "document anchors",
anchors are documents, metrics see all columns, and features are unchanged. Plain "WARP" and "NDCG" also have synthetic
anchors, few columns per metric and z-scores. Euclid, GMML, MLR and R-MLR have one metric and one anchor. The anchor is
a relevant training document, or a point beyond the mean of these. The one that ranks the training queries best is taken
of each kind; for MLR and R-MLR validation chooses the kind. Linear methods get features z-scored within queries unless
noted; trees get raw features.

The paper's table 4 is of MSLR-WEB10K, which is not available. Its scores are of other data and not comparable digit by
digit. Seconds are CPU seconds of the chosen fit and of all fits tried, each with one thread. L-GMML's scores are means
over seeds.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from benchmarks.support.columns import SHARE_3, KeptRows, Lines, Table, drop_zeros, find_row
from benchmarks.support.parts import kept_parts
from benchmarks.support.report import Claim, Progress, Row, Settings, at_least, at_most, format_lead, main
from experiments.support.letor import (
    BEYOND,
    DOCUMENT,
    KS,
    Fitted,
    Fold,
    as_they_are,
    euclid,
    global_gmml,
    halves,
    lgmml,
    mlr,
    ranknet,
    scores_of_known,
)
from experiments.support.letor_boosting import gbrt, lambdarank
from experiments.support.letor_files import RankingRows, load_letor, load_lightgbm
from experiments.support.lgmml_printed import as_printed
from musicsim._arrays import Float64Array, Int64Array
from musicsim.datasets import find, is_present
from musicsim.evaluation import bootstrap_pairs
from musicsim.evaluation.graded import score_groups


@dataclass(frozen=True, slots=True)
class Protocol:
    """Grids, and the amount of training data for the rivals' metrics."""

    seeds: int
    lgmml: dict[str, Any]
    lgmml_grid: list[dict[str, Any]]
    printed: dict[str, Any]
    printed_grid: list[dict[str, Any]]
    regs: tuple[float, ...]
    Cs: tuple[float, ...]
    mlr_queries: int
    mlr_cuts: int
    ridges: tuple[float, ...]
    trees: list[dict[str, Any]]


def _grid(**choices: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]


SHORT = Protocol(
    seeds=3, lgmml={"n_metrics": 300, "n_epochs": 40},
    lgmml_grid=_grid(structure=("full",), n_queries=(20, 100), max_features=(0.05, 0.1), margin=(0.01, 0.03)),
    printed={"n_metrics": 500, "n_epochs": 20},
    printed_grid=_grid(reg=(1e-6, 1e-3), phi=(0.1, 1.0, 10.0), margin=(0.01, 1.0)),
    regs=(1e-3, 0.01, 0.1, 1.0, 10.0), Cs=(0.1, 1.0, 100.0), mlr_queries=500, mlr_cuts=100,
    ridges=(1e-5, 1e-4, 1e-3, 1e-2, 1e-1),
    trees=_grid(num_leaves=(7, 31), learning_rate=(0.05,), min_child_samples=(20, 50)),
)  # fmt: skip
FULL = Protocol(
    seeds=10, lgmml={"n_metrics": 500, "n_epochs": 40},
    # no metrics of all columns, which would take a day
    lgmml_grid=_grid(
        structure=("full", "diagonal"), n_queries=(20, 100), max_features=(0.02, 0.05, 0.1, 0.2),
        margin=(0.01, 0.03, 0.1),
    ),
    printed={"n_metrics": 500, "n_epochs": 40},
    printed_grid=_grid(reg=(1e-8, 1e-6, 1e-4, 1e-2), phi=(0.1, 0.3, 1.0, 3.0, 10.0), margin=(0.01, 0.1, 1.0)),
    regs=(1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0),
    Cs=(0.01, 0.1, 1.0, 10.0, 100.0), mlr_queries=1000, mlr_cuts=100,
    ridges=(1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0),
    trees=_grid(num_leaves=(7, 15, 31, 63), learning_rate=(0.02, 0.05, 0.1), min_child_samples=(10, 20, 50)),
)  # fmt: skip

DOCUMENT_GRID = _grid(
    n_queries=(1, 20), anchor=("document",), standardize=(None,), max_features=(1.0,), n_metrics=(100,)
)

WARP, NDCG, LINEAR, TREES = "L-GMML, WARP", "L-GMML, NDCG", "linear RankNet", "LightGBM LambdaRank"
REGRESSION = "LightGBM GBRT"
PLAIN = "linear RankNet, features as they are"
AS_PRINTED, DOCUMENTS = "L-GMML, WARP, as printed", "L-GMML, WARP, document anchors"
ONE_METRIC = (f"GMML, anchor {BEYOND}", f"Euclid, anchor {BEYOND}", "R-MLR")
METHODS = (
    *(f"{name}, anchor {anchor}" for anchor in (DOCUMENT, BEYOND) for name in ("Euclid", "GMML")),
    "MLR", "R-MLR", AS_PRINTED, DOCUMENTS, WARP, NDCG, LINEAR, PLAIN, TREES, REGRESSION,
)  # fmt: skip
IN_PAPER = {AS_PRINTED: 0.5390, TREES: 0.4513, REGRESSION: 0.4342}
"""NDCG@10 on MSLR-WEB10K, table 4; LambdaMART for LambdaRank there."""
MQ2008, EXAMPLE = "MQ2008, fold 1", "LightGBM's example"

Scores = dict[str, Float64Array]


@dataclass(frozen=True, slots=True)
class Ranked:
    """Scores of each test query, means over seeds; the chosen setting; CPU seconds of its fit and of all fits."""

    scores: Scores
    chosen: str
    place: int
    seeds: int
    seconds: float
    choosing_s: float


def folds(seed: int) -> Iterator[Fold]:
    """Yield the data sets; raise DataSetAbsentError at the first absent one."""
    whole = is_present("mq2008")
    for number in range(1, 6 if whole else 2):
        name, folder = ("mq2008", f"Fold{number}/") if whole else ("mq2008_fold1", "")
        files = [find(name, f"{folder}{part}.txt") for part in ("train", "vali", "test")]
        yield Fold(f"MQ2008, fold {number}", *(load_letor(file, n_features=46) for file in files))
    train = load_lightgbm(find("lightgbm_lambdarank", "rank.train"), n_features=300)
    order = np.random.default_rng(seed).permutation(len(train.group))
    fifth = len(order) // 5
    parts = (np.sort(order[fifth:]), np.sort(order[:fifth]))
    test = load_lightgbm(find("lightgbm_lambdarank", "rank.test"), n_features=300)
    yield Fold(EXAMPLE, *(queries_of(train, part) for part in parts), test)


def queries_of(rows: RankingRows, queries: Int64Array) -> RankingRows:
    """Return some queries of a file."""
    query = np.repeat(np.arange(len(rows.group)), rows.group)
    kept = np.isin(query, queries)
    return RankingRows(rows.X[kept], rows.y[kept], rows.group[queries], (), ())


def fits(name: str, fold: Fold, protocol: Protocol, seed: int) -> list[Fitted]:
    """Fit one of :data:`METHODS`; L-GMML once per seed, with the setting that validation chose for the first.

    Raises
    ------
    ImportError
        If a method needs a library that is not installed.
    """
    p = protocol
    if name in (AS_PRINTED, DOCUMENTS, WARP, NDCG):
        fit, grid, fixed = {
            AS_PRINTED: (as_printed, p.printed_grid, p.printed),
            DOCUMENTS: (lgmml, DOCUMENT_GRID, {"loss": "warp", **p.lgmml}),
            WARP: (lgmml, p.lgmml_grid, {"loss": "warp", **p.lgmml}),
            NDCG: (lgmml, p.lgmml_grid, {"loss": "ndcg", **p.lgmml}),
        }[name]
        first = fit(fold, grid, seed, **fixed)
        chosen = [grid[first.place]]
        return [first, *(fit(fold, chosen, seed + i, **fixed) for i in range(1, p.seeds))]
    one: dict[str, Callable[[], Fitted]] = {
        **{f"Euclid, anchor {anchor}": partial(euclid, fold, anchor, seed) for anchor in (DOCUMENT, BEYOND)},
        **{f"GMML, anchor {anchor}": partial(global_gmml, fold, p.regs, anchor, seed) for anchor in (DOCUMENT, BEYOND)},
        "MLR": lambda: mlr(fold, p.Cs, "trace", p.mlr_queries, p.mlr_cuts, seed),
        "R-MLR": lambda: mlr(fold, p.Cs, "l21", p.mlr_queries, p.mlr_cuts, seed),
        LINEAR: lambda: ranknet(fold, p.ridges),
        PLAIN: lambda: ranknet(fold, p.ridges, as_they_are),
        TREES: lambda: lambdarank(fold, p.trees, seed),
        REGRESSION: lambda: gbrt(fold, p.trees, seed),
    }
    return [one[name]()]


def ranked(name: str, fold: Fold, protocol: Protocol, seed: int) -> Ranked | None:
    """Rank the test queries by one method; return None if its library is not installed."""
    try:
        tried = fits(name, fold, protocol, seed)
    except ImportError:
        return None
    return Ranked(
        _mean_scores(tried, fold.test), tried[0].chosen, tried[0].place, len(tried),
        tried[0].seconds, sum(one.choosing_s for one in tried),
    )  # fmt: skip


def _mean_scores(fitted: list[Fitted], rows: RankingRows) -> Scores:
    each = [score_groups(one.score(rows), rows.y, rows.group, KS) for one in fitted]
    return {name: np.mean([scores[name] for scores in each], axis=0) for name in each[0]}


def _figures(scores: Scores, seed: int) -> dict[str, Any]:
    of_all = scores["ndcg@10"]
    _, low, high = bootstrap_pairs(of_all, np.zeros_like(of_all), random_state=seed)
    row: dict[str, Any] = {f"NDCG@{k}": float(scores[f"ndcg@{k}"].mean()) for k in KS}
    return {**row, "MAP": float(scores["map"].mean()), "NDCG@10, 95 %": f"{low:.3f} to {high:.3f}"}


def _rows(fold: Fold, found: dict[str, Ranked], seed: int) -> Iterator[Row]:
    for name in METHODS:
        row: dict[str, Any] = {"data": fold.name, "method": name}
        if name not in found:
            yield {**row, "chosen": "lightgbm is not installed"}
            continue
        one = found[name]
        row |= _figures(one.scores, seed)
        if name != LINEAR:
            linear = found[LINEAR].scores["ndcg@10"]
            mean, low, high = bootstrap_pairs(one.scores["ndcg@10"], linear, random_state=seed)
            row["lead on linear"] = format_lead(mean, low, high)
        row |= {"chosen": one.chosen, "seeds": one.seeds}
        row |= {"fit_s": round(one.seconds, 2), "all_fits_s": round(one.choosing_s, 1)}
        yield {**row, "paper, MSLR-WEB10K": IN_PAPER.get(name)}


def _claims(fold: Fold, found: dict[str, Ranked], seed: int) -> Iterator[Claim]:
    ours = found[WARP]
    for other in (LINEAR, PLAIN, TREES, REGRESSION, *ONE_METRIC):
        of = None
        if other in found:
            of = bootstrap_pairs(ours.scores["ndcg@10"], found[other].scores["ndcg@10"], random_state=seed)
        what = f"{fold.name}: NDCG@10 of {WARP} above {other}"
        yield at_least(f"{what}, mean", of and of[0], 0.0)
        yield at_least(f"{what}, low end of the 95 % interval", of and of[1], 0.0)
    if TREES in found:
        ratio = ours.seconds / max(found[TREES].seconds, 1e-3)
        yield at_most(f"{fold.name}: CPU seconds of {WARP} over those of {TREES}", ratio, 1.0)


def _known(fold: Fold, setting: dict[str, Any], protocol: Protocol, seed: int) -> tuple[list[Row], list[Claim]]:
    """Measure the shared phi and each query's own on halves of the documents of the training queries."""
    learned, ranked = halves(fold.train, seed)
    found = scores_of_known(learned, ranked, seed, protocol.seeds, KS, **protocol.lgmml, **setting)
    rows = [
        {"data": f"{fold.name}, known queries", "method": f"{WARP}, {name}", **_figures(scores, seed)}
        for name, scores in found.items()
    ]
    own, shared = (found[name]["ndcg@10"] for name in ("phi of the query", "shared phi"))
    mean, low, _ = bootstrap_pairs(own, shared, random_state=seed)
    what = f"{fold.name}, other documents of known queries: NDCG@10 of a query's own phi above the shared one"
    return rows, [at_least(f"{what}, mean", mean, 0.0), at_least(f"{what}, low end of the 95 % interval", low, 0.0)]


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Rank the test queries of every available fold by all methods."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return _measured(FULL if settings.full else SHORT, settings, progress)


def _measured(protocol: Protocol, settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    rows: list[Row] = []
    claims: list[Claim] = []
    kept = kept_parts("letor", settings)
    n_folds = 0
    for fold in folds(settings.seed):
        n_folds += fold.name != EXAMPLE
        parts = {"train": fold.train, "validation": fold.validation, "test": fold.test}
        settings.facts[fold.name] = {name: f"{len(p.y)} documents, {len(p.group)} queries" for name, p in parts.items()}
        found: dict[str, Ranked] = {}
        for name in METHODS:
            one = kept.cache(ranked)(name, fold, protocol, settings.seed)
            if one is not None:
                found[name] = one
                progress(f"{fold.name}, {name}: NDCG@10 {one.scores['ndcg@10'].mean():.4f}")
        rows += list(_rows(fold, found, settings.seed))
        claims += list(_claims(fold, found, settings.seed))
        setting = protocol.lgmml_grid[found[WARP].place]
        more, held = kept.cache(_known)(fold, setting, protocol, settings.seed)
        rows, claims = rows + more, claims + held
        progress(f"{fold.name}: known queries")
    settings.facts.update(folds=f"{n_folds} of 5", seeds_of_lgmml=protocol.seeds, mlr_queries=protocol.mlr_queries)
    return rows, claims


# --- tables of the documents --------------------------------------------------------------------------------


def _tabulate(rows: KeptRows) -> Lines:
    mq, other = "MQ2008, fold 1", "LightGBM's example"
    yield (
        f"{mq}:", "NDCG@1", "@3", "@5", "@10 (95% interval)", "MAP", "lead over linear RankNet, NDCG@10",
        "fit, seconds", f"{other}: NDCG@10", "paper, MSLR-WEB10K",
    )  # fmt: skip
    for row in rows:
        if row["data"] == mq and "NDCG@1" in row:
            paper = row["paper, MSLR-WEB10K"]
            yield (
                row["method"],
                *(SHARE_3(row[f"NDCG@{k}"]) for k in (1, 3, 5)),
                f"{SHARE_3(row['NDCG@10'])} ({drop_zeros(row['NDCG@10, 95 %'])})",
                SHARE_3(row["MAP"]),
                drop_zeros(row.get("lead on linear", "")),
                f"{row['fit_s']:.2f}",
                SHARE_3(find_row(rows, data=other, method=row["method"])["NDCG@10"]),
                "" if paper is None else SHARE_3(paper),
            )


TABLES: dict[str, Table] = {"letor": _tabulate}


DIFFERS = {
    "of": "SIGIR 2017, table 4",
    "splits": "fold 1 of 5 of MQ2008, or all if they are there",
    "grid": "our grids, chosen by validation NDCG@10",
    "size": "MQ2008 and LightGBM's example instead of MSLR-WEB10K",
}
"""The paper's table or figure, and how even the full protocol differs from the paper's."""


if __name__ == "__main__":
    main(
        "letor", __doc__.splitlines()[0], run, differs=DIFFERS, rivals=("scikit-learn", "lightgbm"), has_parts=True,
        data=("lightgbm_lambdarank", ("mq2008", "mq2008_fold1")),
        short="3 of 10 seeds, 300 of 500 metrics, 20 of 40 epochs as printed, 500 of 1,000 queries for MLR, and "
        "smaller grids",
    )  # fmt: skip
