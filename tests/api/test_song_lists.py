"""Songs over HTTP: tracks, tables and files of the songs that were asked for, and similar artists."""

import csv
import io

import pytest

from musicsim.api.song_lists import MAX_MARKED, MAX_TRACKS
from musicsim.explorer.playlists.queue import QueueItem
from musicsim.explorer.playlists.tracks import make_queue_tracks, make_track, render_track
from musicsim.explorer.rendering import render_song
from musicsim.explorer.search.query import find_similar_artists
from musicsim.explorer.snapshot.snapshot import snapshot_under, take_snapshot
from musicsim.library.media import sound
from musicsim.library.media.playlist_files import m3u8

IDS = [5, 2, 999, 9, 2]


def lose(library, *song_ids):
    """Delete the files of songs, without a scan that would notice it."""
    for song in library.songs(song_ids):
        song.path.unlink()


def test_tracks_come_in_order_without_unknown_ids(client, tiny_library, own_music):
    lose(tiny_library, 9)
    tracks = client.post("/api/tracks", json={"songs": IDS}).json()["tracks"]
    assert tracks == [render_track(make_track(tiny_library, tiny_library.song(i))) for i in (5, 2, 9, 2)]
    assert [track["is_missing"] for track in tracks] == [False, False, True, False]
    assert [track["typical_s"] for track in tracks] == [tiny_library.song(i).typical_s for i in (5, 2, 9, 2)]
    assert [client.get(track["url"]).status_code for track in tracks] == [200, 200, 410, 200]
    assert client.post("/api/tracks", json={"songs": []}).json() == {"tracks": []}


def test_song_that_a_scan_missed_is_a_missing_track(client, tiny_library):
    with tiny_library.write() as connection:
        connection.exec_driver_sql("UPDATE files SET missing_since = 1 WHERE song_id = 3")
        connection.exec_driver_sql("UPDATE songs SET last_path = '/nowhere/3.flac' WHERE id = 3")
    (track,) = client.post("/api/tracks", json={"songs": [3]}).json()["tracks"]
    assert (track["song_id"], track["is_missing"]) == (3, True)


def test_extensions_are_asked_once_for_all_songs(tiny_library, own_music, monkeypatch):
    lose(tiny_library, 1, 2, 3)
    asked = []
    monkeypatch.setattr(sound, "songs_elsewhere", lambda _, ids: asked.append(ids) or set())
    items = [QueueItem(song) for song in tiny_library.songs()]
    assert [track.is_missing for track in make_queue_tracks(tiny_library, items)][:4] == [True] * 3 + [False]
    assert asked == [{1, 2, 3}]


def test_table_is_that_of_the_page(client, tiny_library):
    answer = client.post("/api/songs/table", json={"songs": IDS})
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="selection.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    songs = [tiny_library.song(i) for i in (5, 2, 9, 2)]
    assert [(row["title"], row["artist"]) for row in rows] == [(song.title, song.by) for song in songs]
    assert [row["genre"] for row in rows] == [song.genre or "" for song in songs]
    assert [row["year"] for row in rows] == [str(song.year or "") for song in songs]
    for row, song in zip(rows, songs, strict=True):
        for name in ("tempo", "loudness", "brightness", "energy"):
            value = getattr(song, name)
            assert row[name] == "" if value is None else float(row[name]) == pytest.approx(value, abs=0.01)


def test_table_protects_formulas(client, tiny_library):
    tiny_library.edits.edit([5], {"title": "=1+1"})
    assert "'=1+1" in client.post("/api/songs/table", json={"songs": [5]}).text


def test_file_is_a_playlist_of_the_songs(client, tiny_library):
    answer = client.post("/api/songs/file", json={"songs": IDS})
    assert answer.content == m3u8("Selection", [tiny_library.song(i) for i in (5, 2, 9, 2)])
    assert answer.headers["content-disposition"] == 'attachment; filename="selection.m3u8"'


@pytest.mark.parametrize("model", [None, "Codewords"])
def test_similar_artists_are_those_of_the_explorer(client, tiny_library, model):
    answer = client.get("/api/songs/1/artists", params={"limit": 2} | ({"model": model} if model else {}))
    found = find_similar_artists(snapshot_under(tiny_library, model), 1, 2)
    assert answer.json() == [
        {"name": name, "songs": [render_song(hit.song) for hit in hits]} for name, hits in found.items()
    ]
    assert len(found) == 2
    assert tiny_library.song(1).by not in found


@pytest.mark.parametrize("query", ["999/artists", "1/artists?limit=0", "1/artists?limit=21", "1/artists?model=x"])
def test_similar_artists_of_faulty_request_are_refused(client, query):
    assert client.get(f"/api/songs/{query}").status_code in (404, 422)


@pytest.mark.parametrize(
    ("path", "body", "named"),
    [
        ("tracks", {}, "songs:"),
        ("tracks", {"songs": ["1"]}, "songs[0]:"),
        ("tracks", {"songs": [0]}, "songs[0]:"),
        ("tracks", {"songs": [1] * (MAX_TRACKS + 1)}, "songs:"),
        ("songs/table", {"songs": [1], "name": "x"}, "name is not a field"),
        ("songs/table", {"songs": [1] * (MAX_MARKED + 1)}, "songs:"),
        ("songs/file", {"songs": [1] * (MAX_MARKED + 1)}, "songs:"),
    ],
)
def test_faulty_list_is_named(client, path, body, named):
    answer = client.post(f"/api/{path}", json=body)
    assert answer.status_code == 422
    assert named in answer.json()["detail"]


def test_visitors_get_no_paths(client, tiny_library, monkeypatch):
    folder = str(tiny_library.song(5).path.parent)
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    for path in ("tracks", "songs/table"):
        answer = client.post(f"/api/{path}", json={"songs": IDS})
        assert answer.status_code == 200
        assert folder not in answer.text
    expected = m3u8("Selection", take_snapshot(tiny_library).songs_by_id([5]))
    assert client.post("/api/songs/file", json={"songs": [5]}).content == expected
