"""Tests of playlists of a library: fitted on its lists, generated on request, with a reason for every step."""

import itertools
import time

import numpy as np
import pytest

from benchmarks.large_library import write_library
from musicsim.audio import Descriptors
from musicsim.errors import NotFoundError
from musicsim.explorer.models.artifacts import load_report, load_walk
from musicsim.explorer.playlists.fit import refit_walks
from musicsim.explorer.playlists.pool import RESTS_S
from musicsim.explorer.playlists.walk import ShuffleWalk, Walk
from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.search.reasons import describe_pairs
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library.db import schema


def ids_of(drawn):
    return [song.id for song in drawn.songs]


def quiet(*_):
    """Ignore progress."""


def test_every_step_has_reason_and_songs_are_unique(snapshot):
    drawn = Walk(snapshot).generate(PlaylistRequest(length=8), 1)
    assert len(drawn.songs) == len(set(ids_of(drawn))) == len(drawn.edges) == 8
    assert all(edge.label for edge in drawn.edges)


def test_plays_of_few_songs_are_not_reasons(tiny_library):
    ids = [song.id for song in tiny_library.songs()]
    for n_played, is_reason in ((3, False), (8, True)):
        tiny_library.add_plays([{"listener": "me", "song_id": i, "count": 1 + i % 3} for i in ids[:n_played]])
        families = dict(Walk(take_snapshot(tiny_library)).families(None))
        assert ("popularity" in families) == is_reason


def test_first_song_is_as_requested(snapshot):
    first = snapshot.library.songs()[3].id
    assert ids_of(Walk(snapshot).generate(PlaylistRequest(length=4, first=first), 0))[0] == first


def test_artist_spacing_is_reduced_with_note(snapshot):
    for seed in range(20):
        drawn = Walk(snapshot).generate(PlaylistRequest(length=9), seed)
        artists = [s.artist for s in drawn.songs]
        # three artists, so two songs by others between two songs by one
        assert all(a not in artists[max(0, i - 2) : i] for i, a in enumerate(artists))
        assert "artists repeat after 2 songs: there are only 3 to choose from" in drawn.notes


def test_playlist_rises_or_falls_along_descriptor(tiny_library):
    ids = [song.id for song in tiny_library.songs()]
    order = np.random.default_rng(0).permutation(len(ids)).tolist()
    tiny_library.descriptors.save(
        {song_id: Descriptors(tempo=80.0 + 5 * n) for song_id, n in zip(ids, order, strict=True)}
    )
    walk = Walk(take_snapshot(tiny_library))

    def correlation(**asked):
        """Return the correlation of tempo and position, averaged over some lists."""
        requests = [PlaylistRequest(length=6, spacing=0, **asked) for _ in range(12)]
        lists = [walk.generate(request, seed) for seed, request in enumerate(requests)]
        return np.mean([np.corrcoef(range(6), [song.tempo for song in drawn.songs])[0, 1] for drawn in lists])

    assert correlation(along="tempo") > 0.7
    assert correlation(along="tempo", direction="falling") < -0.7
    assert abs(correlation()) < 0.5
    first = ids[order.index(4)]
    drawn = walk.generate(PlaylistRequest(length=5, first=first, along="tempo", spacing=0), 0)
    assert drawn.songs[0].id == first
    assert all(edge.label for edge in drawn.edges[1:])


def test_rise_without_known_tempo_gives_note(tiny_library):
    tiny_library.descriptors.save({song.id: Descriptors() for song in tiny_library.songs()})
    drawn = Walk(take_snapshot(tiny_library)).generate(PlaylistRequest(length=4, along="tempo"), 0)
    assert len(drawn.songs) == 4
    assert "too few songs have a known tempo for a rising playlist" in drawn.notes


def test_kept_songs_stay_in_place(snapshot):
    walk = Walk(snapshot)
    before = ids_of(walk.generate(PlaylistRequest(length=6), 1))
    keep = {1: before[1], 4: before[4]}
    drawn = [ids_of(walk.generate(PlaylistRequest(length=6, keep=keep), seed)) for seed in range(8)]
    assert all(d[1] == before[1] and d[4] == before[4] and len(set(d)) == 6 for d in drawn)
    assert len({tuple(d) for d in drawn}) > 1


