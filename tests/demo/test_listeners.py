"""The demo collection's listeners: three tables, and the rules hidden in them."""

import csv
import os
from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import pytest

from musicsim.demo import plan_collection
from musicsim.demo.listeners import CATEGORIES, write_listening
from musicsim.demo.styles import STYLES, find_style


@pytest.fixture(scope="module")
def plans():
    return plan_collection()


@pytest.fixture(scope="module")
def tables(plans, tmp_path_factory):
    folder = tmp_path_factory.mktemp("listening")
    write_listening(plans, folder)
    return {name: read(folder / f"{name}.csv") for name in ("plays", "tags", "playlists")}


@pytest.fixture(scope="module")
def song(plans):
    return {(p.artist, p.title): p for p in plans}


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_sizes_and_columns(tables, song):
    assert set(tables["plays"][0]) == {"listener", "artist", "title", "plays"}
    assert set(tables["tags"][0]) == {"artist", "title", "tag", "weight"}
    assert set(tables["playlists"][0]) == {"playlist", "category", "position", "artist", "title"}
    assert len({r["listener"] for r in tables["plays"]}) == 2000
    assert len({r["playlist"] for r in tables["playlists"]}) == 1500
    for table in tables.values():
        assert all((r["artist"], r["title"]) in song for r in table)


def test_seed_determines_files(plans, tmp_path):
    for folder, seed in (("a", 0), ("b", 0), ("c", 1)):
        write_listening(plans[:96], tmp_path / folder, n_listeners=50, n_playlists=30, seed=seed)
    for name in ("plays.csv", "tags.csv", "playlists.csv"):
        a, b, c = ((tmp_path / folder / name).read_bytes() for folder in "abc")
        assert a == b
        assert a != c


