"""Import a local copy of a public data set into a library with mirdata's loaders."""

from __future__ import annotations

import json
import os
import stat
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from musicsim import library as libraries
from musicsim.errors import LibraryError

# maps each label to attributes of mirdata's tracks; the first attribute with a value is used
_LABELS = {
    "artist": ("artist", "artists", "composer"),
    "title": ("title",),
    "album": ("album",),
    "genre": ("genre", "genres", "style"),
}
_TAGS = ("tags", "genres", "instruments", "instrument", "moods")
_MAX_METADATA, _MAX_ANNOTATIONS = 4 << 30, 64 << 20  # maximum bytes of a file about the data set, or about a track
_MAX_TEXT, _MAX_TAGS, _MAX_WEIGHT = 1_000, 10_000, 1e9  # maxima: characters in a label, tags per song, tag weight
_NAMES = "datasets"  # key under which the library stores a JSON list of data set names
_KNOWN_FAULTS = {
    "gtzan_genre": "GTZAN contains repetitions, several excerpts of the same recording, wrong labels and distortions, "
    "and does not name artists (Sturm 2013, arXiv:1306.1461). musicsim counts identical repetitions once. Wrong labels "
    "limit every score. Scores are too high, because songs cannot be split by artist."
}
"""Known faults, keyed by mirdata's name for the data set."""


@dataclass(slots=True)
class DatasetTracks:
    name: str
    labels: dict[Path, dict[str, str]] = field(default_factory=dict)  # maps each file and label to a value
    tags: dict[Path, dict[str, float]] = field(default_factory=dict)  # maps each file and tag to a weight
    parts: dict[Path, str] = field(default_factory=dict)  # maps each file in the official split to its part
    n_absent: int = 0  # number of tracks whose file is missing from the folder

    @property
    def folders(self) -> list[Path]:
        """Folders with audio. Each becomes a root of the library, so its name does not replace a missing artist."""
        return sorted({path.parent for path in self.labels})


def read_dataset(name: str, data_home: Path, version: str = "default") -> DatasetTracks:
    """Read a data set's index, labels and split. Raises LibraryError if a file is damaged or not in its folder."""
    dataset, track_ids = _open_dataset(name, data_home, version)
    tracks = DatasetTracks(name)
    files = _list_files(dataset, data_home)
    parts = _official_parts(dataset)
    for track_id in track_ids:
        try:
            track = dataset.track(track_id)
            audio = getattr(track, "audio_path", None)
        except Exception as error:
            raise _damage_error(name, error) from error
        if audio is None or not Path(audio).is_file():
            tracks.n_absent += 1
            continue
        path = Path(audio).absolute()
        if any(_is_too_large(file) for file in files[track_id] if file != Path(os.path.normpath(path))):
            tracks.labels[path], tracks.tags[path] = {}, {}
            continue
        texts = {
            label: label_text(next(filter(None, (read_attribute(track, n) for n in names)), None))
            for label, names in _LABELS.items()
        }
        tracks.labels[path] = {label: text for label, text in texts.items() if text}
        tracks.tags[path] = {tag: w for name in _TAGS for tag, w in tag_weights(read_attribute(track, name)).items()}
        if (part := libraries.part_of(parts.get(track_id, ""))) is not None:
            tracks.parts[path] = part
    if not tracks.labels:
        raise LibraryError(
            f"{data_home}: none of the {len(track_ids):,} files of {name} was found in this folder. Use the folder "
            "that mirdata calls data_home."
        )
    return tracks


def _open_dataset(name: str, data_home: Path, version: str) -> tuple[Any, list[str]]:
    try:
        import mirdata
    except ImportError as error:
        raise LibraryError("data sets need the package mirdata: python -m pip install mirdata.") from error
    try:
        dataset = mirdata.initialize(name, data_home=str(data_home), version=version)
        return dataset, dataset.track_ids
    except FileNotFoundError as error:
        raise LibraryError(
            f"{name}: mirdata has no index for this data set yet. Download the index and the data: "
            f"python -c \"import mirdata; mirdata.initialize('{name}', '{data_home}').download()\""
        ) from error
    except ImportError as error:
        raise LibraryError(
            f"{name}: mirdata cannot import a package ({error}). Run: python -m pip install --upgrade mirdata."
        ) from error
    # the index is damaged, the name or version is unknown, or there are no tracks
    except (ValueError, AttributeError, TypeError, LookupError) as error:
        raise LibraryError(f"{name}: mirdata cannot load this data set ({error}).") from error


