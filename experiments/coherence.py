"""Order of playlists: are songs in a row more alike than in a random order, in published lists and in generated ones?

`order_coherence` compares consecutive songs with all pairs of the same list: 0 is the mean of random orders, 1 the
maximum. Lists have six or more songs, and each collection has at most 500. People's lists, including those of radio
stations, are from the test part of the first split. The walk is fitted on the training part. It generates a list of the
same length from the first song of each. The greedy order of a published list starts with the same song and always takes
the nearest song that is left. It shows how coherent an order of these songs can be.

- tags: Last.fm's tags of a song, as a vector of length 1; songs without tags do not count
- listeners: 32 factors of songs by co-occurrence in the training lists
- artist: 1 for songs by the same artist, 0 for others
- timbre, tempo, loudness, brightness, energy, year: of the demo's songs

Intervals are 95 % intervals over lists.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.libraries import demo_library
from benchmarks.support.columns import Column, Table, list_columns
from benchmarks.support.report import Claim, Progress, Row, Settings, format_lead, load_found, main
from experiments.reasons import fit_walk
from experiments.support.playlist_models import demo_graph
from experiments.support.playlists import LOADERS, Collection, Lists, demo_lists
from musicsim._arrays import Float64Array
from musicsim.evaluation import bootstrap_pairs, order_coherence
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library
from musicsim.playlist import PlaylistModel, cooccurrence_vectors

DEMO = "demo"
MIN_SONGS, MAX_LISTS = 6, 500
MAX_LAG = 4
N_FACTORS = 32

Features = Mapping[str, Float64Array]
"""By name: of every song, float64 (n_songs, n_features), nan if unknown."""


def tag_vectors(tags: Sequence[Sequence[str]]) -> Float64Array:
    """Return one unit vector per song, 0 or equal values per tag; nan for songs without tags."""
    number = {tag: i for i, tag in enumerate(sorted({tag for of_song in tags for tag in of_song}))}
    vectors = np.full((len(tags), len(number)), np.nan)
    for row, of_song in enumerate(tags):
        if of_song:
            vectors[row] = 0.0
            vectors[row, [number[tag] for tag in of_song]] = len(set(of_song)) ** -0.5
    return vectors


def features_of(collection: Collection, train: Lists, seed: int) -> dict[str, Float64Array]:
    """Return what is known of a published collection's songs."""
    vectors = cooccurrence_vectors(train, collection.n_songs, n_dimensions=N_FACTORS, random_state=seed)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    features = {"listeners": np.where(lengths > 0, vectors / np.where(lengths > 0, lengths, 1), np.nan)}
    if "tags" in collection.known:
        features["tags"] = tag_vectors(collection.known["tags"])
    if "artists" in collection.known:
        features["artist"] = codes_of(collection.known["artists"])
    return features


def codes_of(names: Sequence[str]) -> Float64Array:
    """Number the different names; no name is unknown."""
    codes = np.unique(names, return_inverse=True)[1].astype(np.float64)
    return np.where(np.array([bool(name) for name in names]), codes, np.nan)[:, np.newaxis]


def demo_features(library: Library) -> dict[str, Float64Array]:
    """Return the properties of the demo's songs, each of a scale on which listeners hear differences."""
    snapshot = take_snapshot(library)
    columns = snapshot.columns
    numbers = {
        "tempo": np.log2(columns.tempo),
        "loudness": columns.loudness,
        "brightness": np.log2(columns.brightness),
        "energy": columns.energy,
        "year": columns.year,
    }
    return {
        "timbre": snapshot.X.astype(np.float64),
        "artist": codes_of([name or "" for name in columns.artist.texts()]),
        **{name: np.asarray(values, dtype=np.float64)[:, np.newaxis] for name, values in numbers.items()},
    }


def rows_in_list(name: str, values: Float64Array, songs: Sequence[int]) -> Float64Array:
    """Return the features of a list's songs; one column per artist."""
    rows = values[list(songs)]
    if name != "artist":
        return rows
    artists = np.unique(rows[np.isfinite(rows)])
    return np.where(np.isfinite(rows), (rows == artists).astype(np.float64), np.nan)


