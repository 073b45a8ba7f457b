"""Full, read-only or broken disks: one sentence, no data lost, no file blamed."""

import errno
import json
import shutil
import sqlite3

import numpy as np
import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from musicsim import LIBRARY_FILE
from musicsim._npy import save_array
from musicsim.api.http import http_interface
from musicsim.errors import LibraryError, StorageError
from musicsim.explorer import job_process, jobs
from musicsim.explorer.libraries import open_library as open_again
from musicsim.explorer.refresh.refresh import refresh
from musicsim.library import Library
from musicsim.library.db import schema
from musicsim.library.disk.arrays import RowFile, atomic_folder, atomic_path
from musicsim.storage import storage_error, writing_to
from tests.command import run
from tests.disks import fill, make_read_only, small_disk
from tests.sounds import open_library, write_collection, write_song


@pytest.fixture
def disk(tmp_path):
    with small_disk(tmp_path / "disk") as place:
        yield place


def is_whole(library):
    with library.engine.connect() as connection:
        return connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"


def left_over(folder):
    """Return temporary files and folders of unfinished writes."""
    return [path for path in folder.rglob("*") if path.name.startswith((".", "tmp"))]


# --- sentences ---


def _break_off(target, number):
    with atomic_path(target) as temporary:
        temporary.write_bytes(b"half of it")
        raise OSError(number, "what the system says")


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "There is no room left in {}. Free some space"),
        (errno.EDQUOT, "The disk quota is used up in {}. Free some space"),
        (errno.EROFS, "{} is read-only: nothing can be changed there."),
        (errno.EACCES, "Permission is denied in {}. Change its permissions"),
        (errno.EIO, "The disk that holds {} reports an error."),
    ],
)
def test_disk_errors_name_library(tmp_path, number, words):
    (tmp_path / LIBRARY_FILE).touch()
    target = tmp_path / "frames" / "ab" / "x.npy"
    with pytest.raises(StorageError) as caught:
        _break_off(target, number)
    assert str(caught.value).startswith(words.format(tmp_path))
    assert not list(target.parent.iterdir()), "nothing half-written stays"


def test_disk_errors_outside_library_name_folder(tmp_path):
    with pytest.raises(StorageError, match=f"{tmp_path}. Free"), atomic_folder(tmp_path / "new"):
        raise OSError(errno.ENOSPC, "")
    assert not list(tmp_path.iterdir())


def test_error_prefers_file_named_by_system(tmp_path):
    other = tmp_path / "other" / "x"
    other.parent.mkdir()
    with pytest.raises(StorageError, match=str(other.parent)), writing_to(tmp_path / "mine"):
        raise PermissionError(errno.EACCES, "", str(other))


def test_numpy_write_error_without_errno(tmp_path):
    with pytest.raises(StorageError, match="reports an error"), atomic_path(tmp_path / "x.npy"):
        raise OSError("1000 requested and 10 written")


def test_other_errors_are_unchanged(tmp_path):
    with pytest.raises(FileNotFoundError), writing_to(tmp_path):
        (tmp_path / "nowhere").read_bytes()
    with pytest.raises(ValueError, match="mine"), atomic_path(tmp_path / "x"):
        raise ValueError("mine")
    assert storage_error(sqlite3.OperationalError("no such table"), tmp_path) is None


def _write_too_much(library):
    with library.write() as connection:
        n_pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count={n_pages}")  # SQLite's equivalent of a disk of that size
        connection.execute(schema.meta.insert().values(key="large", value="x" * 1_000_000))


def test_full_database_gives_clear_error_and_keeps_data(store):
    with pytest.raises(StorageError, match=f"no room left in {store.folder}"):
        _write_too_much(store)
    with store.engine.connect() as connection:
        assert connection.scalar(sa.select(schema.meta.c.value).where(schema.meta.c.key == "large")) is None
    assert is_whole(store)


# --- full ---


def test_arrays_are_saved_whole_or_not_at_all(disk):
    fill(disk, left_kb=8)
    room = shutil.disk_usage(disk).free
    header = 128
    fitting, too_large = (np.zeros(room - header + more, np.uint8) for more in (0, 1))
    np.save(disk / "kept.npy", too_large)
    assert (disk / "kept.npy").stat().st_size == room, "numpy still ignores the last error; otherwise, use np.save"
    (disk / "kept.npy").unlink()
    with pytest.raises(OSError, match="No space left"):
        save_array(disk / "kept.npy", too_large)
    (disk / "kept.npy").unlink()
    save_array(disk / "kept.npy", fitting)
    np.testing.assert_array_equal(np.load(disk / "kept.npy"), fitting)


