"""What a style of the demo collection is made of: the records, the scales and the progressions.

Patterns are strings of steps, sixteen to a bar: ``X`` strong, ``x`` plain, ``o`` soft, ``?`` now and then,
``.`` silent. A form is a row of letters, one for each section: ``i`` intro, ``a`` and ``b`` main parts,
``k`` break, ``o`` outro, ``s`` a drone alone (put in by the composer); a part plays in the sections named in
its ``sections``.
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

# Progressions: scale degrees, one chord a bar unless the style says otherwise.
POP_CHORDS = ((0, 4, 5, 3), (5, 3, 0, 4), (0, 5, 3, 4), (0, 3, 0, 4), (3, 0, 4, 5))
MINOR_CHORDS = ((0, 5, 2, 6), (0, 6, 5, 6), (0, 3, 5, 4), (0, 2, 6, 3), (0, 5, 3, 6))
STILL_CHORDS = ((0, 3), (0, 5), (0, 0, 3, 3), (0, 1), (0, 4, 3, 3))
FIFTHS_CHORDS = ((1, 4, 0, 5), (0, 5, 1, 4), (2, 5, 1, 4), (0, 3, 2, 5), (1, 4, 0, 0))
RIFF_CHORDS = ((0, 0, 5, 6), (0, 0, 3, 0), (0, 6, 0, 5), (0, 0, 0, 1))
CIRCLE_CHORDS = ((0, 3, 6, 2, 5, 1, 4, 0), (0, 4, 5, 2, 3, 0, 3, 4), (0, 3, 4, 0), (0, 5, 1, 4))


@dataclass(frozen=True, slots=True)
class Part:
    """One player: which figure, on which instruments, how high, how loud, where.

    ``figure`` names a generator of :mod:`musicsim.demo.composition`, ``voices`` are instruments an
    artist chooses from (texture names for the figure "texture"), ``chance`` is the probability that
    a song has the part at all.
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
    """One row of the table; ``taste`` places it for the listeners (energy, electronic, dark, vintage: 0-1).

    ``balance_db`` is how a finished record of the style spreads its power over octaves (63 Hz to 8 kHz),
    ``noise_db`` the range of noise floors (full scale 0), ``still`` the instruments of held passages.
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
