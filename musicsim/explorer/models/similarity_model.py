"""The one way from a song to a vector: features -> map -> principal axes -> learned metric.

Features are what is kept of each song: a histogram of codewords, or what else a representation compares
(:mod:`musicsim.explorer.models.encoders`). Everything after them is arithmetic on rows.
"""

import copy
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from musicsim import __version__
from musicsim._arrays import Float32Array, Float64Array, FloatingArray
from musicsim.audio import FEATURE_VERSION, MIN_FEATURE_VERSION
from musicsim.errors import FeatureVersionError, ModelError
from musicsim.explorer.models.arrays import MissingRepresentationError, read_arrays
from musicsim.explorer.models.encoders import Encoder, Frames
from musicsim.explorer.models.joint_space import column_scales
from musicsim.explorer.models.local_metrics import LocalMetrics
from musicsim.explorer.models.representations import Representation, representations
from musicsim.explorer.models.schema import AboutModel, Versions, read_json_file
from musicsim.library.disk.arrays import atomic_folder

T = TypeVar("T")

FORMAT_VERSION = 2
# Below this many songs their principal axes say more about the sample than about music: the whole
# space is kept.
_MIN_SONGS_FOR_PCA = 50
# Mean squared distance of two songs is twice this: what root histograms of music come to.
_USUAL_SPREAD = 0.5
_REFIT = "Fit it again from the Library page."


