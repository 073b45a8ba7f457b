"""Find audio files in folders, and hash their bytes.

A walk excludes hidden files, everything that a `.musicsimignore` excludes, and extensions that are not in
:data:`musicsim.audio.AUDIO_EXTENSIONS`. Sources themselves are never excluded. Links are followed.
"""

import hashlib
import os
import re
import stat
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from musicsim.addresses import RemotePath, explain_refusal, has_user, is_address
from musicsim.audio import AUDIO_EXTENSIONS
from musicsim.errors import LibraryError
from musicsim.registry import extensions

IGNORE_FILE = ".musicsimignore"

# Folders that operating systems and NAS devices create for previews, trash and recovered fragments, in lower case.
_SYSTEM_NAMES = frozenset(("@eadir", "__macosx", "$recycle.bin", "system volume information", "lost+found"))

_Identity = tuple[int, int]  # device and inode of a folder


class FoundFile(NamedTuple):
    """A file; `size` in bytes, `mtime_ns` in nanoseconds since 1970."""

    path: Path
    size: int
    mtime_ns: int


@dataclass(slots=True)
class FoundFiles:
    files: list[FoundFile]  # grouped by source, then sorted by path; no path occurs twice
    problems: list[tuple[Path, str]]  # unreadable paths and link loops, each with a sentence that contains the path
    absent: list[Path]  # sources that do not exist
    n_ignored: int  # number of audio files and whole folders that a `.musicsimignore` excludes, except hidden ones
    _unread: set[Path] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._unread = {path for path, _ in self.problems}

    def unread(self, path: Path) -> bool:
        """Return whether the path is unreadable or in an unreadable folder, in which case the file may exist."""
        return path in self._unread or not self._unread.isdisjoint(path.parents)


def content_hash(source: Path | bytes) -> str:
    """Return the hash of a file's bytes: 32 hexadecimal digits of BLAKE2b."""
    if isinstance(source, bytes):
        return hashlib.blake2b(source, digest_size=16).hexdigest()
    with source.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def remote_folders(library_folder: Path) -> list[Path]:
    """Return the folders of songs on servers, in a library's folder. They have no files on this machine."""
    return [library_folder / extension.remote_folder for extension in extensions() if extension.remote_folder]


def find_audio(sources: Iterable[Path], *, absent_ok: bool = False) -> FoundFiles:
    """Find the audio files in `sources`: absolute paths of folders, or of single files with any extension.

    Each folder is walked once; a file is listed under every name it has in these folders. An address with a user name
    raises LibraryError before any walk. A missing or refused source does the same, unless `absent_ok` is set.
    """
    stats: dict[Path, os.stat_result] = {}
    absent: list[Path] = []
    unreachable: list[tuple[Path, str]] = []
    for source in dict.fromkeys(sources):
        if is_address(source):
            why = explain_refusal(source)
            if why is not None and (not absent_ok or has_user(source)):
                raise LibraryError(why)
            continue
        try:
            stats[source] = source.stat()
        except (OSError, ValueError) as error:  # ValueError: a name with a NUL
            if isinstance(error, FileNotFoundError | NotADirectoryError | ValueError):
                reason = f"{source}: no such file or folder. Check the spelling of the path."
                absent.append(source)
            else:
                reason = _unreadable(source, error)
                unreachable.append((source, reason))
            if not absent_ok:
                raise LibraryError(reason) from error
    walk = _Walk({str(path) for path, status in stats.items() if not stat.S_ISDIR(status.st_mode)})
    walk.problems += unreachable
    for source, status in stats.items():
        if stat.S_ISDIR(status.st_mode):
            walk.folder(source, status)
        else:
            walk.file(source, status)
    for source in filter(is_address, dict.fromkeys(sources)):
        walk.remote(source)
    return FoundFiles(walk.files, walk.problems, absent, walk.n_ignored)


