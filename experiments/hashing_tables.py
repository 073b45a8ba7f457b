"""Bit codes of every width: accuracy, passes and search time, compared with learned metrics (WWW 2012, tables 4 to 6).

Tables 4 to 6, figure 4 and the proposals of section 6 of Nair, Mahajan, Sundararajan (WWW 2012). The sets are those of
experiments.hashing: 10,000 digits, 8,000 rows of Covertype and 9,000 SIFT vectors. This is at most a sixth of the
paper's. Compare scores only within a line, and with Euclidean distance. The short form takes 360 steps for every fit,
where experiments.hashing takes up to 4,500. This experiment shows the shape of the tables, the other one the level.

- Rivals do not use bits: a vote of the 3 nearest by Euclidean distance, by NCA and by LMNN. NCA is scikit-learn's, to
  60 dimensions of MNIST as in the paper, and all of Covertype. LMNN is metric-learn's (`make rivals`). NCA and LMNN are
  learned from a part of the rows.
- time: CPU milliseconds for 1,000 test rows, one thread, 256-bit codes without an inverted index.
- passes: SIFT, 32 bits; a pass is as many queries as there are vectors; each length is a separate fit.
- cascade: 8 bits keep at least a tenth of the digits, 256 bits vote among these.
- hidden units: a network's hidden layer, trained to classify, instead of the pixels. The paper proposes to learn both
  together.
- regression: Spotify's "danceability" of 16,071 songs from the other descriptors, standardized squared error; SARCOS is
  not available.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from benchmarks.support.columns import Column, KeptRow, Table, list_columns, with_paper
from benchmarks.support.metric_learn_process import ENVIRONMENT, MetricLearn
from benchmarks.support.parts import kept_parts
from benchmarks.support.report import Claim, Progress, Row, Settings, at_least, at_most, main, race
from benchmarks.support.search_data import SPOTIFY
from experiments.hashing import (
    COVTYPE,
    EUCLID_IN_PAPER,
    IN_PAPER,
    LAMBDARANK,
    LEARNED,
    METHODS,
    MNIST,
    NEIGHBORS,
    RANKNET,
    SIFT,
    fitted,
    format_error,
    measured,
)
from experiments.support.hashing import Part, covtype_part, mnist_part, sift_part
from experiments.support.uci import knn_errors, one_core_each
from musicsim._arrays import BoolArray, Float64Array
from musicsim.datasets import find
from musicsim.hashing import bin_mean, bin_vote, hamming_distances
from musicsim.search import HammingIndex

RIVALS_IN_PAPER = {"Euclid": EUCLID_IN_PAPER, "NCA": {MNIST: 2.45, COVTYPE: 4.01}, "LMNN": {MNIST: 1.72}}
DIMENSIONS = {MNIST: 60, COVTYPE: 54}
TIME_IN_PAPER = {"codes": (23.99, 765.83), "Euclid": (756.81, 1744.83), "NCA": (121.19, 1785.33)}
"""Table 6, seconds for all test rows: MNIST, Covertype."""
SHORTLIST = 0.1
_TEST_ROWS = 1_000
_HIDDEN = 256


@dataclass(frozen=True, slots=True)
class Protocol:
    """Steps of a fit by phase (None: those of experiments.hashing), seeds, rows for the rivals, lengths of figure 4."""

    steps: tuple[int, int] | None
    seeds: int
    rival_rows: int
    lengths: tuple[int, ...]
    bits: tuple[int, ...] = (8, 16, 32, 64, 128, 256)


SHORT = Protocol(steps=(300, 60), seeds=1, rival_rows=1_000, lengths=(50, 100, 200, 400, 800))
FULL = Protocol(steps=None, seeds=3, rival_rows=4_000, lengths=(100, 200, 400, 800, 1_600, 3_200))


def _part(name: str, seed: int) -> Part:
    return mnist_part() if name == MNIST else {COVTYPE: covtype_part, SIFT: sift_part}[name](seed)


def _settings(name: str, protocol: Protocol) -> dict[str, Any]:
    if protocol.steps is None:
        return LEARNED[name]
    learned = {key: value for key, value in LEARNED[name].items() if key in ("task", "noise", "n_queries")}
    return learned | {"ranknet_steps": protocol.steps[0], "lambdarank_steps": protocol.steps[1]}


# --- tables 4 and 5 ---------------------------------------------------------------------------------------


def measured_bits(name: str, method: str, bits: int, protocol: Protocol, seed: int) -> float:
    """Return the error of the vote, or for SIFT the precision below a distance of 2, in %."""
    part = _part(name, seed)
    return measured(part, fitted(part, method, bits, _settings(name, protocol), seed))


def measured_rival(name: str, rival: str, protocol: Protocol, seed: int) -> float | None:
    """Return the error rate (%) of a vote by the three nearest neighbors, or None if metric-learn is not installed."""
    part = _part(name, seed)
    L = learn_metric(part, rival, DIMENSIONS[name], protocol.rival_rows, seed)
    if L is None:
        return None
    y = np.unique(np.concatenate([part.y, part.y_test]), return_inverse=True)[1]
    n = len(part.y)
    return 100.0 * float(knn_errors(part.X @ L.T, y[:n], part.X_test @ L.T, y[n:], [NEIGHBORS])[0])


def learn_metric(part: Part, rival: str, dimensions: int, n_rows: int, seed: int) -> Float64Array | None:
    """Return components of a rival's metric, (r, d), learned from principal components of some rows."""
    from sklearn.decomposition import PCA
    from sklearn.neighbors import NeighborhoodComponentsAnalysis

    if rival == "Euclid":
        return np.eye(part.X.shape[1])
    if rival == "LMNN" and not ENVIRONMENT.exists():
        return None
    rows = np.random.default_rng(seed).permutation(len(part.X))[:n_rows]
    pca = PCA(dimensions, svd_solver="full").fit(part.X)
    Z, y = pca.transform(part.X[rows]), part.y[rows]
    if rival == "NCA":
        learned = NeighborhoodComponentsAnalysis(max_iter=50, random_state=seed).fit(Z, y).components_
    else:
        enough = np.isin(y, np.flatnonzero(np.bincount(y) > NEIGHBORS))
        with MetricLearn() as metric_learn:
            learned = metric_learn.fit(
                "lmnn", Z[enough], y[enough], n_neighbors=NEIGHBORS, max_iter=50, learn_rate=1e-3
            )[0]
    components: Float64Array = learned @ pca.components_
    return components


