"""Render a plan as sound, and write the sound to a tagged file.

An artist's *habits* (instruments and their settings, the kit, the room, the master's tone) come from the artist's seed
and recur in each song. The song's own seed determines its progression, figures, arrangement and deviations.

With the same versions of numpy and scipy on the same kind of processor, a plan always produces the same samples.
"""

import hashlib
import io
import os
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path

import numpy as np

from musicsim._arrays import Float32Array, Float64Array, Int64Array
from musicsim.demo import effects
from musicsim.demo.collection import SongPlan
from musicsim.demo.composition import FIGURES, Note, Score, compose_drums, compose_score
from musicsim.demo.drums import KITS, Kit, play_drum, play_texture, vary_kit
from musicsim.demo.first_songs import find_sound, read_sound
from musicsim.demo.styles import Part, Style, find_style
from musicsim.demo.voices import PATCHES, SAMPLE_RATE, Patch, play_note, softer, sustain, vary_patch

VERSION = 2  # increase this when the sound of a plan changes; older files are then rewritten
_ABANDONED_S = 3600.0
_DRUM_PAN = {"hat": 0.3, "open": 0.3, "ride": -0.35, "crash": -0.3, "tom": 0.25, "shaker": -0.4, "rim": 0.15}
_DRUM_SEND = {"kick": 0.02, "snare": 0.25, "clap": 0.3, "tom": 0.25, "rim": 0.3}
# Intervals above the tonic: fifths and octaves, which suit both major and minor.
_DRONES = ((1.0, 2.0, 3.0), (1.0, 1.5, 2.0), (1.0, 2.0, 4.0), (1.0, 1.5, 3.0), (0.5, 1.0, 1.5))
_DRUM_LEVEL = {"kick": 0.62, "hat": 0.24, "open": 0.26, "ride": 0.24, "shaker": 0.26, "crash": 0.3, "rim": 0.4}


@dataclass(frozen=True, slots=True)
class _Habits:
    """Settings that all songs by an artist share."""

    voices: tuple[str, ...]
    patch_seed: int
    kit: Kit
    groove: int
    scale: str
    swing: float
    register: int
    room_s: float
    damping_hz: float
    wetness: float
    width: float
    balance_db: Float64Array
    color_db: Float64Array
    squeeze: float
    noise_db: float
    noise_tilt: float
    stillness: float
    levels: tuple[float, ...]
    push_s: float


@dataclass(slots=True)
class _Mix:
    """The mixing desk: stereo bus, mono reverb send, and tempo."""

    dry: Float32Array
    send: Float32Array
    beat_s: float
    swing: float
    swing_unit: float

    def seconds(self, beat: float) -> float:
        """Return the time of a beat, with swing: the second half of each swing unit is late."""
        whole, part = divmod(beat / self.swing_unit, 1.0)
        middle = 0.5 + self.swing
        bent = part / 0.5 * middle if part < 0.5 else middle + (part - 0.5) / 0.5 * (1.0 - middle)
        return (whole + bent) * self.swing_unit * self.beat_s


