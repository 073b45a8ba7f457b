"""A color for the sound of a song, for covers and for the map.

Calm songs have cool colors and lively songs warm ones; dark songs have deep colors and bright songs light ones. The
color depends on two values of the song only, on the scales of :mod:`musicsim.explorer.snapshot.sound_words`, so it
never changes. The page ``docs/listen/files.md`` shows the colors.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from musicsim._arrays import FloatingArray, Int64Array
from musicsim.audio import DESCRIPTORS

# In OKLCH (Ottosson 2020), equal lightness and equal steps of the hue look equal. Hues are in degrees: rows are calm to
# lively songs, columns are dark to bright songs. Neighbors have similar hues, except for the one in the middle.
_HUES = ((285, 255, 220), (330, 185, 140), (20, 55, 90))
_LIGHTNESS = (0.5, 0.59, 0.65)  # dark to bright; white lines are visible on each
_CHROMA = 0.15
_MIDDLE = "in between"
_RGB_OF_LMS = (
    (4.0767416621, -3.3077115913, 0.2309699292),
    (-1.2684380046, 2.6097574011, -0.3413193965),
    (-0.0041960863, -0.7034186147, 1.7076147010),
)
_LMS_OF_LAB = (
    (1.0, 0.3963377774, 0.2158037573),
    (1.0, -0.1055613458, -0.0638541728),
    (1.0, -0.0894841775, -1.2914855480),
)


class Shade(NamedTuple):
    """A color: lightness (0 to 1), chroma (0 is gray) and hue (degrees)."""

    lightness: float
    chroma: float
    hue: float

    def hex(self) -> str:
        """Return the color for HTML; a color that a screen cannot show is made grayer."""
        return _hex(*self)


@cache
def _hex(lightness: float, chroma: float, hue: float) -> str:
    while True:
        lab = [lightness, chroma * np.cos(np.radians(hue)), chroma * np.sin(np.radians(hue))]
        rgb = np.array(_RGB_OF_LMS) @ (np.array(_LMS_OF_LAB) @ lab) ** 3
        if chroma <= 0 or (rgb.min() >= 0 and rgb.max() <= 1):
            break
        chroma -= 0.005
    rgb = rgb.clip(0, 1)
    coded = np.where(rgb <= 0.0031308, 12.92 * rgb, 1.055 * rgb ** (1 / 2.4) - 0.055)
    return "#" + "".join(f"{round(255 * part):02x}" for part in coded.tolist())


class SoundKind(NamedTuple):
    """A kind of sound."""

    name: str  # such as "dark, calm"
    shade: Shade


def _list_sounds() -> tuple[SoundKind, ...]:
    (bright, dark), (lively, calm) = DESCRIPTORS["brightness"].words, DESCRIPTORS["energy"].words
    return tuple(
        SoundKind(", ".join(filter(None, (tone, pace))) or _MIDDLE, Shade(lightness, _CHROMA, hue))
        for pace, hues in zip((calm, "", lively), _HUES, strict=True)
        for tone, lightness, hue in zip((dark, "", bright), _LIGHTNESS, hues, strict=True)
    )


SOUNDS = _list_sounds()
"""All kinds of sounds, from dark and calm to bright and lively."""


def sound_codes(brightness: FloatingArray, energy: FloatingArray) -> Int64Array:
    """Return the index in :data:`SOUNDS` of each song; -1 if its brightness or energy is unknown (nan)."""
    column, row = (
        (values > low).astype(np.int64) + (values >= high)
        for values, (low, high) in ((brightness, DESCRIPTORS["brightness"].ends), (energy, DESCRIPTORS["energy"].ends))
    )
    return np.where(np.isnan(brightness) | np.isnan(energy), -1, len(_LIGHTNESS) * row + column)


def sound_of(brightness: float | None, energy: float | None) -> SoundKind | None:
    """Return the kind of sound of a song; None if its brightness or energy is unknown."""
    values = [np.array([np.nan if value is None else value]) for value in (brightness, energy)]
    code = int(sound_codes(*values)[0])
    return SOUNDS[code] if code >= 0 else None
