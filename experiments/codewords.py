"""Size of the codebook: ranking before and after learning, by codewords and tau (thesis, figures 5.4 and 5.5).

The demo's songs and plays are split as in experiments.audio: 40 : 30 : 30 by artist. Codebook, IDF, PCA and MLR are
fitted on training songs, and C is chosen by validation. The score is the AUC of test songs that query the training
songs. Dimensions are the principal components of the training songs' PPK vectors with 95 % of the variance. The thesis
states a value for 1024 codewords only. Its 806 training artists have 2,122 songs, the demo's 24 have 144, which bounds
the dimensions.

The last two rows are human tags. In the thesis, TF-IDF makes them worse than the plain cosine.
"""

from collections.abc import Iterator
from dataclasses import asdict
from itertools import product
from typing import Any

import numpy as np

from benchmarks.libraries import demo_library
from benchmarks.support.columns import NUMBER_0, SHARE_3, KeptRows, Lines, Table, find_row, list_values
from benchmarks.support.parts import kept_parts
from benchmarks.support.report import Claim, Progress, Settings, at_least, main
from experiments.audio import chosen_songs, splits_of
from experiments.support.audio import (
    PPK,
    TAGS,
    TFIDF,
    VQ,
    Protocol,
    Songs,
    Split,
    codeword_vectors_by_tau,
    effective_dimension,
    learned_distances,
    native_distances,
    tag_vectors,
)
from experiments.support.uci import one_core_each
from musicsim._arrays import Float64Array
from musicsim.evaluation.ranking import distance_scores
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.kernels import inverse_document_frequency, tfidf_map

PROTOCOL = Protocol(
    splits=10, Cs=(10.0, 100.0, 1e3, 1e4), tol=1e-2, max_cuts=60,
    codewords=(256, 512, 1024, 2048), taus=(1, 2, 4, 8), most_songs=None,
)  # fmt: skip
DIMENSIONS = "dimensions"
LEARNED_VQ, LEARNED_PPK = f"{VQ}, MLR", f"{PPK}, MLR"
COLUMNS = (VQ, TFIDF, PPK, LEARNED_VQ, LEARNED_PPK)
IN_THESIS = {(1024, 1): {VQ: 0.680, LEARNED_PPK: 0.808, DIMENSIONS: 253.1}, (1024, 4): {DIMENSIONS: 106.6}}
TAGS_IN_THESIS = {TAGS: 0.834, f"{TAGS}, {TFIDF}": 0.771}

Found = dict[str, float]


def _auc(D: Float64Array, split: Split, k: int) -> float:
    return float(np.nanmean(distance_scores(D[split.test], split.relevance[k][2])["auc"]))


def measured_codewords(songs: Songs, split: Split, k: int, size: int, protocol: Protocol, seed: int) -> list[Found]:
    """Return AUC of each ranking method, and dimensions, one dictionary per tau."""
    found = []
    for vectors in codeword_vectors_by_tau(songs, split.train, size, protocol.taus, seed):
        one = {name: _auc(native_distances(name, X, split.train), split, k) for name, X in vectors.items()}
        for name, learned in ((VQ, LEARNED_VQ), (PPK, LEARNED_PPK)):
            D = learned_distances(vectors[name], split, k, "trace", protocol)[0]
            one[learned] = _auc(D, split, k)
        one["codewords"] = vectors[VQ].shape[1]
        one[DIMENSIONS] = effective_dimension(vectors[PPK][split.train])
        found.append(one)
    return found


def measured_tags(songs: Songs, split: Split, k: int, seed: int) -> Found:
    """Return AUC of the cosine of human tags, plain and weighted by the IDF of the training songs."""
    X = tag_vectors(songs, split.train, seed)[TAGS]
    weighed = tfidf_map(X, inverse_document_frequency(X[split.train])).astype(np.float64)
    return {
        name: _auc(native_distances(TAGS, Y, split.train), split, k)
        for name, Y in zip(TAGS_IN_THESIS, (X, weighed), strict=True)
    }


def _summary(found: list[Found], name: str) -> tuple[float, float]:
    values = np.array([one[name] for one in found])
    return float(values.mean()), float(values.std(ddof=1))


def _row(found: list[Found], size: int, tau: int) -> dict[str, Any]:
    thesis = IN_THESIS.get((size, tau), {})
    row: dict[str, Any] = {"codewords": _summary(found, "codewords")[0], "tau": tau}
    for name in (*COLUMNS, DIMENSIONS):
        row[name], row[f"{name} sd"] = _summary(found, name)
        if name in (VQ, LEARNED_PPK, DIMENSIONS):
            row[f"thesis {name}"] = thesis.get(name)
    return row | {"splits": len(found)}


