"""Tests of the findings of doctor, its repairs, and the limits of a report."""

import json
import os
import shutil
import sqlite3
import sys
import time

import numpy as np
import pytest

from musicsim import LIBRARY_FILE, logs
from musicsim.audio import mfcc, rendering
from musicsim.audio.formats import DECODERS
from musicsim.errors import ModelError
from musicsim.explorer.evaluation import quality
from musicsim.explorer.health import machine
from musicsim.explorer.health.doctor import NOTE, OK, PROBLEM, examine, repair
from musicsim.explorer.health.machine import check_machine
from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.search.query import find_similar
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library
from musicsim.library.db.schema_version import SCHEMA_VERSION
from musicsim.progress import no_progress
from tests.command import run
from tests.disks import make_read_only, small_disk
from tests.sounds import open_library, write_song


def found(library, level=None):
    """Return the problems found, or all findings of one level."""
    listed = list(examine(library, no_progress))
    return [f for f in listed if (f.level == level if level else f.level != OK)]


def mend(library):
    """Repair everything that can be repaired, and return the sentences."""
    return repair(library, found(library), no_progress)


def test_healthy_library_has_no_findings(tiny_library):
    assert found(tiny_library) == []
    assert {finding.what for finding in found(tiny_library, OK)} == {"database", "songs", "features", "models"}


# --- the database ---


def _open_again(library, change):
    """Change the database file of a closed library, and open the library again."""
    library.close()
    change(library.folder / LIBRARY_FILE)
    return Library.open(library.folder)


def test_damaged_database_page_is_reported_not_repaired(tiny_library):
    def damage(file):
        with sqlite3.connect(file) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'files'").fetchone()
            (size,) = connection.execute("PRAGMA page_size").fetchone()
        connection.close()
        with file.open("r+b") as stream:
            stream.seek((page - 1) * size)
            stream.write(b"\xff" * 64)

    with _open_again(tiny_library, damage) as library:
        (problem,) = found(library)
        assert (problem.what, problem.level, problem.remedy) == ("database", PROBLEM, "Restore a backup.")
        assert problem.fix == ""
        assert mend(library) == []


def test_damaged_database_index_is_rebuilt(tiny_library):
    def damage(file):
        with sqlite3.connect(file) as connection:
            connection.execute("PRAGMA writable_schema = ON")
            change = "UPDATE sqlite_master SET sql = ? WHERE name = 'ix_files_song_id'"
            connection.execute(change, ("CREATE INDEX ix_files_song_id ON files (size)",))
        connection.close()
        with sqlite3.connect(file) as connection:
            connection.execute("REINDEX ix_files_song_id")
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute(change, ("CREATE INDEX ix_files_song_id ON files (song_id)",))
        connection.close()

    with _open_again(tiny_library, damage) as library:
        assert [(f.what, f.level, f.fix) for f in found(library, PROBLEM)] == [("database", PROBLEM, "index")]
        assert "the database indexes were rebuilt" in mend(library)
        assert found(library, PROBLEM) == []


def test_dangling_rows_are_counted(tiny_library):
    def damage(file):
        with sqlite3.connect(file) as connection:
            connection.execute("INSERT INTO feedback VALUES (9999, 1, 0)")
        connection.close()

    with _open_again(tiny_library, damage) as library:
        assert [f.words for f in found(library, PROBLEM)] == ["rows that refer to missing rows: 1 in feedback"]


# --- arrays ---


def test_leftover_arrays_and_files_are_deleted(tiny_library):
    folder = tiny_library.folder
    kept = {path for path in folder.rglob("*.np*") if path.is_file()}
    left = [
        folder / "frames" / "ab" / f"{'ab' * 16}.npy",
        folder / "cache" / ".songs-0123456789ab.npz",
        folder / "models" / "learned-00000000" / "model.npz",
    ]
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
        os.utime(path, (time.time() - 2 * 24 * 3600,) * 2)
    assert sorted((f.what, f.level, f.fix) for f in found(tiny_library)) == [
        ("features", NOTE, "sweep"),
        ("leftovers", NOTE, "sweep"),
        ("models", NOTE, "sweep"),
    ]
    assert mend(tiny_library) == ["files left by killed processes were deleted"]
    assert found(tiny_library) == []
    assert {path for path in folder.rglob("*.np*") if path.is_file()} == kept


