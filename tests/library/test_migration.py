"""A library of an older version is brought up to this one with nothing lost."""

import sqlite3

import pytest
import sqlalchemy as sa

from musicsim.library import Library
from musicsim.library.db import migrations, schema
from musicsim.library.scan.files import content_hash
from musicsim.library.scan.lyrics import read_lyrics
from tests.library.old_versions import make_version_1, step_to
from tests.sounds import write_song


def columns(library):
    """Every table with its columns: name, type, whether it may be empty, place in the key."""
    look = sa.inspect(library.engine)
    return {
        table: {c["name"]: (type(c["type"]).__name__, c["nullable"], c["primary_key"]) for c in look.get_columns(table)}
        for table in look.get_table_names()
    }  # fmt: skip


def make_version_3(folder, music, digest="abc"):
    """The same library as the third version left it, and what that version could say besides."""
    make_version_1(folder, music, digest)
    step_to(3, folder, "INSERT INTO tags VALUES (7, 'calm', 'import:1', 2.0)")


def make_version_4(folder, music, digest="abc"):
    """The same for the fourth version."""
    make_version_3(folder, music, digest)
    step_to(4, folder, "INSERT INTO preferences VALUES (1, 5.0, 'playlists', 'x', 'y', 'b', NULL)")


def make_version_6(folder, models):
    """A library of the sixth version with models: (name, kind, settings) by id."""
    make_version_4(folder, folder / "music")
    row = "INSERT INTO models VALUES ('{}', '{}', 1.0, 9, 9, 9, 0, 1, '{}', NULL, '{}', 0)"
    step_to(6, folder, *(row.format(number, *model) for number, model in models.items()))


