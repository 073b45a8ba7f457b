"""Tests of vectors from other programs: read from every kind of file, matched to songs, and refused if invalid."""

import io
import os
import shutil
import subprocess
import sys
import zipfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from musicsim.errors import LibraryError, NotFoundError
from musicsim.extensions.embeddings import vectors as embeddings
from musicsim.extensions.embeddings.adding import describe_matches
from musicsim.extensions.embeddings.vectors import EmbeddingStore, read_embedding
from musicsim.library.processes.workers import Limits
from tests.waiting import PATIENCE_S

N, D = 12, 5


def vectors(n=N):
    return np.random.default_rng(0).standard_normal((n, D)).astype(np.float32)


def save(folder, kind, songs, roots):
    """Save the vectors of songs in one kind of file."""
    X = vectors(len(songs))
    ids, paths = [song.id for song in songs], [str(song.path) for song in songs]
    target = folder / f"own.{kind.split()[0]}"
    if kind == "npz by id":
        np.savez(target, ids=np.array(ids), vectors=X)
    elif kind == "npz by path":
        np.savez_compressed(target, paths=np.array(paths), embeddings=X.astype(np.float64))
    elif kind == "npz by path from the root":
        short = [str(song.path.relative_to(roots[0])) for song in songs]
        np.savez(target, paths=np.array(short), vectors=X)
    elif kind == "npz by hash":
        np.savez(target, hashes=np.array([song.content_hash for song in songs]), vectors=X)
    elif kind == "npy of fields":
        rows = np.array(list(zip(ids, X, strict=True)), dtype=[("id", "i8"), ("vector", "f4", (D,))])
        np.save(target, rows)
    elif kind == "npy in the order of ids":
        np.save(target, X[np.argsort(ids)])
    elif kind == "parquet of lists":
        pd.DataFrame({"path": paths, "vector": list(X)}).to_parquet(target)
    else:
        table = pd.DataFrame(X, columns=[f"d{i}" for i in range(D)], index=np.arange(100, 100 + len(X)))
        table.assign(id=ids).to_parquet(target)
    return target


@pytest.mark.long
@pytest.mark.parametrize(
    "kind",
    [
        "npz by id", "npz by path", "npz by path from the root", "npz by hash", "npy of fields",
        "npy in the order of ids", "parquet of lists", "parquet of columns",
    ],
)  # fmt: skip
def test_every_file_type_maps_vectors_to_songs(tiny_library, tmp_path, kind):
    songs = tiny_library.songs()[::-1]
    store = EmbeddingStore(tiny_library)
    about = store.keep(save(tmp_path, kind, songs, tiny_library.files.roots()))
    assert (about.n_rows, about.n_dimensions, about.problems) == (N, D, ())
    matched = store.match(about.key)
    assert (matched.n_unmatched, matched.n_double) == (0, 0)
    found = dict(zip(matched.song_ids.tolist(), store.vectors(about.key)[matched.rows], strict=True))
    for song, vector in zip(songs, vectors(), strict=True):
        np.testing.assert_array_equal(found[song.id], vector)


def test_unmatched_vectors_are_counted_and_named(tiny_library, tmp_path):
    songs = tiny_library.songs()
    names = [str(songs[0].path), songs[0].content_hash, "elsewhere/one.mp3"]
    np.savez(tmp_path / "own.npz", paths=np.array(names), vectors=vectors(3))
    store = EmbeddingStore(tiny_library)
    matched = store.match(store.keep(tmp_path / "own.npz").key)
    assert matched.song_ids.tolist() == [songs[0].id]
    assert matched.rows.tolist() == [0]
    assert (matched.n_unmatched, matched.unmatched, matched.n_double) == (1, ("elsewhere/one.mp3",), 1)


