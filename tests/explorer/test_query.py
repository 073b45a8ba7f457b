"""Tests of search by example: the right songs, never the query itself, and within the filters."""

import io
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import soundfile
from scipy.stats import norm

from benchmarks.large_library import write_library
from musicsim.audio import DESCRIPTORS, KEYS, MODES, Descriptors
from musicsim.errors import AudioError, ModelError, NotFoundError
from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.search.query import Examples, find_similar, read_example, similarity_of
from musicsim.explorer.search.requested import combine_examples, find_requested, part_of
from musicsim.explorer.snapshot.filtering import filter_choices, filter_rows
from musicsim.explorer.snapshot.model_rows import HubReduction
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library.db import schema
from tests.sounds import SAMPLE_RATE, sound, write_song


def _titles(hits):
    return [hit.song.title for hit in hits]


def test_query_song_is_not_in_results(snapshot):
    for song in snapshot.library.songs():
        hits = find_similar(snapshot, song.id, 50, max_per_artist=None)
        assert len(hits) == 11
        assert song.id not in {hit.song.id for hit in hits}


def test_nearest_songs_are_same_kind(snapshot):
    for song in snapshot.library.songs():
        hits = find_similar(snapshot, song.id, 3, max_per_artist=None)
        assert {hit.song.artist for hit in hits} == {song.artist}


def test_results_match_brute_force(snapshot):
    song = snapshot.library.songs()[0]
    row = snapshot.rows_of([song.id])[0]
    truth = np.linalg.norm(snapshot.X - snapshot.X[row], axis=1)
    order = [snapshot.songs_at([r])[0].id for r in np.argsort(truth, kind="stable") if r != row]
    hits = find_similar(snapshot, song.id, 11, max_per_artist=None, hub_reduction=False)
    assert [hit.song.id for hit in hits] == order


def test_max_per_artist_defaults_to_two(snapshot):
    song = snapshot.library.songs()[0]
    artists = [hit.song.artist for hit in find_similar(snapshot, song.id, 10)]
    assert max(artists.count(a) for a in artists) == 2
    assert len(artists) == 6
    artists = [hit.song.artist for hit in find_similar(snapshot, song.id, 10, max_per_artist=1)]
    assert sorted(artists) == ["Artist clicks", "Artist noise", "Artist tones"]


def test_folder_replaces_unknown_artist(tiny_library):
    with tiny_library.write() as connection:
        connection.execute(schema.songs.update().values(artist=None))
    snapshot = take_snapshot(tiny_library)
    hits = find_similar(snapshot, snapshot.library.songs()[0].id, 10)
    assert sorted(Counter(hit.song.folder for hit in hits).values()) == [2, 2, 2]


def test_unknown_artists_in_top_folder_are_separate(tiny_library):
    with tiny_library.write() as connection:
        connection.execute(schema.songs.update().values(artist=None))
    with tiny_library.write() as connection:
        connection.execute(schema.roots.delete())
        rows = [{"path": Path(song.folder), "added_at": 0.0} for song in tiny_library.songs()]
        connection.execute(schema.roots.insert().prefix_with("OR IGNORE"), rows)
    snapshot = take_snapshot(tiny_library)
    assert len(find_similar(snapshot, snapshot.library.songs()[0].id, 10)) == 10


@pytest.mark.parametrize(
    ("filters", "right"),
    [
        (Filters(artists=frozenset({"Artist noise"})), lambda s: s.artist == "Artist noise"),
        (Filters(genres=frozenset({"Genre tones"})), lambda s: s.genre == "Genre tones"),
        (Filters(years=(1980, 1982)), lambda s: 1980 <= s.year <= 1982),
        (Filters(duration_s=(10.0, 20.0)), lambda s: False),
    ],
)
def test_filters_apply_at_query_time(snapshot, filters, right):
    song = snapshot.library.songs()[0]
    hits = find_similar(snapshot, song.id, 50, max_per_artist=None, filters=filters)
    assert {h.song.id for h in hits} == {s.id for s in snapshot.library.songs() if right(s) and s.id != song.id}


def test_filters_by_folder(snapshot):
    folder = snapshot.library.songs()[0].folder
    hits = find_similar(snapshot, snapshot.library.songs()[-1].id, 50, filters=Filters(folders=frozenset({folder})))
    assert {h.song.folder for h in hits} == {folder}


