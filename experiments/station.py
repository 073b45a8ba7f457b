"""Station: how near to its seed does a queue stay, and do people's playlists stay near their first song?

A queue on *Listen* starts with the songs nearest to its seed. Then a walk continues, which stays among the nearest
fifth of the library (more with *More surprising*) and prefers the nearest of these songs. *Free* is the same walk
without the seed. Both continue the same ten nearest songs. Rank 1 is the song nearest to the seed, by distance. *Ahead*
pairs the walks, with the 95 % interval by resampling seeds.

The second part asks whether playlists do the same. The walk is fitted on the training lists, as in the experiment
`playlists`. Each step of a test list after the second song is predicted by a mixture. With probability w, it is the
walk on the nearest fifth of the first song by sound, otherwise the walk on all songs. *Gain* is the increase of the
mean log P over the walk alone (w = 0), in nats per step, with the 95 % interval by resampling whole lists. *Near* is
the share of these songs in the nearest fifth: .2 by chance. Only the demo has both sound and lists. Its lists are
generated, by categories that follow tags, eras and artists.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.libraries import demo_library
from benchmarks.support.columns import NUMBER_3, SHARE_2, Column, Table, list_columns
from benchmarks.support.report import Claim, Progress, Settings, at_most, format_lead, main
from experiments.support.game_music import CACHE
from experiments.support.music_sets import music_sets
from experiments.support.playlist_models import demo_graph
from experiments.support.playlists import demo_lists
from musicsim._arrays import BoolArray, Float64Array, IntpArray
from musicsim.evaluation import bootstrap_pairs
from musicsim.explorer.playlists.queue import BLOCK, SURPRISE, continue_queue
from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.snapshot.snapshot import Snapshot, take_snapshot
from musicsim.library import Library
from musicsim.playlist import PlaylistModel

N_SEEDS = 100
N_NEAREST, LENGTH = 10, 40  # songs of a queue: the nearest, then blocks of the walk
SURPRISES = (SURPRISE, 0.6, 0.9)
NEAR = 0.2
WEIGHTS = (0.25, 0.5, 0.75, 0.9)

Row = dict[str, Any]


def rank_songs(X: Float64Array, row: int) -> IntpArray:
    """Return the rank of each song by distance from one song, which has rank 0."""
    distances = np.square(X - X[row]).sum(axis=1)
    distances[row] = -np.inf
    ranks = np.empty(len(X), dtype=np.intp)
    ranks[np.argsort(distances, kind="stable")] = np.arange(len(X))
    return ranks


def walk_on(
    snapshot: Snapshot, walk: Walk, nearest: Sequence[int], surprise: float, *, seed: int, is_free: bool
) -> list[int]:
    """Return the song ids that continue a seed and its nearest songs; without the seed if `is_free`."""
    ids = list(nearest)
    while len(ids) <= LENGTH:
        request = PlaylistRequest(
            first=ids[-1], like=() if is_free else (nearest[0],), exclude=frozenset(ids[:-1]), surprise=surprise,
            length=BLOCK + 1, avoid_recent=False,
        )  # fmt: skip
        ids += [item.song.id for item in continue_queue(walk, request, seed + len(ids))]
    return ids[len(nearest) : LENGTH + 1]


def compare_walks(name: str, library: Library, settings: Settings) -> Iterator[Row]:
    """Yield a row per value of *surprise*: ranks of songs 11 to 40, for the free walk and the walk around its seed."""
    snapshot = take_snapshot(library)
    walk = Walk(snapshot)
    X = snapshot.vectors_at(np.arange(snapshot.n_indexed)).astype(np.float64)
    seeds = np.random.default_rng(settings.seed).permutation(len(X))[:N_SEEDS]
    for surprise in SURPRISES:
        medians, shares = np.empty((2, len(seeds))), np.empty((2, len(seeds)))
        for at, row in enumerate(seeds.tolist()):
            ranks = rank_songs(X, row)
            nearest = snapshot.row_ids[np.argsort(ranks)[: N_NEAREST + 1]].tolist()
            for way in (0, 1):
                ids = walk_on(snapshot, walk, nearest, surprise, seed=at, is_free=way == 0)
                found = ranks[snapshot.rows_of(ids)]
                medians[way, at], shares[way, at] = np.median(found), np.mean(found <= NEAR * len(X))
        free, around = medians
        ahead = bootstrap_pairs(free, around, random_state=settings.seed)
        yield {
            "part": "walk", "library": name, "songs": len(X), "seeds": len(seeds), "surprise": surprise,
            "free": float(np.median(free)), "around": float(np.median(around)), "ahead": format_lead(*ahead),
            "low": ahead[1], "near, free": float(shares[0].mean()), "near, around": float(shares[1].mean()),
        }  # fmt: skip


def mix(p: Float64Array, is_near: BoolArray, weight: float) -> Float64Array:
    """Return the mixture of a distribution and its restriction to the songs near the seed."""
    near = np.where(is_near, p, 0.0)
    return (1 - weight) * p + weight * near / near.sum() if near.sum() > 0 else p


def predict_lists(library: Library, settings: Settings) -> Iterator[Row]:
    """Yield a row per weight of the walk near the first song: the gain of the likelihood of held-out lists."""
    train, test = demo_lists(library).split(0, settings.seed)
    model = PlaylistModel(demo_graph(library.folder, train)).fit(train)
    snapshot = take_snapshot(library)
    X = snapshot.vectors_at(np.arange(snapshot.n_indexed)).astype(np.float64)
    logs: list[list[float]] = []
    of_list: list[int] = []
    near: list[bool] = []
    for number, songs in enumerate(test):
        is_near = rank_songs(X, songs[0]) <= NEAR * len(X)
        for previous, song in pairwise(songs[1:]):
            p = model.transition_probabilities(previous)
            logs.append([float(np.log(mix(p, is_near, weight)[song])) for weight in (0.0, *WEIGHTS)])
            of_list.append(number)
            near.append(bool(is_near[song]))
    values = np.array(logs)
    for column, weight in enumerate(WEIGHTS, start=1):
        gain = bootstrap_pairs(values[:, column], values[:, 0], groups=np.array(of_list), random_state=settings.seed)
        yield {
            "part": "lists", "library": "demo", "lists": len(test), "steps": len(values), "weight": weight,
            "log P": float(values[:, 0].mean()), "gain": format_lead(*gain), "low": gain[1],
            "near": float(np.mean(near)),
        }  # fmt: skip


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Compare the walks on real music and on the demo, and predict the demo's lists."""
    rows: list[Row] = []
    for music in music_sets(settings, settings.cache or CACHE, progress):
        rows += compare_walks(music.name, music.library, settings)
        progress(music.name)
    with demo_library(settings.seed, progress) as library:
        rows += [*compare_walks("demo", library, settings), *predict_lists(library, settings)]
    usual = [row for row in rows if row["part"] == "walk" and row["surprise"] == SURPRISE]
    return rows, [
        at_most(f"{row['library']}: median rank of songs 11 to 40, of the library", row["around"] / row["songs"], 0.1)
        for row in usual
    ]


# --- tables of the documents --------------------------------------------------------------------------------


TABLES: dict[str, Table] = {
    "station: the walk": list_columns(
        Column("", "library"),
        Column("songs", "songs"),
        Column("surprise", "surprise", "{:g}"),
        Column("median rank without the seed", "free", "{:.0f}"),
        Column("around the seed", "around", "{:.0f}"),
        Column("difference (95%)", "ahead"),
        Column("in the nearest fifth without the seed", "near, free", SHARE_2),
        Column("around the seed", "near, around", SHARE_2),
        where=lambda row: row["part"] == "walk",
    ),
    "station: lists": list_columns(
        Column("share of the walk near the first song", "weight", "{:g}"),
        Column("log P per step", "log P", NUMBER_3),
        Column("gain over the walk on all songs (95%)", "gain"),
        where=lambda row: row["part"] == "lists",
    ),
}


if __name__ == "__main__":
    main("station", __doc__.splitlines()[0], run, takes_sets=True)