def render(plan: SongPlan) -> Float32Array:
    """Render a plan as float32 (``round(plan.duration_s * SAMPLE_RATE)``, 2), with a peak below 0.95.

    Examples
    --------
    >>> from musicsim.demo import SAMPLE_RATE, plan_collection, render
    >>> plan = plan_collection(seed=0)[0]
    >>> sound = render(plan)
    >>> sound.shape == (round(plan.duration_s * SAMPLE_RATE), 2), sound.dtype
    (True, dtype('float32'))
    >>> bool(abs(sound).max() < 0.95)
    True
    """
    style = find_style(plan.style)
    habits = _draw_habits(style, plan)
    rng = np.random.default_rng([plan.seed, 1])
    n = round(plan.duration_s * SAMPLE_RATE)
    scale = _scale(style, habits, rng)
    # Drones take up a quarter of a song on average, so a few sounds dominate some songs, but not others.
    stillness = float(np.clip(habits.stillness + 0.06 * rng.standard_normal(), 0.0, 0.5))
    score = compose_score(style, plan.n_bars, plan.key, rng, scale, stillness)
    mix = _Mix(np.zeros((2, n), np.float32), np.zeros(n, np.float32), 60.0 / plan.tempo, habits.swing, style.swing_unit)
    kicks = _play_drums(mix, style, habits, score, plan)
    duck = effects.ducking(kicks, n, 0.65) if kicks.size else None
    for i, part in enumerate(style.parts):
        part_rng = np.random.default_rng([plan.seed, 2, i])
        # A song always has its style's first two parts; the others are optional.
        if i < 2 or part_rng.random() < part.chance:
            _play_part(mix, i, _arrange_part(part, score, part_rng), habits, score, plan, part_rng, duck)
    _hold_still(mix, style.still, habits, score, np.random.default_rng([plan.seed, 4]))
    room_s = habits.room_s * 2.0 ** (0.2 * rng.standard_normal())
    wet = effects.reverberate(mix.send, room_s, habits.damping_hz, np.random.default_rng([plan.artist_seed, 9]))
    mix.dry += np.float32(habits.wetness) * wet
    _widen(mix.dry, habits.width)
    target_db = habits.balance_db + 0.8 * rng.standard_normal(8)
    tone = effects.compress(effects.balance(mix.dry, target_db, habits.color_db, 0.8), habits.squeeze)
    noise = effects.room_tone(n, habits.noise_db + rng.normal(0.0, 1.5), habits.noise_tilt, rng)
    loudness = style.loudness * 2.0 ** (0.1 * rng.standard_normal())
    tail_s = plan.duration_s - plan.n_bars * style.beats * mix.beat_s
    return np.ascontiguousarray(effects.master(tone, loudness, noise, min(max(tail_s * 0.8, 0.5), 1.8)).T)


def draw_scale(plan: SongPlan) -> str:
    """Return the scale of a planned song, one of :data:`musicsim.demo.styles.SCALES`."""
    style = find_style(plan.style)
    return _scale(style, _draw_habits(style, plan), np.random.default_rng([plan.seed, 1]))


def _scale(style: Style, habits: _Habits, rng: np.random.Generator) -> str:
    return habits.scale if rng.random() < 0.7 else str(rng.choice(style.scales))


def _draw_habits(style: Style, plan: SongPlan) -> _Habits:
    rng = np.random.default_rng([plan.artist_seed, 5])
    bright = 2.0 * (plan.brightness - 0.5)
    # Recordings in one style share mixing desks, rooms and microphones, not only their spectral balance.
    scene = np.random.default_rng(list(style.name.encode()))
    octaves = np.arange(8) - 3.5
    bumps = np.convolve(rng.standard_normal(10), [0.5, 1.0, 0.5], mode="valid") * 1.2
    kit = KITS[style.kits[int(rng.integers(len(style.kits)))]] if style.kits else KITS["acoustic"]
    return _Habits(
        voices=tuple(str(rng.choice(part.voices)) for part in style.parts),
        patch_seed=int(rng.integers(2**31)),
        kit=vary_kit(kit, rng, 0.18, 0.7 * bright),
        groove=int(rng.integers(len(style.grooves))) if style.grooves else 0,
        scale=str(rng.choice(style.scales)),
        swing=float(rng.uniform(*style.swing)),
        register=int(rng.choice([-5, -3, 0, 0, 2, 4])),
        room_s=float(rng.uniform(*style.room_s)),
        damping_hz=float(2600.0 * 2.0 ** (0.5 * rng.standard_normal() + 0.5 * bright)),
        wetness=float(rng.uniform(0.55, 1.15)),
        width=float(rng.uniform(0.7, 1.35)),
        balance_db=style.balance_db + octaves * (0.5 * rng.standard_normal() + 0.5 * bright) + bumps,
        color_db=2.5 * scene.standard_normal(24) + 0.8 * rng.standard_normal(24),
        squeeze=float(np.clip(4.0 * (style.loudness - 0.07) + 0.1 * rng.standard_normal(), 0.0, 0.6)),
        noise_db=float(rng.uniform(*style.noise_db)),
        noise_tilt=float(rng.uniform(-5.0, 1.0)),
        stillness=float(rng.uniform(0.13, 0.41)),
        levels=tuple(float(2.0 ** (0.2 * z)) for z in rng.standard_normal(len(style.parts) + 1)),
        push_s=float(rng.normal(0.0, 0.006)),
    )


