"""Compose a planned song: form, chords, and notes for each part.

A figure is a function ``(score, part, rng) -> notes``. Times are in beats from the start of the song, pitches are MIDI
numbers, and velocities range from 0 to 1. Swing is applied later, when beats become seconds.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from musicsim._arrays import Float64Array
from musicsim.demo.styles import SCALES, Part, Style


class Note(NamedTuple):
    start: float
    pitch: int
    length: float
    velocity: float


class Hit(NamedTuple):
    start: float
    drum: str
    velocity: float


class Section(NamedTuple):
    """Consecutive bars; :mod:`musicsim.demo.styles` explains ``letter``."""

    letter: str
    first_bar: int
    n_bars: int


@dataclass(frozen=True, slots=True)
class Score:
    """A song's form, scale and chords, which all parts share; there is one chord (a scale degree) per bar."""

    sections: tuple[Section, ...]
    beats: int
    tonic: int
    scale: tuple[int, ...]
    chords: tuple[int, ...]
    chord_tones: int

    def degree(self, degree: int, register: int) -> int:
        """Return the MIDI pitch of a scale degree (0 = tonic, any integer), with the tonic near `register`."""
        base = register + (self.tonic - register + 6) % 12 - 6
        octave, step = divmod(degree, len(self.scale))
        return base + 12 * octave + self.scale[step]

    def classes(self, bar: int) -> list[int]:
        """Return the pitch classes of a bar's chord, root first."""
        root = self.chords[bar]
        return [self.degree(root + 2 * i, 60) % 12 for i in range(self.chord_tones)]

    def bars(self, letters: str) -> list[tuple[int, str]]:
        """Return the bars of all sections whose letter is in `letters`, each with its section's letter."""
        return [
            (bar, s.letter)
            for s in self.sections
            if s.letter in letters
            for bar in range(s.first_bar, s.first_bar + s.n_bars)
        ]


def compose_score(
    style: Style, n_bars: int, key: int, rng: np.random.Generator, scale: str, stillness: float = 0.0
) -> Score:
    """Compose the form and harmony of `n_bars` bars; `stillness` (0-0.5) is the share with only a drone."""
    form = style.forms[int(rng.integers(len(style.forms)))][:n_bars]
    weight = np.array([{"i": 0.55, "o": 0.6, "k": 0.7}.get(letter, 1.0) for letter in form])
    if stillness > 0.0:
        form, weight = _insert_drones(form, weight, stillness, rng)
    edges = np.round(np.concatenate([[0.0], np.cumsum(weight)]) / weight.sum() * n_bars).astype(int)
    sections = tuple(
        Section(letter, int(lo), int(hi - lo))
        for letter, (lo, hi) in zip(form, pairwise(edges), strict=True)
        if hi > lo
    )
    first, second = rng.choice(len(style.progressions), 2)
    chords: list[int] = []
    for section in sections:
        if section.letter == "s":
            chords += [0] * section.n_bars
            continue
        progression = style.progressions[second if section.letter == "b" else first]
        chords += [progression[i % len(progression)] for i in range(section.n_bars)]
    chords[-1] = 0  # end on the tonic
    return Score(sections, style.beats, key, SCALES[scale], tuple(chords), style.chord_tones)


def _insert_drones(form: str, weight: Float64Array, share: float, rng: np.random.Generator) -> tuple[str, Float64Array]:
    """Return the form and its weights with one or two drone sections inserted."""
    places = rng.choice([0, len(form) - 1, len(form)], size=int(rng.integers(1, 3)), replace=False)
    length = share / (1.0 - share) * weight.sum() / places.size
    for place in sorted(places.tolist(), reverse=True):
        form = form[:place] + "s" + form[place:]
        weight = np.insert(weight, place, length)
    return form, weight


