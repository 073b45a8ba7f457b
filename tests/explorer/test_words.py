"""Tests of words as filters: their meaning in a library, their typos, and unknown words."""

import json

import numpy as np
import pytest

from musicsim.audio import Descriptors
from musicsim.errors import NotFoundError
from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.search.requested import find_requested
from musicsim.explorer.snapshot.filtering import filter_rows
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.explorer.snapshot.words import Words, parse_words, suggest_words
from musicsim.hooks import FilterByWord
from musicsim.library.db import schema
from tests.command import run


@pytest.fixture
def heard(tiny_library):
    """Build twelve songs of 1970 to 1993: tempo 60 to 170, every second one in A minor, a third with a piano."""
    songs = tiny_library.songs()
    tiny_library.descriptors.save({
        song.id: Descriptors(60.0 + 10 * n, "A", ("minor", "major")[n % 2], -20.0, 1000.0 + n, 10.0)
        for n, song in enumerate(songs)
    })  # fmt: skip
    tags = [{"song_id": song.id, "tag": "Solo Piano", "weight": 1.0} for song in songs[::3]]
    tiny_library.add_tags([*tags, {"song_id": songs[0].id, "tag": "calm", "weight": 1.0}])
    return take_snapshot(tiny_library)


def found(snapshot, text):
    mask = filter_rows(snapshot, Filters(words=text))
    return sorted(song.id for song in snapshot.songs_at(mask.nonzero()[0]))


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("slow", lambda s, n: n < 4),
        ("very fast", lambda s, n: n >= 10),
        ("not slow", lambda s, n: n >= 4),
        ("slow solo-piano 1990s", lambda s, n: n in {0, 3} and s.year >= 1990),
        ("70s minor", lambda s, n: s.year < 1980 and n % 2 == 0),
        ("1972-1981", lambda s, n: 1972 <= s.year <= 1981),
        ("after 1980 not genre noise", lambda s, n: s.year > 1980 and s.genre != "Genre noise"),
        ("artist noise", lambda s, n: s.artist == "Artist noise"),
        ("songs by Artist Noise in A minor", lambda s, n: s.artist == "Artist noise" and n % 2 == 0),
        ("a major", lambda s, n: n % 2 == 1),
        ("about 100 bpm", lambda s, n: s.tempo == 100),
        ("calm", lambda s, n: n == 0),  # a tag of that name takes precedence over a descriptor
        ("quick", lambda s, n: n >= 8),
        ("-slow", lambda s, n: n >= 4),
        ("slow or very fast", lambda s, n: n < 4 or n >= 10),
        ("(slow or fast) minor", lambda s, n: n % 2 == 0 and (n < 4 or n >= 8)),
        ("not (slow or fast)", lambda s, n: 4 <= n < 8),
        ("-(-slow)", lambda s, n: n < 4),
        ("-words:'slow or minor'", lambda s, n: n >= 4 and n % 2 == 1),
        ("tempo:100..120 -genre:noise", lambda s, n: 100 <= s.tempo <= 120 and "noise" not in s.genre),
        ("artist:NOISE mode:minor", lambda s, n: s.artist == "Artist noise" and n % 2 == 0),
        ("genre:='genre-noise' or title:'tones 1'", lambda s, n: s.genre == "Genre noise" or s.title == "Song tones 1"),
        ("album:tones", lambda s, n: s.album == "Album tones"),
        ("tag:piano year:..1985", lambda s, n: n in {0, 3, 6, 9} and s.year <= 1985),
        ("plays:>0 or calm", lambda s, n: n == 0),
    ],
)
def test_words_filter_songs(heard, text, right):
    songs = heard.library.songs()
    assert found(heard, text) == [song.id for n, song in enumerate(songs) if right(song, n)]


def test_songs_near_titled_song_are_found(heard):
    X, ids = heard.X.astype(float), heard.row_ids
    song = next(song for song in heard.library.songs() if song.title == "Song noise 2")
    order = np.linalg.norm(X - X[heard.row_of(song.id)], axis=1).argsort()
    assert found(heard, "similar:2@'song noise 2'") == found(heard, f"similar:2@{song.id}") == sorted(ids[order[:3]])
    with pytest.raises(NotFoundError, match="several songs are called “noise”"):
        found(heard, "similar:noise")
    with pytest.raises(NotFoundError, match="no song is called “xyzzy”"):
        found(heard, "similar:xyzzy")


