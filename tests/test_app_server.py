"""The program ``musicsim app`` as a process: its addresses, and the requests that it serves."""

import http.client
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path

import pytest

from musicsim.library import Library
from tests.job_process import job_process
from tests.waiting import PATIENCE_S

UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg==",
}
STREAM = "/_stcore/stream"


class Server:
    """A running app: its process, its printed lines, and its port."""

    def __init__(self, process: subprocess.Popen, lines: list[str]) -> None:
        self.process, self.lines = process, lines
        self.port = int(re.search(r":(\d+)", lines[0])[1])

    def status(self, path: str, host: str, *, address="127.0.0.1", method="GET", **headers: str) -> int:
        """Return the status of a request with a Host header."""
        return self.answer(path, host, address=address, method=method, **headers)[0]

    def answer(self, path, host, *, address="127.0.0.1", method="GET", **headers):
        connection = http.client.HTTPConnection(address, self.port, timeout=PATIENCE_S)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, headers={"Host": host, **named})
            answer = connection.getresponse()
            return answer.status, b"" if answer.status == 101 else answer.read()
        finally:
            connection.close()


@contextmanager
def running(
    library: Path, *arguments: str, lines: int = 1, cwd=None, stderr=subprocess.DEVNULL, **environment: str
) -> Iterator[Server]:
    """Run ``musicsim app`` on a free port."""
    command = [sys.executable, "-m", "musicsim", "app", "--no-browser", "--library", str(library), *arguments]
    process = subprocess.Popen(
        [*command, "--port", str(22000 + os.getpid() % 9000)],
        env={name: value for name, value in os.environ.items() if name != "MUSICSIM_ALLOWED_HOSTS"} | environment,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        bufsize=1,
        cwd=cwd,
    )
    try:
        said = [_line(process) for _ in range(lines)]
        yield Server(process, said)
    finally:
        process.terminate()
        try:
            process.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def _line(process: subprocess.Popen) -> str:
    line = process.stdout.readline()
    assert line, "the app ended without a word"
    return line.strip()


def _heard(port: int) -> set[str]:
    """Return the addresses with a listener on a port of this machine."""
    found = set()
    for table in ("tcp", "tcp6"):
        path = Path("/proc/net", table)
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            place, state = line.split()[1], line.split()[3]
            number, at = place.split(":")
            if state == "0A" and int(at, 16) == port:
                words = [bytes.fromhex(number[i : i + 8])[::-1] for i in range(0, len(number), 8)]
                found.add(str(ip_address(b"".join(words))))
    return found


@pytest.fixture(scope="module")
def home(built_library, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("served") / "library"
    shutil.copytree(built_library, folder)
    return folder


@pytest.fixture(scope="module")
def server(home) -> Iterator[Server]:
    with running(home) as server:
        yield server


needs_proc = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="no /proc")


@pytest.mark.parametrize("path", ["/", "/library", "/playlist?library=library"])
def test_first_html_has_our_title_and_icon(server, path):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    connection.request("GET", path)
    answer = connection.getresponse()
    html = answer.read().decode()
    assert "<title>musicsim</title>" in html
    assert 'rel="shortcut icon" href="data:image/svg' in html
    assert '<div id="root"></div>' in html
    assert answer.headers["Cache-Control"] == "no-cache"
    assert server.status(path, f"localhost:{server.port}", If_None_Match=answer.headers["ETag"]) == 304
    connection.close()


@needs_proc
def test_app_listens_on_localhost_only(server):
    assert server.lines == [f"musicsim is running at http://localhost:{server.port}; press Ctrl+C to stop it."]
    heard = _heard(server.port)
    assert "127.0.0.1" in heard
    assert heard <= {"127.0.0.1", "::1"}
    for address in heard:
        assert server.status("/_stcore/health", f"localhost:{server.port}", address=address) == 200


PATHS = (
    "/",
    "/library",
    "/_stcore/health",
    "/_stcore/metrics",
    "/_stcore/host-config",
    STREAM,
    "/_stcore/upload_file/a/b",
    "/api/songs",
    "/api/docs",
    "/songs/1/audio",
    "/songs/1/peaks",
    "/nowhere.js",
)


@pytest.mark.parametrize("path", PATHS)
def test_rejects_requests_for_foreign_host(server, path):
    foreign = f"evil.example:{server.port}"
    assert server.status(path, foreign) == 421
    assert server.status(path, foreign, Origin=f"http://{foreign}") == 421
    assert server.status(path, foreign, method="POST") == 421
    assert server.status(path, "evil.example@localhost") == 400


@pytest.mark.parametrize("path", [path for path in PATHS if path not in (STREAM, "/_stcore/upload_file/a/b")])
def test_answers_requests_for_own_host(server, path):
    for host in ("localhost", "127.0.0.1", "[::1]"):
        assert server.status(path, f"{host}:{server.port}") < 400


def test_stream_accepts_own_pages_only(server):
    own, beside = f"localhost:{server.port}", f"localhost:{server.port + 1}"
    assert server.status(STREAM, own, **UPGRADE, Origin=f"http://{own}") == 101
    assert server.status(STREAM, own, **UPGRADE) == 101  # a program on this machine
    assert server.status(STREAM, own, **UPGRADE, Origin=f"http://{beside}") == 403
    assert server.status(STREAM, own, **UPGRADE, Origin="null") == 403
    foreign = f"evil.example:{server.port}"
    assert server.status(STREAM, foreign, **UPGRADE, Origin=f"http://{foreign}") == 421
    assert server.status(STREAM, foreign, **UPGRADE) == 421


