"""Tests of faulty servers: each fault is one sentence, without partial writes or leaked secrets."""

import hashlib
import json
import logging
import re
import stat
import time

import pytest
import sqlalchemy as sa

from musicsim.errors import LibraryError, NotFoundError, ServerError
from musicsim.extensions.music_servers.client import Subsonic, song_of
from musicsim.extensions.music_servers.connections import SERVERS_FILE, Connection, Connections, place_of
from musicsim.extensions.music_servers.fetch import fetch_missing
from musicsim.extensions.music_servers.lists import save_list
from musicsim.extensions.music_servers.server_songs import ServerSongs
from musicsim.extensions.music_servers.sync import sync
from musicsim.library.media.sound import has_sound
from musicsim.progress import no_progress
from tests.extensions.music_servers.serving import enter, having, ok, scripted
from tests.simultaneous import count_lost
from tests.sounds import open_library, write_song
from tests.waiting import PATIENCE_S

SECRET = "red apple"


@pytest.fixture
def library(tmp_path):
    with open_library(tmp_path / "library") as library:
        yield library


def entry(number, **more):
    return {"id": f"so-{number}", "title": f"Song {number}", "artist": "Me", "duration": 60} | more


def connected(library, connection):
    Connections(library).put(connection)
    return connection


# --- requests -------------------------------------------------------------------------------


def test_password_is_sent_as_salted_token(caplog):
    caplog.set_level(logging.DEBUG)
    with scripted(lambda *_: {}) as server:
        client = Subsonic(server.connection())
        client.ping()
        client.ping()
    (_, first, headers), (_, second, _) = server.asked
    assert first["t"] == hashlib.md5((SECRET + first["s"]).encode()).hexdigest()
    assert first["s"] != second["s"]
    said = json.dumps([server.asked, headers, caplog.text])
    assert SECRET not in said
    assert first["t"] not in caplog.text
    assert SECRET not in repr(server.connection())


def test_api_key_is_sent_alone_and_password_in_body():
    with scripted(lambda *_: {}) as server:
        Subsonic(server.connection(sends="key", user="")).ping()
        Subsonic(server.connection(sends="password")).ping()
    (_, with_key, _), (_, with_password, headers) = server.asked
    assert with_key["apiKey"] == SECRET
    assert "u" not in with_key
    assert with_password["p"] == "enc:" + SECRET.encode().hex()
    assert headers["Content-Type"] == "application/x-www-form-urlencoded"


def test_redirect_is_not_followed():
    with scripted(lambda *_: {}) as other:

        def elsewhere(handler):
            handler.send_response(302)
            handler.send_header("Location", f"{other.address}/rest/ping.view?stolen=1")
            handler.end_headers()

        with scripted(lambda *_: elsewhere) as server, pytest.raises(ServerError, match="redirects to"):
            Subsonic(server.connection()).ping()
    assert other.asked == []


# --- stored data -------------------------------------------------------------------------------


def test_credentials_file_is_private(library):
    known = Connections(library)
    known.put(Connection("home", "http://127.0.0.1:4533/rest/", "anna", SECRET))
    file = library.folder / SERVERS_FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert known.get("home").address == "http://127.0.0.1:4533"
    with pytest.raises(NotFoundError, match="Connected servers: home"):
        known.get("work")
    file.write_text(file.read_text().replace('"sends"', '"sent"'))
    with pytest.raises(LibraryError, match="cannot be read") as caught:
        known.all()
    assert SECRET not in str(caught.value)


def test_no_simultaneous_change_of_a_server_is_lost(library):
    def change(library, side, number):
        known = Connections(library)
        if number % 3 == 0:
            known.put(Connection(f"server {side}", "http://127.0.0.1:4533", "anna", SECRET))
        elif number % 3 == 1:
            known.note(f"server {side}", modified=str(number))
        else:
            known.remove(f"server {side}")

    def kept(library, side, number):
        modified = {c.name: c.modified for c in Connections(library).all()}.get(f"server {side}")
        return modified == ("", str(number), None)[number % 3]

    assert count_lost(library.folder, change, n_pairs=60, kept=kept) == 0


@pytest.mark.parametrize(
    "address",
    ["", "home", "ftp://home", "file:///etc", "http://", "http://a:b@home", "http://home?x=1", "http://home:port"],
)
def test_accepts_only_plain_http_addresses(address):
    with pytest.raises(LibraryError, match="is not a valid server address"):
        Connection("home", address, "anna", SECRET)