def _steps(pattern: str, rng: np.random.Generator) -> list[tuple[int, float]]:
    """Return (step, velocity) for each step that is not silent."""
    strength = {"X": 1.0, "x": 0.8, "o": 0.42, "?": 0.55}
    steps = []
    for i, sign in enumerate(pattern):
        if sign == "." or (sign == "?" and rng.random() < 0.55):
            continue
        steps.append((i, float(np.clip(strength[sign] + 0.06 * rng.standard_normal(), 0.15, 1.0))))
    return steps


def _rhythm(part: Part, rng: np.random.Generator) -> str:
    return part.rhythms[int(rng.integers(len(part.rhythms)))]


def _voicings(score: Score, register: int) -> list[list[int]]:
    """Voice each bar's chord near `register`, with as little movement from the previous chord as possible."""
    voiced: list[list[int]] = []
    previous = None
    for bar in range(len(score.chords)):
        classes = score.classes(bar)
        candidates = []
        for low in range(register - 11, register + 4):
            pitches = sorted(low + (c - low) % 12 for c in classes)
            drift = abs(float(np.mean(pitches)) - register)
            move = sum(abs(a - b) for a, b in zip(pitches, previous, strict=True)) if previous else 0.0
            candidates.append((move + 0.5 * drift, pitches))
        previous = min(candidates)[1]
        voiced.append(previous)
    return voiced


def _hold(score: Score, part: Part, rng: np.random.Generator) -> Iterator[Note]:
    """Held chords, one per bar."""
    voicings = _voicings(score, part.register)
    for bar, _ in score.bars(part.sections):
        for pitch in voicings[bar]:
            yield Note(bar * score.beats, pitch, score.beats * 1.02, 0.75 + 0.1 * rng.random())


def _drone(score: Score, part: Part, rng: np.random.Generator) -> Iterator[Note]:
    for section in score.sections:
        if section.letter in part.sections:
            for degree in (0, 4):
                pitch = score.degree(degree, part.register)
                yield Note(section.first_bar * score.beats, pitch, section.n_bars * score.beats, 0.7 - 0.05 * degree)


def _comp(score: Score, part: Part, rng: np.random.Generator) -> Iterator[Note]:
    """Chords in a sixteenth-note rhythm."""
    patterns = [_rhythm(part, rng), _rhythm(part, rng)]
    voicings = _voicings(score, part.register)
    length = (0.3, 0.5, 0.9)[int(rng.integers(3))]
    for bar, letter in score.bars(part.sections):
        for step, velocity in _steps(patterns[letter == "b"], rng):
            start = bar * score.beats + step * 0.25
            for pitch in voicings[bar]:
                yield Note(start, pitch, length, velocity * (0.9 + 0.1 * rng.random()))


def _strum(score: Score, part: Part, rng: np.random.Generator) -> Iterator[Note]:
    """Guitar chords, string by string: downstrokes on the beat, upstrokes in between."""
    pattern = _rhythm(part, rng)
    voicings = _voicings(score, part.register)
    for bar, _ in score.bars(part.sections):
        strings = [*voicings[bar], voicings[bar][0] + 12]
        for step, velocity in _steps(pattern, rng):
            order = strings if step % 4 == 0 else strings[::-1]
            for i, pitch in enumerate(order):
                yield Note(bar * score.beats + step * 0.25 + 0.025 * i, pitch, 0.6, velocity * 0.8)


def _chug(score: Score, part: Part, rng: np.random.Generator) -> Iterator[Note]:
    """Power chords, which are palm-muted when short and ring when long."""
    pattern = _rhythm(part, rng)
    ringing = rng.random() < 0.5
    for bar, _ in score.bars(part.sections):
        steps = _steps(pattern, rng)
        root = score.degree(score.chords[bar], part.register)
        root -= 12 if root > part.register + 8 else 0
        for i, (step, velocity) in enumerate(steps):
            following = steps[i + 1][0] if i + 1 < len(steps) else 16
            gap = (following - step) * 0.25
            length = gap * 0.95 if ringing or gap > 0.5 else gap * 0.45
            for interval in (0, 7, 12):
                yield Note(bar * score.beats + step * 0.25, root + interval, length, velocity)


