"""Words for descriptors: the same in every library, and never contradictory."""

import itertools
from dataclasses import replace

import pytest

from musicsim.audio import DESCRIPTORS, Descriptors
from musicsim.explorer.playlists import walk
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.search.reasons import describe_pairs
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.explorer.snapshot.sound_words import CONTRARY, describe_change, words_of

NOTHING = Descriptors()
LOW = {name: one.ends[0] for name, one in DESCRIPTORS.items()}
HIGH = {name: one.ends[1] for name, one in DESCRIPTORS.items()}
MIDDLE = {name: (LOW[name] + HIGH[name]) / 2 for name in DESCRIPTORS} | {
    "tempo": 110.0, "loudness": -17.0, "brightness": 2000.0, "energy": 100.0,
}  # fmt: skip


def reason_among(library, pair, others):
    """Return the reason of two songs with the descriptors `pair`, among songs with the descriptors `others`."""
    one, other, *rest = library.songs()
    values = {song.id: replace(NOTHING, **pair) for song in (one, other)}
    values[other.id] = replace(values[other.id], tempo=1.2 * pair["tempo"])  # not the same tempo
    library.descriptors.save(values | {song.id: replace(NOTHING, **others) for song in rest})
    snapshot = take_snapshot(library)
    songs = snapshot.songs_by_id([one.id, other.id])
    return describe_pairs(snapshot, songs[0], songs[1:])[0]


@pytest.fixture
def unlabelled(tiny_library):
    with tiny_library.write() as connection:
        connection.exec_driver_sql("UPDATE songs SET artist = NULL, genre = NULL, key = NULL, mode = NULL")
    return tiny_library


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        (MIDDLE, ""),
        (MIDDLE | {"loudness": -12.0}, "both loud"),
        (MIDDLE | {"brightness": 1400.0, "energy": 75.0}, "both calm and dark"),
        (MIDDLE | {"loudness": -23.0, "energy": 125.0}, "both quiet"),  # not "lively and quiet"
        (MIDDLE | {"loudness": -12.0, "energy": 75.0}, "both loud"),
    ],
)
def test_words_do_not_depend_on_other_songs(unlabelled, pair, words):
    reasons = {reason_among(unlabelled, pair, others) for others in (LOW, MIDDLE, HIGH)}
    found = {" · ".join(part for part in reason.split(" · ") if part.startswith("both")) for reason in reasons}
    assert found == {words}


def test_no_song_has_contradictory_words(unlabelled):
    song = unlabelled.songs()[0]
    for values in itertools.product(*zip(LOW.values(), MIDDLE.values(), HIGH.values(), strict=True)):
        words = words_of(replace(song, **dict(zip(LOW, values, strict=True))))
        assert all(CONTRARY[word].isdisjoint(words) for word in words)
    assert not words_of(replace(song, **dict.fromkeys(LOW)))


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (MIDDLE | {"brightness": 1500.0}, "a change: darker"),
        (MIDDLE | {"brightness": 1500.0, "tempo": 150.0}, "a change: faster"),  # two thirds of the scale, not .4
        (MIDDLE | {"loudness": -16.0}, "a change of sound"),  # too little to be heard as louder
        (dict.fromkeys(MIDDLE), "a change of sound"),
    ],
)
def test_largest_change_is_named_on_the_scales(unlabelled, end, words):
    song = replace(unlabelled.songs()[0], **MIDDLE)
    assert describe_change(song, replace(song, **end)) == words


def test_step_between_songs_with_nothing_in_common_has_a_reason(unlabelled, monkeypatch):
    monkeypatch.setattr(walk, "describe_step", lambda *_, **__: "")  # nothing in common
    drawn = walk.Walk(take_snapshot(unlabelled)).generate(PlaylistRequest(length=6, surprise=1.0), random_state=0)
    assert all(edge.reason for edge in drawn.edges[1:])
    assert any(edge.reason.startswith("a change") for edge in drawn.edges[1:])
