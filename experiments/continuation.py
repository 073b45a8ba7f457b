"""Continuing playlists: how well each method predicts the second half of a held-out playlist (RecSys Challenge 2018).

Lists of six or more songs are randomly divided into five parts. A split tests on one part, 500 lists at most, and
trains on all other lists. The first half of each test list is given. The songs of the second half that are not in the
first are to be found among 500 recommendations. Means are over splits, with the standard deviation across them;
intervals are over the lists of all splits. No list is tested twice.

The walk is the app's, fitted as in the app. Co-occurrence is that of songs in the training lists. The shares of
families are fitted on lists without part in the co-occurrence. Initial weights are by family. Its score is the mean
probability to come next over all given songs, because the list need not continue from its last song. "Songs by plays"
draws a song inside an edge by its plays in the training lists plus half a play, instead of uniformly.

Rivals:

- popularity
- the number of given songs by the artist
- the nearest in sound
- item-kNN: the sum of cosines by lists over the 200 nearest of each given song
- ALS and BPR, 64 factors each

Only spotify and the demo have artists, and only the demo has sound. Rivals without data are skipped.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.libraries import demo_library
from benchmarks.support.parts import kept_parts
from benchmarks.support.report import Claim, Progress, Row, Settings, at_least, format_lead, load_found, main
from experiments.support.cooccurrence import cooccurrence_clusters, cooccurrence_neighbors
from experiments.support.playlists import LOADERS, Collection, demo_lists, song_weights
from experiments.support.uci import one_core_each
from musicsim import playlist
from musicsim._arrays import Float64Array
from musicsim.evaluation import bootstrap_pairs
from musicsim.explorer.playlists.fit import TrainingPlaylists, fit_dialects
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.continuation.continuation import (
    ALS,
    ALS_ALPHA,
    ALS_PENALTY,
    ALS_STEPS,
    BPR,
    BPR_LEARNING_RATE,
    BPR_PENALTY,
    BPR_STEPS,
    ITEM_KNN,
    MAX_JUDGED,
    MEASURES,
    N_FACTORS,
    N_NEIGHBORS,
    POPULARITY,
    WALK,
    ContinuationTask,
    lists_of,
    measure,
    parts_of,
    score_by_walk,
    split,
    task_of,
    ways,
)
from musicsim.extensions.continuation.continuation import Lists as TrainLists
from musicsim.library import Library

SHORT = {"aotm": 2, "yes_big": 2, "yes_small": 2, "demo": 5, "spotify": 5}
FULL = dict.fromkeys(SHORT, 5)
"""Splits of each collection."""
DEMO = "demo"
BY_PLAYS = "walk, songs by plays"
RIVALS = (POPULARITY, ITEM_KNN, ALS, BPR)

Found = dict[str, dict[str, Float64Array]]
"""By way and measure: of each judged list, (n_lists,)."""


def judged(collection: Collection, number: int, seed: int) -> Found:
    """Evaluate every method on one split of a collection of lists and labels."""
    part = parts_of(collection.playlists, seed)[number][:MAX_JUDGED]
    train, begun, taken = split(collection.playlists, part)
    n = collection.n_songs

    def graph_of(made_of: TrainingPlaylists) -> playlist.Hypergraph:
        return playlist.build_edges(
            n,
            **collection.known,
            cooccurrence_clusters=cooccurrence_clusters(made_of.rows, n, seed),
            cooccurrence_neighbors=cooccurrence_neighbors(made_of.rows, n, seed),
        )

    def fit_walk(lists: TrainLists) -> playlist.PlaylistModel:
        rows = [list(songs) for songs in lists]
        return fit_dialects(TrainingPlaylists(rows, [None] * len(rows)), graph_of).model()

    known = collection.known.get("artists")
    artists = None if known is None else np.unique(known, return_inverse=True)[1]
    return with_both_walks(ContinuationTask(n, train, begun, fit_walk, artists, random_state=seed), taken)


def judged_demo(folder: Path, number: int, seed: int) -> Found:
    """Evaluate every method on one split of the demo library, as the app evaluates its own lists."""
    with Library.open(folder) as library:
        native = library.models.native()
        snapshot = take_snapshot(library, native.id if native else None)
        lists = lists_of(snapshot, "playlists")
        train, begun, taken = split(lists, parts_of(lists, seed)[number][:MAX_JUDGED])
        return with_both_walks(task_of(snapshot, "playlists", train, begun, random_state=seed), taken)


def with_both_walks(task: ContinuationTask, taken: TrainLists) -> Found:
    """Evaluate every method, and the walk that draws songs inside an edge by their plays."""
    walk = task.fit_walk(task.train)  # one fit for both
    graph = walk.hypergraph
    plays = song_weights([list(songs) for songs in task.train], task.n_songs)
    by_plays = playlist.PlaylistModel(playlist.Hypergraph(graph.incidence, graph.names, plays), walk.weights_)
    fitted = ways(replace(task, fit_walk=lambda _: walk))
    return measure(task, taken, fitted | {BY_PLAYS: lambda: score_by_walk(by_plays)})


def lead(found: Sequence[Found], ours: str, theirs: str, seed: int) -> tuple[float, float, float]:
    """Return the NDCG lead of one method over another, and its 95 % interval over all lists."""
    a, b = (np.concatenate([part[way]["ndcg"] for part in found]) for way in (ours, theirs))
    return bootstrap_pairs(a, b, random_state=seed)


def table(name: str, found: Sequence[Found], seed: int) -> list[Row]:
    """Return one row per method, best NDCG first."""
    rows: list[dict[str, Any]] = []
    for way in found[0]:
        row: dict[str, Any] = {"lists": name, "way": way}
        for measured, title in MEASURES.items():
            means = [float(part[way][measured].mean()) for part in found]
            row[title] = float(np.mean(means))
            row[f"{title} sd"] = float(np.std(means, ddof=1)) if len(means) > 1 else None
        if way != WALK:
            row["walk ahead, NDCG"] = format_lead(*lead(found, WALK, way, seed))
        rows.append(row | {"judged lists": sum(len(part[way]["ndcg"]) for part in found), "splits": len(found)})
    return sorted(rows, key=lambda row: -row[MEASURES["ndcg"]])


def claims_of(name: str, found: Sequence[Found], seed: int) -> list[Claim]:
    """Compare the walk with each rival that every collection has."""
    return [
        at_least(f"{name}: walk ahead of {way} in NDCG, low end of 95 %", lead(found, WALK, way, seed)[1], 0.0)
        for way in RIVALS
    ]


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Measure every method on every split; five splits of all collections with ``--full``."""
    seed, n_splits = settings.seed, FULL if settings.full else SHORT
    loaded = load_found(LOADERS, settings, progress)
    with demo_library(seed, progress) as library:
        loaded[DEMO] = demo_lists(library)
        folder = library.folder
    settings.facts.update(
        splits_of=n_splits,
        songs={name: about.n_songs for name, about in loaded.items()},
        lists={name: len(about.playlists) for name, about in loaded.items()},
        item_knn=f"cosine, {N_NEIGHBORS} neighbors",
        als=f"{N_FACTORS} factors, alpha {ALS_ALPHA}, regularization {ALS_PENALTY}, {ALS_STEPS} iterations",
        bpr=f"{N_FACTORS} factors, learning rate {BPR_LEARNING_RATE}, regularization {BPR_PENALTY}, "
        f"{BPR_STEPS} iterations",
    )
    kept = kept_parts("continuation", settings)
    by: dict[str, list[Found]] = {}
    with one_core_each() as pool:
        futures = [
            (name, pool.submit(kept.cache(judged_demo), folder, number, seed))
            if name == DEMO
            else (name, pool.submit(kept.cache(judged), loaded[name], number, seed))
            for name, many in n_splits.items()
            if name in loaded
            for number in range(many)
        ]
        for name, future in futures:
            by.setdefault(name, []).append(future.result())
            progress(f"{name}, split {len(by[name])}")
    rows = [row for name, found in by.items() for row in table(name, found, seed)]
    return rows, [claim for name, found in by.items() for claim in claims_of(name, found, seed)]


if __name__ == "__main__":
    main(
        "continuation",
        __doc__.splitlines()[0],
        run,
        data=("aotm", "spotify_msd", "yes"),
        has_parts=True,
        short="2 of 5 splits of aotm, yes_small and yes_big, and all 5 of the others. This is final except for "
        "BPR on aotm, the only rival whose interval contains 0",
    )
