"""Vectors of MusiCNN for pieces, and spaces that join them with Sound: for experiments.ear and experiments.real_music.

The weights are read from the package musicnn, which nothing downloads: see :data:`DOWNLOAD`.
"""

import time
from pathlib import Path

import numpy as np

from benchmarks.support.report import Progress, Skipped, version
from experiments.support.pieces import Pieces
from musicsim._arrays import Float64Array
from musicsim.extensions.embeddings import musicnn
from musicsim.extensions.embeddings.networks import OnnxModel, append_vectors, hash_network
from musicsim.extensions.embeddings.representations import EAR, REPRESENTATIONS
from musicsim.extensions.embeddings.vectors import VectorRows
from musicsim.extras import install_command
from musicsim.library import Library

__all__ = [
    "PACKAGE",
    "USUAL_EVERY",
    "USUAL_SHARE",
    "join",
    "patch_model",
    "penultimate_vectors",
    "pooled_vectors",
    "prepare_network",
    "standardize",
]

PACKAGE = "musicnn-0.1.0-py3-none-any.whl"
DOWNLOAD = "pip download --no-deps musicnn==0.1.0"
USUAL_EVERY, USUAL_SHARE = 6, 0.5
"""The app's patches, and the ear's share of the mean squared distance."""
_N_PENULTIMATE = 200


def prepare_network(cache: Path) -> Path:
    """Write MusiCNN as an ONNX file into a folder that has its package; raises Skipped, with advice, if it cannot."""
    package = cache / PACKAGE
    if not package.is_file():
        raise Skipped(f"{package} is missing. Run in its folder: {DOWNLOAD}")
    if absent := [name for name in ("onnx", "onnxruntime") if version(name) is None]:
        raise Skipped(f"{' and '.join(absent)}: not installed ({install_command('ear')})")
    network = cache / "musicnn.onnx"
    network.write_bytes(musicnn.convert(package))
    return network


def patch_model(network: Path, every: int, output: str = musicnn.OUTPUT) -> OnnxModel:
    """Return the network on one of `every` patches."""
    return OnnxModel.on_patches(network, "musicnn", output, every, hash_network(network))


def pooled_vectors(
    library: Library, pieces: Pieces, network: Path, every: int, cache: Path, progress: Progress
) -> Float64Array:
    """Return the mean and maximum over time of the pooled channels, averaged over patches, (n_pieces, 1506)."""
    width = 2 * musicnn.N_POOLED
    model = patch_model(network, every)
    return _vectors(library, pieces, model, width + len(musicnn.TAGS), cache, progress)[:, :width]


def penultimate_vectors(
    library: Library, pieces: Pieces, network: Path, every: int, cache: Path, progress: Progress
) -> Float64Array:
    """Return the layer before the tags, averaged over patches, (n_pieces, 200)."""
    return _vectors(library, pieces, patch_model(network, every, "penultimate"), _N_PENULTIMATE, cache, progress)


def _vectors(
    library: Library, pieces: Pieces, model: OnnxModel, width: int, cache: Path, progress: Progress
) -> Float64Array:
    rows = VectorRows(cache / f"{model.key}.rows", width)
    songs = {song.content_hash: song.path for song in pieces.songs}
    started = time.monotonic()

    def show(message: str, done: int = 0, total: int = 0, /, **_: object) -> None:
        if done and done % 50 == 0:
            progress(f"{message}: {done} of {total} after {time.monotonic() - started:.0f} s")

    failures = list(append_vectors(library, model, rows, songs, show))
    if failures:
        raise Skipped(failures[0][2])
    return rows.select(songs)[1].astype(np.float64)


def standardize(pools: Float64Array) -> Float64Array:
    """Map features as the app does: standardized columns, rows of unit length."""
    kind = REPRESENTATIONS[EAR]
    assert kind.weights is not None
    features = pools.astype(np.float32)
    return kind.map(features, kind.weights.fit(features)).astype(np.float64)


def join(one: Float64Array, other: Float64Array, share: float) -> Float64Array:
    """Join two spaces so that the second has the given share of the mean squared distance."""
    parts = [np.sqrt(weight / X.var(axis=0).sum()) * X for weight, X in ((1 - share, one), (share, other))]
    return np.hstack(parts)
