"""Tests with a real server: matching, starred songs, playlists and playback."""

import shutil

import pytest

from musicsim.errors import NotFoundError, ServerError
from musicsim.extensions.music_servers.client import Subsonic
from musicsim.extensions.music_servers.connections import Connection, Connections
from musicsim.extensions.music_servers.fetch import fetch_missing
from musicsim.extensions.music_servers.lists import delete_list, save_list
from musicsim.extensions.music_servers.server_songs import ServerSongs
from musicsim.extensions.music_servers.sync import remove, sync
from musicsim.library import Library
from musicsim.progress import no_progress
from tests.extensions.music_servers.serving import playlist_songs, supysonic
from tests.sounds import open_library, write_collection, write_song
from tests.waiting import until

N_SONGS = 12


@pytest.fixture(scope="module")
def music(tmp_path_factory):
    return write_collection(tmp_path_factory.mktemp("music"), seconds=2.0)


@pytest.fixture(scope="module")
def served(music, tmp_path_factory):
    copy = tmp_path_factory.mktemp("served") / "music"
    shutil.copytree(music, copy)
    with supysonic(tmp_path_factory.mktemp("supysonic"), copy) as server:
        yield server


@pytest.fixture(scope="module")
def added(music, tmp_path_factory):
    """Build a library of the same music, in another folder."""
    with open_library(tmp_path_factory.mktemp("library")) as library:
        library.add(music)
        folder = library.folder
    return folder


@pytest.fixture
def library(added, tmp_path):
    shutil.copytree(added, tmp_path / "library")
    with Library.open(tmp_path / "library") as library:
        yield library


def connected(library, connection):
    Connections(library).put(connection)
    return connection


def ask(connection, call, **parameters):
    return Subsonic(connection).ask(call, **parameters)


@pytest.mark.long
def test_songs_match_by_path_and_resync_reads_none(library, served):
    connection = connected(library, served.connection())
    until(Subsonic(connection).state)  # changes within the same second cannot be distinguished
    report = sync(library, connection, no_progress)
    assert (report.n_songs, report.n_matched, report.matched_by) == (N_SONGS, N_SONGS, {"path": N_SONGS})
    for song in library.songs():
        server_id = ServerSongs(library).ids_of([song.id], "home")[song.id]
        assert ask(connection, "getSong", id=server_id)["song"]["title"] == song.title
        assert ServerSongs(library).find_song(server_id)[1] == song.id
    again = sync(library, Connections(library).get("home"), no_progress)
    assert (again.is_unchanged, again.n_matched, again.n_new, again.n_changed) == (True, N_SONGS, 0, 0)


