"""Tests of snapshots: one revision, consistent names, and nothing stale after a change."""

from collections import Counter

import numpy as np
import pytest

from musicsim.errors import NotFoundError
from musicsim.explorer.models.artifacts import load_map, save_map
from musicsim.explorer.search.query import find_similar
from musicsim.explorer.snapshot.snapshot import Snapshot, take_snapshot
from musicsim.library import Library
from musicsim.library.db import schema
from musicsim.library.stores.duplicates import SamePair


def forget(library, *song_ids):
    with library.write() as connection:
        connection.execute(schema.songs.delete().where(schema.songs.c.id.in_(song_ids)))


def assert_agrees(snapshot):
    """Assert that the columns agree with the song objects."""
    by_id = {song.id: song for song in snapshot.library.songs(missing=True)}
    songs = [by_id[i] for i in snapshot.row_ids.tolist()]
    assert (snapshot.n_songs, snapshot.n_indexed) == (len(snapshot.library.songs()), len(songs))
    assert snapshot.songs_at() == songs
    assert snapshot.row_ids.tolist() == [song.id for song in songs]
    assert len(snapshot.X) == len(snapshot.map) == len(songs)
    row_of = {i: row for row, i in enumerate(snapshot.row_ids.tolist())}
    row_of |= {i: row_of[one] for i, one in snapshot.representative_of.items() if one in row_of}
    assert snapshot.rows_of(by_id).tolist() == [row_of.get(i, -1) for i in by_id]
    assert snapshot.rows_of([2**80, -(2**80)]).tolist() == [-1, -1], "no id is of more than 64 bits"
    rows = np.arange(len(songs))
    assert snapshot.songs_at(rows) == songs
    assert snapshot.names_at(rows) == [(song.title, song.by) for song in songs]
    np.testing.assert_array_equal(snapshot.vectors_at(rows), snapshot.X)
    columns = snapshot.columns
    for name in ("artist", "genre", "folder", "group"):
        labels = getattr(columns, name)
        texts = [labels.names[code] if code >= 0 else None for code in labels.codes.tolist()]
        assert texts == labels.texts() == [getattr(song, name) for song in songs]
        assert labels.texts([2, 0]) == [texts[2], texts[0]] if len(texts) > 2 else True
        assert labels.counts() == Counter(text for text in texts if text is not None)
    assert columns.year.tolist() == [song.year or 0 for song in songs]
    assert columns.duration_s.tolist() == [song.duration_s for song in songs]
    stored = snapshot.library.vectors(snapshot.record.id)
    vector_of = dict(zip(stored.song_ids.tolist(), stored.X, strict=True))
    for song, vector in zip(songs, snapshot.X, strict=True):
        np.testing.assert_array_equal(vector, vector_of[song.id])


def test_columns_and_objects_agree(snapshot):
    assert_agrees(snapshot)


def test_songs_keep_requested_order(snapshot):
    ids = [song.id for song in snapshot.library.songs()]
    asked = [ids[3], 999, ids[0], ids[3]]
    assert [song.id for song in snapshot.songs_by_id(asked)] == [ids[3], ids[0], ids[3]]
    assert [song.id for song in snapshot.songs_at([5, 2])] == snapshot.row_ids[[5, 2]].tolist()
    assert snapshot.songs_by_id(()) == snapshot.songs_at([]) == []
    assert snapshot.rows_of(np.array([999, ids[0]]))[0] == -1
    assert snapshot.rows_of(()).tolist() == []


def test_returns_more_songs_than_cache_holds(tiny_library, monkeypatch):
    monkeypatch.setattr("musicsim.explorer.snapshot.snapshot.MAX_CACHED", 3)
    snapshot = take_snapshot(tiny_library)
    for _ in range(2):
        assert snapshot.songs_at() == [tiny_library.song(i) for i in snapshot.row_ids.tolist()]