@pytest.mark.parametrize("path", ["../../../etc/passwd", "/etc/passwd", "..\\..\\x", "a/../../../../b", "", "././."])
def test_server_paths_stay_in_their_folder(library, path):
    place = place_of(library, "home", "so-1", path)
    below = library.folder / "servers" / "home"
    assert place.resolve().is_relative_to(below.resolve())
    assert place != below


# --- faults of servers ----------------------------------------------------------------------------


def endless(handler):
    handler.send_response(200)
    handler.end_headers()
    while True:  # until the client has gone
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.01)


def silent(handler):
    handler.connection.recv(1)  # returns once the client has gone


def cut(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "10000")
    handler.end_headers()
    handler.wfile.write(b'{"subsonic-response"')


ODD = {
    "broken JSON": (b'{"subsonic-response": {"status": "ok", ', "not valid Subsonic JSON"),
    "XML": (b'<subsonic-response status="ok"/>', "not valid Subsonic JSON"),
    "another shape": (b'[1, 2, {"a": []}]', "not valid Subsonic JSON"),
    "deep": (b"[" * 100_000, "not valid Subsonic JSON"),
    "no status": (b'{"subsonic-response": 7}', "not valid Subsonic JSON"),
    "dies": (lambda handler: handler.connection.close(), "partway through|in time"),
    "dies in the middle": (cut, "partway through"),
    "a trickle": (endless, "took more than"),
    "silence": (silent, "in time"),
    "a refusal": ((50, "not allowed"), "not allowed"),
    "a wrong password": ((40, "Wrong username or password"), "check the user"),
    "no tokens": ((41, "Token authentication not supported"), "does not accept tokens"),
}


@pytest.mark.long
@pytest.mark.parametrize("what", ODD)
def test_odd_responses_give_clear_error(what):
    answer, words = ODD[what]
    with scripted(lambda *_: answer) as server:
        limits = {"silence": {"silence_s": 0.3}, "a trickle": {"answer_s": 0.5}}.get(what, {})
        client = Subsonic(server.connection(), **{"silence_s": PATIENCE_S, "answer_s": PATIENCE_S} | limits)
        with pytest.raises(ServerError, match=words) as caught:
            client.ping()
    said = str(caught.value)
    assert said.startswith("home: ")
    assert said.endswith((".", "s."))
    assert "\n" not in said
    assert not re.search("[?&]t=", said)
    assert caught.value.__cause__ is None or "t=" not in str(caught.value.__cause__)


def test_unreachable_server_gives_clear_error():
    with scripted(lambda *_: {}) as server:
        connection = server.connection()
    with pytest.raises(ServerError, match="cannot be reached"):
        Subsonic(connection).ping()


@pytest.mark.long
def test_server_failure_during_sync_changes_nothing(library):
    songs = [entry(i) for i in range(1200)]
    alive = having(songs)

    def dying(call, values):
        is_late = call == "search3" and int(values["songOffset"]) >= 500
        return b"oops" if is_late else alive(call, values)

    with scripted(alive) as server:
        before = sync(library, connected(library, server.connection()), no_progress)
    assert before.n_songs == 1200
    known = ServerSongs(library).read_songs("home")
    songs[:] = [entry(i, title="other") for i in range(600)]
    with scripted(dying) as server, pytest.raises(ServerError, match="not valid"):
        sync(library, connected(library, server.connection()), no_progress)
    assert ServerSongs(library).read_songs("home") == known


def test_empty_listing_removes_no_songs(library):
    songs = [entry(1)]
    with scripted(having(songs)) as server:
        connection = connected(library, server.connection())
        sync(library, connection, no_progress)
        songs.clear()
        with pytest.raises(ServerError, match="no longer lists any songs"):
            sync(library, connection, no_progress)
    assert list(ServerSongs(library).read_songs("home")) == ["so-1"]


def test_page_without_songs_is_not_last(library):
    songs = [entry(i, id="") for i in range(500)] + [entry(501)]
    with scripted(having(songs)) as server:
        assert sync(library, connected(library, server.connection()), no_progress).n_songs == 1


def test_invalid_entries_are_skipped(library):
    odd = [
        None,
        "song",
        {"title": "no id"},
        entry(1, id="x" * 5000),
        entry(1, id="a\0b"),
        entry(1, id=["1"]),
        entry(2, isDir=True),
        entry(3, title="\ud800 lone", artist=7, album=None, duration="long", playCount=-3, userRating=99),
        entry(4, title="y" * 5000, path="z" * 5000, duration=float("nan"), played="yesterday", starred=""),
        entry(5, id=12),
    ]
    with scripted(having(odd)) as server:
        report = sync(library, connected(library, server.connection()), no_progress)
    assert report.left_out == {"not a song": 2, "no valid id": 4, "a folder or a video": 1}
    songs = ServerSongs(library).read_songs("home")
    assert sorted(songs) == ["12", "so-3", "so-4"]
    assert (songs["so-3"].plays, songs["so-3"].rating, songs["so-3"].duration_s) == (0, 0, None)
    assert len(songs["so-4"].title) == 1000
    assert song_of(entry(1, played="2026-01-02T03:04:05Z")).played_at == 1767323045.0


