"""Tests of snapshot files: the same results as the library, and nothing private."""

import io
import itertools
import json
import os
import sqlite3
import subprocess
import sys
import tarfile
import zipfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
import zstandard
from starlette.applications import Starlette
from starlette.testclient import TestClient

from musicsim import LIBRARY_FILE
from musicsim.api import routes
from musicsim.audio import TYPICAL_S, decode
from musicsim.errors import LibraryError, NotFoundError
from musicsim.explorer.models.artifacts import save_report
from musicsim.explorer.playlists.edges import build_hypergraph
from musicsim.explorer.playlists.song_labels import load_sources
from musicsim.explorer.search.query import find_similar
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.bundles.bundle import open_bundle, unpack_bundle, write_bundle
from musicsim.extensions.bundles.public_copy import FILLED
from musicsim.library import Library
from musicsim.library.db import schema
from musicsim.progress import no_progress
from tests.archives import parts_of, write_parts
from tests.command import run
from tests.sounds import write_song

SECRET = "swordfish"
LISTENER = "anna.the.listener"


@pytest.fixture(autouse=True)
def caches(tmp_path, monkeypatch):
    """Move the cache of unpacked snapshot files to a folder of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return tmp_path / "caches" / "musicsim" / "snapshots"


@pytest.fixture
def file(tiny_library, tmp_path):
    """Write a snapshot file of the tiny library."""
    write_bundle(tiny_library, tmp_path / "tiny.tar.zst", no_progress)
    return tmp_path / "tiny.tar.zst"


def answers(library):
    """Return the results of a search for each song, with the reasons."""
    seen = take_snapshot(library)
    return {
        song.id: [(hit.song.id, round(hit.similarity, 6), hit.reason) for hit in find_similar(seen, song.id)]
        for song in library.songs()
    }


# --- the same library -----------------------------------------------------------------------------


def test_snapshot_file_gives_same_results_as_library(tiny_library, file):
    with open_bundle(file, no_progress) as folder, Library.open(folder) as there:
        assert answers(there) == answers(tiny_library)
        ours, theirs = take_snapshot(tiny_library), take_snapshot(there)
        np.testing.assert_array_equal(theirs.map, ours.map)
        for name in ("artist", "genre", "group", "key"):
            assert getattr(theirs.columns, name).texts() == getattr(ours.columns, name).texts()
        for song in tiny_library.songs():
            np.testing.assert_array_equal(there.outline(song.id), tiny_library.outline(song.id))
        assert there.tags() == tiny_library.tags()
        hidden = ("content_hash", "path", "folder", "place")
        as_said = [{n: getattr(s, n) for n in s.__slots__ if n not in hidden} for s in tiny_library.songs()]
        assert [{n: getattr(s, n) for n in s.__slots__ if n not in hidden} for s in there.songs()] == as_said
        assert folder.name == "tiny"


def test_snapshot_file_keeps_playlist_edges(tiny_library, tmp_path):
    """This includes edges by number of plays, although the file does not say who played the songs."""
    plays = [{"listener": f"{LISTENER} {n}", "song_id": i, "count": 1 + i % 5} for i in range(3, 12) for n in (1, 2)]
    tiny_library.add_plays(plays)
    tiny_library.add_playlists([("mine", None, [3, 1, 2])], "saved")
    tiny_library.add_playlists([("theirs", "evening", [4, 1, 2])], "lists of anna.csv (import 3)")
    tiny_library.add_playlists([("theirs", "evening", [4, 2, 1])], "other lists.csv (import 4)")
    write_bundle(tiny_library, tmp_path / "x.tar.zst", no_progress)

    def edges(library):
        now = take_snapshot(library)
        graph = build_hypergraph(now, load_sources(now), own=True)
        return graph.names, graph.incidence.toarray().tolist()

    with open_bundle(tmp_path / "x.tar.zst", no_progress) as folder, Library.open(folder) as there:
        assert edges(there) == edges(tiny_library)
        assert any(name.startswith("familiarity:") for name in edges(there)[0])
        assert [(p.name, p.category, p.song_ids) for p in there.playlists()] == [
            (p.name, p.category, p.song_ids) for p in tiny_library.playlists()
        ]
        heard = there.listening.listeners_of([7, 8, 9])
        assert all(heard.values())
        assert not heard[7] & heard[8], "no two songs have a listener in common"


@pytest.mark.long
def test_unknown_artists_use_bare_folder_names(store, tmp_path):
    music = tmp_path / "private place" / "music"
    for n, name in enumerate(("Tape/a.flac", "Tape/b.flac", "x/Tape/c.flac", "Box/CD 1/d.flac", "mp3/e.flac")):
        write_song(music / name, seed=n)
    write_song(music / "Known" / "f.flac", seed=9, artist="Somebody")
    store.add(music)
    from musicsim.explorer.refresh.refresh import refresh

    refresh(store)
    write_bundle(store, tmp_path / "x.tar.zst", no_progress)
    with open_bundle(tmp_path / "x.tar.zst", no_progress) as folder, Library.open(folder) as there:
        ours, theirs = store.songs(), there.songs()
        assert [song.by for song in theirs] == [song.by for song in ours]
        assert {song.by for song in theirs} >= {"in “Tape”", "in “Box”", "", "Somebody"}
        for a, b in itertools.combinations(range(6), 2):
            assert (theirs[a].group == theirs[b].group) == (ours[a].group == ours[b].group)
        assert {song.folder for song in theirs if song.artist} == {"."}
        groups = there.table().columns.group
        assert [groups.names[code] for code in groups.codes] == [song.group for song in theirs]


def test_songs_without_file_are_excluded(tiny_library, tmp_path):
    with tiny_library.write() as connection:
        connection.execute(schema.files.update().where(schema.files.c.song_id == 12).values(missing_since=1.0))
    n_songs, _ = write_bundle(tiny_library, tmp_path / "x.tar.zst", no_progress)
    assert n_songs == 11
    with open_bundle(tmp_path / "x.tar.zst", no_progress) as folder, Library.open(folder) as there:
        assert len(there.songs(missing=True)) == take_snapshot(there).n_indexed == 11


# --- private data ------------------------------------------------------------------------------


def everything_in(folder: Path) -> bytes:
    """Return all bytes of a library, with packed arrays unpacked, and texts of arrays as UTF-8."""
    parts = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            parts += [str(path.relative_to(folder)).encode(), path.read_bytes()]
            if path.suffix == ".npz":
                with zipfile.ZipFile(path) as packed:
                    parts += [packed.read(name) for name in packed.namelist()]
                with np.load(path) as arrays:
                    parts += ["\n".join(map(str, a.ravel())).encode() for a in arrays.values() if a.dtype.kind == "U"]
    return b"\n".join(parts)


def say_all_that_is_private(library: Library) -> None:
    """Fill every table, and the files next to them, with data that no visitor may see."""
    with library.write() as connection:
        for table in schema.metadata.sorted_tables:
            if table.name in FILLED or table.name == "meta":
                continue
            values = {}
            for column in table.c:
                if column.foreign_keys and "songs.id" in {key.target_fullname for key in column.foreign_keys}:
                    values[column.name] = 1
                elif column.foreign_keys:
                    values[column.name] = 1 if isinstance(column.type, sa.Integer) else SECRET
                elif isinstance(column.type, sa.LargeBinary):
                    values[column.name] = SECRET.encode()
                elif isinstance(column.type, sa.JSON):
                    values[column.name] = {SECRET: SECRET}
                elif isinstance(column.type, schema.FilePath):
                    values[column.name] = Path(f"/{SECRET}")
                elif isinstance(column.type, sa.Text):
                    values[column.name] = SECRET
                elif not column.nullable:
                    values[column.name] = 1
            connection.execute(table.insert().prefix_with("OR REPLACE").values(**values))
        connection.execute(
            schema.songs.update().values(
                notes=SECRET, content_hash=SECRET + sa.cast(schema.songs.c.id, sa.Text), edits={SECRET: SECRET},
                file_tags={SECRET: SECRET}, last_path=Path(f"/{SECRET}/x.mp3"),
            )
        )  # fmt: skip
        connection.execute(schema.models.update().values(settings={"taken_from": SECRET, "listener": SECRET}))
        connection.execute(schema.meta.insert().values(key=SECRET, value=SECRET))
    library.add_plays([{"listener": SECRET, "song_id": i, "count": i} for i in (1, 2, 3)])
    library.add_tags([{"song_id": 1, "tag": "calm", "weight": 1.0}])
    library.add_playlists([("mine", None, [1, 2], {"seed": 1, "folder": SECRET})], "saved")
    library.add_playlists([("theirs", None, [1, 2])], SECRET)
    library.update_colors("folder", lambda _: {f"/{SECRET}": 1})
    library.update_colors("artist", lambda _: {SECRET: 1})
    for name in ("servers.json", "listenbrainz.token", "players.json", "mpd.json", "logs/musicsim.log", "jobs/1.log"):
        path = library.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(SECRET)


def test_snapshot_file_contains_nothing_private(tiny_library, tmp_path):
    say_all_that_is_private(tiny_library)
    said = {
        **{"name": "x", "base": "x", "created_at": 1.0, "seconds": 1.0, "version": "1", "n_songs": 1, "C": 1.0},
        **{"detail": SECRET, "untrained": 0.5, "path": [], "stopped_early": False, "leads": {}, "changed": []},
        "settings": {
            **{"supervision": "plays", "on": [], "loss": "x", "C": 1.0, "k": 1, "threshold": 1, "structure": "x"},
            **{"regularizer": "x", "random_state": 0, "listener": SECRET, "method": "ranking"},
        },
        "split": {part: {"songs": 1, "artists": 1} for part in ("train", "validation", "test")},
        **{"is_better": True, "hubness": {"before": 1.0, "after": 1.0}},
    }
    folder = tiny_library.models.path(tiny_library.models.get().id)
    save_report(folder, said)
    assert SECRET.encode() in everything_in(tiny_library.folder)
    write_bundle(tiny_library, tmp_path / "x.tar.zst", no_progress)
    with open_bundle(tmp_path / "x.tar.zst", no_progress) as there:
        told = everything_in(there)
        assert json.loads((there / "models" / folder.name / "report.json").read_text())["leads"] == {}
        with closing(sqlite3.connect(there / LIBRARY_FILE)) as database:
            not_filled = {table.name for table in schema.metadata.sorted_tables} - FILLED.keys() - {"meta"}
            for table in not_filled:
                assert database.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table
    roots = {path for root in tiny_library.files.roots() for path in (root, *root.parents) if len(path.parts) > 1}
    private = [SECRET, str(tiny_library.folder), *map(str, roots), str(Path.home()), "flac"]
    private += [song.content_hash for song in tiny_library.songs()]
    assert [word for word in private if word.encode() in told] == []


def test_unfilled_columns_keep_defaults(file):
    """A later column must not be in the file until somebody has decided that it may be."""
    with open_bundle(file, no_progress) as folder, closing(sqlite3.connect(folder / LIBRARY_FILE)) as database:
        for name, filled in FILLED.items():
            for column in schema.metadata.tables[name].c:
                if column.name not in filled:
                    found = database.execute(f"SELECT DISTINCT {column.name} FROM {name}").fetchall()
                    assert found in ([], [(None,)]), f"{name}.{column.name}"


# --- sound ----------------------------------------------------------------------------


@pytest.mark.long
def test_excerpts_are_typical_parts_of_songs(store, tmp_path, monkeypatch):
    long = write_song(tmp_path / "music" / "long.flac", "noise", seconds=70.0)
    write_song(tmp_path / "music" / "short.flac", "tones", seconds=5.0)
    gone = write_song(tmp_path / "music" / "gone.flac", "clicks", seconds=5.0)
    store.add(tmp_path / "music")
    from musicsim.explorer.refresh.refresh import refresh

    refresh(store)
    with store.write() as connection:
        connection.execute(schema.songs.update().where(schema.songs.c.duration_s > 60).values(typical_s=25.0))
    gone.unlink()
    assert write_bundle(store, tmp_path / "x.tar.zst", no_progress, with_excerpts=True) == (3, 2)
    with open_bundle(tmp_path / "x.tar.zst", no_progress) as folder, Library.open(folder) as there:
        heard = {song.title: decode(song.path) for song in there.songs() if song.path.exists()}
        songs = {song.title: song for song in there.songs()}
        assert {title: round(sound.duration_s) for title, sound in heard.items()} == {"long": TYPICAL_S, "short": 5}
        whole = decode(long)
        part = whole.samples[25 * whole.sr : 25 * whole.sr + len(heard["long"].samples)]
        # the encoder delays by a few thousand samples at most; noise only correlates with itself
        lags = np.correlate(heard["long"].samples[5000:25000], part[:30000], mode="valid")
        assert np.abs(lags).max() > 10 * np.median(np.abs(lags))
        monkeypatch.setenv("MUSICSIM_LIBRARY", str(folder))
        monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
        client = TestClient(Starlette(routes=routes()))
        assert client.get(f"/songs/{songs['long'].id}/audio").content == songs["long"].path.read_bytes()
        assert client.get(f"/songs/{songs['gone'].id}/audio").status_code == 410
        assert songs["long"].typical_s == 0.0
        assert round(songs["long"].duration_s) == 70
        ours = {song.title: store.outline(song.id) for song in store.songs()}["long"]
        first, last = (int(second / songs["long"].duration_s * len(ours)) for second in (25.0, 55.0))
        np.testing.assert_array_equal(there.outline(songs["long"].id), ours[first:last])


# --- damage and malice ----------------------------------------------------------------------------


def member(name, size=0, **facts):
    found = tarfile.TarInfo(name)
    found.size = size
    for fact, value in facts.items():
        setattr(found, fact, value)
    return found


OTHERS = {
    "a folder above": (member("../x.json", 2), b"{}"),
    "an absolute path": (member("/tmp/musicsim-was-here", 2), b"{}"),
    "above in between": (member("models/../../x.json", 2), b"{}"),
    "a symbolic link": (member("models/x/model.json", type=tarfile.SYMTYPE, linkname="/etc/passwd"), b""),
    "a link": (member("models/x/model.json", type=tarfile.LNKTYPE, linkname="library.sqlite"), b""),
    "a device": (member("models/x/model.json", type=tarfile.CHRTYPE), b""),
    "a folder": (member("models/x/model.json", type=tarfile.DIRTYPE), b""),
    "a long name": (member("models/x/model.json", 9, type=tarfile.GNUTYPE_LONGNAME), b"x" * 9),
    "further facts": (member("models/x/model.json", 0, pax_headers={"path": "../x.json"}), b""),
    "a program": (member("models/x/run.py", 2), b"{}"),
    "no member of any": (member("models/x/model.json", 2), b"{}"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_hostile_member_is_rejected_without_leftovers(file, tmp_path, caches, what):
    write_parts(tmp_path / "bad.tar.zst", parts_of(file), OTHERS[what])
    with (
        pytest.raises(LibraryError, match=r"bad\.tar\.zst: this is not a complete snapshot file") as caught,
        open_bundle(tmp_path / "bad.tar.zst", no_progress),
    ):
        pass
    assert "\n" not in str(caught.value)
    assert not [path for path in caches.rglob("*") if path.suffix not in (".used", ".readers", ".lock")]
    assert not list(tmp_path.glob("**/x.json"))


def test_same_parts_with_valid_hashes_are_accepted(file, tmp_path):
    """This shows that the test above refuses the member that was added."""
    write_parts(tmp_path / "good.tar.zst", parts_of(file))
    with open_bundle(tmp_path / "good.tar.zst", no_progress) as folder, Library.open(folder) as there:
        assert len(there) == 12


def _database(change):
    """Change the database in a copy of the members, and update the hashes."""

    def changed(parts, folder):
        (folder / "changed").write_bytes(parts[LIBRARY_FILE])
        with closing(sqlite3.connect(folder / "changed")) as database:
            database.executescript(change)
        return parts | {LIBRARY_FILE: (folder / "changed").read_bytes()}

    return changed


def _packed(parts, folder):
    """Put an oversized map into a copy of the members."""
    packed = io.BytesIO()
    np.savez_compressed(packed, song_ids=np.arange(3), places=np.zeros((1 << 20, 2)))
    return {n: packed.getvalue() if n.endswith("map.npz") else p for n, p in parts.items()}


CHANGES = {
    "arrays that are packed": _packed,
    "arrays that are none": lambda parts, _: {n: b"x" if n.endswith("map.npz") else p for n, p in parts.items()},
    "files of this machine": _database("UPDATE files SET path = '/etc/passwd' WHERE song_id = 1"),
    "files above": _database("UPDATE files SET path = 'excerpts/../../x.mp3' WHERE song_id = 1"),
    "folders that are scanned": _database("INSERT INTO roots VALUES ('/etc', 0)"),
    "jobs": _database(
        "INSERT INTO jobs (kind, arguments, state, message, done, total, failed, cancel_requested, created_at, "
        "updated_at) VALUES ('add', '{}', 'waiting', '', 0, 0, 0, 0, 0, 0)"
    ),
    "a cluster": _database("""UPDATE meta SET value = '{"cluster": "tcp://a:1"}' WHERE key = 'settings'"""),
    "limits of a machine": _database("""UPDATE meta SET value = '{"n_workers": 99}' WHERE key = 'settings'"""),
    "settings that are none": _database("""UPDATE meta SET value = '{"hub_reduction": 7}' WHERE key = 'settings'"""),
    "colors that are none": _database("""UPDATE meta SET value = '{"genre": {"Pop": "x"}}' WHERE key = 'colours'"""),
    "the name of another library on an index server": _database("INSERT INTO meta VALUES ('machine.index_name', 'a')"),
    "a text for a number": _database("UPDATE songs SET duration_s = 'x' WHERE id = 1"),
    "an infinite number": _database("UPDATE songs SET duration_s = 9e999 WHERE id = 1"),
    "a title that is no text": _database("UPDATE songs SET title = x'fffe00' WHERE id = 1"),
    "a model elsewhere": _database("UPDATE models SET base_id = '../x'"),
    "a trigger": _database("CREATE TRIGGER t AFTER INSERT ON tags BEGIN DELETE FROM songs; END"),
    "a view": _database("CREATE VIEW v AS SELECT * FROM songs"),
    "no table of songs": _database("DROP TABLE songs"),
    "rows of nobody": _database("DELETE FROM songs WHERE id = 1"),
    "no database": lambda parts, _: {n: p for n, p in parts.items() if n != LIBRARY_FILE},
    "vectors that are cut off": lambda parts, _: {
        n: p[:-4] if n.endswith("vectors.f32") else p for n, p in parts.items()
    },
    "another beginning": lambda parts, _: dict(reversed(parts.items())),
    "no object": lambda parts, _: parts | {"snapshot.json": b"[1]"},
    "no format": lambda parts, _: parts | {"snapshot.json": b"{}"},
    "too much about it": lambda parts, _: parts | {"snapshot.json": b" " * (1 << 17)},
}


def test_settings_of_earlier_version_are_read(file, tmp_path):
    """Snapshot files of version 1.0 can contain other kinds of index, and a limit of their memory."""
    change = _database(
        """UPDATE meta SET value = '{"index_kind": "codes", "index_memory_mb": 9}' WHERE key = 'settings'"""
    )
    write_parts(tmp_path / "old.tar.zst", change(parts_of(file), tmp_path))
    with open_bundle(tmp_path / "old.tar.zst", no_progress) as folder, Library.open(folder) as library:
        assert library.settings["index_kind"] == "automatic"


@pytest.mark.long
@pytest.mark.parametrize("what", CHANGES)
def test_invalid_parts_are_rejected(file, tmp_path, what):
    write_parts(tmp_path / "bad.tar.zst", CHANGES[what](parts_of(file), tmp_path))
    with (
        pytest.raises(LibraryError, match="this is not a complete snapshot file"),
        open_bundle(tmp_path / "bad.tar.zst", no_progress),
    ):
        pass


@pytest.mark.long
def test_too_many_empty_parts_are_rejected(file, tmp_path, caches):
    parts = parts_of(file)
    empty = {f"excerpts/{n % 1000:03}/{n}.mp3": b"" for n in range(120_000)}
    write_parts(tmp_path / "bad.tar.zst", {"snapshot.json": parts["snapshot.json"], **empty, **parts})
    written = []

    def progress(message, done, total):
        written.append(done)

    with (
        pytest.raises(LibraryError, match=r"not a complete snapshot file .*it has more than 1\d,\d\d\d parts"),
        open_bundle(tmp_path / "bad.tar.zst", progress),
    ):
        pass
    assert max(written) < 20_000
    assert not [path for path in caches.rglob("*") if path.suffix not in (".used", ".readers", ".lock")]


@pytest.mark.long
def test_decompression_bomb_is_rejected_before_unpacking(file, tmp_path):
    parts = parts_of(file) | {"models/x/huge.npz": bytes(400 << 20)}
    write_parts(tmp_path / "bad.tar.zst", parts)
    assert (tmp_path / "bad.tar.zst").stat().st_size < 2 << 20
    with (
        pytest.raises(LibraryError, match="unpacks to more than") as caught,
        open_bundle(tmp_path / "bad.tar.zst", no_progress),
    ):
        pass
    assert "MB" in str(caught.value)


def test_truncated_or_modified_file_is_rejected(file, tmp_path, rng):
    honest = file.read_bytes()
    wrong = [honest[: rng.integers(1, len(honest))] for _ in range(6)]
    for place in rng.integers(0, len(honest), 12):
        changed = bytearray(honest)
        changed[place] ^= 1 << rng.integers(8)
        wrong.append(bytes(changed))
    wrong += [b"", b"words\n" * 1000, zstandard.compress(b""), zstandard.compress(bytes(10240))]
    for number, data in enumerate(wrong):
        target = tmp_path / str(number)
        target.mkdir()
        (tmp_path / "wrong").write_bytes(data)
        with (
            (tmp_path / "wrong").open("rb") as stream,
            pytest.raises(LibraryError, match="wrong: this is not a complete"),
        ):
            unpack_bundle(stream, "wrong", target, no_progress)


def test_newer_version_gives_clear_error(file, tmp_path):
    write_parts(tmp_path / "x.tar.zst", {"snapshot.json": b'{"format": 2}', "else": b""})
    with (
        pytest.raises(LibraryError, match="newer version of musicsim"),
        open_bundle(tmp_path / "x.tar.zst", no_progress),
    ):
        pass


def test_missing_file_gives_clear_error(tmp_path):
    with pytest.raises(NotFoundError, match="this file does not exist"), open_bundle(tmp_path / "x", no_progress):
        pass


def test_other_files_are_not_overwritten(tiny_library, own_music, file):
    song = tiny_library.songs()[0].path
    before = song.read_bytes()
    with pytest.raises(LibraryError, match="and is not a snapshot file"):
        write_bundle(tiny_library, song, no_progress)
    assert song.read_bytes() == before
    write_bundle(tiny_library, file, no_progress)


# --- open_bundle once --------------------------------------------------------------------------------

_UNPACKS = """
import sys
from pathlib import Path
from musicsim.extensions.bundles.bundle import open_bundle
told = []
with open_bundle(Path(sys.argv[1]), lambda *said: told.append(said[0])) as folder:
    print(len(told), folder, flush=True)
    sys.stdin.read()