def test_empty_library_has_no_rows(store):
    snapshot = take_snapshot(store)
    assert (snapshot.n_songs, snapshot.n_indexed, len(snapshot.row_ids)) == (0, 0, 0)
    assert snapshot.library.songs() == snapshot.songs_at() == snapshot.songs_by_id([1]) == []
    assert snapshot.rows_of([1, 2]).tolist() == [-1, -1]
    assert (len(snapshot.X), len(snapshot.map), snapshot.clusters, snapshot.names_at([])) == (0, 0, {}, [])
    assert len(snapshot.columns.year) == 0
    assert snapshot.model is None
    found = snapshot.find("a")
    assert (found.artists, found.songs) == ([], [])
    with pytest.raises(NotFoundError, match="no songs to compare"):
        _ = snapshot.index


def test_song_without_vector_has_no_row(tiny_library):
    with tiny_library.write() as connection:
        connection.execute(schema.vectors.delete().where(schema.vectors.c.song_id == 3))
    snapshot = take_snapshot(tiny_library)
    assert (snapshot.n_songs, snapshot.n_indexed) == (12, 11)
    assert snapshot.rows_of([3]).tolist() == [-1]
    title = tiny_library.song(3).title
    assert [song.id for song in snapshot.find(title).songs] == [3]
    assert_agrees(snapshot)
    with pytest.raises(NotFoundError, match="not been compared yet"):
        find_similar(snapshot, 3)


# --- finding by name ------------------------------------------------------------------------------


def by_definition(songs, text, limit):
    """Return matching songs, then artists, those that begin with the text first."""
    wanted = text.casefold()
    matching = [song for song in songs if song.matches(text)]
    matching.sort(key=lambda song: (not f"{song.title} {song.artist or ''}".casefold().startswith(wanted), song.id))
    counts = {}
    for song in songs:
        if song.artist and wanted in song.artist.casefold():
            counts[song.artist] = counts.get(song.artist, 0) + 1
    artists = sorted(counts.items(), key=lambda one: (not one[0].casefold().startswith(wanted), -one[1]))
    return artists, matching


