"""Recordings with a known tempo or key: the GiantSteps collections, and files with tags.

GiantSteps (Knees et al., ISMIR 2015) has one annotation file per recording, with the recording's name. A file such as
``1234.LOFI.bpm`` contains a number, and ``1234.LOFI.key`` a key such as ``Eb minor``.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import mutagen

from musicsim.audio import KEYS
from musicsim.library.scan.files import find_audio

Key = tuple[str, str]
_TEMPO_TAGS = ("bpm", "tbpm", "tmpo", "tempo")
_KEY_TAGS = ("initialkey", "initial_key", "tkey", "key")
_MIN_TEMPO, _MAX_TEMPO = 30.0, 300.0
_OTHER_NAMES = {"Db": "C#", "D#": "Eb", "Gb": "F#", "G#": "Ab", "A#": "Bb", "Cb": "B", "Fb": "E", "E#": "F", "B#": "C"}
_KEY = re.compile(r"([A-G][#b]?)\s*(maj|major|m|min|minor)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LabelledRecording:
    """A file with its tempo in beats per minute or its key, or both; None if unknown."""

    path: Path
    tempo: float | None
    key: Key | None


def read_labels(folder: Path) -> Iterator[LabelledRecording]:
    """Yield the recordings in a folder whose tempo or key is known; an annotation takes precedence over a tag."""
    # sorted, so that the corrected annotations of 2018, in annotations_v2, replace those of 2015
    annotations = {
        (file.stem, file.suffix): file for file in sorted(folder.rglob("*")) if file.suffix in (".bpm", ".key")
    }
    for file in find_audio([folder]).files:
        tempo, key = _read_tags(file.path)
        if (file.path.stem, ".bpm") in annotations:
            tempo = parse_tempo(annotations[file.path.stem, ".bpm"].read_text(encoding="utf-8"))
        if (file.path.stem, ".key") in annotations:
            key = parse_key(annotations[file.path.stem, ".key"].read_text(encoding="utf-8"))
        if tempo is not None or key is not None:
            yield LabelledRecording(file.path, tempo, key)


def parse_tempo(text: str) -> float | None:
    """Return a tempo in beats per minute, or None if the text is not a plausible one; 0 means that there is none."""
    try:
        tempo = float(text)
    except ValueError:
        return None
    return tempo if _MIN_TEMPO <= tempo <= _MAX_TEMPO else None


def parse_key(text: str) -> Key | None:
    """Return tonic and mode of a key such as ``Eb minor``, ``F#m`` or ``A``, or None for other texts."""
    match = _KEY.fullmatch(text.strip())
    if match is None:
        return None
    tonic = match[1][0].upper() + match[1][1:].lower()
    tonic = _OTHER_NAMES.get(tonic, tonic)
    is_minor = (match[2] or "").lower() in ("m", "min", "minor") and match[2] != "M"
    return (tonic, "minor" if is_minor else "major") if tonic in KEYS else None


def _read_tags(path: Path) -> tuple[float | None, Key | None]:
    try:
        tags = (mutagen.File(path) or {}).items()
    except (mutagen.MutagenError, OSError):
        return None, None
    texts = {name.lower().removeprefix("txxx:"): _text_of(value) for name, value in tags}
    tempo = next((texts[name] for name in _TEMPO_TAGS if name in texts), "")
    key = next((texts[name] for name in _KEY_TAGS if name in texts), "")
    return parse_tempo(tempo), parse_key(key)


def _text_of(value: object) -> str:
    """Return the first value of a tag as text, in any of mutagen's formats."""
    value = getattr(value, "text", value)
    return str(value[0] if isinstance(value, list | tuple) and value else value)
