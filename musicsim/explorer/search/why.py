"""Explain why two songs are similar: by shared codewords, passages, tags and listeners.

If the model in use does not compare codewords, the parts of the similarity are groups of features
(:mod:`musicsim.explorer.search.why_groups`), and shared passages come from the library's codeword model. Silence and
fades never count as shared passages. Frame i of a song starts at i times 256 / 22050 s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from musicsim import codebook as codebooks
from musicsim import kernels
from musicsim._arrays import BoolArray, Float32Array, Float64Array, Int64Array
from musicsim.audio import HOP, SAMPLE_RATE
from musicsim.audio.features import N_MELS
from musicsim.errors import ModelError
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.search.why_groups import REST, Amounts, Compared, Share, Shares, largest_shares, sum_stages

N_SHARED, N_APART = 6, 3
_FRAME_S = HOP / SAMPLE_RATE
_MAX_FRAMES = int(600 / _FRAME_S)  # only the first ten minutes of a song are compared, to keep the page fast
_SMOOTH_FRAMES = round(1.5 / _FRAME_S)
_REACH_FRAMES = round(3.0 / _FRAME_S)  # maximum distance from the middle of a passage to its ends
_SHORTEST_FRAMES = round(1.0 / _FRAME_S)  # a shorter passage is hard to hear; a shorter song is one passage
_N_BINS = 240
_FAINTEST = 0.5  # minimum density of a sound at its passage, relative to the maximum in the song
_QUIETEST_DB = 15.0  # frames this much quieter (mean of all bands) than the loudest moments count as silence or fades


@dataclass(frozen=True, slots=True)
class Side:
    """Data of one of the two songs."""

    histogram: Float32Array | None  # (n_codewords,), sums to 1; None without a codeword model
    frame_blocks: Iterator[Float32Array] | None  # blocks (n, 39) in order, read once; None if frames are not stored
    peaks: Float32Array  # (n_bins,), in [0, 1]
    duration_s: float
    title: str
    sub: str = ""
    song_id: int | None = None  # None for sound from outside the library
    starts_s: float = 0.0  # position in the song or file at which the compared part starts
    tags: tuple[str, ...] = ()  # heaviest first
    listeners: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CodewordShare(Share):
    """Contribution of a codeword; `words` describes its sound relative to other codewords."""

    more_in: int  # 1 if the second song has more of this codeword, else 0


@dataclass(frozen=True, slots=True)
class Passage:
    """An interval in which a shared sound is densest; `slot` is the sound's index in :attr:`Why.shared`."""

    start_s: float
    end_s: float
    slot: int


@dataclass(frozen=True, slots=True)
class Why:
    """An explanation; the last four fields are empty without codewords."""

    stages: tuple[Amounts, ...]  # before and (if the model was learned) after learning; the last one is in use
    parts: tuple[Share, ...]  # shares that sum to the similarity; largest first, the remainder last
    apart: tuple[CodewordShare | Share, ...]  # the parts with the largest shares of the distance, at most three
    tags: tuple[str, ...]  # tags in common
    n_listeners: int  # number of people who listen to both songs
    listeners_jaccard: float | None  # None if one of the songs has no listeners
    guesses: tuple[str, ...] = ()  # tags that a network predicts for both songs
    # descriptions of the sounds that have a passage in both songs, sorted by their share of the similarity
    shared: tuple[str, ...] = ()
    passages: tuple[tuple[Passage, ...], tuple[Passage, ...]] = ((), ())  # passages per song, in the order of `shared`
    # distribution of the similarity over the first `heard_s` seconds, (n_bins,) for each song; empty if there are no
    # frames. Its mean is the similarity, without the shares of silence and of codewords that only the other song has.
    curves: tuple[Float32Array, Float32Array] = (np.empty(0, np.float32), np.empty(0, np.float32))
    heard_s: tuple[float, float] = (0.0, 0.0)  # compared seconds of each song


