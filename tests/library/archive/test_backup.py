"""Tests of backups: one revision, restored completely or refused, and never half in place."""

import errno
import hashlib
import io
import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from musicsim import LIBRARY_FILE
from musicsim.errors import LibraryError, MusicsimError, StorageError, StoreLockedError
from musicsim.explorer import job_process
from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.search.query import find_similar
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library
from musicsim.library.archive import backups
from musicsim.library.archive.backups import back_up, backups_of
from musicsim.library.db import schema
from musicsim.progress import Canceled, no_progress
from tests.archives import packed, parts_of, with_hashes, write_parts
from tests.children import complaint
from tests.command import run
from tests.interruptions import CRASHED, FAULTS, interrupt_each_change
from tests.sounds import open_library, write_song
from tests.waiting import PATIENCE_S, until
from tests.whole import faults

SECRET = "swordfish"


def restore(*arguments, accept=lambda _: True, **options):
    """Restore a backup whose folders its owner confirms (test_restored.py)."""
    return backups.restore(*arguments, accept=accept, **options)


@pytest.fixture
def backup(tiny_library, tmp_path):
    """Back up the tiny library."""
    back_up(tiny_library, tmp_path / "tiny.backup", no_progress)
    return tmp_path / "tiny.backup"


def rows(folder):
    """Return all rows of a database, except settings of the machine, which are not restored (test_restored.py)."""
    with closing(sqlite3.connect(folder / LIBRARY_FILE)) as database:
        left_out = ("server_songs", "VALUES('settings'")
        return [line for line in database.iterdump() if not any(words in line for words in left_out)]


def contents(folder):
    """Return the bytes of everything that a restore may replace, by name."""
    files = (path for path in folder.rglob("*") if path.is_file())
    own = {path.relative_to(folder): path for path in files}
    return {
        name: hashlib.sha256(path.read_bytes()).hexdigest()
        for name, path in own.items()
        if name.parts[0] not in ("scratch", "cache", "writer.lock") and not name.name.endswith(("-wal", "-shm"))
    }


def answers(library):
    """Return the results of a search for each song."""
    seen = take_snapshot(library)
    return {
        song.id: [(hit.song.id, round(hit.similarity, 6)) for hit in find_similar(seen, song.id, k=5)]
        for song in library.songs()
    }


# --- the same library -----------------------------------------------------------------------------


def test_restored_backup_equals_library(tiny_library, tmp_path):
    tiny_library.add_playlists([("mine", None, [3, 1, 2], {"seed": 4})], "saved")
    started = time.time()
    report = back_up(tiny_library, tmp_path / "b", no_progress)
    ended = time.time()
    assert (report.n_songs, report.damaged) == (12, ())
    restored = restore(tmp_path / "b", tmp_path / "elsewhere", no_progress)
    assert restored.n_songs == 12
    assert started - 1 <= restored.created_at <= ended + 1  # it may be stored in whole seconds
    with Library.open(tmp_path / "elsewhere", create=False) as there:
        assert not faults(there)
        assert answers(there) == answers(tiny_library)
    assert rows(tmp_path / "elsewhere") == rows(tiny_library.folder)
    arrays = {n: d for n, d in contents(tiny_library.folder).items() if n.suffix in (".npy", ".npz", ".f32")}
    assert len(arrays) > 24
    assert arrays.items() <= contents(tmp_path / "elsewhere").items()


def test_backup_can_be_verified_with_standard_tools(backup, tmp_path):
    for name, part in parts_of(backup).items():
        path = tmp_path / "unpacked" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(part)
    checked = subprocess.run(["sha256sum", "--check", "--quiet", "hashes.txt"], cwd=tmp_path / "unpacked", check=False)
    assert checked.returncode == 0


def test_passwords_and_sound_are_included_only_on_request(tiny_library, tmp_path):
    for name in ("servers.json", "listenbrainz.token", "players.json"):
        (tiny_library.folder / name).write_text(SECRET)
    write_song(tiny_library.folder / "uploads" / "a.flac")
    back_up(tiny_library, tmp_path / "plain", no_progress)
    back_up(tiny_library, tmp_path / "private", no_progress, with_passwords=True)
    assert SECRET.encode() not in b"".join(parts_of(tmp_path / "plain").values())
    assert b"".join(parts_of(tmp_path / "private").values()).count(SECRET.encode()) == 3
    for name in ("plain", "private"):
        assert b"fLaC" not in b"".join(parts_of(tmp_path / name).values())
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    asked = []

    def accept(consent):
        asked.append(consent.private)
        return True

    restore(tmp_path / "private", tmp_path / "there", no_progress, with_passwords=True, accept=accept)
    assert asked == [("servers.json", "listenbrainz.token", "players.json")]
    token = tmp_path / "there" / "listenbrainz.token"
    assert (token.read_text(), stat.S_IMODE(token.stat().st_mode)) == (SECRET, 0o600)