def _bass(score: Score, part: Part, rng: np.random.Generator) -> Iterator[Note]:
    """The chord's root in a rhythm, with occasional fifths and octaves."""
    pattern = _rhythm(part, rng)
    color = rng.choice([0, 0, 0, 12, 7], 16)
    for bar, _ in score.bars(part.sections):
        steps = _steps(pattern, rng)
        root = score.degree(score.chords[bar], part.register)
        root -= 12 if root > part.register + 7 else 0
        fifth = (score.classes(bar)[2] - root) % 12
        for i, (step, velocity) in enumerate(steps):
            following = steps[i + 1][0] if i + 1 < len(steps) else 16
            move = {7: fifth}.get(int(color[step]), int(color[step])) if step else 0
            length = min((following - step) * 0.25 * 0.9, 1.5)
            yield Note(bar * score.beats + step * 0.25, root + move, length, velocity)


def _bassline(score: Score, part: Part, rng: np.random.Generator) -> Iterator[Note]:
    """The chord's root, held for the whole bar."""
    for bar, _ in score.bars(part.sections):
        root = score.degree(score.chords[bar], part.register)
        root -= 12 if root > part.register + 6 else 0
        yield Note(bar * score.beats, root, score.beats, 0.8)


def _riff(score: Score, part: Part, rng: np.random.Generator) -> Iterator[Note]:
    """A repeated two-bar pattern, as from a step sequencer."""
    pattern = _rhythm(part, rng)
    degrees = rng.choice([0, 0, 0, 0, 7, 1, 2, 4, 6], (2, 16))
    accent = rng.random((2, 16)) < 0.3
    for bar, _ in score.bars(part.sections):
        shift = score.chords[bar] if score.chords[bar] in (0, 1, 3) else 0
        for step, velocity in _steps(pattern, rng):
            pitch = score.degree(int(degrees[bar % 2, step]) + shift, part.register)
            strength = min(1.0, velocity * (1.2 if accent[bar % 2, step] else 0.85))
            yield Note(bar * score.beats + step * 0.25, pitch, 0.22, strength)


def _walk(score: Score, part: Part, rng: np.random.Generator) -> Iterator[Note]:
    """A walking bass: chord tones on each beat, then a step into the next chord."""
    for bar, _ in score.bars(part.sections):
        chord = score.chords[bar]
        following = score.chords[min(bar + 1, len(score.chords) - 1)]
        inner = [chord + int(d) for d in rng.choice([2, 4, 1, 7, 4, 2], score.beats - 2)]
        last = following + (1 if rng.random() < 0.5 else -1)
        for beat, degree in enumerate([chord, *inner, last]):
            pitch = score.degree(degree, part.register)
            pitch -= 12 if pitch > part.register + 11 else 0
            yield Note(bar * score.beats + beat, pitch, 0.85, 0.75 + 0.15 * rng.random())


def _arp(score: Score, part: Part, rng: np.random.Generator) -> Iterator[Note]:
    """Broken chords in eighth or sixteenth notes, over up to two octaves."""
    voicings = _voicings(score, part.register)
    shape = int(rng.integers(4))
    step = (0.25, 0.25, 0.5)[int(rng.integers(3))]
    shuffled = rng.permutation(8)
    for bar, _ in score.bars(part.sections):
        tones = [*voicings[bar], *(p + 12 for p in voicings[bar])][:6]
        line = (tones, tones[::-1], tones + tones[-2:0:-1], [tones[i % len(tones)] for i in shuffled])[shape]
        for i in range(round(score.beats / step)):
            velocity = (0.85 if i % 4 == 0 else 0.62) + 0.08 * rng.random()
            yield Note(bar * score.beats + i * step, line[i % len(line)], step * 0.9, velocity)