# --- time, passes, and proposals of section 6 ---------------------------------------------------------------


def search_milliseconds(name: str, protocol: Protocol, seed: int) -> dict[str, float]:
    """Return CPU milliseconds of the three nearest of 1,000 test rows: by 256-bit codes, by brute force, and by NCA."""
    from sklearn.neighbors import NearestNeighbors
    from threadpoolctl import threadpool_limits

    part = _part(name, seed)
    test = part.X_test[:_TEST_ROWS].astype(np.float32)
    hashing = fitted(part, METHODS[0], 256, {}, seed)  # search time does not depend on the bits' values
    index, queries = (
        HammingIndex(n_jobs=1).fit(hashing.transform(part.X)),
        hashing.transform(part.X_test[:_TEST_ROWS]),
    )
    L = learn_metric(part, "NCA", DIMENSIONS[name], min(protocol.rival_rows, 500), seed)
    assert L is not None
    spaces = {"Euclid": np.eye(part.X.shape[1]), "NCA": L}
    exact = {
        rival: (
            NearestNeighbors(n_neighbors=NEIGHBORS, algorithm="brute").fit((part.X @ C.T).astype(np.float32)),
            (test @ C.T).astype(np.float32),
        )
        for rival, C in spaces.items()
    }
    with threadpool_limits(1):
        seconds = race(
            {
                "codes": lambda: index.query(queries, k=NEIGHBORS),
                **{rival: (lambda found=found: found[0].kneighbors(found[1])) for rival, found in exact.items()},
            },
            repeats=3,
        )
    return {rival: 1000.0 * spent for rival, spent in seconds.items()}


