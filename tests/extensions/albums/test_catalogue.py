"""Tests of the list of albums, and of their track order."""

import shutil

import pytest

from musicsim.errors import NotFoundError
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.albums.catalogue import find_album, find_albums, list_albums, songs_of
from musicsim.extensions.albums.request import SORT_KEYS, AlbumListRequest
from tests.sounds import write_song


def test_every_tagged_song_is_on_the_album_of_its_tag(halves):
    albums = list_albums(take_snapshot(halves))
    songs = {song.id: song for song in halves.songs()}
    assert sorted(i for album in albums for i in album.song_ids) == sorted(songs)
    for album in albums:
        own = [songs[i] for i in album.song_ids]
        assert {(song.album, song.artist) for song in own} == {(album.name, album.by)}
        assert album.id == min(album.song_ids)
        assert album.duration_s == pytest.approx(sum(song.duration_s for song in own))
        assert album.year in {song.year for song in own}


def test_album_artist_joins_guests_and_separates_equal_names(tiny_library):
    ids = [song.id for song in tiny_library.songs()]
    tiny_library.edits.edit(ids, {"album": "Greatest Hits"})
    assert len(list_albums(take_snapshot(tiny_library))) == 3, "one per artist"
    tiny_library.edits.edit(ids, {"album_artist": "Various Artists"})
    (album,) = list_albums(take_snapshot(tiny_library))
    assert len(album.song_ids) == 12
    with pytest.raises(NotFoundError, match=r"no album 'Best'"):
        find_album(take_snapshot(tiny_library), "Best")


def test_untagged_folder_is_an_album_if_its_name_means_something(store, tmp_path):
    for folder in ("Night Drive/CD1", "Night Drive/CD2", "Downloads", "Alone"):
        for number in range(1 if folder == "Alone" else 2):
            seed = len(folder) + 10 * number + len(list(tmp_path.rglob("*.flac")))
            write_song(tmp_path / "music" / folder / f"{number + 1} {folder[-3:]}.flac", seed=seed, seconds=2)
    store.add(tmp_path / "music", n_workers=1)
    snapshot = take_snapshot(store)
    (album,) = list_albums(snapshot)
    assert (album.name, album.by, len(album.song_ids)) == ("Night Drive", "", 4)
    assert [song.path.parent.name for song in songs_of(snapshot, album)] == ["CD1", "CD1", "CD2", "CD2"]


def test_songs_are_in_track_order_or_by_disc(halves):
    first, second, *_ = sorted(halves.songs(), key=lambda song: (song.artist, song.track))
    halves.edits.edit([first.id], {"track": 7})
    snapshot = take_snapshot(halves)
    album = find_album(snapshot, first.album)
    assert [song.id for song in songs_of(snapshot, album)] == [second.id, first.id]
    halves.edits.edit([first.id, second.id], {"track": 1})  # two discs: the order of the files
    snapshot = take_snapshot(halves)
    assert [song.id for song in songs_of(snapshot, album)] == [first.id, second.id]


def test_missing_songs_are_on_no_album(tiny_library, own_music):
    shutil.rmtree(own_music / "Artist noise")
    (own_music / "Artist tones" / "01 Song tones 0.flac").unlink()
    tiny_library.add(own_music, n_workers=1)
    albums = list_albums(take_snapshot(tiny_library))
    assert sorted((album.name, len(album.song_ids)) for album in albums) == [("Album clicks", 4), ("Album tones", 3)]


@pytest.mark.parametrize("sort", SORT_KEYS)
def test_albums_are_filtered_and_sorted(halves, sort):
    snapshot = take_snapshot(halves)
    values = {
        "name": lambda album: album.name, "artist": lambda album: album.by, "year": lambda album: album.year,
        "songs": lambda album: len(album.song_ids), "minutes": lambda album: album.duration_s,
    }  # fmt: skip
    found = find_albums(snapshot, AlbumListRequest(sort=sort, descending=True))
    assert [*map(values[sort], found)] == sorted(map(values[sort], found), reverse=True)
    assert len(found) == 6
    assert {album.name for album in find_albums(snapshot, AlbumListRequest(search="ARTIST tones b"))} == {"Tones B"}


def test_album_is_found_by_id_name_or_label(halves):
    snapshot = take_snapshot(halves)
    (album,) = (album for album in list_albums(snapshot) if album.name == "Noise B")
    for wanted in (album.id, str(album.id), "noise b", "Noise B — Artist noise"):
        assert find_album(snapshot, wanted) == album
    halves.edits.edit([song.id for song in halves.songs()], {"album": "Live"})
    with pytest.raises(NotFoundError, match=r"3 albums are called 'live'. Give an id: \d+ \(Live — Artist"):
        find_album(take_snapshot(halves), "live")
    with pytest.raises(NotFoundError):
        find_album(snapshot, "9" * 30)
