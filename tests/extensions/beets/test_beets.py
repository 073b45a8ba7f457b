"""Tests of beets: our commands in it, and reading its library."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import mutagen
import pytest

from musicsim.errors import LibraryError
from musicsim.library import Library
from musicsim.library.importing import import_files, read_listening
from tests.command import run
from tests.waiting import PATIENCE_S

pytest.importorskip("beets", reason="beets is not installed")

CHECKOUT = Path(__file__).parents[3]
MBIDS = [f"12345678-1234-4234-8234-12345678900{n}" for n in range(3)]

Beets = namedtuple("Beets", "folder library_file")


def beet(folder, *arguments, expect=0):
    """Run ``beet``, and return its output on stdout and stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "beets", *map(str, arguments)],
        env=os.environ | {"BEETSDIR": str(folder), "PYTHONPATH": str(CHECKOUT)},
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == expect, done.stderr
    return done.stdout, done.stderr


def configure(folder, music, library):
    (folder / "config.yaml").write_text(
        f"directory: {music}\nlibrary: {folder}/library.db\nplugins: musicsim types\ntypes: {{rating: float}}\n"
        f"musicsim: {{library: {library}}}\nimport: {{copy: no, write: no, autotag: no, resume: no}}\n"
    )


@pytest.fixture(scope="module")
def made(made_once, collection, built_library):
    """Build a beets library of the collection: ratings of two songs, ids of three, genres of four."""

    def make(folder):
        shutil.copytree(built_library, folder / "library")
        configure(folder, collection, folder / "library")
        beet(folder, "import", "--quiet", collection)
        for n, mbid in enumerate(MBIDS):
            beet(folder, "modify", "--yes", "--nowrite", f"title:Song tones {n}", f"mb_trackid={mbid}")
        beet(folder, "modify", "-y", "-W", "title:Song noise 0", "rating=0.8", "mb_trackid=4711")
        beet(folder, "modify", "-y", "-W", "title:Song noise 1", "rating=0.4")
        beet(folder, "modify", "-y", "-W", "artist:Artist clicks", "genres=Dub; Ambient")

    folder = made_once("beets", make)
    return Beets(folder, folder / "library.db")


def test_beet_similar_lists_items_by_similarity(made):
    lines = beet(made.folder, "similar", "title:Song tones 0", "-n", 5)[0].splitlines()
    found = [re.fullmatch(r"(\d\.\d\d)  (Artist \w+) - Album \w+ - Song .*", line) for line in lines]
    assert len(lines) == 5
    assert all(found)
    similarities = [float(match[1]) for match in found]
    assert similarities == sorted(similarities, reverse=True)
    assert found[0][2] == "Artist tones"
    several, _ = beet(made.folder, "similar", "artist:Artist tones", "-n", 3, "-f", "$title")
    assert len(several.splitlines()) == 3
    assert "Song tones" not in several, "what is searched with is no result"


@pytest.mark.long
def test_beet_simlist_starts_with_song_and_prints_paths(made, collection):
    lines = beet(made.folder, "simlist", "title:Song tones 1", "--minutes", 1)[0].splitlines()
    assert lines[0] == "Artist tones - Album tones - Song tones 1"
    assert len(set(lines)) == len(lines) == 12, "a minute takes all songs of four seconds"
    paths = beet(made.folder, "simlist", "-p", "artist:Artist noise", "--minutes", 1)[0].splitlines()
    assert len(paths) == 12
    assert all(Path(path).is_file() and Path(path).is_relative_to(collection) for path in paths)
    _, problem = beet(made.folder, "simlist", "title:Song tones 1", "--minutes", "0.4", expect=1)
    assert "minutes=0.4 must be between 1 and 1440" in problem


@pytest.mark.long
def test_beets_errors_are_clear(made, tmp_path, collection):
    _, problem = beet(made.folder, "similar", "title:nothing", expect=1)
    assert "no song in the musicsim library" in problem
    configure(tmp_path, collection, tmp_path / "none")
    _, problem = beet(tmp_path, "similar", "title:Song", expect=1)
    assert "no library found" in problem
    assert "Traceback" not in problem


def test_imports_beets_genres_ratings_and_ids(made, tiny_library):
    before, files = made.library_file.read_bytes(), set(made.folder.iterdir())
    said = json.loads(run("import", made.library_file, "--json", library=tiny_library.folder)[0])
    assert (said["format"], said["kind"], said["matched"], said["recording_ids"]) == ("beets", "tags", 12, 3)
    assert said["matched_by"].keys() <= {"path", "path end"}
    songs = {song.title: song for song in tiny_library.songs()}
    assert [songs[f"Song tones {n}"].mb_recording_id for n in range(3)] == MBIDS
    assert songs["Song noise 0"].mb_recording_id is None, "an id of another service"
    tags = tiny_library.tags()
    rated = {song_id: [tag for tag, _ in of if tag.startswith("rated")] for song_id, of in tags.items()}
    assert (rated[songs["Song noise 0"].id], rated[songs["Song noise 1"].id]) == (["rated 4"], ["rated 2"])
    for n in range(4):
        assert {"Dub", "Ambient"} <= dict(tags[songs[f"Song clicks {n}"].id]).keys()
    again = json.loads(run("import", made.library_file, "--json", library=tiny_library.folder)[0])
    assert (again["replaces"], again["recording_ids"]) == ([said["import"]], 0)
    assert made.library_file.read_bytes() == before
    assert set(made.folder.iterdir()) == files
    tiny_library.listening.undo(again["import"])
    assert not any("Dub" in dict(found) for found in tiny_library.tags().values())


