"""Starting the app's server and, once it answers, the browser."""

import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import webbrowser
from contextlib import suppress
from pathlib import Path

from musicsim import LIBRARY_FILE
from musicsim.errors import LibraryError, StoreLockedError
from musicsim.explorer.libraries import default_folder

__all__ = ["serve"]

_PORTS_TRIED = 50


def _free_port(first: int) -> int:
    for port in range(first, first + _PORTS_TRIED):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise LibraryError(f"no free port from {first} to {first + _PORTS_TRIED - 1}: name another with --port.")


def _has_screen() -> bool:
    """Whether a browser window can open; without one, Python would start a text browser in the terminal."""
    screens = ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME")
    return sys.platform != "linux" or any(os.environ.get(name) for name in screens)


def _open_when_up(address: str) -> None:
    for _ in range(200):
        try:
            urllib.request.urlopen(f"{address}/_stcore/health", timeout=2).close()
        except OSError:
            time.sleep(0.1)
        else:
            webbrowser.open(address)
            return


def serve(library: Path | None, *, port: int, browser: bool, demo: bool) -> int:
    """Run the app until it is stopped; returns the server's exit code.

    Parameters
    ----------
    library : Path, optional
        The library to show first.
    port : int
        The first port to try.
    browser : bool
        Open the page when the server answers.
    demo : bool
        Start the demo job when the library has no songs.

    Raises
    ------
    LibraryError
        If the program stands without its pages, or no port is free.
    """
    script = Path(__file__).resolve().parents[2] / "app.py"
    if not script.exists():
        raise LibraryError(f"{script}: the app's pages are not here. Run it from a checkout of the project.")
    port = _free_port(port)
    address = f"http://localhost:{port}"
    options = {
        "server.port": port,
        "server.headless": "true",  # the browser is opened below, once the server answers
        "browser.serverAddress": "localhost",  # or it asks the internet for this machine's address
    }
    command = [sys.executable, "-m", "streamlit", "run", str(script)]
    command += [f"--{name}={value}" for name, value in options.items()]
    named = {"MUSICSIM_LIBRARY": str(library.expanduser().absolute())} if library else {}
    os.environ.update(named)
    is_new = not (default_folder() / LIBRARY_FILE).exists()
    if demo and is_new:
        _start_demo()  # before the first page looks into the library
    server = subprocess.Popen(command, cwd=script.parent)
    if demo and not is_new:
        _start_demo()
    if browser and _has_screen():
        threading.Thread(target=_open_when_up, args=(address,), daemon=True).start()
    try:
        return server.wait()
    except KeyboardInterrupt:
        server.terminate()
        return server.wait()


def _start_demo() -> None:
    """Start composing the demo if the library has no songs."""
    from musicsim.explorer import jobs
    from musicsim.library import Library

    with Library.open(default_folder()) as library:
        if len(library) == 0:
            with suppress(StoreLockedError):  # it is running already: another window was opened first
                jobs.start(library, "demo")