@pytest.mark.long
def test_missing_or_damaged_features_are_recomputed(collection, built_library, tmp_path):
    folder = shutil.copytree(built_library, tmp_path / "library")
    with Library.open(folder) as library:
        songs = library.songs()
        gone, cut, away = (library.frame_files.path(song.content_hash) for song in songs[:3])
        whole = [gone.read_bytes(), cut.read_bytes()]
        gone.unlink()
        cut.write_bytes(cut.read_bytes()[:-100])
        away.write_bytes(b"")
        library.files.mark(missing=[songs[2].path], back=[])
        assert sorted((f.level, f.what, len(f.names)) for f in found(library) if f.what == "features") == [
            (NOTE, "features", 0),
            (PROBLEM, "features", 1),
            (PROBLEM, "features", 1),
        ]
        assert cut.is_file(), "looking changes nothing"
        assert "2 songs were analyzed again; 0 failed" in mend(library)
        assert [gone.read_bytes(), cut.read_bytes()] == whole
        assert [f.words for f in found(library, PROBLEM)] == []
        assert len(library) == 11


def test_damaged_aspects_stay_until_repair(collection, built_library, tmp_path):
    folder = shutil.copytree(built_library, tmp_path / "library")
    with Library.open(folder) as library:
        _, aspects = library.frame_files.files(library.songs()[0].content_hash)
        whole = aspects.read_bytes()
        aspects.write_bytes(whole[:-100])
        assert [(f.level, f.what) for f in found(library)] == [(PROBLEM, "features")]
        assert aspects.is_file()
        mend(library)
        assert aspects.read_bytes() == whole
        assert found(library, PROBLEM) == []


# --- models ---


@pytest.mark.long
@pytest.mark.parametrize("name", ["model.npz", "vectors.f32", "map.npz", "clusters.npz"])
def test_model_with_damaged_file_is_refitted(tiny_library, name):
    record = tiny_library.models.active()
    (tiny_library.models.path(record.id) / name).write_bytes(b"PK damaged")
    (problem,) = found(tiny_library, PROBLEM)
    assert (problem.what, problem.fix) == ("models", "models")
    assert record.id in problem.words
    assert record.name in problem.names
    assert mend(tiny_library)
    assert found(tiny_library) == []
    assert tiny_library.models.active().name == record.name