def test_query_is_explained_and_shortened(heard):
    said = parse_words(heard, "slow (tempo:70.. or jazz tempo:x) -played:30d year:1970s")
    assert [part.words for part in said.parts] == [
        "slow for this library (up to 97 beats/min)", "tempo at least 70 beats/min", "played not in the last 30 days",
        "year 1970 to 1979",
    ]  # fmt: skip
    assert said.unknown == ("jazz", "tempo:x")
    assert said.drop_part(2) == "slow tempo:70.. year:1970..1979 jazz tempo:x"
    assert said.known == "slow tempo:70.. -played:30d year:1970..1979"
    nested = "slow (minor or (fast calm) or fsat tempo:x)"
    assert parse_words(heard, nested).known == "slow (minor or (fast calm) or fast)"
    assert parse_words(heard, "calm or very slow minor xyzzy").known == "calm or (very slow minor)"
    assert parse_words(heard, "-(calm or minor) slow").known == "-(calm or minor) slow"
    (either,) = parse_words(heard, "slow minor or tempo:>150").parts
    assert either.words == "slow for this library (up to 97 beats/min) and minor or tempo above 150 beats/min"
    with pytest.raises(NotFoundError, match=r"“tempo:x”: .* must be followed by a number\. nothing matches “jazz”"):
        filter_rows(heard, Filters(words="jazz tempo:x"))
    with pytest.raises(
        NotFoundError, match=r"nothing matches .*“xyzzy:3”.* such as tempo:120\.\. The fields are tempo,"
    ):
        filter_rows(heard, Filters(words="tempo 120 xyzzy:3"))
    assert found(heard, "artist:=noise") == []


def test_visitors_cannot_ask_about_the_owner(heard, monkeypatch):
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    private = ["plays:3..", "-played:never", "rating:5", "thumb:up", "added:3d", "folder:x"]
    for text in private:
        assert parse_words(heard, text) == Words((), (text,))
        assert parse_words(heard, f"-({text})").parts == ()
    assert parse_words(heard, "tempo:3..").unknown == ()


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("slwo", "slow"), ("solo paino", "solo piano"), ("artist nosie", "artist noise"), ("fsat", "fast")],
)
def test_typos_are_corrected(heard, typed, meant):
    assert [part.words for part in parse_words(heard, typed).parts] == [
        part.words for part in parse_words(heard, meant).parts
    ]
    assert found(heard, typed) == found(heard, meant)


@pytest.fixture
def filed(tiny_library):
    """Songs with genres of several words, in folders with names, without other tags."""
    for song in tiny_library.songs():
        folder = "Frozen Bubble - Music" if song.id % 2 else "lugaru"
        genre = "Female Fronted Metal" if song.id % 3 else "Romantic Classical"
        with tiny_library.write() as connection:
            connection.execute(
                schema.files.update().where(schema.files.c.song_id == song.id).values(
                    folder=song.path.parent / folder, path=song.path.parent / folder / song.path.name
                )
            )  # fmt: skip
            values = {"genre": genre, "title": f"Guitar Study {song.id}" if song.id == 4 else song.title}
            connection.execute(schema.songs.update().where(schema.songs.c.id == song.id).values(**values))
    return take_snapshot(tiny_library)


@pytest.mark.parametrize(
    ("text", "meaning", "right"),
    [
        ("metal", "“Female Fronted Metal”", lambda song: song.id % 3 > 0),
        ("metl", "“Female Fronted Metal”", lambda song: song.id % 3 > 0),
        ("classic", "“Romantic Classical”", lambda song: song.id % 3 == 0),
        ("lugaru", "in “lugaru”", lambda song: song.id % 2 == 0),
        ("lugraru", "in “lugaru”", lambda song: song.id % 2 == 0),
        ("frozen bubble music", "in “Frozen Bubble - Music”", lambda song: song.id % 2 == 1),
        ("guitar", "“guitar” in the title", lambda song: song.id == 4),
    ],
)
def test_parts_of_genres_folders_and_titles_filter_songs(filed, text, meaning, right):
    assert [part.words for part in parse_words(filed, text).parts] == [meaning]
    assert found(filed, text) == [song.id for song in filed.library.songs() if right(song)]


