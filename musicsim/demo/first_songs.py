"""The sound of the demo's first songs, as files of the package: these songs play before any song is composed.

``python -m docs.demo_songs`` composes them. A file is named after the marker of its song's plan.
"""

from pathlib import Path

from musicsim._arrays import Float32Array

FOLDER = Path(__file__).parent / "songs"
N_SONGS = 12  # one per style; the first map needs as many


def find_sound(marker: str) -> Path | None:
    """Return the file with the sound of a plan; None if the song has to be composed."""
    path = FOLDER / f"{marker}.ogg"
    return path if path.exists() else None


def read_sound(path: Path) -> Float32Array:
    """Return what :func:`musicsim.demo.render` returned when the file was made, except for what Vorbis leaves out."""
    import soundfile

    samples, _ = soundfile.read(path, dtype="float32", always_2d=True)
    return samples