def test_longer_playlist_keeps_existing_songs(snapshot):
    walk = Walk(snapshot)
    start = ids_of(walk.generate(PlaylistRequest(length=3), 1))
    again = walk.generate(PlaylistRequest(length=6, keep=dict(enumerate(start))), 9)
    assert ids_of(again)[:3] == start
    assert len(again.songs) == 6


def test_path_visits_songs_in_order(snapshot):
    walk, ids = Walk(snapshot), [s.id for s in snapshot.songs_at()]
    request = PlaylistRequest(length=8, first=ids[0], through=(ids[7], ids[4]), spacing=0)
    routes = [ids_of(walk.generate(request, seed)) for seed in range(6)]
    for route in routes:
        assert route[0] == ids[0]
        assert route[-1] == ids[4]
        assert ids[7] in route[1:-1]
        assert len(route) == len(set(route)) == 8
    assert len({tuple(route) for route in routes}) > 1


def test_pin_in_place_of_stop_gives_note(snapshot):
    ids = [s.id for s in snapshot.songs_at()]
    drawn = Walk(snapshot).generate(PlaylistRequest(length=4, first=ids[0], keep={0: ids[5]}), 0)
    assert ids_of(drawn)[0] == ids[5]
    assert "pinned songs replace some of the songs to pass through" in drawn.notes


def test_path_lengthens_to_fit_its_songs(snapshot):
    ids = [s.id for s in snapshot.songs_at()]
    drawn = Walk(snapshot).generate(PlaylistRequest(length=2, first=ids[0], through=(ids[5], ids[9])), 0)
    assert ids_of(drawn) == [ids[0], ids[5], ids[9]]
    assert any("3 songs instead of 2" in note for note in drawn.notes)


def test_path_approaches_target_steadily(taught):
    snapshot = take_snapshot(taught)
    walk, X, rng = Walk(snapshot), snapshot.X, np.random.default_rng(0)
    ids = [s.id for s in snapshot.songs_at()]
    steered, free = [], []
    for seed in range(20):
        a, b = rng.choice(len(ids), 2, replace=False)
        steered.append(ids_of(walk.generate(PlaylistRequest(length=8, first=ids[a], through=(ids[b],)), seed)))
        free.append([*ids_of(walk.generate(PlaylistRequest(length=7, first=ids[a]), seed)), ids[b]])

    def longest_step(paths):
        rows = [[snapshot.rows_of([i])[0] for i in path] for path in paths]
        return np.mean([np.linalg.norm(np.diff(X[path], axis=0), axis=1).max() for path in rows])

    assert longest_step(steered) < 0.95 * longest_step(free)


@pytest.mark.parametrize(
    "minutes", [pytest.param(30.0, marks=pytest.mark.long), 60.0, pytest.param(90.0, marks=pytest.mark.long)]
)
def test_minutes_are_met_within_two_minutes(tmp_path, minutes):
    rng = np.random.default_rng(4)
    with write_library(tmp_path / "library", 60, n_dimensions=32) as library:
        with library.write() as connection:  # from one to twelve minutes, as in real collections
            for song in library.songs():
                duration = float(np.clip(rng.lognormal(np.log(190), 0.6), 60, 720))
                connection.execute(
                    schema.songs.update().where(schema.songs.c.id == song.id).values(duration_s=duration)
                )
        walk = Walk(take_snapshot(library))
        ids = [song.id for song in library.songs()]
        for seed in range(10):
            first, middle, last = rng.choice(ids, 3, replace=False).tolist()
            for stops in ({}, {"first": first, "through": (middle, last)}):
                songs = walk.generate(PlaylistRequest(minutes=minutes, **stops), seed).songs
                assert abs(sum(song.duration_s for song in songs) - 60 * minutes) <= 120
                assert len({song.id for song in songs}) == len(songs)
                if stops:
                    assert [songs[0].id, songs[-1].id] == [first, last]
                    assert middle in {song.id for song in songs}


def test_unreachable_minutes_give_note(snapshot):
    drawn = Walk(snapshot).generate(PlaylistRequest(minutes=600.0), 0)
    assert len(drawn.songs) == 12
    assert any("minutes instead of 600" in note for note in drawn.notes)


