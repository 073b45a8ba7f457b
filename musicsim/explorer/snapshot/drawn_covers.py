"""Covers drawn from sound, for songs without a picture: the waveform around a disc, in the color of the region."""

import colorsys
from itertools import pairwise

import numpy as np

from musicsim.explorer.snapshot.map_columns import PALETTE, UNKNOWN_COLOUR
from musicsim.explorer.snapshot.snapshot import Snapshot

_N_RAYS = 24
_MIN_RANGE = 0.25  # minimum range of levels, so that steady music gets even rays
_DISC, _RAY = 15, 26  # radius of the disc, and length of the longest ray; the picture is 96 wide
_SHIFTS = (-0.07, 0.05, 0.09, -0.03)  # hue shifts that distinguish the small regions within a large one


def draw_cover(snapshot: Snapshot, song_id: int) -> bytes:
    """Return an SVG image of a song's sound and region. Raises NotFoundError for an unknown song."""
    light, deep = _colors(snapshot, song_id)
    rays = "".join(
        f"M{48 + _DISC * x:.1f} {48 + _DISC * y:.1f}l{length * x:.1f} {length * y:.1f}"
        for length, x, y in _rays(snapshot.library.outline(song_id))
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 96 96" width="320" height="320">'
        f'<linearGradient id="g" x2="1" y2="1"><stop stop-color="{light}"/><stop offset="1" stop-color="{deep}"/>'
        '</linearGradient><path fill="url(#g)" d="M0 0h96v96H0z"/>'
        f'<path d="{rays}" stroke="#fff" stroke-opacity=".9" stroke-width="3.4" stroke-linecap="round"/></svg>'
    ).encode()


def _rays(outline: np.ndarray) -> list[tuple[float, float, float]]:
    """Return the length and direction of each ray, clockwise from the top, where the song starts."""
    ends = np.linspace(0, len(outline), _N_RAYS + 1).astype(int)
    level = np.array([outline[a:b].mean() if b > a else 0.0 for a, b in pairwise(ends)])
    share = 1 - (level.max() - level) / max(level.max() - level.min(), _MIN_RANGE)
    angle = 2 * np.pi * np.arange(_N_RAYS) / _N_RAYS
    return list(zip(2 + _RAY * share, np.sin(angle), -np.cos(angle), strict=True))


def _colors(snapshot: Snapshot, song_id: int) -> tuple[str, str]:
    """Return a light and a deep shade of the map's color for the song's region."""
    row = int(snapshot.rows_of([song_id])[0])
    labels = [int(snapshot.clusters[size][row]) for size in sorted(snapshot.clusters, key=int)] if row >= 0 else []
    large, small = [*labels, -1, -1][:2]
    color = PALETTE[large % len(PALETTE)] if large >= 0 else UNKNOWN_COLOUR
    hue, _, saturation = colorsys.rgb_to_hls(*(int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)))
    saturation = min(saturation, 0.6)
    return _hex(hue + _SHIFTS[small % len(_SHIFTS)], 0.55, saturation), _hex(hue, 0.34, saturation)


def _hex(hue: float, lightness: float, saturation: float) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in colorsys.hls_to_rgb(hue % 1, lightness, saturation))
