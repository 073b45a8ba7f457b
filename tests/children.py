"""Commands in processes that can be killed, forked from one that has loaded their imports."""

import contextlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from unittest import mock

__all__ = ["Child", "Ended", "command", "complaint", "finish", "load"]

_POLL_S = 0.002
NOBODY = 65534


def load() -> None:
    """Import everything that commands need, so that a child begins with its work; starts no threads."""
    for module in (
        "openTSNE",
        "pandas",
        "scipy.signal",
        "sklearn.cluster",
        "sklearn.decomposition",
        "musicsim.cli",
        "musicsim.explorer.evaluation.quality",
        "musicsim.explorer.job_process",
        "musicsim.library.archive.backups",
        "musicsim.library.importing",
    ):
        import_module(module)


@dataclass(frozen=True)
class Ended:
    """The end of a child."""

    code: int | None  # None: it did not end and was killed
    said: str
    seconds: float


class Child:
    """A process that calls a function; it and its descendants are one process group."""

    def __init__(self, function: Callable[[], int | None], said: Path, *, user: int | None = None) -> None:
        self._said, self._began = said, time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            _be_child(function, said, user)

    def kill(self) -> Ended:
        """Kill the whole group, as a power failure does."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        return self.wait(60.0)

    def has_ended(self) -> bool:
        """Return whether the process has ended, without collecting its exit status."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def wait(self, limit_s: float) -> Ended:
        """Wait for its end, and kill it if that takes too long."""
        until, is_late = time.monotonic() + limit_s, False
        while not self.has_ended():
            if time.monotonic() > until and not is_late:
                is_late = True
                os.killpg(self.pid, signal.SIGKILL)
            time.sleep(_POLL_S)
        _, status = os.waitpid(self.pid, 0)
        said = self._said.read_text(encoding="utf-8", errors="replace") if self._said.exists() else ""
        code = None if is_late else os.waitstatus_to_exitcode(status)
        return Ended(code, said, time.monotonic() - self._began)

    def workers(self) -> list[int]:
        """Return the other processes of its group."""
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                fields = (place / "stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == self.pid and int(place.name) != self.pid and fields[0] != b"Z":
                found.append(int(place.name))
        return found


def _be_child(function: Callable[[], int | None], said: Path, user: int | None) -> None:
    code = 70
    try:
        os.setsid()
        sys.stdin = Path(os.devnull).open()  # noqa: SIM115  # nobody answers questions
        out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        os.dup2(out, 1)
        os.dup2(out, 2)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
        if user is not None:
            os.setgid(user)
            os.setuid(user)
        code = function() or 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def command(*arguments: object, library: Path, more: Mapping[str, str] | None = None) -> Callable[[], None]:
    """Return a musicsim command as a function for a child."""

    def call() -> None:
        from musicsim.cli import main

        environment = {"MUSICSIM_LIBRARY": str(library), "COLUMNS": "400", **(more or {})}
        with (
            mock.patch.dict(os.environ, environment),
            mock.patch.object(sys, "argv", ["musicsim", *map(str, arguments)]),
        ):
            main()

    return call


def finish(function: Callable[[], int | None], said: Path, limit_s: float = 120.0, **how: int) -> Ended:
    """Call a function in a child and wait for its end."""
    return Child(function, said, **how).wait(limit_s)


def complaint(ended: Ended, codes: Sequence[int] = (0,)) -> str:
    """Return what is wrong with a command's end: another code, no end, or no sentence; empty if it ended well."""
    last = ended.said.strip().splitlines()[-1:] or [""]
    if ended.code is None:
        return f"no end within {ended.seconds:.0f} s"
    if "Traceback" in ended.said:
        return f"code {ended.code} and a traceback: {last[0][-300:]}"
    if ended.code not in codes:
        return f"code {ended.code}: {last[0][-300:]}"
    return ""
