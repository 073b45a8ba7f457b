"""How long work on a model tells what it is doing, and hears that it is to stop."""

from collections.abc import Callable
from dataclasses import dataclass

Tell = Callable[..., None]
"""Told a message and how much of it is done; raises :class:`Stopped` when it is to end."""


@dataclass(frozen=True, slots=True)
class Step:
    """What is being done to a model: words, and how much of this step is done."""

    message: str
    done: int = 0
    total: int = 0


StepCallback = Callable[[Step], bool | None]


class Stopped(Exception):
    """The callback asked to stop."""


def teller(progress: StepCallback | None) -> Tell:
    """A callback of steps as something to tell; raises :class:`Stopped` when the callback says so."""

    def tell(message: str, done: int = 0, total: int = 0) -> None:
        if progress is not None and progress(Step(message, done, total)):
            raise Stopped

    return tell
