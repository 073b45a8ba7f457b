"""Tests of research data sets as libraries, with mirdata's loaders and index format on composed sound."""

import hashlib
import json
import os
import sys
import typing

import numpy as np
import pytest

from musicsim.errors import LibraryError, ModelError, NotFoundError
from musicsim.explorer.evaluation.quality import list_known_faults, measure_scores, split_rows
from musicsim.explorer.refresh.add_music import add_and_refresh
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.datasets import datasets
from musicsim.extensions.datasets.datasets import DatasetTracks, label_songs, read_dataset
from musicsim.progress import no_progress
from tests.command import run
from tests.learning import score_found
from tests.sounds import write_song

GENRES = {"blues": "tones", "metal": "noise", "pop": "clicks"}  # with the sound of the songs of each


def digest_of(path):
    return hashlib.md5(path.read_bytes()).hexdigest() if path.is_file() else "0" * 32


@pytest.fixture
def index(tmp_path, monkeypatch):
    """Write the index that mirdata reads: relative paths and digests by track and kind of file."""
    core = pytest.importorskip("mirdata.core", reason="mirdata is an extra")
    file = tmp_path / "index.json"
    monkeypatch.setattr(core.Index, "get_path", lambda _: str(file))

    def write(paths, home, **others):
        tracks = {name: {"audio": [path, digest_of(home / path)], **others} for name, path in paths.items()}
        tracks["blues.00099"] = {"audio": ["nowhere.wav", "0" * 32], **others}
        file.write_text(json.dumps({"version": "1.0", "tracks": tracks}))

    return write


def write_gtzan(home, n_songs=3):
    paths = {}
    for genre, kind in GENRES.items():
        for i in range(n_songs):
            path = f"gtzan_genre/genres/{genre}/{genre}.0000{i}.wav"
            write_song(home / path, kind, seed=i)
            paths[f"{genre}.0000{i}"] = path
    return paths


def test_gtzan_import_sets_genres_and_names_faults(index, store, tmp_path):
    home = tmp_path / "gtzan"
    index(write_gtzan(home), home, beats=[None, None], tempo=[None, None])
    out, err = run("add", "--mirdata", "gtzan_genre", "--data-home", home, "--json", library=store.folder)
    assert json.loads(out)["added"] == 9
    assert "1 files of gtzan_genre" in err
    songs = store.songs()
    assert {song.path.name: song.genre for song in songs} == {
        f"{genre}.0000{i}.wav": genre for genre in GENRES for i in range(3)
    }
    assert len({song.group for song in songs}) == 9, "no folder stands in for an artist"
    now = take_snapshot(store)
    scores = measure_scores(now, "genre")
    assert scores.n_queries == 9, "songs of one folder count as similar by genre"
    assert store.splits.names() == [], "GTZAN comes without a split"
    (fault,) = list_known_faults(store)
    assert fault.startswith("GTZAN contains repetitions")
    _, err = run("evaluate", library=store.folder)
    assert "Sturm 2013" in err


def test_irmas_import_keeps_split_and_tags(index, store, tmp_path):
    home = tmp_path / "irmas"
    paths = {}
    for number, (instrument, kind) in enumerate({"gac": "tones", "org": "noise"}.items()):
        for i in range(2):
            name = f"{number}{i}__1"
            paths[name] = f"IRMAS-TrainingData/{instrument}/[{instrument}][dru][pop_roc]{name}.wav"
        paths[f"test {number}"] = f"IRMAS-TestingData/test {number}.wav"
        for i, path in enumerate(list(paths.values())[-3:]):
            write_song(home / path, kind, seed=i)
    notes = home / "notes.txt"
    notes.write_text("gac\n")
    index(paths, home, annotation=["notes.txt", "0" * 32])
    tracks = read_dataset("irmas", home)
    assert tracks.n_absent == 1
    out, _ = run("add", "--mirdata", "irmas", "--data-home", home, "--workers", 1, library=store.folder)
    assert "6 songs added" in out
    assert "musicsim evaluate --split irmas" in out
    parts = store.splits.get("irmas")
    assert {store.song(i).path.parts[-2]: part for i, part in parts.items()} == {
        "gac": "train",
        "org": "train",
        "IRMAS-TestingData": "test",
    }
    assert {tag for tags in store.tags().values() for tag, _ in tags} == {"gac", "org"}