def _fingerpick(score: Score, part: Part, rng: np.random.Generator) -> Iterator[Note]:
    """Fingerpicking: the thumb alternates root and fifth on the beats, and the fingers play in between."""
    voicings = _voicings(score, part.register + 5)
    order = rng.permutation(3)
    dense = rng.random() < 0.5
    for bar, letter in score.bars(part.sections):
        root = score.degree(score.chords[bar], part.register - 12)
        for beat in range(score.beats):
            low = root if beat % 2 == 0 else root + 7
            yield Note(bar * score.beats + beat, low, 1.6, 0.75 + 0.1 * rng.random())
            offsets = (0.5,) if letter in "ik" and not dense else (0.25, 0.5, 0.75) if dense else (0.5, 0.75)
            for j, offset in enumerate(offsets):
                pitch = voicings[bar][int(order[(beat + j) % 3])]
                yield Note(bar * score.beats + beat + offset, pitch, 1.2, 0.5 + 0.2 * rng.random())


def _broken(score: Score, part: Part, rng: np.random.Generator) -> Iterator[Note]:
    """A left-hand keyboard accompaniment: the root, then the chord's notes in turn."""
    step = 0.5 if rng.random() < 0.7 else 1.0
    shape = ((0, 2, 1, 2), (0, 1, 2, 1), (0, 2, 3, 2))[int(rng.integers(3))]
    voicings = _voicings(score, part.register)
    for bar, _ in score.bars(part.sections):
        tones = [*voicings[bar], voicings[bar][0] + 12]
        root = score.degree(score.chords[bar], part.register - 10)
        for i in range(round(score.beats / step)):
            pitch = root if i == 0 else tones[shape[i % 4]]
            yield Note(bar * score.beats + i * step, pitch, 1.3, (0.7 if i == 0 else 0.5) + 0.12 * rng.random())


def _running(score: Score, part: Part, rng: np.random.Generator) -> Iterator[Note]:
    """Even notes that move along the scale, with chord tones on the beats."""
    step = 0.25 if rng.random() < 0.6 else 0.5
    degree = 0
    direction = 1
    for bar, letter in score.bars(part.sections):
        chord = score.chords[bar]
        for i in range(round(score.beats / step)):
            if (i * step) % 1.0 == 0.0:
                degree = min((chord + d + 7 * o for d in (0, 2, 4) for o in (-1, 0, 1)), key=lambda x: abs(x - degree))
                direction = (1 if rng.random() < 0.5 else -1) if abs(degree) < 6 else -int(np.sign(degree))
            else:
                degree += direction * (2 if rng.random() < 0.15 else 1)
            if letter == "i" and i % 2:
                continue
            pitch = score.degree(degree, part.register)
            yield Note(bar * score.beats + i * step, pitch, step * 0.95, 0.6 + 0.15 * rng.random())


def _sparse(score: Score, part: Part, rng: np.random.Generator) -> Iterator[Note]:
    """Single notes from the chord, far apart."""
    for bar, _ in score.bars(part.sections):
        for beat in (0.0, score.beats / 2):
            if rng.random() < 0.65:
                degree = score.chords[bar] + int(rng.choice([0, 2, 4, 7]))
                start = bar * score.beats + beat + 0.5 * int(rng.integers(2))
                yield Note(start, score.degree(degree, part.register), 1.8, 0.5 + 0.35 * rng.random())


_MELODY_RHYTHMS = (
    ((0, 1), (1, 0.5), (1.5, 0.5), (2, 1.5)),
    ((0, 1.5), (1.5, 0.5), (2, 2)),
    ((0, 0.5), (0.5, 0.5), (1, 1), (2, 0.5), (2.5, 1)),
    ((0.5, 0.5), (1, 0.5), (1.5, 1), (2.5, 0.5), (3, 1)),
    ((0, 2), (2, 1), (3, 1)),
    ((0, 0.75), (0.75, 0.75), (1.5, 1), (3, 0.5), (3.5, 0.5)),
    ((1, 0.5), (1.5, 0.5), (2, 1)),
)


def _motif(rng: np.random.Generator) -> tuple[list[tuple[float, float]], list[int]]:
    """Return a two-bar rhythm and the steps between its notes."""
    first, second = rng.choice(len(_MELODY_RHYTHMS), 2)
    rhythm = [*_MELODY_RHYTHMS[first], *((s + 4.0, length) for s, length in _MELODY_RHYTHMS[second])]
    moves = rng.choice([-2, -1, -1, 0, 1, 1, 2, 3], len(rhythm))
    return rhythm, [int(m) for m in moves]