def test_excluded_songs_appear_only_if_kept(snapshot):
    walk = Walk(snapshot)
    barred = frozenset(s.id for s in snapshot.library.songs()[:6])
    assert not set(ids_of(walk.generate(PlaylistRequest(length=6, exclude=barred), 2))) & barred
    artist = snapshot.library.songs()[0].artist
    drawn = walk.generate(
        PlaylistRequest(length=6, no_artists=frozenset({artist}), keep={2: snapshot.library.songs()[0].id}), 2
    )
    assert [s.artist == artist for s in drawn.songs] == [False, False, True, False, False, False]


def test_only_chosen_songs_appear(snapshot):
    chosen = frozenset(snapshot.row_ids[2:8].tolist())
    request = PlaylistRequest(length=6, only=chosen, exclude=frozenset([int(snapshot.row_ids[2])]), spacing=0)
    drawn = Walk(snapshot).generate(request, 0)
    assert {song.id for song in drawn.songs} == chosen - {int(snapshot.row_ids[2])}


def test_too_few_matching_songs_give_note(snapshot):
    artist = snapshot.library.songs()[0].artist
    drawn = Walk(snapshot).generate(PlaylistRequest(length=10, artists=frozenset({artist})), 0)
    n = sum(s.artist == artist for s in snapshot.library.songs())
    assert {s.artist for s in drawn.songs} == {artist}
    assert len(drawn.songs) == n
    assert f"only {n} songs match your request" in drawn.notes


def test_tags_are_included_or_excluded(tiny_library):
    songs = tiny_library.songs()
    tiny_library.add_tags([{"song_id": s.id, "tag": "calm", "weight": 1.0} for s in songs[:5]])
    walk = Walk(take_snapshot(tiny_library))
    calm = {s.id for s in songs[:5]}
    assert set(ids_of(walk.generate(PlaylistRequest(length=4, tags=frozenset({"calm"})), 0))) <= calm
    assert not set(ids_of(walk.generate(PlaylistRequest(length=4, no_tags=frozenset({"calm"})), 0))) & calm


def test_seed_songs_attract_playlist(taught):
    snapshot = take_snapshot(taught)
    walk = Walk(snapshot)
    seeds = tuple(s.id for s in snapshot.songs_at()[:2])
    rows = [snapshot.rows_of([i])[0] for i in seeds]

    def distance(request):
        drawn = [ids_of(walk.generate(request, seed)) for seed in range(15)]
        chosen = [snapshot.rows_of([i])[0] for d in drawn for i in d]
        return np.mean([np.linalg.norm(snapshot.X[chosen] - snapshot.X[row], axis=1).mean() for row in rows])

    assert distance(PlaylistRequest(like=seeds, length=12)) < 0.97 * distance(PlaylistRequest(length=12))


def test_recent_songs_appear_less_often(taught):
    snapshot = take_snapshot(taught)
    walk = Walk(snapshot)
    rested = frozenset(s.id for s in snapshot.songs_at()[::2])

    def share(request):
        ids = [i for seed in range(20) for i in ids_of(walk.generate(request, seed))]
        return np.mean([i in rested for i in ids])

    assert share(PlaylistRequest(rested=rested, length=12)) < 0.5 * share(PlaylistRequest(length=12))


def test_preference_shifts_play_counts(taught):
    snapshot = take_snapshot(taught)
    walk, plays = Walk(snapshot), taught.listening.play_counts()

    def mean_plays(prefer):
        ids = [i for seed in range(20) for i in ids_of(walk.generate(PlaylistRequest(prefer=prefer, length=12), seed))]
        return np.mean([plays.get(i, 0) for i in ids])

    assert mean_plays("unheard") < mean_plays("any") < mean_plays("familiar")


def test_versions_of_one_song_appear_once(tiny_library):
    songs = tiny_library.songs()
    by = songs[0].artist
    same = [s for s in songs if s.artist == by][:3]
    for song, title in zip(same, ("Rain", "Rain (Live)", "Rain - 2011 Remaster"), strict=True):
        tiny_library.edits.edit([song.id], {"title": title})
    walk = Walk(take_snapshot(tiny_library))
    versions = {s.id for s in same}
    for seed in range(15):
        assert len(versions & set(ids_of(walk.generate(PlaylistRequest(length=12, spacing=0), seed)))) <= 1
    drawn = walk.generate(PlaylistRequest(length=12, spacing=0, versions_apart=False), 0)
    assert versions <= set(ids_of(drawn))


