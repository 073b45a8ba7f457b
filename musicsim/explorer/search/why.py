"""Why two songs are alike: what gives the similarity, the codewords they share, where these sound, and what listeners
gave both.

The figures are those of the model in use. Where it compares something else than codewords, they are by groups of what
it compares (:mod:`musicsim.explorer.search.why_groups`), and what sounds alike where comes from the model of codewords.

Conventions. Songs are histograms over the codewords of one codebook. A space is the map of a model and the
matrix ``components`` (r, n_codewords) of its vectors, so that squared distances are those of the metric
``M = components^T components``. Frame i of a song starts at i times 256 / 22050 s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from musicsim import codebook as codebooks
from musicsim import kernels
from musicsim._arrays import BoolArray, Float32Array, Float64Array, Int64Array
from musicsim.audio import HOP, SAMPLE_RATE
from musicsim.errors import ModelError
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.search.why_groups import REST, Compared, Share, Shares, largest_shares

N_SHARED, N_APART = 6, 3
_FRAME_S = HOP / SAMPLE_RATE
_MAX_FRAMES = int(600 / _FRAME_S)
"""Of a longer song the first ten minutes are listened through, so that an answer never has to be waited for."""
_SMOOTH_FRAMES = round(1.5 / _FRAME_S)
_REACH_FRAMES = round(3.0 / _FRAME_S)
"""How far a passage goes from its middle, at most."""
_SHORTEST_FRAMES = round(1.0 / _FRAME_S)
"""Less is a blip, and nobody could say what was alike in it; a shorter song is a passage as a whole."""
_N_BINS = 240
_FAINTEST = 0.5
"""A passage sounds its codeword at least so much as the song's best moment does, or it is none."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two songs."""

    # (n_codewords,), sums to 1; None where there is no model of codewords
    histogram: Float32Array | None
    # (n, 39), or None: the song's frames in order, read once; None where they were not kept
    frame_blocks: Iterator[Float32Array] | None
    peaks: Float32Array  # (n_bins,), in [0, 1]
    duration_s: float
    title: str
    sub: str = ""
    song_id: int | None = None  # None for sound from outside of the library
    starts_s: float = 0.0  # where in the song or file it begins, of a part
    tags: tuple[str, ...] = ()  # heaviest first
    listeners: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CodewordShare:
    """What one codeword adds to similarity and squared distance; "after" is None without a learned metric."""

    codeword: int
    words: str  # how it sounds beside the other codewords
    more_in: int  # 0 when the first song has more of it, 1 when the second has
    similarity_before: float
    similarity_after: float | None
    distance_before: float
    distance_after: float | None


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch in which a shared codeword sounds most; `slot` is its place in :attr:`Why.shared`."""

    start_s: float
    end_s: float
    slot: int


@dataclass(frozen=True, slots=True)
class Why:
    """Why two songs are alike; "after" is None without a learned metric."""

    similarity_before: float
    similarity_after: float | None
    distance_before: float
    distance_after: float | None
    parts: tuple[Share, ...]  # what gives the similarity, the largest first and the rest last; they sum to it
    # those that both songs have with the largest share of the similarity, at most six; without a model of
    # codewords none
    shared: tuple[CodewordShare, ...]
    apart: tuple[CodewordShare | Share, ...]  # those with the largest share of the distance, at most three
    # by slot; what has one in the first song has one in the second
    passages: tuple[tuple[Passage, ...], tuple[Passage, ...]]
    # (n_bins,), one a song; empty without frames: how much of what is shared sounds, evenly over the first
    # `heard_s` seconds; its mean over a song is the similarity, but for codewords that only the other song
    # has
    curves: tuple[Float32Array, Float32Array]
    heard_s: tuple[float, float]  # how far each song was listened through
    tags: tuple[str, ...]  # in common
    n_listeners: int  # who heard both
    # their share of those who heard either; None when one of the songs has no listeners
    listeners_jaccard: float | None


def codeword_shares(a: npt.ArrayLike, b: npt.ArrayLike, components: npt.ArrayLike) -> tuple[Float64Array, Float64Array]:
    """Share of each codeword in the squared distance of two songs, and in their similarity.

    Parameters
    ----------
    a, b : arrays of shape (n_codewords,)
        Mapped histograms: after the square root, for the probability product kernel.
    components : array of shape (r, n_codewords)
        L of the metric M = L^T L.

    Returns
    -------
    distance, similarity : float64 ndarrays of shape (n_codewords,)
        They sum to d^2 = (a - b)^T M (a - b) and to 1 - d^2 / 2, the similarity that is shown for songs (which
        is cut off at 0).

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Notes
    -----
    With delta = a - b, codeword w has delta_w (M delta)_w of the distance. A metric couples codewords, so a
    share may be negative: the codeword makes up for a difference in others. Of the similarity it has
    (a_w^2 / |a|^2 + b_w^2 / |b|^2) / 2, what both songs have of it, less half of its share of the distance. Where
    M is the identity and a, b are square-root histograms, this is a_w b_w: the term of the probability product
    kernel (thesis, equation 5.6). A song that is mapped to 0 has nothing of any codeword. Memory: O(r + n_codewords),
    M is never formed.
    """
    a, b, L = (np.asarray(x, dtype=np.float64) for x in (a, b, components))
    if a.ndim != 1 or a.shape != b.shape or L.ndim != 2 or L.shape[1] != len(a):
        raise ValueError(
            f"a {a.shape}, b {b.shape} and components {L.shape} should be (n_codewords,) twice and (r, n_codewords)."
        )
    delta = a - b
    distance = delta * (L.T @ (L @ delta))
    presence = sum(np.square(x) / max(float(x @ x), np.finfo(float).tiny) for x in (a, b)) / 2
    return distance, presence - distance / 2


def describe_codewords(codebook: codebooks.Codebook, codewords: Sequence[int]) -> list[str]:
    """How each codeword sounds beside the others of its codebook of delta-MFCC, as in "bright, quiet, steady".

    A word is said in the outer thirds of the codebook, with "very" in the outer sixths: loudness is the first MFCC,
    darkness the second, change the length of the slopes. With none of them it is "in the middle". See
    :func:`roughly`.
    """
    centres = codebook.codewords_
    n_mfcc = centres.shape[1] // 3
    change = np.linalg.norm(centres[:, n_mfcc : 2 * n_mfcc], axis=1)
    scales = (("bright", "dark", centres[:, 1]), ("quiet", "loud", centres[:, 0]), ("steady", "changing", change))
    used = codebook.counts_ > 0
    words: list[list[str]] = [[] for _ in codewords]
    for low, high, values in scales:
        lowest, lower, higher, highest = np.quantile(values[used], (1 / 6, 1 / 3, 2 / 3, 5 / 6))
        for said, value in zip(words, values[list(codewords)].tolist(), strict=True):
            if value < lower or value > higher:
                very = "very " if value < lowest or value > highest else ""
                said.append(very + (low if value < lower else high))
    return [", ".join(said) or "in the middle" for said in words]


def roughly(words: str) -> str:
    """A description of a codeword without "very": one of 27, which many codewords share."""
    return words.replace("very ", "")


def explain_pair(
    one: Side,
    other: Side,
    model: SimilarityModel,
    *,
    codewords: SimilarityModel | None = None,
    compared: Compared | None = None,
) -> Why:
    """Explain the similarity of two songs under a model, before and after learning.

    Parameters
    ----------
    codewords : SimilarityModel, optional
        The library's model of codewords, for a `model` that compares something else.
    compared : Compared, optional
        What such a model compares of the two songs.

    Returns
    -------
    Why
        Without frames of both songs there are no passages, and no curve of a song without.

    Raises
    ------
    ModelError
        If the model does not compare histograms of codewords, and `compared` is not given.

    Notes
    -----
    Memory: 32 bytes a frame and the blocks of frames as they come, 2 MB a song of ten minutes. Of longer songs
    the first ten minutes are listened through.
    """
    if compared is not None:
        before, after = compared.shares()
        parts = largest_shares(compared.names, before, after)
        heard = _Heard() if codewords is None else _Heard.of(one, other, codewords, None)
        named = [part for part in parts if part.words != REST]
        far = sorted(named, key=lambda part: -part.distance)[:N_APART]
        apart: tuple[CodewordShare | Share, ...] = tuple(far) if len(named) > 1 else ()
    else:
        before, after = _histogram_shares(one, other, model)
        heard = _Heard.of(one, other, model, after)
        parts, apart = _by_sound(_codebook_of(model), before, after), heard.apart
    return Why(
        similarity_before=_similarity(before),
        similarity_after=None if after is None else _similarity(after),
        distance_before=_distance(before),
        distance_after=None if after is None else _distance(after),
        parts=parts,
        shared=heard.shared,
        apart=apart,
        passages=heard.passages,
        curves=heard.curves,
        heard_s=heard.heard_s,
        tags=tuple(tag for tag in one.tags if tag in other.tags),
        n_listeners=len(one.listeners & other.listeners),
        listeners_jaccard=_jaccard(one.listeners, other.listeners),
    )


@dataclass(frozen=True, slots=True)
class _Heard:
    """What codewords say of two songs; nothing without a model of them. Attributes as of :class:`Why`."""

    shared: tuple[CodewordShare, ...] = ()
    apart: tuple[CodewordShare, ...] = ()
    passages: tuple[tuple[Passage, ...], tuple[Passage, ...]] = ((), ())
    curves: tuple[Float32Array, Float32Array] = (np.empty(0, np.float32), np.empty(0, np.float32))
    heard_s: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def of(
        cls, one: Side, other: Side, model: SimilarityModel, after: tuple[Float64Array, Float64Array] | None
    ) -> _Heard:
        """By a model of codewords, and shares under what was learned on it, if anything."""
        if one.histogram is None or other.histogram is None:
            return cls()
        codebook = _codebook_of(model)
        before, _ = _histogram_shares(one, other, model.untrained())
        distance, similarity = after or before
        in_both = (one.histogram > 0) & (other.histogram > 0)
        top = _largest(np.where(in_both, similarity, 0.0), N_SHARED)
        far = _largest(distance, N_APART)
        shares = _codeword_shares(codebook, top + far, (one, other), before, after)
        first, second = _nearest(one, codebook), _nearest(other, codebook)
        return cls(
            shared=shares[: len(top)],
            apart=shares[len(top) :],
            passages=_passages(first, second, top),
            curves=(_curve(first, similarity, one), _curve(second, similarity, other)),
            heard_s=(len(first) * _FRAME_S, len(second) * _FRAME_S),
        )


def _histogram_shares(one: Side, other: Side, model: SimilarityModel) -> tuple[Shares, Shares | None]:
    """Shares of codewords before and after learning."""
    _codebook_of(model)  # refuses a model of another kind
    assert one.histogram is not None
    assert other.histogram is not None
    a, b = model.mapped(np.stack([one.histogram, other.histogram]))
    before = codeword_shares(a, b, model.untrained().components_)
    return before, None if model.metric_ is None else codeword_shares(a, b, model.components_)


def _by_sound(codebook: codebooks.Codebook, before: Shares, after: Shares | None) -> tuple[Share, ...]:
    """Bars of codewords that sound alike; single ones would say a third of the similarity."""
    words = [roughly(said) for said in describe_codewords(codebook, range(len(codebook.codewords_)))]
    names, group = np.unique(words, return_inverse=True)

    def grouped(shares: Shares) -> Shares:
        distance, similarity = (np.bincount(group, share, len(names)).astype(np.float64) for share in shares)
        return distance, similarity

    return largest_shares(names.tolist(), grouped(before), None if after is None else grouped(after))


def _codebook_of(model: SimilarityModel) -> codebooks.Codebook:
    codebook = getattr(model.encoder_, "codebook", None)  # the class of such encoders would load numba
    if not isinstance(codebook, codebooks.Codebook):
        raise ModelError(
            f"the model in use compares {model.kind.description}: there are no sounds to show. Choose another model."
        )
    return codebook


def _distance(shares: tuple[Float64Array, Float64Array]) -> float:
    return float(np.sqrt(max(0.0, shares[0].sum())))


def _similarity(shares: tuple[Float64Array, Float64Array]) -> float:
    return float(kernels.ppk_similarity(_distance(shares)))


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float | None:
    return len(one & other) / len(one | other) if one and other else None


def _largest(shares: Float64Array, n: int) -> list[int]:
    """The codewords of the `n` largest shares that are more than 0, the largest first."""
    order = np.argsort(-shares, kind="stable")[:n]
    return order[shares[order] > 0].tolist()


def _codeword_shares(
    codebook: codebooks.Codebook,
    codewords: Sequence[int],
    sides: tuple[Side, Side],
    before: tuple[Float64Array, Float64Array],
    after: tuple[Float64Array, Float64Array] | None,
) -> tuple[CodewordShare, ...]:
    one, other = (side.histogram for side in sides)
    assert one is not None
    assert other is not None
    return tuple(
        CodewordShare(
            codeword=w,
            words=words,
            more_in=int(other[w] > one[w]),
            similarity_before=float(before[1][w]),
            similarity_after=None if after is None else float(after[1][w]),
            distance_before=float(before[0][w]),
            distance_after=None if after is None else float(after[0][w]),
        )
        for w, words in zip(codewords, describe_codewords(codebook, codewords), strict=True)
    )


def _nearest(side: Side, codebook: codebooks.Codebook) -> Int64Array:
    """The nearest codewords of each frame, (n_frames, tau), of ten minutes at most; no rows without frames."""
    found = [np.empty((0, codebook.tau), dtype=np.int64)]
    n_frames = 0
    for block in side.frame_blocks or ():
        found.append(codebook.nearest(block[: _MAX_FRAMES - n_frames]))
        n_frames += len(found[-1])
        if n_frames >= _MAX_FRAMES:
            break
    return np.concatenate(found)


def _smoothed(values: npt.ArrayLike) -> Float64Array:
    """Means over the 1.5 s around each frame, over what there is of them at both ends."""
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    n, half = len(sums) - 1, _SMOOTH_FRAMES // 2
    start = np.maximum(np.arange(n) - half, 0)
    stop = np.minimum(np.arange(n) + half + 1, n)
    return (sums[stop] - sums[start]) / (stop - start)


def _curve(found: Int64Array, similarity: Float64Array, side: Side) -> Float32Array:
    """What is shared, along a song: a codeword's share is spread evenly over the frames that are near to it."""
    if not len(found):
        return np.empty(0, dtype=np.float32)
    assert side.histogram is not None
    has = side.histogram > 0
    density = np.divide(similarity, side.histogram, out=np.zeros(len(similarity)), where=has)
    edges = np.linspace(0, len(found), min(_N_BINS, len(found)) + 1).astype(np.int64)
    along = _smoothed(density[found].mean(axis=1))
    return (np.add.reduceat(along, edges[:-1]) / np.diff(edges)).astype(np.float32)


