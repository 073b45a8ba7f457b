"""Whatever a server does, it costs one sentence: nothing is half written, and no secret is told."""

import hashlib
import json
import logging
import re
import stat
import time

import pytest
import sqlalchemy as sa

from musicsim.errors import LibraryError, NotFoundError, ServerError
from musicsim.explorer.progress import silent
from musicsim.extensions.music_servers.client import Subsonic, song_of
from musicsim.extensions.music_servers.connections import SERVERS_FILE, Connection, Connections, has_sound, place_of
from musicsim.extensions.music_servers.fetch import fetch_missing
from musicsim.extensions.music_servers.lists import save_list
from musicsim.extensions.music_servers.server_songs import ServerSongs
from musicsim.extensions.music_servers.sync import sync
from tests.extensions.music_servers.serving import enter, having, ok, scripted
from tests.sounds import open_library, write_song

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


# --- what is sent -------------------------------------------------------------------------------


def test_a_password_is_sent_as_token_and_salt_and_never_twice_the_same(caplog):
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


def test_an_api_key_is_sent_without_a_user_and_a_password_in_no_address():
    with scripted(lambda *_: {}) as server:
        Subsonic(server.connection(sends="key", user="")).ping()
        Subsonic(server.connection(sends="password")).ping()
    (_, with_key, _), (_, with_password, headers) = server.asked
    assert with_key["apiKey"] == SECRET
    assert "u" not in with_key
    assert with_password["p"] == "enc:" + SECRET.encode().hex()
    assert headers["Content-Type"] == "application/x-www-form-urlencoded"


def test_a_redirect_is_not_followed_and_the_other_server_hears_nothing():
    with scripted(lambda *_: {}) as other:

        def elsewhere(handler):
            handler.send_response(302)
            handler.send_header("Location", f"{other.address}/rest/ping.view?stolen=1")
            handler.end_headers()

        with scripted(lambda *_: elsewhere) as server, pytest.raises(ServerError, match="sends requests on to"):
            Subsonic(server.connection()).ping()
    assert other.asked == []


# --- what is kept -------------------------------------------------------------------------------


def test_the_file_of_secrets_is_for_its_owner_only_and_errors_do_not_quote_it(library):
    known = Connections(library)
    known.put(Connection("home", "http://127.0.0.1:4533/rest/", "anna", SECRET))
    file = library.folder / SERVERS_FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert known.get("home").address == "http://127.0.0.1:4533"
    with pytest.raises(NotFoundError, match="there are: home"):
        known.get("work")
    file.write_text(file.read_text().replace('"sends"', '"sent"'))
    with pytest.raises(LibraryError, match="cannot be read") as caught:
        known.all()
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    ["", "home", "ftp://home", "file:///etc", "http://", "http://a:b@home", "http://home?x=1", "http://home:port"],
)
def test_only_plain_http_addresses_are_taken(address):
    with pytest.raises(LibraryError, match="is no address"):
        Connection("home", address, "anna", SECRET)


@pytest.mark.parametrize("path", ["../../../etc/passwd", "/etc/passwd", "..\\..\\x", "a/../../../../b", "", "././."])
def test_no_path_of_a_server_leads_out_of_its_folder(library, path):
    place = place_of(library, "home", "so-1", path)
    below = library.folder / "servers" / "home"
    assert place.resolve().is_relative_to(below.resolve())
    assert place != below


# --- what servers do ----------------------------------------------------------------------------


def endless(handler):
    handler.send_response(200)
    handler.end_headers()
    for _ in range(1000):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.01)


def cut(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "10000")
    handler.end_headers()
    handler.wfile.write(b'{"subsonic-response"')


ODD = {
    "broken JSON": (b'{"subsonic-response": {"status": "ok", ', "no answer of a Subsonic server"),
    "XML": (b'<subsonic-response status="ok"/>', "no answer of a Subsonic server"),
    "another shape": (b'[1, 2, {"a": []}]', "no answer of a Subsonic server"),
    "deep": (b"[" * 100_000, "no answer of a Subsonic server"),
    "no status": (b'{"subsonic-response": 7}', "no answer of a Subsonic server"),
    "dies": (lambda handler: handler.connection.close(), "broke off|in time"),
    "dies in the middle": (cut, "broke off"),
    "a trickle": (endless, "took more than"),
    "silence": (lambda _: time.sleep(1.5), "in time"),
    "a refusal": ((50, "not allowed"), "not allowed"),
    "a wrong password": ((40, "Wrong username or password"), "check the user"),
    "no tokens": ((41, "Token authentication not supported"), "takes no tokens"),
}


