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
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float64Array
from musicsim.errors import ModelError
from musicsim.explorer.models.encoders import (
    Arrays,
    Encoder,
    Floats,
    Frames,
    LoadPart,
    Part,
    ReadFeatures,
    StoredArray,
    StoredModel,
    has_features,
    known_rows,
    with_prefix,
    without_prefix,
)
from musicsim.explorer.models.schema import AboutModel, AboutSources, read_json
from musicsim.library import Library, Song
from musicsim.progress import Progress

_RIDGE = 1e-6  # of the mean variance: columns that repeat others have a solution, too


@dataclass(frozen=True, slots=True)
class JointEncoder(Encoder):
    """Joined vectors of models; whole by itself, so that it outlives them and can be sent."""

    stored: ClassVar = {"front_about": StoredArray((), np.str_)}

    names: tuple[str, ...]  # what the models were called
    # which models of its library they were: as long as they are there, they are not asked for a song twice
    model_ids: tuple[str, ...]
    parts: tuple[Part, ...]

    @property
    def n_features(self) -> int:
        return sum(part.n_dimensions for part in self.parts)

    @property
    def uses_audio(self) -> bool:
        return any(part.encoder_.uses_audio for part in self.parts)

    @property
    def blocks(self) -> list[slice]:
        ends = np.cumsum([part.n_dimensions for part in self.parts]).tolist()
        return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]

    def own_keys(self) -> list[str]:
        return sorted({key for part in self.parts for key in part.encoder_.own_keys()})

    def reader(self, library: Library, progress: Progress, /) -> ReadFeatures:
        readers = [
            _part_reader(library, part, model_id, progress)
            for part, model_id in zip(self.parts, self.model_ids, strict=True)
        ]
        return lambda songs: np.concatenate([read(songs) for read in readers], axis=1)

    def encode_frames(self, list_of_frames: Iterable[Frames], /) -> Floats:
        """Joined vectors of songs, float32 (n_songs, n_features); NaN of models that do not use audio."""
        rows = []
        for frames in list_of_frames:
            # each source reads them from the start; blocks of ten minutes are 8 MB
            kept = np.concatenate(list(frames)) if isinstance(frames, Iterator) else frames
            rows.append(
                np.concatenate(
                    [
                        part.transform([kept])[0] if part.encoder_.uses_audio else np.full(part.n_dimensions, np.nan)
                        for part in self.parts
                    ]
                )
            )
        return np.array(rows, dtype=np.float32).reshape(len(rows), self.n_features)

    # --- storage ------------------------------------------------------------------------------

    def arrays(self) -> Arrays:
        about = AboutSources(
            names=list(self.names), model_ids=list(self.model_ids), parts=[part.about() for part in self.parts]
        )
        arrays: Arrays = {"front_about": np.array(about.model_dump_json())}
        for number, part in enumerate(self.parts):
            arrays |= with_prefix(_prefix(number), part.arrays())
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Arrays, _about: AboutModel, load_part: LoadPart, /) -> Self:
        about = _about_sources(arrays["front_about"])
        parts = [load_part(part, without_prefix(_prefix(number), arrays)) for number, part in enumerate(about.parts)]
        return cls(tuple(about.names), tuple(about.model_ids), tuple(parts))

    @classmethod
    def n_stored_features(cls, _about: AboutModel, model: StoredModel, /) -> int:
        parts = _about_sources(model.value("front_about")).parts
        return sum(model.n_dimensions_of_part(_prefix(number), part) for number, part in enumerate(parts))


def _part_reader(library: Library, part: Part, model_id: str, progress: Progress) -> ReadFeatures:
    """Read vectors of songs under one of several models; NaN for songs without one."""
    if any(record.id == model_id and record.is_complete for record in library.models.all(retired=True)):
        kept = library.vectors(model_id)
        return known_rows(kept.song_ids, lambda at: kept.X[at], part.n_dimensions)
    read = part.encoder_.reader(library, progress)

    def vectors(songs: Sequence[Song]) -> Floats:
        features = read(songs)
        rows = np.full((len(songs), part.n_dimensions), np.nan, dtype=np.float32)
        known = has_features(features)
        if known.any():
            rows[known] = part.vectors(features[known])
        return rows

    return vectors


def _about_sources(stored: npt.NDArray[np.str_]) -> AboutSources:
    return read_json(AboutSources, str(stored))


def _prefix(number: int) -> str:
    """What the names of a part's arrays begin with."""
    return f"front_{number}_"


def statistics(features: Floats) -> Float64Array:
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


def fill(features: Floats, weights: Float64Array | None) -> Floats:
    """Foresee what songs lack: the conditional mean of a normal distribution.

    `features` (n_songs, d) are NaN where a song lacks a source, `weights` (1 + d, d) those of :func:`statistics`.
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
            raise ModelError("the statistics of several models together are damaged: refit the model.") from error
        known = np.asarray(features[np.ix_(rows, has)], dtype=np.float64) - mean[has]
        filled[np.ix_(rows, lacks)] = mean[lacks] + known @ slopes
    return filled


def column_scales(features: Floats, blocks: Sequence[slice]) -> Float64Array:
    """Factors (d,) by which the songs that have a source vary by 1 in it, whatever they vary by in the others."""
    scales = np.ones(features.shape[1])
    for block in blocks:
        known = np.isfinite(features[:, block]).all(axis=1)
        spread = float(np.var(features[known, block], axis=0, dtype=np.float64).sum()) if known.any() else 0.0
        scales[block] = 1.0 / np.sqrt(spread) if spread > 0 else 0.0
    return scales
