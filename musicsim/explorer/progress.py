"""How long work on a model tells what it is doing, and hears that it is to stop."""

from collections.abc import Callable

Tell = Callable[..., None]
"""Told a message and how much of it is done; raises :class:`Stopped` when it is to end."""


class Stopped(Exception):
    """Whoever was told asked to stop."""


def silent(message: str, done: int = 0, total: int = 0) -> None:
    """Tell nobody."""


def teller(report: Callable[..., object], about: str = "") -> Tell:
    """A bar or a job as something to tell: `report` takes message, done and total by name, and returns True to stop."""

    def tell(message: str, done: int = 0, total: int = 0) -> None:
        if report(message=about + message, done=done, total=total):
            raise Stopped

    return tell
