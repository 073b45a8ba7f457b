"""Serve a Streamlit app for a browser test."""

import os
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import PATIENCE_S, until

__all__ = ["PATIENCE_MS", "serve"]

PATIENCE_MS = 1000 * PATIENCE_S


@contextmanager
def serve(script: Path, *, base: str = "", environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """Serve an app; yield its address, without the base path and without a slash at the end."""
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
            env=os.environ | {"MUSICSIM_EAR": "0", "PYTHONFAULTHANDLER": "1"} | dict(environment or {}),
            stdout=said,
            stderr=subprocess.STDOUT,
        )
        try:
            until(lambda: server.poll() is not None or _answers(health))
            assert server.poll() is None
            yield address
        finally:
            ended = server.poll()
            server.terminate()
            try:
                server.wait(timeout=20)  # nothing depends on this limit
            except subprocess.TimeoutExpired:  # it finishes its work first, and numba's first compilation takes long
                server.kill()
                server.wait()
            if ended is not None:
                said.seek(0)
                raise RuntimeError(f"the app {script} ended by itself, exit code {ended}: {said.read()[-8000:]}")


def _answers(address: str) -> bool:
    try:
        urllib.request.urlopen(address, timeout=PATIENCE_S).close()
    except OSError:
        return False
    return True
