"""Speed of a scan and the time left, for files of different lengths and formats."""

import time
from collections import Counter, deque
from collections.abc import Iterable
from pathlib import Path

_RECENT_S = 30.0
_MIN_ELAPSED_S = 0.5


class Forecast:
    """Estimates the time left: for each file extension, the remaining bytes times the time per byte so far.

    A minute of FLAC has five times as many bytes as a minute of MP3 but takes about the same time.
    """

    def __init__(self, files: Iterable[tuple[Path, int]]) -> None:
        self._left: Counter[str] = Counter()
        for path, size in files:
            self._left[path.suffix.lower()] += size
        self._bytes: Counter[str] = Counter()
        self._busy: dict[str, float] = {}
        self._n_done = 0
        self._paused = 0.0
        self._started = self._clock()
        self._marks: deque[tuple[float, int]] = deque([(self._started, 0)])

    def done(self, path: Path, size: int, busy_s: float) -> None:
        """Count a finished file and the worker time that it took."""
        ending = path.suffix.lower()
        self._left[ending] = max(0, self._left[ending] - size)
        self._bytes[ending] += size
        self._busy[ending] = self._busy.get(ending, 0.0) + busy_s
        self._n_done += 1
        now = self._clock()
        self._marks.append((now, self._n_done))
        while len(self._marks) > 2 and now - self._marks[0][0] > _RECENT_S:
            self._marks.popleft()

    def rest(self, seconds: float) -> None:
        """Exclude a pause from the elapsed time."""
        self._paused += seconds

    def _clock(self) -> float:
        return time.monotonic() - self._paused

    @property
    def songs_per_second(self) -> float | None:
        """Finished files per second in the last half minute; None if not known yet."""
        start, first = self._marks[0]
        elapsed = self._clock() - start
        return (self._n_done - first) / elapsed if elapsed >= _MIN_ELAPSED_S and self._n_done > first else None

    @property
    def seconds_left(self) -> float | None:
        """Estimated wall time for the rest; None if not known yet."""
        elapsed = self._marks[-1][0] - self._started  # until the last finished file; the next files are not counted yet
        busy, n_bytes = sum(self._busy.values()), sum(self._bytes.values())
        if elapsed < _MIN_ELAPSED_S or not busy or not n_bytes:
            return None
        cost = {ending: self._busy[ending] / n for ending, n in self._bytes.items() if n}  # seconds per byte
        work = sum(left * cost.get(ending, busy / n_bytes) for ending, left in self._left.items())
        return work * elapsed / busy  # busy / elapsed is the number of parallel workers
