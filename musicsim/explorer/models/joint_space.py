"""Several models as one space: each model's vectors are a block of columns, and all blocks have the same spread.

A song may lack some blocks, for example if it is not tagged. Missing blocks are predicted linearly from the others, as
if the joined vectors were normally distributed. If the mean were used, all songs that lack a block would seem similar.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from musicsim._arrays import Float64Array
from musicsim.audio import SongFrames
from musicsim.errors import ModelError
from musicsim.explorer.models import encoders
from musicsim.explorer.models.schema import AboutModel, AboutSources, read_json
from musicsim.library import Library, Song
from musicsim.progress import Progress

_RIDGE = 1e-6  # ridge as a multiple of the mean variance; without it, dependent columns make the system singular


@dataclass(frozen=True, slots=True)
class JointEncoder(encoders.Encoder):
    """Joined vectors of several models; it contains copies of the models, so it does not depend on the library."""

    stored: ClassVar = {"front_about": encoders.StoredArray((), np.str_)}

    names: tuple[str, ...]
    model_ids: tuple[str, ...]  # ids in the library; if a model still exists, its stored vectors are read
    parts: tuple[encoders.EncoderPart, ...]

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

    def reader(self, library: Library, progress: Progress, /) -> encoders.ReadFeatures:
        readers = [
            _part_reader(library, part, model_id, progress)
            for part, model_id in zip(self.parts, self.model_ids, strict=True)
        ]
        return lambda songs: np.concatenate([read(songs) for read in readers], axis=1)

    def encode_frames(self, list_of_frames: Iterable[encoders.Frames], /) -> encoders.Floats:
        """Join the models' vectors, float32 (n_songs, n_features); NaN for models without features of the sound."""
        rows = []
        for frames in list_of_frames:
            # each part reads the frames from the start; ten minutes of frames are 8 MB
            song = np.concatenate(list(frames)) if isinstance(frames, Iterator) else frames
            rows.append(np.concatenate([_encode_part(part, song) for part in self.parts]))
        return np.array(rows, dtype=np.float32).reshape(len(rows), self.n_features)

    def find_shared_tags(self, library: Library, sounds: Sequence[Song | SongFrames], /) -> list[str]:
        return [tag for part in self.parts for tag in part.encoder_.find_shared_tags(library, sounds)]

    def arrays(self) -> encoders.Arrays:
        about = AboutSources(
            names=list(self.names), model_ids=list(self.model_ids), parts=[part.describe() for part in self.parts]
        )
        arrays: encoders.Arrays = {"front_about": np.array(about.model_dump_json())}
        for number, part in enumerate(self.parts):
            arrays |= encoders.add_prefix(f"front_{number}_", part.arrays())
        return arrays

    @classmethod
    def from_arrays(cls, arrays: encoders.Arrays, _about: AboutModel, load_part: encoders.LoadPart, /) -> Self:
        about = read_json(AboutSources, str(arrays["front_about"]))
        parts = [load_part(part, encoders.strip_prefix(f"front_{n}_", arrays)) for n, part in enumerate(about.parts)]
        return cls(tuple(about.names), tuple(about.model_ids), tuple(parts))

    @classmethod
    def n_stored_features(cls, _about: AboutModel, model: encoders.StoredModel, /) -> int:
        parts = read_json(AboutSources, str(model.value("front_about"))).parts
        return sum(model.n_dimensions_of_part(f"front_{number}_", part) for number, part in enumerate(parts))


def _encode_part(part: encoders.EncoderPart, frames: encoders.Frames) -> encoders.Floats:
    """Return a part's vector of one song, or NaN if the part has no features of the sound."""
    if part.encoder_.uses_audio:
        return part.vectors(part.features([frames]))[0]
    features = part.encoder_.from_networks(frames.network_vectors if isinstance(frames, SongFrames) else {})
    if np.isnan(features).any():
        return np.full(part.n_dimensions, np.nan, np.float32)
    return part.vectors(features[np.newaxis])[0]


def _part_reader(
    library: Library, part: encoders.EncoderPart, model_id: str, progress: Progress
) -> encoders.ReadFeatures:
    if any(record.id == model_id and record.is_complete for record in library.models.all(retired=True)):
        stored = library.vectors(model_id)
        return encoders.make_row_reader(stored.song_ids, lambda positions: stored.X[positions], part.n_dimensions)
    read = part.encoder_.reader(library, progress)

    def vectors(songs: Sequence[Song]) -> encoders.Floats:
        features = read(songs)
        rows = np.full((len(songs), part.n_dimensions), np.nan, dtype=np.float32)
        known = encoders.has_features(features)
        if known.any():
            rows[known] = part.vectors(features[known])
        return rows

    return vectors


def statistics(features: encoders.Floats) -> Float64Array:
    """Return the mean (first row) and the covariance for :func:`fill`, float64 (1 + d, d).

    The covariance is estimated from songs without missing blocks, with the shrinkage of Ledoit and Wolf (Journal of
    Multivariate Analysis 2004). With fewer than two such songs, columns count as independent. Memory: 8 d^2 bytes.
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


def fill(features: encoders.Floats, weights: Float64Array | None) -> encoders.Floats:
    """Replace missing features (NaN) with their conditional mean; `weights` come from :func:`statistics`."""
    assert weights is not None
    missing = np.isnan(features)
    if not missing.any():
        return np.asarray(features, dtype=np.float32)
    mean, covariance = weights[0], weights[1:]
    filled = np.array(features, dtype=np.float32)
    ridge = _RIDGE * max(float(np.trace(covariance)) / len(mean), np.finfo(float).tiny)
    patterns, pattern_of = np.unique(missing, axis=0, return_inverse=True)
    for number, lacks in enumerate(patterns):
        if not lacks.any():
            continue
        rows, has = np.flatnonzero(pattern_of.ravel() == number), ~lacks
        try:
            slopes = np.linalg.solve(
                covariance[np.ix_(has, has)] + ridge * np.eye(int(has.sum())), covariance[np.ix_(has, lacks)]
            )
        except np.linalg.LinAlgError as error:  # with the ridge, only an invalid covariance is singular
            raise ModelError("the joint statistics of the combined models are damaged: refit the model.") from error
        known = np.asarray(features[np.ix_(rows, has)], dtype=np.float64) - mean[has]
        filled[np.ix_(rows, lacks)] = mean[lacks] + known @ slopes
    return filled


def column_scales(features: encoders.Floats, blocks: Sequence[slice]) -> Float64Array:
    """Return factors (d,) that scale each block to a total variance of 1; 0 for constant blocks."""
    scales = np.ones(features.shape[1])
    for block in blocks:
        known = np.isfinite(features[:, block]).all(axis=1)
        spread = float(np.var(features[known, block], axis=0, dtype=np.float64).sum()) if known.any() else 0.0
        scales[block] = 1.0 / np.sqrt(spread) if spread > 0 else 0.0
    return scales
