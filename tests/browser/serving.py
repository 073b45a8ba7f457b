"""Running a Streamlit app for a browser test."""

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

__all__ = ["PATIENCE_MS", "serve"]

PATIENCE_MS = 60_000  # for a machine that has other things to do


@contextmanager
def serve(script: Path, *, base: str = "", environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """Serve an app; give its address, without the base path and without a slash at the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", str(script), f"--server.port={port}"]
    command += ["--server.headless=true", "--browser.gatherUsageStats=false", "--browser.serverAddress=localhost"]
    command += [f"--server.baseUrlPath={base}"] if base else []
    address = f"http://127.0.0.1:{port}"
    health = "/".join(part for part in (address, base, "_stcore/health") if part)
    with tempfile.TemporaryFile("w+") as said:
        server = subprocess.Popen(
            command,
            cwd=script.parent,
            env=os.environ | {"PYTHONFAULTHANDLER": "1"} | dict(environment or {}),
            stdout=said,
            stderr=subprocess.STDOUT,
        )
        try:
            for _ in range(600):
                try:
                    urllib.request.urlopen(health, timeout=2).close()
                    break
                except OSError:
                    time.sleep(0.1)
            else:
                raise RuntimeError(f"the app {script} did not come up on {address}")
            yield address
        finally:
            ended = server.poll()
            server.terminate()
            try:
                server.wait(timeout=20)
            except subprocess.TimeoutExpired:  # it ends after what it is at, and numba compiles for long the first time
                server.kill()
                server.wait()
            if ended is not None:
                said.seek(0)
                raise RuntimeError(f"the app {script} ended by itself, exit code {ended}: {said.read()[-8000:]}")