def test_visitors_cannot_search_folders(filed, monkeypatch):
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    assert parse_words(filed, "lugaru").unknown == ("lugaru",)


def test_unknown_word_lists_known_words(filed):
    assert {"Female Fronted Metal", "Romantic Classical", "long", "short"} <= set(suggest_words(filed))
    filed.library.add_tags([{"song_id": filed.library.songs()[0].id, "tag": "long", "weight": 1.0}])
    assert suggest_words(take_snapshot(filed.library)).count("long") == 1
    with pytest.raises(NotFoundError, match=r"“xyzzy”.*Female Fronted Metal, "):
        filter_rows(filed, Filters(words="slow xyzzy"))


def test_part_shows_meaning_and_can_be_removed(heard):
    said = parse_words(heard, "very slow  Solo piano xyzzy 1960s and not minor")
    assert [part.words for part in said.parts] == [
        "very slow for this library (up to 78 beats/min)", "“Solo Piano”", "1960 to 1969", "not minor",
    ]  # fmt: skip
    assert said.unknown == ("xyzzy",)
    assert said.known == "very slow solo piano 1960s not minor"
    assert said.drop_part(1) == "very slow 1960s not minor xyzzy"
    assert parse_words(heard, " ".join(part.text for part in said.parts)).parts == said.parts


def test_extension_words_filter_songs(heard, monkeypatch):
    sung = heard.songs_at()[5].id
    hook = {FilterByWord: [lambda _, word: (f"sings {word}", np.array([sung])) if word == "rain" else None]}
    monkeypatch.setattr("musicsim.explorer.snapshot.words.load_hooks", lambda point: hook.get(point, []))
    assert found(heard, "about rain") == found(heard, "rain") == [sung]
    assert [part.words for part in parse_words(heard, "not rain").parts] == ["not sings rain"]
    assert sung not in found(heard, "not rain")
    assert parse_words(heard, "about xyzzy").unknown == ("xyzzy",)


def test_unknown_words_give_clear_error(heard):
    with pytest.raises(NotFoundError, match="nothing matches “xyzzy”"):
        filter_rows(heard, Filters(words="slow xyzzy"))
    assert parse_words(heard, "  , ").parts == ()
    assert filter_rows(heard, Filters(words="")) is None


def test_word_without_descriptor_values_is_unknown(snapshot):
    with snapshot.library.write() as connection:
        connection.exec_driver_sql("UPDATE songs SET tempo = NULL")
    assert parse_words(take_snapshot(snapshot.library), "slow").unknown == ("slow",)


def test_best_matches_come_first(heard):
    hits = find_requested(heard, None, SearchRequest(words="fast", per_artist=0, k=3))
    assert [hit.song.tempo for hit in hits] == [170.0, 160.0, 150.0]
    assert [hit.similarity for hit in hits] == [None] * 3
    assert hits[0].reason == "170 beats/min · A major"
    slow = find_requested(heard, None, SearchRequest(words="slow", per_artist=0, unlike=(hits[0].song.id,)))
    assert [hit.song.tempo for hit in slow] == [60.0, 70.0, 80.0, 90.0]


def test_cli_searches_by_words_and_examples(heard):
    folder, songs = heard.library.folder, heard.library.songs()
    told = json.loads(run("similar", "--words", "slow minor", "--json", library=folder)[0])
    assert [(hit["id"], hit["similarity"]) for hit in told] == [(songs[0].id, None), (songs[2].id, None)]
    told = json.loads(run("similar", "--like", 1, "--like", 5, "--words", "minor", "--json", library=folder)[0])
    assert told
    assert {hit["id"] for hit in told} <= set(found(heard, "minor")) - {1, 5}
    _, problem = run("similar", "--words", "xyzzy", library=folder, expect=1)
    assert "nothing matches “xyzzy”" in problem
    _, problem = run("similar", library=folder, expect=2)
    assert "--like or --words" in problem