def test_stream_delivers_page(server):
    from streamlit.proto.BackMsg_pb2 import BackMsg
    from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
    from websockets.sync.client import connect

    own = f"localhost:{server.port}"
    asked = BackMsg()
    asked.rerun_script.page_script_hash = ""
    shown = []
    with connect(
        f"ws://{own}{STREAM}",
        origin=f"http://{own}",
        subprotocols=["streamlit"],
        open_timeout=PATIENCE_S,
        ping_interval=None,
    ) as stream:
        stream.send(asked.SerializeToString())
        message = ForwardMsg()
        while message.WhichOneof("type") != "script_finished":
            message.ParseFromString(stream.recv(timeout=PATIENCE_S))
            shown.append(str(message))
    assert any('body: "Listen"' in text for text in shown)
    assert not any("exception {" in text for text in shown)


def test_api_rejects_foreign_origins(server):
    own = f"localhost:{server.port}"
    for method in ("GET", "POST", "OPTIONS"):
        assert server.status("/api/similar", own, method=method, Origin="http://localhost:3000") == 403


@pytest.mark.long
@needs_proc
def test_host_option_asks_for_the_token_in_the_address(home, tmp_path):
    own = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    options = ("--host", "0.0.0.0", "--allow-host", "music.example")
    with running(home, *options, lines=2, cwd=tmp_path, **own) as server:
        token = re.match(rf"musicsim is running at http://127.0.0.1:{server.port}/\?token=(\S+)", server.lines[0])[1]
        assert "Anyone who has this address can listen to, change and delete" in server.lines[1]
        assert _heard(server.port) == {"0.0.0.0"}
        for host in ("music.example", f"127.0.0.1:{server.port}"):
            assert server.status("/_stcore/health", host) == 200
            assert server.status("/api/songs", host) == 401
            assert server.status("/api/songs", host, Authorization=f"Bearer {token}") == 200
        for host in ("evil.example", f"0.0.0.0:{server.port}", "8.8.8.8"):
            assert server.status("/_stcore/health", host) == 421
        # as a reverse proxy forwards it, with its own host or with the page's
        for host in ("music.example", f"127.0.0.1:{server.port}"):
            page = {**UPGRADE, "Origin": "https://music.example"}
            assert server.status(STREAM, host, **page) == 401
            assert server.status(STREAM, host, **page, Cookie=f"musicsim_token={token}") == 101
    with running(home, *options, lines=2, cwd=tmp_path, **own) as server:
        assert token in server.lines[0], "the same after a restart"
    with running(home, *options, "--new-token", lines=2, cwd=tmp_path, **own) as server:
        assert token not in server.lines[0]
        assert server.status("/api/songs", "music.example", Authorization=f"Bearer {token}") == 401


@pytest.mark.long
def test_no_token_opens_app_with_warning(home, tmp_path):
    options = ("--host", "0.0.0.0", "--no-token")
    with running(home, *options, lines=2, cwd=tmp_path, XDG_CONFIG_HOME=str(tmp_path)) as server:
        assert "token" not in server.lines[0]
        assert "Anyone who can reach this address can listen to, change and delete" in server.lines[1]
        assert server.status("/api/songs", f"127.0.0.1:{server.port}") == 200
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_rejects_taken_port_and_bad_host(server, home):
    with running(home, "--port", str(server.port)) as other:
        assert other.port != server.port
    for arguments, message in (
        (("--allow-host", "http://music.example"), "not a host name or address"),
        (("--host", "192.0.2.77"), "this machine does not have this address"),
    ):
        command = [sys.executable, "-m", "musicsim", "app", "--no-browser", "--library", str(home), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert done.returncode == 1
        assert message in " ".join(done.stderr.split())
        assert "Traceback" not in done.stderr


@pytest.mark.long
def test_ctrl_c_exits_silently(home):
    with running(home) as server:
        assert server.status("/_stcore/health", "localhost") == 200
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(timeout=PATIENCE_S) == 0
        assert server.process.stdout.read() == ""


@pytest.mark.long
@needs_proc
def test_ctrl_c_says_that_a_job_continues(home, tmp_path):
    shutil.copytree(home, tmp_path / "library")
    with job_process() as job:
        with Library.open(tmp_path / "library") as library:
            library.jobs.update(library.jobs.create("add", {}, pid=job.pid), state="running")
        with running(tmp_path / "library") as server:
            assert server.status("/_stcore/health", "localhost") == 200
            server.process.send_signal(signal.SIGINT)
            assert server.process.wait(timeout=PATIENCE_S) == 0
            said = server.process.stdout.read()
        assert said == "Adding songs continues without the app; to cancel it, start the app again and click Cancel.\n"
        assert job.poll() is None


@pytest.mark.long
@needs_proc
def test_streamlit_run_listens_on_localhost_only(home):
    app = Path(__file__).parents[1] / "app.py"
    command = [sys.executable, "-m", "streamlit", "run", str(app), "--server.headless=true", "--server.port=0"]
    process = subprocess.Popen(
        command,
        cwd=app.parent,
        env=os.environ | {"MUSICSIM_LIBRARY": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        bufsize=1,
    )
    try:
        while not (found := re.search(r"http://localhost:(\d+)", _line(process))):
            pass
        server = Server(process, [found[0]])
        assert _heard(server.port) == {"127.0.0.1"}
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_S)
        process.stdout.close()
