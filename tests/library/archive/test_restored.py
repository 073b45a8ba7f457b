"""Tests of a backup from somebody else: nothing in it acts on this machine until its owner agrees."""

import io
import json
import sqlite3
import sys
from contextlib import closing, contextmanager
from pathlib import Path
from unittest import mock

import pytest

from musicsim import LIBRARY_FILE
from musicsim.errors import LibraryError
from musicsim.library import Library
from musicsim.library.archive import backups
from musicsim.library.archive.backups import back_up
from musicsim.progress import no_progress
from tests.archives import parts_of
from tests.command import run

SECRET = "swordfish"
EXAMPLE_ADDRESS = "https:/music.example/all"


def restore(*arguments):
    """Restore a backup whose folders its owner confirms, and nothing else."""
    return backups.restore(*arguments, accept=lambda consent: not (consent.private or consent.addresses))


@contextmanager
def answering(text):
    """Type a text into the terminal."""
    with mock.patch.object(sys, "stdin", io.StringIO(text)):
        yield


def change(folder, *statements):
    """Change the database of a library without going through it."""
    with closing(sqlite3.connect(folder / LIBRARY_FILE)) as database, database:
        for statement in statements:
            database.execute(*statement if isinstance(statement, tuple) else (statement,))


def query(folder, statement):
    with closing(sqlite3.connect(folder / LIBRARY_FILE)) as database:
        return database.execute(statement).fetchall()


def test_restore_keeps_settings_of_this_machine(tiny_library, tmp_path):
    for name, value in {
        "n_workers": 61, "file_seconds": 7, "file_memory_mb": 8,
        "shortest_s": 11, "hub_reduction": False,
    }.items():  # fmt: skip
        tiny_library.set_setting(name, value)
    tiny_library.set_text("machine.name", "theirs")
    back_up(tiny_library, tmp_path / "gift", no_progress)

    restore(tmp_path / "gift", tmp_path / "new", no_progress)
    with Library.open(tmp_path / "new", create=False) as library:
        found = library.settings
        assert (found["n_workers"], found["file_seconds"]) == (0, 600)
        assert found["file_memory_mb"] == 1024
        assert (found["shortest_s"], found["hub_reduction"]) == (11, False), "these are of the music"
        assert library.text("machine.name") is None

    with Library.open(tmp_path / "mine") as library:
        library.set_setting("n_workers", 3)
        library.set_setting("shortest_s", 5)
        library.set_text("machine.name", "mine")
    restore(tmp_path / "gift", tmp_path / "mine", no_progress)
    with Library.open(tmp_path / "mine", create=False) as library:
        found = library.settings
        assert (found["n_workers"], found["shortest_s"]) == (3, 11)
        assert library.text("machine.name") == "mine"


@pytest.mark.parametrize("settings", ["[]", "nonsense", '{"shortest_s": "x"}', '{"hub_reduction": 1e999}'])
def test_damaged_settings_are_refused(tiny_library, tmp_path, settings):
    change(tiny_library.folder, ("INSERT OR REPLACE INTO meta (key, value) VALUES ('settings', ?)", (settings,)))
    back_up(tiny_library, tmp_path / "gift", no_progress)
    with pytest.raises(LibraryError, match="gift: this is not a complete backup"):
        restore(tmp_path / "gift", tmp_path / "new", no_progress)
    assert not (tmp_path / "new").exists()


def test_jobs_of_other_machine_are_not_restored(tiny_library, tmp_path):
    tiny_library.jobs.create("export", {"what": "vectors", "path": str(Path.home() / ".profile")})
    back_up(tiny_library, tmp_path / "gift", no_progress)
    run("list", library=tmp_path / "mine", expect=1)
    with Library.open(tmp_path / "mine") as library:
        library.jobs.add_trace(1, {"of": "the library before"})
    restore(tmp_path / "gift", tmp_path / "mine", no_progress)
    with Library.open(tmp_path / "mine", create=False) as library:
        assert library.jobs.recent() == []
        assert library.jobs.trace(1) == []