def test_too_long_playlist_gives_note(snapshot):
    drawn = Walk(snapshot).generate(PlaylistRequest(length=50), 0)
    assert len(drawn.songs) == 12
    assert drawn.notes


def test_taken_edges_are_kept_after_reordering(snapshot):
    walk = Walk(snapshot)
    drawn = walk.generate(PlaylistRequest(length=5), 3)
    ids = ids_of(drawn)
    taken = dict(zip(itertools.pairwise(ids), drawn.edges[1:], strict=True))
    assert walk.explain(ids, taken).edges[1:] == drawn.edges[1:]
    swapped = [ids[1], ids[0], *ids[2:]]
    explained = walk.explain(swapped, taken)
    assert explained.edges[3:] == drawn.edges[3:]
    assert explained.edges[1].label == walk.reasons(swapped[0], swapped[1])[0].label


def test_reason_probabilities_sum_to_one(snapshot):
    a, b = snapshot.library.songs()[0], snapshot.library.songs()[1]
    reasons = Walk(snapshot).reasons(a.id, b.id)
    assert sum(edge.probability for edge in reasons) == pytest.approx(1.0)
    assert f"both by {a.artist}" in {edge.reason for edge in reasons}


def lists_by(library, key, n, category=None):
    """Return playlists whose songs share the value of `key`."""
    groups = {}
    for song in library.songs():
        groups.setdefault(key(song), []).append(song.id)
    return [(f"{category} {value} {i}", category, ids) for value, ids in groups.items() for i in range(n)]


def test_weights_follow_library_playlists(tiny_library):
    tiny_library.add_playlists(lists_by(tiny_library, lambda s: s.artist, 60), source="test")
    refresh(tiny_library)
    walk = Walk(take_snapshot(tiny_library))
    assert walk.n_playlists == 180
    artists = [s.artist for s in walk.generate(PlaylistRequest(length=4, spacing=0), 0).songs]
    assert len(set(artists)) == 1, "lists that keep to an artist make a walk that does"


def test_each_category_has_dialect_with_gain(taught):
    lists = lists_by(taught, lambda s: s.artist, 1, "one artist")
    taught.add_playlists(lists, source="test")
    n_lists = sum(len(ids) > 1 for _, _, ids in lists)  # a walk needs more than one song
    refit_walks(taught, quiet)
    walk = Walk(take_snapshot(taught))
    every, dialect = walk.dialects
    assert (every.name, dialect.name) == ("", "one artist")
    assert every.n_playlists == dialect.n_playlists == n_lists
    assert walk.n_judged == round(n_lists / 4)
    assert dialect.gain > 0.2
    assert dict(walk.families("one artist"))["artist"] > 0.3
    assert walk.strongest("one artist", 5)[0].probability >= walk.strongest("one artist", 5)[4].probability
    with pytest.raises(NotFoundError, match=r"does not have the dialect “opera”\. Its dialects: “one artist”"):
        walk.generate(PlaylistRequest(dialect="opera"))


def test_saved_playlists_are_reasons(tiny_library):
    songs = tiny_library.songs()
    pair = [songs[0].id, songs[-1].id]
    tiny_library.add_playlists([("Sunday", None, pair)], source="saved")
    refit_walks(tiny_library, quiet)
    reasons = {edge.reason for edge in Walk(take_snapshot(tiny_library)).reasons(*pair)}
    assert "both in the playlist “Sunday”" in reasons


def test_steps_along_shared_playlists_name_the_sound_first(tiny_library):
    tiny_library.add_playlists(lists_by(tiny_library, lambda s: s.id % 3, 60), source="test")
    refit_walks(tiny_library, quiet)
    snapshot = take_snapshot(tiny_library)
    walk = Walk(snapshot)
    drawn = [walk.generate(PlaylistRequest(length=6, spacing=0), seed) for seed in range(10)]
    steps = [step for one in drawn for step in zip(one.songs, one.songs[1:], one.edges[1:], strict=False)]
    steps = [step for step in steps if step[2].label.startswith("both in playlists with")]
    names = {f"both in playlists with “{song.title}” by {song.by}" for song in tiny_library.songs()}
    assert names & {edge.label for *_, edge in steps}
    for song, other, edge in steps:
        assert edge.reason == (describe_pairs(snapshot, song, [other])[0] or edge.reason)


