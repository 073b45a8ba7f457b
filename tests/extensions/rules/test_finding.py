"""Tests of the songs that follow rules, compared with loops over the songs."""

import time
from datetime import datetime

import numpy as np
import pytest

from musicsim.errors import LibraryError, NotFoundError
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.rules.finding import find_songs, songs_named
from musicsim.extensions.rules.rule import RuleRequest
from musicsim.extensions.rules.store import RuleStore
from musicsim.extensions.rules.tables import rules
from musicsim.library.db import schema
from tests.plays import add_listens

DAY_S = 86_400
NOW = datetime(2026, 3, 1, 12).timestamp()


@pytest.fixture
def listened(tiny_library):
    """The tiny library: song n has n plays, was last played n days and added 10 n days ago, and some have ratings."""
    ids = [song.id for song in tiny_library.songs()]
    tiny_library.add_plays([{"listener": "me", "song_id": i, "count": n} for n, i in enumerate(ids) if n])
    tags = [(ids[0], "rated 2"), (ids[0], "rated 4"), (ids[1], "rated 5"), (ids[2], "rated 1"), (ids[3], "loved")]
    tiny_library.add_tags([{"song_id": i, "tag": tag, "weight": 1.0} for i, tag in tags])
    add_listens(tiny_library, [(i, "me", [NOW - 50 * DAY_S, NOW - n * DAY_S]) for n, i in enumerate(ids) if n])
    with tiny_library.write() as connection:
        for n, song_id in enumerate(ids):
            change = schema.songs.update().where(schema.songs.c.id == song_id)
            connection.execute(change.values(added_at=NOW - 10 * n * DAY_S, tempo=80.0 + 10 * n, year=1990 + n or None))
    return tiny_library


def follow(library, *where, now=NOW, **options):
    """Return the positions of the songs that follow a rule, in the order of the rule."""
    snapshot = take_snapshot(library)
    place = {song.id: n for n, song in enumerate(library.songs())}
    found = find_songs(snapshot, RuleRequest(where=where, **options).rule(), now)
    return [place[int(i)] for i in snapshot.row_ids[found.rows]]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("tempo:>180", {11}),
        ("tempo:180..", {10, 11}),
        ("tempo:<90", {0}),
        ("bpm:..90", {0, 1}),
        ("tempo:100", {2}),
        ("year:1992..1994", {2, 3, 4}),
        ("plays:0", {0}),
        ("plays:10..", {10, 11}),
        ("rating:4..", {0, 1}),
        ("stars:<4", {2}),
        ("tag:=loved", {3}),
        ("-tag:lov", set(range(12)) - {3}),
        ("played:3d", {1, 2, 3}),
        ("-played:3", {0, *range(4, 12)}),
        ("played:1w -played:3d", {4, 5, 6, 7}),
        ("played:never", {0}),
        ("-played:never", set(range(1, 12))),
        ("added:25d", {0, 1, 2}),
        ("-added:25d", set(range(3, 12))),
        ("fast", {8, 9, 10, 11}),
        ("-fast", set(range(8))),
        ("-(fast or tempo:<90)", set(range(1, 8))),
        ("length:5:00..", set()),
        ("length:..5:00", set(range(12))),
        ("tempo:>180 or plays:0", {0, 11}),
        ("tempo:>180 , plays:0", {0, 11}),
        ("(tempo:>180 or plays:0) -plays:0", {11}),
        ("fast -tempo:>160 or plays:0", {0, 8}),
        ("tempo:>100 tempo:<120", {3}),
        ("-tempo:>100", {0, 1, 2}),
    ],
)
def test_condition_selects_songs(listened, where, expected):
    assert set(follow(listened, where)) == expected


def test_names_and_groups_equal_loops_over_songs(listened):
    songs = listened.songs()
    artist, key = songs[0].artist, songs[5].key
    assert set(follow(listened, f"artist:='{artist}'")) == {n for n, s in enumerate(songs) if s.artist == artist}
    assert set(follow(listened, f"-key:{key}")) == {n for n, s in enumerate(songs) if s.key != key}
    both = follow(listened, "tempo:>110", f"artist:='{artist}' or plays:>9")
    assert set(both) == {n for n, s in enumerate(songs) if 80 + 10 * n > 110 and (s.artist == artist or n > 9)}
    either = follow(listened, "tempo:>170", f"artist:='{artist}' plays:>2", any=True)
    assert set(either) == {n for n, s in enumerate(songs) if 80 + 10 * n > 170 or (s.artist == artist and n > 2)}