def test_model_id_cannot_escape_library_folder(tiny_library, tmp_path):
    """The next refresh deletes the folder of an unfinished model."""
    with closing(sqlite3.connect(tiny_library.folder / LIBRARY_FILE)) as database:
        columns = [row[1] for row in database.execute("PRAGMA table_info(models)")]
    other = {"id": "'../../victim'", "name": "'x'", "is_complete": "0", "is_active": "0"}
    values = ", ".join(other.get(name, name) for name in columns)
    change(tiny_library.folder, f"INSERT INTO models SELECT {values} FROM models LIMIT 1")
    back_up(tiny_library, tmp_path / "gift", no_progress)
    for victim in (tmp_path / "victim", tiny_library.folder.parent / "victim"):
        victim.mkdir()
    with pytest.raises(LibraryError, match=r"gift: this is not a complete backup .*models\.id"):
        restore(tmp_path / "gift", tmp_path / "mine", no_progress)
    with pytest.raises(LibraryError, match="is not the name of a folder"):
        tiny_library.models.discard_unfinished()
    assert victim.exists()


# --- passwords -------------------------------------------------------------------------------------


@pytest.fixture
def private_backup(tiny_library, tmp_path):
    """Make a backup that includes the connections of its owner."""
    (tiny_library.folder / "servers.json").write_text(SECRET)
    (tiny_library.folder / "players.json").write_text(SECRET)
    back_up(tiny_library, tmp_path / "private", no_progress, with_passwords=True)
    return tmp_path / "private"


def test_restoring_passwords_requires_option_and_confirmation(tiny_library, private_backup, tmp_path):
    mine = tmp_path / "mine"
    Library.open(mine).close()
    (mine / "players.json").write_text("own")

    with answering("y\n"):
        _, said = run("restore", private_backup, library=mine)
    assert "left out: servers.json, players.json" in " ".join(said.split())
    assert not (mine / "servers.json").exists()
    assert (mine / "players.json").read_text() == "own"

    for answer in ("n\n", ""):
        with answering(answer):
            _, said = run("restore", private_backup, "--with-passwords", library=mine, expect=1)
        assert "servers.json, players.json" in " ".join(said.split())
        assert "Nothing was changed" in " ".join(said.split())
        assert not (mine / "servers.json").exists()

    with answering("y\n"):
        run("restore", private_backup, "--with-passwords", library=mine)
    assert (mine / "servers.json").read_text() == SECRET
    run("restore", private_backup, "--with-passwords", "--yes", library=tmp_path / "new")
    assert (tmp_path / "new" / "players.json").read_text() == SECRET


def test_backing_up_passwords_requires_option_and_confirmation(tiny_library, private_backup, tmp_path):
    folder, target = tiny_library.folder, tmp_path / "b"
    with answering("n\n"):
        _, said = run("backup", target, "--with-passwords", library=folder, expect=1)
    assert "nothing was written" in " ".join(said.split())
    assert not target.exists()
    run("backup", target, library=folder)
    written = b"".join(parts_of(target).values())
    assert SECRET.encode() not in written
    run("backup", target, "--with-passwords", "--yes", library=folder)
    written = b"".join(parts_of(target).values())
    assert SECRET.encode() in written


# --- addresses --------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    "statement",
    [
        f"INSERT INTO roots (path, added_at) VALUES ('{EXAMPLE_ADDRESS}', 1)",
        f"UPDATE files SET path = '{EXAMPLE_ADDRESS}' WHERE path = (SELECT min(path) FROM files)",
        f"UPDATE files SET folder = './{EXAMPLE_ADDRESS}'",
        f"UPDATE songs SET last_path = '{EXAMPLE_ADDRESS}'",
        f"INSERT INTO failures VALUES ('{EXAMPLE_ADDRESS}', '', 1, 1, 1, 'error', NULL)",
    ],
)
def test_addresses_in_backup_require_confirmation(tiny_library, tmp_path, statement):
    change(tiny_library.folder, statement)
    back_up(tiny_library, tmp_path / "gift", no_progress)
    mine = tmp_path / "mine"
    with Library.open(mine) as library:
        library.set_setting("shortest_s", 5)
    before = query(mine, "SELECT * FROM meta")
    with answering(""):
        _, said = run("restore", tmp_path / "gift", library=mine, expect=1)
    assert EXAMPLE_ADDRESS in said
    assert "Nothing was changed" in " ".join(said.split())
    assert query(mine, "SELECT * FROM meta") == before
    with pytest.raises(LibraryError, match=EXAMPLE_ADDRESS):
        restore(tmp_path / "gift", tmp_path / "new", no_progress)
    assert not (tmp_path / "new").exists()
    with answering("y\n"):
        run("restore", tmp_path / "gift", library=mine)
    assert json.loads(run("info", "--json", library=mine)[0])["songs"] == 12
    run("restore", tmp_path / "gift", "--yes", library=tmp_path / "new")


