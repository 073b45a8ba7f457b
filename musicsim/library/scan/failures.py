"""Reasons why a file could not be analyzed, as the user reads them."""

import logging
from pathlib import Path

from musicsim.errors import MusicsimError
from musicsim.library.processes.workers import Limits, OverTimeError, WorkerDied

_log = logging.getLogger(__name__)


def failure_reason(path: Path, error: BaseException, limits: Limits) -> str:
    """Return a sentence that names the file and says what to do."""
    if isinstance(error, MusicsimError):
        return str(error)
    if isinstance(error, WorkerDied):
        if error.is_crash:
            reason = f"the decoder crashed twice (exit code {error.exit_code}). Re-encode the file."
        else:
            reason = "the system stopped its analysis twice, perhaps because memory ran out. Scan again."
    elif isinstance(error, OverTimeError):
        reason = f"reading took more than {limits.seconds:g} s and was stopped. Re-encode the file."
    elif isinstance(error, MemoryError):
        reason = f"reading took more than {limits.memory_mb} MB of memory and was stopped. Re-encode the file."
    elif isinstance(error, OSError):
        reason = f"cannot be read ({error.strerror or error}). Check that it exists, and check its permissions."
    else:
        _log.error("%s: unexpected error", path, exc_info=error)
        reason = f"{type(error).__name__}: {error}"
    return f"{path}: {reason}"
