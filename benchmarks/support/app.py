"""The app as a process, and the browser that is sent to it."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO

import psutil

__all__ = ["FLAGS", "PAGES", "SILENT", "chromium", "serve_app", "served"]

PAGES = {
    "listen": "Listen", "playlist": "Playlist", "train": "Teach", "library": "Library", "research": "Research",
}  # fmt: skip
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
SILENT = ["--server.headless=true", "--browser.gatherUsageStats=false", "--browser.serverAddress=localhost"]
"""Options of Streamlit that open no browser and send no statistics."""
_PATIENCE_S = 120


@contextmanager
def served(
    command: Sequence[str],
    folder: Path | None = None,
    before: Callable[[int], object] = lambda port: None,
    log: IO[bytes] | None = None,
    scheme: str = "http",
    **environment: str,
) -> Iterator[tuple[str, psutil.Process]]:
    """Start a server; yield its address and its process.

    `{port}` in the command is replaced by a free port. `before` is called with that port, because some servers read it
    from a file. Output of the server goes to `log`.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    before(port)
    server = subprocess.Popen(
        [part.replace("{port}", str(port)) for part in command],
        env=os.environ | environment,
        cwd=folder,
        stdout=log or subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    )
    address = f"{scheme}://127.0.0.1:{port}"
    try:
        until = time.monotonic() + _PATIENCE_S
        while True:
            try:
                urllib.request.urlopen(f"{address}/_stcore/health", timeout=2).close()
                break
            except OSError:
                if time.monotonic() > until or server.poll() is not None:
                    raise RuntimeError(f"{' '.join(command)} did not come up") from None
                time.sleep(0.02)
        yield address, psutil.Process(server.pid)
    finally:
        server.terminate()
        try:
            server.wait(timeout=20)
        except subprocess.TimeoutExpired:
            server.kill()


def serve_app(script: str | Path, library: Path | None = None) -> AbstractContextManager[tuple[str, psutil.Process]]:
    """Serve a Streamlit app, with this library; yield its address and its process."""
    command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.port={port}", *SILENT]
    environment = {"MUSICSIM_LIBRARY": str(library)} if library else {}
    return served(command, Path(script).parent, **environment)


def chromium() -> str | None:
    """Return the path in MUSICSIM_CHROMIUM, else an installed Chromium; None for playwright's own."""
    if named := os.environ.get("MUSICSIM_CHROMIUM"):
        return named
    names = ("chromium", "chromium-browser", "chromium-headless-shell")
    return next(filter(None, map(shutil.which, names)), None)