@pytest.mark.parametrize("text", ["NOISE", "song t", "artist", "s 3", "Song noise 1 a", "", "none of them", "ß"])
@pytest.mark.parametrize("limit", [1, 4, 20])
def test_find_matches_definition(tiny_library, text, limit):
    tiny_library.edits.edit([2], {"title": "STRASSE noise", "artist": "Noise of the Street"})
    snapshot = take_snapshot(tiny_library)
    artists, songs = by_definition(snapshot.library.songs(), text, limit)
    albums = {
        (song.album, song.artist)
        for song in snapshot.library.songs()
        if text.casefold() in song.album.casefold() and song.id != 2  # part of the album in the same folder
    }
    found = snapshot.find(text, limit)
    n_found = len(artists) + len(albums) + len(songs)
    assert len(found.artists) + len(found.albums) + len(found.songs) == min(limit, n_found)
    assert found.songs == songs[: len(found.songs)]
    assert found.artists == artists[: len(found.artists)]
    assert {(name, by) for name, by, _ in found.albums} <= albums
    if len(songs) >= limit:
        assert len(found.artists) + len(found.albums) <= max(limit // 2, 0)
    assert snapshot.songs_with(text, limit) == songs[:limit]


def test_album_search_returns_songs_in_order(tiny_library):
    (found,) = take_snapshot(tiny_library).find("album noise").albums
    assert found == ("Album noise", "Artist noise", 4)
    songs = tiny_library.songs(tiny_library.songs_of_album("Album noise", "Artist noise"))
    assert [song.title for song in songs] == [f"Song noise {n}" for n in range(4)]


def test_album_by_several_artists_is_found_once(tiny_library):
    songs = [song for song in tiny_library.songs() if song.album == "Album noise"]
    tiny_library.edits.edit([songs[0].id], {"artist": "A guest"})
    assert take_snapshot(tiny_library).find("album noise").albums == [("Album noise", "Artist noise", 4)]
    assert tiny_library.songs_of_album("Album noise", "Artist noise") == [song.id for song in songs]
    elsewhere = next(song for song in tiny_library.songs() if song.album != "Album noise")
    tiny_library.edits.edit([elsewhere.id], {"album": "Album noise"})
    assert len(take_snapshot(tiny_library).find("album noise").albums) == 2, "another folder"
    tiny_library.edits.edit([songs[0].id], {"album_artist": "A guest"})
    assert len(take_snapshot(tiny_library).find("album noise").albums) == 3, "an album artist"


@pytest.mark.parametrize(
    ("typed", "artists", "albums"),
    [("artits noise", ["Artist noise"], []), ("albun tones", [], ["Album tones"]), ("zzzzzz", [], [])],
)
def test_typo_is_tolerated_without_exact_match(snapshot, typed, artists, albums):
    found = snapshot.find(typed)
    assert [name for name, _ in found.artists] == artists
    assert [name for name, _, _ in found.albums] == albums


def test_songs_of_artist_match_exact_name(snapshot):
    artists = snapshot.columns.artist
    rows = np.flatnonzero(artists.is_in(["Artist noise"]))
    assert [song.artist for song in snapshot.songs_at(rows)] == ["Artist noise"] * 4
    assert not artists.is_in(["artist noise"]).any()


# --- shared data, and data that must not be shared -------------------------------------------


def shared(snapshot):
    return snapshot.X, snapshot.row_ids, snapshot.index, snapshot.proximity, snapshot.model, snapshot.map


@pytest.mark.parametrize(
    "change",
    [
        lambda lib: lib.set_feedback(1, 1),
        lambda lib: lib.note_change(),
        lambda lib: lib.add_playlists([("mine", None, [1, 3])], "saved"),
        lambda lib: lib.edits.edit([1], {"title": "another", "artist": "Somebody"}),
    ],
    ids=["thumb", "no change", "playlist", "title"],
)
def test_unrelated_change_keeps_rows_and_index(tiny_library, change):
    before = shared(take_snapshot(tiny_library))
    change(tiny_library)
    after = shared(take_snapshot(tiny_library))
    assert all(one is other for one, other in zip(before, after, strict=True))
    assert_agrees(take_snapshot(tiny_library))


def test_new_title_appears_everywhere(tiny_library):
    before = take_snapshot(tiny_library)
    other = before.library.songs()[1].id
    assert before.songs_by_id([other])[0].title == before.names_at(before.rows_of([other]))[0][0]
    tiny_library.edits.edit([other], {"title": "Renamed", "artist": "Somebody", "genre": "Polka", "year": 1933})
    now = take_snapshot(tiny_library)
    row = now.rows_of([other])
    assert now.names_at(row) == [("Renamed", "Somebody")]
    assert now.songs_at(row)[0].title == "Renamed"
    assert [song.id for song in now.find("renamed").songs] == [other]
    assert now.find("somebody").artists == [("Somebody", 1)]
    assert np.flatnonzero(now.columns.artist.is_in(["Somebody"])).tolist() == row.tolist()
    assert now.columns.year[row].tolist() == [1933]
    hits = find_similar(now, before.library.songs()[0].id, 11, max_per_artist=None)
    assert "Renamed" in {hit.song.title for hit in hits}
    assert_agrees(now)


@pytest.mark.parametrize("is_by_another_process", [False, True])
def test_removed_song_disappears_everywhere(tiny_library, is_by_another_process):
    before = take_snapshot(tiny_library)
    find_similar(before, 1)
    title = before.songs_by_id([4])[0].title
    if is_by_another_process:
        with Library.open(tiny_library.folder) as other:
            forget(other, 4)
    else:
        forget(tiny_library, 4)
    now = take_snapshot(tiny_library)
    assert (now.n_songs, now.n_indexed) == (11, 11)
    assert 4 not in now.row_ids
    assert now.rows_of([4]).tolist() == [-1]
    assert now.songs_by_id([4]) == []
    assert title not in {song.title for song in now.find(title).songs}
    assert 4 not in {hit.song.id for hit in find_similar(now, 1, 20, max_per_artist=None)}
    assert_agrees(now)
    with pytest.raises(NotFoundError, match="song 4 does not exist"):
        find_similar(now, 4)


def test_missing_song_has_no_row_until_found(tiny_library):
    path = tiny_library.song(4).path
    tiny_library.files.mark(missing=[path], back=[])
    now = take_snapshot(tiny_library)
    assert (now.n_songs, now.n_indexed) == (11, 11)
    assert 4 not in now.row_ids
    assert_agrees(now)
    tiny_library.files.mark(missing=[], back=[path])
    now = take_snapshot(tiny_library)
    assert now.n_indexed == 12
    assert_agrees(now)


def test_song_removed_during_use_is_left_out(tiny_library):
    """Another process may remove a song after the snapshot has loaded its rows."""
    snapshot = take_snapshot(tiny_library)
    ids = [hit.song.id for hit in find_similar(snapshot, 1, 3, max_per_artist=None)]
    looked = Snapshot(tiny_library, snapshot.revision)
    assert looked.n_indexed == 12
    forget(tiny_library, ids[0])
    assert [hit.song.id for hit in find_similar(looked, 1, 3, max_per_artist=None)] == ids[1:]
    assert ids[0] not in {song.id for song in looked.songs_by_id(looked.row_ids)}
    with pytest.raises(NotFoundError, match="just been removed"):
        _ = looked.songs_at()


def test_reused_id_and_row_are_new_song(tiny_library):
    """The last song is removed, and the next one reuses its id and its row in the file of vectors."""
    before = take_snapshot(tiny_library)
    last = int(tiny_library.models.song_rows(before.record.id).song_ids[-1])
    features = tiny_library.models.features()
    old = before.vectors_at(before.rows_of([last]))[0].copy()
    assert before.index is not None
    with tiny_library.engine.connect() as connection:
        song = dict(connection.execute(schema.songs.select().where(schema.songs.c.id == last)).mappings().one())
        file = dict(connection.execute(schema.files.select().where(schema.files.c.song_id == last)).mappings().one())
    forget(tiny_library, last)
    with tiny_library.write() as connection:
        connection.execute(schema.songs.insert().values(song | {"title": "Another"}))
        connection.execute(schema.files.insert().values(file))
    tiny_library.models.append(before.record.id, [last], features.X[:1].copy(), old[None, ::-1].copy())
    now = take_snapshot(tiny_library)
    np.testing.assert_array_equal(now.vectors_at(now.rows_of([last]))[0], old[::-1])
    assert now.names_at(now.rows_of([last]))[0][0] == "Another"
    assert now.index is not before.index
    assert_agrees(now)


def test_duplicate_is_hidden_until_pair_is_separated(tiny_library):
    tiny_library.duplicates.enter([SamePair(1, 2, 1.0, 0.0)], [])
    folded = take_snapshot(tiny_library)
    (copy, first), *others = folded.representative_of.items()
    assert not others
    assert (folded.n_songs, folded.n_indexed) == (12, 11)
    assert folded.rows_of([copy, first, 3]).tolist() == [folded.rows_of([i])[0] for i in (copy, first, 3)]
    assert len(folded.vectors_at([0, 1])) == 2
    assert_agrees(folded)
    tiny_library.files.mark(missing=[tiny_library.song(first).path], back=[])
    alone = take_snapshot(tiny_library)
    assert alone.representative_of == {}
    assert copy in alone.row_ids
    assert_agrees(alone)


def test_new_map_is_loaded(tiny_library):
    before = take_snapshot(tiny_library)
    ids, places = load_map(tiny_library.models.path(before.record.id))
    save_map(tiny_library.models.path(before.record.id), ids[:-1], places[:-1] + 100.0)
    tiny_library.note_change()
    now = take_snapshot(tiny_library)
    shown = now.map[now.rows_of(ids)]
    np.testing.assert_array_equal(shown[:-1], places[:-1] + 100.0)
    assert np.isnan(shown[-1]).all(), "a song without a place has none"
    assert now.X is before.X


def test_models_have_separate_rows(taught):
    native = take_snapshot(taught)
    record = native.record
    other = type(record)("other", "other", 1.0, 3, record.n_features, record.n_dimensions, kind="learned")
    taught.models.register(other)
    taught.models.append("other", [5, 9, 2], np.ones((3, record.n_features)), np.eye(3, record.n_dimensions))
    taught.models.finish("other")
    seen = take_snapshot(taught, "other")
    assert seen.row_ids.tolist() == [5, 9, 2]
    assert seen.columns.artist.codes.tolist() == native.columns.artist.codes[native.rows_of([5, 9, 2])].tolist()
    assert len(take_snapshot(taught).X) == 200
    assert take_snapshot(taught).X is native.X
