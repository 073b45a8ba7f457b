"""Tests of learned ears: vectors of patches, one space with Sound, stopped runs, and songs that are added later."""

import json
from dataclasses import replace

import numpy as np
import pytest
import soxr
from onnx import TensorProto, helper, save

from musicsim.audio import SAMPLE_RATE, load
from musicsim.errors import ModelError
from musicsim.explorer.refresh.fitting import RepresentationSettings
from musicsim.explorer.refresh.joined_model import JOINED_KIND
from musicsim.explorer.refresh.model_catalogue import add_representation, stale_reason
from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.search.query import read_example
from musicsim.explorer.search.why_sides import explain_result
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.embeddings import representations
from musicsim.extensions.embeddings.adding import add_ear
from musicsim.extensions.embeddings.networks import FRONT_ENDS, song_vector
from musicsim.extensions.embeddings.representations import Network
from musicsim.progress import Canceled
from tests.command import run
from tests.learning import hush
from tests.sounds import write_song

N_FRAMES = 60  # songs of the tiny library last four seconds: four patches


def write_network(path, shape=("n", N_FRAMES, 96)):
    """Write a network that returns the mean of each band, and its maximum."""
    axis = next(i for i, size in enumerate(shape) if size == N_FRAMES)
    nodes = [
        helper.make_node("ReduceMean", ["patches"], ["mean"], axes=[axis], keepdims=0),
        helper.make_node("ReduceMax", ["patches"], ["max"], axes=[axis], keepdims=0),
        helper.make_node("Concat", ["mean", "max"], ["both"], axis=-1 if shape[-1] != 1 else -2),
        helper.make_node("Flatten", ["both"], ["vector"]),
    ]
    graph = helper.make_graph(
        nodes,
        "bands",
        [helper.make_tensor_value_info("patches", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("vector", TensorProto.FLOAT, None)],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def true_vector(path, every=1):
    """Return the mean and maximum of each band; like the analysis, this starts with samples at 22,050 Hz."""
    samples = soxr.resample(load(path), SAMPLE_RATE, 16_000)
    patches = FRONT_ENDS["musicnn"].patches(samples, N_FRAMES, every).astype(np.float64)
    return np.concatenate([patches.mean(axis=1), patches.max(axis=1)], axis=1).mean(axis=0)


def add(library, path, progress=hush, **options):
    return add_ear(library, path, progress, **{"front_end": "musicnn", "every": 1} | options)


@pytest.mark.parametrize(
    "shape", [("n", N_FRAMES, 96), ("n", 1, N_FRAMES, 96), ("n", N_FRAMES, 96, 1), (64, N_FRAMES, 96)]
)
def test_every_accepted_shape_averages_patches(tiny_library, tmp_path, shape):
    ear_id, _ = add(tiny_library, write_network(tmp_path / "net.onnx", shape))
    stored = tiny_library.models.features(ear_id)
    paths = {song.id: song.path for song in tiny_library.songs()}
    for song_id, features in zip(stored.song_ids.tolist(), stored.X, strict=True):
        np.testing.assert_allclose(features, true_vector(paths[song_id]), rtol=1e-4, atol=1e-5)


def test_channels_that_hardly_vary_do_not_count():
    kind = representations.REPRESENTATIONS[representations.EAR]
    features = np.random.default_rng(0).standard_normal((20, 4)).astype(np.float32)
    features[:, 2:] *= [1e-15, 0]
    weights = kind.weights.fit(features)
    assert weights.max() < 10
    np.testing.assert_allclose(kind.map(features, weights)[:, :2], kind.map(features[:, :2], weights[:, :2]))


def test_joined_model_gives_sound_and_ear_equal_shares(tiny_library, tmp_path):
    ear_id, joined_id = add(tiny_library, write_network(tmp_path / "net.onnx"), model_name="bands")
    joined = tiny_library.models.active()
    assert (joined.id, joined.name, joined.kind) == (joined_id, "Sound and bands", JOINED_KIND)
    n_sound = tiny_library.models.native().n_dimensions
    X = tiny_library.vectors(joined_id).X.astype(np.float64)
    assert X[:, :n_sound].var(axis=0).sum() == pytest.approx(X[:, n_sound:].var(axis=0).sum(), rel=1e-3)
    assert tiny_library.models.get(ear_id).name == "bands"


def test_why_shows_part_of_ear_and_parts_sum_to_similarity(tiny_library, tmp_path):
    add(tiny_library, write_network(tmp_path / "net.onnx"))
    snapshot = take_snapshot(tiny_library)
    first, second = snapshot.row_ids[:2].tolist()
    _, _, why = explain_result(snapshot, first, second)
    assert "a learned ear" in {part.words for part in why.parts}
    squares = sum(part.stages[-1].distance for part in why.parts)
    assert squares == pytest.approx(why.stages[-1].distance ** 2, rel=1e-3)


def test_canceled_run_resumes(tiny_library, tmp_path):
    path, seen = write_network(tmp_path / "net.onnx"), []

    def stop(message, done=0, _total=0, /, **_):
        seen.append((message, done))
        if message.startswith("running") and done == 2:
            raise Canceled

    with pytest.raises(Canceled):
        add(tiny_library, path, stop)
    assert [record.kind for record in tiny_library.models.all() if record.kind == JOINED_KIND] == []
    seen.clear()
    add(tiny_library, path, lambda message, done=0, *_, **__: seen.append((message, done)))
    assert min(done for message, done in seen if message.startswith("running")) >= 2


def test_new_songs_are_described_by_scan(tiny_library, tmp_path):
    ear_id, joined_id = add(tiny_library, write_network(tmp_path / "net.onnx"))
    song = write_song(tmp_path / "new.flac", "drums", seed=9, seconds=4.0)
    tiny_library.add(song)
    refresh(tiny_library)
    for model_id in (ear_id, joined_id):
        assert len(tiny_library.vectors(model_id).song_ids) == len(tiny_library)
    added = tiny_library.models.features(ear_id).X[-1]
    np.testing.assert_allclose(added, true_vector(song), rtol=1e-4, atol=1e-5)


@pytest.mark.long
def test_scan_describes_songs_while_it_decodes_them(tiny_library, tmp_path, monkeypatch):
    ear_id, _ = add(tiny_library, write_network(tmp_path / "net.onnx"))
    network = Network(tiny_library.folder, tiny_library.models.get(ear_id).settings["vectors"])
    before = network.read_rows().row_of
    song = write_song(tmp_path / "new.flac", "drums", seed=9, seconds=4.0)
    tiny_library.add(song)
    rows = network.read_rows()
    (added,) = rows.row_of.keys() - before.keys()
    np.testing.assert_array_equal(rows.select([added])[1][0], song_vector(network.model, song))
    monkeypatch.setattr(representations, "append_vectors", lambda *_: pytest.fail("the song was decoded twice"))
    refresh(tiny_library)
    assert len(tiny_library.vectors(ear_id).song_ids) == len(tiny_library)


def test_network_that_fails_does_not_keep_song_out(tiny_library, tmp_path):
    ear_id, _ = add(tiny_library, write_network(tmp_path / "net.onnx"))
    key = tiny_library.models.get(ear_id).settings["vectors"]
    (tiny_library.folder / "embeddings" / key / "network.onnx").write_bytes(b"damaged")
    n_before = len(tiny_library)
    assert tiny_library.add(write_song(tmp_path / "new.flac", "drums", seed=9, seconds=4.0)).failures == []
    assert len(tiny_library) == n_before + 1


def test_uploaded_sound_is_heard_like_song(tiny_library, tmp_path):
    add(tiny_library, write_network(tmp_path / "net.onnx"))
    snapshot = take_snapshot(tiny_library)
    song = tiny_library.songs()[0]
    example = read_example(snapshot, song.path, "upload")
    stored = tiny_library.vectors(snapshot.model_id)
    (row,) = np.flatnonzero(stored.song_ids == song.id)
    np.testing.assert_allclose(example.vector, stored.X[row], atol=1e-3)
    silent_ear = replace(example.frames, network_vectors={})
    predicted = snapshot.model.vectors(snapshot.model.features([silent_ear]))[0]
    assert np.linalg.norm(predicted - stored.X[row]) > 10 * np.linalg.norm(example.vector - stored.X[row])


def test_without_onnxruntime_other_models_get_new_songs(tiny_library, tmp_path, monkeypatch):
    ear_id, _ = add(tiny_library, write_network(tmp_path / "net.onnx"))
    n_before = len(tiny_library)

    def fail(*_, **__):
        raise representations.LibraryError("net.onnx needs onnxruntime.")

    monkeypatch.setattr(representations, "append_vectors", fail)
    monkeypatch.setattr("musicsim.extensions.embeddings.representations.find_spec", lambda _: None)
    tiny_library.add(write_song(tmp_path / "new.flac", "drums", seed=9, seconds=4.0))
    refresh(tiny_library)
    assert len(tiny_library.vectors(ear_id).song_ids) == n_before
    assert len(tiny_library.vectors(tiny_library.models.native().id).song_ids) == n_before + 1


def test_song_without_vector_is_not_tried_again(tiny_library, own_music, tmp_path):
    path = write_network(tmp_path / "net.onnx")
    tiny_library.songs()[0].path.write_bytes(b"not a sound")
    ear_id, _ = add(tiny_library, path)
    assert len(tiny_library.vectors(ear_id).song_ids) == len(tiny_library) - 1
    messages = []
    representations.describe_songs(
        tiny_library, Network(tiny_library.folder, tiny_library.models.get(ear_id).settings["vectors"]),
        lambda message, *_, **__: messages.append(message),
    )  # fmt: skip
    assert messages == []


def test_joined_model_is_refitted_after_its_sources(tiny_library, tmp_path):
    ear_id, joined_id = add(tiny_library, write_network(tmp_path / "net.onnx"), model_name="bands")
    settings = RepresentationSettings(**tiny_library.models.get(ear_id).settings)
    add_representation(tiny_library, settings, "bands", hush)
    joined = tiny_library.models.get(joined_id)
    assert stale_reason(tiny_library, joined) == "these models have been replaced since it was fitted: bands"
    refresh(tiny_library)
    assert stale_reason(tiny_library, tiny_library.models.find(joined.name)) is None


def test_same_network_is_added_once(tiny_library, tmp_path):
    path = write_network(tmp_path / "net.onnx")
    ids = add(tiny_library, path)
    names = [record.name for record in tiny_library.models.all()]
    tiny_library.models.activate(tiny_library.models.native().id)
    assert add(tiny_library, path) == ids
    assert [record.name for record in tiny_library.models.all()] == names
    assert tiny_library.models.active().id == ids[1]
    tiny_library.models.rename(ids[0], "renamed")
    assert add(tiny_library, path) == ids
    assert add(tiny_library, path, model_name="other")[0] != ids[0]


def test_joined_model_whose_source_was_replaced_is_joined_again(tiny_library, tmp_path):
    path = write_network(tmp_path / "net.onnx")
    add(tiny_library, path, model_name="bands")
    tiny_library.models.delete(tiny_library.models.find("bands").id)
    ear_id, joined_id = add(tiny_library, path, model_name="bands", use=False)
    assert tiny_library.models.get(joined_id).settings["model_ids"] == [tiny_library.models.native().id, ear_id]
    assert [record.kind for record in tiny_library.models.all()].count(JOINED_KIND) == 1


@pytest.mark.parametrize(
    ("shape", "options", "words"),
    [
        (("n", N_FRAMES, 64), {}, r"shape \(n, 60, 64\); it must be .*96\).* for musicnn"),
        (("n", 2, N_FRAMES, 96), {}, "it must be"),
        (("n", N_FRAMES, 96), {"front_end": ""}, "choose the front end"),
        (("n", N_FRAMES, 96), {"output": "none"}, "no output named"),
    ],
)
def test_invalid_networks_leave_nothing(tiny_library, tmp_path, shape, options, words):
    with pytest.raises(ModelError, match=rf"(?s)net\.onnx: .*{words}"):
        add(tiny_library, write_network(tmp_path / "net.onnx", shape), **options)
    assert not list((tiny_library.folder / "embeddings").glob("*"))


def test_command_adds_ear_and_search_uses_it(tiny_library, tmp_path):
    path = write_network(tmp_path / "net.onnx")
    folder = tiny_library.folder
    out, _ = run("models", "add-ear", path, "--front-end", "musicnn", "--stride", 1, "--name", "Bands", library=folder)
    assert "Sound and Bands was added, and is now in use." in out
    out, _ = run("models", "add-ear", path, "--front-end", "musicnn", "--stride", 1, "--name", "Bands", library=folder)
    assert "Sound and Bands was already there, and is now in use." in out
    assert [job.state for job in tiny_library.jobs.recent()] == ["done", "done"]
    assert json.loads(run("similar", 1, "-k", 2, "--json", library=folder)[0])
    _, problem = run("models", "add-ear", path, "--front-end", "other", library=folder, expect=2)
    assert "must be one of musicnn, essentia, vggish, librosa" in " ".join(problem.split())
