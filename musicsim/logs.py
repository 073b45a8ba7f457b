"""The program's log: warnings go to stderr, and a readable file in the library's folder has more details.

A message's string arguments are private unless they are :class:`Public`. The file puts private strings in quotation
marks (“ ”), so that :func:`redact_private` can remove them. In a public demonstration, nothing is written to the
library's folder, and stderr shows no private strings. Each error takes one line there. Each place in the code writes at
most ten lines per minute, so that visitors cannot fill the log. Strings passed to :func:`hide` are never written. Short
ones are hidden only if they are whole words of a value, because every message contains their letters.
"""

import logging
import os
import re
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import copy
from logging.handlers import RotatingFileHandler
from numbers import Number
from pathlib import Path
from typing import Any
from urllib.parse import quote

from musicsim import LIBRARY_FILE
from musicsim.public import is_public

FOLDER, FILE = "logs", "musicsim.log"
MAX_BYTES, N_OLD = 1_000_000, 3  # size of the file in bytes, and number of older files to keep

_OURS = "musicsim"
_SERVER = "uvicorn"
_SENTENCE = re.compile(r"(?:[A-Za-z .,'-]|%[sd])+\s*")  # a message without anything from a request
_LINES_A_MINUTE, _MINUTE_S = 10, 60.0  # from each place in the code, in a public demonstration
_N_FRAMES = 4  # functions that the line about an error names
_UNWRITTEN = -1  # a level below those of all handlers
_LINE = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
LOCK_WITHIN_S = 2.0
_PRIVATE = re.compile("“[^”]*”")
_HIDDEN = "…"
_LONG = 8  # characters; a shorter secret may be a part of any word
_CHECKOUT = str(Path(__file__).parents[1])
_Show = Callable[[str], str]

_console: logging.Handler | None = None
_library_logs: dict[Path, logging.Handler] = {}
known_secrets: set[str] = set()
"""Passwords and other secrets, in every encoding; the log never shows them."""


class Public(str):
    """A string that can be sent to others: it does not contain names of songs, artists or files."""


def hide(secret: str) -> None:
    """Replace a password or token, and its encoded forms, in everything that is logged from now on."""
    if secret:
        known_secrets.update((secret, quote(secret), quote(secret, safe=""), secret.encode().hex()))


def redact_private(line: str) -> str:
    """Return a line of a library's log without its private strings."""
    return _PRIVATE.sub(_redact, line)


def duration(seconds: float) -> Public:
    """Format a duration, such as 0.4 s, 12 s, 3 min 5 s or 2 h 10 min."""
    if seconds < 10:
        return Public(f"{seconds:.1f} s")
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return Public(f"{minutes} min {rest} s" if minutes else f"{rest} s")
    return Public(f"{minutes // 60} h {minutes % 60} min")


def begin() -> None:
    """Log warnings to stderr. Only the first call in a process has an effect."""
    global _console  # noqa: PLW0603  # one handler per process
    if _console is not None:
        return
    logging.setLogRecordFactory(_make_record)
    logging.getLogger(_OURS).setLevel(logging.INFO)
    _console = _Console()
    _console.setFormatter(_Formatter("%(message)s"))
    logging.getLogger().addHandler(_console)
    set_level(logging.WARNING)


def set_level(level: int) -> None:
    """Set the level for stderr. Levels below INFO also apply to the libraries' log files."""
    begin()
    assert _console is not None
    _console.setLevel(level)
    logging.getLogger(_OURS).setLevel(min(level, logging.INFO))


class _Console(logging.StreamHandler[Any]):
    """A handler that writes to the current stderr, which may have been replaced."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        return sys.stderr


def keep_log(library: Path) -> None:
    """Write the log to a library's folder until this process ends."""
    if library not in _library_logs:
        _library_logs[library] = _LibraryLog(library)
        logging.getLogger().addHandler(_library_logs[library])


@contextmanager
def open_log(library: Path) -> Iterator[None]:
    """Write the log to a library's folder while the block runs."""
    is_new = library not in _library_logs
    keep_log(library)
    try:
        yield
    finally:
        if is_new:
            logging.getLogger().removeHandler(_library_logs.pop(library))


