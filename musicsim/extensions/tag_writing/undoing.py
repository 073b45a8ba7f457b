"""Undo a run: restore the bytes of each file that nothing else has changed since."""

from dataclasses import dataclass, field
from pathlib import Path

from musicsim.errors import LibraryError, StorageError
from musicsim.explorer import JobProgress
from musicsim.extensions.tag_writing.backups import Backup, Backups
from musicsim.extensions.tag_writing.plan import Target
from musicsim.extensions.tag_writing.replacing import replace_file
from musicsim.library import Library, content_hash, enter_rewritten
from musicsim.progress import Progress, no_progress
from musicsim.public import refuse_visitors
from musicsim.wording import count


@dataclass(slots=True)
class UndoReport:
    run: str
    n_files: int = 0  # restored files
    problems: list[str] = field(default_factory=list)  # a sentence for each file that could not be restored

    @property
    def words(self) -> str:
        failed = f", {count(len(self.problems), 'file')} failed" if self.problems else ""
        return f"{count(self.n_files, 'file')} restored{failed}"


def undo_tags(library: Library, run: str | None = None, progress: Progress = no_progress) -> UndoReport:
    """Restore the files of a run, by default the newest one.

    A file that has changed since the run is not restored, and its backup stays. Raises NotFoundError for an unknown
    run, and the errors of :func:`musicsim.extensions.tag_writing.writing.write_tags`.
    """
    refuse_visitors()
    backups = Backups(library.folder)
    with library.exclusive("undoing file tags"):
        finish_last(library, backups)
        found = backups.find(run)
        report, files = UndoReport(found.name), found.files()
        with library.stay_refreshed():  # the sound is the same
            for done, file in enumerate(files):
                progress("restoring files", done, len(files), failed=len(report.problems))
                try:
                    report.n_files += _restore(library, backups, file)
                    found.drop(file)
                except StorageError:
                    raise
                except (LibraryError, OSError) as error:
                    report.problems.append(str(error))
        progress("", len(files), len(files), failed=len(report.problems))
    return report


def _restore(library: Library, backups: Backups, backup_file: Path) -> bool:
    """Restore one file; return False if it already has its old bytes, for example after a crash."""
    backup = Backup.read(backup_file)
    file = backup.path.resolve()
    if not file.is_file():
        raise LibraryError(f"{backup.path} does not exist. Plug in its drive or move it back, and undo again.")
    digest = content_hash(file)
    if digest == backup.before:
        return False
    if digest != backup.after:
        raise LibraryError(f"{backup.path} has changed since its tags were written, so it was not restored.")

    def make(temporary: Path) -> str:
        backup.patch.restore(file, temporary)
        if content_hash(temporary) != backup.before:
            raise LibraryError(f"{backup.path}: its backup is damaged, so it was not restored.")
        return backup.before

    paths = library.files.paths_of([backup.song_id]).get(backup.song_id, ())
    names = tuple(path for path in paths if path.resolve() == file)
    replace_file(library, backups, Target(backup.song_id, file, names), backup_file, make)
    return True


def finish_last(library: Library, backups: Backups) -> None:
    """After a crash, delete the temporary file, and enter the file that was replaced last."""
    backup = backups.clean_up()
    if backup is None or library.files.song_at(backup.path) != backup.song_id or not backup.path.is_file():
        return
    digest = content_hash(backup.path)
    if digest in (backup.before, backup.after):
        enter_rewritten(library, backup.song_id, backup.path, digest)
        library.frame_files.sweep(library.content_hashes())  # features that still have their earlier names


def run_undo(library: Library, *, run: str, progress: JobProgress) -> None:
    """Run the job."""
    report = undo_tags(library, run, progress)
    progress.outcome = ". ".join([report.words, *report.problems[:1]])
