"""Reasons of results: properties that both songs share, the rarest first, in words that a listener can check."""

import re
from dataclasses import replace

import numpy as np
import pytest

from musicsim.audio import Descriptors
from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.search.query import find_similar
from musicsim.explorer.search.reasons import describe_pairs
from musicsim.explorer.search.why_groups import GROUPS, sound_groups
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library.db import schema


@pytest.fixture
def anonymous(tiny_library):
    """Twelve songs without artist, genre, tags and descriptors."""
    with tiny_library.write() as connection:
        nothing = dict.fromkeys(("artist", "genre", "tempo", "key", "mode", "loudness", "brightness", "energy"))
        connection.execute(schema.songs.update().values(**nothing))
    return tiny_library


def reasons(library, *ids):
    snapshot = take_snapshot(library)
    song, *others = snapshot.songs_by_id(ids)
    return describe_pairs(snapshot, song, others)


def test_artist_and_tags_come_first(tiny_library):
    one, other = (song.id for song in tiny_library.songs()[:2])
    tiny_library.add_tags([{"song_id": i, "tag": "dreamy", "weight": 1.0} for i in (one, other)])
    (reason,) = reasons(tiny_library, one, other)
    assert reason.startswith("same artist · ")
    with tiny_library.write() as connection:
        connection.execute(schema.songs.update().values(artist=None))
    (reason,) = reasons(tiny_library, one, other)
    assert reason.startswith("both dreamy · ")


def test_descriptors_count_only_if_both_songs_have_them(anonymous):
    one, near, far, *rest = (song.id for song in anonymous.songs())
    heard = Descriptors(120.0, "C", "minor", -20.0, 1000.0, 10.0)
    others = {i: replace(heard, tempo=170.0 + n, key="F") for n, i in enumerate(rest)}
    anonymous.descriptors.save(others | {one: heard, near: replace(heard, tempo=123.0, key="D")})
    anonymous.descriptors.save({far: replace(heard, tempo=60.0, mode="major")})
    first, second = reasons(anonymous, one, near, far)
    assert first.startswith("both about 120 beats/min")
    assert "beats/min" not in second
    assert "C " not in first + second


def test_loud_music_is_not_calm_and_usual_tempo_is_not_slow(anonymous):
    one, other, *rest = (song.id for song in anonymous.songs())
    heard = Descriptors(110.0, "C", "minor", -5.0, 1000.0, 1.0)
    quiet = {i: Descriptors(170.0 + n, "F", "major", -20.0, 1000.0 + n, 10.0) for n, i in enumerate(rest)}
    anonymous.descriptors.save(quiet | {one: heard, other: replace(heard, tempo=120.0, key="D")})
    (reason,) = reasons(anonymous, one, other)
    assert "calm" not in reason
    assert "slow" not in reason
    assert "both dark" in reason or "both loud" in reason


def test_second_reason_does_not_repeat_first(anonymous):
    ids = [song.id for song in anonymous.songs()]
    alike = [i for i, reason in zip(ids[1:], reasons(anonymous, *ids), strict=True) if "similar tone color" in reason]
    heard = Descriptors(None, None, None, None, 1000.0, None)
    bright = replace(heard, brightness=3000.0)
    anonymous.descriptors.save({i: bright if i in (ids[0], *alike[:2]) else heard for i in ids})
    assert alike
    for reason in reasons(anonymous, ids[0], *alike[:2]):
        assert "both bright" in reason
        assert "similar tone color" not in reason


def test_years_are_not_reasons(anonymous):
    ids = [song.id for song in anonymous.songs()]
    with anonymous.write() as connection:
        connection.execute(schema.songs.update().values(year=1999))
    assert not any("1999" in reason or "year" in reason for reason in reasons(anonymous, *ids))


def test_similar_parts_are_those_with_few_nearer_songs(anonymous):
    ids = [song.id for song in anonymous.songs()]
    snapshot = take_snapshot(anonymous)
    stored = anonymous.models.features(anonymous.models.native().id)
    X = snapshot.model.map_features(np.asarray(stored.X))
    row = {song_id: place for place, song_id in enumerate(stored.song_ids.tolist())}
    rhythm = sound_groups(X.shape[1]) == list(GROUPS).index("rhythm and fluctuation")
    for other, reason in zip(ids[1:], reasons(anonymous, *ids), strict=True):
        distances = np.square(X[:, rhythm] - X[row[ids[0]], rhythm]).sum(axis=1)
        is_near = np.mean(distances < distances[row[other]]) <= 0.25
        assert is_near or "similar rhythm" not in reason


def test_property_of_all_songs_comes_last(tiny_library):
    ids = [song.id for song in tiny_library.songs()]
    tiny_library.add_tags([{"song_id": i, "tag": "loved", "weight": 1.0} for i in ids])
    assert all(not reason.startswith("both loved · ") for reason in reasons(tiny_library, *ids))


def test_sound_from_outside_has_reasons_of_its_parts(anonymous):
    snapshot = take_snapshot(anonymous)
    song, *others = snapshot.songs_by_id([song.id for song in anonymous.songs()])
    stored = anonymous.models.features(snapshot.record.id)
    features = np.asarray(stored.X[stored.song_ids.tolist().index(song.id)])
    outside = describe_pairs(snapshot, None, others, features)
    assert outside == describe_pairs(snapshot, song, others)
    assert any("similar" in reason for reason in outside)


def test_results_on_music_without_tags_have_reasons(anonymous):
    snapshot = take_snapshot(anonymous)
    for song in snapshot.songs_at():
        nearest, *_ = find_similar(snapshot, song.id, 3, max_per_artist=None)
        assert nearest.reason


def test_steps_of_walk_name_what_can_be_heard(anonymous):
    with anonymous.write() as connection:
        connection.execute(schema.songs.update().values(year=1999))
    snapshot = take_snapshot(anonymous)
    walk = Walk(snapshot)
    drawn = [walk.generate(PlaylistRequest(length=6, spacing=0, surprise=0.8), seed) for seed in range(20)]
    steps = [step for one in drawn for step in zip(one.songs, one.songs[1:], one.edges[1:], strict=False)]
    assert any(edge.label.startswith("both from ") for *_, edge in steps)
    assert any(edge.reason for *_, edge in steps)
    assert not any(one.edges[0].reason for one in drawn), "nothing precedes the first song"
    for song, other, edge in steps:
        assert not re.search(r"from \d{4}|played third|similar sound|random jump|(cluster|group) \d", edge.reason)
        if re.fullmatch(r"both from \S+|similar sound.*|random jump", edge.label):
            assert edge.reason == describe_pairs(snapshot, song, [other])[0]
