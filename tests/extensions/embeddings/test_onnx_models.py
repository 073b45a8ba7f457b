"""Tests of a user's ONNX model over a library: all input shapes, failing songs, stopped runs, and false files."""

import json
import re

import numpy as np
import onnx
import pytest
import sqlalchemy as sa
from onnx import TensorProto, helper

from musicsim.audio import load
from musicsim.errors import LibraryError, ModelError, OwnerOnlyError
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.embeddings.adding import add_onnx
from musicsim.extensions.embeddings.networks import OnnxModel, compute_vectors, song_vector, windows
from musicsim.extensions.embeddings.vectors import EmbeddingStore
from musicsim.library.db import schema
from musicsim.library.scan.files import content_hash
from musicsim.progress import Canceled
from tests.command import run
from tests.extensions.embeddings.onnx_files import loudness, write_onnx
from tests.learning import hush

RATE, WINDOW = 8_000, 1.5  # songs of the tiny library last four seconds: three windows
N = 12_000


def vectors_of(library, path, **options):
    """Return the vectors that a model gives all songs, by hash."""
    found = compute_vectors(library, OnnxModel(path, RATE, WINDOW, **options), hush)
    return dict(zip(found.hashes, found.vectors, strict=True)), found


def known(path, **options):
    """Load a model as workers do."""
    return OnnxModel(path, RATE, WINDOW, digest=content_hash(path), **options)


def true_vector(path, frames=1):
    return loudness(windows(load(path, sr=RATE), N), frames)


def test_windows_cover_song_evenly_with_padding():
    np.testing.assert_array_equal(
        windows(np.arange(10, dtype=np.float32), 4), [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9]]
    )
    np.testing.assert_array_equal(windows(np.ones(3, np.float32), 5), [[1, 1, 1, 0, 0]])
    assert len(windows(np.zeros(8, np.float32), 4)) == 2


@pytest.mark.parametrize(
    ("shape", "frames"),
    [
        (("n", "samples"), 0), ((None, N), 0), ((1, N), 0), ((4, N), 0), (("n", 1, "samples"), 0), ((2, 1, N), 6),
        ((N,), 0), (("samples",), 6), (("n", N), 6),
    ],
)  # fmt: skip
def test_every_accepted_shape_averages_windows(collection, tmp_path, shape, frames):
    model = known(write_onnx(tmp_path / "net.onnx", shape, frames=frames))
    assert model.count_dimensions() == 2
    song = sorted(collection.rglob("*.flac"))[5]
    np.testing.assert_allclose(song_vector(model, song), true_vector(song, max(1, frames)), rtol=1e-5)


def node(kind, inputs, outputs=("vectors",), **attributes):
    return helper.make_node(kind, inputs, outputs, **attributes)


def refused(kind, folder):
    """Write a file that must be refused."""
    path = folder / "net.onnx"
    if kind == "no model":
        path.write_bytes(b"not a model at all" * 20)
    elif kind == "cut off":
        whole = write_onnx(path).read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "spectrograms":
        write_onnx(path, ("n", 1, 96, 64))
    elif kind == "stereo":
        write_onnx(path, ("n", 2, N))
    elif kind == "whole numbers":
        write_onnx(path, kind=TensorProto.INT64)
    elif kind == "other window":
        write_onnx(path, ("n", 16_000))
    elif kind == "two outputs":
        write_onnx(path, outputs=("vectors", "mean"))
    elif kind == "no batch":
        write_onnx(path, nodes=[node("ReduceMax", ["vectors"], ["one"], axes=[0], keepdims=0)], outputs=("one",))
    elif kind == "only for itself":
        write_onnx(path, nodes=[node("Reshape", ["vectors", "shape_"], ["odd"])], outputs=("odd",))
    return path


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("no model", "it cannot be loaded"), ("cut off", "it cannot be loaded"),
        ("only for itself", "it cannot be loaded"),
        ("spectrograms", r"shape \(n, 1, 96, 64\); it must be .*\(batch, samples\)"),
        ("stereo", r"shape \(n, 2, 12000\); it must be"), ("whole numbers", r"its input is tensor\(int64\)"),
        ("other window", r"its input has 16,000 samples \(2 s at 8,000 Hz\), but a window of 1.5 s has 12,000"),
        ("two outputs", r"it has 2 outputs\. Choose the output that contains the vector \(vectors, mean\)"),
        ("no batch", r"its output one is \(2\); it must contain floats of shape \(batch, d\)"),
    ],
)  # fmt: skip
def test_invalid_sound_models_give_clear_error(tmp_path, kind, words):
    with pytest.raises(ModelError, match=words) as refusal:
        known(refused(kind, tmp_path)).count_dimensions()
    said = str(refusal.value)
    assert said.startswith("net.onnx: ")
    assert "\n" not in said
    assert "ONNXRuntimeError" not in said


