"""Synthesize pitched instruments: a patch and a pitch define a note.

Two engines render all instruments. *Scanned wavetables* are sequences of single cycles, each with the harmonics at one
moment of a note (a closing filter, a decaying string). Cycles are read at the rate of the pitch, while a slowly moving
position fades from one to the next. No harmonic is above 15 kHz, so nothing aliases. In *frequency modulation*, one
sine wave modulates the phase of another.

Conventions: sounds are float32 of shape (n_channels, n_samples), one or two channels, at ``SAMPLE_RATE``. Times are in
seconds, and pitches are MIDI numbers (69 = 440 Hz).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array, Float64Array

SAMPLE_RATE = 32_000
_CYCLE = 2048
_HIGHEST_HZ = 15_000.0
_LEVEL = 0.16
_DRAWBARS = {1: 1.0, 2: 0.8, 3: 0.5, 4: 0.55, 6: 0.25, 8: 0.3, 10: 0.1, 12: 0.08, 16: 0.12}
_FORMANTS = np.array([(520.0, 1050.0, 2700.0), (170.0, 220.0, 450.0), (1.0, 0.5, 0.16)])  # Hz, width, gain


@dataclass(frozen=True, slots=True)
class Patch:
    """Settings for one instrument.

    ``source`` is the spectrum ("saw", "square", "pulse", "triangle", "organ", "reed", "voice", "string", "piano",
    "fm"). ``cutoff_hz`` is the low-pass filter's final cutoff. The cutoff starts ``sweep`` octaves higher, and falls
    with the time constant ``sweep_s``. ``string`` and ``piano`` ring for ``ring_s``. They lose their high harmonics as
    in a Karplus-Strong loop whose two-point average is raised to the power ``damping``. ``ratio``, ``index`` and
    ``index_s`` control the modulation of ``fm``.
    """

    source: str
    attack_s: float = 0.005
    decay_s: float = 0.3
    sustain: float = 0.7
    release_s: float = 0.08
    cutoff_hz: float = 3000.0
    sweep: float = 0.0
    sweep_s: float = 0.2
    resonance: float = 0.0
    detune_cents: float = 0.0
    vibrato_cents: float = 0.0
    vibrato_hz: float = 5.2
    ring_s: float = 2.0
    damping: float = 3.0
    pick: float = 0.2
    ratio: float = 1.0
    index: float = 1.5
    index_s: float = 0.4
    breath: float = 0.0
    drive: float = 0.0


PATCHES: dict[str, Patch] = {
    "warm pad": Patch(
        "saw", 0.7, 0.5, 0.9, 1.0, cutoff_hz=900, sweep=0.6, sweep_s=1.5, detune_cents=9, vibrato_cents=4
    ),
    "glass pad": Patch("fm", 0.6, 0.5, 0.9, 1.2, ratio=2.0, index=0.9, index_s=3.0, detune_cents=6),
    "string pad": Patch("saw", 0.3, 0.4, 0.9, 0.5, cutoff_hz=2400, detune_cents=8, vibrato_cents=8, breath=0.01),
    "choir": Patch("voice", 0.25, 0.4, 0.95, 0.6, cutoff_hz=2800, detune_cents=7, vibrato_cents=12, breath=0.02),
    "low choir": Patch("voice", 0.3, 0.4, 0.95, 0.7, cutoff_hz=1400, detune_cents=6, vibrato_cents=9, breath=0.03),
    "saw lead": Patch("saw", 0.01, 0.3, 0.75, 0.12, cutoff_hz=3800, sweep=0.8, vibrato_cents=14, detune_cents=5),
    "chip blip": Patch("pulse", 0.001, 0.09, 0.25, 0.02, cutoff_hz=12000),
    "triangle bass": Patch("triangle", 0.002, 0.2, 0.8, 0.02, cutoff_hz=4000),
    "flute": Patch("triangle", 0.06, 0.3, 0.85, 0.12, cutoff_hz=2600, vibrato_cents=14, breath=0.05),
    "melodica": Patch("reed", 0.03, 0.2, 0.85, 0.07, cutoff_hz=3200, vibrato_cents=8, breath=0.03),
    "saxophone": Patch("reed", 0.03, 0.3, 0.8, 0.1, cutoff_hz=2100, sweep=0.5, vibrato_cents=16, breath=0.05),
    "violin": Patch("saw", 0.07, 0.3, 0.9, 0.15, cutoff_hz=3600, vibrato_cents=16, breath=0.02),
    "cello": Patch("saw", 0.06, 0.3, 0.9, 0.16, cutoff_hz=1500, vibrato_cents=10, breath=0.02),
    "organ": Patch("organ", 0.01, 0.1, 0.95, 0.06, cutoff_hz=4200, detune_cents=4),
    "pipe organ": Patch("organ", 0.05, 0.1, 1.0, 0.3, cutoff_hz=6500, detune_cents=5, breath=0.01),
    "stab": Patch("saw", 0.003, 0.16, 0.15, 0.08, cutoff_hz=1800, sweep=1.6, sweep_s=0.12, detune_cents=9),
    "dark stab": Patch("square", 0.003, 0.2, 0.1, 0.1, cutoff_hz=700, sweep=2.0, sweep_s=0.1, resonance=1.5),
    "synth pluck": Patch("saw", 0.002, 0.22, 0.05, 0.12, cutoff_hz=900, sweep=2.4, sweep_s=0.12, detune_cents=6),
    "acid": Patch("saw", 0.002, 0.2, 0.5, 0.03, cutoff_hz=420, sweep=2.6, sweep_s=0.11, resonance=4, drive=1.2),
    "synth bass": Patch("saw", 0.003, 0.25, 0.6, 0.04, cutoff_hz=500, sweep=1.6, sweep_s=0.15, resonance=0.6),
    "sub bass": Patch("triangle", 0.006, 0.3, 0.85, 0.05, cutoff_hz=260),
    "reese": Patch("saw", 0.01, 0.3, 0.9, 0.06, cutoff_hz=650, detune_cents=18, drive=0.8),
    "finger bass": Patch("string", 0.002, 1.0, 1.0, 0.06, cutoff_hz=1500, ring_s=2.2, damping=9, pick=0.3),
    "upright bass": Patch("string", 0.006, 1.0, 1.0, 0.08, cutoff_hz=800, ring_s=1.4, damping=16, pick=0.42),
    "nylon guitar": Patch("string", 0.002, 1.0, 1.0, 0.15, cutoff_hz=3000, ring_s=2.2, damping=7, pick=0.31),
    "steel guitar": Patch("string", 0.001, 1.0, 1.0, 0.15, cutoff_hz=6500, ring_s=3.2, damping=3, pick=0.17),
    "harp": Patch("string", 0.002, 1.0, 1.0, 0.5, cutoff_hz=4200, ring_s=3.0, damping=5, pick=0.48),
    "harpsichord": Patch("string", 0.001, 1.0, 1.0, 0.07, cutoff_hz=11000, ring_s=2.6, damping=1.6, pick=0.09),
    "muted guitar": Patch("string", 0.001, 1.0, 1.0, 0.04, cutoff_hz=2200, ring_s=0.35, damping=6, pick=0.15),
    "electric guitar": Patch(
        "string", 0.002, 1.0, 1.0, 0.06, cutoff_hz=4200, ring_s=6.0, damping=2.5, pick=0.13, drive=9
    ),
    "lead guitar": Patch(
        "string", 0.003, 1.0, 1.0, 0.08, cutoff_hz=3600, ring_s=7.0, damping=2, pick=0.2, drive=6, vibrato_cents=14
    ),
    "grand piano": Patch("piano", 0.002, 1.0, 1.0, 0.25, cutoff_hz=4200, ring_s=5.0, damping=4, detune_cents=1.2),
    "felt piano": Patch("piano", 0.008, 1.0, 1.0, 0.3, cutoff_hz=1300, ring_s=4.0, damping=8, detune_cents=1.6),
    "electric piano": Patch("fm", 0.002, 1.6, 0.0, 0.15, ratio=1.0, index=1.4, index_s=0.5, detune_cents=2),
    "tine piano": Patch("fm", 0.002, 1.8, 0.0, 0.15, ratio=14.0, index=0.35, index_s=0.12, detune_cents=2),
    "vibraphone": Patch("fm", 0.002, 1.4, 0.0, 0.5, ratio=4.0, index=0.6, index_s=0.25),
    "bell": Patch("fm", 0.002, 1.6, 0.0, 0.9, ratio=3.5, index=1.6, index_s=0.9, detune_cents=3),
    "metal": Patch("fm", 0.001, 0.6, 0.0, 0.2, ratio=2.76, index=5.0, index_s=0.3, drive=1.5),
    "growl": Patch("fm", 0.02, 0.4, 0.8, 0.1, ratio=0.5, index=4.0, index_s=1.2, drive=2.5, detune_cents=8),
}


def vary_patch(patch: Patch, rng: np.random.Generator, amount: float, brightness: float = 0.0) -> Patch:
    """Return a variation of an instrument; `amount` (standard deviation of changes) and `brightness` are in octaves."""
    z = 2.0 ** (amount * np.clip(rng.standard_normal(8), -2.0, 2.0))
    return replace(
        patch,
        attack_s=patch.attack_s * z[0],
        decay_s=patch.decay_s * z[1],
        release_s=patch.release_s * z[2] ** 0.5,
        cutoff_hz=float(np.clip(patch.cutoff_hz * z[3] * 2.0**brightness, 150.0, _HIGHEST_HZ)),
        detune_cents=patch.detune_cents * z[4],
        ring_s=patch.ring_s * z[5] ** 0.5,
        damping=patch.damping * z[6] * 2.0 ** (-0.5 * brightness),
        index=patch.index * z[7] * 2.0 ** (0.6 * brightness),
        pick=float(np.clip(patch.pick * z[4] ** 0.5, 0.04, 0.5)),
    )


def softer(patch: Patch) -> Patch:
    """Return the instrument as if played softly: duller, with a slower attack."""
    return replace(
        patch,
        attack_s=1.3 * patch.attack_s,
        cutoff_hz=0.7 * patch.cutoff_hz,
        index=0.7 * patch.index,
        damping=1.25 * patch.damping,
        detune_cents=1.25 * patch.detune_cents,
    )


def play_note(patch: Patch, pitch: float, duration_s: float, seed: int) -> Float32Array:
    """Synthesize one note: float32 (1 or 2, n_samples); a detuned patch produces two channels.

    The key is released after `duration_s`; the patch's release follows. `pitch` is a MIDI number.
    """
    f0 = 440.0 * 2.0 ** ((pitch - 69.0) / 12.0)
    n = max(64, round((duration_s + patch.release_s) * SAMPLE_RATE))
    rng = np.random.default_rng([seed, round(pitch * 8)])
    cents = (-patch.detune_cents, patch.detune_cents) if patch.detune_cents else (0.0,)
    time = np.arange(n, dtype=np.float32) * np.float32(1.0 / SAMPLE_RATE)
    tables = None if patch.source == "fm" else _tables(patch, f0, rng)
    start = rng.random()
    voices = []
    for i, c in enumerate(cents):
        # Both voices of a unison start at similar phases. Opposite phases would cancel in a mono mix.
        cycles = _cycles(f0 * 2.0 ** (c / 1200.0), n, patch, start=start + 0.12 * i)
        if tables is None:
            voices.append(_modulate(patch, f0, cycles, time))
        else:
            voices.append(_scan(tables, cycles, _position(patch, time)))
    sound = np.stack(voices)
    if len(sound) == 2:
        sound = np.float32(0.8) * sound + np.float32(0.42) * sound[::-1]
    sound *= _envelope(patch, duration_s, n)
    if patch.breath:
        sound += _breath(patch, duration_s, n, rng)
    if patch.drive:
        gain, level = patch.drive / _LEVEL * 0.5, _LEVEL * 1.4 / (1.0 + 0.06 * patch.drive)
        sound = np.tanh(sound * np.float32(gain)) * np.float32(level)
    return sound


def sustain(patch: Patch, pitch: float, ratios: Sequence[float], rng: np.random.Generator) -> Float32Array:
    """Synthesize a seamless loop of a drone: float32 (2, 2 * SAMPLE_RATE), standard deviation 1.

    `ratios` are the frequencies of the notes relative to `pitch` (a MIDI number), in multiples of 0.5. Their harmonics
    coincide, so they do not beat against each other. Each harmonic has a softer neighbor and beats slowly with it.
    """
    size = 2 * SAMPLE_RATE
    spectrum = np.zeros((2, size // 2 + 1), dtype=np.complex128)
    root = round(440.0 * 2.0 ** ((pitch - 69.0) / 12.0))
    for ratio in ratios:
        f0 = root * ratio
        k = np.arange(1, int(_HIGHEST_HZ // f0) + 1, dtype=np.float64)
        amplitude = _source_spectrum(patch, k, f0, rng) * _low_pass(k * f0, np.array(patch.cutoff_hz), 0.0)
        amplitude /= np.sqrt(np.sum(amplitude**2))
        bins = np.round(k * f0 * size / SAMPLE_RATE).astype(np.int64)
        shared = rng.random(k.size)
        for channel in (0, 1):
            spectrum[channel, bins] += amplitude * np.exp(2j * np.pi * (shared + 0.15 * rng.random(k.size)))
            spectrum[channel, bins + 1] += 0.25 * amplitude * np.exp(2j * np.pi * rng.random(k.size))
    sound = np.fft.irfft(spectrum, n=size, axis=1)
    return (sound / sound.std()).astype(np.float32)


def _cycles(hz: float, n: int, patch: Patch, start: float) -> Float64Array:
    """Return the number of cycles up to each sample as float64, because float32 drifts out of tune within seconds."""
    time = np.arange(n, dtype=np.float64) / SAMPLE_RATE
    cycles = start + hz * time
    if patch.vibrato_cents:
        depth = hz * (2.0 ** (patch.vibrato_cents / 1200.0) - 1.0) / (2.0 * np.pi * patch.vibrato_hz)
        coarse = time.astype(np.float32)
        onset = np.minimum(coarse / np.float32(0.35), 1.0)  # players start their vibrato late
        cycles += np.float32(depth) * onset * np.sin(np.float32(2.0 * np.pi * patch.vibrato_hz) * coarse)
    return cycles


def _source_spectrum(patch: Patch, k: npt.NDArray, f0: float, rng: np.random.Generator) -> npt.NDArray:
    """Return the amplitudes of the harmonics `k` before filtering."""
    odd = k % 2 == 1
    match patch.source:
        case "square":
            amplitude = np.where(odd, 1.0 / k, 0.0)
        case "triangle":
            amplitude = np.where(odd, 1.0 / k**2, 0.02 / k)
        case "pulse":
            amplitude = np.abs(np.sin(np.pi * k * 0.25)) / k
        case "organ":
            pulled = np.array([_DRAWBARS.get(int(i), 0.0) for i in k])
            amplitude = pulled * rng.uniform(0.6, 1.3, k.size)
        case "reed":
            amplitude = np.where(odd, 1.0, 0.55) / k**0.8
        case "voice":
            hz = k[:, None] * f0
            vowel = np.exp(-0.5 * ((hz - _FORMANTS[0]) / _FORMANTS[1]) ** 2) @ _FORMANTS[2]
            amplitude = (vowel + 0.04) / k**0.5
        case "string":
            burst = rng.uniform(0.5, 1.0, k.size)  # the noise that excites a Karplus-Strong string
            amplitude = burst * (np.abs(np.sin(np.pi * k * patch.pick)) + 0.05) / k**0.6
        case "piano":
            amplitude = (np.abs(np.sin(np.pi * k / 7.5)) + 0.15) / k**0.9
        case _:
            amplitude = 1.0 / k
    return amplitude


def _tables(patch: Patch, f0: float, rng: np.random.Generator) -> Float32Array:
    """Return single cycles (n_tables, _CYCLE), from the start of a note to its end."""
    n_harmonics = int(np.clip(_HIGHEST_HZ // f0, 1, _CYCLE // 4))
    k = np.arange(1, n_harmonics + 1, dtype=np.float64)
    amplitude = _source_spectrum(patch, k, f0, rng)
    hz = k * f0
    if patch.source in ("string", "piano"):
        # A Karplus-Strong loop in closed form: each round trip multiplies harmonic k by its loss and by the gain of the
        # averaging filter.
        ring = patch.ring_s * (220.0 / f0) ** 0.35
        loss_per_s = 6.9 / ring - f0 * patch.damping * np.log(np.maximum(np.cos(np.pi * hz / SAMPLE_RATE), 0.05))
        amplitude = amplitude / np.sqrt(1.0 + (hz / patch.cutoff_hz) ** 4)
        gains = np.exp(-_MOMENTS[:, None] * loss_per_s[None, :])
    elif patch.sweep:
        cutoff = patch.cutoff_hz * 2.0 ** (patch.sweep * np.linspace(1.0, 0.0, 5))[:, None]
        gains = _low_pass(hz[None, :], cutoff, patch.resonance)
    else:
        gains = _low_pass(hz[None, :], np.array([[patch.cutoff_hz], [patch.cutoff_hz]]), patch.resonance)
    amplitude = amplitude / np.sqrt(np.sum((amplitude * gains[0]) ** 2) + 1e-12)
    spectrum = np.zeros((len(gains), _CYCLE // 2 + 1), dtype=np.complex128)
    spectrum[:, 1 : n_harmonics + 1] = amplitude * gains * np.exp(2j * np.pi * rng.random(n_harmonics))
    return (np.fft.irfft(spectrum, axis=1) * (_LEVEL * _CYCLE / np.sqrt(2.0))).astype(np.float32)


_MOMENTS = 4.0 * np.linspace(0.0, 1.0, 10) ** 2.0


def _low_pass(hz: npt.NDArray, cutoff: npt.NDArray, resonance: float) -> npt.NDArray:
    peak = resonance * np.exp(-0.5 * (np.log2(hz / cutoff) / 0.22) ** 2)
    return 1.0 / np.sqrt(1.0 + (hz / cutoff) ** 4) + peak


def _position(patch: Patch, time: Float32Array) -> npt.NDArray:
    """Return a note's position in the sequence of tables over time, from 0 to 1."""
    if patch.source in ("string", "piano"):
        return np.sqrt(np.minimum(time / np.float32(_MOMENTS[-1]), 1.0))
    if patch.sweep:
        return 1.0 - np.exp(-time / np.float32(patch.sweep_s))
    return np.zeros_like(time)


