"""Limits on the size and time of MPD's responses, which python-mpd2 lacks."""

import io
import time
from typing import Any

_MAX_LINE, _MAX_ANSWER = 1 << 16, 32 << 20  # bytes; a queue of 16,000 songs takes 10 MB
_MAX_LINES = 1_000_000  # per response; python-mpd2 takes up to 200 bytes for each
MAX_ANSWER_S = 30.0
_CHUNK = 1 << 16


class _BoundedLines:
    """The reading end of a connection; each response begins with :meth:`begin`."""

    def __init__(self, file: Any) -> None:
        self._file, self._held = file, bytearray()
        self.begin(0.0)

    def begin(self, pause_s: float) -> None:
        """Start to count a response, which may begin after `pause_s` seconds."""
        self._n_bytes, self._n_lines, self._ends = 0, 0, time.monotonic() + MAX_ANSWER_S + pause_s

    def readline(self) -> bytes:
        """Read a line, or the rest of the data if the connection has ended. Raises OSError beyond the limits."""
        searched = 0
        while (end := self._held.find(b"\n", searched)) < 0:
            searched = len(self._held)
            if searched > _MAX_LINE:
                raise OSError(f"it sends a line of more than {_MAX_LINE:,} bytes")
            chunk = self._file.read1(_CHUNK)
            if not chunk:
                end = searched - 1
                break
            self._held += chunk
            if time.monotonic() > self._ends:
                raise TimeoutError("its response takes too long")
        line = bytes(self._held[: end + 1])
        del self._held[: end + 1]
        self._n_bytes += len(line)
        self._n_lines += 1
        if self._n_bytes > _MAX_ANSWER or self._n_lines > _MAX_LINES:
            raise OSError(f"it sends a response of more than {_MAX_LINES:,} lines or {_MAX_ANSWER:,} bytes")
        return line

    def close(self) -> None:
        self._file.close()


def make_client() -> Any:
    """Return a client that is not connected. Raises ImportError if python-mpd2 is not installed."""
    from mpd import MPDClient

    class BoundedClient(MPDClient):
        """A client with limits; its base class sets and reads `_rbfile`."""

        @property
        def _rbfile(self) -> Any:
            return self._lines

        @_rbfile.setter
        def _rbfile(self, file: Any) -> None:
            self._lines = _BoundedLines(file) if isinstance(file, io.BufferedReader) else file

        def _write_command(self, command: str, args: Any = ()) -> None:
            if isinstance(self._lines, _BoundedLines):
                self._lines.begin((self.idletimeout or 0.0) if command == "idle" else 0.0)
            super()._write_command(command, args)

    return BoundedClient()
