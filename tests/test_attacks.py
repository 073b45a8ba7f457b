"""Attacks on a public demonstration, of a library and of a snapshot file: others are served, and nothing changes."""

import http.client
import json
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from musicsim.library import Library
from musicsim.progress import no_progress
from tests.intact import content
from tests.sounds import write_song
from tests.test_app_server import Server, running
from tests.waiting import PATIENCE_S

HOSTILE, OTHER = "198.51.100.1", "203.0.113.7"
SOUND = {"Content-Type": "audio/flac"}


@pytest.fixture(scope="module")
def home(built_library, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("attacked") / "library"
    shutil.copytree(built_library, folder)
    (folder.parent / "secret.m3u").write_text("the neighbor's secret\n")
    return folder


@pytest.fixture(scope="module", params=["library", "snapshot"])
def attacked(request, home, tmp_path_factory) -> Iterator[tuple[Server, Path]]:
    """Start a process; yield it and the folder that it serves."""
    if request.param == "library":
        with running(home, "--public", lines=2) as server:
            yield server, home
        return
    bundles = pytest.importorskip("musicsim.extensions.bundles.bundle", reason="an extension")
    caches = tmp_path_factory.mktemp("caches")
    file = caches / "music.tar.zst"
    with Library.open(home) as library:
        bundles.write_bundle(library, file, no_progress, with_excerpts=True)
    with running(caches, "--snapshot", str(file), lines=2, XDG_CACHE_HOME=str(caches)) as server:
        yield server, caches


def ask(server: Server, method: str, path: str, body=None, *, address=OTHER, **headers) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    try:
        connection.request(method, path, body, {"X-Forwarded-For": address, **headers})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@contextmanager
def stream(server: Server, address: str) -> Iterator[ClientConnection]:
    own = f"127.0.0.1:{server.port}"
    with connect(
        f"ws://{own}/_stcore/stream", origin=f"http://{own}", subprotocols=["streamlit"], max_size=None,
        additional_headers={"X-Forwarded-For": address}, open_timeout=PATIENCE_S, ping_interval=None,
    ) as found:  # fmt: skip
        yield found


def rerun(page: str = "", query: str = "") -> bytes:
    message = BackMsg()
    message.rerun_script.page_script_hash, message.rerun_script.query_string = page, query
    return message.SerializeToString()


def finished(page: ClientConnection, script: str | None = None) -> list[ForwardMsg]:
    """Return all messages until a run has ended: the given script's, or any."""
    said, running_script = [], None
    while True:
        message = ForwardMsg.FromString(page.recv(timeout=PATIENCE_S))
        said.append(message)
        kind = message.WhichOneof("type")
        if kind == "new_session":
            running_script = message.new_session.page_script_hash
        has_ended = kind == "script_finished" and message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY
        if has_ended and script in (None, running_script):
            return said


def pages(said: list[ForwardMsg]) -> dict[str, str]:
    (navigation,) = [message.navigation for message in said if message.HasField("navigation")][:1]
    return {page.url_pathname: page.page_script_hash for page in navigation.app_pages}


def search(server: Server, song: Path, address: str = OTHER) -> list[dict]:
    status, said = ask(server, "POST", "/api/similar?k=2", song.read_bytes(), address=address, **SOUND)
    assert status == 200, said
    return json.loads(said)


@pytest.fixture(scope="module")
def song(tmp_path_factory) -> Path:
    return write_song(tmp_path_factory.mktemp("sent") / "mine.flac", "noise", seed=3)


@pytest.mark.long
def test_3000_reruns_do_not_block_other_visitors(attacked):
    server, _ = attacked
    with stream(server, HOSTILE) as hostile, stream(server, OTHER) as other:
        other.send(rerun())  # a page that stays silent is closed
        finished(other)
        hostile.send(rerun())
        finished(hostile)
        started = time.monotonic()
        for _ in range(3_000):
            hostile.send(rerun())
        assert ask(server, "GET", "/_stcore/health")[0] == 200
        other.send(rerun())
        assert "train" in pages(finished(other))
        said = []
        # the server does not read on, so it gets no answers to its pings, and ends the connection
        with pytest.raises(ConnectionClosed):
            said.extend(ForwardMsg.FromString(message) for message in hostile)
        n_begun = sum(message.HasField("new_session") for message in said)
        assert n_begun <= 60 + 3 * (time.monotonic() - started) + 3
        assert not any("/musicsim/ui" in str(message) for message in said), "a path of this machine"


@pytest.mark.long
def test_idle_sockets_of_one_address_do_not_block_other_visitors(attacked):
    server, _ = attacked
    with ExitStack() as held:
        refused = []
        for _ in range(210):
            try:
                held.enter_context(stream(server, HOSTILE))
            except InvalidStatus as refusal:
                refused.append(refusal.response)
        assert {answer.status_code for answer in refused} <= {503}
        assert all(answer.headers["Retry-After"] for answer in refused)
        assert ask(server, "GET", "/")[0] == 200
        other = held.enter_context(stream(server, OTHER))
        other.send(rerun())
        assert "train" in pages(finished(other))


def drip(server: Server, method: str, path: str, **headers: str) -> socket.socket:
    """Begin a request whose body never comes."""
    sent = {"Host": f"127.0.0.1:{server.port}", "Content-Length": "1000000", **headers}
    head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    held = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
    held.sendall(f"{head}\r\n12345".encode())
    return held


@pytest.mark.long
@pytest.mark.parametrize("n_addresses", [1, 64])
def test_64_slow_uploads_do_not_block_other_visitors(attacked, song, n_addresses):
    server, _ = attacked
    with ExitStack() as held, stream(server, OTHER) as other:
        other.send(rerun())  # a page that stays silent is closed
        finished(other)
        slow = []
        for i in range(32):
            address = {"X-Forwarded-For": f"198.51.100.{1 + i % n_addresses}"}
            slow.append(held.enter_context(drip(server, "POST", "/api/similar", **address, **SOUND)))
            slow.append(held.enter_context(drip(server, "PUT", f"/_stcore/upload_file/s{i}/{i}", **address)))
        assert len(search(server, song)) == 2
        other.send(rerun())
        session = next(m.new_session.initialize.session_id for m in finished(other) if m.HasField("new_session"))
        assert upload(server, other, session, song) == 204
        assert search(server, song)
        for one in slow:
            one.setblocking(False)
            try:
                answer = one.recv(100)
            except BlockingIOError:  # still open
                continue
            assert b" 408 " in answer, "on a slow machine its time was over; until then it was open"


def upload(server: Server, page: ClientConnection, session: str, song: Path) -> int:
    """Send a file as a page does; return the status."""
    asked = BackMsg()
    asked.file_urls_request.request_id, asked.file_urls_request.session_id = "1", session
    asked.file_urls_request.file_names.append(song.name)
    page.send(asked.SerializeToString())
    while not (answer := ForwardMsg.FromString(page.recv(timeout=PATIENCE_S))).HasField("file_urls_response"):
        pass
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    connection.request("GET", "/_stcore/health")
    cookie = connection.getresponse().headers["Set-Cookie"].partition(";")[0]
    connection.close()
    head = '--x\r\nContent-Disposition: form-data; name="f"; filename="mine.flac"\r\n\r\n'
    body = head.encode() + song.read_bytes() + b"\r\n--x--\r\n"
    url = answer.file_urls_response.file_urls[0].upload_url
    token = {"Cookie": cookie, "X-Xsrftoken": cookie.partition("=")[2]}
    return ask(server, "PUT", url, body, **token, **{"Content-Type": "multipart/form-data; boundary=x"})[0]


N = "9" * 4_500
ODD = [
    *(f"/songs/{i}/{what}" for i in ("0", "-1", "1.5", "nan", "99999999999999999999", N, "1%00", "..%2f1")
      for what in ("audio", "peaks", "cover", "label")),
    *(f"/api/songs/{i}/similar" for i in ("0", "-1", "9223372036854775808", N, "x")),
    *(f"/api/songs/1/similar?{query}" for query in (
        "part=1e308&part=1e309", "part=nan&part=nan", "part=0", "k=0", "k=1000000000", "k=x", "per_artist=-1",
        f"like={N}", "like=99999999999999999999", "folder=/etc", "words=%00", "words=" + "x" * 10_000,
        "model=../x", "model=%00", "library=../x", "library=%2Fetc", "tempos=nan&tempos=nan", "years=1&years=0",
        "&".join(["like=1"] * 4_000),
    )),
    *(f"/api/playlist?{query}" for query in ("length=1000000000", "seed=-1", f"seed={N}", "through=-1", "folder=/")),
    *(f"/maps/{model}/{column}" for model in ("x", "..%2f..%2fx", "%00") for column in ("places", "folder", "..%2fx")),
    "/maps/../../secret.m3u", "/songs/..%2f..%2fsecret.m3u/audio", "/app/static/../../../secret.m3u",
    "/media/..%2f..%2fsecret.m3u", "/%2e%2e/%2e%2e/secret.m3u", "//etc/passwd", "/static/..%2f..%2f..%2fsecret.m3u",
    "/uploads/..%2f..%2fsecret.m3u", "/exports/..%2fsecret.m3u", "/radio?song=x", f"/radio?song={N}", "/radio?song=-1",
    "/radio?song=1&" + "&".join(["lately=99999999999999999999"] * 3), "/listen/..%2f..%2fx/state", "/listen/x/state",
    "/listen/x/sound/0/0", f"/listen/x/sound/{N}/0", "/_stcore/metrics", "/_stcore/agent/openapi.json",
    "/_stcore/script-health-check", "/rest/ping.view?apiKey=x", "/players/x/api/health",
]  # fmt: skip
WRITES = [
    ("POST", "/api/models?supervision=genre"), ("POST", "/api/models"), ("PUT", "/api/songs/1"), ("DELETE",
    "/api/songs/1"),
    ("PATCH", "/api/models"), ("GET", "/api/jobs/1"), ("POST", "/songs/1/audio"), ("PUT", "/maps/x/places"),
    ("PUT", "/_stcore/upload_file/none/1"), ("DELETE", "/_stcore/upload_file/none/1"), ("POST",
    "/_stcore/agent/interact"),
    ("POST", "/rest/getSimilarSongs"), ("POST", "/listen/x/consent"), ("POST", "/listen/x/grades"),
    ("DELETE", "/exports/x"),
    ("PROPFIND", "/"), ("POST", "/"),
]  # fmt: skip


@pytest.mark.long
def test_odd_requests_change_nothing(attacked, song):
    server, folder = attacked
    assert search(server, song)  # the first search writes files
    before = content(folder)
    failed = []
    for i, (method, path) in enumerate([*(("GET", path) for path in ODD), *WRITES]):
        body = None if method == "GET" else b'{"place": 1e400, "category": [[]]}'
        status, said = ask(server, method, path, body, address=f"198.51.100.{i % 200}")
        is_empty_page = b'id="root"' in said  # Streamlit's response to unknown addresses
        is_answered = method == "GET" and status in (200, 204)
        is_fine = is_answered or is_empty_page or 400 <= status < 500
        tells = [secret for secret in (b"secret\n", b"root:", bytes(folder), b"Traceback") if secret in said]
        if not is_fine or tells:
            failed.append((method, path[:100], status, said[:200], tells))
    assert failed == []
    for body in (b"", b"x" * 1000, b"RIFF" + bytes(100), b"fLaC" + bytes(5_000)):
        assert ask(server, "POST", "/api/similar", body, **SOUND)[0] == 422
    assert ask(server, "POST", "/api/similar", bytes((20 << 20) + 1), **SOUND)[0] == 413
    assert ask(server, "POST", "/api/similar", iter([bytes(1 << 20)] * 22), **SOUND)[0] == 413
    assert search(server, song)
    assert content(folder) == before


def test_range_requests_never_exceed_file(attacked):
    server, _ = attacked
    songs = json.loads(ask(server, "GET", "/api/songs")[1])
    address = f"/songs/{songs[0]['id']}/audio"
    status, whole = ask(server, "GET", address)
    assert status == 200
    for asked in (
        "bytes=0-", "bytes=0-99", "bytes=-1", "bytes=99-0", "bytes=-", "bytes=x", "bytes=999999999999-",
        "bytes=0-1,5-6",
        "bytes=" + ",".join(["0-"] * 500), f"bytes={N}-", "lines=1-2", "bytes=0--1", "bytes=1e3-",
    ):  # fmt: skip
        status, part = ask(server, "GET", address, Range=asked)
        assert status in (200, 206, 400, 416), asked
        assert len(part) <= 2 * len(whole), asked


def test_forged_messages_change_nothing(attacked):
    server, folder = attacked
    before = content(folder)
    with stream(server, HOSTILE) as hostile:
        for change in ("clear_cache", "set_run_on_save", "load_git_info", "debug_shutdown_runtime"):
            hostile.send(BackMsg(**{change: True}).SerializeToString())
        hostile.send(b"\xff\xff")
        for query in ("folder=/etc", "library=../x", "song=-1", f"song={N}", "playlist=999", "song=nan&like=x"):
            hostile.send(rerun(query=query))
        odd = BackMsg.FromString(rerun())
        odd.rerun_script.fragment_id = "none"
        odd.rerun_script.widget_states.widgets.add(id="none").string_value = str(folder)
        hostile.send(odd.SerializeToString())
        hostile.send(rerun("no such page"))
        hostile.send(rerun())
        said = finished(hostile)
        assert str(folder) not in str([m for m in said if not m.HasField("new_session")])
    with stream(server, OTHER) as other:
        other.send(rerun())
        assert "train" in pages(finished(other))
    assert content(folder) == before
