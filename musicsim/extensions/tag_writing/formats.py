"""Read and write the file tags of this extension with mutagen, in every format that mutagen can write.

Tempo, key, ReplayGain and mood use the names that MusicBrainz Picard and most players use. Opus files get the gain of
RFC 7845 instead of ReplayGain. ID3 tags keep their version (2.2 becomes 2.4), and the old tag of ID3v1 stays.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from musicsim.errors import LibraryError

Values = tuple[str, ...]

TAGS = ("tempo", "key", "gain", "peak", "region", "mood")
"""The file tags that this extension writes; the property “replaygain” has two, gain and peak."""

_GAIN, _PEAK, _REGION = "REPLAYGAIN_TRACK_GAIN", "REPLAYGAIN_TRACK_PEAK", "MUSICSIM_REGION"
_ITUNES = "----:com.apple.iTunes:"
_VORBIS = ("BPM", "INITIALKEY", _GAIN, _PEAK, _REGION, "MOOD")
_NAMES = {
    "id3": ("TBPM", "TKEY", f"TXXX:{_GAIN}", f"TXXX:{_PEAK}", f"TXXX:{_REGION}", "TMOO"),
    "id3v2.3": ("TBPM", "TKEY", f"TXXX:{_GAIN}", f"TXXX:{_PEAK}", f"TXXX:{_REGION}", "TXXX:MOOD"),
    "vorbis": _VORBIS,
    "opus": ("BPM", "INITIALKEY", "R128_TRACK_GAIN", "", _REGION, "MOOD"),
    "ape": _VORBIS,
    "mp4": ("tmpo", *(_ITUNES + name for name in ("initialkey", _GAIN.lower(), _PEAK.lower(), _REGION, "MOOD"))),
    "asf": ("WM/BeatsPerMinute", "WM/InitialKey", _GAIN.lower(), _PEAK.lower(), _REGION, "WM/Mood"),
}
_R128_STEP, _R128_OFFSET = 256, 5.0  # steps per dB; dB between its reference, -23 LUFS, and that of ReplayGain
_ID3V1 = 128  # bytes


class TaggedFile:
    """The tags of one file. Raises LibraryError if mutagen cannot read or write tags in this format."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with _explain_errors(path):
            self._file, self._family = _open(path)
        names = zip(TAGS, _NAMES[self._family], strict=True)
        self._names = {tag: name for tag, name in names if name}
        self.tags = tuple(self._names)  # the tags that this format can hold

    def read(self) -> dict[str, Values]:
        """Return the values that the file has, keyed by tag."""
        with _explain_errors(self._path):
            return {tag: values for tag in self.tags if (values := self._values(tag))}

    def _values(self, tag: str) -> Values:
        raw = [self._file.tags[key] for key in self._keys(self._names[tag])]
        return tuple(filter(None, (text for value in raw for text in self._texts(tag, value))))

    def _keys(self, name: str) -> list[str]:
        """Return the keys that equal a name; programs disagree on upper and lower case."""
        return [key for key in self._file.tags.keys() if key.casefold() == name.casefold()]  # noqa: SIM118

    def _texts(self, tag: str, value: Any) -> Iterator[str]:
        items = value.text if hasattr(value, "text") else value if isinstance(value, list) else [value]
        if self._family == "ape":
            items = list(value)
        for item in items:
            text = item.decode("utf-8", "replace") if isinstance(item, bytes) else str(item)
            if self._family == "opus" and tag == "gain":
                text = _from_r128(text)
            yield from text.split("/") if tag == "mood" and self._family == "id3v2.3" else [text]

    def others(self) -> dict[str, str]:
        """Return everything else in the tags, to check that it stays."""
        ours, tags = {name.casefold() for name in self._names.values()}, self._file.tags
        with _explain_errors(self._path):
            found = {key: repr(tags[key]) for key in tags.keys() if key.casefold() not in ours}  # noqa: SIM118
            pictures = [repr(picture.write()) for picture in getattr(self._file, "pictures", ())]
        return found | {"pictures": "".join(pictures)}

    def write(self, values: Mapping[str, Values]) -> None:
        """Set tags in the file, which is changed in place."""
        before = _read_id3v1(self._path)
        with _explain_errors(self._path):
            for tag, texts in values.items():
                name = self._names[tag]
                for key in self._keys(name):
                    del self._file.tags[key]
                self._file.tags[name] = self._convert(tag, name, texts)
            self._file.save(**({"v2_version": 3 if self._family == "id3v2.3" else 4} if "id3" in self._family else {}))
        if before is not None and _read_id3v1(self._path) not in (None, before):  # mutagen writes it again
            with self._path.open("r+b") as stream:
                stream.seek(-_ID3V1, os.SEEK_END)
                stream.write(before)

    def _convert(self, tag: str, name: str, texts: Values) -> Any:
        """Return values in the type that mutagen expects for the format."""
        if self._family == "id3":
            return _make_frame(name, encoding=3, text=list(texts))
        if self._family == "id3v2.3":
            return _make_frame(name, encoding=1, text=["/".join(texts)])
        if self._family == "mp4":
            from mutagen.mp4 import AtomDataType, MP4FreeForm

            if name == "tmpo":
                return [int(texts[0])]
            return [MP4FreeForm(text.encode(), AtomDataType.UTF8) for text in texts]
        return [_to_r128(text) for text in texts] if self._family == "opus" and tag == "gain" else list(texts)


