"""A laboratory's copy of a public data set as a library, by the loaders of mirdata."""

import json
import os
import stat
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from musicsim.errors import LibraryError
from musicsim.library import Library
from musicsim.library.stores.splits import part_of

# attributes of loaders; the first that exists counts
_TEXTS = {
    "artist": ("artist", "artists", "composer"),
    "title": ("title",),
    "album": ("album",),
    "genre": ("genre", "genres", "style"),
}
_MAX_METADATA = 4 << 30  # bytes of a file on all tracks
_MAX_TEXT, _MAX_TAGS, _MAX_WEIGHT = 1_000, 10_000, 1e9  # of a label; of a song; no weight is infinite
_TAGS = ("tags", "genres", "instruments", "instrument", "moods")


_NAMES = "datasets"  # text of the library: a list of names as JSON
_KNOWN_FAULTS = {
    "gtzan_genre": "GTZAN holds repetitions, several excerpts of one recording, wrong labels and distortions, and does "
    "not say who plays (Sturm 2013, arXiv:1306.1461). Repetitions that sound the same count once here; wrong labels "
    "limit every score, and artists cannot be kept apart, so that scores are too high."
}
"""Known faults of data sets, by the name that mirdata has for them."""


@dataclass(slots=True)
class DatasetTracks:
    """Labels of the tracks that have audio."""

    name: str
    labels: dict[Path, dict[str, str]] = field(default_factory=dict)  # names as the library edits them
    tags: dict[Path, dict[str, float]] = field(default_factory=dict)  # weight by tag
    parts: dict[Path, str] = field(default_factory=dict)  # of the official split, if there is one
    n_absent: int = 0  # tracks whose file is not in the folder

    @property
    def folders(self) -> list[Path]:
        """Folders with audio. As folders of the library, they are not taken for artists."""
        return sorted({path.parent for path in self.labels})


def read_dataset(name: str, data_home: Path, version: str = "default") -> DatasetTracks:
    """Read the index, labels and split of a data set by mirdata's loader.

    Raises LibraryError if mirdata is not installed, has no such data set or no index of it, or the folder no audio;
    also if the index is damaged, or names files outside the folder.
    """
    try:
        import mirdata
    except ImportError as error:
        raise LibraryError("mirdata is needed for this: python -m pip install mirdata.") from error
    try:
        dataset = mirdata.initialize(name, data_home=str(data_home), version=version)
        track_ids = dataset.track_ids
    except FileNotFoundError as error:
        raise LibraryError(
            f"{name}: mirdata has no index of it yet. Fetch it and the data: "
            f"python -c \"import mirdata; mirdata.initialize('{name}', '{data_home}').download()\""
        ) from error
    except ImportError as error:
        raise LibraryError(
            f"{name}: mirdata lacks a package ({error}): python -m pip install --upgrade mirdata."
        ) from error
    # of damaged indexes, of names, of versions, and of data sets without tracks
    except (ValueError, AttributeError, TypeError, LookupError) as error:
        raise LibraryError(f"{name}: mirdata cannot load it ({error}).") from error
    found = DatasetTracks(name)
    listed = _listed_files(dataset, data_home)
    part_by_id = _official_parts(dataset)
    for track_id in track_ids:
        try:
            track = dataset.track(track_id)
            audio = getattr(track, "audio_path", None)
        except Exception as error:
            raise _damaged(name, error) from error
        if audio is None or not Path(audio).is_file():
            found.n_absent += 1
            continue
        path = Path(audio).absolute()
        if any(_is_too_large(file) for file in listed[track_id] if file != Path(os.path.normpath(path))):
            found.labels[path], found.tags[path] = {}, {}
            continue
        found.labels[path] = {label: text for label, names in _TEXTS.items() if (text := _text(_first(track, names)))}
        found.tags[path] = {tag: w for name_ in _TAGS for tag, w in _weights(_value(track, name_)).items()}
        if (part := part_of(part_by_id.get(track_id, ""))) is not None:
            found.parts[path] = part
    if not found.labels:
        raise LibraryError(
            f"{data_home}: none of the {len(track_ids):,} files of {name} is there. Name the folder that mirdata calls "
            "data_home."
        )
    return found


def _damaged(name: str, error: BaseException) -> LibraryError:
    return LibraryError(
        f"{name}: the index of the data set is damaged ({type(error).__name__}). Fetch it again by mirdata."
    )


