"""Progress of long work, and canceling it."""

from typing import Any, Protocol


class Canceled(Exception):
    """The user canceled the work."""


class Progress(Protocol):
    """Receives the progress of long work; raises :class:`Canceled` to end it.

    `message` describes the current step; `done` of `total` parts are finished, both 0 if unknown. Scans also
    pass `failed`, `skipped`, `songs_per_second` and `seconds_left`. A call may take its time: that pauses the work.
    """

    def __call__(self, message: str, done: int = 0, total: int = 0, /, **facts: Any) -> None: ...


def no_progress(message: str, done: int = 0, total: int = 0, /, **facts: Any) -> None:
    """Ignore progress."""


def add_prefix(progress: Progress, prefix: str) -> Progress:
    """Return a progress callback that adds a prefix to each message."""

    def report(message: str, done: int = 0, total: int = 0, /, **facts: Any) -> None:
        progress(prefix + message, done, total, **facts)

    return report
