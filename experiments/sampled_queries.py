"""Sampled queries: how far learning ends from the optimum if each step uses only some of the queries.

Generated songs of ten overlapping classes, half of their 20 dimensions noise; AUC, C = 10. Full and sampled cuts get
the same work: ten full cuts. Distances are above the certified lower bound of a fit with a gap of 0.3 %, over seeds of
songs and samples.
"""

from typing import Any

import numpy as np

from benchmarks.support.columns import NUMBER_0, NUMBER_1, Column, Table, list_columns
from benchmarks.support.report import Claim, Progress, Settings, at_most, main
from musicsim._arrays import Float64Array, Int64Array
from musicsim.metric import MLR

SIZES, FULL_SIZES = (120, 500, 2_000), (120, 500, 2_000, 8_000)
SHARES = (0.5, 0.2, 0.05)
"""Of the queries a cut."""
N_SEEDS, WORK, C = 5, 10, 10.0


def songs(n: int, seed: int) -> tuple[Float64Array, Int64Array]:
    """Return songs and their classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 10
    X = rng.normal(size=(n, 20))
    X[:, :10] += 1.5 * np.eye(10)[y]
    return X, y


def run(settings: Settings, progress: Progress) -> tuple[list[dict[str, Any]], list[Claim]]:
    """Fit every size by full cuts and by samples."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    rows: list[dict[str, Any]] = []
    for n in FULL_SIZES if settings.full else SIZES:
        above: dict[float, list[float]] = {share: [] for share in (1.0, *SHARES)}
        for seed in range(settings.seed, settings.seed + N_SEEDS):
            X, y = songs(n, seed)
            bound = MLR(C=C, tol=3e-3).fit(X, y).dual_bound_
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # a sample's gap stays open
                for share, found in above.items():
                    n_queries = None if share == 1.0 else round(share * n)
                    mlr = MLR(C=C, n_queries=n_queries, max_cuts=round(WORK / share), random_state=seed)
                    found.append(100 * (mlr.fit(X, y).objective_ / bound - 1))
        for share, found in above.items():
            rows.append(
                {
                    "songs": n,
                    "queries a cut": round(share * n),
                    "cuts": round(WORK / share),
                    "above the optimum, %, median": float(np.median(found)),
                    "least": min(found),
                    "most": max(found),
                }
            )
        progress(f"{n} songs")
    sampled = [row for row in rows if row["songs"] > row["queries a cut"]]
    claim = "above the optimum at most, %, by sampled queries"
    return rows, [at_most(claim, max(row["most"] for row in sampled), 1.0)]


# --- tables of the documents --------------------------------------------------------------------------------


TABLES: dict[str, Table] = {
    "sampled_queries": list_columns(
        Column("songs", "songs", NUMBER_0),
        Column("queries per cut", "queries a cut", NUMBER_0),
        Column("cuts", "cuts", NUMBER_0),
        Column("% above the optimum: median of five runs", "above the optimum, %, median", NUMBER_1),
        Column("range", lambda row: f"{NUMBER_1(row['least'])} to {NUMBER_1(row['most'])}"),
    )
}


if __name__ == "__main__":
    main(
        "sampled_queries", __doc__.splitlines()[0], run,
        short="without 8,000 songs. This is final, because fewer songs already refute the claim",
    )  # fmt: skip