def last_lines(library: Path, n_lines: int) -> list[str]:
    """Return the last lines of a library's log; an empty list if there is no log."""
    try:
        return (library / FOLDER / FILE).read_text(encoding="utf-8", errors="replace").splitlines()[-n_lines:]
    except OSError:
        return []


class _LibraryLog(RotatingFileHandler):
    """The log of a library, shared by several processes. Lines that cannot be written are dropped."""

    def __init__(self, library: Path) -> None:
        self._library = library
        import filelock

        path = library / FOLDER / FILE
        super().__init__(path, maxBytes=MAX_BYTES, backupCount=N_OLD, encoding="utf-8", delay=True)
        self._lock_of_processes = filelock.FileLock(path.with_suffix(".lock"), timeout=LOCK_WITHIN_S)
        self.setFormatter(_Formatter(_LINE, marks=True))

    def shouldRollover(self, record: logging.LogRecord) -> bool:  # noqa: N802
        """Return whether a line would exceed the maximum size in bytes; the base class counts characters."""
        path, line = Path(self.baseFilename), f"{self.format(record)}{self.terminator}".encode("utf-8", "replace")
        return path.exists() and path.stat().st_size + len(line) > self.maxBytes

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line and close the file, because another process may rotate it."""
        if is_public() or record.name == "filelock":
            return
        if not (self._library / LIBRARY_FILE).exists():  # the library is not created yet, or was deleted
            return
        try:
            Path(self.baseFilename).parent.mkdir(exist_ok=True)
            with self._lock_of_processes:
                super().emit(record)
                self.close()
        except OSError:  # includes the lock's Timeout
            self.handleError(record)

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        stream, self.stream = self.stream, None
        if stream is not None:
            with suppress(OSError):  # full disk; the line is already lost
                stream.close()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # logging's name
        """Drop the line."""


def _mark(text: object) -> str:
    """Return a private string on one line, in the quotes that mark it in the file."""
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))
    return "“" + re.sub("[“”]", "'", shown) + "”"


def _redact(_text: object) -> str:
    return f"“{_HIDDEN}”"


class _Value:
    def __init__(self, value: object, show: _Show) -> None:
        self._value, self._show = value, show

    def __str__(self) -> str:
        return self._show(str(self._value))

    def __repr__(self) -> str:
        return self._show(repr(self._value))


def _is_ours(record: logging.LogRecord) -> bool:
    return record.name.partition(".")[0] == _OURS


def _is_template(record: logging.LogRecord) -> bool:
    """Return whether a record's message contains private strings only as arguments."""
    if not isinstance(record.msg, str):
        return False
    is_server = record.name.partition(".")[0] == _SERVER
    return _is_ours(record) or (is_server and _SENTENCE.fullmatch(record.msg) is not None)


def _message(record: logging.LogRecord, show: _Show) -> str:
    """Return a record's message; `show` converts its private strings, or all of it if it is not a template."""
    if not _is_template(record) or isinstance(record.args, Mapping):
        return show(record.getMessage())
    values = tuple(
        value if value is None or isinstance(value, Number | Public) else _Value(value, show)
        for value in record.args or ()
    )
    try:
        return record.msg % values if values else record.msg
    except (TypeError, ValueError):  # arguments that do not match the template
        return show(record.msg)


def _traceback(error: BaseException | None, show: _Show) -> str:
    """Return the traceback and messages of an error and its causes, without this machine's folders."""
    lines = []
    while error is not None:
        lines += [
            f"  {_relative_source(frame.filename)}:{frame.lineno} {frame.name}"
            for frame in traceback.extract_tb(error.__traceback__)
        ]
        lines.append(f"  {type(error).__name__}: {show(_redact_secrets(str(error)))}")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n".join(lines)