def test_restore_replaces_library_but_keeps_uploads_and_connections(tiny_library, backup):
    folder, before = tiny_library.folder, rows(tiny_library.folder)
    with tiny_library.write() as connection:
        connection.execute(schema.songs.delete())
    shutil.rmtree(folder / "frames")
    (folder / "servers.json").write_text(SECRET)
    upload = write_song(folder / "uploads" / "a.flac")
    tiny_library.close()
    restore(backup, folder, no_progress)
    assert rows(folder) == before
    with Library.open(folder) as library:
        assert not faults(library)
    assert upload.exists()
    assert (folder / "servers.json").read_text() == SECRET
    assert not list(folder.glob(".re*"))


def test_restore_replaces_damaged_library(tiny_library, backup):
    before = rows(tiny_library.folder)
    tiny_library.close()
    (tiny_library.folder / LIBRARY_FILE).write_bytes(b"these are only words\n" * 1000)
    (tiny_library.folder / f"{LIBRARY_FILE}-wal").write_bytes(b"and these")
    restore(backup, tiny_library.folder, no_progress)
    assert rows(tiny_library.folder) == before


# --- concurrent writes ---------------------------------------------------------------------------

_ADDS = """
import sys, time
from pathlib import Path
from musicsim.library import Library

def rest(_message, done=0, *_, **__):
    while done and done % 20 == 0 and not Path(sys.argv[3], f"go on after {done}").exists():
        time.sleep(0.01)

Library.open(sys.argv[1]).add(sys.argv[2], n_workers=1, progress=rest)
"""


@pytest.mark.long
def test_backup_during_scan_is_consistent(tmp_path):
    for n in range(80):
        write_song(tmp_path / "music" / f"{n:03d}.flac", seed=n, seconds=1.5)
    taken = []
    with open_library(tmp_path / "library") as library:
        adds = subprocess.Popen([sys.executable, "-c", _ADDS, library.folder, tmp_path / "music", tmp_path])
        for n_songs in (20, 40, 60, 80):
            until(lambda n_songs=n_songs: adds.poll() is not None or len(library) >= n_songs)
            go_on, name = tmp_path / f"go on after {n_songs}", tmp_path / f"{n_songs}.backup"
            taken.append((name, back_up(library, name, lambda *_, go_on=go_on: go_on.touch()).n_songs))
            go_on.touch()
        assert adds.wait(PATIENCE_S) == 0
        final = {song.id: song.content_hash for song in library.songs()}
    assert len(final) == 80
    assert all(n <= n_songs <= n + 20 for n, (_, n_songs) in zip((20, 40, 60, 80), taken, strict=True))
    for name, n_songs in taken:
        restore(name, tmp_path / name.stem, no_progress)
        with Library.open(tmp_path / name.stem, create=False) as there:
            songs = {song.id: song.content_hash for song in there.songs()}
            assert len(songs) == n_songs
            assert list(songs.items()) == list(final.items())[:n_songs], "songs come in the order of their ids"
            assert not faults(there)
            assert there.add(tmp_path / "music").n_unchanged == n_songs
            assert len(there) == 80


def test_songs_deleted_during_backup_are_left_out(tiny_library, tmp_path):
    """A backup taken meanwhile shows the library after the removal, not songs without sound."""
    gone = tiny_library.songs()[-3:]

    def progress(message, done, total):
        if message == "copying songs" and done == 5 and gone[0] in tiny_library.songs():
            with tiny_library.write() as connection:
                connection.execute(schema.songs.delete().where(schema.songs.c.id.in_([s.id for s in gone])))
            for song in gone:
                tiny_library.frame_files.drop(song.content_hash)

    assert back_up(tiny_library, tmp_path / "b", progress).n_songs == 9
    restore(tmp_path / "b", tmp_path / "there", no_progress)
    with Library.open(tmp_path / "there", create=False) as there:
        assert len(there) == 9
        assert not faults(there)


