"""Tests that exports can be read by the programs they are for: pandas, numpy, jams, and readers of MIREX lists."""

import csv
import io
import json
import shutil
import tracemalloc
import zipfile

import jams
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from musicsim.api import routes
from musicsim.errors import LibraryError, ModelError, NotFoundError
from musicsim.explorer import job_process
from musicsim.explorer.learning.task import Split
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.exports.export import export
from musicsim.extensions.exports.request import EXPORTS, ExportRequest
from musicsim.extensions.exports.routes import export_path, exports_of
from musicsim.extensions.exports.table_files import TEXT, Column, Table, write_table
from musicsim.extensions.exports.tables import TABLE_OF
from tests.command import run


@pytest.fixture
def library(tiny_library):
    """Build the tiny library with tags, plays and answers, and a title that spreadsheets would read as a formula."""
    ids = [song.id for song in tiny_library.songs()]
    tiny_library.edits.edit(ids[:1], {"title": "=1+1"})
    tiny_library.add_tags(
        [
            {"song_id": ids[0], "tag": "loud", "weight": 0.5},
            {"song_id": ids[0], "tag": "noisy", "weight": 1.0},
            {"song_id": ids[3], "tag": "@home", "weight": 1.0},
        ]
    )
    tiny_library.add_plays(
        [{"listener": "Ann", "song_id": ids[0], "count": 3}, {"listener": "Zoë", "song_id": ids[1], "count": 1}]
    )
    tiny_library.judgments.add("Ann", "odd", ids[:3], 1)
    return tiny_library


def exported(library, kind, path, **options):
    done = export(library, kind, path, ExportRequest(**options))
    assert done.path == path
    assert done.n_bytes == path.stat().st_size
    return done


def test_every_export_has_table():
    assert list(TABLE_OF) == list(EXPORTS)


def test_vectors_round_trip_through_pandas_and_numpy(library, tmp_path):
    now = take_snapshot(library)
    exported(library, "vectors", tmp_path / "v.parquet")
    frame = pd.read_parquet(tmp_path / "v.parquet")
    assert frame["id"].tolist() == now.row_ids.tolist()
    assert np.array_equal(np.stack(frame["vector"]), now.X)
    songs = {song.id: song for song in library.songs()}
    assert frame["path"].tolist() == [str(songs[i].path) for i in frame["id"]]
    assert frame["hash"].tolist() == [songs[i].content_hash for i in frame["id"]]
    exported(library, "vectors", tmp_path / "v.npz")
    with np.load(tmp_path / "v.npz") as arrays:
        assert np.array_equal(arrays["vector"], now.X)
        assert arrays["title"].tolist() == [songs[i].title for i in now.row_ids.tolist()]
        assert arrays["id"].dtype == np.int64
    exported(library, "vectors", tmp_path / "v.csv")
    frame = pd.read_csv(tmp_path / "v.csv")
    numbers = frame[[f"vector_{i + 1}" for i in range(now.X.shape[1])]].to_numpy(np.float32)
    assert np.array_equal(numbers, now.X), "the shortest text of a float32 is read back as the same one"
    assert "'=1+1" in frame["title"].tolist(), "no spreadsheet takes it for a formula"


@pytest.mark.parametrize("ending", [".npz", ".parquet"])
def test_exported_vectors_can_be_imported(library, tmp_path, ending):
    embedding_files = pytest.importorskip("musicsim.extensions.embeddings.vectors", reason="another extension")
    exported(library, "vectors", tmp_path / f"v{ending}")
    found = embedding_files.read_embedding(tmp_path / f"v{ending}")
    now = take_snapshot(library)
    assert found.names == now.row_ids.tolist()
    assert np.array_equal(found.vectors, now.X)