@pytest.mark.parametrize(
    ("kind", "words"),
    [("no model", ": it cannot be loaded"), ("empty", " is missing, empty"), ("missing", " is missing, empty")],
)
def test_rejected_file_leaves_nothing(tiny_library, tmp_path, kind, words):
    with pytest.raises((LibraryError, ModelError), match=rf"^net\.onnx{words}"):
        vectors_of(tiny_library, refused(kind, tmp_path))
    assert not list((tiny_library.folder / "cache").glob("onnx*"))


def test_output_can_be_selected_by_name(collection, tmp_path):
    path = write_onnx(tmp_path / "net.onnx", outputs=("vectors", "loud"))
    song = next(collection.rglob("*.flac"))
    np.testing.assert_allclose(song_vector(known(path, output="vectors"), song), true_vector(song), rtol=1e-5)
    with pytest.raises(ModelError, match="it has no output named 'other'"):
        known(path, output="other").count_dimensions()


def test_external_weights_are_not_read(tmp_path, monkeypatch):
    """They would not be part of its hash, and could name any file on the machine."""
    weights = helper.make_tensor("w", TensorProto.FLOAT, [2], np.ones(2, np.float32).tobytes(), raw=True)
    weights.ClearField("raw_data")
    weights.data_location = TensorProto.EXTERNAL
    entry = weights.external_data.add()
    entry.key, entry.value = "location", "weights.bin"
    (tmp_path / "weights.bin").write_bytes(np.ones(2, np.float32).tobytes())
    path = write_onnx(tmp_path / "net.onnx", nodes=[node("Mul", ["vectors", "w"], ["weighed"])], outputs=("weighed",))
    model = onnx.load(path)
    model.graph.initializer.append(weights)
    onnx.save(model, path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match="Use a single file that includes the weights"):
        known(path).count_dimensions()