def _is_audio(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in AUDIO_EXTENSIONS


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name.lower() in _SYSTEM_NAMES


def _unreadable(path: str | Path, error: OSError) -> str:
    return f"{path}: cannot be read ({error.strerror or error}). Check that it exists, and check its permissions."


class _Rules:
    """The patterns of one ignore file, which apply below its folder."""

    __slots__ = ("_patterns", "_start")

    def __init__(self, folder: Path, patterns: list[tuple[re.Pattern[str], bool]]) -> None:
        self._patterns = patterns[::-1]
        self._start = len(os.path.join(folder, ""))

    def verdict(self, path: str) -> bool | None:
        """Return whether the last matching pattern excludes a path; None if none matches. Folders end in ``/``."""
        relative = path[self._start :]
        for expression, is_excluding in self._patterns:
            if expression.fullmatch(relative):
                return is_excluding
        return None


def _pattern(line: str) -> tuple[re.Pattern[str], bool] | None:
    """Return a line's regular expression for whole paths, and whether it excludes them; None if it has no pattern.

    pathspec's expressions also match everything below a name. Git matches only the name and does not enter excluded
    folders, so that ``!`` works in folders. Raises ValueError if the line is invalid.
    """
    from pathspec import GitIgnoreSpec

    trimmed = re.fullmatch(r"((?:\\.|[^\\])*?) *", line)  # a space after a backslash is kept
    line = trimmed[1] if trimmed else line
    slash = "/" if line.endswith("/") else ""
    *before, last = re.sub(r"\*{3,}", "**", line.removesuffix("/")).split("/")
    sign = "!" if not before and last.startswith("!") else ""
    last = last.removeprefix(sign)
    if last == "**" and before:
        before.append(last)
    if last in ("*", "**"):
        last = "?*"
    text = sign + "/".join((*before, last)) + slash
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # a warning that the meaning of "[[" may change
        try:
            patterns = GitIgnoreSpec.from_lines([text]).patterns
        except re.error as error:
            raise ValueError(error) from error
        for pattern in patterns:
            if pattern.regex is not None:
                # a name may contain a newline
                return re.compile(pattern.regex.pattern, re.DOTALL), bool(pattern.include)
    return None


@dataclass(slots=True)
class _Level:
    """A folder that is being walked: the remaining entries in descending order, and the rules, innermost first."""

    path: Path
    entries: list[os.DirEntry[str]]
    rules: tuple[_Rules, ...]

    def excludes(self, entry: os.DirEntry[str], *, is_folder: bool) -> bool:
        path = entry.path + "/" if is_folder else entry.path
        verdicts = (rules.verdict(path) for rules in self.rules)
        return next((verdict for verdict in verdicts if verdict is not None), False)


class _Walk:
    """One walk over several sources, without recursion because trees may be deeper than Python's stack."""

    def __init__(self, source_files: set[str]) -> None:
        self.files: list[FoundFile] = []
        self.problems: list[tuple[Path, str]] = []
        self.n_ignored = 0
        self._source_files = source_files  # files that must not be listed a second time
        self._walked: set[_Identity] = set()
        self._levels: dict[_Identity, _Level] = {}  # folders from the source down to the current one

    def file(self, source: Path, status: os.stat_result) -> None:
        if stat.S_ISREG(status.st_mode):
            self.files.append(FoundFile(source, status.st_size, status.st_mtime_ns))
        else:
            self.problems.append((source, f"{source}: is neither a file nor a folder. Leave it out."))

    def remote(self, source: Path) -> None:
        """Add the files at an address; ignore files do not apply there."""

        def is_wanted(path: Path) -> bool:
            return _is_audio(path.name) and not any(map(_is_hidden, path.relative_to(source).parts))

        if (why := explain_refusal(source)) is not None:
            self.problems.append((source, why))
            return
        try:
            for path, status in RemotePath(source).files(is_wanted):
                self.files.append(FoundFile(path, status.st_size, status.st_mtime_ns))
        except OSError as error:
            self.problems.append((source, _unreadable(source, error)))

    def folder(self, source: Path, status: os.stat_result) -> None:
        """Walk a source that is a folder, unless it has already been walked."""
        identity = (status.st_dev, status.st_ino)
        if identity in self._walked:
            return
        self._enter(source, identity, ())
        while self._levels:
            level = next(reversed(self._levels.values()))
            if level.entries:
                self._visit(level, level.entries.pop())
            else:
                self._levels.popitem()

    def _enter(self, folder: Path, identity: _Identity, rules: tuple[_Rules, ...]) -> None:
        entries = []
        try:
            with os.scandir(folder) as listing:
                for entry in listing:
                    if entry.name == IGNORE_FILE:
                        rules = (*self._read_rules(folder / IGNORE_FILE), *rules)
                    elif not _is_hidden(entry.name) and (
                        _is_audio(entry.name) or not entry.is_file(follow_symlinks=False)
                    ):
                        entries.append(entry)
        except OSError as error:
            self.problems.append((folder, _unreadable(folder, error)))
        entries.sort(key=lambda entry: entry.name, reverse=True)
        self._walked.add(identity)
        self._levels[identity] = _Level(folder, entries, rules)

    def _read_rules(self, path: Path) -> list[_Rules]:
        """Return the rules of an ignore file; unreadable files and invalid lines become problems."""
        try:
            if not path.is_file():
                raise OSError("no file")
            lines = path.read_text("utf-8-sig").split("\n")
        except OSError as error:
            self.problems.append((path, _unreadable(path, error)))
            return []
        except UnicodeDecodeError:
            self.problems.append(
                (path, f"{path}: the file is not UTF-8, so its rules are not applied. Save it as UTF-8.")
            )
            return []
        patterns = []
        for number, line in enumerate(lines, 1):
            try:
                pattern = _pattern(line)
            except ValueError as error:
                self.problems.append((path, f"{path}: line {number} is not a valid pattern ({error}). Fix it."))
            else:
                patterns += [pattern] if pattern else []
        return [_Rules(path.parent, patterns)]

    def _visit(self, level: _Level, entry: os.DirEntry[str]) -> None:
        path = level.path / entry.name
        try:
            status = entry.stat()
        except OSError as error:
            # an entry that is not a link was deleted after it was listed; a broken link may lead to a folder
            is_gone = isinstance(error, FileNotFoundError) and not entry.is_symlink()
            if not is_gone and not level.excludes(entry, is_folder=True):
                self.problems.append((path, _unreadable(path, error)))
            return
        is_folder = stat.S_ISDIR(status.st_mode)
        if not is_folder and not (
            stat.S_ISREG(status.st_mode) and _is_audio(entry.name) and entry.path not in self._source_files
        ):
            return
        if level.excludes(entry, is_folder=is_folder):
            self.n_ignored += 1
        elif is_folder:
            identity = (status.st_dev, status.st_ino)
            if (above := self._levels.get(identity)) is not None:
                reason = f"{path}: leads back to {above.path} and is not followed. Remove this link."
                self.problems.append((path, reason))
            elif identity not in self._walked:
                self._enter(path, identity, level.rules)
        else:
            self.files.append(FoundFile(path, status.st_size, status.st_mtime_ns))
