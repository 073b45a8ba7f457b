"""Compose the first songs of the demo as files of the package: ``python -m docs.demo_songs``.

Run it after a change of their plans or their sound; a test says when. Ogg Vorbis keeps the rate and the number of
samples, which Opus would not. All files together stay below 3 MB.
"""

import io

import soundfile

from musicsim.demo import SAMPLE_RATE, plan_collection, render
from musicsim.demo.first_songs import FOLDER, N_SONGS
from musicsim.demo.synthesis import mark, number_stream

_COMPRESSION = 0.8  # about 75 kbit/s; the error is 16 to 23 dB below the sound


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.ogg"):
        old.unlink()
    for plan in plan_collection()[:N_SONGS]:
        buffer = io.BytesIO()
        samples = render(plan)
        soundfile.write(
            buffer, samples, SAMPLE_RATE, format="OGG", subtype="VORBIS", compression_level=_COMPRESSION
        )  # fmt: skip
        number_stream(buffer)
        (FOLDER / f"{mark(plan)}.ogg").write_bytes(buffer.getvalue())


if __name__ == "__main__":
    main()