def test_external_file_finds_similar_songs(snapshot, tmp_path):
    data = write_song(tmp_path / "q.mp3", "noise", seed=77).read_bytes()
    example = read_example(snapshot, data, "q.mp3")
    assert example.song_id is None
    assert example.duration_s == pytest.approx(4.0, abs=0.1)
    hits = find_similar(snapshot, example, 4, max_per_artist=None)
    assert {hit.song.artist for hit in hits} == {"Artist noise"}
    assert all(0.0 <= hit.similarity <= 1.0 for hit in hits)


def test_library_file_as_example_excludes_itself(snapshot):
    song = snapshot.library.songs()[5]
    example = read_example(snapshot, song.path.read_bytes(), song.path.name)
    assert example.song_id == song.id
    hits = find_similar(snapshot, example, 50, max_per_artist=None)
    assert song.id not in {hit.song.id for hit in hits}
    assert _titles(hits) == _titles(find_similar(snapshot, song.id, 50, max_per_artist=None))


def test_upload_gives_same_vector_as_library_song(snapshot):
    song = snapshot.library.songs()[2]
    example = read_example(snapshot, song.path.read_bytes(), "x")
    # the library stores frames in half precision, so a few frames change their codewords
    assert np.linalg.norm(example.vector - snapshot.X[snapshot.rows_of([song.id])[0]]) < 0.05


@pytest.mark.parametrize("data", [b"", b"no sound at all" * 50, b"\x00" * 5000])
def test_undecodable_upload_is_named_in_error(snapshot, data):
    with pytest.raises(AudioError, match=r"my upload\.mp3"):
        read_example(snapshot, data, "my upload.mp3")


def test_too_short_upload_is_named_in_error(snapshot):
    stream = io.BytesIO()
    soundfile.write(stream, sound("tones", 0)[:500], SAMPLE_RATE, format="WAV")
    with pytest.raises(AudioError, match=r"blip\.wav"):
        read_example(snapshot, stream.getvalue(), "blip.wav")


def test_silence_is_valid_query(snapshot):
    stream = io.BytesIO()
    soundfile.write(stream, np.zeros(60_000), SAMPLE_RATE, format="WAV")
    example = read_example(snapshot, stream.getvalue(), "silence.wav")
    assert np.isfinite(example.vector).all()
    assert len(find_similar(snapshot, example, 3)) == 3


def test_empty_library_gives_clear_error(store):
    snapshot = take_snapshot(store)
    with pytest.raises(ModelError, match="no songs to compare"):
        read_example(snapshot, b"", "x")
    with pytest.raises(NotFoundError, match=r"song 1\d* does not exist"):
        find_similar(snapshot, 1)


def test_songs_without_model_ask_for_patience(tiny_library):
    with tiny_library.write() as connection:
        connection.execute(schema.models.delete())
    snapshot = take_snapshot(tiny_library)
    with pytest.raises(ModelError, match="wait until the running job has finished"):
        read_example(snapshot, b"", "x")
    with pytest.raises(NotFoundError, match="wait until the running job has finished"):
        find_similar(snapshot, snapshot.library.songs()[0].id)


def mutual_order(X, row):
    """Order rows by mutual proximity from the definition, P(X > d) P(Y > d) of normal distances.

    Mean and deviation are those of the nearest third.
    """
    D = np.linalg.norm(X[:, None].astype(np.float64) - X[None], axis=2)
    near = np.sort(D, axis=1)[:, 1 : 1 + round(len(X) / 3)]
    mean, deviation = near.mean(axis=1), near.std(axis=1)
    both = norm.logsf((D[row] - mean[row]) / deviation[row]) + norm.logsf((D[row] - mean) / deviation)
    return [r for r in np.argsort(-both, kind="stable").tolist() if r != row]


def test_hub_reduction_defaults_to_mutual_proximity(taught):
    snapshot = take_snapshot(taught)
    for row in (0, 50, 199):
        song = snapshot.songs_at([row])[0]
        truth = [snapshot.songs_at([r])[0].id for r in mutual_order(snapshot.X, row)[:10]]
        hits = find_similar(snapshot, song.id, 10, max_per_artist=None)
        # all 200 songs are the sample of the moments here; distances are float32
        assert [hit.song.id for hit in hits] == truth
        assert [hit.similarity for hit in hits] == sorted((hit.similarity for hit in hits), reverse=True)


def test_hub_reduction_reduces_hubs(taught):
    snapshot = take_snapshot(taught)
    heads = {}
    for reduce in (False, True):
        answers = [
            hit.song.id
            for song in snapshot.songs_at()
            for hit in find_similar(snapshot, song.id, 10, max_per_artist=None, hub_reduction=reduce)
        ]
        heads[reduce] = max(Counter(answers).values())
    assert heads[True] < heads[False]


