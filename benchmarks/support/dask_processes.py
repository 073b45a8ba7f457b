"""A real Dask scheduler and its workers: separate processes on this machine that can be killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

__all__ = ["DaskProcesses"]

_START_S = 900.0  # only a hang reaches it
_ENVIRONMENT = {
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "6s",  # give up on a hanging worker after that, instead of 5 minutes
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "2s",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",  # instead of 50 times a second in each process
    "OMP_NUM_THREADS": "1",
}


class DaskProcesses:
    """A scheduler on a loopback port, and workers of one thread, each with its nanny by default.

    Parameters
    ----------
    folder : Path
        Folder for the files that Dask writes.
    """

    def __init__(self, folder: Path, n_workers: int = 2, *, nanny: bool = True) -> None:
        self.folder, self._nanny = folder, nanny
        self.workers: list[subprocess.Popen[bytes]] = []
        self._n_started = 0
        self.scheduler, self.address = self._start_scheduler("0")
        for _ in range(n_workers):
            self.add_worker()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in [*self.workers, self.scheduler]:
            process.kill()  # if it is a nanny, its worker ends with it
            process.wait()

    @property
    def processes(self) -> list[subprocess.Popen[bytes]]:
        """The scheduler and the workers, or their nannies."""
        return [self.scheduler, *self.workers]

    def add_worker(self) -> subprocess.Popen[bytes]:
        """Start one more worker; it finds the scheduler on its own."""
        self._n_started += 1
        arguments = [self.address, "--nthreads", "1", "--host", "127.0.0.1", "--no-dashboard"]
        arguments += ["--local-directory", str(self.folder / "dask"), "--memory-limit", "0"]
        self.workers.append(self._run("worker", *arguments, "--nanny" if self._nanny else "--no-nanny"))
        return self.workers[-1]

    def restart_scheduler(self, pause_s: float = 0.0) -> None:
        """Kill the scheduler and the workers; start it again at the same address, with as many workers."""
        n_workers = len(self.workers)
        self.scheduler.send_signal(signal.SIGKILL)
        self.scheduler.wait()
        for worker in self.workers:
            worker.kill()
            worker.wait()
        self.workers.clear()
        time.sleep(pause_s)
        self.scheduler, self.address = self._start_scheduler(self.address.rpartition(":")[2])
        for _ in range(n_workers):
            self.add_worker()

    def _start_scheduler(self, port: str) -> tuple[subprocess.Popen[bytes], str]:
        file = self.folder / "scheduler.json"
        file.unlink(missing_ok=True)
        process = self._run(
            "scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard", "--scheduler-file", str(file)
        )
        given_up = time.monotonic() + _START_S
        while time.monotonic() < given_up and process.poll() is None:
            try:
                return process, json.loads(file.read_text())["address"]
            except (FileNotFoundError, json.JSONDecodeError):
                time.sleep(0.05)
        raise RuntimeError("the scheduler did not start")

    def _run(self, command: str, *arguments: str) -> subprocess.Popen[bytes]:
        self._n_started += 1
        with (self.folder / f"{command} {self._n_started}.log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "dask", command, *arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | _ENVIRONMENT | {"PYTHONPATH": str(Path(__file__).parents[2])},
            )