def test_repeated_page_ends_listing(library):
    page = [entry(i) for i in range(500)]
    with scripted(lambda call, _: {"searchResult3": {"song": page}} if call == "search3" else {}) as server:
        report = sync(library, connected(library, server.connection()), no_progress)
    assert report.n_songs == 500
    assert [call for call, _, _ in server.asked].count("search3") == 2


def test_empty_search_falls_back_to_albums(library):
    def answer(call, values):
        if call == "getAlbumList2":
            start = int(values["offset"])
            return {"albumList2": {"album": [{"id": f"al-{i}"} for i in range(start, min(3, start + 500))]}}
        if call == "getAlbum":
            return {"album": {"song": entry(values["id"])}}  # one entry, without a list around it
        return {}

    with scripted(answer) as server:
        report = sync(library, connected(library, server.connection()), no_progress)
    assert report.n_songs == 3


def test_scan_ignores_server_songs(library, tmp_path):
    enter(library, 1, place_of(library, "home", "so-1", "Me/One.flac"))
    enter(library, 2, tmp_path / "gone.flac")
    library.add(tmp_path)
    assert [song.id for song in library.missing_songs()] == [2]


# --- matching ----------------------------------------------------------------------------


@pytest.mark.long
def test_ambiguous_match_waits_for_choice(library, tmp_path):
    music = tmp_path / "music"
    for album, seconds in (("First", 2.0), ("Second", 2.5), ("Third", 9.0)):
        write_song(music / album / "1.flac", seed=len(album), seconds=seconds, title="One", artist="Me", album=album)
    library.add(music)
    ids = {song.album: song.id for song in library.songs()}
    listed = [
        entry(1, title="One", duration=2),
        entry(2, title="One", duration=2, album="Second"),
        entry(3, title="One", duration=9),
        entry(4, title="One", duration=60),
    ]
    with scripted(having(listed)) as server:
        connection = connected(library, server.connection())
        report = sync(library, connection, no_progress)
        assert (report.n_matched, report.n_ambiguous) == (2, 2)
        songs = ServerSongs(library).read_songs("home")
        assert songs["so-2"].song_id == ids["Second"], "the album tells them apart"
        assert songs["so-3"].song_id == ids["Third"], "the length does"
        assert set(songs["so-1"].candidates) == {ids["First"], ids["Second"]}
        assert set(songs["so-4"].candidates) == set(ids.values())
        ServerSongs(library).choose("home", "so-1", ids["First"])
        ServerSongs(library).choose("home", "so-4", None)
        report = sync(library, connection, no_progress, everything=True)
    assert (report.n_matched, report.n_ambiguous, report.n_unmatched) == (3, 0, 1)
    assert ServerSongs(library).find_song("1") == ("home", ids["First"])


def test_path_distinguishes_songs_with_same_names(library, tmp_path):
    for song_id in (1, 2):
        enter(library, song_id, tmp_path / "Me" / f"Album {song_id}" / "01 One.flac")
    listed = [entry(i, title="One", path=f"Me/Album {i}/01 One.flac") for i in (1, 2)]
    listed.append(entry(3, title="Another", artist="Somebody", path="Somebody/01 One.flac"))
    with scripted(having(listed)) as server:
        report = sync(library, connected(library, server.connection()), no_progress)
    assert report.matched_by == {"path": 2}
    assert [ServerSongs(library).find_song(f"so-{i}") for i in (1, 2, 3)] == [("home", 1), ("home", 2), None]


def test_recording_id_matches_despite_names(library, tmp_path):
    mbid = "0b5c5b9e-8b0a-4c0e-9d2f-1c2d3e4f5a6b"
    path = write_song(tmp_path / "music" / "1.flac", seconds=2.0, title="One", artist="Me", musicbrainz_trackid=mbid)
    library.add(path.parent)
    listed = [entry(1, title="Eins", artist="Ich", duration=2, musicBrainzId=mbid.upper(), path="a/b.mp3")]
    with scripted(having(listed)) as server:
        assert sync(library, connected(library, server.connection()), no_progress).matched_by == {"MusicBrainz id": 1}