def test_histograms_match_codewords(library, tmp_path):
    done = exported(library, "histograms", tmp_path / "h.npz")
    record = library.models.find(done.model)
    of_model = library.models.features(record.id)
    with np.load(tmp_path / "h.npz") as arrays:
        order = [of_model.song_ids.tolist().index(i) for i in arrays["id"].tolist()]
        assert np.array_equal(arrays["histogram"], of_model.X[order])
    assert arrays_sum_to_one(of_model.X)
    sound = next(r.name for r in library.models.all() if r.name != done.model)
    with pytest.raises(ModelError, match="has no codeword histograms"):
        export(library, "histograms", tmp_path / "x.npz", ExportRequest(), model=sound)


def arrays_sum_to_one(X):
    return np.allclose(X.sum(axis=1), 1, atol=1e-5)


def brute_force(X, ids, k):
    """Return the nearest other songs of each song and their distances, by all pairs."""
    D = np.linalg.norm(X[:, None].astype(np.float64) - X[None].astype(np.float64), axis=2)
    np.fill_diagonal(D, np.inf)
    order = np.argsort(D, axis=1, kind="stable")[:, :k]
    return ids[order], np.take_along_axis(D, order, axis=1)


def test_neighbors_match_brute_force(library, tmp_path):
    now = take_snapshot(library)
    ids, distances = brute_force(now.X, now.row_ids, 4)
    exported(library, "neighbours", tmp_path / "n.parquet", k=4)
    frame = pd.read_parquet(tmp_path / "n.parquet")
    assert np.array_equal(np.stack(frame["neighbour_ids"]), ids)
    assert np.allclose(np.stack(frame["distances"]), distances, atol=1e-5)
    assert exported(library, "neighbours", tmp_path / "s.npz", k=4, sample=5, seed=1).n_rows == 5
    with np.load(tmp_path / "s.npz") as arrays:
        rows = now.rows_of(arrays["id"])
        assert np.array_equal(arrays["neighbour_ids"], ids[rows])
        sampled = arrays["id"].tolist()
    exported(library, "neighbours", tmp_path / "s.csv", k=4, sample=5, seed=1)
    assert pd.read_csv(tmp_path / "s.csv")["id"].tolist() == sampled
    exported(library, "neighbours", tmp_path / "all.npz", k=1000)
    with np.load(tmp_path / "all.npz") as arrays:
        assert arrays["neighbour_ids"].shape == (12, 11), "no more than there are"


def test_distance_list_follows_mirex_format(library, tmp_path):
    now = take_snapshot(library)
    done = exported(library, "neighbours", tmp_path / "list.txt")
    header, *lines = (tmp_path / "list.txt").read_text("utf-8").splitlines()
    assert done.model in header
    assert "\t" not in header
    name_of = {song.id: song.path.name for song in library.songs()}
    ids, distances = brute_force(now.X, now.row_ids, 11)
    assert len(lines) == 12
    for line, query, found, d in zip(lines, now.row_ids.tolist(), ids, distances, strict=True):
        name, *results = line.split("\t")
        assert name == name_of[query]
        pairs = [result.rpartition(",") for result in results]
        assert [other for other, _, _ in pairs] == [name_of[i] for i in found.tolist()]
        assert np.allclose([float(text) for _, _, text in pairs], d, rtol=1e-4, atol=1e-5)


def test_songs_with_same_file_name_use_paths(library, tmp_path):
    first, second = library.songs()[:2]
    with library.write() as connection:
        for song, folder in ((first, "a"), (second, "b")):
            connection.exec_driver_sql(
                "UPDATE files SET path = ? WHERE song_id = ?", (f"/music/{folder}/01.wav", song.id)
            )
    exported(library, "neighbours", tmp_path / "list.txt", k=2)
    names = [line.split("\t")[0] for line in (tmp_path / "list.txt").read_text("utf-8").splitlines()[1:]]
    assert {name for name in names if "/" in name} == {"/music/a/01.wav", "/music/b/01.wav"}


