"""Tests of files from earlier versions: they stay readable, and what is written now has the same layout."""

import json
import re
import sqlite3
from contextlib import closing

import pytest

from musicsim import LIBRARY_FILE, __version__
from musicsim.library import Library
from musicsim.library.archive.backups import back_up, restore
from musicsim.progress import no_progress
from tests.archives import members_of, parts_of, tar_of_version_1, write_version_1

ABOUT = b'{"format": 1, "musicsim": "1.0.0", "created_at": 1790000000.25}'
IN_BACKUP = re.compile(
    r"frames/\w\w/\w+(\.v\d+)?\.np[yz]|models/[\w-]+/(?!rows\.npz)[a-z_]+\.(json|npz|f32)"
    r"|embeddings/\w+/[a-z]+\.(json|npy|onnx|rows)|walk_sources\.npz"
)
SMALL_COPY = """
CREATE TABLE songs(id INT, content_hash TEXT, sound_hash TEXT, edits NUM, path);
CREATE TABLE plays(listener TEXT, song_id INT, source TEXT, count INT);
CREATE TABLE playlists(id INT, name TEXT, category TEXT, source TEXT, created_at REAL, details NUM);
CREATE TABLE playlist_songs(playlist_id INT, position INT, song_id INT);
CREATE TABLE tags(song_id INT, tag TEXT, source TEXT, weight REAL);
INSERT INTO playlists VALUES(4, 'Evening', NULL, 'saved', 1790000000.0, '{"seed": 5}');
INSERT INTO songs VALUES(70, 'no such file', 'no such sound', NULL, '/gone.flac');
INSERT INTO plays VALUES('ann', 70, '', 9);
"""


def write_kinds(library, folder):
    """Write one file of each kind; return their paths, keyed by the names of their first members."""
    library.add_playlists([("Evening", None, [song.id for song in library.songs()], {})], "saved")
    back_up(library, folder / "one.backup", no_progress)
    files = {"backup.json": folder / "one.backup", "small.json": library.copies.keep_now()}
    bundles = pytest.importorskip("musicsim.extensions.bundles.bundle", reason="an extension")
    bundles.write_bundle(library, folder / "one.tar.zst", no_progress)
    return files | {"snapshot.json": folder / "one.tar.zst"}


def test_layout_of_files_is_that_of_version_1(tiny_library, tmp_path):
    for about, file in write_kinds(tiny_library, tmp_path).items():
        data, members = members_of(file)
        assert data == tar_of_version_1(members)
        assert [members[0][0], *(name for name, *_ in members[-2:])] == [about, LIBRARY_FILE, "hashes.txt"]
        facts = json.loads(members[0][2])
        assert (facts.pop("format"), facts.pop("musicsim"), list(facts)) == (1, __version__, ["created_at"])


def test_old_backup_is_restored(tiny_library, tmp_path):
    folder = tiny_library.folder
    with closing(sqlite3.connect(folder / LIBRARY_FILE)) as source, closing(sqlite3.connect(tmp_path / "db")) as copy:
        source.backup(copy)
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    arrays = {name: (folder / name).read_bytes() for name in names if IN_BACKUP.fullmatch(name)}
    database = {LIBRARY_FILE: (tmp_path / "db").read_bytes()}
    write_version_1(tmp_path / "old", {"backup.json": ABOUT} | arrays | database)

    back_up(tiny_library, tmp_path / "new", no_progress)
    assert {n: d for n, d in parts_of(tmp_path / "new").items() if IN_BACKUP.fullmatch(n)} == arrays
    done = restore(tmp_path / "old", tmp_path / "restored", no_progress, accept=lambda _: True)
    assert (done.n_songs, done.created_at) == (len(tiny_library), 1790000000.25)
    with Library.open(tmp_path / "restored", create=False) as library:
        assert library.songs() == tiny_library.songs()
        assert [record.id for record in library.models.all()] == [record.id for record in tiny_library.models.all()]
    for name, data in arrays.items():
        assert (tmp_path / "restored" / name).read_bytes() == data


def test_old_snapshot_file_is_opened(tiny_library, tmp_path, monkeypatch):
    bundles = pytest.importorskip("musicsim.extensions.bundles.bundle", reason="an extension")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    parts = parts_of(write_kinds(tiny_library, tmp_path)["snapshot.json"])
    write_version_1(tmp_path / "old.tar.zst", parts | {"snapshot.json": ABOUT})
    with bundles.open_bundle(tmp_path / "old.tar.zst", no_progress) as folder, Library.open(folder) as library:
        assert [song.title for song in library.songs()] == [song.title for song in tiny_library.songs()]
        assert [playlist.name for playlist in library.playlists()] == ["Evening"]


def test_old_small_copy_is_restored(store, tmp_path):
    store.add_playlists([("Morning", None, [])], "saved")
    with closing(sqlite3.connect(tmp_path / "db")) as database:
        database.executescript(SMALL_COPY)
    write_version_1(tmp_path / "old", {"small.json": ABOUT, LIBRARY_FILE: (tmp_path / "db").read_bytes()})
    done = store.copies.bring_back(tmp_path / "old")
    assert (done.n_songs, done.n_absent) == (0, 1)
    assert [(playlist.name, playlist.details) for playlist in store.playlists()] == [("Evening", {"seed": 5})]