@pytest.mark.long
def test_endless_model_is_stopped(tiny_library, tmp_path):
    """The model is a loop of 10^12 iterations."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["goes"]), helper.make_node("Abs", ["state"], ["next"])],
        "body",
        [
            helper.make_tensor_value_info("round", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("goes", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, None),
        ],
    )
    rounds = helper.make_node(
        "Constant", [], ["rounds"], value=helper.make_tensor("r", TensorProto.INT64, [], [10**12])
    )
    loop = helper.make_node("Loop", ["rounds", "", "vectors"], ["late"], body=body)
    tiny_library.set_setting("file_seconds", 2)
    with pytest.raises(ModelError, match="took more than 2 s"):
        vectors_of(tiny_library, write_onnx(tmp_path / "net.onnx", nodes=[rounds, loop], outputs=("late",)))


@pytest.mark.long
def test_unreadable_songs_are_skipped_and_named(tiny_library, tmp_path):
    broken, no_progress, *others = tiny_library.songs()
    (tmp_path / "broken.flac").write_bytes(b"no sound" * 100)
    with tiny_library.write() as connection:
        for song, path in ((broken, "broken.flac"), (no_progress, "gone.flac")):
            at = schema.files.c.song_id == song.id
            connection.execute(sa.update(schema.files).where(at).values(path=str(tmp_path / path)))
    model = OnnxModel(write_onnx(tmp_path / "net.onnx"), RATE, WINDOW)
    model_id, about, matched = add_onnx(tiny_library, model, "net", hush)
    assert matched.song_ids.tolist() == sorted(song.id for song in others)
    assert len(about.problems) == 2
    assert all(any(name in words for words in about.problems) for name in ("broken.flac", "gone.flac"))
    assert take_snapshot(tiny_library, model_id).n_indexed == len(others)


@pytest.mark.long
def test_non_finite_vectors_are_failures(tiny_library, tmp_path):
    """The model returns the logarithm of minus the loudness."""
    nodes = [node("Neg", ["vectors"], ["minus"]), node("Log", ["minus"], ["none"])]
    path = write_onnx(tmp_path / "net.onnx", nodes=nodes, outputs=("none",))
    with pytest.raises(ModelError, match=r"no song .* got a vector: .*net.onnx contains NaN or infinite"):
        add_onnx(tiny_library, OnnxModel(path, RATE, WINDOW), "net", hush)


@pytest.mark.long
def test_stopped_run_resumes_without_recomputing(tiny_library, tmp_path):
    tiny_library.set_setting("n_workers", 1)
    path = write_onnx(tmp_path / "net.onnx")
    model = OnnxModel(path, RATE, WINDOW)

    def stop(message, done, total):
        if done >= 5:
            raise Canceled

    with pytest.raises(Canceled):
        compute_vectors(tiny_library, model, stop)
    (kept,) = (tiny_library.folder / "cache").glob("onnx-*.rows")
    rows = np.fromfile(kept, np.dtype([("hash", "S32"), ("vector", "<f4", (2,))]))
    assert len(rows) == 5
    rows["vector"] *= 2  # so that cached vectors differ from those computed again
    kept.write_bytes(rows.tobytes() + b"half a row")  # left by a killed process
    found, _ = vectors_of(tiny_library, path)
    done = {digest.decode() for digest in rows["hash"]}
    for song in tiny_library.songs():
        twice = 2 if song.content_hash in done else 1
        np.testing.assert_allclose(found[song.content_hash], twice * true_vector(song.path), rtol=1e-5)
    again, _ = vectors_of(tiny_library, path)
    other = compute_vectors(tiny_library, OnnxModel(path, RATE, 1.0), hush)
    for digest, vector in zip(other.hashes, other.vectors, strict=True):
        np.testing.assert_array_equal(again[digest], found[digest])
        assert digest not in done or (vector < found[digest]).all()  # nothing is cached for other settings


@pytest.mark.long
def test_onnx_model_is_added_like_imported_vectors(tiny_library, tmp_path):
    path = write_onnx(tmp_path / "net.onnx")
    out, _ = run(
        "models", "add-onnx", path, "--sample-rate", RATE, "--window", WINDOW, "--json", library=tiny_library.folder
    )
    assert json.loads(out) == {
        "model": "net", "vectors": 12, "dimensions": 2, "songs": 12, "unmatched": 0, "problems": []
    }  # fmt: skip
    record = tiny_library.models.find("net")
    assert record.settings["representation"] == "own"
    about = EmbeddingStore(tiny_library).describe(record.settings["vectors"])
    assert re.fullmatch(r"Computed by net\.onnx \(hash [0-9a-f]{32}\) at 8,000 Hz, in windows of 1\.5 s\.", about.note)
    hits = json.loads(run("similar", 1, "-k", 3, "--model", "net", "--json", library=tiny_library.folder)[0])
    assert len(hits) == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--sample-rate", 10, "--window", 5), "from 1000 to 192000 Hz"),
        (("--sample-rate", 8000, "--window", 0), "0.1"),
        (("--sample-rate", 8000), "--encoder NAME, or both --sample-rate HZ and --window SECONDS"),
        (("--encoder", "ear"), "encoder='ear' should be one of mert, muq"),
    ],
)
def test_rejects_out_of_range_settings(tiny_library, tmp_path, options, words):
    _, problem = run("models", "add-onnx", "net.onnx", *options, library=tiny_library.folder, expect=2)
    assert words in " ".join(problem.replace("│", " ").split())


def test_known_network_brings_its_sample_rate_and_window(tiny_library, tmp_path):
    path = write_onnx(tmp_path / "net.onnx")
    for options, words in (((), "24,000 Hz, in windows of 5 s"), (("--window", 2), "24,000 Hz, in windows of 2 s")):
        run("models", "add-onnx", path, "--encoder", "mert", "--name", words, *options, library=tiny_library.folder)
        about = EmbeddingStore(tiny_library).describe(tiny_library.models.find(words).settings["vectors"])
        assert words in about.note


def test_visitors_cannot_run_models(tiny_library, tmp_path, monkeypatch):
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    with pytest.raises(OwnerOnlyError):
        add_onnx(tiny_library, OnnxModel(tmp_path / "net.onnx", RATE, WINDOW), "net", hush)
