"""Music at fsspec addresses: listed, read in blocks, and analyzed like the same local files."""

import contextlib
import html
import json
import socketserver
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import unquote

import pytest

from musicsim import addresses, web
from musicsim.addresses import RemotePath, explain_refusal, is_address, resolve_address, strip_user, strip_users
from musicsim.audio import analyze_sound
from musicsim.errors import LibraryError
from musicsim.library.scan.files import content_hash, find_audio
from musicsim.library.tags.file_tags import read_tags
from tests.command import run
from tests.sounds import open_library, write_collection, write_song

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def memory(monkeypatch):
    """A file system in memory, empty before and after, whose addresses are allowed for the test."""
    monkeypatch.setattr(addresses, "PROTOCOLS", (*addresses.PROTOCOLS, "memory"))
    system = fsspec.filesystem("memory")
    system.store.clear()
    yield system
    system.store.clear()


@pytest.fixture
def served(tmp_path):
    """A folder behind a web server, its address, and the number of bytes requested per file."""
    from werkzeug.serving import make_server
    from werkzeug.utils import send_file
    from werkzeug.wrappers import Response

    folder = tmp_path / "served"
    folder.mkdir()
    asked = []

    def answer(environ, start_response):
        path = folder / unquote(environ["PATH_INFO"]).strip("/")
        if path.is_dir():
            names = [f"{child.name}/" if child.is_dir() else child.name for child in path.iterdir()]
            links = "".join(f'<a href="{html.escape(name)}">x</a>' for name in names)
            response = Response(links, mimetype="text/html")
        elif path.exists():
            response = send_file(path, environ, conditional=True)
            if environ["REQUEST_METHOD"] == "GET":
                asked.append((path.name, int(response.headers["Content-Length"])))
        else:
            response = Response("nothing", 404)
        return response(environ, start_response)

    server = make_server("127.0.0.1", 0, answer, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield folder, f"http://127.0.0.1:{server.port}/", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("address", ["s3://bucket/a b.mp3", "sftp://host/music", "https://host/x"])
def test_distinguishes_addresses_from_paths(address):
    assert is_address(address)
    assert is_address(Path(address))
    assert isinstance(resolve_address(Path(address)), RemotePath)


@pytest.mark.parametrize("path", ["/music/a.mp3", "a:/b", "music", "file:///music", "/s3:/bucket", "C:/music"])
def test_local_paths_are_not_addresses(path):
    assert not is_address(path)
    assert type(resolve_address(Path(path))) is type(Path())


def test_scan_of_address_follows_folder_rules(memory):
    for name in ("/m/a.flac", "/m/x/b.MP3", "/m/.hidden/c.mp3", "/m/@eaDir/d.mp3", "/m/notes.txt"):
        memory.pipe(name, b"12345")
    found = find_audio([Path("memory://m")])
    assert [str(file.path) for file in found.files] == ["memory:/m/a.flac", "memory:/m/x/b.MP3"]
    assert {file.size for file in found.files} == {5}
    assert all(file.mtime_ns > 1e18 for file in found.files)
    (alone,) = find_audio([Path("memory://m/notes.txt")]).files
    assert str(alone.path) == "memory:/m/notes.txt"


def test_unlistable_address_is_reported_as_unread(memory):
    for address in (Path("memory://nowhere"), Path("nosuch://bucket")):
        found = find_audio([address], absent_ok=True)
        assert [path for path, _ in found.problems] == [address]
        assert found.unread(address / "a.mp3")


@pytest.mark.parametrize("ending", [".flac", ".ogg", ".wav", ".mp3"])
def test_remote_file_decodes_like_local_file(memory, tmp_path, ending):
    here = write_song(tmp_path / f"song{ending}", "tones", seed=3)
    memory.pipe(f"/m/song{ending}", here.read_bytes())
    there = resolve_address(Path(f"memory://m/song{ending}"))
    one, other = analyze_sound(here, aspects=True), analyze_sound(there, aspects=True)
    assert (one.sound_hash, one.duration_s, one.notes) == (other.sound_hash, other.duration_s, other.notes)
    assert content_hash(here) == content_hash(there)
    assert read_tags(here) == read_tags(there)


def test_concurrent_readers_are_independent(memory):
    memory.pipe("/m/a.bin", bytes(range(200)))
    path = resolve_address(Path("memory://m/a.bin"))
    with path.open("rb") as one, path.open("rb") as other:
        assert one.read(3) == b"\0\1\2"
        other.seek(100)
        assert other.read(1) == b"d"
        assert one.read(2) == b"\3\4"


@pytest.mark.long
def test_web_server_scan_matches_local_folder(served, tmp_path):
    folder, address, asked = served
    write_collection(folder, n_songs=2)
    (folder / "broken.mp3").write_text("no music")
    with open_library(tmp_path / "here") as here, open_library(tmp_path / "there") as there:
        here.add(folder)
        report = there.add(address)
        assert (report.n_added, len(report.failures)) == (6, 1)
        assert {s.title for s in there.songs()} == {s.title for s in here.songs()}
        assert sorted(there.content_hashes()) == sorted(here.content_hashes())
        kept = [{p.name: p.read_bytes() for p in lib.frame_files.folder.glob("??/*")} for lib in (here, there)]
        assert kept[0] == kept[1]
        sizes = {path.name: path.stat().st_size for path in folder.rglob("*.flac")}
        for name, size in sizes.items():
            assert sum(n for asked_name, n in asked if asked_name == name) <= size + 1000, "read more than once"
        again = there.add(address)
        assert (again.n_unchanged, again.n_missing, again.n_added) == (7, 0, 0)
        next(iter(folder.rglob("*.flac"))).unlink()
        assert there.add(address).n_missing == 1


class _Answers(socketserver.StreamRequestHandler):
    """A web server under the control of a test: `server.answer` writes the whole response.

    Responses are HTTP/1.0, so clients do not reuse a connection that is about to close.
    """

    def handle(self):
        with contextlib.suppress(OSError):
            method, path, *_ = self.rfile.readline().decode().split()
            headers = {}
            while line := self.rfile.readline().strip().decode():
                name, _, value = line.partition(":")
                headers[name.lower()] = value.strip()
            self.server.asked.append((method, path, headers))
            self.server.answer(self, method, path, headers)


@pytest.fixture
def hostile():
    """Start a web server that responds with a function; yield its address and a list of its requests."""
    servers = []

    def start(answer):
        server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Answers)
        server.daemon_threads, server.answer, server.asked = True, answer, []
        server.block_on_close = False
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        servers.append((server, thread))
        return f"http://127.0.0.1:{server.server_address[1]}", server.asked

    yield start
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()


