"""Songs of music servers are found by every form of their ids, and stay what a person said they are."""

import pytest

from musicsim.errors import NotFoundError
from musicsim.extensions.music_servers.server_songs import MAX_ID_LENGTH, ServerSong, ServerSongs, id_forms
from musicsim.library.db import schema

UUID = "0b5c5b9e-8b0a-4c0e-9d2f-1c2d3e4f5a6b"


@pytest.fixture
def songs(store):
    """A library with three songs, ids 1 to 3."""
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
def test_a_song_is_found_by_every_form_of_its_id(songs, server_id, forms):
    assert id_forms(server_id) == forms
    songs.write("home", [ServerSong(server_id, song_id=2)])
    assert [songs.song_of(form) for form in forms] == [2] * len(forms)
    assert songs.song_of(server_id, "home") == 2
    assert songs.song_of(server_id, "elsewhere") is None
    assert songs.id_of(2) == songs.id_of(2, "home") == server_id


@pytest.mark.parametrize("asked", ["", "13", "x" * (MAX_ID_LENGTH + 1), "12\0", "\udc80", "so-"])
def test_what_is_no_id_is_no_song(songs, asked):
    songs.remember("home", [(1, ["so-12", "12"])])
    assert songs.song_of("12") == 1
    assert songs.song_of(asked) is None


def test_an_id_that_moves_on_to_another_song_leaves_the_first(songs):
    songs.remember("home", [(1, ["a"]), (2, ["b"])])
    songs.remember("home", [(2, ["a"]), (1, ["b"])])
    assert songs.ids_of([1, 2, 3]) == {1: "b", 2: "a"}


def test_a_song_that_is_forgotten_here_stays_on_the_server_without_a_match(songs, store):
    songs.remember("home", [(1, ["a"])])
    with store.write() as connection:
        connection.execute(schema.songs.delete().where(schema.songs.c.id == 1))
    assert songs.song_of("a") is None
    assert songs.of("home") == {"a": ServerSong("a")}


def test_songs_that_have_gone_take_their_ids_with_them(songs):
    songs.remember("home", [(1, ["so-1", "1"]), (2, ["so-2", "2"])])
    songs.write("home", [], gone=["so-1"])
    assert [songs.song_of(form) for form in ("so-1", "1", "so-2", "2")] == [None, None, 2, 2]


def test_nothing_of_a_sync_is_written_where_it_breaks_off(songs):
    def listed():
        yield ServerSong("a", song_id=1)
        raise OSError("the server has gone")

    songs.remember("home", [(3, ["old"])])
    with pytest.raises(OSError, match="gone"):
        songs.write("home", listed(), gone=["old"])
    assert list(songs.of("home")) == ["old"]


def test_a_person_chooses_among_the_candidates(songs):
    songs.write("home", [ServerSong("a", "One", candidates=(1, 2)), ServerSong("b", candidates=(2, 3))])
    assert songs.counts() == {"home": (2, 0, 2)}
    assert [(server, song.id, song.candidates) for server, song in songs.ambiguous()] == [
        ("home", "a", (1, 2)),
        ("home", "b", (2, 3)),
    ]
    songs.choose("home", "a", 2)
    songs.choose("home", "b", None)
    assert songs.counts() == {"home": (2, 1, 0)}
    assert songs.song_of("a") == 2
    for server_id, song_id in (("gone", 1), ("a", 99)):
        with pytest.raises(NotFoundError):
            songs.choose("home", server_id, song_id)


def test_a_server_is_forgotten_whole_and_others_stay(songs):
    for server in ("home", "work"):
        songs.remember(server, [(1, ["a"])])
        songs.keep_list(server, "mine", "7", {"length": 9})
    songs.forget("home")
    assert songs.counts() == {"work": (1, 1, 0)}
    assert songs.lists("home") == {}
    assert (songs.lists("work")["mine"].id, songs.lists("work")["mine"].request) == ("7", {"length": 9})