def test_file_recording_id_takes_precedence(made, tiny_library):
    song = next(song for song in tiny_library.songs() if song.title == "Song tones 0")
    own = "99999999-1234-4234-8234-123456789000"
    with tiny_library.write() as connection:
        connection.exec_driver_sql("UPDATE songs SET mb_recording_id = ? WHERE id = ?", (own, song.id))
    assert import_files(tiny_library, made.library_file).n_recording_ids == 2
    assert tiny_library.song(song.id).mb_recording_id == own
    others = [s.id for s in tiny_library.songs() if s.title in ("Song tones 1", "Song tones 2")]
    tiny_library.edits.undo(others)
    assert {tiny_library.song(i).mb_recording_id for i in others} == {None}


@pytest.mark.parametrize(
    ("ratings", "stars"), [((5, 4, 0), [5, 4, 0]), ((1.0, 0.7, 0.1), [5, 4, 1]), ((95, 20), [5, 1])]
)
def test_ratings_on_any_scale_become_stars(tmp_path, ratings, stars):
    path = write_library(tmp_path / "library.db", len(ratings))
    with sqlite3.connect(path) as connection:
        rows = [(n, str(rating)) for n, rating in enumerate(ratings)]
        connection.executemany("INSERT INTO item_attributes VALUES (?, 'rating', ?)", rows)
    connection.close()
    batch = read_listening([path])
    found = {(batch.songs[s].title, batch.groups[g][0]) for s, g in zip(batch.song, batch.group, strict=True)}
    for n, count in enumerate(stars):
        assert {tag for title, tag in found if title == f"t{n}" and tag.startswith("rated")} == (
            {f"rated {count}"} if count else set()
        )


def write_library(path, n_songs):
    """Write a library as older versions of beets do."""
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE items (id INTEGER PRIMARY KEY, path BLOB, title TEXT, artist TEXT, genre TEXT)"
        )
        for name in ("item", "album"):
            connection.execute(f"CREATE TABLE {name}_attributes (entity_id INTEGER, key TEXT, value TEXT)")
        rows = [(n, f"/m/{n}.mp3".encode(), f"t{n}", "a", "Dub, Ska") for n in range(n_songs)]
        connection.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?)", rows)
    connection.close()
    return path


def test_non_utf8_names_and_damage_are_handled(tmp_path):
    path = write_library(tmp_path / "library.db", 2)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE items SET path = ?, title = CAST(? AS TEXT) WHERE id = 0", (b"/m/\xff.mp3", b"\xfe"))
    connection.close()
    batch = read_listening([path])
    assert [song.place for song in batch.songs] == ["/m/\udcff.mp3", "/m/1.mp3"]
    assert {name for name, _ in batch.groups} == {"Dub", "Ska"}
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(LibraryError, match=r"library\.db: "):
        read_listening([path])


def test_rejects_other_databases(tmp_path):
    with Library.open(tmp_path / "library"):
        pass
    with pytest.raises(LibraryError, match=r"not text|not in a known format"):
        read_listening([tmp_path / "library" / "library.sqlite"])


@pytest.mark.long
def test_beet_simtags_previews_and_writes_tempo_and_key(tmp_path, tiny_library, own_music):
    configure(tmp_path, own_music, tiny_library.folder)
    beet(tmp_path, "import", "--quiet", own_music)
    song = next(song for song in tiny_library.songs() if song.key)
    sharp = {"Eb": "D#", "Ab": "G#", "Bb": "A#"}.get(song.key, song.key)  # as beets spells keys
    before = song.path.read_bytes()
    query = (f"path:{song.path}",)
    shown, _ = beet(tmp_path, "simtags", *query, "--pretend")
    assert "initial_key" in shown
    assert beet(tmp_path, "ls", *query, "-f", "$initial_key")[0].strip() == ""
    beet(tmp_path, "simtags", *query, "--yes", "--nowrite")
    assert song.path.read_bytes() == before
    found = beet(tmp_path, "ls", *query, "-f", "$initial_key")[0].strip()
    assert found == sharp + ("m" if song.mode == "minor" else "")
    beet(tmp_path, "modify", "-y", "-W", *query, "initial_key=")
    beet(tmp_path, "simtags", *query, "--yes", "--write")
    assert mutagen.File(song.path)["initialkey"] == [found]
    assert tiny_library.add(own_music).n_added == 0, "the song is recognized by its sound"
