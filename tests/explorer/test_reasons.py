"""Reasons of results: properties that both songs share, the rarest first, in words that a listener can check."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest

from musicsim.audio import Descriptors
from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.search.query import find_similar
from musicsim.explorer.search.reasons import describe_pairs
from musicsim.explorer.search.shared_labels import find_shared_labels
from musicsim.explorer.search.similar_parts import rank_parts
from musicsim.explorer.search.why_groups import GROUPS, sound_groups
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.explorer.snapshot.sound_words import describe_change
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
        connection.execute(schema.songs.update().values(artist=None, genre=None))
    (reason,) = reasons(tiny_library, one, other)
    assert re.fullmatch("in common: dreamy · (both|similar|closest).*", reason)


def test_descriptors_count_only_if_both_songs_have_them(anonymous):
    one, near, far, *rest = (song.id for song in anonymous.songs())
    heard = Descriptors(120.0, "C", "minor", -20.0, 1000.0, 10.0)
    others = {i: replace(heard, tempo=170.0 + n, key="F") for n, i in enumerate(rest)}
    anonymous.descriptors.save(others | {one: heard, near: replace(heard, tempo=124.0, key="D")})
    anonymous.descriptors.save({far: replace(heard, tempo=60.0, mode="major")})
    first, second = reasons(anonymous, one, near, far)
    assert first.startswith("both around 122 beats/min")
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


def save_descriptors(library, values, **rest):
    """Save the descriptors of some songs, keyed by id; `rest` are those of all other songs."""
    unknown = Descriptors(None, None, None, None, None, None)
    descriptors = {song.id: replace(unknown, **rest) for song in library.songs()}
    library.descriptors.save(descriptors | {i: replace(unknown, **each) for i, each in values.items()})


def test_tempo_is_mean_of_two_tempos_that_hardly_differ(anonymous):
    one, near, far = (song.id for song in anonymous.songs()[:3])
    save_descriptors(anonymous, {one: {"tempo": 118.0}, near: {"tempo": 122.0}, far: {"tempo": 124.0}})
    first, second = reasons(anonymous, one, near, far)
    assert "both around 120 beats/min" in first
    assert "beats/min" not in second


def find_pair(library, pattern):
    """Return the ids of two songs whose reason contains the pattern."""
    snapshot = take_snapshot(library)
    pairs = itertools.combinations(snapshot.songs_at(), 2)
    return next(
        (one.id, other.id) for one, other in pairs if re.search(pattern, describe_pairs(snapshot, one, [other])[0])
    )


@pytest.mark.parametrize(
    ("tempos", "is_similar"),
    [
        ((100.0, 106.0), True),
        ((60.0, 124.0), True),
        ((100.0, 120.0), False),
        ((100.0, None), False),
        ((None, None), False),
    ],
)
def test_rhythm_is_similar_only_if_tempos_fit(anonymous, tempos, is_similar):
    save_descriptors(anonymous, {}, tempo=120.0)
    pair = find_pair(anonymous, "similar rhythm")
    save_descriptors(anonymous, {i: {"tempo": tempo} for i, tempo in zip(pair, tempos, strict=True)})
    assert ("rhythm" in reasons(anonymous, *pair)[0]) == is_similar


def test_quiet_songs_do_not_have_similar_note_starts(anonymous):
    pair = find_pair(anonymous, "similar note starts")
    save_descriptors(anonymous, {i: {"loudness": -40.0} for i in pair}, loudness=-10.0)
    (reason,) = reasons(anonymous, *pair)
    assert "both quiet" in reason
    assert "note starts" not in reason


def test_only_nearest_tenth_of_pairs_has_similar_rhythm(anonymous):
    save_descriptors(anonymous, {}, tempo=120.0)
    snapshot = take_snapshot(anonymous)
    stored = anonymous.models.features(anonymous.models.native().id)
    row = {song_id: place for place, song_id in enumerate(stored.song_ids.tolist())}
    rhythm = np.asarray(stored.X)[:, sound_groups(stored.X.shape[1]) == list(GROUPS).index("rhythm and fluctuation")]
    pairs = list(itertools.combinations(snapshot.songs_at(), 2))
    distances = np.array([np.square(rhythm[row[one.id]] - rhythm[row[other.id]]).sum() for one, other in pairs])
    shares = [rank_parts(snapshot, one, [other])[0]["rhythm"] for one, other in pairs]
    found = np.array(["similar rhythm" in describe_pairs(snapshot, one, [other])[0] for one, other in pairs])
    assert found.any()
    assert np.array_equal(np.argsort(shares, kind="stable")[: found.sum()], np.argsort(distances)[: found.sum()])
    assert distances[found].max() <= np.quantile(distances, 0.15), "the limit comes from a sample of the pairs"


def test_tag_with_low_weight_is_not_reason(anonymous):
    one, other = (song.id for song in anonymous.songs()[:2])
    tags = [(one, "folk", 80.0), (one, "dreamy", 60.0), (other, "jazz", 100.0), (other, "dreamy", 20.0)]
    anonymous.add_tags([{"song_id": i, "tag": tag, "weight": weight} for i, tag, weight in tags])
    assert "dreamy" not in reasons(anonymous, one, other)[0]
    anonymous.add_tags([{"song_id": other, "tag": "dreamy", "weight": 30.0}])
    assert reasons(anonymous, one, other)[0].startswith("in common: dreamy")


def test_tags_are_spelled_like_genres_and_named_once(anonymous):
    one, other, third = (song.id for song in anonymous.songs()[:3])
    with anonymous.write() as connection:
        connection.execute(schema.songs.update().where(schema.songs.c.id == third).values(genre="Lo-fi Hip Hop"))
    names = ("lo-fi hip hop", "hip hop", "Acoustic Guitar", "1990s")
    tags = [{"song_id": i, "tag": name, "weight": 9.0 - n} for i in (one, other) for n, name in enumerate(names)]
    anonymous.add_tags(tags)
    snapshot = take_snapshot(anonymous)
    assert find_shared_labels(snapshot, snapshot.tags_of(), *snapshot.songs_by_id([one, other])) == [
        "Lo-fi Hip Hop", "acoustic guitar",
    ]  # fmt: skip
    with anonymous.write() as connection:
        connection.execute(schema.songs.update().values(genre="Other"))
    assert "Other" not in reasons(anonymous, one, other)[0]


def test_tag_does_not_contradict_sound(anonymous):
    pair = find_pair(anonymous, "^$")
    anonymous.add_tags([{"song_id": i, "tag": "calm", "weight": 1.0} for i in pair])
    assert reasons(anonymous, *pair) == ["both calm"]
    lively = {"energy": 200.0, "brightness": 3000.0}
    save_descriptors(anonymous, dict.fromkeys(pair, lively), energy=50.0, brightness=1000.0)
    assert reasons(anonymous, *pair) == ["both bright and lively"]


def test_songs_without_other_facts_are_alike_in_one_part(anonymous):
    pair = find_pair(anonymous, "^closest in [a-z ]+$")
    save_descriptors(anonymous, {i: {"key": key, "mode": "minor"} for i, key in zip(pair, "CD", strict=True)})
    assert re.fullmatch("closest in [a-z ]+ · both in a minor key", reasons(anonymous, *pair)[0])


@pytest.mark.parametrize(("n_lists", "words"), [(1, "in the same playlist"), (3, "often in the same playlists")])
def test_shared_playlists_come_last(anonymous, n_lists, words):
    one, other = find_pair(anonymous, "^$")
    anonymous.add_playlists([(f"list {n}", None, [one, other]) for n in range(n_lists)], source="test")
    anonymous.add_playlists([(f"own {n}", None, [one, other], {"seed": 1}) for n in range(3)], source="saved")
    assert reasons(anonymous, one, other) == [words]
    save_descriptors(anonymous, {i: {"brightness": 3000.0, "key": "C", "mode": "minor"} for i in (one, other)})
    assert words not in reasons(anonymous, one, other)[0]


def test_playlists_are_not_counted_if_there_are_many(anonymous, monkeypatch):
    ids = [song.id for song in anonymous.songs()[:2]]
    other = anonymous.songs()[2].id
    anonymous.add_playlists([(f"list {n}", None, ids) for n in range(4)], source="test")
    anonymous.add_playlists([("another", None, [ids[1], other])], source="other test")
    pairs = [tuple(ids), (ids[1], other), (ids[0], other)]
    assert take_snapshot(anonymous).count_shared_playlists(pairs) == {tuple(ids): 4, (ids[1], other): 1}
    assert take_snapshot(anonymous).count_shared_playlists([tuple(ids)]) == {tuple(ids): 4}
    monkeypatch.setattr("musicsim.library.stores.playlists._MAX_SEARCHED", 3)
    assert take_snapshot(anonymous).count_shared_playlists([tuple(ids)]) == {}


def test_property_of_all_songs_comes_last(tiny_library):
    ids = [song.id for song in tiny_library.songs()]
    tiny_library.add_tags([{"song_id": i, "tag": "loved", "weight": 1.0} for i in ids])
    assert all(not reason.startswith("in common: loved · ") for reason in reasons(tiny_library, *ids))


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
    assert all(edge.reason for *_, edge in steps)
    assert not any(one.edges[0].reason for one in drawn), "nothing precedes the first song"
    for song, other, edge in steps:
        assert not re.search(r"from \d{4}|played third|similar sound|random jump|(cluster|group) \d", edge.reason)
        if re.fullmatch(r"both from \S+|similar sound.*|random jump", edge.label):
            assert edge.reason == (describe_pairs(snapshot, song, [other])[0] or describe_change(song, other))
