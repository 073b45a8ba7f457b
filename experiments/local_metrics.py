"""Local metrics: how many work best, and how long they take (SIGIR 2017, figures 2 to 4 and table 5).

- figure 2: Synthetic-10, -50 and -100 of Su, King, Lyu: as many classes, normal about their centers. Here each has its
  own covariance, because with a common one a single metric is as good; the paper says only "normal". A test point ranks
  the training points, with its class as relevant. The score is the gain in MAP over one metric, by number of metrics.
- figure 3: NDCG@10 of MQ2008's test queries by number of metrics. Other settings are those that experiments.letor chose
  for 300, and all columns for each metric as in the paper.
- figure 4: CPU seconds of ten metrics on synthetic documents of 10 to 1,000 columns.
- table 5: CPU microseconds per document, one thread: 500 metrics, 500 trees of GBRT and at most 500 of LambdaMART. The
  paper has 5,000, and milliseconds.

The paper prints figures without numbers, so the claims are its statements.
"""

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.support.columns import SHARE_3, KeptRows, Lines, Table, find_row, list_values
from benchmarks.support.parts import kept_parts
from benchmarks.support.report import Claim, Progress, Row, Settings, at_least, main, race
from experiments.letor import folds
from experiments.support.letor import Fold, ndcg
from experiments.support.letor_boosting import gbrt, lambdarank
from experiments.support.letor_files import RankingRows
from musicsim._arrays import Float64Array, Int64Array
from musicsim.evaluation.ranking import distance_scores
from musicsim.metric import LGMML, LGMMLByExample
from musicsim.relevance import Relevance

CENTRES = (10, 50, 100)
ROWS_A_CENTRE = 40
COLUMNS = 10
BY_EXAMPLE: dict[str, Any] = {"rho": 256.0, "reg": 0.1}
ON_DOCUMENTS: dict[str, Any] = {"n_queries": 100, "max_features": 0.05, "margin": 0.03, "n_epochs": 40}
TREES = {"num_leaves": 31, "learning_rate": 0.05}
MANY = 500
TIME_IN_PAPER = {"GBRT": 73.0, "LambdaMART": 92.0, "L-GMML": 158.0}
"""MSLR-WEB10K, milliseconds a document."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """Seeds, shares of the number of centers, numbers of metrics on documents, and columns of figure 4."""

    seeds: int
    shares: tuple[float, ...]
    numbers: tuple[int, ...]
    columns: tuple[int, ...]


PROTOCOL = Protocol(
    seeds=10, shares=(0.1, 0.5, 1.0, 2.0, 4.0), numbers=(1, 3, 10, 30, 100, 300), columns=(10, 30, 100, 300, 1000)
)


def synthetic(n_centres: int, n: int, rng: np.random.Generator) -> tuple[Float64Array, Int64Array]:
    """Return points of classes that are normal about their centers, each with its own covariance."""
    centres = 2.0 * rng.normal(size=(n_centres, COLUMNS))
    spreads = [
        np.linalg.qr(rng.normal(size=(COLUMNS, COLUMNS)))[0] * np.exp(rng.normal(size=COLUMNS))
        for _ in range(n_centres)
    ]
    y = np.arange(n) % n_centres
    noise = rng.normal(size=(n, COLUMNS))
    return np.stack([centres[k] + spreads[k] @ e for k, e in zip(y, noise, strict=True)]), y


def measured_gains(n_centres: int, shares: tuple[float, ...], seed: int) -> dict[int, float]:
    """Return MAP by number of metrics, including 1."""
    n = ROWS_A_CENTRE * n_centres
    X, y = synthetic(n_centres, n + n // 2, np.random.default_rng(seed))
    relevance = Relevance.from_labels(y).restrict(np.arange(n, len(y)), np.arange(n))
    found = {}
    for m in dict.fromkeys([1, *(max(2, round(share * n_centres)) for share in shares)]):
        local = LGMMLByExample(m, random_state=seed, **BY_EXAMPLE).fit(X[:n], y[:n])
        found[m] = float(np.nanmean(distance_scores(local.distances(X[n:], X[:n]), relevance)["map"]))
    return found


def measured_documents(fold: Fold, m: int, share: float, seed: int) -> float:
    """Return NDCG@10 of the test queries with m metrics that see a share of the columns each."""
    ranker = LGMML(n_metrics=m, random_state=seed, **ON_DOCUMENTS | {"max_features": share}).fit(*fold.train)
    return ndcg(ranker.predict(fold.test.X, fold.test.group), fold.test)


def seconds_by_columns(n_columns: int, seed: int) -> float:
    """Return CPU seconds of a fit of ten metrics on 100 queries of 20 documents."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(2_000, n_columns)).astype(np.float32), rng.integers(3, size=2_000)
    ranker = LGMML(n_metrics=10, max_features=1.0, random_state=seed)
    ranker.fit(X[:40], y[:40].astype(np.float64), [20, 20])  # compile first
    started = time.process_time()
    ranker.fit(X, y.astype(np.float64), np.full(100, 20))
    return time.process_time() - started