def _summary(error: BaseException) -> str:
    """Return the type of an error, and the last functions that it passed, on one line."""
    frames = traceback.extract_tb(error.__traceback__)
    names = [f"{_relative_source(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames[-_N_FRAMES:]]
    return " < ".join([f"{type(error).__name__}: {_redact(error)}", *reversed(names)])


def _relative_source(file: str) -> str:
    for folder in ("site-packages" + os.sep, _CHECKOUT + os.sep):  # an environment may be inside the checkout
        _, separator, inside = file.rpartition(folder)
        if separator:
            return inside
    return os.path.basename(file)


def _redact_secrets(value: Any, *, is_template: bool = False) -> Any:
    """Return a value; if it contains secrets, return it as a string without them. Templates can contain long ones."""
    if isinstance(value, Number):
        return value
    is_fixed = is_template or isinstance(value, Public)
    secrets = "|".join(
        re.escape(secret) if len(secret) >= _LONG else rf"(?<!\w){re.escape(secret)}(?!\w)"
        for secret in sorted(known_secrets, key=len, reverse=True)  # one secret may be part of another
        if len(secret) >= _LONG or not is_fixed
    )
    if not secrets or not re.search(secrets, f"{value!s} {value!r}"):
        return value
    return re.sub(secrets, _HIDDEN, str(value))


_counts: dict[tuple[str, int], tuple[float, int]] = {}  # per place: start of the minute, and lines since then
_counting = threading.Lock()


def _limit(record: logging.LogRecord) -> str:
    """Count a line; suppress it if its place wrote too many. Return a note if lines are left out."""
    place = record.pathname, record.lineno
    with _counting:
        start, n_lines = _counts.get(place, (record.created, 0))
        n_left_out = 0
        if not start <= record.created < start + _MINUTE_S:
            n_left_out = max(0, n_lines - _LINES_A_MINUTE)
            start, n_lines = record.created, 0
        _counts[place] = start, n_lines + 1
    if n_lines >= _LINES_A_MINUTE:
        record.levelno = _UNWRITTEN  # the factory of records cannot drop one
    if n_lines == _LINES_A_MINUTE - 1:
        return "; further lines of this kind are left out for a minute"
    return f"; before, {n_left_out} lines of this kind were left out" if n_left_out else ""


def _make_record(*args: Any, **kwargs: Any) -> logging.LogRecord:
    """Make a log record without secrets and, in a public demonstration, without private strings."""
    record = logging.LogRecord(*args, **kwargs)
    error = record.exc_info[1] if record.exc_info else None
    if is_public():
        text = " ".join(_message(record, _redact).split())
        note = _limit(record)
        text = f"{text}{f' ({_summary(error)})' if error is not None else ''}{note}"
        record.msg = _redact_secrets(text, is_template=_is_ours(record))
        record.args, record.exc_info = (), None
    elif known_secrets:
        is_template = bool(record.args) or _is_ours(record)
        if isinstance(record.args, Mapping):
            record.args = {name: _redact_secrets(value) for name, value in record.args.items()}
        else:
            record.args = tuple(map(_redact_secrets, record.args or ()))
        if _redact_secrets(record.msg, is_template=is_template) is not record.msg:
            # formatted first, because a secret may contain a placeholder
            with suppress(TypeError, ValueError, KeyError):
                record.msg = record.getMessage()
            record.msg, record.args = _redact_secrets(record.msg, is_template=is_template), ()
        if error is not None:  # formatters use `exc_text` if it is set
            record.exc_text = _redact_secrets("".join(traceback.format_exception(error)))
    return record


class _Formatter(logging.Formatter):
    """Format records as lines; if `marks` is set, private strings are marked so that they can be removed."""

    def __init__(self, form: str, *, marks: bool = False) -> None:
        super().__init__(form)
        self._marks = marks

    def format(self, record: logging.LogRecord) -> str:
        """Return a record's line, followed by its traceback if it has one."""
        if not self._marks:
            return super().format(record)
        text = _message(record, _mark)
        if record.exc_info and record.exc_info[1] is not None:
            text += "\n" + _traceback(record.exc_info[1], _mark)
        marked = copy(record)  # other handlers get the original
        marked.msg, marked.args, marked.exc_info, marked.exc_text = text, (), None, None
        return super().format(marked)
