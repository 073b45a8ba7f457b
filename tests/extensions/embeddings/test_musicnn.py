"""Tests of MusiCNN built from its weights against the layers of its TensorFlow code, computed with NumPy."""

from functools import cache

import numpy as np
import onnxruntime
import pytest

from musicsim.errors import ModelError
from musicsim.extensions.embeddings.musicnn import OUTPUT, TAGS, convert
from tests.extensions.embeddings.checkpoint_files import write_wheel

_KERNELS = [(7, 38, 1, 204), (7, 67, 1, 204), (128, 1, 1, 51), (64, 1, 1, 51), (32, 1, 1, 51)]
_KERNELS += [(7, 561, 1, 64), (7, 64, 1, 64), (7, 64, 1, 64)]
_WIDTHS = [1, 204, 204, 51, 51, 51, 64, 64, 64, 1506, 200]  # of the batch normalizations


def _number(name, number):
    return f"{name}_{number}" if number else name


@cache
def weights():
    """Return random weights with the names and shapes in the package."""
    rng = np.random.default_rng(0)
    arrays = {}
    for number, shape in enumerate(_KERNELS):
        name = _number("conv2d", number)
        arrays[f"{name}/kernel"] = rng.standard_normal(shape) / np.sqrt(np.prod(shape[:3]))
        arrays[f"{name}/bias"] = rng.standard_normal(shape[3])
    for name, shape in (("dense", (1506, 200)), ("dense_1", (200, 50))):
        arrays[f"{name}/kernel"] = rng.standard_normal(shape) / np.sqrt(shape[0])
        arrays[f"{name}/bias"] = rng.standard_normal(shape[1])
    for number, width in enumerate(_WIDTHS):
        name = _number("batch_normalization", number)
        for part in ("gamma", "beta", "moving_mean"):
            arrays[f"{name}/{part}"] = rng.standard_normal(width)
        arrays[f"{name}/moving_variance"] = rng.uniform(0.5, 2, width)
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def normalize(x, number):
    gamma, beta, mean, variance = (
        weights()[f"{_number('batch_normalization', number)}/{part}"].astype(np.float64)
        for part in ("gamma", "beta", "moving_mean", "moving_variance")
    )
    return (x - mean) / np.sqrt(variance + 1e-3) * gamma + beta


def convolve(x, number, before, after):
    """Convolve (time, bands), padded in time; return the loudest band of each normalized channel, (time, channels)."""
    kernel = weights()[f"{_number('conv2d', number)}/kernel"][:, :, 0].astype(np.float64)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((before, after), (0, 0))), kernel.shape[:2])
    sums = np.einsum("tbij,ijc->tbc", windows, kernel, optimize=True)
    return normalize(np.maximum(sums + weights()[f"{_number('conv2d', number)}/bias"], 0), number + 1).max(axis=1)


def pooled(patch):
    """Return the pooled channels of one patch over time, (time, 753)."""
    image = normalize(patch.astype(np.float64), 0)
    sides = {0: (3, 3), 1: (3, 3), 2: (63, 64), 3: (31, 32), 4: (15, 16)}  # TensorFlow's "same" padding for rhythm
    layers = [np.concatenate([convolve(image, number, *pads) for number, pads in sides.items()], axis=1)]
    for number in (5, 6, 7):
        layer = convolve(layers[-1], number, 3, 3)
        layers.append(layer if number == 5 else layer + layers[-1])
    return np.concatenate(layers, axis=1)


def dense(x, name):
    return x @ weights()[f"{name}/kernel"].astype(np.float64) + weights()[f"{name}/bias"]


def test_network_equals_layers_of_paper(tmp_path):
    network = convert(write_wheel(tmp_path / "musicnn.whl", weights()))
    session = onnxruntime.InferenceSession(network, providers=["CPUExecutionProvider"])
    patches = np.random.default_rng(1).uniform(0, 4, (2, 187, 96)).astype(np.float32)
    found, penultimate = session.run([OUTPUT, "penultimate"], {"patches": patches})
    assert found.shape == (2, 1506 + len(TAGS))
    for row, hidden, patch in zip(found, penultimate, patches, strict=True):
        channels = pooled(patch)
        mean, loudest = channels.mean(axis=0), channels.max(axis=0)
        pairs = normalize(np.stack([loudest, mean], axis=1).ravel(), 9)
        last = normalize(np.maximum(dense(pairs, "dense"), 0), 10)
        tags = 1 / (1 + np.exp(-dense(last, "dense_1")))
        # sums of up to 4,000 float32 products
        np.testing.assert_allclose(row, np.concatenate([mean, loudest, tags]), rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(hidden, last, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kind", ["no archive", "other package", "missing weights"])
def test_other_files_are_refused_with_remedy(tmp_path, kind):
    path = tmp_path / "other.whl"
    if kind == "no archive":
        path.write_bytes(b"not an archive")
    else:
        write_wheel(path, {"bias": np.ones(3)})
    if kind == "other package":
        path.write_bytes(path.read_bytes().replace(b"MSD_musicnn", b"MSD_another"))
    with pytest.raises(ModelError, match=r"other\.whl: .*pip download --no-deps musicnn"):
        convert(path)
