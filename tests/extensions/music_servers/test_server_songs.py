"""Tests of matching songs of music servers by every form of their ids, and of keeping manual matches."""

from pathlib import Path

import pytest

from musicsim.errors import NotFoundError
from musicsim.explorer.snapshot.last_plays import read_last_plays
from musicsim.extensions.music_servers.server_songs import MAX_ID_LENGTH, ServerSong, ServerSongs, id_forms
from musicsim.extensions.music_servers.sync import SongFinder
from musicsim.library.db import schema
from tests.library.listening import add_songs

UUID = "0b5c5b9e-8b0a-4c0e-9d2f-1c2d3e4f5a6b"


@pytest.fixture
def songs(store):
    """Build a library with three songs, ids 1 to 3."""
    row = {"title": "x", "duration_s": 60.0, "feature_version": 1, "added_at": 1.0, "notes": "", "outline": b""}
    with store.write() as connection:
        for i in (1, 2, 3):
            connection.execute(schema.songs.insert().values(id=i, content_hash=str(i), **row))
    return ServerSongs(store)


@pytest.mark.parametrize(
    ("server_id", "forms"),
    [
        ("so-12", ["so-12", "12"]),
        ("12", ["12", "so-12"]),
        (UUID, [UUID, UUID.replace("-", "")]),
        (UUID.replace("-", ""), [UUID.replace("-", ""), UUID]),
        ("tr-7", ["tr-7"]),
    ],
)
def test_song_is_found_by_every_id_form(songs, server_id, forms):
    assert id_forms(server_id) == forms
    songs.write("home", [ServerSong(server_id, song_id=2)])
    assert [songs.find_song(form) for form in forms] == [("home", 2)] * len(forms)
    assert songs.ids_of([2]) == songs.ids_of([2], "home") == {2: server_id}


@pytest.mark.parametrize(
    ("artist", "title", "path", "length_s", "is_match"),
    [
        ("Ann", "farm_f.ogg", "Game/farm_f.ogg", 66.0, True),
        ("Ann", "The Farm", "farm_f.ogg", 66.0, True),
        ("Bob", "The Farm", "Game/farm_f.ogg", 66.0, True),
        ("Bob", "The Farm", "farm_f.ogg", 66.0, False),  # a different song may have the same file name
        ("Bob", "The Farm", "Game/farm_f.ogg", None, False),
        ("Ann", "farm_f", "Game/farm_f.ogg", 99.0, False),
    ],
)
def test_names_do_not_outvote_path_and_length(store, artist, title, path, length_s, is_match):
    (song_id,) = add_songs(store, ("Ann", "farm_f", {"duration_s": 66.2}))
    with store.write() as connection:
        connection.execute(schema.files.update().values(path=Path("/music/Game/farm_f.ogg")))
    matched = SongFinder(store).match(ServerSong("1", title, artist, path=path, duration_s=length_s))
    assert (matched.song_id, matched.how) == ((song_id, "path") if is_match else (None, ""))


def test_last_play_on_any_server_counts(songs, store):
    songs.write("home", [ServerSong("a", song_id=1, played_at=50.0), ServerSong("b", song_id=2), ServerSong("c")])
    songs.write("away", [ServerSong("a", song_id=1, played_at=70.0), ServerSong("d", played_at=90.0)])
    assert read_last_plays(store) == {1: 70.0}


@pytest.mark.parametrize("asked", ["", "13", "x" * (MAX_ID_LENGTH + 1), "12\0", "\udc80", "so-"])
def test_invalid_id_matches_no_song(songs, asked):
    songs.write("home", [ServerSong("so-12", song_id=1)])
    assert songs.find_song("12") == ("home", 1)
    assert songs.find_song(asked) is None


def test_reassigned_id_leaves_first_song(songs):
    songs.write("home", [ServerSong("a", song_id=1), ServerSong("b", song_id=2)])
    songs.write("home", [ServerSong("a", song_id=2), ServerSong("b", song_id=1)])
    assert songs.ids_of([1, 2, 3]) == {1: "b", 2: "a"}


def test_removed_song_stays_on_server_unmatched(songs, store):
    songs.write("home", [ServerSong("a", song_id=1)])
    with store.write() as connection:
        connection.execute(schema.songs.delete().where(schema.songs.c.id == 1))
    assert songs.find_song("a") is None
    assert songs.read_songs("home") == {"a": ServerSong("a")}


def test_songs_removed_from_server_lose_ids(songs):
    songs.write("home", [ServerSong("so-1", song_id=1), ServerSong("so-2", song_id=2)])
    songs.write("home", [], gone=["so-1"])
    assert [songs.find_song(form) for form in ("so-1", "1", "so-2", "2")] == [None, None, ("home", 2), ("home", 2)]


def test_interrupted_sync_writes_nothing(songs):
    def listed():
        yield ServerSong("a", song_id=1)
        raise OSError("the server has gone")

    songs.write("home", [ServerSong("old", song_id=3)])
    with pytest.raises(OSError, match="gone"):
        songs.write("home", listed(), gone=["old"])
    assert list(songs.read_songs("home")) == ["old"]


def test_candidates_can_be_chosen_by_hand(songs):
    songs.write("home", [ServerSong("a", "One", candidates=(1, 2)), ServerSong("b", candidates=(2, 3))])
    assert songs.counts() == {"home": (2, 0, 2)}
    assert [(server, song.id, song.candidates) for server, song in songs.ambiguous()] == [
        ("home", "a", (1, 2)),
        ("home", "b", (2, 3)),
    ]
    songs.choose("home", "a", 2)
    songs.choose("home", "b", None)
    assert songs.counts() == {"home": (2, 1, 0)}
    assert songs.find_song("a") == ("home", 2)
    for server_id, song_id in (("gone", 1), ("a", 99)):
        with pytest.raises(NotFoundError):
            songs.choose("home", server_id, song_id)


def test_removed_server_does_not_affect_others(songs):
    for server in ("home", "work"):
        songs.write(server, [ServerSong("a", song_id=1)])
        songs.keep_list(server, "mine", "7", {"length": 9})
    songs.forget("home")
    assert songs.counts() == {"work": (1, 1, 0)}
    assert songs.lists("home") == {}
    assert (songs.lists("work")["mine"].id, songs.lists("work")["mine"].request) == ("7", {"length": 9})