def _scan(tables: Float32Array, cycles: Float64Array, position: Float32Array) -> Float32Array:
    n_tables = len(tables)
    place = np.minimum(position * np.float32(n_tables - 1), np.float32(n_tables - 1.001))
    row = place.astype(np.int32)
    index = (cycles * _CYCLE).astype(np.int64) & (_CYCLE - 1)
    index += row.astype(np.int64) * _CYCLE
    flat = tables.ravel()
    near = flat[index]
    return near + (place - row.astype(np.float32)) * (flat[index + _CYCLE] - near)


def _modulate(patch: Patch, f0: float, cycles: Float64Array, time: Float32Array) -> Float32Array:
    # The sidebands reach about f0 (1 + ratio (index + 1)); keep them below the limit.
    room = max(0.0, (_HIGHEST_HZ / f0 - 1.0) / patch.ratio - 1.0)
    index = np.float32(min(patch.index, room)) * np.exp(-time / np.float32(patch.index_s))
    turns = np.float32(2.0 * np.pi)
    modulator = np.sin(turns * np.mod(cycles * patch.ratio, 1.0).astype(np.float32))
    carrier = np.mod(cycles, 1.0).astype(np.float32)
    return np.float32(_LEVEL * 1.3) * np.sin(turns * carrier + index * modulator)


