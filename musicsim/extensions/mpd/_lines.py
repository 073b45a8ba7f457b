"""Answers of MPD within limits: python-mpd2 reads lines and answers of any length, for as long as they come."""

import io
import time
from functools import cache
from typing import Any

_MAX_LINE, _MAX_ANSWER = 1 << 16, 32 << 20  # bytes; a queue of 16,000 songs takes 10 MB
_MAX_LINES = 1_000_000  # of an answer; python-mpd2 makes up to 200 bytes of each
_MAX_ANSWER_S = 30.0
_CHUNK = 1 << 16


class _BoundedLines:
    """The reading end of a connection; an answer begins with :meth:`begin`."""

    def __init__(self, file: Any) -> None:
        self._file, self._held = file, bytearray()
        self.begin(0.0)

    def begin(self, pause_s: float) -> None:
        """Start to count an answer, which may first take `pause_s` seconds to come."""
        self._n_bytes, self._n_lines, self._ends = 0, 0, time.monotonic() + _MAX_ANSWER_S + pause_s

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
                raise TimeoutError("its answer takes too long")
        line = bytes(self._held[: end + 1])
        del self._held[: end + 1]
        self._n_bytes += len(line)
        self._n_lines += 1
        if self._n_bytes > _MAX_ANSWER or self._n_lines > _MAX_LINES:
            raise OSError(f"it sends an answer of more than {_MAX_LINES:,} lines or {_MAX_ANSWER:,} bytes")
        return line

    def close(self) -> None:
        self._file.close()


@cache
def _client_class() -> Any:
    from mpd import MPDClient

    class BoundedClient(MPDClient):
        """A client that counts what it reads; its base class sets and reads `_rbfile`."""

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

    return BoundedClient


def bounded_client() -> Any:
    """Make a client of MPD that is not connected. Raises ImportError if python-mpd2 is not installed."""
    return _client_class()()