def test_songs_match_by_tags_and_length(music, library, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    for number, path in enumerate(sorted(music.rglob("*.flac"))):
        shutil.copy(path, other / f"{number:03d}.flac")
    with supysonic(tmp_path / "state", other) as server:
        report = sync(library, connected(library, server.connection()), no_progress)
    assert report.matched_by == {"tags": N_SONGS}


def test_stars_and_ratings_are_imported_and_undone(library, served):
    first, second, third = library.songs()[:3]
    users = [connected(library, served.connection(user, name=f"home {user}")) for user in ("anna", "ben")]
    for connection in users:
        sync(library, connection, no_progress)
    ids = ServerSongs(library).ids_of([first.id, second.id, third.id])
    ask(users[0], "star", id=ids[first.id])
    ask(users[0], "setRating", id=ids[second.id], rating=4)
    ask(users[1], "star", id=ids[third.id])
    try:
        for connection in users:
            sync(library, Connections(library).get(connection.name), no_progress, everything=True)
        assert library.tags() == {
            first.id: [("loved", 100.0)],
            second.id: [("rated 4", 100.0)],
            third.id: [("loved", 100.0)],
        }
        of_anna = next(e for e in library.listening.imports() if e.listener == "anna")
        library.listening.undo(of_anna.id)
        assert library.tags() == {third.id: [("loved", 100.0)]}
    finally:
        ask(users[0], "unstar", id=ids[first.id])
        ask(users[0], "setRating", id=ids[second.id], rating=0)
        ask(users[1], "unstar", id=ids[third.id])
    sync(library, Connections(library).get("home ben"), no_progress)
    assert library.tags() == {}, "what is no longer starred there is no longer loved here"


def test_playlist_is_created_updated_and_deleted(library, served):
    connection = connected(library, served.connection())
    sync(library, connection, no_progress)
    client, ids = Subsonic(connection), [song.id for song in library.songs()]
    theirs = client.create_playlist("Evening", [ServerSongs(library).ids_of(ids[:1])[ids[0]]])
    saved = save_list(library, connection, "Evening", ids[3:6], "because")
    assert saved.id != theirs

    def there(list_id):
        return [ServerSongs(library).find_song(i)[1] for i in playlist_songs(client, list_id)]

    assert there(saved.id) == ids[3:6]
    assert ask(connection, "getPlaylist", id=saved.id)["playlist"]["comment"] == "because"
    again = save_list(library, connection, "Evening", [ids[7], ids[1], ids[7]], "other reasons")
    assert again.id == saved.id
    assert there(saved.id) == [ids[7], ids[1], ids[7]]
    client.delete_playlist(saved.id)
    renewed = save_list(library, connection, "Evening", ids[:2], "it was deleted there")
    assert there(renewed.id) == ids[:2]
    delete_list(library, connection, "Evening")
    assert client.playlist_ids("Evening") == {theirs}
    assert there(theirs) == ids[:1]
    with pytest.raises(NotFoundError, match="Evening"):
        delete_list(library, connection, "Evening")
    client.delete_playlist(theirs)


@pytest.mark.long
def test_songs_without_local_file_are_analyzed_and_played(library, served, tmp_path):
    extra = write_song(served.music / "Guest" / "One.flac", "noise", seed=77, seconds=3.0, title="One", artist="Guest")
    served.scan()
    try:
        connection = connected(library, served.connection())
        report = sync(library, connection, no_progress)
        assert (report.n_matched, report.n_unmatched) == (N_SONGS, 1)
        done = fetch_missing(library, connection, no_progress)
        assert (done.n_added, done.failures) == (1, [])
        (song,) = (s for s in library.songs() if s.artist == "Guest")
        assert len(library.frame_files.frames(song.content_hash).mfcc) > 9
        assert not song.is_missing
        assert not song.path.exists()
        assert not list((library.folder / "scratch").rglob("*.flac")), "no copy is kept"
        client, server_id = Subsonic(connection), ServerSongs(library).ids_of([song.id], "home")[song.id]
        data = extra.read_bytes()
        assert client.sound(server_id, "raw", 100, 50) == (data[100:150], len(data))
        assert client.sound(server_id, "raw", 0, 1 << 30) == (data, len(data))
        assert client.sound(server_id, "raw", len(data) + 5, 10) == (b"", len(data))
        assert sync(library, Connections(library).get("home"), no_progress).n_unmatched == 0
    finally:
        extra.unlink()
        served.scan()  # possibly in the same second
    gone = sync(library, Connections(library).get("home"), no_progress)
    assert (gone.n_gone, gone.n_songs) == (1, N_SONGS)
    assert [s.artist for s in library.missing_songs()] == ["Guest"]
    remove(library, "home")
    assert len(library.songs(missing=True)) == N_SONGS
    assert Connections(library).all() == []


def test_login_problems_give_clear_error(served):
    right = served.connection()
    with pytest.raises(ServerError, match="check the user and the password"):
        Subsonic(Connection("home", right.address, "anna", "wrong", "password")).ping()
    with pytest.raises(ServerError, match="does not accept tokens"):
        Subsonic(Connection("home", right.address, "anna", right.secret)).ping()