@pytest.mark.long
def test_adding_to_full_disk_can_be_resumed(disk, tmp_path):
    music, folder = write_collection(tmp_path / "music", n_songs=20, seconds=10), disk / "library"
    open_library(folder).close()
    stuffing = fill(disk, left_kb=500)
    _, said = run("add", music, library=folder, expect=4)
    assert said.strip().splitlines()[-1].startswith(f"error: There is no room left in {folder}. Free some space")
    assert "Traceback" not in said
    with Library.open(folder) as library:
        assert library.files.failures() == []
        assert not left_over(folder)
        assert is_whole(library)
        n_before = len(library)
        assert library.frame_files.list_stored() == {song.content_hash for song in library.songs()}
    stuffing.unlink()
    done = json.loads(run("add", music, "--json", library=folder)[0])
    assert (done["added"], done["unchanged"], done["songs"]) == (60 - n_before, n_before, 60)
    with Library.open(folder) as library:
        assert is_whole(library)


@pytest.mark.long
def test_job_on_full_disk_gives_clear_error(disk, tmp_path):
    music, folder = write_collection(tmp_path / "music", n_songs=20, seconds=10), disk / "library"
    with open_library(folder) as library:
        job_id = library.jobs.create("add", {"paths": [str(music)]})
        fill(disk, left_kb=500)
        assert job_process.run(library, job_id) == "failed"
        job = library.jobs.get(job_id)
        assert (job.state, job.message[:30]) == ("failed", f"There is no room left in {folder}"[:30])
        assert library.files.failures() == []


@pytest.mark.long
def test_import_on_full_disk_is_rolled_back(disk, built_library, tmp_path):
    folder = shutil.copytree(built_library, disk / "library")
    plays = tmp_path / "plays.csv"
    rows = "".join(f"ann,Nobody {n},Nothing {n},{1 + n % 7}\n" for n in range(40_000))
    plays.write_text("listener,artist,title,plays\nann,Artist tones,Song tones 0,3\n" + rows)
    stuffing = fill(disk, left_kb=300)
    _, said = run("import", plays, library=folder, expect=4)
    assert f"There is no room left in {folder}." in said
    with Library.open(folder) as library:
        assert library.counts()["plays"] == 0
        assert is_whole(library)
    stuffing.unlink()
    run("import", plays, library=folder)
    with Library.open(folder) as library:
        assert library.counts()["plays"] == 3
        assert is_whole(library)


@pytest.mark.long
def test_training_on_full_disk_keeps_models(disk, tmp_path):
    folder, music = disk / "library", write_collection(tmp_path / "music", n_songs=8, seconds=2)
    for n, path in enumerate(sorted(music.rglob("*.flac"))):  # more artists than kinds, or none can be held out
        write_song(
            path, ("tones", "noise", "clicks")[n % 3], n, 2.0, title=f"{n}", artist=f"{n % 12}", genre=f"{n % 3}"
        )
    with open_library(folder) as library:
        library.add(music)
        refresh(library)
        before = [record.name for record in library.models.all()]
        stuffing = fill(disk, left_kb=0)  # while it is open, because opening it needs space, too
        _, said = run("train", "--from", "genre", "--strength", 100, "--name", "mine", library=folder, expect=4)
        assert f"There is no room left in {folder}." in said
        assert [record.name for record in library.models.all()] == before
        assert {path.name for path in (folder / "models").iterdir()} == {r.id for r in library.models.all()}
        assert is_whole(library)
    stuffing.unlink()
    run("train", "--from", "genre", "--strength", 100, "--name", "mine", library=folder)


def test_playlist_and_evaluation_on_full_disk(disk, built_library):
    folder, target = shutil.copytree(built_library, disk / "library"), disk / "evening.m3u8"
    with Library.open(folder):
        stuffing = fill(disk, left_kb=0)  # while it is open, because opening it needs space, too
        _, said = run("playlist", "-n", 4, "-o", target, library=folder, expect=4)
        assert f"There is no room left in {disk}." in said
        assert not target.exists()
        assert json.loads(run("evaluate", "--json", library=folder)[0]), "it writes nothing"
    assert not [path for path in disk.iterdir() if path not in (folder, stuffing)]
    stuffing.unlink()
    run("playlist", "-n", 4, "-o", target, library=folder)
    assert target.exists()


def test_partial_rows_are_overwritten_by_next_append(disk):
    file = RowFile(disk / "rows", 1000)
    file.append(np.ones((10, 1000)), 0)
    stuffing = fill(disk, left_kb=20)
    with pytest.raises(StorageError, match="no room left"):
        file.append(np.full((100, 1000), 2.0), 10)
    stuffing.unlink()
    file.append(np.full((5, 1000), 3.0), 10)
    assert file.read(15).mean(axis=1).tolist() == [1.0] * 10 + [3.0] * 5


@pytest.fixture
def crammed(disk, built_library):
    """The folder of a library on a disk with 0 bytes left, and the file that fills the disk."""
    folder = shutil.copytree(built_library, disk / "library")
    return folder, fill(disk, left_kb=0)