def test_local_folders_are_no_addresses(tiny_library, tmp_path):
    change(tiny_library.folder, "INSERT INTO roots (path, added_at) VALUES ('/music/a:/b', 1)")
    back_up(tiny_library, tmp_path / "b", no_progress)
    assert restore(tmp_path / "b", tmp_path / "there", no_progress).n_songs == 12


# --- folders ----------------------------------------------------------------------------------------


def test_new_library_confirms_its_folders(tiny_library, collection, tmp_path):
    """As on a new machine: the only question is about the folders of the music."""
    back_up(tiny_library, tmp_path / "own", no_progress)
    with answering("n\n"):
        _, said = run("restore", tmp_path / "own", library=tmp_path / "new", expect=1)
    assert f"folders that are new to this library: {collection}. " in " ".join(said.split())
    assert not (tmp_path / "new").exists()
    with answering("y\n"):
        run("restore", tmp_path / "own", library=tmp_path / "new")
    with answering(""):
        run("restore", tmp_path / "own", library=tmp_path / "new")  # it has these folders now


@pytest.mark.parametrize(
    ("statement", "folder"),
    [
        ("INSERT INTO roots (path, added_at) VALUES ('/home', 1)", "/home"),
        ("UPDATE files SET path = '/home/me/private/a.flac' WHERE path = (SELECT min(path) FROM files)",
         "/home/me/private"),
        ("UPDATE files SET path = '{music}/../private/a.flac' WHERE path = (SELECT min(path) FROM files)",
         "{parent}/private"),
        ("UPDATE files SET path = '../private/a.flac' WHERE path = (SELECT min(path) FROM files)", "../private"),
        ("UPDATE songs SET last_path = '/home/me/private/a.flac' WHERE id = 1", "/home/me/private"),
        ("INSERT INTO failures VALUES ('/home/me/private/a.flac', '', 1, 1, 1, 'error', NULL)", "/home/me/private"),
    ],
)  # fmt: skip
def test_folders_new_to_the_library_require_confirmation(tiny_library, collection, tmp_path, statement, folder):
    back_up(tiny_library, tmp_path / "own", no_progress)
    restore(tmp_path / "own", tmp_path / "mine", no_progress)
    names = {"music": collection, "parent": collection.parent}
    change(tiny_library.folder, statement.format(**names))
    back_up(tiny_library, tmp_path / "gift", no_progress)
    before = query(tmp_path / "mine", "SELECT * FROM files")
    with answering(""):
        _, said = run("restore", tmp_path / "gift", library=tmp_path / "mine", expect=1)
    assert f"folders that are new to this library: {folder.format(**names)}. Nothing" in " ".join(said.split())
    assert query(tmp_path / "mine", "SELECT * FROM files") == before
    run("restore", tmp_path / "gift", "--yes", library=tmp_path / "mine")
    assert query(tmp_path / "mine", "SELECT count(*) FROM songs") == [(12,)]


def test_many_strange_folders_are_counted(tiny_library, tmp_path):
    change(
        tiny_library.folder,
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000) "
        "INSERT INTO failures SELECT '/p/' || i || '/a.flac', '', 1, 1, 1, 'error', NULL FROM n",
    )
    back_up(tiny_library, tmp_path / "gift", no_progress)
    with pytest.raises(LibraryError, match=r"and 29,991 more\."):
        backups.restore(tmp_path / "gift", tmp_path / "new", no_progress)