def test_rows_added_during_backup_are_cut_off(tiny_library, tmp_path):
    native = tiny_library.models.native()
    X = tiny_library.vectors().X.copy()

    def progress(message, done, total):
        if message == "copying songs" and done == 1:
            for _ in range(2):
                features = np.ones((1, native.n_features)) if native.base_id is None else None
                tiny_library.models.append(native.id, [1], features, np.ones((1, native.n_dimensions)))

    back_up(tiny_library, tmp_path / "b", progress)
    restore(tmp_path / "b", tmp_path / "there", no_progress)
    with Library.open(tmp_path / "there", create=False) as there:
        np.testing.assert_array_equal(there.vectors().X, X)
        assert not faults(there)


def test_canceled_backup_leaves_no_files(tiny_library, tmp_path):
    def stop(*_):
        raise Canceled

    folder = tmp_path / "disk"
    folder.mkdir()
    with pytest.raises(Canceled):
        back_up(tiny_library, folder / "b", stop)
    assert not list(folder.iterdir())


# --- damage ---------------------------------------------------------------------------------------


def _cut(data, rng, tmp_path):
    return data[: rng.integers(1, len(data))]


def _flipped(data, rng, tmp_path):
    changed = bytearray(data)
    changed[rng.integers(len(data))] ^= 1 << rng.integers(8)
    return bytes(changed)


def _on_parts(change):
    """Change the members of an archive without updating its hashes."""

    def changed(data, rng, tmp_path):
        (tmp_path / "honest").write_bytes(data)
        return packed(change(parts_of(tmp_path / "honest")))

    return changed


@_on_parts
def _renamed(parts):
    first = next(name for name in parts if name.startswith("frames"))
    return {"frames/ab/abcd.npy" if name == first else name: part for name, part in parts.items()}


@_on_parts
def _elsewhere(parts):
    return {f"../{n}" if n.startswith("walk") else n: part for n, part in parts.items()}


@_on_parts
def _without_hashes(parts):
    return {name: part for name, part in parts.items() if name != "hashes.txt"}


@_on_parts
def _without_a_song(parts):
    del parts[next(name for name in parts if name.startswith("frames"))]
    return parts


@_on_parts
def _other_database(parts):
    """Change some bytes of the database, and update its hash."""
    database = bytearray(parts[LIBRARY_FILE])
    database[100:108] = bytes(8)  # on the page of the schema
    return with_hashes(parts | {LIBRARY_FILE: bytes(database)})


@pytest.mark.long
@pytest.mark.parametrize(
    "way", [_cut, _flipped, _renamed, _elsewhere, _without_hashes, _without_a_song, _other_database]
)
def test_truncated_or_altered_backup_changes_nothing(tiny_library, backup, rng, way, tmp_path):
    folder = tiny_library.folder
    tiny_library.close()
    honest = backup.read_bytes()
    restore(backup, folder, no_progress)
    before = contents(folder)
    for number in range(12 if way in (_cut, _flipped) else 1):
        (tmp_path / "wrong").write_bytes(way(honest, rng, tmp_path))
        with pytest.raises(LibraryError, match="wrong: this is not a complete backup made by musicsim") as caught:
            restore(tmp_path / "wrong", folder, no_progress)
        assert "\n" not in str(caught.value), number
        assert contents(folder) == before, number
        assert not list((folder / "scratch").glob("*/*"))
        with pytest.raises(LibraryError):
            restore(tmp_path / "wrong", tmp_path / "new", no_progress)
        assert not (tmp_path / "new").exists()
    assert not (tmp_path.parent / "walk_sources.npz").exists()


@pytest.mark.parametrize(
    "created_at", ['"x"', "NaN", "1e308", "-1e18", "null", "true", "[]", "Infinity", "1" + "0" * 400]
)
def test_backup_without_valid_date_changes_nothing(tiny_library, backup, tmp_path, created_at):
    parts = parts_of(backup)
    parts["backup.json"] = f'{{"format": 1, "created_at": {created_at}}}'.encode()
    write_parts(tmp_path / "bad", parts)
    tiny_library.close()
    before = contents(tiny_library.folder)
    _, said = run("restore", tmp_path / "bad", library=tiny_library.folder, expect=1)
    assert said.strip().startswith(
        "error: bad: this is not a complete backup made by musicsim (its creation time is missing or invalid)"
    )
    assert contents(tiny_library.folder) == before


@pytest.mark.parametrize("name", [f"models/{'a' * 300}/x.json", f"models/a/{'b' * 256}.json"])
def test_impossible_file_name_gives_clear_error(backup, tmp_path, name):
    write_parts(tmp_path / "bad", parts_of(backup) | {name: b"{}"})
    _, said = run("restore", tmp_path / "bad", library=tmp_path / "there", expect=1)
    assert "this is not a complete backup made by musicsim" in said
    assert not (tmp_path / "there").exists()