def _damage_error(name: str, error: BaseException) -> LibraryError:
    return LibraryError(
        f"{name}: the data set's index is damaged ({type(error).__name__}). Download it again with mirdata."
    )


def _list_files(dataset: Any, data_home: Path) -> dict[str, list[Path]]:
    """Return a dict from track id to files in the index. Raises LibraryError for files outside the data set."""
    top, home = data_home.absolute(), data_home.resolve()

    def inside(name: str) -> Path:
        path = Path(os.path.normpath(top / name))
        if not path.is_relative_to(os.path.normpath(top)) or not path.resolve().is_relative_to(home):
            raise LibraryError(
                f"{data_home}: the data set lists {name!r}, which is outside this folder. Copy that file into it."
            )
        return path

    try:
        index = dataset._index
        tracks = {
            track_id: [inside(entry[0]) for entry in files.values() if isinstance(entry, list) and entry[0]]
            for track_id, files in index["tracks"].items()
        }
        metadata = [inside(entry[0]) for entry in (index.get("metadata") or {}).values() if entry and entry[0]]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise _damage_error(dataset.name, error) from error
    for path in metadata:
        if _is_too_large(path, _MAX_METADATA):
            raise LibraryError(f"{path}: this file is larger than {_MAX_METADATA >> 30} GB. Download it again.")
    return tracks


def _is_too_large(path: Path, max_bytes: int = _MAX_ANNOTATIONS) -> bool:
    """Return True if a file is larger than `max_bytes`, or is a pipe or a device."""
    try:
        status = path.stat()
    except OSError:  # a missing file needs no check
        return False
    return status.st_size > max_bytes or not stat.S_ISREG(status.st_mode)


def _official_parts(dataset: Any) -> dict[str, str]:
    try:
        return {track_id: str(part) for part, ids in dataset.get_track_splits().items() for track_id in ids}
    except Exception:  # there is no split, or its file is missing or damaged
        return {}


def read_attribute(track: Any, name: str) -> Any:
    """Return an attribute of a track; None if the attribute or its file is missing or damaged."""
    try:
        return getattr(track, name, None)
    except Exception:  # loaders of different data sets raise different errors
        return None


def label_text(value: Any) -> str:
    """Return a label as a string; if there are several labels, return the first."""
    if isinstance(value, Mapping | list | tuple):
        value = next(iter(value), "")
    return str(value)[:_MAX_TEXT].replace("\0", " ").strip() if value else ""


def tag_weights(value: Any) -> dict[str, float]:
    """Return a dict from tag to weight; tags with a probability below 0.5 are dropped."""
    if isinstance(value, Mapping):
        numbers = {label_text(tag): w for tag, w in islice(value.items(), _MAX_TAGS) if isinstance(w, int | float)}
        return {tag: float(w) for tag, w in numbers.items() if tag and 0.5 <= w <= _MAX_WEIGHT}
    if isinstance(value, list | tuple):
        return {text: 1.0 for tag in value[:_MAX_TAGS] if isinstance(tag, str) and (text := label_text(tag))}
    return {}


def label_songs(library: libraries.Library, tracks: DatasetTracks) -> int:
    """Save a data set's labels (as edits of its songs) and its official split; return the number of songs."""
    song_at = library.files.songs_at(tracks.labels)
    ids_by_labels: defaultdict[tuple[tuple[str, str], ...], list[int]] = defaultdict(list)
    for path, song_id in song_at.items():
        ids_by_labels[tuple(sorted(tracks.labels[path].items()))].append(song_id)
    for labels, ids in ids_by_labels.items():
        if labels:
            library.edits.edit(ids, dict(labels))
    rows = [
        {"song_id": song_id, "tag": tag, "weight": weight}
        for path, song_id in song_at.items()
        for tag, weight in tracks.tags[path].items()
    ]
    library.listening.add_tags(rows, source=f"mirdata:{tracks.name}")
    if tracks.parts:
        parts = {song_at[path]: part for path, part in tracks.parts.items() if path in song_at}
        library.splits.keep(tracks.name, parts)
    library.update_text(_NAMES, lambda text: json.dumps(sorted({*_parse(text), tracks.name})), is_change=True)
    return len(song_at)


def _parse(names: str | None) -> list[str]:
    try:
        stored = json.loads(names or "[]")
    except ValueError:  # a different program wrote the list
        return []
    return [name for name in stored if isinstance(name, str)] if isinstance(stored, list) else []


def list_faults(library: libraries.Library) -> list[str]:
    return [_KNOWN_FAULTS[name] for name in _parse(library.text(_NAMES)) if name in _KNOWN_FAULTS]
