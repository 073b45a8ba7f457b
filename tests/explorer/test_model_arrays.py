"""Tests that the arrays of a model are checked against each other and its description before they are read."""

import copy
import zipfile

import numpy as np
import pytest

from musicsim.errors import ModelError
from musicsim.explorer.models import arrays as model_arrays
from musicsim.explorer.models.arrays import read_arrays
from musicsim.explorer.models.encoders import CodewordEncoder
from musicsim.explorer.models.similarity_model import ModelMetrics, SimilarityModel
from tests.crafted_models import packed


@pytest.fixture(scope="module")
def model():
    """Build a model of 60 songs with a metric. Tests must not change it."""
    rng = np.random.default_rng(0)
    fitted = SimilarityModel("tfidf", n_codewords=16, random_state=0)
    fitted.use_encoder(CodewordEncoder.fit_frames(rng.standard_normal((800, 39)).astype(np.float32), 16, 4, 0))
    shares = rng.dirichlet(np.ones(16), 60) * (rng.random((60, 16)) < 0.7)  # a word in all songs weighs zero
    features = (shares / shares.sum(axis=1, keepdims=True)).astype(np.float32)
    vectors = fitted.fit_space(features).vectors(features)
    return fitted.add_metric(rng.standard_normal((3, fitted.n_dimensions)), vectors)


@pytest.fixture
def read(model, tmp_path):
    """Read the arrays of the model with some of them changed, or removed if None."""

    def reading(**changed):
        arrays = {name: array for name, array in (model.arrays() | changed).items() if array is not None}
        (tmp_path / "model.npz").write_bytes(packed(**arrays))
        return read_arrays(tmp_path / "model.npz", model.describe())

    return reading


def test_valid_model_is_read_completely(model, read):
    found = read()
    assert found.keys() == model.arrays().keys()
    for name, array in model.arrays().items():
        np.testing.assert_array_equal(found[name], array)


def test_byte_and_memory_order_do_not_matter(model, read):
    odd = {name: array.astype(array.dtype.newbyteorder(">"), order="F") for name, array in model.arrays().items()}
    for name, array in read(**odd).items():
        np.testing.assert_array_equal(array, model.arrays()[name])
        assert array.dtype.isnative


def test_unneeded_arrays_are_ignored(model, read):
    assert read(more=np.zeros(3)).keys() == model.arrays().keys()


@pytest.mark.parametrize(
    ("name", "wrong", "why"),
    [
        ("codewords", lambda a: None, "codewords is missing"),
        ("weights", lambda a: None, "weights is missing"),
        ("codewords", lambda a: a[:, :38], r"codewords has the shape \(16, 38\)"),
        ("codewords", lambda a: a[:3], "counts has the shape"),
        ("codewords", lambda a: a * 1e12, "codewords contains NaN or numbers out of range"),
        ("codewords", lambda a: a.astype(np.float16), "codewords has the wrong type float16"),
        ("codewords", lambda a: a + 0j, "codewords has the wrong type complex128"),
        ("codewords", lambda a: a.astype(str), "codewords has the wrong type <U"),
        ("codewords", lambda a: a.astype(object), "Python objects"),
        ("counts", lambda a: -a, "counts contains"),
        ("frame_scale", lambda a: a * 0, "frame_scale contains"),
        ("frame_mean", lambda a: a * np.inf, "frame_mean contains"),
        ("mean", lambda a: a[None], "mean has the shape"),
        ("components", lambda a: a.T, "components has the shape"),
        ("components", lambda a: np.tile(a, (20, 1)), "metric has the shape|more dimensions"),
        ("components", lambda a: a[:0], "components has the shape"),
        ("metric", lambda a: np.tile(a, (20, 1)), "more dimensions than"),
        ("metric", lambda a: a[:, :1], "metric has the shape"),
        ("weights", lambda a: a[:-1], "weights has the shape"),
        ("local_anchors", lambda a: np.zeros((2, 3)), "local_metrics is missing"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_invalid_array_is_named_in_error(model, read, name, wrong, why):
    with pytest.raises(ValueError, match=why):
        read(**{name: wrong(model.arrays().get(name))})


def test_local_metrics_must_fit_vectors(model, read):
    local = {"local_anchors": np.zeros((2, 3)), "local_decay": np.float64(1)}
    assert read(**local, local_metrics=np.zeros((2, 3, 3))).keys() == model.arrays().keys() | {*local, "local_metrics"}
    for wrong in (np.eye(3), np.zeros((2, 3, 2)), np.zeros((2, 5, 5))):
        with pytest.raises(ValueError, match="local_metrics has the shape"):
            read(**local, local_metrics=wrong)


def test_rejects_tau_above_codeword_count(model, tmp_path):
    (tmp_path / "model.npz").write_bytes(packed(**model.arrays()))
    about = model.describe().model_copy(update={"tau": 17})
    with pytest.raises(ValueError, match="tau is 17, but there are only 16 codewords"):
        read_arrays(tmp_path / "model.npz", about)


def test_misshapen_array_data_is_never_read(read, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("it was read")

    monkeypatch.setattr(model_arrays.np.lib.format, "read_array", refuse)
    with pytest.raises(ValueError, match="components has the shape"):
        read(components=np.zeros((100, 1000)))


def test_rejects_compressed_and_overlapping_arrays(model, tmp_path):
    path = tmp_path / "model.npz"
    np.savez_compressed(path, **model.arrays())
    with pytest.raises(ValueError, match="its arrays are compressed"):
        read_arrays(path, model.describe())
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("a.npy", "b.npy"):
            archive.writestr(name, packed(a=np.zeros(1000)))
        archive.filelist[1].header_offset = archive.filelist[0].header_offset
        archive.filelist[1].file_size = archive.filelist[1].compress_size = 10**6
    with pytest.raises(ValueError, match="larger than the file"):
        read_arrays(path, model.describe())


def test_error_names_model_and_remedy(model, tmp_path):
    model.save(tmp_path / "saved")
    (tmp_path / "saved" / "model.npz").write_bytes(packed(**model.arrays() | {"mean": np.zeros(3)}))
    with pytest.raises(ModelError, match=r"^mine: .*mean has the shape \(3,\).* Ask again\.$"):
        SimilarityModel.load(tmp_path / "saved", called="mine", remedy="Ask again.")


def test_local_metrics_load_without_model(model, tmp_path):
    model.save(tmp_path / "plain")
    assert SimilarityModel.load_local(tmp_path / "plain") is None
    rng = np.random.default_rng(1)
    local = ModelMetrics(rng.standard_normal((2, 3)), np.stack([np.eye(3), 2 * np.eye(3)]), 0.5)
    with_local = copy.copy(model)
    with_local.local_ = local
    with_local.save(tmp_path / "local")
    whole, alone = (SimilarityModel.load(tmp_path / "local").local_, SimilarityModel.load_local(tmp_path / "local"))
    for name, array in local.arrays().items():
        np.testing.assert_array_equal(whole.arrays()[name], array)
        np.testing.assert_array_equal(alone.arrays()[name], array)
    (tmp_path / "local" / "model.npz").write_bytes(b"")
    with pytest.raises(ModelError, match="no similarity model can be read"):
        SimilarityModel.load_local(tmp_path / "local")