@pytest.mark.parametrize("what", ODD)
def test_an_odd_answer_is_one_sentence(what):
    answer, words = ODD[what]
    with scripted(lambda *_: answer) as server:
        client = Subsonic(server.connection(), silence_s=0.3, answer_s=0.5)
        with pytest.raises(ServerError, match=words) as caught:
            client.ping()
    said = str(caught.value)
    assert said.startswith("home: ")
    assert said.endswith((".", "s."))
    assert "\n" not in said
    assert not re.search("[?&]t=", said)
    assert caught.value.__cause__ is None or "t=" not in str(caught.value.__cause__)


def test_a_server_that_is_not_there_is_one_sentence():
    with scripted(lambda *_: {}) as server:
        connection = server.connection()
    with pytest.raises(ServerError, match="cannot be reached"):
        Subsonic(connection).ping()


def test_a_server_that_dies_in_the_middle_of_a_sync_changes_nothing(library):
    songs = [entry(i) for i in range(1200)]
    alive = having(songs)

    def dying(call, values):
        is_late = call == "search3" and int(values["songOffset"]) >= 500
        return b"oops" if is_late else alive(call, values)

    with scripted(alive) as server:
        before = sync(library, connected(library, server.connection()), silent)
    assert before.n_songs == 1200
    known = ServerSongs(library).of("home")
    songs[:] = [entry(i, title="other") for i in range(600)]
    with scripted(dying) as server, pytest.raises(ServerError, match="no answer"):
        sync(library, connected(library, server.connection()), silent)
    assert ServerSongs(library).of("home") == known


def test_a_server_that_lists_nothing_any_more_takes_nothing_away(library):
    songs = [entry(1)]
    with scripted(having(songs)) as server:
        connection = connected(library, server.connection())
        sync(library, connection, silent)
        songs.clear()
        with pytest.raises(ServerError, match="lists no songs any more"):
            sync(library, connection, silent)
    assert list(ServerSongs(library).of("home")) == ["so-1"]


def test_a_page_without_a_song_is_not_the_last(library):
    songs = [entry(i, id="") for i in range(500)] + [entry(501)]
    with scripted(having(songs)) as server:
        assert sync(library, connected(library, server.connection()), silent).n_songs == 1


def test_entries_that_are_no_songs_are_left_out_and_the_rest_is_taken(library):
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
        report = sync(library, connected(library, server.connection()), silent)
    assert report.left_out == {"no entry of a song": 2, "no id, or one that is too long": 4, "a folder or a video": 1}
    songs = ServerSongs(library).of("home")
    assert sorted(songs) == ["12", "so-3", "so-4"]
    assert (songs["so-3"].plays, songs["so-3"].rating, songs["so-3"].duration_s) == (0, 0, None)
    assert len(songs["so-4"].title) == 1000
    assert song_of(entry(1, played="2026-01-02T03:04:05Z")).played_at == 1767323045.0


def test_a_server_that_gives_the_same_page_again_and_again_comes_to_an_end(library):
    page = [entry(i) for i in range(500)]
    with scripted(lambda call, _: {"searchResult3": {"song": page}} if call == "search3" else {}) as server:
        report = sync(library, connected(library, server.connection()), silent)
    assert report.n_songs == 500
    assert [call for call, _, _ in server.asked].count("search3") == 2


def test_songs_are_read_album_by_album_where_a_search_for_nothing_finds_nothing(library):
    def answer(call, values):
        if call == "getAlbumList2":
            start = int(values["offset"])
            return {"albumList2": {"album": [{"id": f"al-{i}"} for i in range(start, min(3, start + 500))]}}
        if call == "getAlbum":
            return {"album": {"song": entry(values["id"])}}  # one entry, without a list around it
        return {}

    with scripted(answer) as server:
        report = sync(library, connected(library, server.connection()), silent)
    assert report.n_songs == 3


def test_a_scan_of_a_folder_around_the_library_leaves_songs_of_servers_alone(library, tmp_path):
    enter(library, 1, place_of(library, "home", "so-1", "Me/One.flac"))
    enter(library, 2, tmp_path / "gone.flac")
    library.add(tmp_path)
    assert [song.id for song in library.missing_songs()] == [2]


# --- what is matched ----------------------------------------------------------------------------


