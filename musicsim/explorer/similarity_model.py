"""The one way from audio to a vector: frames -> codewords -> histogram -> PPK -> PCA -> later a metric."""

import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from musicsim.audio import FEATURE_VERSION
from musicsim.codebook import Codebook, suggest_n_codewords
from musicsim.errors import FeatureVersionError, ModelError
from musicsim.kernels import ppk_map

__all__ = ["FORMAT_VERSION", "SimilarityModel"]

FORMAT_VERSION = 1
# Below this many songs their principal axes say more about the sample than about music: the whole
# space is kept.
_FEWEST_SONGS_FOR_PCA = 50


class SimilarityModel:
    """Turns delta-MFCC frames of songs into vectors whose Euclidean distance is dissimilarity.

    Parameters
    ----------
    n_codewords : int, default 1024
        At most; fewer for a small collection (:func:`musicsim.codebook.suggest_n_codewords`).
    tau : int, default 4
        Codewords each frame is shared among.
    variance : float in (0, 1], default 0.95
        Share of the variance of the songs that PCA keeps.
    random_state : int or None
        Seeds the order in which frames reach the codebook.

    Attributes
    ----------
    codebook_ : Codebook
    mean_ : float64 ndarray of shape (n_codewords,)
        Mean of the square-root histograms.
    components_ : float64 ndarray of shape (n_dimensions, n_codewords)
        Principal axes, orthonormal rows (the identity below 50 songs).
    n_songs_ : int
        Songs the principal axes were taken from.

    Notes
    -----
    Thesis 5.3: online Hartigan k-means, top-tau histograms (5.5), the probability product kernel's map
    (5.7). A square-root histogram is a unit vector, so ``1 - d^2 / 2`` is the kernel between two songs,
    up to the variance PCA leaves out. Memory: 4 kB a song while PCA is fitted (400 MB for 100 000).
    """

    def __init__(
        self,
        n_codewords: int = 1024,
        tau: int = 4,
        variance: float = 0.95,
        random_state: int | None = None,
    ) -> None:
        self.n_codewords, self.tau = n_codewords, tau
        self.variance, self.random_state = variance, random_state

    # --- fitting ------------------------------------------------------------------------------

    def fit_codebook(self, frames: npt.NDArray[np.float32]) -> "SimilarityModel":
        """Learn the codewords from frames sampled evenly over the songs, float32 (n_frames, 39).

        Raises
        ------
        ModelError
            If there are fewer frames than `tau`.
        """
        if len(frames) < self.tau:
            raise ModelError(
                f"{len(frames)} frames are too few for a codebook with tau={self.tau}. Add a longer song."
            )
        n_codewords = max(self.tau, suggest_n_codewords(len(frames), maximum=self.n_codewords))
        self.codebook_ = Codebook(n_codewords, tau=self.tau, random_state=self.random_state).fit(frames)
        return self

    def fit_space(self, histograms: npt.NDArray[np.float32]) -> "SimilarityModel":
        """Learn the principal axes from the histograms of songs, float32 (n_songs, n_codewords)."""
        self.n_songs_, width = histograms.shape
        if self.n_songs_ < _FEWEST_SONGS_FOR_PCA:
            self.mean_, self.components_ = np.zeros(width), np.eye(width)
            return self
        from sklearn.decomposition import PCA

        pca = PCA(n_components=self.variance if self.variance < 1 else None, svd_solver="full").fit(
            ppk_map(histograms).astype(np.float64, copy=False)
        )
        self.mean_, self.components_ = pca.mean_, pca.components_
        return self

    # --- use ----------------------------------------------------------------------------------

    @property
    def n_dimensions(self) -> int:
        """Columns of a vector."""
        return len(self.components_)

    def histograms(
        self, list_of_frames: Iterable[npt.NDArray[np.float32] | Iterator[npt.NDArray[np.float32]]]
    ) -> npt.NDArray[np.float32]:
        """Codeword histograms of songs, float32 (n_songs, n_codewords), rows sum to 1.

        Frames of a song are one array, or an iterator of arrays where the song is long.
        """
        return self.codebook_.transform(list_of_frames)

    def vectors(self, histograms: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Vectors of histograms, float32 (n_songs, n_dimensions)."""
        return ((ppk_map(histograms) - self.mean_) @ self.components_.T).astype(np.float32)

    def transform(
        self, list_of_frames: Iterable[npt.NDArray[np.float32] | Iterator[npt.NDArray[np.float32]]]
    ) -> npt.NDArray[np.float32]:
        """Vectors of songs given by their raw frames (n_frames, 39); see :meth:`histograms`."""
        return self.vectors(self.histograms(list_of_frames))

    # --- storage ------------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Write the model as ``model.json`` and ``model.npz`` into `folder`, whole or not at all.

        Raises
        ------
        ModelError
            If the folder holds something already.
        """
        folder = Path(folder)
        if folder.exists():
            raise ModelError(f"{folder}: something is here already. Save the model under another name.")
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
        try:
            book = self.codebook_
            np.savez(
                temporary / "model.npz",
                codewords=book.codewords_,
                frame_mean=book.mean_,
                frame_scale=book.scale_,
                counts=book.counts_,
                mean=self.mean_,
                components=self.components_,
            )
            (temporary / "model.json").write_text(json.dumps(self._description(), indent=2), encoding="utf-8")
            temporary.replace(folder)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def _description(self) -> dict[str, Any]:
        from musicsim import __version__

        return {
            "format_version": FORMAT_VERSION,
            "feature_version": FEATURE_VERSION,
            "musicsim": __version__,
            "n_codewords": self.n_codewords,
            "tau": self.tau,
            "variance": self.variance,
            "random_state": self.random_state,
            "n_songs": self.n_songs_,
        }

    @classmethod
    def load(cls, folder: str | Path) -> "SimilarityModel":
        """Read a model that :meth:`save` wrote.

        Raises
        ------
        ModelError
            If there is no readable model.
        FeatureVersionError
            If its features or its format are not those of this program.
        """
        folder = Path(folder)
        try:
            about = json.loads((folder / "model.json").read_text(encoding="utf-8"))
            with np.load(folder / "model.npz", allow_pickle=False) as stored:
                arrays = dict(stored)
            versions = about["format_version"], about["feature_version"]
            model = cls(about["n_codewords"], about["tau"], about["variance"], about["random_state"])
            model.n_songs_, model.mean_, model.components_ = (
                about["n_songs"],
                arrays["mean"],
                arrays["components"],
            )
            book = Codebook(len(arrays["codewords"]), tau=model.tau, random_state=model.random_state)
            book.codewords_, book.counts_ = arrays["codewords"], arrays["counts"]
            book.mean_, book.scale_ = arrays["frame_mean"], arrays["frame_scale"]
            book.n_features_in_ = book.codewords_.shape[1]
            model.codebook_ = book
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise ModelError(
                f"{folder}: no similarity model can be read here ({error}). Fit it again from the Library page."
            ) from error
        if versions != (FORMAT_VERSION, FEATURE_VERSION):
            raise FeatureVersionError(
                f"{folder}: this model has format {versions[0]} and features {versions[1]}; this program has "
                f"{FORMAT_VERSION} and {FEATURE_VERSION}. Fit it again from the Library page."
            )
        return model