class SimilarityModel:
    """Turns songs into vectors whose Euclidean distance is dissimilarity.

    Parameters
    ----------
    representation : str, default "ppk"
        One of :func:`musicsim.explorer.models.representations.representations`.
    n_codewords : int, default 1024
        At most; fewer for a small collection (:func:`musicsim.codebook.suggest_n_codewords`).
    tau : int, default 4
        Codewords each frame is shared among.
    variance : float in (0, 1], default 0.95
        Share of the variance of the songs that PCA keeps.
    random_state : int or None
        Seeds the order in which frames reach the codebook, and what else is drawn.

    Attributes
    ----------
    encoder_ : Encoder
        Turns frames, or what else is known of songs, into features.
    mean_ : float64 ndarray of shape (n_mapped,)
        Mean of the mapped features.
    axes_ : float64 ndarray of shape (n_axes, n_mapped)
        Principal axes, orthogonal rows of one length (the identity below 50 songs), or what the representation has
        in their place.
    metric_ : float64 ndarray of shape (r, n_axes) or None
        L of a learned metric, None before learning.
    local_ : LocalMetrics or None
        Metrics on the vectors, one for each region of songs, whose mean is plain distance; None for most models.
    n_songs_ : int
        Songs the principal axes were taken from.

    Notes
    -----
    Thesis 5.3: online Hartigan k-means, top-tau histograms (5.5), the probability product kernel's map
    (5.7). A square-root histogram is a unit vector, so ``1 - d^2 / 2`` is the kernel between two songs,
    up to the variance PCA leaves out. Other representations and learned metrics are scaled to distances that
    read alike. Memory: 4 kB a song while PCA is fitted (400 MB for 100 000).
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
            raise ValueError(f"representation={representation!r} should be one of {', '.join(representations())}.")
        self.representation, self.n_codewords, self.tau = representation, n_codewords, tau
        self.variance, self.random_state = variance, random_state
        self.metric_: Float64Array | None = None
        self.local_: LocalMetrics | None = None

    @property
    def kind(self) -> Representation:
        """What the model compares."""
        return representations()[self.representation]

    # --- fitting ------------------------------------------------------------------------------

    def use_encoder(self, encoder: Encoder) -> "SimilarityModel":
        """Take a fitted encoder of the kind that the representation needs."""
        self.encoder_ = encoder
        return self

    def fit_space(self, features: Float32Array, within: Sequence[Float64Array] | None = None) -> "SimilarityModel":
        """Learn the map's weights and the axes from the features of songs, float32 (n_songs, n_features).

        `within` says how parts of songs vary about their songs, for representations whose axes take it into account:
        a covariance for each kind of columns.
        """
        self.n_songs_ = len(features)
        self.weights_ = None if self.kind.weights is None else self.kind.weights.fit(features)
        mapped = self.mapped(features)
        width = mapped.shape[1]
        if self.kind.fit_axes is not None:
            self.mean_, self.axes_ = self.kind.fit_axes(mapped, within, self.variance)
            return self
        if blocks := self.encoder_.blocks:
            # principal axes would mix the sources, whose weights are to be shown
            self.mean_ = mapped.mean(axis=0, dtype=np.float64)
            self.axes_ = np.diag(column_scales(features, blocks))
            spread = float(np.var(mapped @ self.axes_, axis=0, dtype=np.float64).sum())
            self.axes_ *= np.sqrt(_USUAL_SPREAD / spread) if spread > 0 else 1.0
            return self
        if self.n_songs_ < _MIN_SONGS_FOR_PCA:
            self.mean_, self.axes_ = np.zeros(width), np.eye(width)
        else:
            from sklearn.decomposition import PCA

            pca = PCA(n_components=self.variance if self.variance < 1 else None, svd_solver="full").fit(
                mapped.astype(np.float64, copy=False)
            )
            self.mean_, self.axes_ = pca.mean_, pca.components_
        spread = float(np.var(mapped, axis=0, dtype=np.float64).sum())
        if not self.kind.is_unit and spread > 0:
            self.axes_ = self.axes_ * np.sqrt(_USUAL_SPREAD / spread)
        return self

    def with_local(self, local: LocalMetrics) -> "SimilarityModel":
        """The same model with metrics of its own for each region of its vectors."""
        model = copy.copy(self)
        model.local_ = local
        return model

    def with_metric(self, L: Float64Array, vectors: FloatingArray) -> "SimilarityModel":
        """The same model with a learned metric on its vectors, after the one it has, if any.

        The metric is L^T L, L of shape (r, n_dimensions). Distances are scaled so that those of `vectors` (n_songs,
        n_dimensions) keep their mean square, since the scale of a learned metric says nothing about similarity.

        Raises ModelError if the metric is 0.
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

    def untrained(self) -> "SimilarityModel":
        """The same model before all learning."""
        plain = copy.copy(self)
        plain.metric_, plain.local_ = None, None
        return plain

    # --- use ----------------------------------------------------------------------------------

    @property
    def components_(self) -> Float64Array:
        """Float64 (n_dimensions, n_mapped): from mapped features, less their mean, to vectors."""
        return self.axes_ if self.metric_ is None else self.metric_ @ self.axes_

    @property
    def n_dimensions(self) -> int:
        """Columns of a vector."""
        return len(self.axes_ if self.metric_ is None else self.metric_)

    @property
    def n_features(self) -> int:
        """Columns of the features."""
        return self.encoder_.n_features

    def features(self, list_of_frames: Iterable[Frames]) -> Float32Array:
        """Features of songs by their sound, float32 (n_songs, n_features).

        Frames of a song as :data:`musicsim.explorer.models.encoders.Frames` has them. Of several models together,
        those columns that are heard; the others are NaN.

        Raises ModelError if the representation does not use audio.
        """
        if not self.encoder_.uses_audio:
            raise ModelError(
                f"the model in use compares {self.kind.description}, which is not available for uploaded sound. "
                f"Switch to another model."
            )
        return self.encoder_.encode_frames(list_of_frames)

    def mapped(self, features: Float32Array) -> Float32Array:
        """Features as their distances are taken, float32 (n_songs, n_mapped); for histograms their root."""
        return self.kind.map(features, self.weights_)

    def vectors(self, features: Float32Array) -> Float32Array:
        """Vectors of features, float32 (n_songs, n_dimensions)."""
        return ((self.mapped(features) - self.mean_) @ self.components_.T).astype(np.float32)

    def transform(self, list_of_frames: Iterable[Frames]) -> Float32Array:
        """Vectors of songs given by their raw frames; see :meth:`features`."""
        return self.vectors(self.features(list_of_frames))

    # --- storage ------------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Write the model as ``model.json`` and ``model.npz`` into `folder`, whole or not at all.

        Raises ModelError if the folder holds something already.
        """
        folder = Path(folder)
        if folder.exists():
            raise ModelError(f"{folder}: something is here already. Save the model under another name.")
        with atomic_folder(folder) as written:
            np.savez(written / "model.npz", **self.arrays())
            (written / "model.json").write_text(self.about().model_dump_json(indent=2), encoding="utf-8")

    def arrays(self) -> dict[str, Any]:
        """What is learned, for an archive without pickle."""
        arrays = {"mean": self.mean_, "components": self.axes_}
        if self.weights_ is not None:
            arrays["weights"] = self.weights_
        if self.metric_ is not None:
            arrays["metric"] = self.metric_
        if self.local_ is not None:
            arrays |= self.local_.arrays()
        return arrays | self.encoder_.arrays()

    def about(self) -> AboutModel:
        """What else it takes to make it again."""
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
        """Read a model that :meth:`save` wrote, or that somebody says it wrote.

        `called` is what messages call it, the folder by default, and `remedy` what they say is to be done.

        Raises ModelError if there is no readable model; FeatureVersionError if its features or its format are not
        those of this program.
        """
        return _read(Path(folder), called or str(folder), remedy, cls.from_arrays)

    @staticmethod
    def load_local(folder: str | Path) -> LocalMetrics | None:
        """The metrics by region of a model that :meth:`save` wrote; None where it has none. Raises as :meth:`load`.

        A search asks for no more of a model. What makes features of sound takes longer to import than the search.
        """
        return _read(Path(folder), str(folder), _REFIT, lambda _, arrays: LocalMetrics.from_arrays(arrays))

    @classmethod
    def from_arrays(cls, about: AboutModel, arrays: dict[str, npt.NDArray[Any]]) -> "SimilarityModel":
        """The model that :meth:`about` and :meth:`arrays` took apart; :func:`read_arrays` has compared them."""
        settings = (about.n_codewords, about.tau, about.variance, about.random_state)
        model = cls(about.representation, *settings)
        model.n_songs_ = about.n_songs
        model.mean_, model.axes_ = arrays["mean"], arrays["components"]
        model.weights_, model.metric_ = arrays.get("weights"), arrays.get("metric")
        model.local_ = LocalMetrics.from_arrays(arrays)
        return model.use_encoder(model.kind.encoder.from_arrays(arrays, about, cls.from_arrays))


def _read(folder: Path, called: str, remedy: str, make: Callable[[AboutModel, dict[str, npt.NDArray[Any]]], T]) -> T:
    """What is made of the description and the arrays of a stored model; raises as :meth:`SimilarityModel.load`."""
    try:
        versions = read_json_file(Versions, folder / "model.json")
        known = range(MIN_FEATURE_VERSION, FEATURE_VERSION + 1)
        if versions.format_version != FORMAT_VERSION or versions.feature_version not in known:
            raise FeatureVersionError(
                f"{called}: this model has format {versions.format_version} and features "
                f"{versions.feature_version}; this program has {FORMAT_VERSION} and {FEATURE_VERSION}. {remedy}"
            )
        about = read_json_file(AboutModel, folder / "model.json")
        return make(about, read_arrays(folder / "model.npz", about))
    except MissingRepresentationError as error:
        raise ModelError(f"{called}: {error}") from error
    except (OSError, ValueError) as error:
        raise ModelError(f"{called}: no similarity model can be read here ({error}). {remedy}") from error