def _arrange_part(part: Part, score: Score, rng: np.random.Generator) -> Part:
    """Return the part as arranged for this song, with changed sections, level, pan and register."""
    letters = sorted({s.letter for s in score.sections} - {"s"})
    sections = "".join(x for x in letters if (x in part.sections) != (rng.random() < 0.06))
    return replace(
        part,
        sections=sections or part.sections,
        level=part.level * float(2.0 ** (0.16 * rng.standard_normal())),
        pan=part.pan + 0.15 * float(rng.standard_normal()),
        register=part.register + int(rng.choice([-3, 0, 0, 0, 3])) * (part.register > 50),
    )


def _patch_for(number: int, part: Part, habits: _Habits, plan: SongPlan, rng: np.random.Generator) -> Patch:
    """Return the artist's variation of their usual instrument, or sometimes of a different one."""
    name = habits.voices[number] if rng.random() < 0.84 else str(rng.choice(part.voices))
    bright = 1.0 * (plan.brightness - 0.5)
    patch = vary_patch(PATCHES[name], np.random.default_rng([habits.patch_seed, number]), 0.22, bright)
    return vary_patch(patch, rng, 0.07)


def _play_part(
    mix: _Mix,
    number: int,
    part: Part,
    habits: _Habits,
    score: Score,
    plan: SongPlan,
    rng: np.random.Generator,
    duck: Float32Array | None,
) -> None:
    level = np.float32(part.level * habits.levels[number])
    if part.figure == "texture":
        bus = play_texture(habits.voices[number], mix.send.size, rng, plan.brightness - 0.5)
        bus *= _section_gain(mix, score, part.sections)
    else:
        if part.register > 50:
            part = replace(part, register=part.register + habits.register)
        notes = list(FIGURES[part.figure](score, part, rng))
        bus = _play_notes(mix, notes, _patch_for(number, part, habits, plan, rng), habits, rng)
        if part.register > 50 and rng.random() < 0.5:
            effects.sweep_filter(bus, 500.0 * 2.0 ** rng.uniform(0.0, 2.0), rng.uniform(0.0, 0.9, 7))
        if part.echo:
            effects.add_echo(bus, mix.beat_s * float(rng.choice([0.75, 0.5, 0.75])), part.echo)
    if part.duck and duck is not None:
        bus *= duck
    left, right = effects.pan_gains(part.pan)
    bus[0] *= level * left
    bus[1] *= level * right
    mix.dry += bus
    mix.send += np.float32(part.send * 0.5) * (bus[0] + bus[1])


def _play_notes(
    mix: _Mix, notes: Sequence[Note], patch: Patch, habits: _Habits, rng: np.random.Generator
) -> Float32Array:
    n = mix.send.size
    bus = np.zeros((2, n), dtype=np.float32)
    mono = np.zeros(n, dtype=np.float32)
    cache: dict[tuple[int, int, bool], Float32Array] = {}
    layers = {True: patch, False: softer(patch)}
    lateness = habits.push_s + 0.004 * np.abs(rng.standard_normal(len(notes)))
    for note, late in zip(notes, lateness, strict=True):
        length = mix.seconds(note.start + note.length) - mix.seconds(note.start)
        velocity = note.velocity * (1.0 + 0.08 * rng.standard_normal())
        key = (note.pitch, max(1, round(length / 0.06)), velocity > 0.7)
        if key not in cache:
            cache[key] = play_note(layers[key[2]], note.pitch, key[1] * 0.06, habits.patch_seed + key[2])
        sound = cache[key]
        start = max(0, round((mix.seconds(note.start) + late) * SAMPLE_RATE))
        stop = min(n, start + sound.shape[1])
        if stop > start:
            target = mono[start:stop] if len(sound) == 1 else bus[:, start:stop]
            target += (
                np.float32(max(velocity, 0.1) ** 1.3) * (sound[0] if len(sound) == 1 else sound)[..., : stop - start]
            )
    bus += mono
    return bus


