"""Several models side by side as one space: their vectors joined, a block a source, all of the same spread.

The feature space of a kernel that has an explicit map is that of its vectors, so that the sum of kernels is the inner
product of joined vectors, and a metric with a block a kernel one of block form on them
(:mod:`musicsim.explorer.learning.multi_kernel`).

A song may lack a source: nobody has tagged it, or it is sound from outside. What is missing is foreseen linearly
from what is known, as if all vectors were drawn from one normal distribution; from the mean alone it would be near to
every other song that lacks the same.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from musicsim.errors import ModelError
from musicsim.explorer.models.schema import AboutSources, read_json

if TYPE_CHECKING:  # which is made of representations, and they of this
    from musicsim.explorer.models.similarity_model import SimilarityModel

__all__ = ["Sources", "column_scales", "fill", "statistics"]

_RIDGE = 1e-6  # of the mean variance: columns that repeat others have a solution, too

Floats = npt.NDArray[np.float32]
Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Sources:
    """A front that joins the vectors of models; whole by itself, so that it outlives them and can be sent.

    Attributes
    ----------
    names : tuple of str
        What the models were called.
    model_ids : tuple of str
        Which models of its library they were: as long as they are there, they are not asked for a song twice.
    parts : tuple of SimilarityModel
    """

    names: tuple[str, ...]
    model_ids: tuple[str, ...]
    parts: "tuple[SimilarityModel, ...]"

    @property
    def blocks(self) -> list[slice]:
        """The columns of each source."""
        ends = np.cumsum([part.n_dimensions for part in self.parts]).tolist()
        return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]

    @property
    def n_dimensions(self) -> int:
        """Columns of all of them."""
        return sum(part.n_dimensions for part in self.parts)

    def features_of_sound(
        self, list_of_frames: Iterable[npt.NDArray[np.float32] | Iterator[npt.NDArray[np.float32]]]
    ) -> Floats:
        """Joined vectors of songs by their frames, float32 (n_songs, n_dimensions); NaN for what is not heard.

        Raises
        ------
        ModelError
            If no source listens.
        """
        if not any(part.listens for part in self.parts):
            raise ModelError(
                f"none of {', '.join(self.names)} is available for uploaded sound. Switch to another model."
            )
        rows = []
        for frames in list_of_frames:
            # each source reads them from the start: 8 MB for ten minutes
            kept = [frames] if isinstance(frames, np.ndarray) else list(frames)
            rows.append(
                np.concatenate(
                    [
                        part.transform([iter(kept)])[0]
                        if part.listens
                        else np.full(part.n_dimensions, np.nan)
                        for part in self.parts
                    ]
                )
            )
        return np.array(rows, dtype=np.float32).reshape(len(rows), self.n_dimensions)

    # --- storage ------------------------------------------------------------------------------

    def arrays(self) -> Arrays:
        """What it is made of, for an archive without pickle."""
        about = AboutSources(
            names=list(self.names),
            model_ids=list(self.model_ids),
            parts=[part.about() for part in self.parts],
        )
        return {"about": np.array(about.model_dump_json())} | {
            f"{i}_{name}": array for i, part in enumerate(self.parts) for name, array in part.arrays().items()
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> "Sources":
        """What :meth:`arrays` took apart."""
        from musicsim.explorer.models.similarity_model import SimilarityModel

        about = read_json(AboutSources, str(arrays["about"]))
        parts = []
        for i, described in enumerate(about.parts):
            start = f"{i}_"
            own = {name.removeprefix(start): a for name, a in arrays.items() if name.startswith(start)}
            parts.append(SimilarityModel.from_arrays(described, own))
        return cls(tuple(about.names), tuple(about.model_ids), tuple(parts))


def statistics(features: Floats) -> npt.NDArray[np.float64]:
    """What it takes to foresee a source from the others: float64 (1 + d, d), the mean above the covariance.

    Notes
    -----
    The covariance is that of songs that have all sources, shrunk towards a multiple of the identity as far as its own
    error asks for (Ledoit and Wolf, Journal of Multivariate Analysis 2004); of less than two such songs sources are
    taken as independent. Memory: 8 d^2 bytes.
    """
    X = np.asarray(features, dtype=np.float64)
    known = np.isfinite(X)
    counts = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, X, 0.0).sum(axis=0) / counts
    whole = X[known.all(axis=1)]
    if len(whole) > 1:
        from sklearn.covariance import ledoit_wolf

        covariance, _ = ledoit_wolf(whole)
    else:
        covariance = np.diag(np.where(known, (X - mean) ** 2, 0.0).sum(axis=0) / counts)
    return np.vstack([mean, covariance])


def fill(features: Floats, weights: npt.NDArray[np.float64] | None) -> Floats:
    """Foresee what songs lack: the conditional mean of a normal distribution.

    Parameters
    ----------
    features : float32 ndarray of shape (n_songs, d)
        NaN where a song lacks a source.
    weights : float64 ndarray of shape (1 + d, d)
        Of :func:`statistics`.
    """
    assert weights is not None
    missing = np.isnan(features)
    if not missing.any():
        return np.asarray(features, dtype=np.float32)
    mean, covariance = weights[0], weights[1:]
    filled = np.array(features, dtype=np.float32)
    ridge = _RIDGE * max(float(np.trace(covariance)) / len(mean), np.finfo(float).tiny)
    patterns, which = np.unique(missing, axis=0, return_inverse=True)
    for number, lacks in enumerate(patterns):
        if not lacks.any():
            continue
        rows, has = np.flatnonzero(which.ravel() == number), ~lacks
        among = covariance[np.ix_(has, has)] + ridge * np.eye(int(has.sum()))
        try:
            slopes = np.linalg.solve(among, covariance[np.ix_(has, lacks)])
        except np.linalg.LinAlgError as error:  # no covariance of songs is singular with the ridge
            raise ModelError(
                "the statistics of several models together are damaged: refit the model."
            ) from error
        known = np.asarray(features[np.ix_(rows, has)], dtype=np.float64) - mean[has]
        filled[np.ix_(rows, lacks)] = mean[lacks] + known @ slopes
    return filled


def column_scales(features: Floats, blocks: Sequence[slice]) -> npt.NDArray[np.float64]:
    """Factors (d,) by which the songs that have a source vary by 1 in it, whatever they vary by in the others."""
    scales = np.ones(features.shape[1])
    for block in blocks:
        known = np.isfinite(features[:, block]).all(axis=1)
        spread = float(np.var(features[known, block], axis=0, dtype=np.float64).sum()) if known.any() else 0.0
        scales[block] = 1.0 / np.sqrt(spread) if spread > 0 else 0.0
    return scales