def test_unusable_rows_are_skipped_and_named(tmp_path):
    X = vectors(6).astype(np.float64)
    X[1, 2], X[2], X[4, 0] = np.nan, 0.0, 1e300
    np.savez(tmp_path / "own.npz", paths=np.array(["a", "b", "c", "a", "e", ""]), vectors=X)
    read = read_embedding(tmp_path / "own.npz")
    assert read.names == ["a"]
    for what in (
        "('b') contains NaN",
        "('c') contains only zeros",
        "('a') occurs more than once",
        "('e') contains NaN",
        "row 6 has no name",
    ):
        assert any(what in problem for problem in read.problems)


def test_missing_table_vectors_are_skipped_and_named(tmp_path):
    table = pd.DataFrame({"id": [1.0, 2.0, None], "vector": [[1.0, 2.0], None, [3.0, 4.0]]})
    table.to_parquet(tmp_path / "own.parquet")
    read = read_embedding(tmp_path / "own.parquet")
    assert read.names == [1]
    np.testing.assert_array_equal(read.vectors, [[1.0, 2.0]])
    assert len(read.problems) == 2


class Evil:
    """A class that would run code if it were unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("a file has run code",))


def _hostile(kind, path):
    if kind == "objects":
        np.savez(path, ids=np.arange(2), vectors=np.array([Evil(), Evil()], dtype=object))
    elif kind == "objects as names":
        np.savez(path, ids=np.array([Evil(), "b"], dtype=object), vectors=vectors(2))
    elif kind == "text":
        np.savez(path, ids=np.arange(2), vectors=np.array([["a"], ["b"]]))
    elif kind == "one column":
        np.savez(path, ids=np.arange(5), vectors=np.ones(5))
    elif kind == "names of others":
        np.savez(path, ids=np.arange(3), vectors=vectors(2))
    elif kind == "no names":
        np.savez(path, vectors=vectors(2))
    elif kind == "nothing but NaN":
        np.savez(path, ids=np.arange(2), vectors=np.full((2, 3), np.nan))
    elif kind == "no zip":
        path.write_bytes(b"PK\x03\x04 and nothing more")
    elif kind == "cut off":
        np.savez_compressed(path, ids=np.arange(200), vectors=vectors(200))
        path.write_bytes(path.read_bytes()[:-400])
    elif kind == "damaged":
        np.savez_compressed(path, vectors=vectors(200), ids=np.arange(200))
        data = bytearray(path.read_bytes())
        data[300:400] = b"\xff" * 100
        path.write_bytes(bytes(data))
    elif kind == "more than there is":
        stream = io.BytesIO()
        header = {"descr": "<f4", "fortran_order": False, "shape": (10**12, 10)}
        np.lib.format.write_array_header_1_0(stream, header)
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("vectors.npy", stream.getvalue() + b"\0" * 64)
            archive.writestr("ids.npy", stream.getvalue())
    elif kind == "larger than is read":
        np.savez_compressed(path, ids=np.arange(5_000), vectors=np.ones((5_000, D)))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("objects", "objects"), ("objects as names", "objects"), ("text", "must be numbers"),
        ("one column", "must be (songs"), ("names of others", "names have shape"), ("no names", "must contain 'ids'"),
        ("nothing but NaN", "none of the 2 rows"), ("no zip", "not an .npz file"), ("cut off", "not an .npz file"),
        ("damaged", "it is damaged"), ("more than there is", "not fit into"), ("larger than is read", "has more than"),
    ],
)  # fmt: skip
def test_deceptive_file_is_rejected_without_leftovers(tiny_library, tmp_path, monkeypatch, kind, words):
    monkeypatch.setattr(embeddings, "MAX_NUMBERS", 20_000 if kind == "larger than is read" else 2**28)
    monkeypatch.setattr(embeddings, "MAX_BYTES", 150_000 if kind == "larger than is read" else 2**31)
    _hostile(kind, tmp_path / "own.npz")
    store = EmbeddingStore(tiny_library)
    with pytest.raises(LibraryError, match=words.replace("(", r"\(").replace(")", r"\)")):
        store.keep(tmp_path / "own.npz")
    assert not store.folder.exists()


@pytest.mark.long
@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"id": [1, 2], "vector": [[1.0], [1.0, 2.0]]}, "1, 2 dimensions"),
        ({"id": [1, 2], "title": ["a", "b"]}, "neither a column of lists"),
        ({"title": ["a", "b"], "vector": [[1.0], [2.0]]}, "must contain 'ids'"),
        ({"id": [1, 2], "vector": [None, [None]]}, "can be used"),
    ],
)
def test_rejects_table_without_vectors(tmp_path, table, words):
    pd.DataFrame(table).to_parquet(tmp_path / "own.parquet")
    with pytest.raises(LibraryError, match=words):
        read_embedding(tmp_path / "own.parquet")


def test_rejects_invalid_vector_files(tmp_path):
    (tmp_path / "own.npy").write_bytes(b"\x80\x04\x95 a pickle")
    header = b"{'descr': ((((".ljust(117) + b"\n"
    (tmp_path / "header.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    (tmp_path / "own.parquet").write_bytes(b"PAR1 and nothing more")
    for name in ("own.npy", "header.npy", "own.parquet", "own.npz", "own.txt"):
        with pytest.raises(LibraryError, match=name):
            read_embedding(tmp_path / name)


def test_damaged_table_gives_one_line_error(tmp_path):
    """pyarrow's own message has several lines."""
    path = tmp_path / "x.parquet"
    parquet.write_table(pa.table({"id": [1, 2, 3], "d0": [1.0, 2.0, 3.0]}), path)
    data = bytearray(path.read_bytes())
    data[4:24] = b"\xff" * 20
    path.write_bytes(data)
    with pytest.raises(LibraryError) as caught:
        read_embedding(path)
    assert "\n" not in str(caught.value)


