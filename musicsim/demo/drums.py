"""Synthesize unpitched sounds, drum kits and background textures: float32 (n_samples,) at ``SAMPLE_RATE``."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array
from musicsim.demo.effects import glide
from musicsim.demo.voices import SAMPLE_RATE

DRUMS = ("kick", "snare", "clap", "rim", "hat", "open", "ride", "crash", "tom", "shaker")
TEXTURES = ("wind", "rain", "crackle", "hiss", "machine")


@dataclass(frozen=True, slots=True)
class Kit:
    """Parameters of one drum kit: frequencies in Hz, lengths in seconds, and amounts."""

    kick_hz: float = 50.0
    kick_sweep: float = 3.0
    kick_s: float = 0.3
    click: float = 0.3
    snare_hz: float = 190.0
    snare_s: float = 0.18
    snare_noise: float = 0.7
    noise_hz: float = 3500.0
    hat_hz: float = 8000.0
    hat_s: float = 0.05
    metal: float = 0.3
    drive: float = 0.0


KITS: dict[str, Kit] = {
    "acoustic": Kit(62, 1.6, 0.22, 0.5, 200, 0.2, 0.65, 3200, 7500, 0.06, 0.4),
    "rock": Kit(58, 1.8, 0.25, 0.8, 180, 0.26, 0.7, 2600, 6500, 0.08, 0.5, drive=0.6),
    "brushes": Kit(70, 1.2, 0.18, 0.15, 220, 0.14, 0.93, 4200, 7000, 0.07, 0.55),
    "808": Kit(46, 2.2, 0.5, 0.15, 170, 0.2, 0.6, 4500, 9000, 0.05, 0.7),
    "909": Kit(50, 4.5, 0.32, 0.45, 190, 0.17, 0.75, 4800, 8500, 0.05, 0.5),
    "techno": Kit(47, 5.0, 0.28, 0.35, 210, 0.13, 0.8, 5200, 9500, 0.035, 0.6, drive=1.2),
    "break": Kit(66, 2.0, 0.16, 0.6, 230, 0.16, 0.7, 4000, 7800, 0.05, 0.45, drive=0.9),
    "dusty": Kit(60, 1.7, 0.2, 0.3, 185, 0.16, 0.7, 2300, 5200, 0.05, 0.3, drive=0.8),
    "latin": Kit(68, 1.2, 0.14, 0.2, 330, 0.07, 0.4, 4600, 8200, 0.045, 0.4),
}

_LENGTHS = {"kick": 0.6, "snare": 0.45, "clap": 0.3, "rim": 0.06, "hat": 0.14, "open": 0.45, "ride": 0.7}
_LENGTHS |= {"crash": 1.4, "tom": 0.4, "shaker": 0.12}
_METAL_HZ = (205.3, 304.4, 369.6, 522.7, 540.0, 800.0)


def vary_kit(kit: Kit, rng: np.random.Generator, amount: float, brightness: float = 0.0) -> Kit:
    """Return a variation of a kit, with frequencies and lengths changed by about `amount` octaves."""
    z = 2.0 ** (amount * np.clip(rng.standard_normal(8), -2.0, 2.0))
    lift = 2.0 ** (0.5 * brightness)
    return replace(
        kit,
        kick_hz=kit.kick_hz * z[0] ** 0.5,
        kick_s=kit.kick_s * z[1],
        click=kit.click * z[2],
        snare_hz=kit.snare_hz * z[3] ** 0.7,
        snare_s=kit.snare_s * z[4],
        noise_hz=min(kit.noise_hz * z[5] * lift, 9000.0),
        hat_hz=min(kit.hat_hz * z[6] * lift, 12000.0),
        hat_s=kit.hat_s * z[7],
    )


def play_drum(kit: Kit, name: str, seed: int, variant: int = 0) -> Float32Array:
    """Synthesize one hit on one of ``DRUMS`` at full strength; `variant` changes its noise."""
    n = round(_LENGTHS[name] * SAMPLE_RATE)
    rng = np.random.default_rng([seed, DRUMS.index(name), variant])
    time = np.arange(n, dtype=np.float32) * np.float32(1.0 / SAMPLE_RATE)
    if name in ("kick", "tom"):
        sound = _membrane(kit, name, time, rng)
    elif name in ("snare", "clap", "rim"):
        sound = _struck_noise(kit, name, time, rng)
    else:
        sound = _metal(kit, name, time, rng)
    if kit.drive:
        sound = np.tanh(sound * np.float32(1.0 + kit.drive)) * np.float32(0.9)
    sound[-300:] *= np.linspace(1.0, 0.0, 300, dtype=np.float32)
    return sound


def _membrane(kit: Kit, name: str, time: Float32Array, rng: np.random.Generator) -> Float32Array:
    hz = kit.kick_hz if name == "kick" else kit.kick_hz * 2.1
    sweep_s = 0.035 if name == "kick" else 0.09
    sweep = kit.kick_sweep if name == "kick" else 0.6
    phase = hz * (time + sweep * sweep_s * (1.0 - np.exp(-time / np.float32(sweep_s))))
    body = np.sin(np.float32(2.0 * np.pi) * phase) * np.exp(-time / np.float32(kit.kick_s * 0.45))
    click = rng.standard_normal(time.size, dtype=np.float32) * np.exp(-time / np.float32(0.004))
    return body * np.float32(0.95) + click * np.float32(0.3 * kit.click)


def _struck_noise(kit: Kit, name: str, time: Float32Array, rng: np.random.Generator) -> npt.NDArray:
    if name == "rim":
        ring = np.sin(2.0 * np.pi * np.float32(kit.snare_hz * 4.3) * time)
        noise = _band(rng, time.size, 2500.0, 1.0)
        return ((ring + noise) * np.exp(-time / np.float32(0.011)) * np.float32(0.5)).astype(np.float32)
    noise = _band(rng, time.size, kit.noise_hz, 1.3) * np.exp(-time / np.float32(kit.snare_s * 0.45))
    if name == "clap":
        noise = _band(rng, time.size, kit.noise_hz * 0.45, 0.8)
        hands = sum(np.where(time >= s, np.exp(-(time - s) / 0.009), 0.0) for s in (0.0, 0.011, 0.023))
        tail = np.where(time >= 0.03, np.exp(-(time - 0.03) / np.float32(kit.snare_s * 0.5)), 0.0)
        return (noise * (0.6 * hands + 0.8 * tail) * 0.55).astype(np.float32)
    tone = np.sin(np.float32(2.0 * np.pi * kit.snare_hz) * (time + 0.004 * (1.0 - np.exp(-time / 0.01))))
    tone = tone * np.exp(-time / np.float32(0.07))
    return (noise * np.float32(kit.snare_noise * 0.75) + tone * np.float32(1.0 - 0.7 * kit.snare_noise)) * 0.8


def _metal(kit: Kit, name: str, time: Float32Array, rng: np.random.Generator) -> Float32Array:
    if name == "shaker":
        swell = np.sin(np.pi * np.minimum(time / 0.09, 1.0)) ** 2
        return (_band(rng, time.size, kit.hat_hz * 0.75, 0.6) * swell * 0.4).astype(np.float32)
    decay = {"hat": kit.hat_s * 0.45, "open": kit.hat_s * 3.5, "ride": 0.22, "crash": 0.4}[name]
    squares = np.float32(0.15) * np.sum([np.sign(np.sin(2.0 * np.pi * hz * 8.3 * time)) for hz in _METAL_HZ], axis=0)
    wide = 0.5 if name in ("hat", "open") else 1.0
    noise = _band(rng, time.size, kit.hat_hz, wide)
    share = np.float32(kit.metal * (1.3 if name == "ride" else 0.8))
    mix = (1.0 - share) * noise + share * _filter_band(squares, kit.hat_hz, wide)
    return (mix * np.exp(-time / np.float32(decay)) * (0.5 if name in ("hat", "open") else 0.4)).astype(np.float32)


def _filter_band(sound: npt.NDArray, center_hz: float, octaves: float) -> Float32Array:
    """Filter sound with a bell curve around `center_hz` that is `octaves` wide."""
    hz = np.fft.rfftfreq(sound.size, 1.0 / SAMPLE_RATE)
    bell = np.exp(-0.5 * (np.log2(np.maximum(hz, 1.0) / center_hz) / octaves) ** 2)
    return np.fft.irfft(np.fft.rfft(sound) * bell, n=sound.size).astype(np.float32)


def _band(rng: np.random.Generator, n: int, center_hz: float, octaves: float) -> Float32Array:
    """Return noise in a band, with a standard deviation of 0.5."""
    noise = _filter_band(rng.standard_normal(n, dtype=np.float32), center_hz, octaves)
    return noise * np.float32(0.5 / (noise.std() + 1e-9))


def play_texture(name: str, n: int, rng: np.random.Generator, brightness: float = 0.0) -> Float32Array:
    """Synthesize one of ``TEXTURES`` for a whole song: float32 (2, n); `brightness` is in octaves."""
    if name in ("crackle", "rain"):
        return _drops(name, n, rng)
    center, width = {"wind": (450, 0.9), "hiss": (7000, 0.8), "machine": (900, 1.6)}[name]
    # A three-second loop takes a tenth of the time that new noise takes. The right channel starts at a different point.
    loop = _band(rng, 3 * SAMPLE_RATE, center * 2.0**brightness, width)
    left = np.resize(loop, n)
    right = np.resize(np.roll(loop, SAMPLE_RATE + 1234), n)
    slow = glide(rng.uniform(0.35, 1.0, 14), -(-n // 13), n)
    if name == "machine":
        rate = float(rng.choice([4.0, 6.0, 8.0, 12.0]))
        beat = np.sin(np.float32(2.0 * np.pi * rate / SAMPLE_RATE) * np.arange(n, dtype=np.float32))
        slow *= 0.55 + 0.45 * np.tanh(3.0 * beat)
    return np.stack([left, right]) * (np.float32(0.3) * slow)


def _drops(name: str, n: int, rng: np.random.Generator) -> Float32Array:
    """Synthesize single ticks (vinyl crackle) or many small drops (rain)."""
    rate, length, hz = (14.0, 60, 3000.0) if name == "crackle" else (160.0, 240, 5200.0)
    n_drops = int(rate * n / SAMPLE_RATE)
    grain = _band(rng, length, hz, 1.0) * np.exp(-np.arange(length, dtype=np.float32) / (length / 5.0))
    sound = np.zeros((2, n + length), dtype=np.float32)
    starts = rng.integers(0, n, n_drops)
    sides = rng.integers(0, 2, n_drops)
    strengths = rng.lognormal(-1.2, 0.7, n_drops).clip(max=1.5).astype(np.float32)
    for start, side, strength in zip(starts, sides, strengths, strict=True):
        sound[side, start : start + length] += strength * grain
    return sound[:, :n] + np.float32(0.012) * np.resize(_band(rng, SAMPLE_RATE * 2, 4000.0, 1.5), (2, n))
