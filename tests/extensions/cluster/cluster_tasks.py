"""Tasks for workers of a cluster, in a module that imports quickly."""

import os
import signal
import time
from pathlib import Path


def nap(number):
    time.sleep(0.05)
    return number


def kill_the_worker_of_dask(number):
    """Kill the Dask worker that started the server which forked this process."""
    if number == 13:
        forkserver = Path(f"/proc/{os.getppid()}/stat").read_text()
        os.kill(int(forkserver.rpartition(")")[2].split()[1]), signal.SIGKILL)
    return number