def _npy(shape, values=b"", descr="'<f4'"):
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}".ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + values


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (_npy("(True, 8)", bytes(32)), "its header has an invalid shape"),
        (_npy("(-1, 8)", bytes(32)), "its header has an invalid shape"),
        (_npy("(2.0, 8)", bytes(64)), "header is damaged"),
        (_npy("8", bytes(32)), "header is damaged"),
        (_npy(f"({10**12},)", descr="'<U0'"), "do not fit into"),
        (_npy("(4, 2)", bytes(32), descr="'<q9'"), "header is damaged"),
        (_npy("(4, 2)", bytes(32), descr="[('a', '<f4', (True,))]"), "header is damaged"),
        (b"root:SECRET:19000:0", "it is not a NumPy array"),
        (b"\x93NUMPY\x01\x00\x20\x00root:SECRET:19000:0 and so much.", "header is damaged"),
    ],
)
def test_nonsensical_header_gives_clear_error(tmp_path, content, words):
    (tmp_path / "own.npy").write_bytes(content)
    with pytest.raises(LibraryError, match=words) as refused:
        read_embedding(tmp_path / "own.npy")
    assert "SECRET" not in str(refused.value)


def _bomb(kind, path):
    n = 1_000_000
    ones = pa.array(np.ones(n, dtype=np.float32))
    if kind == "npz":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            with archive.open("vectors.npy", "w", force_zip64=True) as stream:
                header = {"descr": "<f4", "fortran_order": False, "shape": (100_000, 2_000)}
                np.lib.format.write_array_header_1_0(stream, header)
                for _ in range(800):
                    stream.write(bytes(n))
            with archive.open("ids.npy", "w") as stream:
                np.lib.format.write_array(stream, np.arange(100_000))
        return
    ids = pa.array(np.ones(n, dtype=np.int64))
    lists = pa.ListArray.from_arrays(np.arange(n + 1, dtype=np.int32), ones)
    wide = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(100 * 4_096, dtype=np.float32)), 4_096)
    tables = {
        "rows of columns": pa.table({"id": ids, "x": ones}),
        "rows of lists": pa.table({"id": ids, "vector": lists}),
        "wide rows": pa.table({"id": ids[:100], "vector": wide}),
        "long names": pa.table(
            {"path": pa.DictionaryArray.from_arrays(np.zeros(n, dtype=np.int32), ["x" * 1_000_000]), "x": ones}
        ),
        "rows without vectors": pa.table(
            {"id": ids, "vector": pa.array([[1.0] * 4_096, *[None] * (n - 1)], pa.list_(pa.float32()))}
        ),
    }
    table = tables[kind]
    with parquet.ParquetWriter(path, table.schema, compression="zstd") as writer:
        for _ in range({"rows of columns": 50, "rows of lists": 50, "wide rows": 200}.get(kind, 1)):
            writer.write_table(table)


