"""The changes that a run would make, compared with the tags in the files."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from musicsim import addresses
from musicsim.errors import LibraryError
from musicsim.explorer import Snapshot, filter_rows
from musicsim.extensions.tag_writing.formats import TaggedFile, Values
from musicsim.extensions.tag_writing.request import TagRequest
from musicsim.extensions.tag_writing.values import MEASURED, NewValues, is_same
from musicsim.library import KnownFile, Song, remote_folders
from musicsim.progress import Progress, no_progress

Changes = Mapping[str, tuple[Values, Values]]
"""The old and the new values of a file, keyed by tag."""


@dataclass(frozen=True, slots=True)
class Target:
    """A file of a song; `paths` are its names in the library, because links can give it several."""

    song_id: int
    file: Path
    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class PlannedFile:
    song: Song
    target: Target
    changes: Changes


@dataclass(frozen=True, slots=True)
class TagPreview:
    """The changes of a run, and a sentence for each file that cannot be changed."""

    files: tuple[PlannedFile, ...]
    n_unchanged: int
    problems: tuple[str, ...]

    @property
    def n_values(self) -> int:
        return sum(len(file.changes) for file in self.files)


def find_targets(snapshot: Snapshot, request: TagRequest) -> list[tuple[Song, Target]]:
    """Return the requested songs with their files. Raises NotFoundError for an unknown song or word."""
    library = snapshot.library
    for song_id in request.songs:
        library.song(song_id)
    rows = filter_rows(snapshot, request)
    wanted = None if rows is None else {int(i) for i in snapshot.row_ids[np.flatnonzero(rows)]}
    songs = [song for song in library.songs(request.songs or None) if wanted is None or song.id in wanted]
    paths = library.files.paths_of(song.id for song in songs)
    targets = []
    for song in songs:
        names: dict[Path, list[Path]] = {}
        for path in paths.get(song.id, ()):
            names.setdefault(path if addresses.is_address(path) else path.resolve(), []).append(path)
        targets += [(song, Target(song.id, file, tuple(own))) for file, own in names.items()]
    return targets


def preview(
    snapshot: Snapshot, properties: Sequence[str], request: TagRequest, progress: Progress = no_progress
) -> TagPreview:
    """Compare the new values with the files, without changing anything."""
    planned, problems, n_unchanged = [], [], 0
    for item in plan(snapshot, properties, request, progress):
        if isinstance(item, LibraryError):
            problems.append(str(item))
        elif item.changes:
            planned.append(item)
        else:
            n_unchanged += 1
    return TagPreview(tuple(planned), n_unchanged, tuple(problems))


def plan(
    snapshot: Snapshot, properties: Sequence[str], request: TagRequest, progress: Progress
) -> Iterator[PlannedFile | LibraryError]:
    """Yield the changes of each file, or the error that prevents them; a file is read when its turn comes."""
    values = NewValues(snapshot, properties)
    targets = find_targets(snapshot, request)
    known, remote = snapshot.library.files.list_known(), remote_folders(snapshot.library.folder)
    failed = 0
    for done, (song, target) in enumerate(targets):
        progress(target.file.name, done, len(targets), failed=failed)
        try:
            check_writable(target, known, remote)
            changes = _compare(TaggedFile(target.file), values.read(song), request.replace)
            yield PlannedFile(song, target, changes)
        except (LibraryError, OSError) as error:
            failed += 1
            yield error if isinstance(error, LibraryError) else LibraryError(f"{target.file} cannot be read ({error}).")
    progress("", len(targets), len(targets), failed=failed)


def check_writable(target: Target, known: Mapping[Path, KnownFile], remote: Collection[Path]) -> None:
    """Raise LibraryError with the reason if a file must not be changed."""
    file, path = target.file, target.paths[0]
    if addresses.is_address(path) or any(folder in path.parents for folder in remote):
        raise LibraryError(f"{path} is on a server, and only files on this machine can be changed.")
    try:
        status = file.stat()
    except OSError as error:
        raise LibraryError(f"{path} cannot be read ({error.strerror}). Scan its folder again.") from error
    seen = known.get(path)
    if seen is None or (seen.size, seen.mtime_ns) != (status.st_size, status.st_mtime_ns):
        raise LibraryError(f"{path} has changed since the last scan. Scan its folder, then write its tags.")
    check_permissions(file)


def check_permissions(file: Path) -> None:
    """Raise LibraryError if a file or its folder is read-only, or the file belongs to another user."""
    if not os.access(file, os.W_OK):
        raise LibraryError(f"{file} is read-only. Change its permissions, or leave it out.")
    if not os.access(file.parent, os.W_OK):
        raise LibraryError(f"{file}: its folder is read-only. Change the folder's permissions, or leave it out.")
    if hasattr(os, "geteuid") and os.geteuid() not in (0, file.stat().st_uid):  # the new file would be ours
        raise LibraryError(f"{file} belongs to another user. Change its owner, or run musicsim as that user.")


def _compare(file: TaggedFile, new_values: Mapping[str, Values], replace: bool) -> dict[str, tuple[Values, Values]]:
    current = file.read()
    changes = {}
    for tag, new in new_values.items():
        old = current.get(tag, ())
        is_wanted = not old or (replace and (new == MEASURED or not is_same(tag, old, new)))
        if tag in file.tags and is_wanted:
            changes[tag] = old, new
    if "gain" not in changes:
        changes.pop("peak", None)  # the two belong together
    elif "peak" in file.tags:
        changes["peak"] = current.get("peak", ()), MEASURED
    return changes