def test_mirdata_failures_give_clear_errors(index, tmp_path):
    with pytest.raises(LibraryError, match="gtzan: mirdata cannot load this data set"):
        read_dataset("gtzan", tmp_path)
    with pytest.raises(LibraryError, match="has no index for this data set yet"):
        read_dataset("gtzan_genre", tmp_path)
    index({}, tmp_path, beats=[None, None], tempo=[None, None])
    with pytest.raises(LibraryError, match="none of the 1 files"):
        read_dataset("gtzan_genre", tmp_path)


def write_irmas(home, name="00__1"):
    path = f"IRMAS-TrainingData/gac/[gac][dru][pop_roc]{name}.wav"
    write_song(home / path, "tones", seed=1)
    return {name: path}


@pytest.mark.parametrize(
    "outside", ["../secret.txt", "/etc/passwd", "a/../../secret.txt", "link.txt", "linked/secret.txt"]
)
@pytest.mark.parametrize("kind", ["audio", "annotation"])
def test_index_cannot_name_files_outside_folder(index, store, tmp_path, outside, kind):
    home = tmp_path / "irmas"
    (tmp_path / "secret.txt").write_text("voi\n")
    paths = write_irmas(home)
    (home / "link.txt").symlink_to(tmp_path / "secret.txt")
    (home / "linked").symlink_to(tmp_path)
    if kind == "annotation":
        index(paths, home, annotation=[outside, "0" * 32])
    else:
        index(paths | {"out__1": outside}, home, annotation=[None, None])
    command = ("add", "--mirdata", "irmas", "--data-home", home)
    _, err = run(*command, library=store.folder, expect=1)
    assert "outside this folder" in " ".join(err.split())
    assert "Traceback" not in err
    assert len(store) == 0


def test_bad_annotation_files_do_not_drop_songs(index, store, tmp_path):
    home = tmp_path / "irmas"
    notes = home / "notes.txt"
    paths = write_irmas(home, "test 0") | write_irmas(home, "00__1")
    index(paths, home, annotation=["notes.txt", "0" * 32])
    for data in (bytes(range(256)) * 100, b"\0" * 1000, None):
        if data is None:
            with notes.open("wb") as file:
                file.truncate(2 << 30)
        else:
            notes.write_bytes(data)
        assert len(read_dataset("irmas", home).labels) == 2
    notes.unlink()
    os.mkfifo(notes)
    assert len(read_dataset("irmas", home).labels) == 2


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"version": "1"}', '{"version": "1", "tracks": [1]}', '{"version": "1", "tracks": {"a__1": 3}}',
     '{"version": "1", "tracks": {"a__1": {"audio": ["a\\u0000.wav", ""]}}}',
     '{"version": "1", "tracks": {"a__1": {"audio": [3, 3]}}}'],
)  # fmt: skip
def test_damaged_index_gives_clear_error(index, tmp_path, text):
    (tmp_path / "index.json").write_text(text)
    with pytest.raises(LibraryError, match="irmas"):
        read_dataset("irmas", tmp_path / "home")


class _Track:
    tags: typing.ClassVar = {"fine": 0.75, "endless": float("inf"), "none": float("nan"), "huge": 10**400, "": 1.0}
    title = "x" * 1_000_000

    @property
    def genre(self):
        raise RuntimeError("what a loader may raise")


def test_imported_values_are_bounded():
    assert datasets.tag_weights(datasets.read_attribute(_Track(), "tags")) == {"fine": 0.75}
    assert len(datasets.label_text(_Track.title)) == 1_000
    assert datasets.read_attribute(_Track(), "genre") is None