def codeword_shares(a: npt.ArrayLike, b: npt.ArrayLike, components: npt.ArrayLike) -> tuple[Float64Array, Float64Array]:
    """Return each codeword's share of the squared distance between two songs, and of their similarity.

    The mapped histograms a and b (n_codewords,) are square roots for the probability product kernel; `components` (r,
    n_codewords) is L of the metric M = L^T L. The shares sum to d^2 = (a - b)^T M (a - b) and to 1 - d^2 / 2, which
    the pages show as similarity, clipped at 0.

    With delta = a - b, codeword w has the share delta_w (M delta)_w of the squared distance. A metric couples
    codewords, so a share can be negative if the codeword compensates for a difference in others. The share of the
    similarity is (a_w^2 / |a|^2 + b_w^2 / |b|^2) / 2, minus half the share of the distance. If M is the identity and
    a, b are square-root histograms, this is a_w b_w, the term of the probability product kernel (thesis, equation 5.6).
    """
    a, b, L = (np.asarray(x, dtype=np.float64) for x in (a, b, components))
    delta = a - b
    distance = delta * (L.T @ (L @ delta))
    presence = sum(np.square(x) / max(float(x @ x), np.finfo(float).tiny) for x in (a, b)) / 2
    return distance, presence - distance / 2


def describe_codewords(codebook: codebooks.Codebook, codewords: Sequence[int]) -> list[str]:
    """Describe how delta-MFCC codewords sound relative to their codebook, such as "bright, quiet, steady".

    A word describes the lowest or highest third of the codebook; "very" describes the outer sixths. Loudness is the
    first MFCC, darkness is the second, and change is the norm of the deltas. Codewords without a word are "average".
    """
    centers = codebook.codewords_
    n_mfcc = centers.shape[1] // 3
    change = np.linalg.norm(centers[:, n_mfcc : 2 * n_mfcc], axis=1)
    scales = (("bright", "dark", centers[:, 1]), ("quiet", "loud", centers[:, 0]), ("steady", "changing", change))
    used = codebook.counts_ > 0
    words: list[list[str]] = [[] for _ in codewords]
    for low, high, values in scales:
        lowest, lower, higher, highest = np.quantile(values[used], (1 / 6, 1 / 3, 2 / 3, 5 / 6))
        for description, value in zip(words, values[list(codewords)].tolist(), strict=True):
            if value < lower or value > higher:
                very = "very " if value < lowest or value > highest else ""
                description.append(very + (low if value < lower else high))
    return [", ".join(description) or "average" for description in words]


def explain_pair(
    one: Side,
    other: Side,
    model: SimilarityModel,
    *,
    codewords: SimilarityModel | None = None,
    compared: Compared | None = None,
) -> Why:
    """Explain the similarity of two songs under a model, before and after learning.

    If `model` does not compare codewords, `compared` must contain its features of the two songs; if it is missing,
    ModelError is raised. `codewords` is then the library's codeword model. Songs without frames do not have a curve,
    and there are passages only if both songs have frames.

    Only the first ten minutes of a song are compared. Memory: 32 bytes per frame (2 MB for ten minutes) and one block
    of frames.
    """
    apart: tuple[CodewordShare | Share, ...]
    if compared is None:
        codewords, codebook = model, codebook_of(model)
        shares = _histogram_shares(one, other, model)
        parts = _group_by_sound(codebook, shares)
        apart = _codeword_shares(codebook, _largest(shares[-1][0], N_APART), one, other, shares)
    else:
        shares = compared.shares()
        parts = largest_shares(compared.names, shares)
        groups = [part for part in parts if part.words != REST]
        apart = tuple(sorted(groups, key=lambda part: -part.stages[-1].distance)[:N_APART]) if len(groups) > 1 else ()
    common, either = one.listeners & other.listeners, one.listeners | other.listeners
    distances = [float(np.sqrt(max(0.0, squares.sum()))) for squares, _ in shares]
    why = Why(
        stages=tuple(Amounts(distance, float(kernels.ppk_similarity(distance))) for distance in distances),
        parts=parts,
        apart=apart,
        tags=tuple(tag for tag in one.tags if tag in other.tags),
        n_listeners=len(common),
        listeners_jaccard=len(common) / len(either) if one.listeners and other.listeners else None,
    )
    if codewords is None or one.histogram is None or other.histogram is None:
        return why
    if compared is not None:
        shares = _histogram_shares(one, other, codewords.remove_metric())
    return _add_passages(why, one, other, codebook_of(codewords), shares[-1][1])


