"""The program's log: warnings on stderr, and a file in the library's folder that people can read.

A message of ours is a sentence of the program with values in it. The sentence is public; a text among the values (a
path, a title, what an error says) is private unless it is :class:`Public`, and stands in the file between “ and ”, so
that :func:`without_private` can take it out again. In public mode nothing is written to the library's folder, and
private texts and the messages of other programs do not go to stderr either. Texts given to :func:`hide` are never
written.
"""

import logging
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import copy
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any
from urllib.parse import quote

from musicsim import LIBRARY_FILE
from musicsim.public import is_public

FOLDER, FILE = "logs", "musicsim.log"
MAX_BYTES, N_OLD = 1_000_000, 3  # of the file, and how many full ones are kept beside it

_OURS = "musicsim"
_LINE = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
_LOCK_WITHIN_S = 2.0
_PRIVATE = re.compile("“[^”]*”")
_HIDDEN = "…"
_CHECKOUT = str(Path(__file__).parents[1])
_Show = Callable[[str], str]

_console: logging.Handler | None = None
_secrets: set[str] = set()


class Public(str):
    """A text that names no song, artist or place: it may stand in what is sent to others."""


def hide(secret: str) -> None:
    """Write a password or token down nowhere from now on, nor in the forms in which it is sent."""
    if secret:
        _secrets.update((secret, quote(secret), quote(secret, safe=""), secret.encode().hex()))


def without_private(line: str) -> str:
    """A line of the library's log without titles, paths and what else is private."""
    return _PRIVATE.sub(_left_out, line)


def duration(seconds: float) -> Public:
    """A time in words: 0.4 s, 12 s, 3 min 5 s, 2 h 10 min."""
    if seconds < 10:
        return Public(f"{seconds:.1f} s")
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return Public(f"{minutes} min {rest} s" if minutes else f"{rest} s")
    return Public(f"{minutes // 60} h {minutes % 60} min")


# --- where it goes ----------------------------------------------------------------------------------------------------


def begin() -> None:
    """Write warnings to stderr, and what may be written to the libraries of :func:`kept_in`; once a process."""
    global _console  # noqa: PLW0603  # the one handler of this process
    if _console is not None:
        return
    logging.setLogRecordFactory(_record)
    logging.getLogger(_OURS).setLevel(logging.INFO)
    _console = _Console()
    _console.setFormatter(_Lines("%(message)s"))
    logging.getLogger().addHandler(_console)
    set_level(logging.WARNING)


def set_level(level: int) -> None:
    """Write to stderr from this level on; what details are asked for stand in the library's file, too."""
    begin()
    assert _console is not None
    _console.setLevel(level)
    logging.getLogger(_OURS).setLevel(min(level, logging.INFO))


class _Console(logging.StreamHandler[Any]):
    """Writes to what stderr is at the time."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        return sys.stderr


def keep_in(library: Path) -> None:
    """Write what is logged into a library's folder, until this process ends."""
    if library not in _kept:
        _kept[library] = _LibraryLog(library)
        logging.getLogger().addHandler(_kept[library])


_kept: dict[Path, logging.Handler] = {}


@contextmanager
def kept_in(library: Path) -> Iterator[None]:
    """Do as :func:`keep_in` while the block runs."""
    if library in _kept:
        yield
        return
    keep_in(library)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(_kept.pop(library))


def last_lines(library: Path, n_lines: int) -> list[str]:
    """The end of a library's log; empty where there is none."""
    try:
        lines = (library / FOLDER / FILE).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return lines[-n_lines:]


