"""A real MPD for tests: null output, on a Unix socket and on the loopback."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_S, until

_CONFIGURATION = """\
music_directory "{music}"
playlist_directory "{home}/playlists"
db_file "{home}/database"
log_file "{home}/log"
bind_to_address "{home}/socket"
bind_to_address "127.0.0.1"
port "{port}"
zeroconf_enabled "no"
default_permissions "read,add,control,admin"
password "secret@read,add,control,admin"
audio_output {{
    type "null"
    name "nothing"
}}
"""


class RealMpd:
    """An MPD whose database holds the music of a folder. :meth:`client` connects to it."""

    def __init__(self, home: Path, music: Path, port: int, enter: Sequence[str]) -> None:
        self.socket, self._home, self.port, self._enter = home / "socket", home, port or find_free_port(), enter
        (home / "playlists").mkdir()
        (home / "mpd.conf").write_text(_CONFIGURATION.format(music=music, home=home, port=self.port))
        self._process = None
        self.start()
        with self.client() as client:
            client.update()
            until(lambda: "updating_db" not in client.status())

    def start(self) -> None:
        """Start MPD, and wait until it answers."""
        command = [*self._enter, "mpd", "--no-daemon", self._home / "mpd.conf"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(self._answers)

    def kill(self) -> None:
        """Kill MPD without warning its clients."""
        self._process.kill()
        self._process.wait()

    def _answers(self) -> bool:
        assert self._process.poll() is None, (self._home / "log").read_text()
        try:
            with self.client():
                return True
        except OSError:
            return False

    @contextmanager
    def client(self):
        """Return a new client."""
        from mpd import MPDClient

        client = MPDClient()
        client.timeout = PATIENCE_S
        client.connect(str(self.socket))
        try:
            yield client
        finally:
            client.disconnect()


def find_free_port() -> int:
    """Return a port of the loopback that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def real_mpd(music: Path, *, port: int = 0, enter: Sequence[str] = ()) -> Iterator[RealMpd]:
    """Run MPD on a free port or this one, after the command `enter`; skip the test if it is not installed."""
    pytest.importorskip("mpd", reason="python-mpd2 is not installed")
    if shutil.which("mpd") is None:
        if os.environ.get("CI"):
            pytest.fail("mpd is not installed (apt: mpd)")
        pytest.skip("mpd is not installed (apt: mpd)")
    with tempfile.TemporaryDirectory(prefix="mpd-") as home:  # the names of sockets are limited to a short length
        mpd = RealMpd(Path(home), music, port, enter)
        try:
            yield mpd
        finally:
            mpd.kill()
