"""Progress reports and cancellation of long computations."""

from typing import Any, NamedTuple, Protocol


class Canceled(Exception):
    """The user canceled the computation."""


class Progress(Protocol):
    """Callback that receives the progress of a long computation, and raises :class:`Canceled` to end it.

    `message` describes the current step; `done` of `total` parts are finished (both 0 if unknown).
    """

    def __call__(self, message: str, done: int = 0, total: int = 0, /, **facts: Any) -> None: ...


def no_progress(message: str, done: int = 0, total: int = 0, /, **facts: Any) -> None:
    """Ignore progress."""


def add_prefix(progress: Progress, prefix: str) -> Progress:
    """Return a progress callback that adds a prefix to each message."""

    def report(message: str, done: int = 0, total: int = 0, /, **facts: Any) -> None:
        progress(prefix + message, done, total, **facts)

    return report


class ProgressLine(NamedTuple):
    """A line about work: a title, words, and the share that is done, from 0 to 1."""

    text: str
    share: float | None = None
    title: str = ""


class View(NamedTuple):
    """The progress that a page shows between two runs of its script; it runs again when the `state` changes."""

    state: str
    parts: tuple[ProgressLine, ...] = ()

    def render(self) -> dict[str, Any]:
        """Return JSON values."""
        return {"state": self.state, "parts": [part._asdict() for part in self.parts]}