def _add_passages(why: Why, one: Side, other: Side, codebook: codebooks.Codebook, similarity: Float64Array) -> Why:
    names, group = _sounds_of(codebook)
    in_both = (_histograms(one, other) > 0).all(axis=0)
    shares = np.bincount(group, np.where(in_both, similarity, 0.0), len(names)).astype(np.float64)
    order = _largest(shares, len(names))
    (first, is_loud), (second, is_other_loud) = _read(one, codebook), _read(other, codebook)
    shared, *passages = _passages((group[first], group[second]), (~is_loud, ~is_other_loud), order)
    return replace(
        why,
        shared=tuple(names[sound] for sound in shared),
        passages=(passages[0], passages[1]),
        curves=(_curve(first, is_loud, similarity, one), _curve(second, is_other_loud, similarity, other)),
        heard_s=(len(first) * _FRAME_S, len(second) * _FRAME_S),
    )


def _histograms(one: Side, other: Side) -> Float32Array:
    return np.stack([side.histogram for side in (one, other) if side.histogram is not None])


def _histogram_shares(one: Side, other: Side, model: SimilarityModel) -> list[Shares]:
    a, b = model.map_features(_histograms(one, other))
    return [codeword_shares(a, b, stage.components_) for stage in stages_of(model)]


def stages_of(model: SimilarityModel) -> list[SimilarityModel]:
    """Return the model before and, if it was learned, after learning."""
    return [model] if model.metric_ is None else [model.remove_metric(), model]


def _sounds_of(codebook: codebooks.Codebook) -> tuple[list[str], Int64Array]:
    """Return at most 27 descriptions of sounds, without "very", and the index of each codeword's description."""
    words = [words.replace("very ", "") for words in describe_codewords(codebook, range(len(codebook.codewords_)))]
    names, group = np.unique(words, return_inverse=True)
    return names.tolist(), group


def _group_by_sound(codebook: codebooks.Codebook, shares: Sequence[Shares]) -> tuple[Share, ...]:
    """Sum the shares of codewords that sound alike; the single codewords with the largest shares cover only a third."""
    names, group = _sounds_of(codebook)
    sums = [[np.bincount(group, part, len(names)).astype(np.float64) for part in stage] for stage in shares]
    return largest_shares(names, [(distance, similarity) for distance, similarity in sums])


def codebook_of(model: SimilarityModel) -> codebooks.Codebook:
    """Return the codebook of a model that compares codewords; raise ModelError for other models."""
    codebook = getattr(model.encoder_, "codebook", None)  # checking the encoder's class would load numba
    if not isinstance(codebook, codebooks.Codebook):
        raise ModelError(
            f"the model in use compares {model.kind.description}, so it cannot show which sounds two songs share. "
            "Choose a different model."
        )
    return codebook


def _largest(shares: Float64Array, n: int) -> list[int]:
    """Return the indices of the `n` largest positive shares, largest first."""
    order = np.argsort(-shares, kind="stable")[:n]
    return order[shares[order] > 0].tolist()


def _codeword_shares(
    codebook: codebooks.Codebook, codewords: Sequence[int], one: Side, other: Side, shares: Sequence[Shares]
) -> tuple[CodewordShare, ...]:
    more_in = _histograms(one, other).argmax(axis=0).tolist()
    return tuple(
        CodewordShare(words, sum_stages(shares, [w]), more_in[w])
        for w, words in zip(codewords, describe_codewords(codebook, codewords), strict=True)
    )