def _play_drums(mix: _Mix, style: Style, habits: _Habits, score: Score, plan: SongPlan) -> Int64Array:
    """Add the drums, and return the kick's sample positions for ducking."""
    if not style.grooves:
        return np.zeros(0, dtype=np.int64)
    rng = np.random.default_rng([plan.seed, 3])
    n = mix.send.size
    groove = habits.groove if rng.random() < 0.6 else int(rng.integers(len(style.grooves)))
    kit = vary_kit(habits.kit, rng, 0.08)
    gain = style.drum_level * habits.levels[-1] * 2.0 ** (0.25 * rng.standard_normal())
    cache: dict[tuple[str, int], Float32Array] = {}
    kicks = []
    for i, hit in enumerate(compose_drums(style, score, rng, groove)):
        key = (hit.drum, i % 2)
        if key not in cache:
            cache[key] = play_drum(kit, hit.drum, habits.patch_seed, key[1])
        late = 0.0 if hit.drum == "kick" else 0.002 * abs(float(rng.standard_normal()))
        start = round((mix.seconds(hit.start) + late) * SAMPLE_RATE)
        stop = min(n, start + cache[key].size)
        if stop <= start:
            continue
        sound = np.float32(gain * hit.velocity**1.4 * _DRUM_LEVEL.get(hit.drum, 0.5)) * cache[key][: stop - start]
        for channel, side in enumerate(effects.pan_gains(_DRUM_PAN.get(hit.drum, 0.0))):
            mix.dry[channel, start:stop] += side * sound
        mix.send[start:stop] += np.float32(_DRUM_SEND.get(hit.drum, 0.12)) * sound
        if hit.drum == "kick":
            kicks.append(start)
    return np.array(kicks, dtype=np.int64)


def _hold_still(mix: _Mix, voices: tuple[str, ...], habits: _Habits, score: Score, rng: np.random.Generator) -> None:
    """Add a drone on the tonic to the drone sections."""
    patch = vary_patch(PATCHES[str(rng.choice(voices))], rng, 1.0)
    loop = sustain(patch, score.degree(0, int(rng.integers(33, 64))), _DRONES[int(rng.integers(len(_DRONES)))], rng)
    level = np.std(mix.dry[:, ::16]) * 10.0 ** (rng.uniform(-6.0, 0.0) / 20.0)
    rise = round(0.6 * SAMPLE_RATE)
    for section in score.sections:
        if section.letter != "s":
            continue
        start = round(section.first_bar * score.beats * mix.beat_s * SAMPLE_RATE)
        stop = min(
            round((section.first_bar + section.n_bars) * score.beats * mix.beat_s * SAMPLE_RATE) + rise, mix.send.size
        )
        held = np.resize(loop[0], stop - start), np.resize(loop[1], stop - start)
        gain = np.full(stop - start, level, dtype=np.float32)
        gain[:rise] *= np.linspace(0.0, 1.0, rise, dtype=np.float32)
        gain[-rise:] *= np.linspace(1.0, 0.0, rise, dtype=np.float32)
        for channel in (0, 1):
            mix.dry[channel, start:stop] += gain * held[channel]
            mix.send[start:stop] += np.float32(0.15) * gain * held[channel]


