"""Songs as multinomials over tags predicted from their sound (thesis 5.4.3, equation 5.14)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from musicsim._arrays import Float32Array, Float64Array, FloatingArray
from musicsim.mixtures.kernels import mean_log_sums
from musicsim.mixtures.songs import FrameBlocks, SongMixtures, em_mixture, fix_seed, quadratic_form, sample_frames

_ALL_FRAMES = 400_000  # total number of frames sampled from all training songs: 62 MB of float32
_SONG_FRAMES = (20, 500)  # minimum and maximum number of frames sampled from each training song
_TAG_FRAMES = 10_000  # number of frames for a tag's mixture, distributed evenly over the tag's songs
_BLOCK_FRAMES = 1024


class SemanticMultinomials(TransformerMixin, BaseEstimator):
    """Describe songs by the tags that their sound suggests, learned from songs that have tags.

    Fit one Gaussian mixture per tag; represent songs by the likelihoods of their frames under these mixtures.

    Parameters
    ----------
    n_components : int >= 1; number of components in each tag's mixture
    min_songs : int >= 1; tags with fewer songs are ignored
    max_tags : int >= 1; the most frequent tags are kept
    random_state : int, numpy.random.Generator or None; seed of the sampled frames and of the initialization of EM

    Attributes
    ----------
    tags_ : list of str, most frequent first, then by name
    mixtures_ : SongMixtures, one per tag, over z-scored frames
    mean_, scale_ : ndarray of shape (n_features,), float64
        Mean and standard deviation of the training frames; the scale of a constant column is 1.

    See Also
    --------
    MixtureSpace : Compares the sound itself.

    Notes
    -----
    The method follows Turnbull et al. (2008), except that they merge mixtures of songs. Here, EM runs on frames sampled
    from the tagged songs, an equal number from each. The likelihoods of all frames are multiplied in the log domain.
    All tags have the same prior, including rare ones.

    References
    ----------
    - D. Turnbull, L. Barrington, D. Torres and G. Lanckriet, Semantic annotation and retrieval of music and sound
      effects, IEEE TASLP 16, 2008.
    - B. McFee, More like this: machine learning approaches to music similarity, PhD thesis, UC San Diego, 2012, section
      5.4.3 (equation 5.14).

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.mixtures import SemanticMultinomials
    >>> rng = np.random.default_rng(0)
    >>> songs = [rng.normal(loc=3 * (n % 2), size=(100, 2)) for n in range(12)]
    >>> tags = [["calm"], ["loud"]] * 6
    >>> model = SemanticMultinomials(n_components=1, random_state=0).fit(songs, tags)
    >>> model.tags_
    ['calm', 'loud']
    >>> model.transform([rng.normal(loc=3, size=(100, 2))]).round(2)  # a new song without tags
    array([[0., 1.]], dtype=float32)
    """

    def __init__(
        self,
        n_components: int = 8,
        min_songs: int = 5,
        max_tags: int = 150,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.n_components, self.random_state = n_components, random_state
        self.min_songs, self.max_tags = min_songs, max_tags

    def fit(self, list_of_frames: Iterable[FrameBlocks], list_of_tag_lists: Sequence[Iterable[str]]) -> Self:
        """Fit a mixture to each tag with enough songs, given the raw frames and the tags of each song.

        Songs are read one at a time; a song may be an iterator of blocks. From each song, 20 to 500 frames are kept,
        62 MB in total for up to 20,000 songs. Repeated tags count once.

        Raises ValueError if the lists differ in length, no tag has `min_songs` songs, or a song is invalid; TypeError
        if the tags of a song are not a list.
        """
        if min(self.n_components, self.min_songs, self.max_tags) < 1:
            raise ValueError(
                f"n_components={self.n_components}, min_songs={self.min_songs} and "
                f"max_tags={self.max_tags} must be at least 1."
            )
        for index, song in enumerate(list_of_tag_lists):
            if isinstance(song, str) or not isinstance(song, Iterable):
                raise TypeError(f"the tags of song {index} are {song!r}: pass a list of tags for each song.")
        tag_sets = [set(map(str, tags)) for tags in list_of_tag_lists]
        tags = self._vocabulary(tag_sets)
        seed = fix_seed(self.random_state)
        samples = _sample_songs(list_of_frames, tag_sets, set(tags), seed)
        width = {frames.shape[1] for frames in samples.values()}
        if len(width) > 1:
            raise ValueError(f"songs have different numbers of features: {sorted(width)}.")
        self._z_score(samples)
        fitted = [self._fit_tag(t, tag, tag_sets, samples, seed) for t, tag in enumerate(tags)]
        self.mixtures_ = SongMixtures(*(np.stack(part) for part in zip(*fitted, strict=True)))
        self.tags_ = tags
        return self

    def transform(self, list_of_frames: Iterable[FrameBlocks]) -> Float32Array:
        """Return the multinomial of each song over :attr:`tags_`, float32 (n_songs, n_tags) (equation 5.14).

        Songs are read as in :meth:`fit`.
        """
        check_is_fitted(self, "mixtures_")
        form, offset = self._form()
        rows = []
        for index, song in enumerate(list_of_frames):
            total, n_frames = np.zeros(len(self.tags_)), 0
            for block in song if isinstance(song, Iterator) else (song,):
                frames = self._check_frames(block, f"the frames of song {index}")
                n_frames += len(frames)
                for start in range(0, len(frames), _BLOCK_FRAMES):
                    total += self._log_likelihood(frames[start : start + _BLOCK_FRAMES], form, offset)
            if n_frames == 0:
                raise ValueError(f"the frames of song {index} are empty: at least one frame is needed.")
            share = np.exp((total - total.max()) / n_frames)
            rows.append((share / share.sum()).astype(np.float32))
        return np.array(rows, dtype=np.float32).reshape(len(rows), len(self.tags_))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays to save for :meth:`from_arrays`; they contain only numbers and strings."""
        check_is_fitted(self, "mixtures_")
        return {
            **self.mixtures_.arrays(),
            "mean": self.mean_,
            "scale": self.scale_,
            "tags": np.array(self.tags_, dtype=np.str_),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], **parameters: Any) -> Self:
        """Restore a fitted model from the arrays that :meth:`arrays` returned and the same `parameters`."""
        model = cls(**parameters)
        model.mixtures_ = SongMixtures.from_arrays(arrays)
        model.mean_, model.scale_ = arrays["mean"], arrays["scale"]
        model.tags_ = [str(tag) for tag in arrays["tags"]]
        return model

    def _vocabulary(self, tag_sets: Sequence[set[str]]) -> list[str]:
        counts = Counter(tag for tags in tag_sets for tag in tags)
        frequent = [tag for tag, n in counts.items() if n >= self.min_songs]
        if not frequent:
            raise ValueError(f"no tag has min_songs={self.min_songs} songs: tag more songs, or lower min_songs.")
        return sorted(frequent, key=lambda tag: (-counts[tag], tag))[: self.max_tags]

    def _z_score(self, samples: dict[int, FloatingArray]) -> None:
        """Set `mean_` and `scale_`, and replace the raw frames in `samples` with z-scored ones."""
        from sklearn.preprocessing import StandardScaler

        scaler = StandardScaler()
        for frames in samples.values():
            scaler.partial_fit(frames.astype(np.float64))
        self.mean_, self.scale_ = scaler.mean_, scaler.scale_
        for song, frames in samples.items():
            samples[song] = ((frames - self.mean_) / self.scale_).astype(np.float32)

    def _fit_tag(
        self, number: int, tag: str, tag_sets: Sequence[set[str]], samples: Mapping[int, FloatingArray], seed: int
    ) -> tuple[Float64Array, Float64Array, Float64Array]:
        rng = np.random.default_rng([seed, number])
        songs = [song for song in samples if tag in tag_sets[song]]
        share = max(1, _TAG_FRAMES // len(songs))
        frames = np.concatenate([_sample_rows(samples[song], share, rng) for song in songs])
        return em_mixture(frames, self.n_components, rng)

    def _form(self) -> tuple[Float32Array, Float32Array]:
        """Return the quadratic forms for the components of all tags: (n_tags c, 2 d) and (n_tags, c)."""
        form, offset = quadratic_form(*(part.astype(np.float64) for part in self.mixtures_.arrays().values()))
        return form.reshape(-1, form.shape[-1]).astype(np.float32), offset.astype(np.float32)

    def _log_likelihood(self, frames: Float64Array, form: Float32Array, offset: Float32Array) -> Float64Array:
        """Return the sum over frames of the log-density under each tag."""
        z = (frames - self.mean_) / self.scale_
        moments = np.concatenate([z * z, z], axis=1).astype(np.float32)
        products = (form @ moments.T).reshape(len(self.tags_), -1, len(frames))
        result = np.empty(len(self.tags_))
        mean_log_sums(products, offset, result)
        return result * len(frames)

    def _check_frames(self, block: npt.ArrayLike, name: str) -> Float64Array:
        frames = np.asarray(block, dtype=np.float64)
        if frames.ndim != 2 or frames.shape[1] != len(self.mean_):
            raise ValueError(f"{name}: the shape is {frames.shape}; it must be (n_frames, {len(self.mean_)}).")
        if not np.isfinite(frames).all():
            raise ValueError(f"{name}: the values contain NaN or infinity.")
        return frames


def _sample_songs(
    list_of_frames: Iterable[FrameBlocks], tag_sets: Sequence[set[str]], tags: set[str], seed: int
) -> dict[int, FloatingArray]:
    """Return a seeded sample of frames from each song that has one of `tags`, keyed by the song's row number."""
    share = int(np.clip(_ALL_FRAMES // len(tag_sets), *_SONG_FRAMES))
    samples, n_songs = {}, 0
    for song, frames in enumerate(list_of_frames):
        n_songs += 1
        if song < len(tag_sets) and tag_sets[song] & tags:
            rng = np.random.default_rng(seed)
            samples[song] = sample_frames(frames, share, rng, f"the frames of song {song}").astype(np.float32)
    if n_songs != len(tag_sets):
        raise ValueError(
            f"list_of_frames has {n_songs} songs, but list_of_tag_lists has {len(tag_sets)}: pass one list of tags "
            "per song, and an empty one for a song without tags."
        )
    return samples


def _sample_rows(frames: FloatingArray, n: int, rng: np.random.Generator) -> FloatingArray:
    return frames if len(frames) <= n else frames[rng.choice(len(frames), n, replace=False)]