class _LibraryLog(RotatingFileHandler):
    """The log of a library, which the app, its jobs and commands write to at once; bounded.

    A line that cannot be written is lost; that is not a reason to stop. A public process writes nothing: otherwise a
    visitor who causes a warning would change the library's folder.
    """

    def __init__(self, library: Path) -> None:
        self._library = library
        import filelock

        path = library / FOLDER / FILE
        super().__init__(path, maxBytes=MAX_BYTES, backupCount=N_OLD, encoding="utf-8", delay=True)
        self._between_processes = filelock.FileLock(path.with_suffix(".lock"), timeout=_LOCK_WITHIN_S)
        self.setFormatter(_Lines(_LINE, marks=True))

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, and close the file: another process may put it aside when it is full."""
        if is_public() or record.name == "filelock":
            return
        if not (self._library / LIBRARY_FILE).exists():  # not yet created, or deleted
            return
        try:
            Path(self.baseFilename).parent.mkdir(exist_ok=True)
            with self._between_processes:
                super().emit(record)
                self.close()
        except OSError:  # the lock's Timeout is one, too
            self.handleError(record)

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        stream, self.stream = self.stream, None
        if stream is not None:
            with suppress(OSError):  # a full disk, which has lost the line already
                stream.close()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # logging's name
        """Lose the line."""


# --- what it says -----------------------------------------------------------------------------------------------------


def _marked(text: object) -> str:
    """A private text as it stands in the file: on one line, and told from the sentence around it."""
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))
    return "“" + re.sub("[“”]", "'", shown) + "”"


def _left_out(_text: object) -> str:
    return f"“{_HIDDEN}”"


class _Value:
    """A value of a message that is shown in another way than its own."""

    def __init__(self, value: object, show: _Show) -> None:
        self._value, self._show = value, show

    def __str__(self) -> str:
        return self._show(str(self._value))

    def __repr__(self) -> str:
        return self._show(repr(self._value))


def _sentence(record: logging.LogRecord, show: _Show) -> str:
    """The message of a record, with what is private shown as `show` has it; of other programs' messages all is."""
    is_ours = record.name.partition(".")[0] == _OURS and isinstance(record.msg, str)
    if not is_ours or isinstance(record.args, Mapping):
        return show(record.getMessage())
    values = tuple(
        value if value is None or isinstance(value, int | float | Public) else _Value(value, show)
        for value in record.args or ()
    )
    try:
        return record.msg % values if values else record.msg
    except (TypeError, ValueError):  # a value that the sentence has no place for
        return show(record.msg)


def _trace(error: BaseException | None, show: _Show) -> str:
    """Where an error came from and what it says, without the folders of this machine."""
    lines = []
    while error is not None:
        lines += [
            f"  {_place(frame.filename)}:{frame.lineno} {frame.name}"
            for frame in traceback.extract_tb(error.__traceback__)
        ]
        lines.append(f"  {type(error).__name__}: {show(_without_secrets(str(error)))}")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n".join(lines)


def _place(file: str) -> str:
    """A source file as its package knows it."""
    for folder in (_CHECKOUT + os.sep, "site-packages" + os.sep):
        _, found, inside = file.rpartition(folder)
        if found:
            return inside
    return os.path.basename(file)


def _without_secrets(text: str) -> str:
    for secret in sorted(_secrets, key=len, reverse=True):  # one may be a part of another
        text = text.replace(secret, _HIDDEN)
    return text


def _without_its_secrets(value: Any) -> Any:
    says_one = any(secret in f"{value!s} {value!r}" for secret in _secrets)
    return _without_secrets(str(value)) if says_one and not isinstance(value, int | float) else value


def _record(*args: Any, **kwargs: Any) -> logging.LogRecord:
    """A record as it may be written down, whoever writes it, and wherever to."""
    record = logging.LogRecord(*args, **kwargs)
    error = record.exc_info[1] if record.exc_info else None
    if is_public():
        text = _sentence(record, _left_out)
        record.msg = _without_secrets(text if error is None else f"{text}\n{_trace(error, _left_out)}")
        record.args, record.exc_info = (), None
    elif _secrets:
        if isinstance(record.args, Mapping):
            record.msg, record.args = record.getMessage(), ()
        record.msg = _without_its_secrets(record.msg)
        record.args = tuple(map(_without_its_secrets, record.args or ()))
        if error is not None:  # formatters take this where it is there
            record.exc_text = _without_secrets("".join(traceback.format_exception(error)))
    return record


class _Lines(logging.Formatter):
    """Records as lines, with private texts as they are or marked, so that they can be taken out again."""

    def __init__(self, form: str, *, marks: bool = False) -> None:
        super().__init__(form)
        self._marks = marks

    def format(self, record: logging.LogRecord) -> str:
        """A line, and below it where an error came from."""
        if not self._marks:
            return super().format(record)
        text = _sentence(record, _marked)
        if record.exc_info and record.exc_info[1] is not None:
            text += "\n" + _trace(record.exc_info[1], _marked)
        changed = copy(record)  # other handlers show it otherwise
        changed.msg, changed.args, changed.exc_info, changed.exc_text = text, (), None, None
        return super().format(changed)