def _section_gain(mix: _Mix, score: Score, sections: str) -> Float32Array:
    """Return a gain that is 1 in the part's sections and 0.25 elsewhere, with soft edges."""
    bar_s = score.beats * mix.beat_s
    times, gains = [0.0], [0.0]
    for s in score.sections:
        value = 1.0 if s.letter in sections else 0.25
        times += [s.first_bar * bar_s + 0.3, (s.first_bar + s.n_bars) * bar_s - 0.3]
        gains += [value, value]
    step = 320
    at = np.arange(mix.send.size // step + 2) * (step / SAMPLE_RATE)
    return effects.glide(np.interp(at, times, gains), step, mix.send.size)


def _widen(sound: Float32Array, width: float) -> None:
    """Scale the difference between the channels, in place."""
    middle = 0.5 * (sound[0] + sound[1])
    side = np.float32(0.5 * width) * (sound[0] - sound[1])
    sound[0] = middle + side
    sound[1] = middle - side


def mark(plan: SongPlan) -> str:
    """Return a text that changes whenever the sound of a plan does."""
    return hashlib.sha256(repr((VERSION, astuple(plan))).encode()).hexdigest()[:24]


def is_packaged(plan: SongPlan) -> bool:
    """Return whether the package contains the sound of a song, so that it need not be composed.

    Examples
    --------
    >>> from musicsim.demo import is_packaged, plan_collection
    >>> sum(map(is_packaged, plan_collection(seed=0)))
    12
    """
    return find_sound(mark(plan)) is not None


def write_song(plan: SongPlan, folder: str | os.PathLike[str]) -> Path:
    """Write the song of a plan to a tagged FLAC or Ogg Vorbis file, unless the file exists with a matching tag.

    The sound is rendered, except for the first songs of the demo, whose sound is part of the package.

    Examples
    --------
    >>> import tempfile
    >>> from musicsim.audio import decode
    >>> from musicsim.demo import plan_collection, write_song
    >>> plan = plan_collection(seed=0)[0]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_song(plan, folder)
    ...     print(path.suffix, abs(decode(path).duration_s - plan.duration_s) < 0.1)
    ...
    .flac True
    """
    path = Path(folder) / plan.relative_path
    marker = mark(plan)
    if _read_marker(path) == marker:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    packaged = find_sound(marker)
    data = _encode(plan, render(plan) if packaged is None else read_sound(packaged), marker)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    for left in path.parent.glob(f".{path.name}.*.part"):  # left over from a killed run
        if time.time() - left.stat().st_mtime > _ABANDONED_S:
            left.unlink(missing_ok=True)
    return path


def _read_marker(path: Path) -> str | None:
    import mutagen

    try:
        tags = mutagen.File(path)
    except (mutagen.MutagenError, OSError):
        return None
    values = tags.get("musicsim_demo") if tags is not None else None
    return values[0] if values else None


def _encode(plan: SongPlan, samples: Float32Array, marker: str) -> bytes:
    import soundfile
    from mutagen.flac import FLAC
    from mutagen.oggvorbis import OggVorbis

    ogg = plan.relative_path.endswith(".ogg")
    buffer = io.BytesIO()
    if ogg:
        soundfile.write(buffer, samples, SAMPLE_RATE, format="OGG", subtype="VORBIS")
    else:
        soundfile.write(buffer, samples, SAMPLE_RATE, format="FLAC", subtype="PCM_16")
    buffer.seek(0)
    tags = OggVorbis(buffer) if ogg else FLAC(buffer)
    tags.update(
        title=plan.title,
        artist=plan.artist,
        albumartist=plan.artist,
        album=plan.album,
        tracknumber=str(plan.track),
        date=str(plan.year),
        genre=plan.genre,
        bpm=str(round(plan.tempo)),
        comment="Generated demo music",
        musicsim_demo=marker,
    )
    buffer.seek(0)
    tags.save(buffer)
    if ogg:
        number_stream(buffer)
    return buffer.getvalue()


def number_stream(file: io.BytesIO) -> None:
    """Set an Ogg stream's random serial number to 1, so that the same demo always has the same bytes."""
    from mutagen.ogg import OggPage

    file.seek(0)
    pages = []
    while file.tell() < file.getbuffer().nbytes:
        pages.append(OggPage(file))
    file.seek(0)
    for page in pages:
        page.serial = 1
        file.write(page.write())