def endless(handler, method, path, _headers):
    """Send a body without end, on request as a partial answer."""
    kind = "text/html" if path.endswith("page") else "audio/wav"
    size = "Content-Length: 4000000000\r\n" if method == "HEAD" else ""
    status = "206 Partial Content" if "part" in path else "200 OK"
    handler.wfile.write(f"HTTP/1.0 {status}\r\nContent-Type: {kind}\r\n{size}\r\n".encode())
    while method == "GET":
        handler.wfile.write(bytes(1 << 16))


_PEAK_OF_ADD = """
import json, pathlib, re, resource, sys
sys.argv = ["musicsim", "add", sys.argv[2], "--workers", "1", "--library", sys.argv[1]]
from musicsim.cli import main
try:
    main()
except SystemExit:
    pass
# ru_maxrss of this process would include the memory of the process that started it
own = int(re.search(r"VmHWM:\\s*(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1])
peaks = [own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss]
print("PEAKS", json.dumps([kb >> 10 for kb in peaks]))
"""


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak of memory from /proc")
@pytest.mark.parametrize("name", ["endless.wav", "endless.part.wav", "page"])
def test_endless_web_server_uses_little_memory(hostile, tmp_path, name):
    address, asked = hostile(endless)
    done = subprocess.run(
        [sys.executable, "-c", _PEAK_OF_ADD, tmp_path / "lib", f"{address}/{name}"],
        capture_output=True,
        text=True,
        check=True,
    )
    peaks = json.loads(done.stdout.rpartition("PEAKS")[2])
    assert max(peaks) < 200, f"MB of the command and of its workers: {peaks}"
    said = " ".join(done.stderr.split())
    assert "Traceback" not in said
    assert {"page": "sent more than the expected 4,194,304 bytes", "endless.wav": "HTTP ranges"}.get(
        name, "sent more than the expected 1,048,576 bytes"
    ) in said
    assert all("range" in headers for method, path, headers in asked if method == "GET" and "wav" in path)