# --- plays, stars and ratings ----------------------------------------------------------------------------


def test_plays_are_imported_once_and_incrementally(library, tmp_path):
    enter(library, 1, tmp_path / "1.flac", title="Song 1")
    (song,) = library.songs()
    listed = [entry(1, playCount=3), entry(2, playCount=5)]
    answers = {
        "getIndexes": {"indexes": {"lastModified": 77}},
        "getAlbumList2": {"albumList2": {"album": [{"id": "al-1"}]}},
        "getStarred2": {"starred2": {"song": [entry(1)]}},
    }

    def answer(call, values):
        return {"album": {"song": listed}} if call == "getAlbum" else having(listed, **answers)(call, values)

    with scripted(answer) as server:
        connection = connected(library, server.connection())
        sync(library, connection, no_progress)
        assert library.listening.play_counts() == {song.id: 3}
        assert library.listening.imports()[0].listener == "anna"
        revision = library.revision
        listed[0]["playCount"] = 4
        server.asked.clear()
        report = sync(library, Connections(library).get("home"), no_progress)
        assert report.is_unchanged
        assert "search3" not in {call for call, _, _ in server.asked}
        assert library.listening.play_counts() == {song.id: 4}
        assert library.tags() == {song.id: [("loved", 100.0)]}
        assert len(library.listening.imports()) == 2, "one of plays and one of tags: the latest takes its own place"
        assert library.revision > revision
        revision = library.revision
        sync(library, Connections(library).get("home"), no_progress)
        assert library.revision == revision, "nothing new is no change"


@pytest.mark.long
def test_song_names_are_read_once_per_sync(library, tmp_path):
    for song_id in (1, 2):
        enter(library, song_id, tmp_path / f"{song_id}.flac", title=f"Song {song_id}")
    read = []
    is_reading = "songs.mb_recording_id, songs.id IN"
    sa.event.listen(
        library.engine, "before_cursor_execute", lambda *args: read.append(args[2]) if is_reading in args[2] else None
    )
    listed = [entry(1, playCount=3, starred="2026-01-01"), entry(2), entry(9, title="Not here", playCount=1)]
    with scripted(having(listed)) as server:
        connection = connected(library, server.connection())
        report = sync(library, connection, no_progress)
        assert (report.n_matched, len(report.listening), len(read)) == (2, 2, 1)
        del listed[2]
        listed[0]["playCount"] = 4
        sync(library, connection, no_progress)
        assert library.listening.play_counts() == {1: 4}
        assert len(read) == 1, "songs that are known need no names"


# --- sound --------------------------------------------------------------------------------------


@pytest.mark.long
def test_mismatched_file_is_skipped(library, tmp_path):
    sounds = {f"so-{i}": write_song(tmp_path / f"{i}.flac", seed=i, seconds=2.0 + i).read_bytes() for i in (1, 2, 3)}
    listed = [entry(1, duration=3), entry(2, duration=90), entry(3, duration=5), entry(4), entry(5, path="x.flac")]

    def sound(data):
        def write(handler):
            handler.send_response(200)
            handler.send_header("Content-Type", "audio/flac")
            handler.send_header("Content-Length", str(len(data)))
            handler.end_headers()
            handler.wfile.write(data)

        return write

    def answer(call, values):
        if call == "download" and values["id"] == "so-3":
            return (50, "no right to download")
        if call in ("download", "stream"):
            data = sounds.get(values["id"], b"nonsense")
            return (70, "not found") if values["id"] == "so-4" else sound(data)
        return having(listed)(call, values)

    with scripted(answer) as server:
        connection = connected(library, server.connection())
        sync(library, connection, no_progress)
        done = fetch_missing(library, connection, no_progress)
        assert (done.n_wanted, done.n_added, len(done.failures)) == (5, 2, 3)
        assert {song.title for song in library.songs()} == {"Song 1", "Song 3"}
        assert all(has_sound(library, song) for song in library.songs())
        others = "\n".join(done.failures)
        assert "Song 2 — Me: the server sent 4 s of audio but lists 90 s" in others
        assert "not found" in others, others
        assert str(library.folder) not in others
        sync(library, connection, no_progress, everything=True)
        assert fetch_missing(library, connection, no_progress).n_wanted == 1, "what was no use is left alone"


def test_playlist_without_server_songs_is_not_saved(library):
    with scripted(lambda *_: {}) as server, pytest.raises(NotFoundError, match="has none of the songs in “Evening”"):
        save_list(library, server.connection(), "Evening", [1, 2], "")
    assert server.asked == []
    assert ok({})["subsonic-response"]["status"] == "ok"
