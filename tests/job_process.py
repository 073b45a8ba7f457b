"""A process that looks like that of a job, for tests of what the app shows while a job runs."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def job_process() -> Iterator[subprocess.Popen]:
    """Run a process that waits, with the arguments by which the app recognizes jobs."""
    code = "import time; time.sleep(3600)"
    with subprocess.Popen([sys.executable, "-c", code, "musicsim", "run-job"], start_new_session=True) as process:
        try:
            yield process
        finally:
            process.kill()