def test_missing_mirdata_error_suggests_installation(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mirdata", None)
    with pytest.raises(LibraryError, match="python -m pip install mirdata"):
        read_dataset("gtzan_genre", tmp_path)


def test_dataset_tags_and_split_are_applied(store, tmp_path):
    paths = [
        write_song(tmp_path / "music" / kind / f"{i}.flac", kind, seed=i) for kind in GENRES.values() for i in range(2)
    ]
    tracks = DatasetTracks(
        "mine",
        labels={path: {"artist": f"Artist {path.stem}", "genre": path.parent.name} for path in paths},
        tags={path: {"loud": 0.75} if path.stem == "0" else {} for path in paths},
        parts={path: "test" if path.stem == "1" else "train" for path in paths},
    )
    add_and_refresh(store, tracks.folders, anyway=True, n_workers=1, progress=no_progress)
    label_songs(store, tracks)
    songs = {song.path: song for song in store.songs()}
    for path in paths:
        assert (songs[path].artist, songs[path].genre) == (f"Artist {path.stem}", path.parent.name)
        assert store.tags().get(songs[path].id, []) == ([("loud", 0.75)] if path.stem == "0" else [])
        assert store.splits.get("mine")[songs[path].id] == tracks.parts[path]
    assert list_known_faults(store) == []


def test_test_songs_search_training_songs_only(tiny_library):
    ids = [song.id for song in tiny_library.songs()]
    tiny_library.edits.edit(ids, {"artist": None})
    for i, song_id in enumerate(ids):
        tiny_library.edits.edit([song_id], {"genre": "AB"[i % 2], "artist": f"Artist {i}"})
    parts = {song_id: ("test", "train", "validation")[i % 3 if i % 4 else 0] for i, song_id in enumerate(ids)}
    tiny_library.splits.keep("mine", parts)
    now = take_snapshot(tiny_library)
    scores = measure_scores(now, "genre", split="mine")
    test, train = (np.flatnonzero([parts[i] == p for i in now.row_ids.tolist()]) for p in ("test", "train"))
    genres = now.columns.genre.texts()
    pairs = [
        (
            [j for j, row in enumerate(train) if genres[row] == genres[q]],
            [j for j, row in enumerate(train) if genres[row] != genres[q]],
        )
        for q in test
    ]
    expected = score_found(now, test, train, pairs)
    assert (scores.n_queries, scores.n_ranked, scores.n_skipped) == (len(test), len(train), 0)
    for name, figure in scores.figures.items():
        assert figure.mean == pytest.approx(expected[name])
    told = json.loads(run("evaluate", "--truth", "genre", "--split", "mine", "--json", library=tiny_library.folder)[0])
    assert told["models"][0]["scores"]["n_queries"] == len(test)


def test_duplicates_stay_on_one_side_of_split(tiny_library):
    ids = [song.id for song in tiny_library.songs()]
    tiny_library.splits.keep("mine", {ids[0]: "train", ids[1]: "test", ids[2]: "test"})
    with tiny_library.write() as connection:
        connection.exec_driver_sql(
            "INSERT INTO duplicates (first_id, second_id, similarity, offset_s, is_same) VALUES (?, ?, 1, 0, 1)",
            (ids[0], ids[1]),
        )
    now = take_snapshot(tiny_library)
    test, train = split_rows(now, "mine")
    assert (now.row_ids[train].tolist(), now.row_ids[test].tolist()) == ([ids[0]], [ids[2]])
    tiny_library.splits.keep("mine", {ids[0]: "train"})
    with pytest.raises(ModelError, match="has no test songs or no training songs"):
        split_rows(take_snapshot(tiny_library), "mine")
    with pytest.raises(NotFoundError, match="split 'other' does not exist"):
        split_rows(take_snapshot(tiny_library), "other")


def test_own_split_round_trips_through_csv(tiny_library, tmp_path):
    songs = tiny_library.songs()
    for i, song in enumerate(songs):
        tiny_library.edits.edit([song.id], {"artist": f"Artist {i // 2}"})
    file = tmp_path / "mine.csv"
    run("export", "splits", file, library=tiny_library.folder)
    told = json.loads(run("splits", "import", file, "--json", library=tiny_library.folder)[0])
    assert told == {"name": "mine", "read": 12, "songs": 12, "problems": []}
    parts = tiny_library.splits.get("mine")
    assert set(parts.values()) == {"train", "validation", "test"}
    for column, name in (
        ("path", lambda song: f"elsewhere/{song.path.parent.name}/{song.path.name}"),
        ("id", lambda song: song.id),
    ):
        rows = [f'"{name(song)}",{parts[song.id].title()}' for song in songs]
        file.write_text("\n".join([f"{column},split", *rows]))
        run("splits", "import", file, "--name", column, library=tiny_library.folder)
        assert tiny_library.splits.get(column) == parts
    run("export", "splits", tmp_path / "all.csv", library=tiny_library.folder)
    assert "split: mine" in (tmp_path / "all.csv").read_text().splitlines()[0]
    file.write_text(f"id,split\n{songs[0].id},train\n{songs[1].id},maybe\n999,test\n")
    _, err = run("splits", "import", file, library=tiny_library.folder, expect=3)
    assert "Line 3: 'maybe' must be train, validation or test" in err
    assert "Line 4: the song is not in this library" in err
    file.write_text("song,split\n1,train\n")
    _, err = run("splits", "import", file, library=tiny_library.folder, expect=1)
    assert "a split needs a column" in err
    run("splits", "delete", "id", library=tiny_library.folder)
    assert list(json.loads(run("splits", "list", "--json", library=tiny_library.folder)[0])) == ["mine", "path"]