def _passages(
    first: Int64Array, second: Int64Array, codewords: Sequence[int]
) -> tuple[tuple[Passage, ...], tuple[Passage, ...]]:
    """A passage in both songs for each codeword that has one in both; those of a song do not overlap."""
    passages: tuple[list[Passage], list[Passage]] = ([], [])
    if not len(first) or not len(second):
        return (), ()
    taken = [np.zeros(len(found), dtype=bool) for found in (first, second)]
    for slot, codeword in enumerate(codewords):
        stretches = [
            _stretch(_smoothed((found == codeword).any(axis=1)), used)
            for found, used in zip((first, second), taken, strict=True)
        ]
        for stretch, used, of_song in zip(stretches, taken, passages, strict=True):
            if stretch is None or None in stretches:
                continue
            start, stop = stretch
            used[start:stop] = True
            of_song.append(Passage(start * _FRAME_S, stop * _FRAME_S, slot))
    return tuple(passages[0]), tuple(passages[1])


def _stretch(loudness: Float64Array, taken: BoolArray) -> tuple[int, int] | None:
    """First frame, and the one after the last, around the largest value that is not taken, while there is half of it.

    None where what is left is too faint beside the largest of all, or too short.
    """
    free = np.where(taken, 0.0, loudness)
    middle = int(np.argmax(free))
    peak = free[middle]
    if peak <= 0.0 or peak < _FAINTEST * loudness.max():
        return None
    ends = np.flatnonzero(free < peak / 2)
    before, after = ends[ends < middle], ends[ends > middle]
    start = int(before[-1]) + 1 if len(before) else 0
    stop = int(after[0]) if len(after) else len(free)
    start, stop = max(start, middle - _REACH_FRAMES), min(stop, middle + _REACH_FRAMES)
    return (start, stop) if stop - start >= min(_SHORTEST_FRAMES, len(free)) else None
