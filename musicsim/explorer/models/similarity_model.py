"""Similarity models: features -> map -> principal axes -> learned metric -> vector."""

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from musicsim import __version__, metric
from musicsim._arrays import Float32Array, Float64Array, FloatingArray
from musicsim.audio import FEATURE_VERSION, MIN_FEATURE_VERSION
from musicsim.errors import FeatureVersionError, ModelError
from musicsim.explorer.models.arrays import read_arrays
from musicsim.explorer.models.encoders import Encoder, Frames
from musicsim.explorer.models.joint_space import column_scales
from musicsim.explorer.models.representations import USUAL_SPREAD, Representation, representations
from musicsim.explorer.models.schema import AboutModel, Versions, read_json_file
from musicsim.library import atomic_folder

T = TypeVar("T")

FORMAT_VERSION = 2
_MIN_SONGS_FOR_PCA = 50  # with fewer songs, principal axes would describe the sample rather than music
_TINY = 1e-12  # minimum length of a vector that is scaled to another length
_REFIT = "Refit it on the Library page."


@dataclass(frozen=True, slots=True)
class ModelMetrics:
    """Metrics on the vectors of a model; their mean over songs is plain distance (SIGIR 2017, 4.4)."""

    anchors: Float64Array  # (m, d): the center of each region
    metrics: Float64Array  # (m, d, d)
    decay: float  # the weight of metric r at x falls as `exp(-decay (x - p_r)^T M_r (x - p_r))` (equation 11)

    @classmethod
    def from_fit(cls, learned: "metric.LGMMLByExample", components: Float64Array) -> "ModelMetrics":
        """Convert a fit on vectors x to the vectors ``components @ x``.

        `components` (d, d) is invertible, and ``components.T @ components`` is proportional to the fit's mean metric.
        """
        back = np.linalg.inv(components)
        metrics = np.einsum("ji,rjk,kl->ril", back, learned.metrics_, back, optimize=True)
        # scale the metrics so that their mean is the identity
        unit = float(np.trace(back.T @ learned.mean_metric_ @ back)) / len(back)
        return cls(learned.anchors_ @ components.T, metrics / unit, 0.5 * float(learned.rho) * unit)

    def weights_at(self, x: FloatingArray) -> Float64Array:
        """Return the weight of each metric at a point, (m,); weights sum to 1."""
        offsets = np.asarray(x, dtype=np.float64) - self.anchors
        squared = np.einsum("ri,rij,rj->r", offsets, self.metrics, offsets, optimize=True)
        weights: Float64Array = np.exp(-self.decay * (squared - squared.min()))
        return weights / weights.sum()

    def arrays(self) -> dict[str, Any]:
        """The arrays that :meth:`from_arrays` takes."""
        return {"local_anchors": self.anchors, "local_metrics": self.metrics, "local_decay": np.float64(self.decay)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> "ModelMetrics | None":
        """Restore from :meth:`arrays`; None if they contain no local metrics."""
        if "local_anchors" not in arrays:
            return None
        return cls(arrays["local_anchors"], arrays["local_metrics"], float(arrays["local_decay"]))


class SimilarityModel:
    """Turns songs into vectors whose Euclidean distance is dissimilarity.

    `representation` is one of :func:`musicsim.explorer.models.representations.representations`. There are at most
    `n_codewords` codewords, fewer for a small library (:func:`musicsim.codebook.suggest_n_codewords`). Each frame
    counts toward `tau` codewords. PCA keeps the share `variance` of the songs' variance. The seed `random_state`
    determines the order of frames for the codebook, and other samples.

    `encoder_` computes features from frames or other data. `mean_` (n_mapped,) is the mean of the mapped features.
    `axes_` (n_axes, n_mapped) are the axes that the representation fits, or principal axes: orthogonal rows of equal
    length. With fewer than 50 songs, they are the identity. `lengths_` (n_groups,) are the lengths of vectors in the
    representation's unit groups; None without such groups, and for models of older feature versions. `metric_` (r,
    n_axes) is L of a learned metric. `local_` has one metric per region of songs. Both are None for most models.
    `n_songs_` songs were used to fit the axes.

    The default representation follows thesis 5.3: online Hartigan k-means, top-tau histograms (5.5), and the map of the
    probability product kernel (5.7). A square-root histogram is a unit vector, so ``1 - d^2 / 2`` is the kernel of two
    songs, except for the variance that PCA omits. Other representations and learned metrics are scaled to similar
    distances. Memory: 4 kB per song while PCA is fitted (400 MB for 100,000 songs).
    """

    def __init__(
        self,
        representation: str = "ppk",
        n_codewords: int = 1024,
        tau: int = 4,
        variance: float = 0.95,
        random_state: int | None = None,
    ) -> None:
        if representation not in representations():
            raise ValueError(f"representation={representation!r} must be one of {', '.join(representations())}.")
        self.representation, self.n_codewords, self.tau = representation, n_codewords, tau
        self.variance, self.random_state = variance, random_state
        self.lengths_: Float64Array | None = None
        self.metric_: Float64Array | None = None
        self.local_: ModelMetrics | None = None

    @property
    def kind(self) -> Representation:
        """The registered representation."""
        return representations()[self.representation]

    def use_encoder(self, encoder: Encoder) -> "SimilarityModel":
        """Set the fitted encoder, which must have the type of the representation's encoder."""
        self.encoder_ = encoder
        return self

    def fit_space(self, features: Float32Array, within: Sequence[Float64Array] | None = None) -> "SimilarityModel":
        """Fit the map's weights and the axes to features, float32 (n_songs, n_features).

        `within` are covariances of song parts within songs, one per group of columns, if the representation uses them.
        """
        self.n_songs_ = len(features)
        self.weights_ = None if self.kind.weights is None else self.kind.weights.fit(features)
        mapped = self.kind.map(features, self.weights_)
        width = mapped.shape[1]
        if self.kind.fit_axes is not None:
            self.mean_, self.axes_ = self.kind.fit_axes(mapped, within, self.variance)
            if groups := self.kind.unit_groups:
                # with their root mean squares, groups keep their shares of the squared distance
                lengths = (self._lengths_in(group, mapped) for group in groups)
                self.lengths_ = np.array([np.sqrt(np.mean(of_songs**2)) for of_songs in lengths])
            return self
        if blocks := self.encoder_.blocks:
            # principal axes would mix the joined models, but the pages show the weight of each model
            self.mean_ = mapped.mean(axis=0, dtype=np.float64)
            self.axes_ = np.diag(column_scales(features, blocks))
            spread = float(np.var(mapped @ self.axes_, axis=0, dtype=np.float64).sum())
            self.axes_ *= np.sqrt(USUAL_SPREAD / spread) if spread > 0 else 1.0
            return self
        if self.n_songs_ < _MIN_SONGS_FOR_PCA:
            self.mean_, self.axes_ = np.zeros(width), np.eye(width)
        else:
            from sklearn.decomposition import PCA

            pca = PCA(n_components=self.variance if self.variance < 1 else None, svd_solver="full")
            pca.fit(mapped.astype(np.float64, copy=False))
            self.mean_, self.axes_ = pca.mean_, pca.components_
        spread = float(np.var(mapped, axis=0, dtype=np.float64).sum())
        if not self.kind.is_unit and spread > 0:
            self.axes_ = self.axes_ * np.sqrt(USUAL_SPREAD / spread)
        return self

    def add_metric(self, L: Float64Array, vectors: FloatingArray) -> "SimilarityModel":
        """Return a copy with a learned metric L^T L on the vectors, L (r, n_dimensions), applied after the current one.

        The metric is scaled so that `vectors` (n_songs, n_dimensions) keep their mean squared distance, because the
        scale of a learned metric is arbitrary. Raises ModelError if the metric is 0.
        """
        before = float(np.var(vectors, axis=0, dtype=np.float64).sum())
        after = float(np.var(vectors @ L.T, axis=0, dtype=np.float64).sum())
        if not after > 0:
            raise ModelError("nothing was learned: the metric is 0, so all songs would be the same. Choose a larger C.")
        learned = copy.copy(self)
        learned.local_ = None
        scaled = np.asarray(L, dtype=np.float64) * np.sqrt(before / after)
        learned.metric_ = scaled if self.metric_ is None else scaled @ self.metric_
        return learned

    def remove_metric(self) -> "SimilarityModel":
        """Return a copy without a learned metric."""
        plain = copy.copy(self)
        plain.metric_, plain.local_ = None, None
        return plain

    @property
    def components_(self) -> Float64Array:
        """The linear map from centered mapped features to vectors, float64 (n_dimensions, n_mapped)."""
        return self.axes_ if self.metric_ is None else self.metric_ @ self.axes_

    @property
    def n_dimensions(self) -> int:
        """Number of dimensions of a vector."""
        return len(self.axes_ if self.metric_ is None else self.metric_)

    @property
    def n_features(self) -> int:
        """Number of columns of the features."""
        return self.encoder_.n_features

    def features(self, list_of_frames: Iterable[Frames]) -> Float32Array:
        """Compute features from frames, float32 (n_songs, n_features).

        In a combined model, features that do not use audio are NaN. Raises ModelError if no feature uses audio.
        """
        if not self.encoder_.uses_audio:
            raise ModelError(
                f"the model in use compares {self.kind.description}, which is not available for uploaded sound. "
                f"Switch to another model."
            )
        return self.encoder_.encode_frames(list_of_frames)

    def map_features(self, features: Float32Array) -> Float32Array:
        """Map features to the space of distances, float32 (n_songs, n_mapped), such as square roots of histograms.

        In unit groups, the deviations from the mean are scaled so that all songs have vectors of the same length.
        """
        mapped = self.kind.map(features, self.weights_)
        if self.lengths_ is None:
            return mapped
        scaled = np.array(mapped, dtype=np.float32)
        for group, length in zip(self.kind.unit_groups, self.lengths_.tolist(), strict=True):
            factors = length / np.maximum(self._lengths_in(group, mapped), _TINY)
            scaled[:, group] = self.mean_[group] + (mapped[:, group] - self.mean_[group]) * factors[:, None]
        return scaled

    def _lengths_in(self, group: slice, mapped: Float32Array) -> Float64Array:
        """Return the lengths of the songs' unscaled vectors in a group of mapped features, (n_songs,)."""
        axes = self.axes_[:, group]
        vectors = (mapped[:, group] - self.mean_[group]) @ axes[axes.any(axis=1)].T
        return np.asarray(np.linalg.norm(vectors, axis=1), dtype=np.float64)

    def vectors(self, features: Float32Array) -> Float32Array:
        """Compute vectors from features, float32 (n_songs, n_dimensions)."""
        return ((self.map_features(features) - self.mean_) @ self.components_.T).astype(np.float32)

    def transform(self, list_of_frames: Iterable[Frames]) -> Float32Array:
        """Compute vectors from frames; see :meth:`features`."""
        return self.vectors(self.features(list_of_frames))

    def save(self, folder: str | Path) -> None:
        """Write ``model.json`` and ``model.npz`` into a new folder, atomically; raises ModelError if it exists."""
        folder = Path(folder)
        if folder.exists():
            raise ModelError(f"{folder} already exists. Save the model under another name.")
        with atomic_folder(folder) as temporary:
            np.savez(temporary / "model.npz", **self.arrays())
            (temporary / "model.json").write_text(self.describe().model_dump_json(indent=2), encoding="utf-8")

    def arrays(self) -> dict[str, Any]:
        """The fitted arrays, without objects that need pickle."""
        arrays = {"mean": self.mean_, "components": self.axes_}
        if self.weights_ is not None:
            arrays["weights"] = self.weights_
        if self.lengths_ is not None:
            arrays["lengths"] = self.lengths_
        if self.metric_ is not None:
            arrays["metric"] = self.metric_
        if self.local_ is not None:
            arrays |= self.local_.arrays()
        return arrays | self.encoder_.arrays()

    def describe(self) -> AboutModel:
        """The parameters and versions, which together with :meth:`arrays` restore the model."""
        return AboutModel(
            format_version=FORMAT_VERSION,
            feature_version=FEATURE_VERSION,
            musicsim=__version__,
            representation=self.representation,
            n_codewords=self.n_codewords,
            tau=self.tau,
            variance=self.variance,
            random_state=self.random_state,
            n_songs=self.n_songs_,
        )

    @classmethod
    def load(cls, folder: str | Path, *, called: str = "", remedy: str = _REFIT) -> "SimilarityModel":
        """Read a model that :meth:`save` wrote; the files may be untrusted.

        Error messages begin with `called`, the folder by default, and end with `remedy`. Raises ModelError if no model
        can be read, and FeatureVersionError if its features or format are from a different version of musicsim.
        """
        return _read(Path(folder), called or str(folder), remedy, cls.from_arrays)

    @staticmethod
    def load_local(folder: str | Path) -> ModelMetrics | None:
        """Read only the local metrics of a saved model, or None; faster than :meth:`load`, with the same errors."""
        return _read(Path(folder), str(folder), _REFIT, lambda _, arrays: ModelMetrics.from_arrays(arrays))

    @classmethod
    def from_arrays(cls, about: AboutModel, arrays: dict[str, npt.NDArray[Any]]) -> "SimilarityModel":
        """Restore a model from the results of :meth:`describe` and :meth:`arrays`, after validation."""
        model = cls(about.representation, about.n_codewords, about.tau, about.variance, about.random_state)
        model.n_songs_ = about.n_songs
        model.mean_, model.axes_ = arrays["mean"], arrays["components"]
        model.weights_, model.lengths_, model.metric_ = (arrays.get(name) for name in ("weights", "lengths", "metric"))
        model.local_ = ModelMetrics.from_arrays(arrays)
        return model.use_encoder(model.kind.encoder.from_arrays(arrays, about, cls.from_arrays))


def _read(folder: Path, called: str, remedy: str, make: Callable[[AboutModel, dict[str, npt.NDArray[Any]]], T]) -> T:
    """Read a stored model and pass its description and arrays to `make`; raise the same errors as ``load``."""
    try:
        versions = read_json_file(Versions, folder / "model.json")
        is_supported = MIN_FEATURE_VERSION <= versions.feature_version <= FEATURE_VERSION
        if versions.format_version != FORMAT_VERSION or not is_supported:
            raise FeatureVersionError(
                f"{called}: this model has format {versions.format_version} and feature version "
                f"{versions.feature_version}; this program needs {FORMAT_VERSION} and {FEATURE_VERSION}. {remedy}"
            )
        about = read_json_file(AboutModel, folder / "model.json")
        return make(about, read_arrays(folder / "model.npz", about))
    except ModelError as error:
        raise ModelError(f"{called}: {error}") from error
    except (OSError, ValueError) as error:
        raise ModelError(f"{called}: no similarity model can be read ({error}). {remedy}") from error
