"""Continuing held-out playlists: R-precision, NDCG, clicks and hit rate, as in the RecSys Challenge 2018.

A fifth of the lists of six songs or more, 500 at most, are judged: the first half of each is shown, the songs of the
second half that were not in the first are to be found among 500 recommendations. All other lists are learned from.
Rivals: popularity, the artists of the list, the nearest in sound, item-kNN on cosines of lists, and matrix
factorisation by the package implicit, its settings as they are in its documentation but for 64 factors. The walk is
the app's, scored by the mean over all songs of the list, as it is not asked for the very next one; its settings are
the library's defaults.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks._report import Claim, Progress, Row, Settings, at_least, main, shared_data
from benchmarks.libraries import demo_library
from experiments._continuation_models import ALS, BPR, ITEM_KNN, POPULARITY, WALK, Asked, models
from experiments._playlist_models import demo_graph
from experiments._playlists import LOADERS, Collection, Lists, demo_lists
from musicsim._arrays import Float64Array, Int64Array
from musicsim.evaluation import continuation_scores, paired_bootstrap
from musicsim.explorer.snapshot.snapshot import take_snapshot

SHORT, FULL = ("yes_small", "spotify", "aotm"), ("yes_small", "yes_big", "spotify", "aotm")
MIN_SONGS, JUDGED, MAX_JUDGED, N_RECOMMENDED = 6, 0.2, 500, 500
MEASURES = ("r_precision", "ndcg", "clicks", "hit@10")
DEMO = "demo"


def split(lists: Lists, rng: np.random.Generator) -> tuple[Lists, Lists, Lists]:
    """Lists to learn from, first halves of judged ones, and the songs that are to be found."""
    long = [at for at, songs in enumerate(lists) if len(set(songs)) >= MIN_SONGS]
    judged = rng.permutation(long)[: min(MAX_JUDGED, round(JUDGED * len(long)))].tolist()
    rest = set(judged)
    train = [songs for at, songs in enumerate(lists) if at not in rest]
    begun, taken = [], []
    for at in judged:
        songs = list(dict.fromkeys(lists[at]))
        half = (len(songs) + 1) // 2
        begun.append(songs[:half])
        taken.append(songs[half:])
    return train, begun, taken


def recommended(scores: Float64Array, begun: Sequence[int]) -> Int64Array:
    """The 500 songs with the best scores that are not in the list already; of equal ones the first by number."""
    kept = scores.copy()
    kept[list(begun)] = -np.inf
    order = np.argsort(-kept, kind="stable")
    return order[: min(N_RECOMMENDED, len(kept) - len(begun))]


def measure(asked: Asked, taken: Lists) -> dict[str, dict[str, Float64Array]]:
    """Scores of every model, by list."""
    return {
        name: continuation_scores(
            [recommended(score(at, songs), songs) for at, songs in enumerate(asked.begun)], taken, (10,)
        )
        for name, score in models(asked)
    }


def table(collection: Collection, found: dict[str, dict[str, Float64Array]], seed: int) -> list[Row]:
    """A row a model; how far the walk is ahead of it in NDCG."""
    rows: list[Row] = []
    for name, scores in found.items():
        row: dict[str, Any] = {"lists": collection.name, "model": name}
        row |= {measure: float(scores[measure].mean()) for measure in MEASURES}
        lead = (
            paired_bootstrap(found[WALK]["ndcg"], scores["ndcg"], random_state=seed) if name != WALK else None
        )
        rows.append(
            {**row, "walk leads by, NDCG": "{:+.3f} ({:+.3f} to {:+.3f})".format(*lead) if lead else ""}
        )
    return rows


def claims_of(collection: Collection, found: dict[str, dict[str, Float64Array]], seed: int) -> list[Claim]:
    """The walk against each rival, by NDCG."""
    return [
        at_least(
            f"{collection.name}: walk ahead of {name} in NDCG, low end of 95 %",
            paired_bootstrap(found[WALK]["ndcg"], found[name]["ndcg"], random_state=seed)[1],
            0.0,
        )
        for name in (POPULARITY, ITEM_KNN, ALS, BPR)
    ]


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Every collection."""
    seed, shared = settings.seed, shared_data()
    rows: list[Row] = []
    claims: list[Claim] = []

    def judge(collection: Collection, **more: Any) -> None:
        train, begun, taken = split(collection.playlists, np.random.default_rng([seed, 7]))
        graph = more.pop("graph_of", lambda _: None)(train)
        found = measure(Asked(collection, train, begun, seed, graph=graph, **more), taken)
        rows.extend(table(collection, found, seed))
        claims.extend(claims_of(collection, found, seed))
        settings.facts[collection.name] = (
            f"{collection.n_songs} songs, {len(train)} lists, {len(begun)} judged"
        )
        progress(collection.name)

    for name in (FULL if settings.full else SHORT) if shared else ():
        judge(LOADERS[name](shared))
    with demo_library(seed, progress) as library:
        lists = demo_lists(library)
        snapshot = take_snapshot(library)
        artists = [snapshot.columns.artist.names[code] for code in snapshot.columns.artist.codes]
        folder = library.folder
        demo = Collection(DEMO, lists.n_songs, lists.playlists, lists.categories, {"artists": artists})
        judge(
            demo,
            vectors=snapshot.vectors_at(np.arange(lists.n_songs)).astype(np.float64),
            graph_of=lambda train: demo_graph(folder, train),
        )
    return rows, claims


if __name__ == "__main__":
    main("continuation", __doc__.splitlines()[0], run, rivals=("implicit",))