def test_library_on_full_disk_can_be_read(crammed, monkeypatch):
    folder, stuffing = crammed
    assert len(json.loads(run("list", "--json", library=folder)[0])) == 12
    assert len(json.loads(run("similar", 1, "-k", 3, "--json", library=folder)[0])) == 3
    assert json.loads(run("info", "--json", library=folder)[0])["songs"] == 12
    assert len(json.loads(run("playlist", "-n", 4, "--seed", 1, "--json", library=folder)[0])["songs"]) == 4
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(folder))
    app = TestClient(http_interface())
    assert len(app.get("/songs").json()) == 12
    stuffing.unlink()
    open_again().set_setting("shortest_s", 3)
    assert len(app.get("/songs").json()) == 12


@pytest.mark.parametrize(
    "command", [["scan"], ["settings", "shortest_s", "3"], ["edit", "1", "--title", "x"], ["train", "--from", "genre"]]
)
def test_changes_on_full_disk_give_clear_error(crammed, command):
    folder, stuffing = crammed
    _, said = run(*command, library=folder, expect=4)
    assert said.strip().splitlines()[-1].startswith(f"error: There is no room left in {folder}. Free some space")
    assert "Traceback" not in said
    stuffing.unlink()
    run("settings", "shortest_s", "3", library=folder)
    with Library.open(folder) as library:
        assert is_whole(library)


def test_new_library_on_full_disk_gives_clear_error(disk):
    fill(disk, left_kb=0)
    with pytest.raises(StorageError, match="no room left"):
        Library.open(disk / "library")


def test_library_of_killed_process_on_full_disk_has_its_last_changes(disk, built_library):
    folder = shutil.copytree(built_library, disk / "library")
    with Library.open(folder) as library:
        library.add_playlists([("the last", None, [1])], source="saved")
        shutil.copytree(folder, disk / "killed")  # as a killed process leaves it
    shutil.copytree(disk / "killed", disk / "part", ignore=shutil.ignore_patterns("*-shm"))
    fill(disk, left_kb=0)
    with pytest.raises(StorageError, match="no room left"):  # not the state before
        Library.open(disk / "part")
    with Library.open(disk / "killed") as library:
        assert [p.name for p in library.playlists("saved")] == ["the last"]


# --- read-only ---


@pytest.fixture
def backup(disk, built_library):
    """A library on a read-only disk."""
    folder = shutil.copytree(built_library, disk / "library")
    make_read_only(disk)
    return folder


def test_read_only_library_can_be_read(backup):
    songs = json.loads(run("list", "--json", library=backup)[0])
    assert len(songs) == 12
    assert len(json.loads(run("similar", 1, "-k", 3, "--json", library=backup)[0])) == 3
    assert len(json.loads(run("playlist", "-n", 4, "--seed", 1, "--json", library=backup)[0])["songs"]) == 4
    assert json.loads(run("info", "--json", library=backup)[0])["songs"] == 12
    assert json.loads(run("models", "list", "--json", library=backup)[0])
    run("failed", library=backup)


@pytest.mark.parametrize(
    "command", [["scan"], ["settings", "shortest_s", "3"], ["edit", "1", "--title", "x"], ["train", "--from", "genre"]]
)
def test_changes_to_read_only_library_give_clear_error(backup, command):
    _, said = run(*command, library=backup, expect=4)
    assert f"{backup} is read-only: nothing can be changed there." in said


def test_new_library_on_read_only_disk_gives_clear_error(disk):
    make_read_only(disk)
    with pytest.raises(StorageError, match=f"{disk} is read-only"):
        Library.open(disk / "library")


def test_read_only_copy_of_open_library_has_last_changes(disk, tiny_library):
    tiny_library.add_playlists([("the last", None, [1])], source="saved")
    shutil.copytree(tiny_library.folder, disk / "whole")
    shutil.copytree(tiny_library.folder, disk / "part", ignore=shutil.ignore_patterns("*-shm"))
    assert (disk / "part" / f"{LIBRARY_FILE}-wal").stat().st_size > 0, "else this shows nothing"
    make_read_only(disk)
    with Library.open(disk / "whole") as library:
        assert [p.name for p in library.playlists("saved")] == ["the last"]
    with pytest.raises(LibraryError, match="was not closed before it was copied"):
        Library.open(disk / "part")


@pytest.mark.parametrize("is_read_only", [False, True])
@pytest.mark.parametrize("version", [1, 9])
def test_rejects_library_from_before_1_0(disk, built_library, version, is_read_only):
    folder = shutil.copytree(built_library, disk / "library")
    with sqlite3.connect(folder / LIBRARY_FILE) as old:
        old.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (str(version),))
    old.close()
    before = (folder / LIBRARY_FILE).read_bytes()
    if is_read_only:
        make_read_only(disk)
    with pytest.raises(
        LibraryError, match=r"version of musicsim before 1\.0 .* Add its music folders to a new library\."
    ):
        Library.open(folder)
    assert (folder / LIBRARY_FILE).read_bytes() == before


