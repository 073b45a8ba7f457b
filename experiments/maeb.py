"""MAEB: a library's models on tasks of the Massive Audio Embedding Benchmark, next to CLAP, MERT and others.

``python -m experiments.maeb LIBRARY TASK...`` evaluates Sound, and ``--model "Sound and MusiCNN"`` the joint space. The
output is the main score of each task. Tasks have the names of the package mteb, which downloads their data. It is not
a dependency of this program, because it brings PyTorch: install it in an environment of its own with ``pip install
'mteb[audio]'``.

The library decides what is evaluated: its songs fit the constants of Sound, and its network is the ear. Use music that
the tasks do not contain. A vector of a clip is that of the same sound as a file in the library or dropped on a page.
Distances are Euclidean, without hub reduction, because tasks compare vectors.
"""

import argparse
import io
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import soundfile

from musicsim import __version__
from musicsim._arrays import Float32Array
from musicsim.audio.features import DELTA_WIDTH, HOP, SAMPLE_RATE
from musicsim.errors import LibraryError
from musicsim.explorer.search.query import model_to_compare_with, read_example
from musicsim.explorer.snapshot.snapshot import snapshot_under
from musicsim.library import Library

__all__ = ["LibraryEncoder"]

_SHORTEST_S = 2 * DELTA_WIDTH * HOP / SAMPLE_RATE


class LibraryEncoder:
    """An encoder for `mteb.evaluate`: the vectors of clips under one model of a library.

    Parameters
    ----------
    folder : Path
        Of the library, which is not changed.
    model : str
        The name of a model that compares sound, such as "Sound" or "Sound and MusiCNN".

    Raises
    ------
    NotFoundError
        If there is no such library or model.
    """

    def __init__(self, folder: Path | str, model: str = "Sound") -> None:
        self._library = Library.open(folder, create=False)
        self._snapshot = snapshot_under(self._library, model)
        self._record = self._library.models.find(model)

    def close(self) -> None:
        """Close the library."""
        self._library.close()

    @property
    def mteb_model_meta(self) -> Any:
        """Describe the model; the revision is that of its fit, so that mteb does not mix results of several fits."""
        _check_installed()
        from mteb.models.model_meta import ModelMeta, ScoringFunction

        return ModelMeta.create_empty(
            {
                "name": f"musicsim/{self._record.name.replace(' ', '-')}",
                "revision": f"{__version__}-{self._record.id}",
                "modalities": ["audio"],
                "embed_dim": model_to_compare_with(self._snapshot).n_dimensions,
                "similarity_fn_name": ScoringFunction.EUCLIDEAN,
                "framework": ["NumPy"],
                "use_instructions": False,
            }
        )

    def encode(self, inputs: Iterable[Mapping[str, Any]], **_: Any) -> Float32Array:
        """Return the vectors of all clips in batches, (n_clips, n_dimensions).

        Each batch has a list called "audio", whose items have an "array" of samples, (n,) or (channels, n), and a
        "sampling_rate". A clip shorter than a fifth of a second is repeated.
        """
        vectors = [self._vector(clip) for batch in inputs for clip in batch["audio"]]
        width = model_to_compare_with(self._snapshot).n_dimensions
        return np.array(vectors, dtype=np.float32).reshape(-1, width)

    def _vector(self, clip: Mapping[str, Any]) -> Float32Array:
        samples, rate = np.atleast_2d(np.asarray(clip["array"], dtype=np.float32)), int(clip["sampling_rate"])
        n_needed = int(np.ceil(_SHORTEST_S * rate))
        if samples.shape[1] < n_needed:
            samples = np.stack([np.resize(channel, n_needed) for channel in samples])
        file = io.BytesIO()  # a file of these very samples, so that they are mixed and resampled like those of songs
        soundfile.write(file, samples.T, rate, format="WAV", subtype="FLOAT")
        return read_example(self._snapshot, file.getvalue(), "clip").vector

    def similarity(self, embeddings1: npt.ArrayLike, embeddings2: npt.ArrayLike) -> Any:
        """Return the negative distances of all pairs."""
        _check_installed()
        from mteb.similarity_functions import euclidean_sim

        return euclidean_sim(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: npt.ArrayLike, embeddings2: npt.ArrayLike) -> Any:
        """Return the negative distances between rows at the same place."""
        _check_installed()
        from mteb.similarity_functions import pairwise_euclidean_sim

        return pairwise_euclidean_sim(embeddings1, embeddings2)


def _check_installed() -> None:
    try:
        import mteb  # noqa: F401
    except ImportError as error:
        raise LibraryError(f"experiments.maeb needs mteb ({error}). Run: pip install 'mteb[audio]'") from error


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.maeb", description=__doc__.splitlines()[0])
    parser.add_argument("library", type=Path, help="a library of music that the tasks do not contain")
    parser.add_argument("tasks", nargs="+", metavar="TASK", help="a task of mteb, such as GTZANGenre")
    parser.add_argument("--model", default="Sound", help="the name of a model of the library (Sound)")
    given = parser.parse_args()
    _check_installed()
    import mteb

    with closing(LibraryEncoder(given.library, given.model)) as encoder:
        for result in mteb.evaluate(encoder, mteb.get_tasks(tasks=given.tasks)).task_results:
            print(f"{result.task_name}: {result.get_score():.4f}")


if __name__ == "__main__":
    main()
