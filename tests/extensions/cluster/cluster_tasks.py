"""Tasks for workers of a cluster, in a module that is quickly imported there."""

import os
import signal
import time
from pathlib import Path


def nap(number):
    """A task that takes a while."""
    time.sleep(0.05)
    return number


def kill_the_worker_of_dask(number):
    """A task that takes the worker of Dask along, which started the server that forked this process."""
    if number == 13:
        forkserver = Path(f"/proc/{os.getppid()}/stat").read_text()
        os.kill(int(forkserver.rpartition(")")[2].split()[1]), signal.SIGKILL)
    return number
