"""Backups of changed files: the bytes that undo each change, in one folder per run, in the library's folder.

``tag_backups/<run>/<number>.undo`` exists, flushed to disk, before its file changes. So a file always has the bytes
before or after the change, and the hashes in its backup tell which. ``tag_backups/writing.json`` names the temporary
file of the change in progress, so that the next run can delete it after a crash.
"""

import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from musicsim.errors import LibraryError, NotFoundError
from musicsim.extensions.tag_writing.formats import Values
from musicsim.extensions.tag_writing.patches import FilePatch
from musicsim.library import atomic_path, write_private

FOLDER = "tag_backups"
_MAGIC = b"musicsim undo 1\n"
_ENDING = ".undo"
_TEMPORARY = ".musicsim-"


@dataclass(frozen=True, slots=True)
class Backup:
    """How to restore one file."""

    path: Path
    song_id: int
    before: str  # content hashes of the file
    after: str
    tags: Mapping[str, tuple[Values, Values]]  # the old and the new values, keyed by tag
    patch: FilePatch

    def store(self, file: Path) -> None:
        """Write the backup to a new file, and flush it to disk."""
        facts = {"path": os.fsencode(self.path).hex(), "song_id": self.song_id, "tags": dict(self.tags)}
        facts |= {"before": self.before, "after": self.after}
        patch = asdict(self.patch)
        runs = patch.pop("runs")
        with atomic_path(file, mode=0o600) as temporary, temporary.open("wb") as stream:
            stream.write(_MAGIC + json.dumps(facts | {"patch": patch}).encode() + b"\n" + runs)
            stream.flush()
            os.fsync(stream.fileno())
        sync_folder(file.parent)

    @classmethod
    def read(cls, file: Path) -> "Backup":
        """Read a backup. Raises LibraryError if it is damaged."""
        try:
            with file.open("rb") as stream:
                if stream.readline() != _MAGIC:
                    raise ValueError("it has a different format")
                facts, runs = json.loads(stream.readline()), stream.read()
            tags = {tag: (tuple(old), tuple(new)) for tag, (old, new) in facts["tags"].items()}
            path, patch = Path(os.fsdecode(bytes.fromhex(facts["path"]))), FilePatch(**facts["patch"], runs=runs)
            return cls(path, int(facts["song_id"]), facts["before"], facts["after"], tags, patch)
        except (ValueError, KeyError, TypeError) as error:
            raise LibraryError(f"{file} is damaged ({error}): its music file cannot be restored from it.") from error


@dataclass(frozen=True, slots=True)
class BackupRun:
    """The backups of one run that were not undone yet."""

    folder: Path

    @property
    def name(self) -> str:
        """The time when the run began, such as 2026-11-26-074512."""
        return self.folder.name

    def files(self) -> list[Path]:
        return sorted(self.folder.glob(f"[0-9]*{_ENDING}"))  # without partly written, hidden files

    def file(self, number: int) -> Path:
        return self.folder / f"{number:08d}{_ENDING}"

    def drop(self, file: Path) -> None:
        """Delete a backup, and the folder after its last one."""
        file.unlink(missing_ok=True)
        with suppress(OSError):  # it still contains other backups
            self.folder.rmdir()


class Backups:
    """All backups in a library's folder."""

    def __init__(self, library_folder: Path) -> None:
        self.folder = library_folder / FOLDER
        self._note = self.folder / "writing.json"
        self.check_file = self.folder / "check"  # a restored file, to compare its hash

    def runs(self) -> list[BackupRun]:
        """Return the runs that can be undone, newest first."""
        folders = [path for path in self.folder.glob("*") if path.is_dir()]
        return [run for run in map(BackupRun, sorted(folders, reverse=True)) if run.files()]

    def find(self, name: str | None) -> BackupRun:
        """Return a run, by default the newest one. Raises NotFoundError."""
        runs = self.runs()
        found = next((run for run in runs if name in (None, run.name)), None)
        if found is None:
            what = "there is nothing to undo" if name is None else f"there is no run {name} to undo"
            raise NotFoundError(f"{self.folder.parent.name}: {what}. `musicsim tags runs` lists all runs.")
        return found

    def new_run(self) -> BackupRun:
        """Create the folder of a run."""
        name = stem = time.strftime("%Y-%m-%d-%H%M%S")
        n = 1
        while (self.folder / name).exists():
            n += 1
            name = f"{stem}-{n}"
        (self.folder / name).mkdir(parents=True)
        return BackupRun(self.folder / name)

    @contextmanager
    def change(self, temporary: Path, backup: Path) -> Iterator[None]:
        """Note a change until it is complete, also in the library's database."""
        write_private(self._note, json.dumps([os.fsencode(path).hex() for path in (temporary, backup)]))
        try:
            yield
        finally:
            temporary.unlink(missing_ok=True)
            self._note.unlink(missing_ok=True)

    def clean_up(self) -> Backup | None:
        """After a crash, delete temporary files, and return the backup of the file that may have changed."""
        self.check_file.unlink(missing_ok=True)
        for folder in self.folder.glob("*/"):
            with suppress(OSError):  # it contains backups
                folder.rmdir()
        try:
            temporary, backup = (Path(os.fsdecode(bytes.fromhex(path))) for path in json.loads(self._note.read_text()))
        except FileNotFoundError:
            return None
        except ValueError:  # the note is damaged
            self._note.unlink()
            return None
        if temporary.name.startswith(_TEMPORARY):  # nothing else is ever deleted
            temporary.unlink(missing_ok=True)
        self._note.unlink()
        return Backup.read(backup) if backup.exists() else None


def name_temporary(path: Path) -> Path:
    """Return an unused hidden name in the same folder; scans skip it, and it can replace the file."""
    return path.with_name(f"{_TEMPORARY}{secrets.token_hex(6)}{path.suffix}")


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to disk, where the system can do this."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