def test_backup_with_compressed_arrays_is_refused(backup, tmp_path):
    bomb = io.BytesIO()
    np.savez_compressed(bomb, places=np.zeros(1 << 20))
    parts = parts_of(backup)
    name = next(name for name in parts if name.startswith("models/") and name.endswith(".npz"))
    write_parts(tmp_path / "bad", parts | {name: bomb.getvalue()})
    _, said = run("restore", tmp_path / "bad", library=tmp_path / "there", expect=1)
    assert "is compressed" in said
    assert not (tmp_path / "there").exists()


@pytest.mark.long
def test_backup_with_too_many_parts_is_refused(backup, tmp_path):
    parts = parts_of(backup)
    few = {f"models/a/{'b' * (n // 26)}{chr(97 + n % 26)}.json": b"" for n in range(50)}
    write_parts(tmp_path / "few", {"backup.json": parts["backup.json"], **few, **parts})
    restore(tmp_path / "few", tmp_path / "there", no_progress)
    many = {f"frames/ab/ab{n}.npy": b"" for n in range(20_000)}
    write_parts(tmp_path / "bad", {"backup.json": parts["backup.json"], **many, **parts})
    with pytest.raises(LibraryError, match=r"it has more than 1\d,\d\d\d parts"):
        restore(tmp_path / "bad", tmp_path / "not", no_progress)
    assert not (tmp_path / "not").exists()


@pytest.mark.parametrize("data", [b"", b"words\n" * 1000, bytes(10240)])
def test_other_file_is_refused_as_backup(tmp_path, data):
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(LibraryError, match="x: this is not a complete backup"):
        restore(tmp_path / "x", tmp_path / "there", no_progress)


def test_newer_backup_gives_clear_error(backup, tmp_path):
    about = {"format": 2, "created_at": 0}
    parts = {"backup.json": json.dumps(about).encode(), "else": b""}
    (tmp_path / "x").write_bytes(packed(parts))
    with pytest.raises(LibraryError, match="newer version of musicsim"):
        restore(tmp_path / "x", tmp_path / "there", no_progress)


def test_backup_does_not_overwrite_other_file(tiny_library, tmp_path):
    song = write_song(tmp_path / "song.flac")
    with pytest.raises(LibraryError, match="and is not a backup"):
        back_up(tiny_library, song, no_progress)
    back_up(tiny_library, tmp_path / "b", no_progress)
    back_up(tiny_library, tmp_path / "b", no_progress)


def test_damaged_database_is_not_backed_up(tiny_library, tmp_path):
    tiny_library.close()
    file = tiny_library.folder / LIBRARY_FILE
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'files'").fetchone()
        (size,) = database.execute("PRAGMA page_size").fetchone()
    with file.open("r+b") as stream:
        stream.seek((page - 1) * size)
        stream.write(b"\xff" * 64)
    with Library.open(tiny_library.folder) as library, pytest.raises(LibraryError, match="no backup was made"):
        back_up(library, tmp_path / "b", no_progress)
    assert not (tmp_path / "b").exists()


def test_damaged_model_is_left_out_and_refit(tiny_library, tmp_path):
    native = tiny_library.models.native()
    vectors = tiny_library.models.path(native.id) / "vectors.f32"
    os.truncate(vectors, vectors.stat().st_size - 1)
    assert back_up(tiny_library, tmp_path / "b", no_progress).damaged == (native.name,)
    restore(tmp_path / "b", tmp_path / "there", no_progress)
    with Library.open(tmp_path / "there") as there:
        refresh(there)
        assert not faults(there)


# --- interruptions --------------------------------------------------------------------------


def test_open_library_is_not_replaced(tiny_library, backup):
    before = rows(tiny_library.folder)
    with pytest.raises(StoreLockedError, match="has this library open"):
        restore(backup, tiny_library.folder, no_progress)
    assert rows(tiny_library.folder) == before
    tiny_library.add_playlists([("still works", None, [1])], "saved")