def _listed_files(dataset: Any, data_home: Path) -> dict[str, list[Path]]:
    """The files that the index names, by track, all of them in the folder of the data set.

    Raises LibraryError if the index is damaged, or names a file outside the folder, as a link in the folder may do: the
    loaders would read it, and its words would become tags.
    """
    top, home = data_home.absolute(), data_home.resolve()

    def inside(name: str) -> Path:
        path = Path(os.path.normpath(top / name))
        if not path.is_relative_to(os.path.normpath(top)) or not path.resolve().is_relative_to(home):
            raise LibraryError(
                f"{data_home}: the data set names {name!r}, which is outside this folder. Copy the files into it."
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
        raise _damaged(dataset.name, error) from error
    for path in metadata:
        if _is_too_large(path, _MAX_METADATA):
            raise LibraryError(f"{path}: larger than {_MAX_METADATA >> 30} GB, so it is not read. Fetch it again.")
    return tracks


def _is_too_large(path: Path, most: int = 64 << 20) -> bool:
    """Tell if a file of annotations has more than `most` bytes, or is a pipe or a device."""
    try:
        found = path.stat()
    except OSError:  # what is missing is not read
        return False
    return found.st_size > most or not stat.S_ISREG(found.st_mode)


def _official_parts(dataset: Any) -> dict[str, str]:
    try:
        splits: Mapping[str, Sequence[str]] = dataset.get_track_splits()
        return {track_id: str(part) for part, ids in splits.items() for track_id in ids}
    except Exception:  # no split, or a missing or damaged file of it
        return {}


def _value(track: Any, name: str) -> Any:
    """An attribute of a track; None if it is missing, or if its file is missing or damaged."""
    try:
        return getattr(track, name, None)
    except Exception:  # mirdata has a loader for each data set, and they raise anything
        return None


def _first(track: Any, names: Sequence[str]) -> Any:
    return next((value for name in names if (value := _value(track, name))), None)


def _text(value: Any) -> str:
    """The text of a label, or the first of several."""
    if isinstance(value, Mapping | list | tuple):
        value = next(iter(value), "")
    return str(value)[:_MAX_TEXT].replace("\0", " ").strip() if value else ""


def _weights(value: Any) -> dict[str, float]:
    """Tags with weights from 0 to 1; those less likely than not are left out."""
    if isinstance(value, Mapping):
        numbers = {_text(tag): w for tag, w in islice(value.items(), _MAX_TAGS) if isinstance(w, int | float)}
        return {tag: float(w) for tag, w in numbers.items() if tag and 0.5 <= w <= _MAX_WEIGHT}
    if isinstance(value, list | tuple):
        return {text: 1.0 for tag in value[:_MAX_TAGS] if isinstance(tag, str) and (text := _text(tag))}
    return {}


def label_songs(library: Library, tracks: DatasetTracks) -> int:
    """Label the songs of a data set that are in the library; returns how many there are.

    Labels become the songs' tags. The split becomes a fixed split with the name of the data set. `musicsim edit --undo`
    brings back what files are tagged with.
    """
    song_at = library.files.songs_at(tracks.labels)
    alike: defaultdict[tuple[tuple[str, str], ...], list[int]] = defaultdict(list)
    for path, song_id in song_at.items():
        alike[tuple(sorted(tracks.labels[path].items()))].append(song_id)
    for labels, ids in alike.items():
        if labels:
            library.edits.edit(ids, dict(labels))
    rows = [
        {"song_id": song_id, "tag": tag, "weight": weight}
        for path, song_id in song_at.items()
        for tag, weight in tracks.tags[path].items()
    ]
    library.listening.add_tags(rows, source=f"mirdata:{tracks.name}")
    if tracks.parts:
        library.splits.keep(
            tracks.name, {song_at[path]: part for path, part in tracks.parts.items() if path in song_at}
        )
    library.set_text(_NAMES, json.dumps(sorted({*_datasets(library), tracks.name})), is_change=True)
    return len(song_at)


def _datasets(library: Library) -> list[str]:
    """Names of the data sets that were added."""
    try:
        stored = json.loads(library.text(_NAMES) or "[]")
    except ValueError:  # of a library from elsewhere
        return []
    return [name for name in stored if isinstance(name, str)] if isinstance(stored, list) else []


def known_faults(library: Library) -> list[str]:
    """Known faults of the data sets that songs of a library are of."""
    return [_KNOWN_FAULTS[name] for name in _datasets(library) if name in _KNOWN_FAULTS]
