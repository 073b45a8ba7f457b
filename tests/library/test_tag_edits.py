"""Tests of tag corrections: stored apart from the files, reversible, with merged spellings of artists."""

import mutagen
import pytest

from musicsim.library.stores.tag_edits import TagChange, effective_tags
from tests.sounds import write_song


@pytest.fixture
def songs(store, tmp_path):
    """Add three songs: two by one artist in two spellings, and one without an artist."""
    for n, artist in enumerate(("The Beatles", "Beatles, The", "Unknown Artist")):
        write_song(tmp_path / f"music/{n}.flac", seed=n, seconds=1.5, title=f"song {n}", artist=artist, genre="pop")
    store.add(tmp_path / "music")
    return {song.title: song for song in store.songs()}


def artists(store):
    return {song.title: song.artist for song in store.songs()}


def test_edit_changes_song_but_not_file(store, songs):
    path = songs["song 0"].path
    before = path.read_bytes()
    ids = [song.id for song in songs.values()]
    store.edits.edit(ids, {"genre": " beat  music ", "year": "1964"})
    assert {(s.genre, s.year) for s in store.songs()} == {("beat music", 1964)}
    assert path.read_bytes() == before
    assert set(store.edits.all()) == set(ids)
    store.edits.undo(ids[:1])
    assert {(s.genre, s.year) for s in store.songs(ids[:1])} == {("pop", None)}


def test_tags_change_only_if_unmodified_and_are_reversible(store, songs):
    emptied, untouched, other = (song.id for song in songs.values())
    store.edits.edit([emptied], {"genre": None, "year": 1964})
    before = store.edits.all()
    back = store.edits.change(
        [
            TagChange(emptied, {"genre": None}, {"genre": " beat "}),
            TagChange(untouched, {"genre": "pop", "album": None}, {"genre": "beat", "album": "Hits"}),
            TagChange(other, {"genre": None}, {"genre": "beat"}),  # it is already pop
            TagChange(other, {"genre": "pop", "year": 1999}, {"genre": "beat"}),  # it does not have a year
            TagChange(other + 1, {"genre": None}, {"genre": "beat"}),  # not a song
        ]
    )
    assert [song.genre for song in store.songs()] == ["beat", "beat", "pop"]
    assert store.edits.all()[emptied] == {"genre": "beat", "year": 1964}
    assert back == [
        TagChange(emptied, {"genre": "beat"}, {"genre": None}),
        TagChange(untouched, {"genre": "beat"}, {}),
        TagChange(untouched, {"album": "Hits"}, {}),
    ]
    again = store.edits.change(back)
    assert store.edits.all() == before
    assert [song.genre for song in store.songs()] == [None, "pop", "pop"]
    store.edits.change(again)
    assert [song.genre for song in store.songs()] == ["beat", "beat", "pop"]


def test_reverting_change_keeps_later_edits(store, songs):
    song_id = songs["song 0"].id
    guessed = {"artist": "The Kinks", "album": "Arthur"}
    back = store.edits.change([TagChange(song_id, {"artist": "The Beatles", "album": None}, guessed)])
    store.edits.edit([song_id], {"artist": "Them"})
    store.edits.change(back)
    song = store.song(song_id)
    assert (song.artist, song.album) == ("Them", None)


@pytest.mark.parametrize(
    ("known", "edits", "words"),
    [
        ({"year": None}, {"year": "soon"}, "enter a number from"),
        ({"artist": "The Beatles"}, {"album": "x"}, "^album: `known` must"),
        ({"path": "x"}, {}, "'path' cannot be edited"),
    ],
)
def test_invalid_change_rejects_all_changes(store, songs, known, edits, words):
    first, second, _ = (song.id for song in songs.values())
    with pytest.raises(ValueError, match=words):
        store.edits.change([TagChange(first, {"genre": "pop"}, {"genre": "x"}), TagChange(second, known, edits)])
    assert store.edits.all() == {}


def test_edit_survives_new_file_tags(store, songs, tmp_path):
    song = songs["song 0"]
    store.edits.edit([song.id], {"title": "mine"})
    audio = mutagen.File(song.path, easy=True)
    audio["title"], audio["album"] = "theirs", "new album"
    audio.save()
    store.add(tmp_path / "music")
    (again,) = store.songs([song.id])
    assert (again.title, again.album) == ("mine", "new album")
    store.edits.undo([song.id])
    assert store.song(song.id).title == "theirs"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"path": "x"}, "cannot be edited"),
        ({"title": "  "}, "needs a title"),
        ({"year": "soon"}, "enter a number from 1 to 2999"),
        ({"track": 0}, "enter a number from 1 to 9999"),
    ],
)
def test_invalid_edit_changes_nothing(store, songs, changes, words):
    with pytest.raises(ValueError, match=words):
        store.edits.edit([songs["song 0"].id], {"genre": "x", **changes})
    assert store.edits.all() == {}


def test_empty_text_clears_tag(store, songs):
    store.edits.edit([songs["song 0"].id], {"genre": ""})
    assert store.song(songs["song 0"].id).genre is None


def test_placeholder_artist_is_ignored(store, songs):
    song = songs["song 2"]
    assert song.artist is None
    assert song.group == f"song:{song.id}", "the folder is a root: it says nothing"


@pytest.mark.long
def test_spellings_are_suggested_merged_and_separated(store, songs, tmp_path):
    (group,) = store.edits.suggestions()
    assert set(group) == {"The Beatles", "Beatles, The"}
    store.edits.merge(group, "The Beatles")
    assert [artists(store)[f"song {n}"] for n in range(2)] == ["The Beatles"] * 2
    assert store.edits.suggestions() == []
    write_song(tmp_path / "music/3.flac", seed=3, seconds=1.5, title="song 3", artist="Beatles, The")
    store.add(tmp_path / "music")
    assert artists(store)["song 3"] == "The Beatles", "songs to come are spelt so, too"
    store.edits.part("The Beatles")
    assert artists(store)["song 1"] == artists(store)["song 3"] == "Beatles, The"
    assert store.edits.aliases() == {}


def test_later_merge_includes_earlier_spellings(store, songs):
    store.edits.merge(["The Beatles", "Beatles, The"], "Beatles, The")
    store.edits.merge(["Beatles, The"], "Beatles")
    assert set(store.edits.aliases()) == {"The Beatles", "Beatles, The"}
    assert {artists(store)[f"song {n}"] for n in range(2)} == {"Beatles"}


def test_merge_requires_name(store, songs):
    with pytest.raises(ValueError, match="artist is empty"):
        store.edits.merge(["The Beatles"], "  ")


def test_edits_precede_aliases_and_placeholders_are_dropped():
    tags = {"title": "t", "artist": "Beatles, The", "album_artist": "Various Artists"}
    shown = effective_tags(tags, {"title": "T"}, {"Beatles, The": "The Beatles"})
    assert shown == {"title": "T", "artist": "The Beatles", "album_artist": None}