def _claims(rows: list[dict[str, Any]], tags: dict[str, float]) -> Iterator[Claim]:
    lead = min(row[LEARNED_VQ] - row[VQ] for row in rows)
    yield at_least("MLR above native VQ, least lead in AUC of all codebooks and tau", lead, 0.0)
    lead = min(row[LEARNED_PPK] - row[TFIDF] for row in rows)
    yield at_least("PPK and MLR above TF-IDF, least lead in AUC of all codebooks and tau", lead, 0.0)
    spread = [float(np.ptp([row[name] for row in rows])) for name in (VQ, LEARNED_PPK)]
    yield at_least(
        "AUC depends less on codebook and tau once learned: range of native less learned", spread[0] - spread[1], 0.0
    )
    of = {(row["codewords"], row["tau"]): row for row in rows}
    falls = [
        of[size, 1][DIMENSIONS] - of[size, max(tau for _, tau in of)][DIMENSIONS] for size in {size for size, _ in of}
    ]
    yield at_least("dimensions fall from tau 1 to the largest, least fall of all codebooks", min(falls), 0.0)
    plain, weighed = (tags[name] for name in TAGS_IN_THESIS)
    yield at_least("TF-IDF worse than plain cosine of human tags, AUC lost", plain - weighed, 0.0)


def run(settings: Settings, progress: Progress) -> tuple[list[dict[str, Any]], list[Claim]]:
    """Measure ten splits of the demo's artists."""
    with demo_library(settings.seed, progress) as library:
        snapshot = take_snapshot(library)
        rows_of = chosen_songs(snapshot, PROTOCOL.most_songs, settings.seed)
        songs, splits = splits_of(snapshot, rows_of, PROTOCOL.splits, settings.seed)
    k = min(splits[0].relevance)
    settings.facts.update(asdict(PROTOCOL), songs=len(songs.ids), similar_artists=k)
    measure = kept_parts("codewords", settings).cache(measured_codewords)
    with one_core_each() as pool:
        tasks = {
            (split.number, size): pool.submit(measure, songs, split, k, size, PROTOCOL, settings.seed)
            for split in splits
            for size in PROTOCOL.codewords
        }
        found = {}
        for (number, size), task in tasks.items():
            found[number, size] = task.result()
            progress(f"split {number + 1}, {size} codewords")
    rows = [
        _row([found[split.number, size][nth] for split in splits], size, tau)
        for size, (nth, tau) in product(PROTOCOL.codewords, enumerate(PROTOCOL.taus))
    ]
    of_tags = [measured_tags(songs, split, k, settings.seed) for split in splits]
    tags = {name: _summary(of_tags, name) for name in TAGS_IN_THESIS}
    claims = list(_claims(rows, {name: mean for name, (mean, _) in tags.items()}))
    for name, (mean, sd) in tags.items():
        rows.append(
            {"tags": name, "AUC": mean, "AUC sd": sd, "thesis AUC": TAGS_IN_THESIS[name], "splits": len(splits)}
        )
    return rows, claims


# --- tables of the documents --------------------------------------------------------------------------------


def _tabulate(rows: KeptRows) -> Lines:
    columns = {
        "VQ histograms": "native", "TF-IDF": "TF-IDF", "PPK": "PPK", "VQ histograms, MLR": "native, MLR",
        "PPK, MLR": "PPK, MLR",
    }  # fmt: skip
    yield "codewords, tau", *columns.values(), "components"
    for size in list_values(rows, "codewords"):
        of = [find_row(rows, codewords=size, tau=tau) for tau in (1, 8)]
        figures = (", ".join(SHARE_3(row[column]) for row in of) for column in columns)
        yield f"{size:,.0f}, 1 and 8", *figures, ", ".join(NUMBER_0(row["dimensions"]) for row in of)


TABLES: dict[str, Table] = {"codewords": _tabulate}


DIFFERS = {
    "of": "thesis, figures 5.4 and 5.5",
    "splits": "as in the thesis: 10",
    "grid": "our values of C, at most 60 cuts, gap of 1%",
    "size": "144 training songs by 24 artists of the demo instead of 2,122 by 806; 3 similar artists instead of 10",
}
"""The paper's table or figure, and how even the full protocol differs from the paper's."""


if __name__ == "__main__":
    main("codewords", __doc__.splitlines()[0], run, differs=DIFFERS, has_parts=True)
