"""Thumbs: do thumbs on some of the first results improve the next results? A simulation.

GTZAN: 1,000 songs of ten genres, 57 statistics each. Its files do not identify artists. Without an artist filter, all
scores are optimistic. A metric is learned on half of the songs; queries are drawn from the other half. Among the 15
songs nearest to a query, the given number is drawn at random. Songs of the query's genre get thumbs up, the others
thumbs down. The score is the share of the query's genre among the first ten songs outside the 15. Songs that were, or
could have been, given thumbs do not count. "query moves" is Rocchio's method with thumbs up only; "metric" does not
move the query. Strength and move are the defaults, which were chosen with queries from the training half.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.support.columns import SHARE_3, KeptRows, Lines, Table, find_row, list_values
from benchmarks.support.report import Claim, Progress, Row, Settings, at_least, format_lead, main
from musicsim._arrays import Float64Array, Int64Array
from musicsim.datasets import find
from musicsim.evaluation import bootstrap_pairs
from musicsim.metric import GMML, Feedback, LGMMLByExample, feedback_metric

SHOWN, LOOKED_AT = 15, 10
MARKS = (1, 3, 8, 15)
WAYS: dict[str, dict[str, float]] = {
    "before": {},
    "query moves": {"strength": 0.0},
    "metric": {"move": 0.0},
    "both": {},
}


def load() -> tuple[Float64Array, Int64Array]:
    """Load z-scored statistics, and genres."""
    import pandas as pd

    table = pd.read_csv(find("gtzan", "features_30_sec.csv"))
    X = table.drop(columns=["filename", "length", "label"]).to_numpy(np.float64)
    return (X - X.mean(axis=0)) / X.std(axis=0), pd.factorize(table["label"])[0].astype(np.int64)


def precision(
    X: Float64Array, y: Int64Array, query: int, n_marks: int, answer: Callable[..., Feedback], rng: np.random.Generator
) -> dict[str, float]:
    """Return the precision of every method for one query, with the same thumbs."""
    before = answer(X[query], X[:0], X[:0]).distances(X)
    order = np.argsort(before, kind="stable")
    order = order[order != query]
    marked = rng.choice(order[:SHOWN], n_marks, replace=False)
    up, down = marked[y[marked] == y[query]], marked[y[marked] != y[query]]
    unseen = order[SHOWN:]
    found = {}
    for way, how in WAYS.items():
        marks = (X[:0], X[:0]) if way == "before" else (X[up], X[down])
        d = answer(X[query], *marks, **how).distances(X[unseen])
        first = unseen[np.argsort(d, kind="stable")[:LOOKED_AT]]
        found[way] = float(np.mean(y[first] == y[query]))
    return found


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Measure every space and number of thumbs."""
    X, y = load()
    rng = np.random.default_rng(settings.seed)
    order = rng.permutation(len(y))
    queries, half = order[: len(y) // 2], order[len(y) // 2 :]
    queries = queries[: 500 if settings.full else 200]
    gmml = GMML().fit(X[half], y[half])
    local = LGMMLByExample(20, random_state=settings.seed).fit(X[half], y[half])
    spaces: dict[str, tuple[Float64Array, Callable[..., Feedback]]] = {
        "plain distance": (X, feedback_metric),
        "GMML": (gmml.transform(X), feedback_metric),
        "L-GMML by example, m 20": (X, local.feedback),
    }
    rows: list[Row] = []
    claims: list[Claim] = []
    for space, (Z, answer) in spaces.items():
        for n_marks in MARKS:
            each = [precision(Z, y, int(q), n_marks, answer, rng) for q in queries]
            scores = {way: np.array([one[way] for one in each]) for way in WAYS}
            row: dict[str, Any] = {"space": space, "marks": n_marks}
            row |= {way: float(values.mean()) for way, values in scores.items()}
            mean, low, high = bootstrap_pairs(scores["both"], scores["before"], random_state=settings.seed)
            rows.append({**row, "gain": format_lead(mean, low, high)})
            claims.append(at_least(f"{space}, {n_marks} marks: gain in precision, low end of 95 %", low, 0.0))
        progress(space)
    settings.facts.update(queries=len(queries), shown=SHOWN)
    return rows, claims


# --- tables of the documents --------------------------------------------------------------------------------


def _tabulate(rows: KeptRows) -> Lines:
    spaces, marks = list_values(rows, "space"), list_values(rows, "marks")
    yield "thumbs", *spaces
    for n in marks:
        of = [find_row(rows, space=space, marks=n) for space in spaces]
        yield str(n), *(f"{SHARE_3(row['before'])} / {SHARE_3(row['both'])}" for row in of)
    figures = (f"{SHARE_3(row['query moves'])} / {SHARE_3(row['metric'])}" for row in of)
    yield f"{n}, only the query moves (Rocchio) / only the metric changes", *figures


TABLES: dict[str, Table] = {"feedback": _tabulate}


if __name__ == "__main__":
    main(
        "feedback", __doc__.splitlines()[0], run, data=("gtzan",), rivals=("scikit-learn",),
        short="200 of 500 queries. This is final, because every interval already excludes 0",
    )  # fmt: skip
