"""Draw a fade on the beat between two recordings: ``python docs/transitions.py FIRST SECOND PICTURE.png``.

The earlier recording is mixed to the left channel and the later one to the right, so that both can be seen in the mix.
Curves are librosa's onset strengths. Vertical lines are the beats that were found: those of the earlier recording up to
the end of the fade, and those of the later one from its start. ``--start S`` uses 30 seconds from S of both recordings.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from musicsim._arrays import Float32Array  # noqa: E402
from musicsim.audio import SAMPLE_RATE, decode, estimate_tempo, rhythm  # noqa: E402
from musicsim.extensions.mixtape.excerpts import Excerpt  # noqa: E402
from musicsim.extensions.mixtape.fades import Fade, Mixer  # noqa: E402

WIDTH, ROW, LEFT, TOP = 1200, 130, 150, 60
BEFORE_S = AFTER_S = 3.0
COLORS = {"earlier song": "#1f77b4", "later song": "#d95f02", "mix": "#333333"}
EXCERPT_S = 30


def mix(paths: list[Path], start_s: float, n_beats: int) -> tuple[Fade, Float32Array]:
    """Return the fade between two recordings, and samples (2, n) with one recording per channel."""
    parts: list[Float32Array] = []
    mixer = Mixer(lambda samples: parts.append(samples.copy()), SAMPLE_RATE, 4 * SAMPLE_RATE, n_beats)
    for channel, path in enumerate(paths):
        y = decode(path, sr=SAMPLE_RATE).samples[round(start_s * SAMPLE_RATE) :][: EXCERPT_S * SAMPLE_RATE]
        samples = np.zeros((2, len(y)), np.float32)
        samples[channel] = y / np.sqrt(np.mean(np.square(y))) / 10
        mixer.add(Excerpt(samples, start_s, estimate_tempo(rhythm(y))))
    mixer.finish()
    (fade,) = mixer.fades
    return fade, np.concatenate(parts, axis=1)


def draw(fade: Fade, y: Float32Array, path: Path) -> None:
    """Draw the onset strengths around a fade, and its beats."""
    import librosa

    first_s, last_s = fade.start_s - BEFORE_S, fade.start_s + fade.duration_s + AFTER_S
    part = y[:, round(first_s * SAMPLE_RATE) : round(last_s * SAMPLE_RATE)]
    picture = Image.new("RGB", (WIDTH, TOP + 3 * ROW + 40), "white")
    canvas, font = ImageDraw.Draw(picture), ImageFont.load_default(18)

    def x_of(seconds: float) -> float:
        return LEFT + (WIDTH - LEFT - 20) * (seconds - first_s) / (last_s - first_s)

    end_s = fade.start_s + fade.duration_s
    canvas.rectangle((x_of(fade.start_s), TOP, x_of(end_s), TOP + 3 * ROW), fill="#eef3f8")
    canvas.text((x_of(fade.start_s), TOP - 30), f"fade: {fade.words}", fill="black", font=font)
    leaving_s, arriving_s = ((b - a) / fade.n_beats for a, b in (fade.out_s, fade.in_s))
    beats = fade.start_s + np.arange(fade.n_beats + 1) * fade.duration_s / fade.n_beats
    before = fade.start_s - leaving_s * np.arange(1, int(BEFORE_S / leaving_s) + 1)
    after = end_s + arriving_s * np.arange(1, int(AFTER_S / arriving_s) + 1)
    rows = ((0, np.concatenate([before, beats])), (1, np.concatenate([beats, after])), (2, beats))
    for (name, color), (row, times) in zip(COLORS.items(), rows, strict=True):
        bottom = TOP + (row + 1) * ROW - 8
        for beat_s in times:
            canvas.line((x_of(beat_s), bottom - ROW + 16, x_of(beat_s), bottom), fill="#bbbbbb", width=2)
        sound = part.sum(axis=0) if name == "mix" else part[row]
        strength = librosa.onset.onset_strength(
            y=sound, sr=SAMPLE_RATE, hop_length=256, n_fft=1024, aggregate=np.median
        )
        heights = bottom - (ROW - 24) * strength / strength.max()
        xs = [x_of(first_s + i * 256 / SAMPLE_RATE) for i in range(len(strength))]
        canvas.line(list(zip(xs, heights.tolist(), strict=True)), fill=color, width=2)
        canvas.text((10, bottom - ROW / 2), name, fill=color, font=font)
    for second in range(int(np.ceil(first_s)), int(last_s) + 1):
        canvas.text((x_of(second) - 8, TOP + 3 * ROW + 8), f"{second} s", fill="black", font=ImageFont.load_default(14))
    picture.quantize(64).save(path, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recordings", type=Path, nargs=2)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--start", type=float, default=30.0)
    given = parser.parse_args()
    fade, y = mix(given.recordings, given.start, 16)
    if not fade.n_beats:
        raise SystemExit(f"The fade is not on the beat: {fade.reason}. Choose other recordings.")
    draw(fade, y, given.picture)


if __name__ == "__main__":
    main()