def order_greedily(rows: Float64Array) -> list[int]:
    """Return an order of the rows that begins with the first and always continues with the nearest one left."""
    left, order = list(range(1, len(rows))), [0]
    while left:
        gaps = np.square(rows[left] - rows[order[-1]]).sum(axis=1)
        order.append(left.pop(int(np.argmin(np.where(np.isfinite(gaps), gaps, np.inf)))))
    return order


def generate_like(model: PlaylistModel, lists: Lists, seed: int) -> Lists:
    """Return one list of the walk for each list, with the same first song and length."""
    rng = np.random.default_rng(seed)
    return [
        list(model.generate(len(songs), songs[0], rng, repeat=len(set(songs)) < len(songs)).songs) for songs in lists
    ]


def describe(values: Float64Array, seed: int) -> str:
    """Return the mean over lists, with its interval."""
    return format_lead(*bootstrap_pairs(values, np.zeros(len(values)), random_state=seed))


def measure(name: str, features: Features, lists: Lists, generated: Lists, seed: int) -> tuple[list[Row], list[Claim]]:
    """Return a row per feature, and the claims about random orders."""
    rng = np.random.default_rng(seed)
    rows, claims = [], []
    for feature, values in features.items():
        listed = [rows_in_list(feature, values, songs) for songs in lists]
        shuffled = np.array([order_coherence(of_list[rng.permutation(len(of_list))]) for of_list in listed])
        published = np.array([order_coherence(of_list) for of_list in listed])
        walked = np.array([order_coherence(rows_in_list(feature, values, songs)) for songs in generated])
        greedy = np.array([order_coherence(of_list[order_greedily(of_list)]) for of_list in listed])
        row: dict[str, Any] = {"lists": name, "feature": feature, "n": int(np.isfinite(published).sum())}
        row |= {
            "people's": describe(published, seed),
            "the walk's": describe(walked, seed),
            "walk ahead": describe(walked - published, seed),
            "greedy": describe(greedy, seed),
            "shuffled": describe(shuffled, seed),
        }
        for lag in range(2, MAX_LAG + 1):
            row[f"people's, {lag} apart"] = float(np.nanmean([order_coherence(of_list, lag) for of_list in listed]))
        rows.append(row)
        _, low, high = bootstrap_pairs(shuffled, np.zeros(len(shuffled)), random_state=seed)
        words = f"{name}, {feature}: the interval of shuffled lists contains 0"
        claims.append(Claim(words, f"{low:+.3f} to {high:+.3f}", "contains 0", low <= 0 <= high))
        low = bootstrap_pairs(published, np.zeros(len(published)), random_state=seed)[1]
        words = f"{name}, {feature}: lower end of people's lists"
        claims.append(Claim(words, low, "above 0", low > 0))
    return rows, claims


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Measure the published lists and the demo's."""
    seed = settings.seed
    rows: list[Row] = []
    claims: list[Claim] = []
    used: dict[str, int] = {}

    def add(collection: Collection, features: Features, model: PlaylistModel, test: Lists) -> None:
        long = [songs for songs in test if len(songs) >= MIN_SONGS][:MAX_LISTS]
        used[collection.name] = len(long)
        found = measure(collection.name, features, long, generate_like(model, long, seed), seed)
        rows.extend(found[0])
        claims.extend(found[1])
        progress(collection.name)

    for collection in load_found(LOADERS, settings, progress).values():
        train, test = collection.split(0, seed)
        add(collection, features_of(collection, train, seed), fit_walk(collection, seed), test)
    with demo_library(seed, progress) as library:
        collection = demo_lists(library)
        train, test = collection.split(0, seed)
        model = fit_walk(collection, seed, demo_graph(library.folder, train))
        add(collection, demo_features(library), model, test)
    settings.facts.update(lists=used, min_songs=MIN_SONGS)
    return rows, claims


# --- tables of the documents --------------------------------------------------------------------------------


TABLES: dict[str, Table] = {
    "coherence": list_columns(
        Column("", "lists"),
        Column("feature", "feature"),
        Column("lists", "n", "{:,}"),
        Column("people's", "people's"),
        Column("the walk's", "the walk's"),
        Column("the walk's minus people's", "walk ahead"),
        Column("greedy", "greedy"),
        Column("shuffled", "shuffled"),
    )
}


if __name__ == "__main__":
    main("coherence", __doc__.splitlines()[0], run, data=("aotm", "spotify_msd", "yes"))