def test_backup_made_during_job_opens(disk, built_library):
    folder = shutil.copytree(built_library, disk / "library")
    with Library.open(folder) as library:
        library.jobs.update(library.jobs.create("add", {}), state="running", pid=2**22 - 1, created_at=0.0)
    make_read_only(disk)
    with Library.open(folder) as library:
        assert jobs.current(library) is None


# --- no library ---


@pytest.mark.parametrize("version", ["x", "0", "-1", "1.5", "", "٣", "9" * 5000])
def test_impossible_version_gives_clear_error(tmp_path, version):
    Library.open(tmp_path / "library").close()
    with sqlite3.connect(tmp_path / "library" / LIBRARY_FILE) as changed:
        changed.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (version,))
    changed.close()
    with pytest.raises(LibraryError, match=r"damaged, or belongs to another program\. Restore a backup"):
        Library.open(tmp_path / "library")


def test_missing_version_gives_clear_error(tmp_path):
    Library.open(tmp_path / "library").close()
    with sqlite3.connect(tmp_path / "library" / LIBRARY_FILE) as changed:
        changed.execute("DELETE FROM meta")
    changed.close()
    with pytest.raises(LibraryError, match="does not contain a library's version"):
        Library.open(tmp_path / "library")


def test_foreign_database_is_untouched(tmp_path):
    with sqlite3.connect(tmp_path / LIBRARY_FILE) as other:
        other.execute("CREATE TABLE recipes (name TEXT)")
    other.close()
    with pytest.raises(LibraryError, match="belongs to another program"):
        Library.open(tmp_path)
    with sqlite3.connect(tmp_path / LIBRARY_FILE) as other:
        assert [name for (name,) in other.execute("SELECT name FROM sqlite_master")] == ["recipes"]
    other.close()


def test_invalid_database_file_gives_clear_error(tmp_path):
    (tmp_path / LIBRARY_FILE).write_text("these are only words\n" * 1000)
    with pytest.raises(
        LibraryError, match=r"cannot be opened as a library \(file is not a database\)\. Restore a backup"
    ):
        Library.open(tmp_path)


def test_emptied_database_is_not_new_library(tmp_path):
    folder = tmp_path / "library"
    (folder / "frames").mkdir(parents=True)
    (folder / LIBRARY_FILE).touch()
    with pytest.raises(LibraryError, match=r"is empty \(0 bytes\), so its content is lost"):
        Library.open(folder)


def test_empty_database_alone_can_become_new_library(tmp_path):
    (tmp_path / LIBRARY_FILE).touch()
    with pytest.raises(LibraryError, match="is empty"):
        Library.open(tmp_path, create=False)
    with Library.open(tmp_path) as library:
        assert len(library) == 0


def test_damaged_pages_are_reported_and_rest_is_readable(tiny_library):
    tiny_library.add_playlists([("mine", None, [1, 2])], "saved")
    file = tiny_library.folder / LIBRARY_FILE
    tiny_library.close()
    with sqlite3.connect(file) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'playlist_songs'"
        (page,), (size,) = database.execute(query).fetchone(), database.execute("PRAGMA page_size").fetchone()
    database.close()
    with file.open("r+b") as stream:
        stream.seek((page - 1) * size)
        stream.write(b"\xff" * 64)
    with Library.open(tiny_library.folder) as library:
        with pytest.raises(LibraryError, match=r"library\.sqlite is damaged \(.*\)\. Restore a backup"):
            library.playlists()
        with pytest.raises(LibraryError, match="is damaged"):
            library.check()
        assert len(library.songs()) == 12


@pytest.mark.parametrize("command", [["list"], ["duplicates"], ["similar", "1"]])
def test_damaged_text_gives_clear_error(tiny_library, command):
    with tiny_library.write() as connection:
        connection.exec_driver_sql("UPDATE songs SET title = CAST(x'41a042' AS TEXT) WHERE id = 3")
    _, said = run(*command, library=tiny_library.folder, expect=1)
    assert said.startswith(f"error: {tiny_library.folder / LIBRARY_FILE} is damaged (")


def test_damaged_schema_name_gives_clear_error(tmp_path):
    Library.open(tmp_path / "library").close()
    file = tmp_path / "library" / LIBRARY_FILE
    data = file.read_bytes()
    assert data.count(b"CREATE TABLE aliases") == 1
    file.write_bytes(data.replace(b"tablealiasesaliases", b"tablealiase\xdfaliase\xdf"))
    assert file.read_bytes() != data
    with pytest.raises(LibraryError, match="library"):
        Library.open(tmp_path / "library")