@pytest.mark.parametrize("is_damaged", [False, True])
def test_restore_is_repeated_after_a_failed_replacement(tiny_library, backup, monkeypatch, is_damaged):
    folder, before, rename = tiny_library.folder, rows(tiny_library.folder), Path.rename
    tiny_library.set_text("machine.name", "mine")
    tiny_library.close()

    def fails(path, target):
        if path == folder / "frames":
            raise OSError(errno.ENOSPC, "no room", str(path))
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", fails)
        with pytest.raises(StorageError):
            restore(backup, folder, no_progress)
    if is_damaged:
        (folder / ".restored" / "parts.json").write_text("{")
        with pytest.raises(LibraryError, match="restore the library again"):
            Library.open(folder)
    restore(backup, folder, no_progress)
    assert [line for line in rows(folder) if "machine.name" not in line] == before
    with Library.open(folder, create=False) as library:
        assert not faults(library)
        assert library.text("machine.name") == "mine"
    assert not list(folder.glob(".re*"))


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_interrupted_restore_leaves_old_or_new_library_and_can_be_repeated(store, tmp_path, fault):
    for n in range(3):
        write_song(tmp_path / "music" / f"{n}.flac", seed=n, seconds=1.2)
    store.add(tmp_path / "music")
    refresh(store)
    back_up(store, tmp_path / "backup", no_progress)
    new = rows(store.folder)
    with store.write() as connection:
        connection.execute(schema.songs.delete().where(schema.songs.c.id > 2))
    refresh(store)
    store.close()
    old, folder, seen, checked = rows(store.folder), store.folder, [], None
    kept = shutil.copytree(folder, tmp_path / "old")
    assert old != new

    def prepare():
        shutil.rmtree(folder)
        shutil.copytree(kept, folder)

    for interruption in interrupt_each_change(
        fault, prepare, "restore", tmp_path / "backup", library=folder, within=folder
    ):
        number = interruption.number
        assert complaint(interruption, (CRASHED,) if fault == "crash" else (0, 4)) == "", number
        if checked != (checked := contents(folder)):
            look = shutil.copytree(folder, tmp_path / "look" / folder.name)
            with Library.open(look) as library:
                assert not faults(library), number
                assert len(library) == len(answers(library))
            seen.append("new" if rows(look) == new else "old")
            assert rows(look) == (new if seen[-1] == "new" else old), number
            shutil.rmtree(look)
        assert complaint(interruption.run_again()) == "", number
        with Library.open(folder) as library, library.exclusive():
            assert not faults(library), number
        assert rows(folder) == new, number
        assert not [path for path in folder.iterdir() if path.name.startswith(".")], "nothing is left"
    assert seen == sorted(seen, reverse=True), "first the old one, then the new one"
    assert {"old", "new"} == set(seen)


# --- jobs and commands ----------------------------------------------------------------------------


def test_backup_job_reports_path(tiny_library, tmp_path):
    job_id = tiny_library.jobs.create("backup", {"path": str(tmp_path / "b")})
    assert job_process.run(tiny_library, job_id) == "done"
    message = tiny_library.jobs.get(job_id).message
    assert message.startswith("12 songs · ")
    assert str(tmp_path / "b") in message
    assert restore(tmp_path / "b", tmp_path / "there", no_progress).n_songs == 12


def test_backup_and_restore_commands(tiny_library, tmp_path):
    said = json.loads(run("backup", tmp_path / "b", "--json", library=tiny_library.folder)[0])
    assert (said["songs"], said["bytes"]) == (12, pytest.approx((tmp_path / "b").stat().st_size, abs=20_000))
    run("restore", tmp_path / "b", "--yes", library=tmp_path / "there")
    assert len(json.loads(run("list", "--json", library=tmp_path / "there")[0])) == 12
    _, error = run("restore", tmp_path / "gone", library=tmp_path / "there", expect=1)
    assert error.strip().endswith("gone: no such file.")


def test_backup_excludes_earlier_backups(tiny_library, tmp_path):
    inside = tiny_library.folder / "backups" / "first.musicsim-backup"
    back_up(tiny_library, inside, no_progress)
    back_up(tiny_library, tmp_path / "b", no_progress)
    assert (tmp_path / "b").stat().st_size < 1.5 * inside.stat().st_size
    assert backups_of(tiny_library) == [inside]


@pytest.mark.long
def test_damaged_backups_raise_only_own_errors(tiny_library, tmp_path, rng):
    back_up(tiny_library, tmp_path / "b", no_progress)
    honest = (tmp_path / "b").read_bytes()
    for number in range(60):
        wrong = bytearray(honest)
        for place in rng.integers(0, len(honest), 5):
            wrong[place] = rng.integers(256)
        (tmp_path / "wrong").write_bytes(wrong)
        refused = ""
        try:
            restore(tmp_path / "wrong", tmp_path / f"{number}", no_progress)
        except MusicsimError as error:
            refused = str(error)
        assert refused.startswith("wrong: this is not a complete backup")
        assert not (tmp_path / f"{number}").exists()