@pytest.mark.long
@pytest.mark.parametrize(
    "kind", ["npz", "rows of columns", "rows of lists", "wide rows", "long names", "rows without vectors"]
)
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_decompression_bomb_is_rejected_before_allocation(tmp_path, kind):
    path = tmp_path / ("own.npz" if kind == "npz" else "own.parquet")
    _bomb(kind, path)
    assert path.stat().st_size < 4_000_000
    code = (
        "import re, sys\n"
        "from pathlib import Path\n"
        "from musicsim.errors import LibraryError\n"
        "from musicsim.extensions.embeddings.vectors import read_embedding\n"
        "try:\n"
        "    read_embedding(Path(sys.argv[1]))\n"
        "except LibraryError as error:\n"
        "    print(error)\n"
        # ru_maxrss would start at the value of the parent process
        "print(re.search(r'VmHWM:\\s*(\\d+)', Path('/proc/self/status').read_text())[1])\n"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    said, peak_kb = done.stdout.splitlines()
    assert said.startswith(path.name)
    assert int(peak_kb) < 600_000


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a pipe with a name")
def test_table_that_takes_too_long_is_stopped(tmp_path):
    os.mkfifo(tmp_path / "own.parquet")  # nobody writes to it, so that opening it never ends
    with pytest.raises(LibraryError, match=r"own\.parquet: .*it took more than 0\.5 s and was stopped"):
        read_embedding(tmp_path / "own.parquet", Limits(seconds=0.5, memory_mb=1024))


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory")
def test_table_that_needs_too_much_memory_is_refused(tmp_path):
    n = 1_500_000
    columns = {f"x{i}": np.ones(n, dtype=np.float32) for i in range(10)}
    parquet.write_table(pa.table({"id": np.arange(n), **columns}), tmp_path / "own.parquet")
    with pytest.raises(LibraryError, match="increase the setting file_memory_mb"):
        read_embedding(tmp_path / "own.parquet", Limits(PATIENCE_S, memory_mb=200))


@pytest.mark.long
def test_large_genuine_files_are_read(tmp_path):
    X = np.random.default_rng(0).random((17_000, 1_000), dtype=np.float32)  # more than any file may unpack to
    np.save(tmp_path / "own.npy", X)
    np.savez_compressed(tmp_path / "own.npz", ids=np.arange(len(X)), vectors=X)
    ids, lists = (pa.array(np.arange(len(X))), pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1]))
    parquet.write_table(pa.table({"id": ids, "vector": lists}), tmp_path / "own.parquet", compression="zstd")
    for name in ("own.npy", "own.npz", "own.parquet"):
        np.testing.assert_array_equal(read_embedding(tmp_path / name).vectors, X)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "binary"])
def test_names_are_read_from_all_column_types(tmp_path, kind):
    names = pa.array(["a", "b", None, "a"], getattr(pa, kind)())
    for column in (names, names.dictionary_encode()) if kind != "string_view" else (names,):
        parquet.write_table(pa.table({"path": column, "x": pa.array([1.0, 2.0, 3.0, 4.0])}), tmp_path / "own.parquet")
        assert read_embedding(tmp_path / "own.parquet").names == ["a", "b"]


