"""Vectors of clips against those of a library's songs, and a run of mteb on a task made of local sounds."""

import sys
from contextlib import closing

import numpy as np
import pytest
import soundfile

from experiments.maeb import LibraryEncoder
from musicsim.errors import LibraryError, NotFoundError
from tests.extensions.embeddings.test_ear import add, write_network

BOTH = "Sound and bands"


@pytest.fixture
def library(tiny_library, tmp_path):
    """The tiny library, with an ear that has a closed form."""
    add(tiny_library, write_network(tmp_path / "net.onnx"), model_name="bands")
    return tiny_library


def read_clips(library):
    """Return the samples of each song, as mteb passes them, in the order of ids."""
    read = [soundfile.read(song.path, dtype="float32", always_2d=True) for song in library.songs()]
    return [{"array": samples.T, "sampling_rate": rate} for samples, rate in read]


def in_batches(clips, size):
    return [{"audio": clips[start : start + size], "label": 0} for start in range(0, len(clips), size)]


@pytest.mark.parametrize("model", ["Sound", BOTH])
def test_clips_get_vectors_of_same_songs_in_any_order_and_batches(library, model):
    stored = library.vectors(library.models.find(model).id)
    row_of = {song_id: row for row, song_id in enumerate(stored.song_ids.tolist())}
    expected = stored.X[[row_of[song.id] for song in library.songs()]]
    clips = read_clips(library)
    with closing(LibraryEncoder(library.folder, model)) as encoder:
        vectors = encoder.encode(in_batches(clips, 5), task_metadata=None, hf_split="test", hf_subset="default")
        backwards = encoder.encode(in_batches(clips[::-1], 1))
    # stored features are sums in blocks of another size; distances between songs are about 1
    np.testing.assert_allclose(vectors, expected, atol=1e-4)
    np.testing.assert_array_equal(backwards[::-1], vectors)


def test_short_silent_and_empty_clips_get_finite_vectors(library):
    sounds = [np.zeros(22_050), np.zeros(0), np.sin(np.arange(40.0))]
    with closing(LibraryEncoder(library.folder, BOTH)) as encoder:
        vectors = encoder.encode([{"audio": [{"array": sound, "sampling_rate": 16_000} for sound in sounds]}])
    assert len(vectors) == 3
    assert np.isfinite(vectors).all()


def test_unknown_model_and_missing_package_give_clear_errors(tiny_library, monkeypatch):
    with pytest.raises(NotFoundError, match="no-such"):
        LibraryEncoder(tiny_library.folder, "no-such")
    monkeypatch.setitem(sys.modules, "mteb", None)
    with closing(LibraryEncoder(tiny_library.folder)) as encoder, pytest.raises(LibraryError, match="pip install"):
        _ = encoder.mteb_model_meta


@pytest.mark.parametrize("model", ["Sound", BOTH])
def test_mteb_evaluates_models(library, model):
    mteb = pytest.importorskip("mteb", reason="mteb is not installed: pip install 'mteb[audio]'")
    from datasets import Dataset, DatasetDict
    from mteb.abstasks.classification import AbsTaskClassification

    songs, clips = library.songs(), read_clips(library)
    artists = sorted({song.artist for song in songs})
    rows = [
        {
            "audio": {"array": clip["array"].mean(axis=0), "sampling_rate": clip["sampling_rate"]},
            "label": artists.index(song.artist),
        }
        for song, clip in zip(songs, clips, strict=True)
    ]

    class Artists(AbsTaskClassification):
        metadata = mteb.TaskMetadata(
            name="MusicsimArtists",
            description="The artists of the songs of the tests.",
            type="AudioClassification",
            modalities=["audio"],
            dataset={"path": "local", "revision": "1"},
            eval_langs=["zxx-Zxxx"],
            main_score="accuracy",
        )
        input_column_name = "audio"
        samples_per_label = 4
        n_experiments = 1

        def load_data(self, **_):
            """Use the songs both to train and to test the classifier."""
            self.dataset = DatasetDict({split: Dataset.from_list(rows) for split in ("train", "test")})
            self.data_loaded = True

    with closing(LibraryEncoder(library.folder, model)) as encoder:
        result = mteb.evaluate(encoder, Artists(), cache=None, show_progress_bar=False)
        vectors = encoder.encode(in_batches(clips, 12))
        similarity = np.asarray(encoder.similarity(vectors, vectors[:3]))
        pairs = np.asarray(encoder.similarity_pairwise(vectors[:3], vectors[3:6]))
    assert result.model_name == f"musicsim/{model.replace(' ', '-')}"
    assert result.task_results[0].get_score() == 1.0, "twelve points in more dimensions are separable"
    distances = np.linalg.norm(vectors[:, None] - vectors[None, :3], axis=2)
    np.testing.assert_allclose(similarity, -distances, atol=1e-3)
    np.testing.assert_allclose(pairs, -distances[3:6].diagonal(), atol=1e-3)
