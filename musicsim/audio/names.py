"""Names and texts of descriptors, for options and columns; importing them does not load the code that computes them.

``docs/research/descriptors.md`` explains how to add a descriptor.
"""

from collections.abc import Mapping
from dataclasses import dataclass

KEYS = ("C", "C#", "D", "Eb", "E", "F", "F#", "G", "Ab", "A", "Bb", "B")
MODES = ("major", "minor")


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A number that describes the sound of a song, with the texts about it in filters, tables, rules and maps.

    Examples
    --------
    >>> from musicsim.audio import DESCRIPTORS
    >>> tempo = DESCRIPTORS["tempo"]
    >>> tempo.unit, tempo.words, tempo.ends  # above 150 beats per minute, a song is called fast
    ('beats/min', ('fast', 'slow'), (90.0, 150.0))
    """

    about: str
    unit: str
    words: tuple[str, str]  # for songs with a high or a low value, the same in every library
    comparatives: tuple[str, str]
    # largest value that gets the lower word, and smallest value that gets the upper word; see
    # docs/research/descriptors.md for the sources of the scales
    ends: tuple[float, float]
    heading: str  # of a narrow column
    digits: int = 0  # in tables
    is_pace: bool = False  # a region of the map is not called both calm and loud, or both slow and lively
    value: str = ""  # what songs without it lack; "a known loudness" by default
    # if listeners know the unit: the unit in words. The filter and the meaning of words then name it.
    familiar_unit: str = ""


DESCRIPTORS: Mapping[str, Descriptor] = {
    "tempo": Descriptor(
        "In beats per minute; unknown if no beat was found.", "beats/min", ("fast", "slow"), ("faster", "slower"),
        (90.0, 150.0), "tempo", is_pace=True, value="a beat", familiar_unit="beats per minute",
    ),
    "loudness": Descriptor(
        "In LUFS; higher is louder.", "LUFS", ("loud", "quiet"), ("louder", "quieter"), (-23.0, -12.0), "LUFS",
        digits=1, is_pace=True,
    ),
    "brightness": Descriptor(
        "Centroid of the spectrum, in Hz.", "Hz", ("bright", "dark"), ("brighter", "darker"), (1400.0, 2700.0), "bright"
    ),
    "energy": Descriptor(
        "Average rise of the level, in dB per second.", "dB/s", ("lively", "calm"), ("livelier", "calmer"),
        (75.0, 125.0), "energy", is_pace=True,
    ),
    "steadiness": Descriptor(
        "Percentage of the rhythm that keeps to one tempo, its half or its double.", "%", ("steady", "floating"),
        ("steadier", "more floating"), (30.0, 80.0), "steady",
    ),
}  # fmt: skip
"""The numeric descriptors by name. Columns, filters, colors, sort orders, rules and tables follow them."""


@dataclass(frozen=True, slots=True)
class Descriptors:
    """Descriptors of a song; unknown descriptors are None.

    Examples
    --------
    >>> from musicsim.audio import Descriptors
    >>> song = Descriptors(tempo=120.0, key="C", mode="major")
    >>> song.tempo, song.loudness
    (120.0, None)
    """

    # Beats per minute, 42 to 240 for most songs. It may be half or twice the tempo that people tap.
    tempo: float | None = None
    key: str | None = None  # the tonic, one of `KEYS`
    mode: str | None = None  # one of `MODES`
    # Gated loudness of the mono mix in LUFS. It is a few dB lower than on a meter, because the levels are smoothed.
    loudness: float | None = None
    brightness: float | None = None  # centroid of the mean magnitude spectrum, Hz
    # Sum of all rises in level within a second, in dB, averaged over the mel bands. It is high for many hard attacks
    # and low for held tones, and independent of loudness.
    energy: float | None = None
    steadiness: float | None = None  # percentage of the tempo histogram that is at the tempo, its half or its double