def scoring_times(fold: Fold, seed: int) -> dict[str, float]:
    """Return CPU microseconds per test document."""
    ranker = LGMML(n_metrics=MANY, random_state=seed, **ON_DOCUMENTS | {"n_epochs": 1}).fit(*fold.train)
    scores = {"L-GMML": lambda rows: ranker.predict(rows.X, rows.group)}
    try:
        scores["GBRT"] = gbrt(fold, [TREES], seed, n_trees=MANY).score
        # validating on the training rows hardly stops it early
        unstopped = Fold(fold.name, fold.train, fold.train, fold.test)
        scores["LambdaMART"] = lambdarank(unstopped, [TREES], seed).score
    except ImportError:
        pass
    rows: RankingRows = fold.test
    seconds = race({name: (lambda score=score: score(rows)) for name, score in scores.items()}, repeats=3)
    return {name: 1e6 * spent / len(rows.y) for name, spent in seconds.items()}


def _claims(
    gains: dict[int, list[dict[int, float]]], documents: dict[tuple[float, int], list[float]], times: dict[str, float]
) -> Iterator[Claim]:
    for n_centres, found in gains.items():
        mean = {m: float(np.mean([one[m] - one[1] for one in found])) for m in found[0] if m > 1}
        yield at_least(f"Synthetic-{n_centres}: gain in MAP with a metric a centre", mean[n_centres], 0.0)
        more = max(gain for m, gain in mean.items() if m > n_centres)
        yield at_least(
            f"Synthetic-{n_centres}: gain with a metric a centre, no less than with more (the paper's figure 2)",
            mean[n_centres], more,
        )  # fmt: skip
    if documents:
        for share in dict.fromkeys(share for share, _ in documents):
            mean = {m: float(np.mean(scores)) for (of, m), scores in documents.items() if of == share}
            yield at_least(
                f"MQ2008, {share:.0%} of the columns: NDCG@10 of the best number of metrics above one (figure 3)",
                max(score for m, score in mean.items() if m > 1) - mean[1], 0.0,
            )  # fmt: skip
    for other in ("GBRT", "LambdaMART"):
        ratio = times["L-GMML"] / times[other] if other in times else None
        yield at_least(f"time of scoring: L-GMML over {other} (the paper: slower)", ratio, 1.0)


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Measure ten seeds."""
    settings.facts.update(
        asdict(PROTOCOL), by_example=BY_EXAMPLE, on_documents=ON_DOCUMENTS, rows_a_centre=ROWS_A_CENTRE
    )
    kept, seeds = kept_parts("local_metrics", settings), range(settings.seed, settings.seed + PROTOCOL.seeds)
    rows: list[Row] = []
    with threadpool_limits(1):
        gains = {}
        for n_centres in CENTRES:
            gains[n_centres] = [kept.cache(measured_gains)(n_centres, PROTOCOL.shares, seed) for seed in seeds]
            for m in gains[n_centres][0]:
                scores = np.array([[one[m], one[m] - one[1]] for one in gains[n_centres]])
                rows.append({
                    "figure 2": f"Synthetic-{n_centres}", "metrics": m, "MAP": float(scores[:, 0].mean()),
                    "gain over one": float(scores[:, 1].mean()), "gain sd": float(scores[:, 1].std(ddof=1)),
                })  # fmt: skip
            progress(f"Synthetic-{n_centres}")
        for n_columns in PROTOCOL.columns:
            seconds = kept.cache(seconds_by_columns)(n_columns, settings.seed)
            rows.append({"figure 4, columns": n_columns, "CPU s of ten metrics": seconds})
        progress("figure 4")
        documents: dict[tuple[float, int], list[float]] = {}
        times: dict[str, float] = {}
        try:
            fold = next(folds(settings.seed))
        except SystemExit as absent:
            settings.facts["data"] = str(absent)
        else:
            for share, m in product((ON_DOCUMENTS["max_features"], 1.0), PROTOCOL.numbers):
                measure = kept.cache(measured_documents)
                scores = documents[share, m] = [measure(fold, m, share, seed) for seed in seeds]
                rows.append({
                    "figure 3": fold.name, "share of the columns": share, "metrics": m,
                    "NDCG@10": float(np.mean(scores)), "NDCG@10 sd": float(np.std(scores, ddof=1)),
                })  # fmt: skip
            times = kept.cache(scoring_times)(fold, settings.seed)
            rows += [
                {"table 5": name, "µs a document": spent, "paper, ms, MSLR-WEB10K": TIME_IN_PAPER[name]}
                for name, spent in times.items()
            ]
            progress("figure 3, table 5")
    return rows, list(_claims(gains, documents, times))


# --- tables of the documents --------------------------------------------------------------------------------


def _tabulate_gain(rows: KeptRows) -> Lines:
    shares = {0.5: "half as many metrics as centers", 1: "as many", 2: "twice as many", 4: "four times as many"}
    yield "generated classes: MAP of one metric", *(f"gain with {said}" for said in shares.values())
    for name in list_values(rows, "figure 2"):
        n_centres = int(name.rpartition("-")[2])
        of = [find_row(rows, figure_2=name, metrics=share * n_centres) for share in shares]
        figures = (f"{SHARE_3(row['gain over one'])} (sd {SHARE_3(row['gain sd'])})" for row in of)
        yield f"{n_centres} centers: {SHARE_3(find_row(rows, figure_2=name, metrics=1)['MAP'])}", *figures


def _tabulate_documents(rows: KeptRows) -> Lines:
    at = [row for row in rows if "figure 3" in row]
    numbers = list_values(at, "metrics")
    yield "MQ2008, NDCG@10 (standard deviation over seeds); number of metrics:", *map(str, numbers)
    for share, said in (
        (0.05, "each metric uses a twentieth of the columns"),
        (1.0, "each metric uses all columns, as in the paper"),
    ):
        of = [find_row(at, share_of_the_columns=share, metrics=n) for n in numbers]
        yield said, *(f"{SHARE_3(row['NDCG@10'])} ({SHARE_3(row['NDCG@10 sd'])})" for row in of)


TABLES: dict[str, Table] = {"local_metrics: gain": _tabulate_gain, "local_metrics: documents": _tabulate_documents}


DIFFERS = {
    "of": "SIGIR 2017, figures 2 to 4 and table 5",
    "splits": "10 seeds",
    "grid": "at most 300 metrics; 500 metrics and trees instead of 5,000 in table 5",
    "size": "MQ2008, and synthetic points with a covariance per class",
}
"""The paper's table or figure, and how even the full protocol differs from the paper's."""


if __name__ == "__main__":
    main(
        "local_metrics",
        __doc__.splitlines()[0],
        run,
        differs=DIFFERS,
        data=("mq2008_fold1",),
        rivals=("scikit-learn", "lightgbm"),
        has_parts=True,
    )
