"""Rankings of pieces by Sound, with and without MusiCNN, and by other programs: for experiments.real_music."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.support.report import Progress, Skipped
from experiments.support.ear_vectors import (
    USUAL_EVERY,
    USUAL_SHARE,
    join,
    penultimate_vectors,
    pooled_vectors,
    prepare_network,
    standardize,
)
from experiments.support.music_sets import MusicSet
from experiments.support.pieces import Scores, euclidean, scores, with_proximity
from experiments.support.sound_rivals import bliss_distances, musly_distances
from experiments.support.timbre import ablations, sound_vectors
from musicsim._arrays import Float64Array

__all__ = ["BOTH", "EARLIER", "SOUND", "peer_scores"]

SOUND, BOTH = "Sound", "Sound and MusiCNN"
EARLIER = ("Sound without spectral shape", "Sound of feature version 3")
"""Those of the ablations that show what spectral shape and unit lengths add."""


def peer_scores(music: MusicSet, cache: Path, progress: Progress) -> tuple[dict[str, Scores], list[str]]:
    """Return the scores of each ranking by name, and a sentence for each ranking that is not available.

    Distances are adjusted by mutual proximity over the nearest third, except those of AudioMuse-AI, which are plain,
    and those of Musly, which adjusts its own.
    """
    library, pieces = music.library, music.pieces
    sound = sound_vectors(library, pieces)
    found, missing = {SOUND: _adjusted(sound, music)}, []
    found |= {name: _adjusted(X, music) for name, X in ablations(library, pieces) if name in EARLIER}
    try:
        for name, of in _ear_scores(sound, music, cache, progress):
            found[name] = of
    except Skipped as absent:
        missing.append(f"MusiCNN: {absent}")
    for name, distances, is_adjusted in (("bliss", bliss_distances, False), ("Musly", musly_distances, True)):
        D, said = distances(pieces, cache / "rivals", progress)
        if D is None:
            missing.append(f"{name}: {said}")
            continue
        what = f"{name} ({said})" if said else name
        found[what] = scores(D if is_adjusted else with_proximity(D), pieces)
        progress(f"{music.name}: {what}")
    return found, missing


def _ear_scores(sound: Float64Array, music: MusicSet, cache: Path, progress: Progress) -> Iterator[tuple[str, Scores]]:
    network = prepare_network(cache)
    ear = standardize(pooled_vectors(music.library, music.pieces, network, USUAL_EVERY, cache, progress))
    yield BOTH, _adjusted(join(sound, ear, USUAL_SHARE), music)
    yield "MusiCNN, pooled channels", _adjusted(ear, music)
    penultimate = penultimate_vectors(music.library, music.pieces, network, USUAL_EVERY, cache, progress)
    cosine = penultimate / np.linalg.norm(penultimate, axis=1, keepdims=True)
    yield "MusiCNN as AudioMuse-AI", scores(euclidean(cosine), music.pieces)


def _adjusted(X: Float64Array, music: MusicSet) -> Scores:
    return scores(with_proximity(euclidean(X)), music.pieces)