"""


def unpacking(file):
    return subprocess.Popen(
        [sys.executable, "-c", _UNPACKS, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.long
def test_only_one_process_unpacks(file, caches):
    processes = [unpacking(file) for _ in range(4)]
    try:
        told = [process.stdout.readline().split() for process in processes]
    finally:
        for process in processes:
            process.communicate()
    assert sorted(int(n) > 0 for n, _ in told) == [False, False, False, True]
    assert len({folder for _, folder in told}) == 1
    assert len(list(caches.glob("*.used"))) == 1


def test_unpacked_library_is_reused_until_file_changes(tiny_library, file, caches):
    def homes():
        return {path for path in caches.iterdir() if path.is_dir()}

    with open_bundle(file, no_progress):
        (first,) = homes()
        told = []
        with open_bundle(file, lambda *said: told.append(said)):
            assert not told
        tiny_library.add_tags([{"song_id": 1, "tag": "new", "weight": 1.0}])
        write_bundle(tiny_library, file, no_progress)
        with open_bundle(file, no_progress) as folder, Library.open(folder) as there:
            assert "new" in dict(there.tags()[1])
            assert first in homes(), "somebody still uses it"
    with open_bundle(file, no_progress):
        assert first not in homes()
        assert len(homes()) == 1
    file.rename(file.with_name("renamed.tar.zst"))
    with open_bundle(file.with_name("renamed.tar.zst"), no_progress):
        assert len(homes()) == 1, "there is no file any more of the other one"


def test_partial_unpacking_of_killed_process_is_harmless(file, caches):
    with open_bundle(file, no_progress):
        (home,) = (path for path in caches.iterdir() if path.is_dir())
    home.rename(home.with_name(f".{home.name}"))
    with open_bundle(file, no_progress) as folder, Library.open(folder) as there:
        assert len(there) == 12
    assert not list(caches.glob(".*"))


def test_visitors_do_not_modify_unpacked_library(file, monkeypatch):
    with open_bundle(file, no_progress) as folder:
        monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
        before = sorted(path.name for path in folder.iterdir())
        with Library.open(folder) as one, Library.open(folder) as other:
            assert answers(one) == answers(other)
            assert isinstance(take_snapshot(one).X, np.memmap)
        assert sorted(path.name for path in folder.iterdir()) == before, "no files of writers are beside it"


# --- the command ----------------------------------------------------------------------------------


def test_command_writes_snapshot_file_and_summary(tiny_library, tmp_path):
    tiny_library.close()
    out, _ = run("snapshot", tmp_path / "x.tar.zst", "--json", library=tiny_library.folder)
    assert json.loads(out) == {
        **{"file": str(tmp_path / "x.tar.zst"), "songs": 12, "excerpts": 0},
        "bytes": os.path.getsize(tmp_path / "x.tar.zst"),
    }
    out, _ = run("snapshot", tmp_path / "x.tar.zst", library=tiny_library.folder)
    assert out.startswith("12 songs, ")
    _, err = run("snapshot", tmp_path / "y", "--model", "none", library=tiny_library.folder, expect=1)
    assert "does not have a model 'none'" in err
    _, err = run("app", "--snapshot", tmp_path / "none", library=tiny_library.folder, expect=1)
    assert "this file does not exist" in err