def test_the_third_version_is_no_more_than_it_was(tmp_path):
    """Else the step from it is tested on tables that no library of version 3 has."""
    make_version_3(tmp_path / "old", tmp_path / "music")
    with sqlite3.connect(tmp_path / "old" / "library.sqlite") as old:
        tables = {row[0] for row in old.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        of_playlists = [row[1] for row in old.execute("PRAGMA table_info(playlists)")]
    old.close()
    assert not tables & {"lyrics", "preferences"}
    assert {"imports", "waiting", "listens", "spellings"} <= tables
    assert of_playlists == ["id", "name", "category", "source", "created_at"]


def test_the_fourth_version_is_no_more_than_it_was(tmp_path):
    make_version_4(tmp_path / "old", tmp_path / "music")
    with sqlite3.connect(tmp_path / "old" / "library.sqlite") as old:
        tables = {row[0] for row in old.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    old.close()
    assert "answers" not in tables
    assert {"lyrics", "preferences"} <= tables


@pytest.mark.parametrize("make", [make_version_1, make_version_3, make_version_4])
def test_an_old_version_has_all_that_a_new_library_has(store, tmp_path, make):
    make(tmp_path / "old", tmp_path / "music")
    with Library.open(tmp_path / "old") as old:
        assert columns(old) == columns(store)
        indexes = lambda lib: {i["name"] for t in columns(lib) for i in sa.inspect(lib.engine).get_indexes(t)}  # noqa: E731
        assert indexes(old) == indexes(store)
        with old.engine.connect() as connection:
            query = sa.select(schema.meta.c.value).where(schema.meta.c.key == "schema_version")
            assert connection.scalar(query) == str(migrations.SCHEMA_VERSION)


def test_songs_of_version_1_keep_all_that_was_said_of_them(tmp_path):
    music = tmp_path / "music"
    make_version_1(tmp_path / "old", music)
    with Library.open(tmp_path / "old") as old:
        (song,) = old.songs()
        assert (song.id, song.title, song.artist, song.path) == (7, "One", "Me", music / "one.flac")
        assert old.files.outdated() == [(music / "one.flac", 1)]
        assert [f.path.name for f in old.files.failures()] == ["x.mp3"]
        assert old.counts()["plays"] == 3
        assert [p.song_ids for p in old.playlists()] == [(7,)]
        old.edits.edit([7], {"genre": "soul"})
        assert old.song(7).genre == "soul"
        old.edits.undo([7])
        assert (old.song(7).genre, old.song(7).title) == ("jazz", "One")


@pytest.mark.parametrize("make", [make_version_1, make_version_3])
def test_old_playlists_have_no_details_until_they_are_given_some(tmp_path, make):
    make(tmp_path / "old", tmp_path / "music")
    with Library.open(tmp_path / "old") as old:
        (mine,) = old.playlists()
        assert (mine.name, mine.song_ids, mine.created_at, mine.details) == ("mine", (7,), 4.0, None)
        old.add_playlists([("mine", mine.category, [7], {"seed": 3})], mine.source)
        assert old.playlists()[0].details == {"seed": 3}


@pytest.mark.parametrize("make", [make_version_1, make_version_3])
def test_lyrics_and_preferences_of_an_old_library_can_be_written(tmp_path, make):
    path = write_song(tmp_path / "music" / "one.flac", seconds=2)
    make(tmp_path / "old", path.parent, content_hash(path))
    path.with_suffix(".lrc").write_text("[00:01.00]plum plum tree")
    with Library.open(tmp_path / "old") as old:
        assert read_lyrics(old) == 1
        assert old.lyrics.words(7) == {"plum": 2, "tree": 1}
        old.preferences.add("playlists", "x", "y", "a")
        assert [p.winner for p in old.preferences.all()] == ["x"]
        with old.write() as connection:
            connection.execute(schema.songs.delete())
        assert old.lyrics.words(7) == {}


@pytest.mark.parametrize("make", [make_version_1, make_version_4])
def test_answers_of_an_old_library_can_be_written_and_go_with_their_songs(tmp_path, make):
    make(tmp_path / "old", tmp_path / "music")
    with sqlite3.connect(tmp_path / "old" / "library.sqlite") as old:
        for i in (8, 9, 10):
            old.execute(
                "INSERT INTO songs (id, content_hash, title, duration_s, notes, outline, feature_version, added_at) "
                "VALUES (?, ?, 'x', 1.0, '', x'00', 1, 2.0)",
                (i, str(i)),
            )
    old.close()
    with Library.open(tmp_path / "old") as old:
        first = old.answers.add("me", "odd", (7, 8, 9), 1)
        assert old.answers.add("me", "like", (10, 9, 8, 7), 2) == first + 1
        assert [a.song_ids for a in old.answers.all()] == [(7, 8, 9), (10, 9, 8, 7)]
        with old.write() as connection:
            connection.execute(schema.songs.delete().where(schema.songs.c.id == 10))
        assert [a.id for a in old.answers.all()] == [first]
        old.answers.forget(first)
        assert old.answers.add("me", "odd", (7, 8, 9), 1) == first + 2, "no number is given twice"


def test_version_4_keeps_preferences(tmp_path):
    make_version_4(tmp_path / "old", tmp_path / "music")
    with Library.open(tmp_path / "old") as old:
        assert [p.winner for p in old.preferences.all()] == ["y"]


def test_version_3_keeps_tags_and_plays(tmp_path):
    make_version_3(tmp_path / "old", tmp_path / "music")
    with Library.open(tmp_path / "old") as old:
        assert old.tags() == {7: [("calm", 2.0)]}
        assert old.counts()["plays"] == 3


def test_songs_of_version_1_are_analysed_again_and_stay_themselves(tmp_path):
    music = tmp_path / "music"
    path = write_song(music / "one.flac", seconds=2, title="One")
    make_version_1(tmp_path / "old", music, content_hash(path))
    with Library.open(tmp_path / "old") as old:
        report = old.add(music)
        assert (report.n_added, report.n_known, report.n_skipped) == (0, 1, 0), "short, but a song already"
        assert old.files.outdated() == []
        (song,) = old.songs()
        assert (song.id, song.duration_s) == (7, 2.0)
        assert old.counts()["plays"] == 3
        assert len(old.frame_files.mfcc(song.content_hash)) > 9


def test_models_with_the_old_default_names_get_the_new_ones(tmp_path):
    on_both = '{"on": ["as it sounds", "mine"]}'
    models = {
        "1": ("as it sounds", "native", "{}"),
        "2": ("by genre", "learned", on_both),
        "3": ("mine", "learned", '{"on": []}'),
        "4": ("by genre 2", "learned", '{"on": ["by genre"]}'),
    }
    make_version_6(tmp_path / "old", models)
    with Library.open(tmp_path / "old") as old:
        found = {m.id: (m.name, m.settings.get("on")) for m in old.models.all()}
    assert found == {
        "1": ("Sound", None),
        "2": ("Genres", ["Sound", "mine"]),
        "3": ("mine", []),
        "4": ("by genre 2", ["Genres"]),
    }


def test_the_built_in_model_gets_its_new_name_where_another_has_it(tmp_path):
    models = {
        "1": ("as it sounds", "native", "{}"),
        "2": ("Sound", "learned", "{}"),
        "3": ("Genres", "learned", "{}"),
    }
    make_version_6(tmp_path / "old", models | {"4": ("by genre", "learned", "{}")})
    with Library.open(tmp_path / "old") as old:
        names = {m.id: m.name for m in old.models.all()}
    assert names == {"1": "Sound", "2": "Sound (mine)", "3": "Genres", "4": "by genre"}
