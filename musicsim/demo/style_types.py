"""Types for the styles of the demo collection, with scales and chord progressions.

Patterns are strings of steps, sixteen per bar: ``X`` strong, ``x`` normal, ``o`` soft, ``?`` sometimes, ``.`` silent. A
form is a string of letters, one per section: ``i`` intro, ``a`` and ``b`` main sections, ``k`` break, ``o`` outro, and
``s`` a drone alone, which the composer inserts. A part plays in the sections that its ``sections`` lists.
"""

from dataclasses import dataclass

SCALES: dict[str, tuple[int, ...]] = {
    "major": (0, 2, 4, 5, 7, 9, 11),
    "minor": (0, 2, 3, 5, 7, 8, 10),
    "dorian": (0, 2, 3, 5, 7, 9, 10),
    "mixolydian": (0, 2, 4, 5, 7, 9, 10),
    "lydian": (0, 2, 4, 6, 7, 9, 11),
    "phrygian": (0, 1, 3, 5, 7, 8, 10),
    "harmonic minor": (0, 2, 3, 5, 7, 8, 11),
}

# Progressions: scale degrees, one chord per bar.
POP_CHORDS = ((0, 4, 5, 3), (5, 3, 0, 4), (0, 5, 3, 4), (0, 3, 0, 4), (3, 0, 4, 5))
MINOR_CHORDS = ((0, 5, 2, 6), (0, 6, 5, 6), (0, 3, 5, 4), (0, 2, 6, 3), (0, 5, 3, 6))
STILL_CHORDS = ((0, 3), (0, 5), (0, 0, 3, 3), (0, 1), (0, 4, 3, 3))
FIFTHS_CHORDS = ((1, 4, 0, 5), (0, 5, 1, 4), (2, 5, 1, 4), (0, 3, 2, 5), (1, 4, 0, 0))
RIFF_CHORDS = ((0, 0, 5, 6), (0, 0, 3, 0), (0, 6, 0, 5), (0, 0, 0, 1))
CIRCLE_CHORDS = ((0, 3, 6, 2, 5, 1, 4, 0), (0, 4, 5, 2, 3, 0, 3, 4), (0, 3, 4, 0), (0, 5, 1, 4))


@dataclass(frozen=True, slots=True)
class Part:
    """One player's part: figure, instruments, register, level and position.

    ``figure`` is a generator of :mod:`musicsim.demo.composition`. ``voices`` are the instruments from which an artist
    chooses (for the figure "texture", texture names). ``chance`` is the probability that a song has this part.
    """

    figure: str
    voices: tuple[str, ...]
    register: int = 60
    level: float = 1.0
    pan: float = 0.0
    send: float = 0.3
    sections: str = "iabko"
    rhythms: tuple[str, ...] = ()
    chance: float = 1.0
    echo: float = 0.0
    duck: bool = False


@dataclass(frozen=True, slots=True)
class Style:
    """A style; ``taste`` is its position for listeners (energy, electronic, dark, vintage: 0-1).

    ``balance_db`` is the typical spectrum of its records, in octaves from 63 Hz to 8 kHz. ``noise_db`` is the range of
    noise floors, relative to full scale. ``still`` lists the instruments of drone sections.
    """

    name: str
    tempo: tuple[float, float]
    scales: tuple[str, ...]
    progressions: tuple[tuple[int, ...], ...]
    parts: tuple[Part, ...]
    forms: tuple[str, ...]
    taste: tuple[float, float, float, float]
    years: tuple[int, int]
    moods: tuple[str, ...]
    words: tuple[str, ...]
    beats: int = 4
    chord_tones: int = 3
    swing: tuple[float, float] = (0.0, 0.0)
    swing_unit: float = 0.5
    room_s: tuple[float, float] = (0.8, 1.6)
    loudness: float = 0.12
    kits: tuple[str, ...] = ()
    grooves: tuple[tuple[tuple[str, str], ...], ...] = ()
    drum_sections: str = "abo"
    drum_level: float = 1.0
    balance_db: tuple[float, ...] = (-9.0, -8.0, -7.0, -8.0, -10.0, -14.0, -18.0, -24.0)
    noise_db: tuple[float, float] = (-80.0, -65.0)
    still: tuple[str, ...] = ("warm pad",)
