"""An order of songs in which keys and tempos of neighbors fit: a short path through all songs.

The cost of a step is the distance of the keys plus the distance of the tempos. Keys are at most six fifths apart;
a change between major and minor adds half a fifth, so that relative keys such as C major and A minor are close. Tempos
are compared up to an octave, because half and double tempo have common beats. A difference of :data:`MAX_STRETCH`
counts as much as a fifth. A song without a key or tempo costs as much as a random one.
"""

from collections.abc import Sequence

import numpy as np

from musicsim._arrays import Float64Array, Int64Array
from musicsim.audio import KEYS, MODES
from musicsim.explorer.mixing.beats import MAX_STRETCH
from musicsim.library import Song

MAX_ORDERED = 1000  # songs; the costs of all pairs then take 8 MB
_CHANGE_OF_MODE = 0.5
_UNKNOWN_KEY = 3.25  # mean distance of two random keys
_FIFTH_IN_OCTAVES = np.log2(MAX_STRETCH)
_UNKNOWN_TEMPO = 0.25 / _FIFTH_IN_OCTAVES  # the same for tempos, which are at most half an octave apart
_MAX_ROWS = 1000  # number of rows of all paths that are improved; the best path wins
_MAX_MOVED = 3  # songs that move together
_TINY = 1e-9


def order_for_mixing(songs: Sequence[Song]) -> list[Song]:
    """Return the songs on a short path that starts with the first one. Songs after :data:`MAX_ORDERED` stay last."""
    path = find_path(measure_steps(songs[:MAX_ORDERED]))
    return [*(songs[i] for i in path), *songs[MAX_ORDERED:]]


def measure_steps(songs: Sequence[Song]) -> Float64Array:
    """Return the cost of a step between any two songs, (n, n), symmetric."""
    octaves = np.array([np.log2(song.tempo) if song.tempo else np.nan for song in songs])
    tempos = _measure_around(octaves, 1.0) / _FIFTH_IN_OCTAVES
    return measure_keys(songs) + np.nan_to_num(tempos, nan=_UNKNOWN_TEMPO)


def measure_keys(songs: Sequence[Song]) -> Float64Array:
    """Return the distances between the keys of any two songs in fifths, (n, n)."""
    fifths = np.array([_count_fifths(song) for song in songs])
    modes = np.array([np.nan if song.mode is None else MODES.index(song.mode) for song in songs])
    keys = _measure_around(fifths, 12.0) + _CHANGE_OF_MODE * np.abs(np.subtract.outer(modes, modes))
    return np.nan_to_num(keys, nan=_UNKNOWN_KEY)


def _count_fifths(song: Song) -> float:
    """Return the position of a key on the circle of fifths, 0 for C major and A minor; nan if it is unknown."""
    if song.key is None or song.mode is None:
        return np.nan
    tonic = KEYS.index(song.key) + (3 if song.mode == "minor" else 0)
    return tonic * 7 % 12  # seven fifths are a semitone


def _measure_around(values: Float64Array, around: float) -> Float64Array:
    """Return the distances between values on a circle, (n, n)."""
    away = np.abs(np.subtract.outer(values, values)) % around
    return np.minimum(away, around - away)


def find_path(costs: Float64Array) -> list[int]:
    """Return a short path from row 0 through all rows of symmetric costs (n, n).

    Paths to the nearest unvisited row are improved by reversing parts (2-opt) and moving up to three rows (or-opt)
    until no change makes them shorter. Each starts with a different second row. The shortest path is not guaranteed.
    """
    n = len(costs)
    if n < 3:
        return list(range(n))
    steps = np.pad(costs, (0, 1))  # row n is the end of every path, and the step to it is free
    seconds = 1 + np.argsort(costs[0, 1:], kind="stable")[: max(_MAX_ROWS // n, 1)]
    paths = [_go_to_nearest(costs, int(second)) for second in seconds]
    for path in paths:
        while _reverse_parts(path, steps) or _move_parts(path, steps):
            pass
    best: list[int] = min(paths, key=lambda path: float(steps[path[:-1], path[1:]].sum())).tolist()
    return best[:-1]


def _go_to_nearest(costs: Float64Array, second: int) -> Int64Array:
    """Return a path that starts with rows 0 and `second`, and the end."""
    path, left = [0, second], np.ones(len(costs), bool)
    left[path] = False
    while left.any():
        path.append(int(np.where(left, costs[path[-1]], np.inf).argmin()))
        left[path[-1]] = False
    return np.array([*path, len(costs)])


def _reverse_parts(path: Int64Array, steps: Float64Array) -> bool:
    """Reverse the best part after each row if this makes the path shorter; return True if it changed."""
    is_shorter = False
    for i in range(len(path) - 3):
        first, last, after = path[i + 1], path[i + 1 : -1], path[i + 2 :]
        gains = steps[path[i], first] + steps[last, after] - steps[path[i], last] - steps[first, after]
        size = int(gains.argmax()) + 1
        if gains[size - 1] > _TINY:
            path[i + 1 : i + 1 + size] = path[i + 1 : i + 1 + size][::-1].copy()
            is_shorter = True
    return is_shorter


def _move_parts(path: Int64Array, steps: Float64Array) -> bool:
    """Move up to three rows to their best place if this makes the path shorter; return True if it changed."""
    is_shorter = False
    for size in range(1, _MAX_MOVED + 1):
        for start in range(1, len(path) - size):
            before, part, after = path[start - 1], path[start : start + size], path[start + size]
            freed = steps[before, part[0]] + steps[part[-1], after] - steps[before, after]
            rest = np.delete(path, slice(start, start + size))
            for moved in (part, part[::-1]):
                gains = freed + steps[rest[:-1], rest[1:]] - steps[rest[:-1], moved[0]] - steps[moved[-1], rest[1:]]
                place = int(gains.argmax())
                if gains[place] > _TINY:
                    path[:] = np.insert(rest, place + 1, moved)
                    is_shorter = True
                    break
    return is_shorter