@contextmanager
def _explain_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (LibraryError, OSError):
        raise
    except Exception as error:  # mutagen raises many kinds of errors for damaged files
        raise LibraryError(f"{path}: mutagen cannot process its tags ({error}). Repair them with an editor.") from error


def _open(path: Path) -> tuple[Any, str]:
    """Open a file, with empty tags if it has none, and return it with the name of its kind of tags."""
    import mutagen
    from mutagen.apev2 import APEv2
    from mutagen.asf import ASFTags
    from mutagen.id3 import ID3
    from mutagen.mp4 import MP4Tags
    from mutagen.oggopus import OggOpus

    file = mutagen.File(path)
    is_new = file is not None and file.tags is None
    if is_new:
        try:
            file.add_tags()
        except (mutagen.MutagenError, NotImplementedError):
            file = None
    if file is None:
        raise LibraryError(f"{path}: this format has no tags that can be written. Convert the file, or leave it out.")
    tags = file.tags
    if isinstance(tags, ID3):
        version = () if is_new else tags.version[:2]
        if version in ((2, 3), (2, 4)):  # again, so that frames stay as they are, without those from ID3v1
            file = type(file)(path, translate=False, load_v1=False)
        return file, "id3v2.3" if version == (2, 3) else "id3"
    if isinstance(file, OggOpus):
        return file, "opus"
    kinds = {APEv2: "ape", ASFTags: "asf", MP4Tags: "mp4"}
    return file, next((family for kind, family in kinds.items() if isinstance(tags, kind)), "vorbis")


def _make_frame(name: str, **values: Any) -> Any:
    from mutagen import id3

    kind, _, description = name.partition(":")
    return id3.Frames[kind](**values, **({"desc": description} if description else {}))


def _read_id3v1(path: Path) -> bytes | None:
    with path.open("rb") as stream:
        stream.seek(max(path.stat().st_size - _ID3V1, 0))
        tail = stream.read()
    return tail if tail[:3] == b"TAG" and len(tail) == _ID3V1 else None


def format_gain(decibels: float) -> str:
    return f"{decibels:+.2f} dB"


def parse_gain(text: str) -> float | None:
    try:
        return float(text.casefold().removesuffix("db").strip())
    except ValueError:
        return None


def _to_r128(text: str) -> str:
    gain = parse_gain(text)
    assert gain is not None
    return str(round((gain - _R128_OFFSET) * _R128_STEP))


def _from_r128(text: str) -> str:
    try:
        return format_gain(int(text) / _R128_STEP + _R128_OFFSET)
    except ValueError:
        return text