def test_map_is_embedding_atlas_table(library, tmp_path):
    now = take_snapshot(library)
    exported(library, "map", tmp_path / "m.parquet", k=3)
    frame = pd.read_parquet(tmp_path / "m.parquet")
    assert np.array_equal(frame[["x", "y"]].to_numpy(np.float32), now.map, equal_nan=True)
    ids, distances = brute_force(now.X, np.arange(now.n_indexed), 3)
    for row, (near, d) in enumerate(zip(ids.tolist(), distances, strict=True)):
        neighbors = frame["neighbors"][row]
        assert neighbors["ids"].tolist() == near, "rows of the table, from 0 on"
        assert np.allclose(neighbors["distances"], d, atol=1e-5)
    assert frame["genre"].tolist() == now.columns.genre.texts()
    exported(library, "map", tmp_path / "bare.parquet", k=0)
    assert "neighbors" not in pd.read_parquet(tmp_path / "bare.parquet").columns


def test_splits_match_training_splits(library, tmp_path):
    ids = [song.id for song in library.songs()]
    for i, song_id in enumerate(ids):
        library.edits.edit([song_id], {"artist": f"Artist {i // 2}"})
    exported(library, "splits", tmp_path / "s.csv", seed=3)
    frame = pd.read_csv(tmp_path / "s.csv")
    now = take_snapshot(library)
    split = Split.from_groups(now.columns.group.texts(), 3)
    for name, rows in (("train", split.train), ("validation", split.validation), ("test", split.test)):
        assert frame["id"][frame["split"] == name].tolist() == now.row_ids[rows].tolist()
    assert (frame.groupby("artist")["split"].nunique() == 1).all()


def test_plays_and_answers_round_trip(library, tmp_path):
    ids = [song.id for song in library.songs()]
    exported(library, "plays", tmp_path / "p.parquet")
    frame = pd.read_parquet(tmp_path / "p.parquet")
    assert list(zip(frame["listener"], frame["id"], frame["plays"], strict=True)) == [
        ("Ann", ids[0], 3),
        ("Zoë", ids[1], 1),
    ]
    exported(library, "answers", tmp_path / "a.csv")
    before = library.judgments.answers()
    library.judgments.forget_listener("Ann")
    run("answers", "import", tmp_path / "a.csv", library=library.folder)
    assert [(a.song_ids, a.chosen) for a in library.judgments.answers()] == [(a.song_ids, a.chosen) for a in before]
    exported(library, "answers", tmp_path / "a.parquet")
    assert pd.read_parquet(tmp_path / "a.parquet")["listener"].tolist() == ["Ann"]


def test_jams_accepts_exported_tags(library, tmp_path):
    done = exported(library, "tags", tmp_path / "tags.zip")
    songs = {song.id: song for song in library.songs()}
    tags = library.tags()
    with zipfile.ZipFile(tmp_path / "tags.zip") as archive:
        assert done.n_rows == len(tags) == len(archive.namelist())
        for name in archive.namelist():
            jam = jams.load(io.StringIO(archive.read(name).decode()), validate=True, strict=True)
            song = songs[int(name.removesuffix(".jams"))]
            assert (jam.file_metadata.title, jam.file_metadata.duration) == (song.title, song.duration_s)
            (annotation,) = jam.search(namespace="tag_open")
            found = {(o.value, o.confidence) for o in annotation.data}
            assert found == set(tags[song.id])
    exported(library, "tags", tmp_path / "tags.csv")
    with (tmp_path / "tags.csv").open(encoding="utf-8", newline="") as stream:
        assert [row["tag"] for row in csv.DictReader(stream)] == ["loud", "noisy", "'@home"]


@pytest.mark.parametrize("ending", [".parquet", ".npz", ".csv"])
def test_empty_table_keeps_columns(store, tmp_path, ending):
    exported(store, "plays", tmp_path / f"p{ending}")
    if ending == ".npz":
        with np.load(tmp_path / "p.npz") as arrays:
            assert {name: len(arrays[name]) for name in arrays.files} == dict.fromkeys(arrays.files, 0)
            assert "plays" in arrays.files
    else:
        read = pd.read_parquet if ending == ".parquet" else pd.read_csv
        frame = read(tmp_path / f"p{ending}")
        assert (len(frame), "plays" in frame.columns) == (0, True)