def test_hub_reduction_follows_setting(taught):
    snapshot = take_snapshot(taught)
    song = snapshot.songs_at([7])[0].id
    plain = [hit.song.id for hit in find_similar(snapshot, song, hub_reduction=False)]
    reduced = [hit.song.id for hit in find_similar(snapshot, song, hub_reduction=True)]
    assert plain != reduced
    assert [hit.song.id for hit in find_similar(snapshot, song)] == reduced
    taught.set_setting("hub_reduction", False)
    assert [hit.song.id for hit in find_similar(take_snapshot(taught), song)] == plain


def test_external_sound_ranks_like_library_song(tiny_library, snapshot, tmp_path):
    song = snapshot.library.songs()[2]
    example = read_example(snapshot, song.path.read_bytes(), "mine")
    assert example.song_id == song.id
    inside = [hit.song.id for hit in find_similar(snapshot, song.id, 11, max_per_artist=None)]
    outside = [hit.song.id for hit in find_similar(snapshot, example, 11, max_per_artist=None)]
    assert outside == inside


# --- several examples -------------------------------------------------------------------------------


def test_several_examples_match_brute_force(taught):
    snapshot = take_snapshot(taught)
    like, unlike = snapshot.row_ids[[3, 40, 90]].tolist(), snapshot.row_ids[[7, 120]].tolist()
    X = snapshot.X.astype(np.float64)

    def farther(ids):
        D = np.array([np.linalg.norm(X - X[row], axis=1) for row in snapshot.rows_of(ids)])
        return np.mean(np.maximum(D, 1e-6) ** -2.0, axis=0)

    score = farther(like) - farther(unlike) / 2
    order = [i for i in snapshot.row_ids[np.argsort(-score)].tolist() if i not in {*like, *unlike}]
    query = Examples(tuple(like), tuple(unlike))
    hits = find_similar(snapshot, query, 50, max_per_artist=None, hub_reduction=False)
    n = int((score > 0).sum()) - len(like)
    assert [hit.song.id for hit in hits[:n]] == order[: min(n, 50)]
    assert [hit.similarity for hit in hits] == sorted((hit.similarity for hit in hits), reverse=True)


def test_every_example_has_similar_results(snapshot):
    tones, noise = (
        next(s for s in snapshot.library.songs() if s.artist == f"Artist {kind}") for kind in ("tones", "noise")
    )
    hits = find_similar(snapshot, Examples((tones.id, noise.id)), 6, max_per_artist=None)
    assert Counter(hit.song.artist for hit in hits) == {"Artist tones": 3, "Artist noise": 3}
    example = {"Artist tones": tones, "Artist noise": noise}
    assert all(hit.reason.startswith(f"like “{example[hit.song.artist].title}” · ") for hit in hits)
    for hit in hits:
        assert similarity_of(snapshot, Examples((tones.id, noise.id)), hit.song.id) == pytest.approx(hit.similarity)


def test_negative_examples_rank_similar_songs_last(snapshot):
    tones, noise = (
        [s.id for s in snapshot.library.songs() if s.artist == f"Artist {kind}"] for kind in ("tones", "noise")
    )
    plain = find_similar(snapshot, tones[0], 11, max_per_artist=None)
    less = find_similar(snapshot, Examples((tones[0],), (noise[0],)), 11, max_per_artist=None)
    assert noise[0] in {hit.song.id for hit in plain} - {hit.song.id for hit in less}
    assert {hit.song.id for hit in less[-3:]} == set(noise[1:])
    assert [hit.similarity for hit in less[-3:]] == [0.0] * 3


@pytest.mark.long
def test_song_part_matches_file_of_that_part(tiny_library, tmp_path):
    noise, tones = (sound(kind, seed=50, seconds=18) for kind in ("noise", "tones"))
    path = tmp_path / "both.wav"
    soundfile.write(path, np.concatenate([noise, tones]), SAMPLE_RATE)
    tiny_library.add(path, n_workers=1)
    refresh(tiny_library)
    snapshot = take_snapshot(tiny_library)
    both = max(song.id for song in tiny_library.songs())
    example = read_example(snapshot, path, "both.wav")
    for start, kind in ((0.0, "noise"), (18.0, "tones")):
        request = SearchRequest(part=(start, start + 18.0), per_artist=0, k=4)
        for query in (both, example):
            hits = find_requested(snapshot, query, request)
            assert {hit.song.artist for hit in hits} == {f"Artist {kind}"}
    soundfile.write(tmp_path / "part.wav", noise, SAMPLE_RATE)
    alone = read_example(snapshot, tmp_path / "part.wav", "part.wav")
    # Fluctuation patterns last some seconds, so those at the cut depend on the sound after it.
    part, whole = part_of(snapshot, both, 0.0, 18.0).vector, snapshot.X[snapshot.rows_of([both])[0]]
    assert np.linalg.norm(part - alone.vector) < np.linalg.norm(part - whole) / 2
    with pytest.raises(AudioError, match=r"both\.wav, 3 to 3\.01 s: "):
        part_of(snapshot, example, 3.0, 3.01)