@pytest.mark.long
def test_slow_web_server_times_out(hostile, monkeypatch):
    monkeypatch.setattr(web, "REQUEST_S", 0.5)
    released = threading.Event()

    def drip(handler, method, _path, _headers):
        handler.wfile.write(b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n")
        while method == "GET" and not released.wait(0.1):
            handler.wfile.write(b"x")

    address, _ = hostile(drip)
    try:
        found = find_audio([Path(f"{address}/slow")])
    finally:
        released.set()
    assert found.files == []
    ((_, reason),) = found.problems
    assert "took too long" in reason


def test_bad_web_server_responses_give_clear_errors(hostile):
    def answer(handler, _method, path, _headers):
        number = path.strip("/").split(".")[0]
        heads = {
            "nothing": "",
            "junk": "\0\1\2 no http\r\n\r\n",
            "lost": "HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n",
            "closed": "HTTP/1.0 401 Unauthorized\r\nContent-Length: 0\r\n\r\n",
            "lengthless": "HTTP/1.1 200 OK\r\nContent-Type: audio/wav\r\nTransfer-Encoding: chunked\r\n"
            "Connection: close\r\n\r\n",
            "circle": f"HTTP/1.0 302 Found\r\nLocation: {path}\r\nContent-Length: 0\r\n\r\n",
            "metadata": "HTTP/1.0 302 Found\r\nLocation: http://169.254.169.254/x.wav\r\nContent-Length: 0\r\n\r\n",
            "file": "HTTP/1.0 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n",
        }
        handler.wfile.write(heads[number].encode())

    address, _ = hostile(answer)
    reasons = {
        name: find_audio([Path(f"{address}/{name}.wav")]).problems[0][1]
        for name in ("nothing", "junk", "lost", "closed", "lengthless", "circle", "metadata", "file")
    }
    assert "404" in reasons["lost"]
    assert "401" in reasons["closed"]
    assert "does not report the file's size" in reasons["lengthless"]
    assert "private network" in reasons["metadata"]
    assert all(reason.endswith(".") and "\n" not in reason for reason in reasons.values())


def test_follows_redirects_within_host_and_links_below_folder(hostile):
    def answer(handler, method, path, _headers):
        if path.startswith("/old"):
            moved = f"/new/{path.removeprefix('/old').strip('/')}" + "/" * path.endswith("/sub/")
            head = f"HTTP/1.0 301 Moved\r\nLocation: {moved}\r\nContent-Length: 0\r\n\r\n"
            handler.wfile.write(head.encode())
            return
        if path.endswith("/"):
            links = '<a href="../../etc/x.mp3">x</a> <a href="a.mp3">x</a> <a href="sub/">x</a> <a href="?C=N">x</a>'
            links += ' <a href="http://elsewhere/b.mp3">x</a> <a href="/new/c&amp;d.mp3">x</a> <a href="e.txt">x</a>'
            body, kind = ((links if path == "/new/" else '<a href="..">x</a> <a href="f.mp3">').encode(), "text/html")
        else:
            body, kind = b"12345", "audio/mpeg"
        head = f"HTTP/1.0 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        handler.wfile.write(head.encode() + (body if method == "GET" else b""))

    address, asked = hostile(answer)
    found = find_audio([Path(f"{address}/old")])
    assert found.problems == []
    top = str(Path(address)) + "/old/"
    assert [str(file.path).removeprefix(top) for file in found.files] == ["a.mp3", "c&d.mp3", "sub/f.mp3"]
    assert not any("etc" in path or "e.txt" in path for _, path, _ in asked)


def test_endless_folders_are_abandoned(hostile, monkeypatch):
    monkeypatch.setattr(web, "MAX_FOLDERS", 20)

    def answer(handler, method, _path, _headers):
        body = b'<a href="1/">x</a> <a href="2/">x</a>'
        head = f"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n"
        handler.wfile.write(head.encode() + (body if method == "GET" else b""))

    address, asked = hostile(answer)
    ((_, reason),) = find_audio([Path(f"{address}/x")]).problems
    assert "more than 20 folders" in reason
    assert len(asked) < 50


REFUSED = [
    "reference://x",
    "reference:/x::data:{}",
    "https://host/x.zip::data:{}",
    "zip://song.flac::/a.zip",
    "local:/etc/passwd",
    "dir:/x::file:/",
    "git:/x",
    "libarchive:/x",
    "github:/a:b@/x",
    "memory://x",
    "ftp://host/x",
]


@pytest.mark.parametrize("address", REFUSED)
def test_unlisted_protocols_never_reach_fsspec(address, store, monkeypatch):
    monkeypatch.setattr(fsspec, "url_to_fs", lambda *_, **__: pytest.fail("fsspec was asked"))
    path = Path(address)
    with pytest.raises(LibraryError, match="are not supported"):
        store.add(address)
    assert store.files.roots() == []
    remote = resolve_address(path)
    assert not remote.exists()
    for ask in (remote.stat, remote.open, lambda: list(remote.files())):
        with pytest.raises(OSError, match="are not supported"):
            ask()
    # as in a restored library
    with store.write() as connection:
        connection.exec_driver_sql("INSERT INTO roots VALUES (?, 0)", (str(path),))
    out, _ = run("scan", "--json", library=store.folder, expect=3)
    (failed,) = json.loads(out)["failed"]
    assert "are not supported" in failed["reason"]


SECRETS = [
    "http://me:S3CRET@127.0.0.1:9/x.flac",
    "https://me:S3@CRET@host/x.flac",
    "sftp://S3CRET@host/music",
    "abfs://me:S3CRET@host/x",
    "smb://me:S3CRET@host/x",
]


@pytest.mark.parametrize("address", SECRETS)
def test_rejects_address_with_password_without_showing_it(address, tmp_path):
    library = tmp_path / "lib"
    with open_library(library):
        pass
    for command in ("add", "scan"):
        _, err = run(command, address, library=library, expect=1)
        assert "FSSPEC_" in err
        assert "CRET" not in err
    assert "CRET" not in strip_user(str(Path(address)))
    held = b"".join(path.read_bytes() for path in library.rglob("*") if path.is_file())
    assert b"CRET" not in held


def test_azure_container_is_not_treated_as_user():
    assert explain_refusal("abfs://container@account.dfs.core.windows.net/x") is None
    assert strip_user("/music/me@home/x.mp3") == "/music/me@home/x.mp3"
    assert strip_users("mail a@b, see http://h/a@b") == "mail a@b, see http://h/a@b"


def test_passwords_in_addresses_are_not_shown(tiny_library, tmp_path):
    song = tiny_library.songs()[0]
    place = "http:/me:S3CRET@127.0.0.1:9/music"
    with tiny_library.write() as connection:
        say = connection.exec_driver_sql
        say("INSERT INTO roots VALUES (?, 0)", (place,))
        say("UPDATE files SET path = ?, folder = ? WHERE song_id = ?", (f"{place}/a.mp3", place, song.id))
        say("UPDATE songs SET last_path = ? WHERE id = ?", (f"{place}/a.mp3", song.id))
        say(
            "INSERT INTO failures (path, reason, size, mtime_ns, failed_at, kind) VALUES (?, ?, 1, 1, 0, 'error')",
            (f"{place}/b.mp3", f"{place}/b.mp3: cannot be read."),
        )
        say(
            "INSERT INTO jobs (kind, arguments, state, message, done, total, failed, cancel_requested, created_at,"
            " updated_at) VALUES ('add', ?, 'done', ?, 0, 0, 0, 0, 0, 0)",
            (json.dumps({"paths": [place]}), f"{place}/b.mp3"),
        )
    # as a read-only library shows it
    assert "CRET" not in f"{tiny_library.files.roots()} {tiny_library.files.failures()} {tiny_library.songs()}"
    said = ""
    for command in (("info",), ("failed",), ("list", "--json"), ("report", tmp_path / "report.zip")):
        out, err = run(*command, library=tiny_library.folder, expect=3 if command == ("failed",) else 0)
        said += out + err
    assert "CRET" not in said
    assert "127.0.0.1:9/music" in said
