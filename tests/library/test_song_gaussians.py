"""Tests of Gaussians: of parts, stored after the frames and optional, and of the spectral shape of songs."""

import numpy as np
import pytest
import scipy.fft

from musicsim import gaussians
from musicsim.audio import SongFrames, append_parts, read_song_frames
from musicsim.audio.spectral_shape import shape_rows
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.refresh.refresh import refresh
from musicsim.library.stores.song_gaussians import keep_gaussians, part_gaussians, part_length, shape_gaussian

_20_S = 1722.65625  # frames


def drawn(n_frames, seed=0):
    rng = np.random.default_rng(seed)
    mfcc = np.cumsum(rng.normal(size=(n_frames, 13)), axis=0).astype(np.float16)
    return SongFrames(mfcc, rng.random((3, 594)).astype(np.float16))


def written(path, frames):
    """Write a file without numbers of parts, as older versions did."""
    with path.open("wb") as file:
        for array in (frames.mfcc, frames.fluctuation, frames.spectral_shape):
            if array is not None:
                np.lib.format.write_array(file, array, version=(1, 0))
    return path


def assert_same(found, expected):
    np.testing.assert_array_equal(found.n_frames, expected.n_frames)
    np.testing.assert_array_equal(found.means, expected.means)
    np.testing.assert_array_equal(found.covariances, expected.covariances)


@pytest.mark.parametrize(("n_frames", "n_parts"), [(9, 2), (100, 2), (5_000, 3), (5_003, 3), (17_000, 8), (40_001, 8)])
def test_stored_gaussians_equal_computed_ones(tmp_path, n_frames, n_parts):
    frames = drawn(n_frames)
    path = written(tmp_path / "frames.npy", frames)
    older = read_song_frames(path)
    assert older.parts is None
    keep_gaussians(path)
    kept = read_song_frames(path)
    np.testing.assert_array_equal(kept.mfcc, frames.mfcc)
    np.testing.assert_array_equal(kept.fluctuation, frames.fluctuation)
    assert kept.parts.shape == (n_parts, 820)
    expected = gaussians.fit_parts(frames.blocks(), part_length(n_frames))
    for one in (frames, older, kept):
        assert_same(part_gaussians(one), expected)
    whole = gaussians.fit_parts(frames.blocks())
    for one in (older, kept):
        np.testing.assert_allclose(part_gaussians(one).merge().means, whole.means, rtol=1e-5, atol=1e-4)
        np.testing.assert_allclose(part_gaussians(one).merge().covariances, whole.covariances, rtol=1e-5, atol=1e-3)


def test_stored_gaussians_are_read_instead_of_frames(tmp_path):
    path = written(tmp_path / "frames.npy", drawn(5_000))
    keep_gaussians(path)
    kept = read_song_frames(path)
    other = SongFrames(np.zeros_like(kept.mfcc), kept.fluctuation, parts=kept.parts)
    assert_same(part_gaussians(other), part_gaussians(kept))


@pytest.mark.parametrize(
    "parts",
    [
        np.zeros((3, 7), np.float32),
        np.zeros((3, 820), np.float64),
        np.zeros((3, 820), np.float32),
        np.ones(820, np.float32),
    ],
)
def test_gaussians_of_other_version_are_ignored(tmp_path, parts):
    frames = drawn(5_000)
    path = written(tmp_path / "frames.npy", frames)
    append_parts(path, parts)
    assert_same(part_gaussians(read_song_frames(path)), part_gaussians(frames))


def test_shape_of_song_equals_that_of_all_its_spectra(rng):
    levels = np.cumsum(rng.normal(size=(3_000, 40)), axis=0).astype(np.float32)
    whole = shape_gaussian(SongFrames(np.zeros((3_000, 13), np.float16), None, shape_rows(levels)))
    spectra = 10 * np.log10((10 ** (levels.astype(float) / 10)).reshape(-1, 2, 40).mean(axis=1))
    coefficients = scipy.fft.dct(spectra, norm="ortho", axis=1)[:, :25]
    assert whole.n_frames.tolist() == [1_500]
    # blocks are merged from float32 means and covariances; covariances reach 1e4
    np.testing.assert_allclose(whole.means[0], coefficients.mean(axis=0), atol=1e-3)
    np.testing.assert_allclose(whole.covariances[0], np.cov(coefficients.T), rtol=1e-4, atol=0.05)


def test_parts_last_twenty_seconds_with_two_to_eight_parts():
    assert part_length(9) == 5
    assert part_length(round(5 * _20_S)) == pytest.approx(_20_S, abs=1)
    assert part_length(100_000) == 12_500


def test_fit_is_same_with_and_without_stored_gaussians(tiny_library):
    store = tiny_library.frame_files
    kept = {digest: store.frames(digest) for digest in store.list_stored()}
    assert kept
    assert all(frames.parts is not None for frames in kept.values())
    native = SimilarityModel.load(tiny_library.models.path(tiny_library.models.native().id))
    features = native.features(list(kept.values()))
    refresh(tiny_library, force=True)
    fitted = tiny_library.models.features(tiny_library.models.native().id)
    for digest, frames in kept.items():
        written(store.path(digest).with_suffix(".new"), frames).replace(store.path(digest))
    older = [store.frames(digest) for digest in kept]
    assert all(frames.parts is None for frames in older)
    np.testing.assert_array_equal(native.features(older), features)
    refresh(tiny_library, force=True)
    again = tiny_library.models.features(tiny_library.models.native().id)
    np.testing.assert_array_equal(again.song_ids, fitted.song_ids)
    np.testing.assert_array_equal(again.X, fitted.X)