def test_thumbs_and_plays_count_at_once(listened):
    song = listened.songs()[4]
    assert follow(listened, "thumb:up") == []
    listened.set_feedback(song.id, 1)
    assert follow(listened, "thumb:up") == [4]
    assert 4 not in follow(listened, "-thumb:up")
    assert 4 not in follow(listened, "plays:5")
    listened.player_plays.add_play(song.id)
    assert 4 in follow(listened, "plays:5")
    assert follow(listened, "played:1d", now=time.time()) == [4]


def test_similar_songs_are_nearest(listened):
    snapshot, songs = take_snapshot(listened), listened.songs()
    rows = snapshot.rows_of([song.id for song in songs])
    X = snapshot.X[rows].astype(np.float64)
    distances = np.linalg.norm(X - X[3], axis=1)
    order = np.argsort(distances)
    found = follow(listened, f"similar:4@{songs[3].id}", order="similar")
    assert found == order[:5].tolist()
    assert follow(listened, f"similar:4@{songs[3].id}", order="similar", descending=True) == found[::-1]
    assert len(follow(listened, f"similar:50%@{songs[3].id}")) == 7, "six songs and the song itself"
    other = np.linalg.norm(X - X[9], axis=1)
    both = follow(listened, f"similar:2@{songs[3].id},{songs[9].id}", order="similar")
    expected = {*order[:3].tolist(), *np.argsort(other)[:3].tolist()}
    assert both == sorted(expected, key=lambda n: min(distances[n], other[n]))
    with pytest.raises(NotFoundError):
        follow(listened, "similar:4@99999")


def test_order_and_limits(listened):
    assert follow(listened, order="tempo", songs=3) == [0, 1, 2]
    assert follow(listened, order="tempo", descending=True, songs=3) == [11, 10, 9]
    assert follow(listened, order="played", songs=3) == [0, 11, 10], "a song that was never played comes first"
    assert follow(listened, order="played", descending=True, songs=3) == [1, 2, 3]
    assert follow(listened, order="rating")[:3] == [2, 0, 1]
    lengths = [song.duration_s for song in listened.songs()]
    assert len(follow(listened, order="tempo", minutes=sum(lengths[:4]) / 60 + 1e-6)) == 4
    days = [follow(listened, now=NOW + n * DAY_S) for n in (0, 0, 1)]
    assert days[0] == days[1]
    assert days[0] != days[2]
    assert sorted(days[2]) == list(range(12))


def test_rule_over_changed_library_is_evaluated_again(listened):
    assert follow(listened, "added:5d") == [0]
    last = listened.songs()[11]
    with listened.write() as connection:
        connection.execute(schema.songs.delete().where(schema.songs.c.id == last.id))
    assert len(follow(listened, "-added:0.5d")) == 10
    listened.add_tags([{"song_id": listened.songs()[7].id, "tag": "rated 5", "weight": 1.0}])
    assert set(follow(listened, "rating:5")) == {1, 7}


def test_saved_rules(listened):
    store = RuleStore(listened)
    rule = RuleRequest(where=("tempo:>180",)).rule()
    store.save(" Fast ", rule)
    store.save("also", rule)
    assert [(saved.name, saved.rule) for saved in store.all()] == [("also", rule), ("Fast", rule)]
    assert [song.tempo for song in songs_named(listened, "Fast", None)] == [190.0]
    assert songs_named(listened, "Slow", None) is None
    with pytest.raises(NotFoundError, match="Choose from: “also”, “Fast”"):
        store.delete("Slow")
    assert store.delete("Fast").rule == rule
    for name in ("", " ", "x" * 101, "a\nb"):
        with pytest.raises(ValueError, match="1 to 100 printable"):
            store.save(name, rule)


def test_damaged_rule_is_reported(listened):
    store = RuleStore(listened)
    store.save("x", RuleRequest().rule())
    with listened.write() as connection:
        connection.execute(rules.update().values(document={"order": "color"}))
    with pytest.raises(LibraryError, match="the rule “x” cannot be read"):
        _ = store.get("x").rule
    check = rules.c.document.info["check"]
    saved = RuleRequest(where=("tempo:>1",)).rule().model_dump(mode="json")
    assert [check(value) for value in (saved, {"order": "color"}, {"groups": [1]}, [])] == [True, False, False, False]