def test_rejects_plain_array_of_wrong_length(tiny_library, tmp_path):
    np.save(tmp_path / "own.npy", vectors(7))
    with pytest.raises(LibraryError, match="one row for each of the 12 songs"):
        EmbeddingStore(tiny_library).keep(tmp_path / "own.npy")


def test_identical_vectors_are_stored_once_and_swept_if_unused(tiny_library, tmp_path, monkeypatch):
    np.savez(tmp_path / "own.npz", ids=np.arange(1, 13), vectors=vectors())
    store = EmbeddingStore(tiny_library)
    about = store.keep(tmp_path / "own.npz")
    assert store.keep(tmp_path / "own.npz", "again").key == about.key
    assert store.describe(about.key).label == "own.npz"
    store.sweep(())
    assert store.describe(about.key), "it has just come"
    monkeypatch.setattr("musicsim.extensions.embeddings.vectors.UNUSED_S", -1.0)
    store.sweep([about.key])
    assert store.describe(about.key), "a model is made of it"
    store.sweep(())
    for key in (about.key, "../frames", ""):
        with pytest.raises(NotFoundError):
            store.vectors(key)


def kept(library, folder):
    """Return a store with a file of vectors, the file, and its description."""
    np.savez(folder / "own.npz", ids=np.arange(1, 13), vectors=vectors())
    store = EmbeddingStore(library)
    return store, folder / "own.npz", store.keep(folder / "own.npz")


@pytest.mark.parametrize("name", ["vectors.npy", "names.json", "about.json"])
@pytest.mark.parametrize("damage", ["gone", "empty", "cut off", "of another kind"])
def test_damaged_vectors_are_reported_and_reimported(tiny_library, tmp_path, name, damage):
    store, file, about = kept(tiny_library, tmp_path)
    target = store.folder / about.key / name
    whole = target.read_bytes()
    target.unlink()
    if damage != "gone":
        target.write_bytes({"empty": b"", "cut off": whole[:-20], "of another kind": b"[]"}[damage])

    def read():
        store.vectors(about.key), store.describe(about.key), store.match(about.key)

    with pytest.raises(LibraryError, match=r"damaged .*\. Import the file again") as caught:
        read()
    assert not isinstance(caught.value, NotFoundError)
    assert store.keep(file) == about
    read()
    assert target.read_bytes() == whole


def test_reimport_resets_age_of_vectors(tiny_library, tmp_path):
    store, file, about = kept(tiny_library, tmp_path)
    os.utime(store.folder / about.key, (0, 0))
    store.keep(file)
    store.sweep(())
    assert store.describe(about.key)


def test_concurrent_storing_of_same_vectors_succeeds(tiny_library, tmp_path, monkeypatch):
    store, file, about = kept(tiny_library, tmp_path)
    shutil.rmtree(store.folder)

    @contextmanager
    def overtaken(target):
        monkeypatch.undo()
        EmbeddingStore(tiny_library).keep(file)
        with embeddings.atomic_folder(target) as written:
            yield written

    monkeypatch.setattr(embeddings, "atomic_folder", overtaken)
    assert store.keep(file) == about
    assert [path.name for path in store.folder.iterdir()] == [about.key]


@pytest.mark.long
def test_used_columns_are_reported(tiny_library, tmp_path):
    paths = [str(song.path) for song in tiny_library.songs()]
    table = pd.DataFrame(vectors(), columns=[f"d{i}" for i in range(D)])
    table.assign(path=paths, title="x", year=1999, tempo=120.0).to_parquet(tmp_path / "own.parquet")
    store = EmbeddingStore(tiny_library)
    about = store.keep(tmp_path / "own.parquet")
    assert about.note == "Song names are in column path, and vectors in d0 to d4, year, tempo."
    assert store.describe(about.key) == about
    assert describe_matches(about, store.match(about.key)).endswith(f"for other songs. {about.note}")
    pd.DataFrame({"path": paths, "vector": list(vectors())}).to_parquet(tmp_path / "lists.parquet")
    assert store.keep(tmp_path / "lists.parquet").note == ""