@pytest.mark.long
@pytest.mark.parametrize("ending", [".parquet", ".npz", ".csv"])
def test_memory_is_independent_of_row_count(tmp_path, ending):
    n_rows, width = 500, 64
    columns = (Column("id", "i8"), Column("name", TEXT), Column("vector", "f4", width))
    alive = []

    def blocks(n):
        for number in range(n):
            yield (
                np.arange(n_rows) + number * n_rows,
                [f"song {number} {i}" for i in range(n_rows)],
                np.full((n_rows, width), number, np.float32),
            )
            alive.append(tracemalloc.get_traced_memory()[0])

    write_table(tmp_path / f"warm{ending}", Table(columns, blocks(2)))
    alive.clear()
    tracemalloc.start()
    try:
        assert write_table(tmp_path / f"t{ending}", Table(columns, blocks(60))) == 60 * n_rows
    finally:
        tracemalloc.stop()
    of_a_block = n_rows * (width * 4 + 200)
    assert alive[-1] - alive[1] < 2 * of_a_block
    if ending == ".parquet":
        assert pq.ParquetFile(tmp_path / "t.parquet").metadata.num_row_groups == 60
    if ending == ".npz":
        with np.load(tmp_path / "t.npz") as arrays:
            assert arrays["name"][-1] == "song 59 499"
            assert arrays["vector"].shape == (60 * n_rows, width)


def test_failed_export_leaves_nothing(library, tmp_path):
    with pytest.raises(LibraryError, match="plays can be exported as"):
        export(library, "plays", tmp_path / "p.txt", ExportRequest())
    with pytest.raises(LibraryError, match="Use a file name in an existing folder"):
        export(library, "plays", tmp_path / "no" / "p.csv", ExportRequest())
    with pytest.raises(NotFoundError, match="k must be at least 1"):
        export(library, "neighbours", tmp_path / "n.csv", ExportRequest(k=0))
    with pytest.raises(ModelError, match="at least 5 artists"):
        export(library, "splits", tmp_path / "s.csv", ExportRequest())
    assert list(tmp_path.glob("*.csv")) == []


def test_command_reports_export(library, tmp_path):
    told = json.loads(run("export", "map", tmp_path / "m.csv", "--json", library=library.folder)[0])
    assert told["rows"] == 12
    assert told["model"] == library.models.active().name
    assert "12 rows" in run("export", "vectors", tmp_path / "v.npz", library=library.folder)[0]
    _, problem = run("export", "songs", tmp_path / "v.npz", library=library.folder, expect=2)
    assert "must be one of" in " ".join(problem.split())


def test_page_export_can_be_downloaded(library, monkeypatch):
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(library.folder))
    path = export_path(library, "vectors", ".npz")
    job = library.jobs.create("export", {"what": "vectors", "path": str(path)})
    assert job_process.run(library, job) == "done"
    assert "12 rows" in library.jobs.get(job).message
    assert exports_of(library) == [path]
    with TestClient(Starlette(routes=routes()), base_url="http://localhost") as client:
        assert client.get(f"/exports/{path.name}").content == path.read_bytes()
        assert client.get("/exports/library.sqlite").status_code == 404


def test_links_are_not_followed(library, tmp_path, monkeypatch):
    """A library's folder that comes from somebody else may contain them."""
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(library.folder))
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "private.csv").write_text("swordfish")
    export_path(library, "songs", ".csv").parent.mkdir()
    export_path(library, "songs", ".csv").symlink_to(tmp_path / "secrets" / "private.csv")
    with TestClient(Starlette(routes=routes()), base_url="http://localhost") as client:
        assert exports_of(library) == []
        assert client.get(f"/exports/{library.name} songs.csv").status_code == 404
        shutil.rmtree(library.folder / "exports")
        (library.folder / "exports").symlink_to(tmp_path / "secrets")
        assert exports_of(library) == []
        assert client.get("/exports/private.csv").status_code == 404
