"""Tests of the second sync: it asks for changes, or for everything if the server does not report them."""

import time
from email.utils import formatdate

import pytest

from musicsim.extensions.music_servers import client as subsonic
from musicsim.extensions.music_servers.client import PAGE, Subsonic
from musicsim.extensions.music_servers.connections import Connections
from musicsim.extensions.music_servers.server_songs import ServerSong, ServerSongs
from musicsim.extensions.music_servers.sync import LIST_EVERY_S, remove, sync
from musicsim.progress import no_progress
from tests.extensions.music_servers.serving import scripted
from tests.sounds import open_library
from tests.waiting import PATIENCE_S

N_SONGS, N_OF_ALBUM = 2000, 10
STATE = ["ping", "getIndexes", "getScanStatus", "getAlbumList2"]
LISTENING = ["getStarred2", "getAlbumList2"]


class Catalogue:
    """The songs of a server by album, and the time of the last change in milliseconds."""

    def __init__(self):
        self.songs = {}
        self.modified = 1_700_000_000_000
        self.scan = {"scanning": False, "count": 0}
        for number in range(N_SONGS):
            self.add(number, number // N_OF_ALBUM)

    def add(self, number, album, **more):
        self.songs[f"so-{number}"] = {
            "id": f"so-{number}", "title": f"Song {number}", "albumId": f"al-{album}", "duration": 60, **more,
        }  # fmt: skip

    def albums(self):
        found = {}
        for song in self.songs.values():
            found.setdefault(song["albumId"], []).append(song)
        return {
            i: {"id": i, "songCount": len(songs), "duration": sum(song["duration"] for song in songs)}
            for i, songs in found.items()
        }

    def __call__(self, call, values):
        if call == "getIndexes":
            return {"indexes": {"lastModified": self.modified}}
        if call == "getScanStatus":
            return {"scanStatus": self.scan}
        if call == "search3":
            start = int(values["songOffset"])
            return {"searchResult3": {"song": list(self.songs.values())[start : start + PAGE]}}
        if call == "getAlbumList2":
            start = int(values.get("offset", 0))
            listed = [] if values["type"] == "recent" else list(self.albums().values())
            return {"albumList2": {"album": listed[start : start + int(values["size"])]}}
        if call == "getAlbum":
            return {"album": {"song": [s for s in self.songs.values() if s["albumId"] == values["id"]]}}
        return {}


@pytest.fixture
def library(tmp_path):
    with open_library(tmp_path / "library") as library:
        yield library


@pytest.fixture
def there():
    return Catalogue()


@pytest.fixture
def synced(library, there):
    """Return a function that syncs with a server, and returns the report and the calls it made."""
    with scripted(there) as server:
        Connections(library).put(server.connection())

        def again(**more):
            server.asked.clear()
            report = sync(library, Connections(library).get("home"), no_progress, **more)
            assert set(ServerSongs(library).read_songs("home")) == set(there.songs)
            return report, [call for call, _, _ in server.asked]

        assert again()[0].is_full
        yield again


def test_unchanged_server_needs_six_requests(synced):
    report, calls = synced()
    assert report.is_unchanged
    assert calls == STATE + LISTENING


@pytest.mark.long
def test_only_changed_albums_are_read(synced, there, library):
    del there.songs["so-17"]  # a removed song, of album 1
    there.add(9001, 77)  # an added song
    there.songs["so-1999"] |= {"duration": 61, "title": "Longer"}
    there.add(9002, 9000, starred="2026-01-01")  # an added album
    there.modified += 60_000
    report, calls = synced()
    n_pages = -(-len(there.albums()) // PAGE) + 1
    assert not report.is_full
    assert calls == STATE + ["getAlbumList2"] * n_pages + ["getAlbum"] * 4 + LISTENING
    assert (report.n_gone, report.n_new, report.n_changed) == (1, 2, 1)
    known = ServerSongs(library).read_songs("home")
    assert known["so-1999"] == ServerSong("so-1999", title="Longer", duration_s=61.0)
    assert known["so-9002"].is_starred
    assert synced()[0].is_unchanged


def test_removed_album_removes_its_songs(synced, there):
    for number in range(20, 30):
        del there.songs[f"so-{number}"]
    there.modified += 60_000
    report, calls = synced()
    assert (report.n_gone, report.is_full, "getAlbum" in calls) == (10, False, False)


@pytest.mark.long
def test_full_listing_is_used_if_cheaper(synced, there):
    for number in range(0, 100, 10):
        there.songs[f"so-{number}"]["duration"] = 99
    there.modified += 60_000
    report, calls = synced()
    assert (report.is_full, report.n_changed) == (True, 10)
    assert calls.count("search3") == N_SONGS // PAGE + 1
    assert "getAlbum" not in calls


@pytest.mark.long
def test_unexplained_change_triggers_full_listing(synced, there):
    song = there.songs.pop("so-5")
    there.songs["moved"] = song | {"id": "moved"}  # as after a file was renamed
    there.modified += 60_000
    assert synced()[0].is_full


@pytest.mark.long
@pytest.mark.parametrize("why", ["it does not tell", "it is scanning", "within the same second"])
def test_undetectable_changes_trigger_full_listing(why, synced, there, monkeypatch):
    if why == "it does not tell":
        there.modified = 0  # gonic always answers this
    elif why == "it is scanning":
        there.scan["scanning"] = True
    else:
        there.modified = int(time.time()) * 1000  # Supysonic counts in seconds
        monkeypatch.setattr(subsonic, "SETTLED_S", PATIENCE_S)  # a slow sync is late for the second, too
    synced()
    song = there.songs.pop("so-5")
    there.songs["moved"] = song | {"id": "moved"}
    there.scan["scanning"] = False
    assert synced()[0].is_full


def test_change_age_uses_server_clock(there):
    there.modified = int(time.time() + 3600) * 1000  # its clock is an hour ahead of ours

    def dated(seconds):
        def answer(handler):
            data = b'{"subsonic-response": {"status": "ok", "indexes": {"lastModified": %d}}}' % there.modified
            handler.send_response_only(200)
            handler.send_header("Date", formatdate(there.modified / 1000 + seconds, usegmt=True))
            handler.send_header("Content-Length", str(len(data)))
            handler.end_headers()
            handler.wfile.write(data)

        return lambda call, values: answer if call == "getIndexes" else there(call, values)

    for seconds, is_settled in ((1, False), (2, True)):
        with scripted(dated(seconds)) as server:
            assert bool(Subsonic(server.connection()).state()) == is_settled


@pytest.mark.long
def test_periodic_full_listing_finds_unreported_changes(synced, there, library):
    there.songs["so-3"]["title"] = "Another"  # and the server reports no change
    assert synced()[0].is_unchanged
    known = Connections(library)
    known.note("home", listed_at=time.time() - LIST_EVERY_S - 1)
    report, _ = synced()
    assert (report.is_full, report.n_changed) == (True, 1)
    assert synced()[0].is_unchanged
    assert synced(everything=True)[0].is_full


@pytest.mark.long
def test_unreliable_album_cache_is_not_used(synced, there, library):
    (kept,) = (library.folder / "cache").glob("albums of *")
    kept.write_text("[1, 2")
    there.add(9001, 1)
    there.modified += 60_000
    assert synced()[0].is_full
    assert kept.exists()
    there.songs["so-1"]["albumId"] = ""  # of an album that is not listed
    there.albums = lambda albums=there.albums: {i: album for i, album in albums().items() if i}
    synced(everything=True)
    assert not kept.exists()
    there.modified += 60_000
    there.add(9003, 1)
    assert synced()[0].is_full
    there.songs["so-1"]["albumId"] = "al-0"
    synced(everything=True)
    assert kept.exists()
    remove(library, "home")
    assert not kept.exists()


def test_server_without_albums_is_synced_completely(there, library):
    def answer(call, values):
        is_refused = call == "getAlbumList2" and values["type"] != "recent"
        return (0, "unknown type") if is_refused else there(call, values)

    with scripted(answer) as server:
        Connections(library).put(server.connection())
        for is_full in (True, False):
            report = sync(library, Connections(library).get("home"), no_progress)
            assert (report.is_full, report.is_unchanged) == (is_full, not is_full)
        there.modified += 60_000
        assert sync(library, Connections(library).get("home"), no_progress).is_full


@pytest.mark.long
def test_empty_album_list_removes_no_songs(synced, there, library):
    there.modified += 60_000
    there.albums = dict
    report, _ = synced()
    assert (report.is_full, report.n_gone) == (True, 0)