def test_refit_without_changes_does_nothing(tiny_library):
    tiny_library.add_playlists(lists_by(tiny_library, lambda s: s.artist, 3), source="test")
    refit_walks(tiny_library, quiet)
    path = tiny_library.models.path(tiny_library.models.active().id) / "walk.npz"
    written, revision = path.stat().st_mtime_ns, tiny_library.revision
    refit_walks(tiny_library, quiet)
    assert (path.stat().st_mtime_ns, tiny_library.revision) == (written, revision)
    tiny_library.add_playlists([("more", None, [s.id for s in tiny_library.songs()[:4]])], source="test")
    refit_walks(tiny_library, quiet)
    assert path.stat().st_mtime_ns > written


def test_damaged_fit_is_ignored_and_refitted(tiny_library):
    tiny_library.add_playlists(lists_by(tiny_library, lambda s: s.artist, 3), source="test")
    refit_walks(tiny_library, quiet)
    folder = tiny_library.models.path(tiny_library.models.active().id)
    whole = load_walk(folder)
    for file in (folder / "walk.npz", tiny_library.folder / "walk_sources.npz"):
        file.write_bytes(file.read_bytes()[:-40])
    assert load_walk(folder) is None
    assert len(Walk(take_snapshot(tiny_library)).generate(PlaylistRequest(length=4, spacing=0), 0).songs) == 4
    refit_walks(tiny_library, quiet)
    again = load_walk(folder)
    assert again.names == whole.names
    np.testing.assert_array_equal(again.weights, whole.weights)
    (folder / "report.json").write_text('{"lead"')
    assert load_report(folder) == {}


def test_surprise_widens_steps(taught):
    walk = Walk(take_snapshot(taught))
    widths = [walk.step_width(s) for s in (0.0, 0.25, 0.5, 0.75, 1.0)]
    assert widths == sorted(widths)
    assert widths[-1] > 2 * widths[0]


def test_smooth_playlists_avoid_random_jumps(tiny_library):
    walk = Walk(take_snapshot(tiny_library))

    def share(surprise: float) -> float:
        drawn = [walk.generate(PlaylistRequest(length=4, spacing=0, surprise=surprise), seed) for seed in range(30)]
        labels = [edge.label for d in drawn for edge in d.edges[1:]]
        return labels.count("random jump") / len(labels)

    assert share(0.3) == 0.0
    assert share(1.0) > 0.02


def test_songs_saved_today_appear_less_often(tiny_library):
    saved = frozenset(song.id for song in tiny_library.songs()[::2])
    tiny_library.add_playlists([("today", None, sorted(saved))], source="saved")
    walk = ShuffleWalk(take_snapshot(tiny_library))

    def share(**options):
        drawn = [walk.generate(PlaylistRequest(length=4, spacing=0, **options), seed) for seed in range(60)]
        return np.mean([i in saved for one in drawn for i in ids_of(one)])

    assert share() < 0.6 * share(avoid_recent=False)
    with tiny_library.write() as connection:
        connection.execute(schema.playlists.update().values(created_at=time.time() - 2 * RESTS_S))
    walk = ShuffleWalk(take_snapshot(tiny_library))
    assert share() == share(avoid_recent=False)


def test_rejects_invalid_requests(snapshot, store):
    for arguments, message in (
        ({"surprise": 1.5}, r"surprise=1\.5"),
        ({"minutes": 0.0}, r"minutes=0\.0"),
        ({"length": 0}, "length=0"),
    ):
        with pytest.raises(ValueError, match=message):
            PlaylistRequest(**arguments)
    with pytest.raises(NotFoundError, match="song 999"):
        Walk(snapshot).generate(PlaylistRequest(first=999))
    with pytest.raises(NotFoundError, match="has no songs for a playlist"):
        Walk(take_snapshot(store)).generate(PlaylistRequest())