def test_plays_are_long_tailed(tables):
    for key, share in ((lambda r: (r["artist"], r["title"]), 0.3), (lambda r: r["listener"], 0.22)):
        counts = Counter()
        for row in tables["plays"]:
            counts[key(row)] += int(row["plays"])
        values = np.sort(list(counts.values()))[::-1]
        # The loudest tenth has this share of all plays; of equals it would have 0.10.
        assert values[: len(values) // 10].sum() > share * values.sum()
        assert values[-1] * 20 < values[0]


def test_plays_are_positive_integers_without_duplicates(tables):
    assert all(1 <= int(r["plays"]) <= 999 for r in tables["plays"])
    assert len({(r["listener"], r["artist"], r["title"]) for r in tables["plays"]}) == len(tables["plays"])
    # the thesis's threshold of ten plays must leave something to learn from, and drop something.
    often = np.mean([int(r["plays"]) >= 10 for r in tables["plays"]])
    assert 0.1 < often < 0.6


def test_listeners_prefer_few_styles(tables, song):
    styles = defaultdict(Counter)
    everyone = Counter()
    for row in tables["plays"]:
        style = song[row["artist"], row["title"]].style
        styles[row["listener"]][style] += 1
        everyone[style] += 1

    def top_three(counter):
        return sum(n for _, n in counter.most_common(3)) / counter.total()

    assert np.mean([top_three(c) for c in styles.values()]) > 2.0 * top_three(everyone)


def test_shared_listeners_imply_same_style(tables, song):
    names = list(song)
    row_of = {name: i for i, name in enumerate(names)}
    heard = np.zeros((2000, len(names)), dtype=np.float32)
    for row in tables["plays"]:
        heard[int(row["listener"].removeprefix("listener")), row_of[row["artist"], row["title"]]] = 1.0
    both = heard.T @ heard
    alone = heard.sum(axis=0)
    jaccard = both / np.maximum(alone[:, None] + alone[None] - both, 1.0)
    np.fill_diagonal(jaccard, -1.0)
    nearest = np.argsort(-jaccard, axis=1, kind="stable")[:, :10]
    style = np.array([song[name].style for name in names])
    same = (style[nearest] == style[:, None]).mean()
    assert 0.5 < same < 0.98  # chance is 1/12; noise must be left


def test_tags_contain_some_errors_and_gaps(tables, song):
    assert all(1 <= int(r["weight"]) <= 100 for r in tables["tags"])
    words = {s.name: set(s.words) for s in STYLES}
    genre_words = set().union(*words.values())
    checked = [
        r["tag"] in words[song[r["artist"], r["title"]].style] for r in tables["tags"] if r["tag"] in genre_words
    ]
    assert 0.85 < np.mean(checked) < 0.99
    tagged = {(r["artist"], r["title"]) for r in tables["tags"]}
    assert 0.9 * len(song) < len(tagged) < len(song)
    assert {"calm", "energetic", "dark", "warm"} <= {r["tag"] for r in tables["tags"]}


@pytest.fixture(scope="module")
def lists(tables, song):
    grouped = defaultdict(list)
    for row in tables["playlists"]:
        grouped[row["playlist"], row["category"]].append((int(row["position"]), song[row["artist"], row["title"]]))
    return grouped


def test_playlists_have_8_to_25_distinct_songs(lists):
    for rows in lists.values():
        assert [position for position, _ in rows] == list(range(1, len(rows) + 1))
        assert 8 <= len(rows) <= 25
        assert len({p.relative_path for _, p in rows}) == len(rows)
    categories = Counter(category for _, category in lists)
    assert set(categories) == {c.name for c in CATEGORIES}
    assert len(categories) >= 8


def share(lists, category, test):
    """Share of the transitions in a category that satisfy `test`."""
    pairs = [test(a, b) for (_, name), rows in lists.items() if name == category for (_, a), (_, b) in pairwise(rows)]
    return np.mean(pairs)


def test_each_category_follows_its_rules(lists):
    def same_artist(a, b):
        return a.artist == b.artist

    def same_style(a, b):
        return a.style == b.style

    def same_decade(a, b):
        return a.year // 10 == b.year // 10

    assert share(lists, "same decade", same_decade) > 0.75
    assert share(lists, "late night", same_decade) < 0.5
    assert share(lists, "deep in one style", same_style) > 0.75
    assert share(lists, "mixed bag", same_style) < 0.3
    assert share(lists, "one artist leads to another", same_artist) > 0.25
    assert share(lists, "workout", same_artist) < 0.1


def test_energy_separates_workout_from_concentration(lists):
    def energy(category):
        return np.mean([p.energy for (_, name), rows in lists.items() if name == category for _, p in rows])

    assert energy("workout") > 0.65
    assert energy("concentration") < 0.35


def test_playlist_artists_share_mood(lists):
    dark = np.mean(
        [find_style(p.style).taste[0] for (_, c), rows in lists.items() if c == "late night" for _, p in rows]
    )
    everything = np.mean([find_style(p.style).taste[0] for rows in lists.values() for _, p in rows])
    assert dark < 0.75 * everything


def test_failed_write_keeps_old_file(plans, tmp_path, monkeypatch):
    write_listening(plans[:32], tmp_path, n_listeners=20, n_playlists=10)
    before = (tmp_path / "plays.csv").read_bytes()

    def disk_full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", disk_full)
    with pytest.raises(OSError, match="No space left"):
        write_listening(plans[:32], tmp_path, n_listeners=30, n_playlists=10)
    assert (tmp_path / "plays.csv").read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["playlists.csv", "plays.csv", "tags.csv"]


def test_one_song_is_enough(plans, tmp_path):
    write_listening(plans[:1], tmp_path, n_listeners=3, n_playlists=10)
    assert len(read(tmp_path / "plays.csv")) == 3
    assert len(read(tmp_path / "playlists.csv")) == 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"n_listeners": 0}, "n_listeners=0"), ({"n_playlists": -1}, "n_playlists=-1"), ({"seed": -2}, "seed=-2")],
)
def test_rejects_bad_arguments(plans, tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        write_listening(plans, tmp_path, **arguments)
    with pytest.raises(ValueError, match="plans is empty"):
        write_listening([], tmp_path)