def measured_passes(length: int, seed: int) -> tuple[float, float]:
    """Return passes through SIFT's training vectors, and precision in %."""
    part = sift_part(seed)
    steps = {"ranknet_steps": length * 6 // 7, "lambdarank_steps": length - length * 6 // 7}
    hashing = fitted(part, LAMBDARANK, 32, LEARNED[SIFT] | steps, seed)
    return length * LEARNED[SIFT]["n_queries"] / len(part.X), measured(part, hashing)


def shortlist(distances: np.ndarray, share: float) -> BoolArray:
    """Return a mask of the nearest `share` of each row, in whole bins of equal distance."""
    last = np.partition(distances, int(np.ceil(share * distances.shape[1])) - 1, axis=1)
    edges = last[:, int(np.ceil(share * distances.shape[1])) - 1]
    return distances <= edges[:, None]


def measured_cascade(protocol: Protocol, seed: int) -> dict[str, float]:
    """Return errors in % of 256 bits alone, with 8 bits before them, and of 8 bits; and the share of digits kept."""
    whole = mnist_part()
    part = Part(whole.name, whole.X, whole.y, whole.X_test[:_TEST_ROWS], whole.y_test[:_TEST_ROWS])
    short, long = (fitted(part, LAMBDARANK, bits, _settings(MNIST, protocol), seed) for bits in (8, 256))
    kept = shortlist(hamming_distances(short.transform(part.X_test), short.transform(part.X)), SHORTLIST)
    codes, queries = long.transform(part.X), long.transform(part.X_test)
    found = np.concatenate(
        [
            bin_vote(codes[mask], part.y[mask], query[None], n_bins=NEIGHBORS)
            for mask, query in zip(kept, queries, strict=True)
        ]
    )
    return {
        "256 bits": measured(part, long),
        "8 bits, then 256": 100.0 * float(np.mean(found != part.y_test)),
        "8 bits": measured(part, short),
        "share left, %": 100.0 * float(kept.mean()),
    }


def with_hidden_units(part: Part, seed: int) -> Part:
    """Replace the columns by the hidden layer of a network that was trained to classify."""
    from sklearn.decomposition import PCA
    from sklearn.neural_network import MLPClassifier

    pca = PCA(64, svd_solver="full").fit(part.X)
    network = MLPClassifier((_HIDDEN,), alpha=1e-3, early_stopping=True, random_state=seed)
    network.fit(pca.transform(part.X), part.y)
    X, X_test = (
        np.maximum(pca.transform(rows) @ network.coefs_[0] + network.intercepts_[0], 0.0)
        for rows in (part.X, part.X_test)
    )
    return Part(part.name, X, part.y, X_test, part.y_test)


def measured_hidden(bits: int, protocol: Protocol, seed: int) -> float:
    """Return the error in % of LambdaRank on hidden units of digits."""
    part = with_hidden_units(mnist_part(), seed)
    return measured(part, fitted(part, LAMBDARANK, bits, _settings(MNIST, protocol), seed))


def regression_part(seed: int) -> Part:
    """Return danceability with Spotify's other descriptors, all z-scored by the training part; 80 : 20."""
    import pandas as pd
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    songs = pd.concat([pd.read_csv(find("spotify_msd", f"features_{size}.csv")) for size in ("15k", "5k")])
    songs = songs.drop_duplicates(["Artist", "Track"]).dropna(subset=list(SPOTIFY))
    target = songs["danceability"].to_numpy(np.float64)[:, None]
    X = songs[[name for name in SPOTIFY if name != "danceability"]].to_numpy(np.float64)
    train, test = train_test_split(np.arange(len(X)), test_size=0.2, random_state=seed)
    scaled, wanted = (StandardScaler().fit(A[train]).transform(A) for A in (X, target))
    return Part("danceability", scaled[train], wanted[train, 0], scaled[test], wanted[test, 0])


def measured_regression(part: Part, protocol: Protocol, seed: int) -> dict[str, float]:
    """Return standardized mean squared errors.

    The methods are 64 bits by RankNet and LambdaRank, a linear regression, 3 neighbors, and 64 random bits.
    """
    from sklearn.linear_model import LinearRegression
    from sklearn.neighbors import KNeighborsRegressor

    said = {
        "line": LinearRegression().fit(part.X, part.y).predict(part.X_test),
        "3 nearest": KNeighborsRegressor(NEIGHBORS).fit(part.X, part.y).predict(part.X_test),
    }
    settings = {"task": "regression", **_settings(COVTYPE, protocol)}
    for method in (METHODS[0], RANKNET, LAMBDARANK):
        hashing = fitted(part, method, 64, settings, seed)
        said[f"{method}, 64 bits"] = bin_mean(
            hashing.transform(part.X), part.y, hashing.transform(part.X_test), n_bins=NEIGHBORS
        )
    return {name: float(np.mean((y - part.y_test) ** 2) / part.y_test.var()) for name, y in said.items()}


# --- runs ---------------------------------------------------------------------------------------------------


def _width_rows(found: dict[tuple[str, str, int], list[float]]) -> Iterator[Row]:
    for name, bits in dict.fromkeys((name, bits) for name, _, bits in found):
        row: dict[str, Any] = {"tables 4, 5": name, "bits": bits, "in %": "precision" if name == SIFT else "error"}
        for method, paper in zip(METHODS, IN_PAPER[name, bits], strict=True):
            values = np.array(found[name, method, bits])
            row |= {
                method: float(values.mean()),
                f"{method} sd": float(values.std(ddof=1)) if len(values) > 1 else None,
            }
            row[f"paper {method}"] = paper
        yield row


def _claims(rows: list[Row], cascade: dict[str, float], hidden: float, regression: dict[str, float]) -> Iterator[Claim]:
    widths = [row for row in rows if "tables 4, 5" in row]
    for name in (MNIST, COVTYPE, SIFT):
        of = [row for row in widths if row["tables 4, 5"] == name]
        sign = 1 if name == SIFT else -1
        for better, worse in ((LAMBDARANK, RANKNET), (RANKNET, METHODS[1])):
            wins = sum(sign * (row[better] - row[worse]) > 0 for row in of)
            paper = sum(sign * (row[f"paper {better}"] - row[f"paper {worse}"]) > 0 for row in of)
            yield at_least(
                f"{name}: widths of {len(of)} at which {better} is ahead of {worse} (goal: the paper's)", wins, paper
            )
    lost = cascade["8 bits, then 256"] - cascade["256 bits"]
    yield at_most("cascade: points of error lost by 8 bits first (paper: almost none; .5 allowed)", lost, 0.5)
    plain = next(row[LAMBDARANK] for row in widths if row["tables 4, 5"] == MNIST and row["bits"] == 32)
    yield at_most("hidden units: error of digits at 32 bits, below that without them", hidden, plain)
    yield at_most(
        "regression: error of RankNet at 64 bits, below that of a line (paper's order)",
        regression[f"{RANKNET}, 64 bits"],
        regression["line"],
    )


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Measure short fits with one seed; with ``--full`` the fits of experiments.hashing with three."""
    protocol = FULL if settings.full else SHORT
    settings.facts.update(asdict(protocol), hidden_units=_HIDDEN)
    kept, seeds = kept_parts("hashing_tables", settings), range(settings.seed, settings.seed + protocol.seeds)
    rows: list[Row] = []
    with one_core_each() as pool:
        bits = kept.cache(measured_bits)
        tables = {
            (name, method, width): [pool.submit(bits, name, method, width, protocol, seed) for seed in seeds]
            for name in (MNIST, COVTYPE, SIFT)
            for width, method in product(protocol.bits, METHODS)
            if (name, width) in IN_PAPER
        }
        rivals = {
            (name, rival): pool.submit(kept.cache(measured_rival), name, rival, protocol, settings.seed)
            for name, rival in product((MNIST, COVTYPE), RIVALS_IN_PAPER)
        }
        passes = [pool.submit(kept.cache(measured_passes), n, settings.seed) for n in protocol.lengths]
        cascade = pool.submit(kept.cache(measured_cascade), protocol, settings.seed)
        hidden = pool.submit(kept.cache(measured_hidden), 32, protocol, settings.seed)
        part = regression_part(settings.seed)
        regression = pool.submit(kept.cache(measured_regression), part, protocol, settings.seed)
        times = {
            name: pool.submit(kept.cache(search_milliseconds), name, protocol, settings.seed)
            for name in (MNIST, COVTYPE)
        }
        found = {}
        for key, tasks in tables.items():
            found[key] = [task.result() for task in tasks]
            progress(f"{key[0]}, {key[1]}, {key[2]} bits")
        rows += _width_rows(found)
        for (name, rival), task in rivals.items():
            paper = RIVALS_IN_PAPER[rival].get(name)
            rows.append({"table 4, rivals": name, "rival": rival, "error, %": task.result(), "paper error, %": paper})
        progress("rivals")
        for name, task in times.items():
            for rival, spent in task.result().items():
                paper = TIME_IN_PAPER[rival][0 if name == MNIST else 1]
                rows.append(
                    {"table 6": name, "search by": rival, "ms of 1,000 rows": spent, "paper s, all test rows": paper}
                )
        rows += [
            {"figure 4": "SIFT, 32 bits", "passes": n, "precision, %": value}
            for n, value in (task.result() for task in passes)
        ]
        rows.append({"section 6": "cascade, digits, error %", **cascade.result()})
        rows.append({"section 6": "hidden units, digits, 32 bits, error %", LAMBDARANK: hidden.result()})
        rows.append({"section 6": "regression, standardised squared error", **regression.result()})
        progress("figure 4, section 6")
        return rows, list(_claims(rows, cascade.result(), hidden.result(), regression.result()))


# --- tables of the documents --------------------------------------------------------------------------------


def _beside_paper(row: KeptRow, name: str) -> str:
    return with_paper(format_error(row[name]), format_error(row[f"paper {name}"]))


TABLES: dict[str, Table] = {
    "hashing_tables": list_columns(
        Column("bits", lambda row: f"{row['tables 4, 5']}, {row['bits']}"),
        *(Column(name, partial(_beside_paper, name=name)) for name in METHODS),
        where=lambda row: "tables 4, 5" in row,
    )
}


DIFFERS = {
    "of": "WWW 2012, tables 4 to 6 and figure 4",
    "splits": "3 seeds",
    "grid": "settings of experiments.hashing; rivals learn from 4,000 rows",
    "size": "10,000 of 60,000 digits, 8,000 of 522,911 rows of Covertype, 9,000 of 1,000,000 SIFT vectors; "
    "SARCOS is left out",
}
"""The paper's table or figure, and how even the full protocol differs from the paper's."""


if __name__ == "__main__":
    main(
        "hashing_tables",
        __doc__.splitlines()[0],
        run,
        differs=DIFFERS,
        data=("bigann10k", ("covtype_sample", "covtype"), ("mnist_20k", "mnist"), "spotify_msd"),
        rivals=("scikit-learn", "metric-learn"),
        has_parts=True,
        short="360 instead of up to 4,500 steps, 1 of 3 seeds, and 1,000 of 4,000 rows for rivals. Figure 4 ends at "
        "800 instead of 3,200 steps. This is final for tables 4 and 5: experiments.hashing has run the same "
        "widths with all steps",
    )