def test_a_song_that_may_be_one_of_two_waits_for_a_person_and_stays_what_was_chosen(library, tmp_path):
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
        report = sync(library, connection, silent)
        assert (report.n_matched, report.n_ambiguous) == (2, 2)
        songs = ServerSongs(library).of("home")
        assert songs["so-2"].song_id == ids["Second"], "the album tells them apart"
        assert songs["so-3"].song_id == ids["Third"], "the length does"
        assert set(songs["so-1"].candidates) == {ids["First"], ids["Second"]}
        assert set(songs["so-4"].candidates) == set(ids.values())
        ServerSongs(library).choose("home", "so-1", ids["First"])
        ServerSongs(library).choose("home", "so-4", None)
        report = sync(library, connection, silent, everything=True)
    assert (report.n_matched, report.n_ambiguous, report.n_unmatched) == (3, 0, 1)
    assert ServerSongs(library).song_of("1") == ids["First"]


def test_a_path_tells_songs_apart_that_have_the_same_names(library, tmp_path):
    for song_id in (1, 2):
        enter(library, song_id, tmp_path / "Me" / f"Album {song_id}" / "01 One.flac")
    listed = [entry(i, title="One", path=f"Me/Album {i}/01 One.flac") for i in (1, 2)]
    listed.append(entry(3, title="Another", artist="Somebody", path="Somebody/01 One.flac"))
    with scripted(having(listed)) as server:
        report = sync(library, connected(library, server.connection()), silent)
    assert report.matched_by == {"path": 2}
    assert [ServerSongs(library).song_of(f"so-{i}") for i in (1, 2, 3)] == [1, 2, None]


def test_a_recording_id_matches_whatever_the_names(library, tmp_path):
    mbid = "0b5c5b9e-8b0a-4c0e-9d2f-1c2d3e4f5a6b"
    path = write_song(tmp_path / "music" / "1.flac", seconds=2.0, title="One", artist="Me", musicbrainz_trackid=mbid)
    library.add(path.parent)
    listed = [entry(1, title="Eins", artist="Ich", duration=2, musicBrainzId=mbid.upper(), path="a/b.mp3")]
    with scripted(having(listed)) as server:
        assert sync(library, connected(library, server.connection()), silent).matched_by == {"MusicBrainz id": 1}


# --- what people did ----------------------------------------------------------------------------


def test_plays_come_in_once_and_what_was_played_since_is_all_that_is_asked_for(library, tmp_path):
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
        sync(library, connection, silent)
        assert library.listening.play_counts() == {song.id: 3}
        assert library.listening.imports()[0].listener == "anna"
        revision = library.revision
        listed[0]["playCount"] = 4
        server.asked.clear()
        report = sync(library, Connections(library).get("home"), silent)
        assert report.is_unchanged
        assert "search3" not in {call for call, _, _ in server.asked}
        assert library.listening.play_counts() == {song.id: 4}
        assert library.tags() == {song.id: [("loved", 100.0)]}
        assert len(library.listening.imports()) == 2, "one of plays and one of tags: the latest takes its own place"
        assert library.revision > revision
        revision = library.revision
        sync(library, Connections(library).get("home"), silent)
        assert library.revision == revision, "nothing new is no change"


def test_the_names_of_all_songs_are_read_once_a_sync(library, tmp_path):
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
        report = sync(library, connection, silent)
        assert (report.n_matched, len(report.listening), len(read)) == (2, 2, 1)
        del listed[2]
        listed[0]["playCount"] = 4
        sync(library, connection, silent)
        assert library.listening.play_counts() == {1: 4}
        assert len(read) == 1, "songs that are known need no names"


# --- sound --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_song_with_another_songs_file_is_not_taken_and_the_others_are(library, tmp_path):
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
        sync(library, connection, silent)
        done = fetch_missing(library, connection, lambda **_: None)
        assert (done.n_wanted, done.n_added, len(done.failures)) == (5, 2, 3)
        assert {song.title for song in library.songs()} == {"Song 1", "Song 3"}
        assert all(has_sound(library, song) for song in library.songs())
        others = "\n".join(done.failures)
        assert "Song 2 — Me: the server sent 4 s of sound where it lists 90 s" in others
        assert "not found" in others, others
        assert str(library.folder) not in others
        sync(library, connection, silent, everything=True)
        assert fetch_missing(library, connection, lambda **_: None).n_wanted == 1, "what was no use is left alone"


def test_a_list_of_which_the_server_has_nothing_is_not_written(library):
    with scripted(lambda *_: {}) as server, pytest.raises(NotFoundError, match="none of the songs of “Evening”"):
        save_list(library, server.connection(), "Evening", [1, 2], "")
    assert server.asked == []
    assert ok({})["subsonic-response"]["status"] == "ok"
