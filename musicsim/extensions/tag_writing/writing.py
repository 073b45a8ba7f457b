"""Write file tags: each file is backed up, changed in a copy, checked, and replaced."""

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count as count_up
from pathlib import Path
from typing import Any

from musicsim.errors import AudioError, LibraryError, StorageError
from musicsim.explorer import JobProgress, read_changes, take_snapshot
from musicsim.extensions.tag_writing.backups import Backup, BackupRun, Backups
from musicsim.extensions.tag_writing.formats import TaggedFile, Values
from musicsim.extensions.tag_writing.patches import make_patch
from musicsim.extensions.tag_writing.plan import PlannedFile, plan
from musicsim.extensions.tag_writing.replacing import hash_sound, replace_file
from musicsim.extensions.tag_writing.request import TagRequest
from musicsim.extensions.tag_writing.undoing import finish_last
from musicsim.extensions.tag_writing.values import MEASURED, is_same, measure
from musicsim.library import Library, content_hash
from musicsim.progress import Progress, no_progress
from musicsim.public import refuse_visitors
from musicsim.wording import count


@dataclass(slots=True)
class WriteReport:
    run: str = ""  # name of the run, which undo needs; empty if no file was changed
    n_files: int = 0  # changed files
    n_values: int = 0  # values written
    n_unchanged: int = 0  # files that already have all values
    problems: list[str] = field(default_factory=list)  # a sentence for each file that could not be changed

    @property
    def words(self) -> str:
        parts = [f"{count(self.n_values, 'value')} written to {count(self.n_files, 'file')}"]
        parts += [f"{count(self.n_unchanged, 'file')} unchanged"] if self.n_unchanged else []
        parts += [f"{count(len(self.problems), 'file')} failed"] if self.problems else []
        return ", ".join(parts)


def write_tags(
    library: Library, properties: Sequence[str], request: TagRequest, progress: Progress = no_progress
) -> WriteReport:
    """Write properties (each a `Property`) to the files of songs.

    A file that cannot be changed is listed, and the run continues. Raises StoreLockedError if another process changes
    the library, and StorageError if a disk is full; finished files stay and can be undone.
    """
    refuse_visitors()
    report = WriteReport()
    backups = Backups(library.folder)
    with library.exclusive("writing file tags"):
        finish_last(library, backups)
        planned = plan(take_snapshot(library), properties, request, progress)
        with library.stay_refreshed():  # the sound is the same
            _write_all(library, backups, planned, report)
    return report


def _write_all(
    library: Library, backups: Backups, planned: Iterable[PlannedFile | LibraryError], report: WriteReport
) -> None:
    """Write the planned changes in one run, and add the results to the report."""
    run: BackupRun | None = None
    numbers = count_up(1)
    try:
        for item in planned:
            if isinstance(item, LibraryError):
                report.problems.append(str(item))
                continue
            try:
                changes = _measure(item) if item.changes else {}
                if not changes:
                    report.n_unchanged += 1
                    continue
                run = run or backups.new_run()
                _write_file(library, backups, run.file(next(numbers)), replace(item, changes=changes))
            except StorageError:
                raise
            except (LibraryError, AudioError, OSError) as error:
                report.problems.append(str(error))
                continue
            report.run = run.name
            report.n_files += 1
            report.n_values += len(changes)
    finally:
        if run is not None and not run.files():
            run.folder.rmdir()


def _measure(planned: PlannedFile) -> dict[str, tuple[Values, Values]]:
    """Return the changes with measured values, without those that change nothing."""
    needs = any(new == MEASURED for _, new in planned.changes.values())
    measured = measure(planned.target.file) if needs else {}
    changes = {
        tag: (old, measured.get(tag, ()) if new == MEASURED else new) for tag, (old, new) in planned.changes.items()
    }
    return {tag: (old, new) for tag, (old, new) in changes.items() if new and not is_same(tag, old, new)}


def _write_file(library: Library, backups: Backups, backup_file: Path, planned: PlannedFile) -> None:
    target = planned.target

    def make(temporary: Path) -> str:
        shutil.copyfile(target.file, temporary)
        before = content_hash(temporary)
        sound, others = hash_sound(temporary), TaggedFile(temporary).others()
        TaggedFile(temporary).write({tag: new for tag, (_, new) in planned.changes.items()})
        written = TaggedFile(temporary)
        values = written.read()
        has_all = all(is_same(tag, values.get(tag, ()), new) for tag, (_, new) in planned.changes.items())
        if not has_all or written.others() != others or hash_sound(temporary) != sound:
            raise LibraryError(f"{target.file}: the sound or other tags would change too, so its tags are not written.")
        patch, after = make_patch(target.file, temporary), content_hash(temporary)
        patch.restore(temporary, backups.check_file)
        if content_hash(backups.check_file) != before:
            raise LibraryError(f"{target.file} was changed by another program in the meantime. Scan its folder again.")
        Backup(target.paths[0], target.song_id, before, after, planned.changes, patch).store(backup_file)
        return after

    try:
        replace_file(library, backups, target, backup_file, make)
    except BaseException:
        if backup_file.exists() and content_hash(target.file) != Backup.read(backup_file).after:
            backup_file.unlink()
        raise
    finally:
        backups.check_file.unlink(missing_ok=True)


def run_write(library: Library, *, properties: Sequence[str], request: dict[str, Any], progress: JobProgress) -> None:
    """Run the job."""
    report = write_tags(library, properties, read_changes(TagRequest, request), progress)
    progress.outcome = ". ".join([report.words, *report.problems[:1]])
