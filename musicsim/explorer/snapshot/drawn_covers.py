"""Covers drawn from sound, for songs without a picture.

A cover depends on its song only, so it never changes: neither when the library grows, nor when a model is trained. The
color is that of the song's brightness and energy, which is also its color on the map. The tempo selects one of four
motifs, which are all drawn from the waveform. Songs without a beat get rings on water, and slow songs get hills below a
moon. Songs of medium tempo get a sun, and fast songs get a grid of dots. Lively songs have more lines than calm ones.
Loudness, key and mode determine shades and places.
"""

import math
from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from musicsim._arrays import Float32Array, Float64Array
from musicsim.audio import DESCRIPTORS, KEYS, MODES
from musicsim.explorer.snapshot.sound_colors import Shade, sound_of
from musicsim.library import Song

_SIZE = 96
_MEDIUM, _FAST = 108.0, 138.0  # beats per minute; about a third of songs with a beat are below, between and above
_MIN_RANGE = 0.25  # minimum range of levels, so that steady music gets even lines
_UNKNOWN = Shade(0.52, 0.04, 250)  # slate, for songs without descriptors
_DEEPER = (0.18, 0.08)  # how much darker the deep end of the background is: quiet to loud
_SHIFT = 38.0  # largest difference between the hues of both ends, in degrees; the key determines it


def draw_cover(song: Song, outline: Float32Array) -> bytes:
    """Return an SVG image of a song's sound, given its waveform outline (n_bins,) in [0, 1], which may be empty."""
    sound = sound_of(song.brightness, song.energy)
    near = sound.shade if sound else _UNKNOWN
    turn = _turn_of(song)
    deeper = np.interp(_share(song, "loudness"), (0, 1), _DEEPER)
    shift = _SHIFT * (2 * turn if turn < 0.5 else 2 * turn - 2)  # keys with sharps and keys with flats
    far = Shade(near.lightness - float(deeper), near.chroma, (near.hue + shift) % 360)
    # light falls from above in major, and from below in minor
    ends = (far, near) if song.mode == MODES[1] else (near, far)
    light, deep = (shade.hex() for shade in ends)
    motif = _rings if song.tempo is None else _hills if song.tempo < _MEDIUM else _sun if song.tempo < _FAST else _dots
    drawn = motif(outline, _share(song, "energy"), turn, far)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_SIZE} {_SIZE}" width="320" height="320">'
        f'<linearGradient id="g" x2=".6" y2="1"><stop stop-color="{light}"/><stop offset="1" stop-color="{deep}"/>'
        f'</linearGradient><path fill="url(#g)" d="M0 0h{_SIZE}v{_SIZE}H0z"/>'
        f'<g fill="none" stroke="#fff" stroke-linecap="round">{drawn}</g></svg>'
    ).encode()


def _share(song: Song, name: str) -> float:
    """Return where a descriptor is on its scale, 0 to 1; the middle if it is unknown."""
    low, high = DESCRIPTORS[name].ends
    value = getattr(song, name)
    return 0.5 if value is None else min(1.0, max(0.0, (value - low) / (high - low)))


def _turn_of(song: Song) -> float:
    """Return the place of the song's key on the circle of fifths, as a share of a turn; 0 if it is unknown."""
    return 7 * KEYS.index(song.key) % len(KEYS) / len(KEYS) if song.key in KEYS else 0.0


def _levels(outline: Float32Array, n: int) -> Float64Array:
    """Return the mean level of n equal parts of the song, stretched to the range from 0 to 1."""
    ends = np.linspace(0, len(outline), n + 1).astype(int)
    level = np.array([outline[a : max(b, a + 1)].mean() if a < len(outline) else 0.5 for a, b in pairwise(ends)])
    low, high = np.percentile(level, (5, 95))
    return np.clip(1 - (high - level) / max(high - low, _MIN_RANGE), 0, 1)


def _path(parts: Iterable[str], width: float, opacity: float) -> str:
    return f'<path d="{"".join(parts)}" stroke-width="{width:.2g}" stroke-opacity="{opacity:.2g}"/>'


def _sun(outline: Float32Array, energy: float, _turn: float, _far: Shade) -> str:
    """Draw rays, clockwise from the top, where the song starts."""
    n = 20 + round(20 * energy)
    angle = 2 * np.pi * np.arange(n) / n
    places = zip(3 + 23 * _levels(outline, n), np.sin(angle), -np.cos(angle), strict=True)
    rays = (f"M{48 + 15 * x:.1f} {48 + 15 * y:.1f}l{length * x:.1f} {length * y:.1f}" for length, x, y in places)
    return '<circle cx="48" cy="48" r="9" fill="#fff" fill-opacity=".92" stroke="none"/>' + _path(rays, 54 / n, 0.92)


def _rings(outline: Float32Array, energy: float, turn: float, _far: Shade) -> str:
    """Draw rings around a place that the key determines; the song starts in the middle."""
    n = 8 + round(5 * energy)
    x, y = 48 + 14 * math.sin(2 * math.pi * turn), 48 - 14 * math.cos(2 * math.pi * turn)
    step = 62 / n
    looks = [((0.06 + 0.44 * level) * step, 0.92 - 0.5 * i / n) for i, level in enumerate(_levels(outline, n).tolist())]
    return "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{(i + 0.5) * step:.1f}" stroke-width="{width:.2f}"'
        f' stroke-opacity="{opacity:.2f}"/>'
        for i, (width, opacity) in enumerate(looks)
    )


def _hills(outline: Float32Array, energy: float, turn: float, far: Shade) -> str:
    """Draw a range of hills per part of the song, the last one in front; the key places the moon."""
    n_ranges, n_points = 4, 8 + round(10 * energy)
    levels = _levels(outline, n_ranges * n_points).reshape(n_ranges, n_points)
    x = np.linspace(-4, 100, n_points)
    made = [f'<circle cx="{20 + 56 * turn:.1f}" cy="22" r="8" fill="#fff" fill-opacity=".92" stroke="none"/>']
    for i, heights in enumerate(levels):
        y = 58 + 11 * i - (26 - 3 * i) * heights
        fill = Shade(far.lightness + 0.07 - 0.06 * i, far.chroma, far.hue).hex()
        line = f"M{x[0]:.0f} {y[0]:.1f}" + "".join(
            f"Q{a:.1f} {b:.1f} {(a + c) / 2:.1f} {(b + d) / 2:.1f}"
            for (a, b), (c, d) in pairwise(zip(x, y, strict=True))
        )
        made.append(f'<path d="{line}L100 {y[-1]:.1f}V100H-4z" fill="{fill}" stroke-width="1" stroke-opacity=".8"/>')
    return "".join(made)


def _dots(outline: Float32Array, energy: float, _turn: float, _far: Shade) -> str:
    """Draw a grid of dots, read like a page; loud moments are large."""
    n = 6 + round(4 * energy)
    step = 76 / n
    widths = np.round((0.12 + 0.7 * _levels(outline, n * n)) * step, 0)
    rows, columns = np.divmod(np.arange(n * n), n)
    return "".join(
        _path(
            (
                f"M{10 + (column + 0.5) * step:.1f} {10 + (row + 0.5) * step:.1f}h0"
                for row, column in zip(rows[widths == width], columns[widths == width], strict=True)
            ),
            width,
            0.92,
        )
        for width in np.unique(widths).tolist()
    )