def _melody(score: Score, part: Part, rng: np.random.Generator) -> Iterator[Note]:
    """Two-bar phrases in the order A A' B A', with chord tones on the strong beats and a long last note."""
    motif_a, motif_b = _motif(rng), _motif(rng)
    for section in score.sections:
        if section.letter not in part.sections:
            continue
        degree = int(rng.choice([0, 2, 4]))
        for phrase in range(0, section.n_bars, 2):
            rhythm, moves = motif_b if (phrase // 2) % 4 == 2 or section.letter == "b" else motif_a
            if rng.random() < 0.12:
                continue  # rest
            first_bar = section.first_bar + phrase
            for i, ((start, length), move) in enumerate(zip(rhythm, moves, strict=True)):
                bar = first_bar + int(start // 4)
                if bar >= section.first_bar + section.n_bars:
                    break
                degree = int(np.clip(degree + move, -4, 9))
                if start % 2 == 0 or i == len(rhythm) - 1:
                    chord = score.chords[bar]
                    tones = [chord + d + 7 * o for d in (0, 2, 4) for o in (-2, -1, 0, 1)]
                    degree = min(tones, key=lambda x: abs(x - degree))
                velocity = (0.85 if start % 1 == 0 else 0.7) + 0.1 * rng.random()
                held = length * (1.4 if i == len(rhythm) - 1 else 0.92)
                beat = bar * score.beats + (start % 4) * score.beats / 4
                yield Note(beat, score.degree(degree, part.register), held, velocity)


Figure = Callable[[Score, Part, np.random.Generator], Iterator[Note]]

FIGURES: dict[str, Figure] = {
    "arp": _arp,
    "bass": _bass,
    "bassline": _bassline,
    "broken": _broken,
    "chug": _chug,
    "comp": _comp,
    "drone": _drone,
    "fingerpick": _fingerpick,
    "hold": _hold,
    "melody": _melody,
    "riff": _riff,
    "running": _running,
    "sparse": _sparse,
    "strum": _strum,
    "walk": _walk,
}


def compose_drums(style: Style, score: Score, rng: np.random.Generator, groove: int) -> list[Hit]:
    """Compose the drums: a groove, thinned in intros and breaks, with fills at the ends of sections."""
    lines = style.grooves[groove]
    hits: list[Hit] = []
    if not lines:
        return hits
    light = {name for name, _ in lines if name in ("hat", "shaker", "ride", "rim", "kick")}
    for section in score.sections:
        whole = section.letter in style.drum_sections
        if not whole and not (section.letter in "ik" and rng.random() < 0.5):
            continue
        thinned = not whole or section.letter == "i"
        for bar in range(section.first_bar, section.first_bar + section.n_bars):
            fill = whole and bar == section.first_bar + section.n_bars - 1 and rng.random() < 0.7
            for drum, pattern in lines:
                if thinned and drum not in light:
                    continue
                for step, velocity in _steps(pattern, rng):
                    if not (fill and step >= 12 and drum in ("snare", "kick", "hat")):
                        hits.append(Hit(bar * score.beats + step * 0.25, drum, velocity * (0.6 if thinned else 1.0)))
            if fill and not thinned:
                hits += _fill(bar * score.beats + 3.0, rng)
        if section.letter == "b" and whole and "snare" in dict(lines):
            hits.append(Hit(section.first_bar * score.beats, "crash", 0.6))
    return hits


def _fill(start: float, rng: np.random.Generator) -> list[Hit]:
    drums = ("snare", "tom", "kick")
    chosen = rng.choice(3, 4, p=[0.5, 0.35, 0.15])
    return [Hit(start + 0.25 * i, drums[int(d)], 0.5 + 0.12 * i) for i, d in enumerate(chosen)]
