"""How fast a scan is and how long it will take: an honest answer while files differ in length and kind."""

import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path

_RECENT_S = 30.0
_SOON_S = 0.5  # before that there is nothing to say


class Forecast:
    """Time left from the bytes of the files that are left, and from what bytes of each ending have cost so far.

    A minute of FLAC has five times the bytes of a minute of MP3 and costs about the same: one speed in files or bytes
    would promise too much or too little whenever a folder changes from one to the other.
    """

    def __init__(self, files: Iterable[tuple[Path, int]]) -> None:
        self._left: dict[str, int] = {}
        for path, size in files:
            self._left[path.suffix.lower()] = self._left.get(path.suffix.lower(), 0) + size
        self._bytes: dict[str, int] = {}
        self._busy: dict[str, float] = {}
        self._n_done = 0
        self._rested = 0.0
        self._started = self._clock()
        self._marks: deque[tuple[float, int]] = deque([(self._started, 0)])

    def done(self, path: Path, size: int, busy_s: float) -> None:
        """Note a file that was finished, and how long a worker was busy with it."""
        ending = path.suffix.lower()
        self._left[ending] = max(0, self._left.get(ending, 0) - size)
        self._bytes[ending] = self._bytes.get(ending, 0) + size
        self._busy[ending] = self._busy.get(ending, 0.0) + busy_s
        self._n_done += 1
        now = self._clock()
        self._marks.append((now, self._n_done))
        while len(self._marks) > 2 and now - self._marks[0][0] > _RECENT_S:
            self._marks.popleft()

    def rest(self, seconds: float) -> None:
        """Leave a pause out of account."""
        self._rested += seconds

    def _clock(self) -> float:
        return time.monotonic() - self._rested

    @property
    def songs_per_second(self) -> float | None:
        """Files finished a second in the last half minute; None before there is a speed."""
        start, first = self._marks[0]
        elapsed = self._clock() - start
        return (self._n_done - first) / elapsed if elapsed >= _SOON_S and self._n_done > first else None

    @property
    def seconds_left(self) -> float | None:
        """Wall time that the rest will take; None before there is a speed."""
        elapsed = self._marks[-1][0] - self._started  # since then workers are busy with files not counted yet
        busy, n_bytes = sum(self._busy.values()), sum(self._bytes.values())
        if elapsed < _SOON_S or not busy or not n_bytes:
            return None
        work = sum(left * self._cost(ending, busy / n_bytes) for ending, left in self._left.items())
        return work * elapsed / busy  # elapsed / busy: how many workers were at it together

    def _cost(self, ending: str, usual: float) -> float:
        """Busy seconds a byte of an ending; of all files where this ending has not come yet."""
        return self._busy[ending] / self._bytes[ending] if self._bytes.get(ending) else usual
