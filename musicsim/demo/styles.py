"""The styles of the demo collection, acoustic and electronic, with their scales and chord progressions.

Patterns are strings of steps, sixteen per bar: ``X`` strong, ``x`` normal, ``o`` soft, ``?`` sometimes, ``.`` silent. A
form is a string of letters, one per section: ``i`` intro, ``a`` and ``b`` main sections, ``k`` break, ``o`` outro, and
``s`` only a drone, which the composer inserts. A part plays in the sections listed in its ``sections``.
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

# Chord progressions: one chord per bar, given as a scale degree.
POP_CHORDS = ((0, 4, 5, 3), (5, 3, 0, 4), (0, 5, 3, 4), (0, 3, 0, 4), (3, 0, 4, 5))
MINOR_CHORDS = ((0, 5, 2, 6), (0, 6, 5, 6), (0, 3, 5, 4), (0, 2, 6, 3), (0, 5, 3, 6))
STILL_CHORDS = ((0, 3), (0, 5), (0, 0, 3, 3), (0, 1), (0, 4, 3, 3))
FIFTHS_CHORDS = ((1, 4, 0, 5), (0, 5, 1, 4), (2, 5, 1, 4), (0, 3, 2, 5), (1, 4, 0, 0))
RIFF_CHORDS = ((0, 0, 5, 6), (0, 0, 3, 0), (0, 6, 0, 5), (0, 0, 0, 1))
CIRCLE_CHORDS = ((0, 3, 6, 2, 5, 1, 4, 0), (0, 4, 5, 2, 3, 0, 3, 4), (0, 3, 4, 0), (0, 5, 1, 4))


@dataclass(frozen=True, slots=True)
class Part:
    """One player's part: figure, instruments, register, level and stereo position.

    ``figure`` is a name in :data:`musicsim.demo.composition.FIGURES`, or "texture". ``voices`` are the instruments (or
    textures) from which an artist chooses. ``chance`` is the probability that a song has this part.
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
    """A style; ``taste`` is its position in taste space (energy, electronic, dark, vintage; each 0-1).

    ``balance_db`` is the typical spectrum of its records, in octaves from 63 Hz to 8 kHz. ``noise_db`` is the range of
    noise floors, relative to full scale. ``still`` lists the instruments for drone sections.
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


FOLK = Style(
    "Folk", (88, 118), ("major", "mixolydian", "dorian"), POP_CHORDS,
    (
        Part("fingerpick", ("steel guitar", "nylon guitar"), 58, 1.0, -0.15, 0.2),
        Part(
            "strum", ("steel guitar", "nylon guitar"), 58, 0.6, 0.35, 0.2, "b",
            ("x..xx.xx.xxxx.x.", "x...x.xxx...x.xx"), chance=0.7,
        ),
        Part("melody", ("flute", "violin", "melodica", "steel guitar"), 74, 0.6, 0.2, 0.35, "abo", chance=0.85),
        Part(
            "bass", ("upright bass", "finger bass"), 38, 0.7, 0.0, 0.08, "ab",
            ("x.......x.......", "x.......x.....x."), chance=0.6,
        ),
        Part("hold", ("cello", "string pad"), 55, 0.3, -0.3, 0.4, "bk", chance=0.4),
    ),
    ("iab", "iaba", "abk", "abka"), (0.35, 0.05, 0.25, 0.7), (1964, 2022), ("calm", "warm", "acoustic"),
    ("folk", "acoustic guitar", "singer-songwriter", "fingerstyle"), room_s=(0.6, 1.3), loudness=0.1,
    balance_db=(-20, -9, -6, -6, -8, -12, -18, -24), noise_db=(-76, -62),
    still=("cello", "melodica", "string pad"), kits=("brushes", "latin"),
    grooves=(
        (("shaker", "x.o.x.o.x.o.x.o."),), (("kick", "x.......x......."), ("rim", "....o.......o...")), (),
    ),
    drum_sections="b", drum_level=0.5,
)  # fmt: skip
BAROQUE = Style(
    "Baroque", (84, 116), ("major", "harmonic minor", "minor"), CIRCLE_CHORDS,
    (
        Part("running", ("harpsichord", "harpsichord", "nylon guitar"), 72, 0.8, 0.2, 0.3, "iabk"),
        Part("broken", ("harpsichord", "harp", "pipe organ"), 55, 0.5, -0.2, 0.3, "abo"),
        Part("hold", ("string pad", "violin", "pipe organ"), 64, 0.4, -0.3, 0.45, "bko", chance=0.8),
        Part("walk", ("cello", "harpsichord"), 43, 0.65, 0.1, 0.3, "abo"),
        Part("melody", ("violin", "flute", "pipe organ"), 76, 0.5, 0.3, 0.4, "bk", chance=0.7),
    ),
    ("iab", "aabo", "abka", "akb"), (0.3, 0.0, 0.3, 1.0), (1958, 2016), ("elegant", "calm", "bright"),
    ("baroque", "classical", "harpsichord", "strings"), room_s=(1.4, 2.6), loudness=0.095,
    balance_db=(-22, -9, -7, -6, -8, -10, -14, -20), noise_db=(-80, -66),
    still=("pipe organ", "string pad", "violin"),
)  # fmt: skip
PIANO = Style(
    "Solo Piano", (60, 98), ("major", "minor", "dorian"), POP_CHORDS + MINOR_CHORDS,
    (
        Part("broken", ("grand piano", "felt piano"), 52, 0.8, -0.1, 0.35, "iabk"),
        Part("melody", ("grand piano", "felt piano"), 74, 1.0, 0.1, 0.4, "abo"),
        Part("hold", ("grand piano", "felt piano", "string pad"), 60, 0.4, 0.0, 0.45, "bko", chance=0.7),
        Part("texture", ("hiss", "rain"), level=0.05, chance=0.3),
    ),
    ("iab", "iabo", "abka", "iakb"), (0.12, 0.05, 0.4, 0.6), (1960, 2024), ("calm", "melancholy", "intimate"),
    ("piano", "solo piano", "classical", "instrumental"), chord_tones=4, room_s=(1.2, 2.8), loudness=0.085,
    balance_db=(-24, -8, -4, -7, -12, -19, -28, -36), noise_db=(-78, -62),
    still=("string pad", "warm pad", "cello"),
)  # fmt: skip
JAZZ = Style(
    "Jazz", (112, 190), ("major", "dorian", "mixolydian"), FIFTHS_CHORDS,
    (
        Part("walk", ("upright bass", "upright bass", "finger bass"), 40, 0.95, -0.1, 0.1, "abok"),
        Part(
            "comp", ("grand piano", "electric piano", "nylon guitar"), 60, 0.6, 0.3, 0.2, "iabo",
            ("x.....x.....o...", "..x.....x..x....", "x..x........x...", "......x.x......x"),
        ),
        Part("melody", ("saxophone", "vibraphone", "grand piano", "flute"), 70, 0.8, -0.2, 0.3, "abk"),
    ),
    ("iab", "abka", "aabo", "iakb"), (0.45, 0.05, 0.4, 0.9), (1954, 2020), ("warm", "groovy", "sophisticated"),
    ("jazz", "swing", "upright bass", "improvisation"), chord_tones=4, swing=(0.1, 0.17), swing_unit=1.0,
    room_s=(0.6, 1.2), loudness=0.1, balance_db=(-11, -7, -5, -6, -10, -17, -22, -25), noise_db=(-74, -60),
    still=("saxophone", "organ", "cello"), kits=("brushes", "acoustic"),
    grooves=(
        (
            ("ride", "x...x..xx...x..x"), ("hat", "....x.......x..."), ("kick", "o.......o......."),
            ("snare", "...?..?....?..?."),
        ),
        (("ride", "x...x..xx...x..x"), ("hat", "....x.......x..."), ("rim", "............x...")),
        (("snare", "x.o.x.oox.o.x.oo"), ("hat", "....x.......x..."), ("kick", "o.......o.......")),
    ),
    drum_level=0.75,
)  # fmt: skip
ROCK = Style(
    "Rock", (108, 152), ("minor", "mixolydian", "major"), POP_CHORDS + RIFF_CHORDS,
    (
        Part(
            "chug", ("electric guitar",), 45, 0.75, -0.55, 0.12, "abk",
            ("x.x.x.x.x.x.x.x.", "xx.xx.x.xx.xx.x.", "x.......x.xxx...", "x..x..x.x..x..x."),
        ),
        Part("chug", ("electric guitar",), 45, 0.7, 0.55, 0.12, "bo", ("x.x.x.x.x.x.x.x.", "x.......x.......")),
        Part(
            "bass", ("finger bass", "synth bass"), 36, 0.9, 0.0, 0.03, "abo",
            ("x.x.x.x.x.x.x.x.", "x..xx.x.x..xx.x."),
        ),
        Part("melody", ("lead guitar", "organ", "saw lead"), 70, 0.55, 0.1, 0.35, "bk", chance=0.8),
        Part("fingerpick", ("steel guitar", "muted guitar"), 58, 0.7, 0.2, 0.3, "ik", chance=0.6),
    ),
    ("iab", "abkb", "iabk", "aabk"), (0.85, 0.2, 0.55, 0.6), (1967, 2020), ("energetic", "loud", "driving"),
    ("rock", "electric guitar", "distortion", "band"), room_s=(0.6, 1.4), loudness=0.15,
    balance_db=(-9, -7, -8, -8, -9, -11, -14, -19), noise_db=(-76, -62), still=("organ", "string pad", "reese"),
    kits=("rock", "acoustic"),
    grooves=(
        (
            ("kick", "X.......X.x....."), ("snare", "....X.......X..."), ("hat", "x.x.x.x.x.x.x.x."),
            ("crash", "?..............."),
        ),
        (("kick", "X..x..x.X..x...."), ("snare", "....X.......X..o"), ("ride", "x...x...x...x...")),
        (
            ("kick", "X...x...X...x..."), ("snare", "....X.......X..."), ("tom", "..........?.?.x."),
            ("hat", "x...x...x...x..."),
        ),
    ),
)  # fmt: skip
CHORAL = Style(
    "Choral", (58, 80), ("major", "minor", "dorian"), POP_CHORDS + CIRCLE_CHORDS,
    (
        Part("hold", ("choir", "low choir"), 62, 1.0, -0.15, 0.6, "iabko"),
        Part("melody", ("choir", "violin", "flute"), 74, 0.55, 0.2, 0.6, "abk", chance=0.85),
        Part("bassline", ("low choir", "pipe organ", "cello"), 43, 0.6, 0.0, 0.5, "abko"),
        Part("broken", ("harp", "pipe organ", "grand piano"), 60, 0.35, 0.3, 0.5, "b", chance=0.4),
    ),
    ("iab", "abo", "abk", "aab"), (0.08, 0.1, 0.4, 0.95), (1956, 2020), ("calm", "spacious", "solemn"),
    ("choral", "choir", "voices", "sacred"), room_s=(2.4, 4.2), loudness=0.085,
    balance_db=(-26, -20, -8, -3, -7, -19, -30, -38), noise_db=(-76, -62),
    still=("choir", "low choir", "pipe organ"),
)  # fmt: skip
BOSSA = Style(
    "Bossa Nova", (112, 142), ("major", "dorian", "lydian"), FIFTHS_CHORDS,
    (
        Part(
            "comp", ("nylon guitar",), 58, 0.9, -0.15, 0.15, "iabko",
            ("x..x..x...x..x..", "x.xx..x.x..x..x.", "..x..x..x.x..x.."),
        ),
        Part(
            "bass", ("upright bass", "finger bass"), 38, 0.85, 0.0, 0.06, "abo",
            ("x.....x.x.....x.", "x.......x......x"),
        ),
        Part("melody", ("flute", "saxophone", "vibraphone", "nylon guitar"), 72, 0.7, 0.2, 0.3, "abk"),
        Part("hold", ("string pad", "electric piano"), 62, 0.25, -0.3, 0.4, "bk", chance=0.5),
    ),
    ("iab", "abka", "aabo", "iaba"), (0.4, 0.1, 0.15, 0.8), (1959, 2018), ("warm", "happy", "groovy"),
    ("bossa nova", "latin", "acoustic guitar", "brazil"), chord_tones=4, room_s=(0.5, 1.1), loudness=0.1,
    balance_db=(-12, -7, -5, -8, -10, -15, -20, -26), noise_db=(-74, -60),
    still=("string pad", "flute", "melodica"), kits=("latin", "brushes"),
    grooves=(
        (("shaker", "xoxoxoxoxoxoxoxo"), ("rim", "x..x..x...x..x.."), ("kick", "x.....x.x.....x.")),
        (("hat", "x.x.x.x.x.x.x.x."), ("rim", "x..x..x....x..x."), ("kick", "x.....x.x.....x.")),
        (("shaker", "x.oxx.oxx.oxx.ox"), ("kick", "o.....o.o.....o.")),
    ),
    drum_level=0.65,
)  # fmt: skip
AMBIENT = Style(
    "Ambient", (58, 82), ("lydian", "dorian", "major"), STILL_CHORDS,
    (
        Part("hold", ("warm pad", "glass pad", "string pad", "choir"), 60, 1.0, -0.1, 0.6),
        Part("drone", ("warm pad", "low choir", "reese"), 40, 0.6, 0.0, 0.4, chance=0.8),
        Part("sparse", ("bell", "harp", "vibraphone", "felt piano"), 76, 0.6, 0.3, 0.8, "abk", echo=0.4),
        Part("arp", ("glass pad", "harp", "synth pluck"), 67, 0.35, -0.4, 0.7, "b", chance=0.5, echo=0.4),
        Part("texture", ("wind", "rain", "hiss"), level=0.22, sections="iako", chance=0.8),
    ),
    ("iabo", "iako", "aab", "iakb"), (0.05, 0.7, 0.45, 0.3), (1978, 2024), ("calm", "dreamy", "spacious"),
    ("ambient", "drone", "electronic", "pads"), chord_tones=4, room_s=(2.6, 4.2), loudness=0.085,
    balance_db=(-20, -15, -5, -5, -10, -18, -26, -33), noise_db=(-84, -68),
    still=("warm pad", "string pad", "choir"),
)  # fmt: skip
HOUSE = Style(
    "House", (118, 127), ("minor", "dorian", "mixolydian"), MINOR_CHORDS,
    (
        Part(
            "bass", ("synth bass", "sub bass", "triangle bass"), 38, 1.0, 0.0, 0.02, "abo",
            ("..x...x...x...x.", "x..x..x...x..x..", "..xx..x...xx..x."), duck=True,
        ),
        Part(
            "comp", ("electric piano", "organ", "stab", "grand piano"), 62, 0.7, 0.2, 0.3, "iabk",
            ("x..x..x..x..x...", "..x..x....x..x..", "x.....x..x......"), duck=True,
        ),
        Part("hold", ("string pad", "warm pad", "choir"), 64, 0.45, -0.2, 0.5, "bko", chance=0.8, duck=True),
        Part(
            "melody", ("synth pluck", "saw lead", "vibraphone", "organ"), 74, 0.55, -0.3, 0.4, "bk", chance=0.8,
            echo=0.35,
        ),
    ),
    ("iabk", "iaba", "iakb", "abkb"), (0.75, 0.9, 0.3, 0.35), (1986, 2024), ("energetic", "happy", "groovy"),
    ("house", "dance", "electronic", "four on the floor"), chord_tones=4, swing=(0.0, 0.1), room_s=(0.7, 1.4),
    loudness=0.15, balance_db=(-5, -5, -7, -12, -15, -19, -20, -21), noise_db=(-88, -76),
    still=("string pad", "warm pad", "organ"), kits=("909", "808", "techno"),
    grooves=(
        (
            ("kick", "X...X...X...X..."), ("clap", "....x.......x..."), ("open", "..x...x...x...x."),
            ("hat", "x?o?x?o?x?o?x?o?"), ("shaker", "o.oxo.oxo.oxo.ox"),
        ),
        (
            ("kick", "X...X...X...X..?"), ("snare", "....x.......x.o."), ("hat", "..x...x...x.o.x."),
            ("rim", "...x..x....x...?"),
        ),
    ),
)  # fmt: skip
TECHNO = Style(
    "Techno", (126, 140), ("phrygian", "minor"), RIFF_CHORDS,
    (
        Part(
            "riff", ("acid", "synth bass", "growl"), 38, 0.85, 0.0, 0.05, "abk",
            ("x.xx.xx.x.xx.xxx", "xxx.xxx.xx.xxx.x", "..xx..xx..xx.xxx"), duck=True,
        ),
        Part(
            "comp", ("dark stab", "stab", "metal"), 57, 0.6, 0.25, 0.6, "bko",
            ("...x..x.........", "x.....x.....x...", "......x..x......"), echo=0.5, duck=True,
        ),
        Part("drone", ("reese", "low choir"), 38, 0.35, 0.0, 0.3, "ibk", chance=0.6, duck=True),
        Part("arp", ("synth pluck", "chip blip", "metal"), 69, 0.35, -0.3, 0.3, "bk", chance=0.6, echo=0.35),
        Part("texture", ("hiss", "machine", "wind"), level=0.25, sections="iko", chance=0.6),
    ),
    ("iaba", "iabk", "abkb", "iakb"), (0.85, 1.0, 0.8, 0.3), (1988, 2024), ("energetic", "dark", "hypnotic"),
    ("techno", "dance", "electronic", "synthesizer"), room_s=(0.8, 2.0), loudness=0.16,
    balance_db=(-4, -4, -9, -18, -20, -22, -22, -21), noise_db=(-88, -74),
    still=("reese", "warm pad", "low choir"), kits=("techno", "909"),
    grooves=(
        (
            ("kick", "X...X...X...X..."), ("hat", "..x...x...x...x."), ("clap", "....o.......x..."),
            ("ride", "..o?..o?..o?..o?"),
        ),
        (
            ("kick", "X...X...X...X.o."), ("hat", "xoxoxoxoxoxoxoxo"), ("open", "..x...x...x...x."),
            ("tom", "...x..x....x.x.."),
        ),
        (("kick", "X...X...X...X..."), ("rim", "x..x..x.x..x..x."), ("hat", "..x...x...x...xo")),
    ),
    drum_sections="iabo",
)  # fmt: skip
DNB = Style(
    "Drum and Bass", (166, 178), ("minor", "dorian", "phrygian"), MINOR_CHORDS,
    (
        Part(
            "bass", ("reese", "sub bass", "growl"), 36, 1.0, 0.0, 0.03, "ab",
            ("x.....x...x.....", "x..x......x..x..", "x..............."),
        ),
        Part("hold", ("string pad", "warm pad", "choir", "glass pad"), 62, 0.5, 0.0, 0.6, "ibko"),
        Part(
            "melody", ("bell", "electric piano", "saw lead", "flute"), 74, 0.5, 0.25, 0.5, "bk", chance=0.7,
            echo=0.4,
        ),
        Part(
            "comp", ("stab", "electric piano"), 62, 0.45, -0.3, 0.4, "a",
            ("...x......x.....", "x.........x..x.."), chance=0.6,
        ),
    ),
    ("iabk", "iakb", "ikab", "abka"), (0.95, 0.9, 0.6, 0.3), (1992, 2024), ("energetic", "dark", "driving"),
    ("drum and bass", "breakbeat", "electronic", "bass"), chord_tones=4, room_s=(0.8, 2.0), loudness=0.15,
    balance_db=(-7, -6, -6, -9, -14, -17, -16, -15), noise_db=(-88, -76), still=("warm pad", "choir", "reese"),
    kits=("break", "break", "909"),
    grooves=(
        (
            ("kick", "X.........X....."), ("snare", "....X..o.o..X..o"), ("hat", "x.x.x.x.x.x.x.x."),
            ("ride", "x...x...x...x..."),
        ),
        (("kick", "X.X.......X....."), ("snare", "....X..o....X.o?"), ("hat", "xoxoxoxoxoxoxoxo")),
        (
            ("kick", "X..x......X..?.."), ("snare", "....X.......X..o"), ("shaker", "xoxoxoxoxoxoxoxo"),
            ("open", "..x.......x....."),
        ),
    ),
)  # fmt: skip
LOFI = Style(
    "Lo-fi Hip Hop", (68, 90), ("dorian", "minor", "major"), FIFTHS_CHORDS + MINOR_CHORDS,
    (
        Part(
            "comp", ("electric piano", "felt piano", "tine piano", "nylon guitar"), 60, 0.8, 0.1, 0.25, "iabko",
            ("x.....x.........", "x.........x.....", "x..x......x....."),
        ),
        Part(
            "bass", ("sub bass", "upright bass", "finger bass"), 38, 0.9, 0.0, 0.03, "ab",
            ("x......x..x.....", "x.........x..x.."),
        ),
        Part(
            "melody", ("vibraphone", "felt piano", "flute", "nylon guitar"), 72, 0.5, -0.3, 0.4, "abk",
            chance=0.8, echo=0.3,
        ),
        Part("hold", ("warm pad", "string pad"), 60, 0.25, 0.0, 0.4, "bk", chance=0.5),
        Part("texture", ("crackle", "hiss", "rain"), level=0.14),
    ),
    ("iab", "iabk", "abka", "iakb"), (0.25, 0.55, 0.4, 0.55), (1998, 2024), ("calm", "warm", "nostalgic"),
    ("lo-fi", "hip hop", "beats", "chill"), chord_tones=4, swing=(0.05, 0.14), room_s=(0.5, 1.1), loudness=0.11,
    balance_db=(-6, -5, -6, -9, -15, -24, -30, -37), noise_db=(-68, -56), still=("warm pad", "organ", "flute"),
    kits=("dusty", "dusty", "808"),
    grooves=(
        (("kick", "X......x..X....."), ("snare", "....X.......X..."), ("hat", "x.x.x.xox.x.x.x.")),
        (("kick", "X..x......Xx...."), ("snare", "....X..o....X..."), ("hat", "x.xox.x.x.xox.x?")),
        (("kick", "X.........X..?.."), ("rim", "....x.......x..."), ("shaker", "x.o.x.o.x.o.x.o.")),
    ),
)  # fmt: skip

STYLES = (AMBIENT, HOUSE, FOLK, ROCK, JAZZ, TECHNO, PIANO, BAROQUE, DNB, LOFI, CHORAL, BOSSA)
"""Neighbors in this tuple sound very different."""


def find_style(name: str) -> Style:
    """Return the style with this name, or raise ``ValueError`` with the valid names."""
    for style in STYLES:
        if style.name == name:
            return style
    raise ValueError(f"style {name!r} is unknown; choose from {', '.join(s.name for s in STYLES)}")