def _envelope(patch: Patch, duration_s: float, n: int) -> Float32Array:
    """Return the envelope: a quarter-sine attack, a decay towards the sustain level, and a release to 0."""
    held = min(n, max(1, round(duration_s * SAMPLE_RATE)))
    time = np.arange(held, dtype=np.float32) * np.float32(1.0 / SAMPLE_RATE)
    level = np.empty(n, dtype=np.float32)
    level[:held] = patch.sustain + (1.0 - patch.sustain) * np.exp(-time / np.float32(patch.decay_s * 0.5))
    n_attack = min(held, max(8, round(patch.attack_s * SAMPLE_RATE)))
    level[:n_attack] *= np.sin(np.linspace(0.0, np.pi / 2.0, n_attack, dtype=np.float32))
    level[held:] = level[held - 1] * np.linspace(1.0, 0.0, n - held, dtype=np.float32) ** 2
    return level


def _breath(patch: Patch, duration_s: float, n: int, rng: np.random.Generator) -> Float32Array:
    noise = rng.standard_normal((1, n), dtype=np.float32)
    noise[:, 1:] -= 0.7 * noise[:, :-1]  # breath is mostly hiss, so reduce low frequencies
    return noise * (np.float32(patch.breath * _LEVEL) * _envelope(patch, duration_s, n))