@pytest.mark.long
@pytest.mark.parametrize("value", [np.nan, 1.3e38])
def test_invalid_vector_is_reported_and_repaired(tiny_library, value, monkeypatch):
    record = tiny_library.models.active()
    file = tiny_library.models.path(record.id) / "vectors.f32"
    vectors = np.fromfile(file, "<f4")
    vectors[1] = value
    vectors.tofile(file)
    with pytest.raises(ModelError, match=rf"{record.id} are damaged: X contains .*\. Choose a different"):
        find_similar(take_snapshot(tiny_library), 1)
    monkeypatch.setattr(quality, "_MAX_SONGS", len(vectors) // record.n_dimensions - 1)
    with pytest.raises(ModelError, match=rf"{record.id} are damaged"):  # large libraries are checked by a sample
        quality.measure_lists(take_snapshot(tiny_library))
    (problem,) = found(tiny_library, PROBLEM)
    assert (problem.what, problem.fix, problem.names[0]) == ("models", "models", record.name)
    assert mend(tiny_library)
    assert find_similar(take_snapshot(tiny_library), 1)


def test_outdated_map_is_updated(tiny_library):
    tiny_library.set_setting("hub_reduction", False)
    (note,) = found(tiny_library)
    assert (note.what, note.level, note.fix) == ("models", NOTE, "models")
    mend(tiny_library)
    assert found(tiny_library) == []


# --- left to the owner ---


def test_missing_files_and_interrupted_jobs_are_reported(tiny_library):
    song = tiny_library.songs()[0]
    with tiny_library.write() as connection:
        connection.exec_driver_sql("UPDATE files SET path = '/nowhere/gone.flac' WHERE song_id = ?", (song.id,))
    with tiny_library.note_refresh():
        pass
    tiny_library.jobs.update(tiny_library.jobs.create("train", {}), state="interrupted", message="zebra")
    listed = {f.what: f for f in found(tiny_library)}
    assert listed.keys() == {"files", "jobs"}
    assert listed["files"].names == ("/nowhere/gone.flac",)
    assert listed["jobs"].words == "the last job, 1 (train), did not finish: interrupted"
    assert mend(tiny_library) == []


@pytest.mark.long
def test_machine_is_checked(tmp_path, monkeypatch):
    well = {finding.what: finding for finding in check_machine(tmp_path / "not" / "yet")}
    assert well.keys() >= {"decoders", "cores", "room", "version"}
    assert well["decoders"].level == OK
    monkeypatch.setattr(rendering, "_openmpt", lambda: None)
    monkeypatch.setattr(rendering, "_fluidsynth", lambda: None)
    notes = [f for f in check_machine(tmp_path) if f.what == "optional decoders"]
    assert [(f.level, f.words) for f in notes] == [
        (NOTE, ".mod, .xm, .it, .s3m cannot be decoded: libopenmpt is not installed"),
        (NOTE, ".mid, .midi cannot be decoded: FluidSynth is not installed"),
    ]
    monkeypatch.setitem(DECODERS, ".mp3", "no such decoder")
    monkeypatch.setattr(machine, "MIN_FREE", 1 << 60)
    monkeypatch.setitem(sys.modules, "piqp", None)  # a package that cannot be loaded
    monkeypatch.setattr("importlib.metadata.requires", lambda _: ["numpy>=999"])
    monkeypatch.setattr(machine, "mfcc", lambda y: mfcc(y) + 1)
    problems = {f.what: f.words for f in check_machine(tmp_path) if f.level == PROBLEM}
    assert problems["decoders"] == "no decoder for .mp3"
    assert problems["libraries"].startswith("the package piqp cannot be loaded: ")
    assert problems.keys() == {"libraries", "decoders", "arithmetic", "room", "version"}


# --- the commands ---


@pytest.mark.long
def test_exit_code_reports_remaining_problems(tiny_library):
    folder = tiny_library.folder
    out, _ = run("doctor", library=folder)
    assert "ok       database: intact." in out
    (tiny_library.models.path(tiny_library.models.active().id) / "map.npz").write_bytes(b"damaged")
    said = json.loads(run("doctor", "--json", library=folder, expect=3)[0])
    assert [f["what"] for f in said["findings"] if f["level"] == PROBLEM] == ["models"]
    assert said["done"] == []
    out, _ = run("doctor", "--fix", library=folder)
    assert out.startswith("done     the models, the map and the playlist walk were brought up to date\n")


def test_read_only_library_is_examined_not_changed(tmp_path, built_library):
    with small_disk(tmp_path / "disk") as disk:
        folder = shutil.copytree(built_library, disk / "library")
        with Library.open(folder) as library:
            (library.models.path(library.models.active().id) / "map.npz").write_bytes(b"damaged")
        make_read_only(disk)
        out, _ = run("doctor", library=folder, expect=3)
        assert "note     library: readable but not writable." in out
        assert "problem  models: the map of" in out
        _, said = run("doctor", "--fix", library=folder, expect=4)
        assert "is read-only" in " ".join(said.split())


def test_absent_and_unreadable_libraries_are_examined(tmp_path):
    out, _ = run("doctor", library=tmp_path / "none")
    assert "note     library: does not exist yet" in out
    (tmp_path / LIBRARY_FILE).write_text("no database at all, but a text of some length" * 20)
    out, _ = run("doctor", "--fix", library=tmp_path, expect=3)
    assert "problem  library: cannot be opened" in out
    assert run("report", tmp_path / "report.json", library=tmp_path)
    assert json.loads((tmp_path / "report.json").read_text())["library"] is None


def test_report_contains_no_private_names(tmp_path):
    words = ["zebrafinch", "quixotry", "marzipan", "pterodactyl", "xylophone", "gherkin"]
    title, artist, music, place, secret, genre = words
    for n in range(3):
        write_song(
            tmp_path / music / f"{title}{n}.flac", seed=n, seconds=2, title=f"{title} {n}", artist=artist, genre=genre
        )
    (tmp_path / music / f"{title}.mp3").write_text("no music")
    with open_library(tmp_path / place) as library:
        library.add(tmp_path / music, n_workers=1)
        refresh(library)
        logs.hide(secret)
        library.jobs.update(library.jobs.create("add", {"paths": [music]}), state="failed", message=f"/{music}: no")
        library.models.path(library.models.active().id).joinpath("model.npz").write_bytes(b"damaged")
        with logs.open_log(library.folder):
            logs.begin()
            logs.logging.getLogger("musicsim.test").warning("%s by %s: %r", title, artist, secret)
        (tmp_path / music / f"{title}0.flac").rename(tmp_path / music / f"{title} elsewhere.flac")
        for name in ("report.txt", "report.json"):
            run("report", tmp_path / name, library=library.folder)
    said = (tmp_path / "report.txt").read_text() + (tmp_path / "report.json").read_text()
    listed = [word for word in (*words, str(tmp_path), tmp_path.name) if word in said]
    assert listed == []
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["library"]["counts"]["songs"] == 3
    assert {f["what"] for f in report["findings"] if f["level"] == PROBLEM} == {"models"}
    assert any("“…” by “…”" in line for line in report["log"])
    assert report["versions"]["schema"] == str(SCHEMA_VERSION)
