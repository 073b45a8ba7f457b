"""Random subgraphs of an artist survey: how much the learned space depends on them (thesis, figure 2.10).

aset400, 9,107 comparisons of 412 artists. The thesis learns from biographies and tests on new artists. These are not
available, so genre labels replace them (new artists), and K = I (held-out comparisons of known artists). C is that of
experiments.listeners. Each subgraph is maximal, from comparisons in another random order. Comparisons implied by others
are dropped.

For reference, algorithm 2.5 with constant-shift embedding (2.A) satisfies every comparison of the subgraph. It shows
that this alone predicts little.
"""

from collections.abc import Iterator
from statistics import fmean

import numpy as np

from benchmarks.support.columns import NUMBER_0, SHARE_3, KeptRows, Lines, Table, format_share, group_rows
from benchmarks.support.parts import kept_parts
from benchmarks.support.report import Claim, Progress, Row, Settings, at_least, at_most, main
from experiments.support.orders import (
    IN_ORDER,
    everything,
    kernel_learner,
    levelled,
    order_score,
    questions_held_out,
    songs_held_out,
)
from experiments.support.surveys import label_kernel, load_artists
from experiments.support.total_order import constant_shift, levels
from experiments.support.uci import one_core_each
from musicsim.datasets import find
from musicsim.order import clean_comparisons

LABELS, IDENTITY, SHIFT = (
    "labels, full: new artists",
    "K = I, full: new comparisons",
    "constant shift: new comparisons",
)
C = {LABELS: 1e3, IDENTITY: 3e3}
N_FOLDS = 10
SPLITS = {LABELS: 10, IDENTITY: 2, SHIFT: 10}
"""Fits with K = I take minutes per split."""
TOL, MAX_ITER = 1e-2, 500
N_SUBGRAPHS = 10
LARGEST_IN_THESIS = 0.007


def _measure(kind: str, nth: int, seed: int) -> list[dict[str, float]]:
    """Return, for each subgraph, the comparisons kept, and shares in order of held-out ones and of those kept."""
    comparisons, labels = load_artists()
    n = len(labels)
    whole, rng = everything(n, len(comparisons)), np.random.default_rng([seed])
    if kind == LABELS:
        split = songs_held_out(whole, comparisons, N_FOLDS, rng, is_anchored=True)[nth]
    else:
        split = questions_held_out(whole, np.arange(len(comparisons)), N_FOLDS, rng)[nth]
    K = label_kernel(labels) if kind == LABELS else np.eye(n)
    found = []
    for subgraph in range(N_SUBGRAPHS):
        kept = clean_comparisons(comparisons[split.train], random_state=subgraph)[0]
        if kind == SHIFT:
            points = constant_shift(levels(kept, n))
        else:
            learn = kernel_learner(
                lambda songs: [levelled(K, songs)], lambda _, kept=kept: kept, tol=TOL, max_iter=MAX_ITER
            )
            points = learn(split.songs, split.train, C[kind]).points
        found.append(
            {
                "kept": len(kept),
                "kept in order": order_score(points, kept)[IN_ORDER],
                IN_ORDER: order_score(points, comparisons[split.test])[IN_ORDER],
            }
        )
    return found


def _row(kind: str, nth: int, found: list[dict[str, float]]) -> Row:
    scores = np.array([one[IN_ORDER] for one in found])
    return {
        "space": kind,
        "split": nth + 1,
        "subgraphs": len(found),
        "comparisons kept": float(np.mean([one["kept"] for one in found])),
        "kept ones in order": float(np.mean([one["kept in order"] for one in found])),
        "held-out ones in order": float(scores.mean()),
        "sd over subgraphs": float(scores.std(ddof=1)),
        "thesis sd over subgraphs": LARGEST_IN_THESIS if kind == LABELS else None,
    }


def _claims(rows: list[Row]) -> Iterator[Claim]:
    for kind in (LABELS, IDENTITY):
        largest = max(row["sd over subgraphs"] for row in rows if row["space"] == kind)
        yield at_most(f"{kind}: largest sd over subgraphs (thesis: .007)", largest, LARGEST_IN_THESIS)
    kept = min(row["kept ones in order"] for row in rows if row["space"] == SHIFT)
    yield at_least("constant shift: comparisons of the subgraph in order (theorem of 2.A)", kept, 1.0)


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Measure every split."""
    find("aset400")
    settings.facts.update(tol=TOL, max_iter=MAX_ITER, C=C)
    measure = kept_parts("subgraphs", settings).cache(_measure)
    rows = []
    with one_core_each() as pool:
        tasks = [
            (kind, nth, pool.submit(measure, kind, nth, settings.seed))
            for kind in (LABELS, IDENTITY, SHIFT)
            for nth in range(SPLITS[kind])
        ]
        for kind, nth, task in tasks:
            rows.append(_row(kind, nth, task.result()))
            progress(f"{kind}, split {nth + 1}")
    return rows, list(_claims(rows))


# --- tables of the documents --------------------------------------------------------------------------------


def _tabulate(rows: KeptRows) -> Lines:
    yield "", "splits", "standard deviation over subgraphs", "held-out comparisons in order", "comparisons kept"
    for (space,), own in group_rows(rows, "space"):
        spread = [row["sd over subgraphs"] for row in own]
        in_order, kept = (fmean(row[name] for row in own) for name in ("held-out ones in order", "comparisons kept"))
        spreads = f"{SHARE_3(min(spread))} to {SHARE_3(max(spread))}"
        yield space, str(len(own)), spreads, format_share(in_order), NUMBER_0(kept)


TABLES: dict[str, Table] = {"subgraphs": _tabulate}


DIFFERS = {
    "of": "thesis, figure 2.10",
    "splits": "10 folds (K = I: 2)",
    "grid": "C of experiments.listeners, gap of 1%",
    "size": "9,107 comparisons instead of 16,385; genre labels instead of biographies",
}
"""The paper's table or figure, and how even the full protocol differs from the paper's."""


if __name__ == "__main__":
    main("subgraphs", __doc__.splitlines()[0], run, differs=DIFFERS, data=("aset400",), has_parts=True)
