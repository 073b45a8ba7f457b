"""Music servers on the loopback: a real one, and a scripted one."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from musicsim.extensions.music_servers.client import Subsonic
from musicsim.extensions.music_servers.connections import Connection
from musicsim.library import Library
from musicsim.library.db import schema
from tests.extensions.music_servers.supysonic_process import PASSWORDS
from tests.waiting import PATIENCE_S


class Supysonic:
    """A running Supysonic."""

    def __init__(self, process: subprocess.Popen, music: Path) -> None:
        self._process, self.music = process, music
        self.address = f"http://127.0.0.1:{int(process.stdout.readline())}"

    def scan(self) -> None:
        """Have the server scan its folder again."""
        self._process.stdin.write("scan\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "scanned\n"

    def connection(self, user: str = "anna", name: str = "home", **more: object) -> Connection:
        return Connection(name, self.address, user, PASSWORDS[user], "password", **more)


def playlist_songs(client: Subsonic, list_id: str) -> list[str]:
    """Return the server's ids of the songs in a playlist."""
    return [entry["id"] for entry in client.ask("getPlaylist", id=list_id)["playlist"]["entry"]]


@contextmanager
def supysonic(state: Path, music: Path, *, port: int = 0, enter: Sequence[str] = ()) -> Iterator[Supysonic]:
    """Run Supysonic over a folder of music, on a free port or this one; `enter` is a command before its own."""
    program = "tests.extensions.music_servers.supysonic_process"
    state.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        [*enter, sys.executable, "-m", program, str(state), str(music), str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=(state / "log").open("w"),
        text=True,
        cwd=Path(__file__).parents[3],
    )
    try:
        yield Supysonic(process, music)
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_S)


Answer = Callable[[str, dict[str, str]], object]


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Ignore clients that disconnect, which are not an error of the test."""


class Scripted:
    """A server that answers a call and its parameters by a function, and records the calls."""

    def __init__(self, answer: Answer) -> None:
        self.asked: list[tuple[str, dict[str, str], dict[str, str]]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                call = parts.path.rpartition("/")[2].removesuffix(".view")
                values = {k: v[-1] for k, v in parse_qs(parts.query or body, keep_blank_values=True).items()}
                outer.asked.append((call, values, dict(self.headers)))
                reply = answer(call, values)
                if callable(reply):  # it writes the response itself
                    reply(self)
                    self.close_connection = True
                    return
                data = reply if isinstance(reply, bytes) else json.dumps(ok(reply)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_POST = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self._server = _Quiet(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def connection(self, **more: object) -> Connection:
        return Connection(**{"name": "home", "address": self.address, "user": "anna", "secret": "red apple"} | more)


def ok(values: object) -> dict[str, object]:
    """Wrap a response in its envelope. A pair of code and message becomes an error."""
    if isinstance(values, tuple):
        code, message = values
        return {"subsonic-response": {"status": "failed", "error": {"code": code, "message": message}}}
    return {"subsonic-response": {"status": "ok", "version": "1.16.1", **(values or {})}}


@contextmanager
def scripted(answer: Answer) -> Iterator[Scripted]:
    """Run a scripted server."""
    server = Scripted(answer)
    try:
        yield server
    finally:
        server.stop()


def store_playlists(there: dict[str, str]) -> Answer:
    """Script a server that stores playlists: `there` maps their ids to their names."""

    def answer(call: str, values: dict[str, str]) -> object:
        if call == "createPlaylist":
            list_id = values.get("playlistId") or f"pl-{values['name']}"
            there[list_id] = values["name"]
            return {"playlist": {"id": list_id}}
        if call == "deletePlaylist":
            del there[values["id"]]
        if call == "getPlaylists":
            return {"playlists": {"playlist": [{"id": i, "name": name} for i, name in there.items()]}}
        return {}

    return answer


def having(songs: list[dict], **answers: object) -> Answer:
    """Script a server with these songs, and the given responses to other calls."""

    def answer(call: str, values: dict[str, str]) -> object:
        if call in answers:
            return answers[call]
        if call == "search3":
            start = int(values["songOffset"])
            return {"searchResult3": {"song": songs[start : start + int(values["songCount"])]}}
        return {}

    return answer


def enter(library: Library, song_id: int, path: Path, **values: object) -> None:
    """Add a song as if it had been analyzed elsewhere, with the fields that matching needs."""
    row = {"title": "One", "artist": "Me", "duration_s": 60.0, "feature_version": 1, "added_at": 1.0}
    row |= {"id": song_id, "content_hash": str(song_id), "notes": "", "outline": b"", "last_path": path} | values
    file = {"path": path, "song_id": song_id, "folder": path.parent, "size": 1, "mtime_ns": 1}
    with library.write() as connection:
        connection.execute(schema.songs.insert().values(**row))
        connection.execute(schema.files.insert().values(**file))