def test_repeated_example_counts_once(snapshot):
    song, other = (s.id for s in snapshot.library.songs()[:2])
    request = SearchRequest(like=(song, other, other))
    assert combine_examples(snapshot, song, request) == Examples((song, other))
    assert find_requested(snapshot, song, SearchRequest()) == find_similar(snapshot, song)
    with pytest.raises(ValueError, match="both like and unlike"):
        SearchRequest(like=(1,), unlike=(1,))


# --- by definition, for songs with missing fields ---------------------------------------


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Build 700 songs by 35 artists, some without an artist, a genre or a year. Tests must not change them."""
    with write_library(tmp_path_factory.mktemp("drawn") / "library", 700) as library:
        rows = [{"song_id": i, "tag": ("slow", "loud")[i % 3 == 0], "weight": 1.0} for i in range(1, 300, 2)]
        library.add_tags(rows)
        library.descriptors.save({
            i: Descriptors(
                60.0 + i % 90 if i % 4 else None, KEYS[i % 12], MODES[i % 2], -30 + i % 20, 900.0 + i, float(i % 50)
            )
            for i in range(1, 600)
        })  # fmt: skip
        yield take_snapshot(library)


def allows(filters, song, tags):
    """Return whether a filter accepts a song, one condition at a time."""
    words = {song.genre, *(tag for tag, _ in tags.get(song.id, ()))}
    first, last = filters.years or (None, None)
    shortest, longest = filters.duration_s or (0.0, np.inf)
    return all((
        not filters.artists or song.artist in filters.artists,
        song.artist not in filters.no_artists,
        not filters.genres or song.genre in filters.genres,
        not filters.tags or words & filters.tags,
        not words & filters.no_tags,
        not filters.folders or song.folder in filters.folders,
        first is None or (song.year is not None and first <= song.year <= last),
        shortest <= song.duration_s <= longest,
        not filters.keys or song.key in filters.keys,
        not filters.modes or song.mode in filters.modes,
        *(
            getattr(filters, name) is None
            or (
                getattr(song, name) is not None
                and getattr(filters, name)[0] <= getattr(song, name) <= getattr(filters, name)[1]
            )
            for name in DESCRIPTORS
        ),
    ))  # fmt: skip


def answers_by_definition(snapshot, query, k, *, max_per_artist=2, filters=None, exclude=(), reduce=False):
    """Compare every song in turn. Return the ids of the nearest that pass the filter and the limit."""
    row = snapshot.rows_of([query])[0]
    X = snapshot.X.astype(np.float64)
    order = mutual_order(X, row) if reduce else np.argsort(np.linalg.norm(X - X[row], axis=1), kind="stable").tolist()
    tags, groups = snapshot.tags_of(), Counter()
    found = []
    for other in order:
        song = snapshot.songs_at([other])[0]
        if song.id == query or song.id in exclude or (filters and not allows(filters, song, tags)):
            continue
        groups[song.group] += 1
        if max_per_artist is None or groups[song.group] <= max_per_artist:
            found.append(song.id)
    return found[:k]


def some_filters(snapshot):
    songs = snapshot.songs_at()
    a_year = next(song.year for song in songs if song.year)
    seconds = songs[5].duration_s
    return [
        Filters(),
        Filters(artists=frozenset({songs[0].artist, songs[9].artist, "nobody"} - {None})),
        Filters(genres=frozenset({"Jazz", "Rock", "none"})),
        Filters(folders=frozenset({songs[3].folder})),
        Filters(years=(a_year, a_year)),
        Filters(years=(0, 1980)),
        Filters(duration_s=(seconds, 1e6)),
        Filters(duration_s=(0.0, seconds)),
        Filters(genres=frozenset({"Jazz", "Rock"}), years=(1970, 2000), duration_s=(60.0, 300.0)),
        Filters(artists=frozenset({"nobody"})),
        Filters(no_artists=frozenset({songs[0].artist, "nobody"} - {None})),
        Filters(tags=frozenset({"Jazz", "slow"})),
        Filters(no_tags=frozenset({"Jazz", "slow"})),
        Filters(keys=frozenset({"A", "F#"}), modes=frozenset({"minor"})),
        Filters(tempo=(80, 120), loudness=(-25, -12)),
        Filters(brightness=(1000, 1300), energy=(0, 30)),
        Filters(tags=frozenset({"slow", "Rock"}), no_tags=frozenset({"loud"}), years=(1960, 2000)),
    ]


@pytest.mark.long
def test_filter_masks_match_definition(drawn):
    for filters in some_filters(drawn):
        mask = filter_rows(drawn, filters)
        right = [allows(filters, song, drawn.tags_of()) for song in drawn.songs_at()]
        assert (mask.tolist() if mask is not None else [True] * len(right)) == right


def test_filter_choices_match_songs(drawn):
    songs, tags = drawn.songs_at(), drawn.tags_of()
    choices = filter_choices(drawn)
    counts = Counter(tag for found in tags.values() for tag, _ in found) + Counter(s.genre for s in songs if s.genre)
    assert [counts[tag] for tag in choices.names["tags"]] == sorted(counts.values(), reverse=True)
    assert set(choices.names["no_tags"]) == set(counts)
    assert choices.names["artists"] == sorted({s.artist for s in songs if s.artist}, key=str.casefold)
    years = [s.year for s in songs if s.year]
    assert choices.ranges["years"] == (min(years), max(years))
    assert choices.ranges["tempo"] == (60, 149)
    assert (choices.names["keys"], choices.names["modes"]) == (list(KEYS), list(MODES))
    everything = Filters(duration_s=choices.ranges["duration_s"])
    assert filter_rows(drawn, everything).all()


@pytest.mark.long
@pytest.mark.parametrize("max_per_artist", [None, 1, 2])
def test_results_match_definition(drawn, max_per_artist):
    for query in (1, 350, 700):
        for filters in some_filters(drawn):
            hits = find_similar(drawn, query, 12, max_per_artist=max_per_artist, filters=filters, hub_reduction=False)
            right = answers_by_definition(drawn, query, 12, max_per_artist=max_per_artist, filters=filters)
            assert [hit.song.id for hit in hits] == right


@pytest.mark.parametrize("filters", [None, Filters(genres=frozenset({"Jazz", "Rock", "Folk"}))])
def test_excluded_songs_are_not_results(drawn, filters):
    first = answers_by_definition(drawn, 7, 30, filters=filters)
    exclude = {7, *first[::2], 99_999}
    hits = find_similar(drawn, 7, 10, filters=filters, exclude=exclude, hub_reduction=False)
    assert [hit.song.id for hit in hits] == answers_by_definition(drawn, 7, 10, filters=filters, exclude=exclude)
    everything = [song.id for song in drawn.library.songs()]
    assert find_similar(drawn, 7, 10, filters=filters, exclude=everything) == []


def test_candidates_grow_until_all_results_are_found(drawn, monkeypatch):
    """The search asks for more neighbors until the limit is satisfied."""
    monkeypatch.setattr("musicsim.explorer.search.query.CANDIDATES", 4)
    n_groups = len({song.group for song in drawn.songs_at() if song.id != 7})
    hits = find_similar(drawn, 7, 1000, max_per_artist=1, hub_reduction=False)
    assert len(hits) == n_groups
    assert [hit.song.id for hit in hits] == answers_by_definition(drawn, 7, 1000, max_per_artist=1)


def test_hub_reduction_matches_in_large_library(drawn):
    """A large library computes moments of the candidates only. Here both use all songs as the sample."""
    rows = drawn.model_rows
    in_advance, on_demand = (
        HubReduction(len(rows.ids), rows.vectors, lambda: rows.proximity, **options)
        for options in ({}, {"max_in_advance": 0})
    )
    for row in (0, 333, 699):
        distances, near = (found[0] for found in drawn.index.query(drawn.X[row : row + 1], 200))
        one, other = (way.adjust_distances(drawn.X[row], distances, near) for way in (in_advance, on_demand))
        # the same moments over the same songs, summed in another order
        np.testing.assert_allclose(other, one, rtol=1e-9)


def test_external_sound_matches_brute_force(drawn, tmp_path):
    data = write_song(tmp_path / "q.wav", "tones", seed=3).read_bytes()
    example = read_example(drawn, data, "q.wav")
    truth = np.linalg.norm(drawn.X - example.vector, axis=1)
    hits = find_similar(drawn, example, 5, max_per_artist=None, hub_reduction=False)
    assert [hit.song.id for hit in hits] == drawn.row_ids[np.argsort(truth, kind="stable")[:5]].tolist()