def _read(side: Side, codebook: codebooks.Codebook) -> tuple[Int64Array, BoolArray]:
    """Return each frame's nearest codewords (n_frames, tau) and whether it is loud enough, for the first ten minutes.

    The level of a frame is its first MFCC: the sum over all bands in dB, divided by the root of their number.
    """
    blocks, levels = [np.empty((0, codebook.tau), dtype=np.int64)], [np.empty(0, dtype=np.float32)]
    n_frames = 0
    for block in side.frame_blocks or ():
        used = block[: _MAX_FRAMES - n_frames]
        blocks.append(codebook.nearest(used))
        levels.append(used[:, 0].copy())
        n_frames += len(used)
        if n_frames >= _MAX_FRAMES:
            break
    level = _smooth(np.concatenate(levels)) / np.sqrt(N_MELS)
    loudest = np.quantile(level, 0.95) if n_frames else 0.0
    return np.concatenate(blocks), level >= loudest - _QUIETEST_DB


def _smooth(values: npt.ArrayLike) -> Float64Array:
    """Return the mean over 1.5 s around each value (less at both ends), given one value per frame."""
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    n, half = len(sums) - 1, _SMOOTH_FRAMES // 2
    start = np.maximum(np.arange(n) - half, 0)
    stop = np.minimum(np.arange(n) + half + 1, n)
    return (sums[stop] - sums[start]) / (stop - start)


def _curve(nearest: Int64Array, is_loud: BoolArray, similarity: Float64Array, side: Side) -> Float32Array:
    """Distribute each codeword's share evenly over the frames nearest to it, and return means per bin."""
    if not len(nearest):
        return np.empty(0, dtype=np.float32)
    assert side.histogram is not None
    density = np.divide(similarity, side.histogram, out=np.zeros(len(similarity)), where=side.histogram > 0)
    edges = np.linspace(0, len(nearest), min(_N_BINS, len(nearest)) + 1).astype(np.int64)
    smooth = np.where(is_loud, _smooth(density[nearest].mean(axis=1)), 0.0)
    return (np.add.reduceat(smooth, edges[:-1]) / np.diff(edges)).astype(np.float32)


def _passages(
    songs: tuple[Int64Array, Int64Array], used: tuple[BoolArray, BoolArray], sounds: Sequence[int]
) -> tuple[list[int], tuple[Passage, ...], tuple[Passage, ...]]:
    """Return the first sounds that have a passage in both songs, and these passages, which do not overlap.

    `songs` are the sounds of the codewords nearest to each frame, (n_frames, tau). `used` marks frames that must not be
    in a passage; the frames of each new passage are marked, too.
    """
    shared: list[int] = []
    passages: tuple[list[Passage], list[Passage]] = ([], [])
    for sound in sounds if len(songs[0]) and len(songs[1]) else ():
        parts = [
            _densest_part(_smooth((nearest == sound).mean(axis=1)), mask)
            for nearest, mask in zip(songs, used, strict=True)
        ]
        if None in parts or len(shared) == N_SHARED:
            continue
        for part, mask, of_song in zip(parts, used, passages, strict=True):
            assert part is not None
            mask[slice(*part)] = True
            of_song.append(Passage(part[0] * _FRAME_S, part[1] * _FRAME_S, len(shared)))
        shared.append(sound)
    return shared, tuple(passages[0]), tuple(passages[1])


def _densest_part(density: Float64Array, used: BoolArray) -> tuple[int, int] | None:
    """Return the start and stop of the part around the largest unused value in which values are at least half as large.

    Returns None if this value is too small compared to the maximum, or if the part is too short.
    """
    free = np.where(used, 0.0, density)
    middle = int(np.argmax(free))
    peak = free[middle]
    if peak <= 0.0 or peak < _FAINTEST * density.max():
        return None
    ends = np.flatnonzero(free < peak / 2)
    before, after = ends[ends < middle], ends[ends > middle]
    start = int(before[-1]) + 1 if len(before) else 0
    stop = int(after[0]) if len(after) else len(free)
    start, stop = max(start, middle - _REACH_FRAMES), min(stop, middle + _REACH_FRAMES)
    return (start, stop) if stop - start >= min(_SHORTEST_FRAMES, len(free)) else None
