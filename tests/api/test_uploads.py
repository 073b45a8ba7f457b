"""Files that other programs send: bounded in size, number, time and memory, and nothing of them stays."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from multiprocessing import active_children
from pathlib import Path

import numpy as np
import pytest
import soundfile
from starlette.applications import Starlette
from starlette.testclient import TestClient

from musicsim.api import http, routes
from tests.sounds import write_song
from tests.waiting import PATIENCE_S, until

SOUND = {"content-type": "application/octet-stream"}

SERVER = """
import uvicorn
from starlette.applications import Starlette
from musicsim.api import routes

class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print(self.servers[0].sockets[0].getsockname()[1], flush=True)

Server(uvicorn.Config(Starlette(routes=routes()), port=0, log_level="error")).run()
"""


@pytest.fixture
def client(tiny_library, monkeypatch):
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(tiny_library.folder))
    with TestClient(Starlette(routes=routes()), headers=SOUND) as client:
        yield client


@pytest.fixture
def song(tmp_path):
    return write_song(tmp_path / "q.mp3", "noise", seed=77).read_bytes()


def silence(path, minutes):
    """A small file that takes long to decode."""
    soundfile.write(path, np.zeros(minutes * 60 * 8000, np.int16), 8000)
    return path.read_bytes()


def left(library):
    """Temporary files that are still there."""
    return list((library.folder / "scratch").glob("*/*"))


def at_work(library):
    """Wait until a file that was sent has been handed to a worker."""
    until(lambda: len(left(library)) == 2)  # the file has a folder, and the work
    time.sleep(1.0)


class Asking(threading.Thread):
    """A client that waits for its answer beside the test."""

    def __init__(self, client, path, **options):
        super().__init__()
        self._ask = lambda: client.post(path, **options)
        self.start()

    def run(self):
        self._answer = self._ask()

    def answer(self):
        self.join()
        return self._answer


def test_a_file_is_analysed_and_forgotten(client, tiny_library, song):
    answer = client.post("/api/similar?k=2&per_artist=0", content=song)
    assert [hit["artist"] for hit in answer.json()] == ["Artist noise"] * 2
    assert "Musicsim-Notes" not in answer.headers
    assert left(tiny_library) == []


def test_the_minutes_that_are_analysed_are_said(client, tmp_path):
    data = silence(tmp_path / "long.flac", 3)
    answer = client.post("/api/similar?minutes=2", content=data)
    assert answer.status_code == 200
    assert answer.headers["Musicsim-Notes"] == "Only the first 2 minutes were analysed."
    assert "Musicsim-Notes" not in client.post("/api/similar", content=data).headers
    assert client.post("/api/similar?minutes=0", content=data).status_code == 422


def sent(path, headers=(), chunks=(), *, stays=True):
    """Status and JSON of a POST whose chunks are taken one by one; also how many were taken."""
    return asyncio.run(send_to(Starlette(routes=routes()), path, headers, chunks, stays=stays))


async def send_to(app, path, headers=(), chunks=(), *, stays=True, stalls=False):
    """As :func:`sent`, to an app; a body that `stalls` never ends."""
    path, _, query = path.partition("?")
    taken = []
    answer = []

    async def receive():
        if len(taken) < len(chunks):
            taken.append(chunks[len(taken)])
            return {"type": "http.request", "body": taken[-1], "more_body": stalls or len(taken) < len(chunks)}
        if stays:
            await asyncio.sleep(3600)
        return {"type": "http.disconnect"}

    async def send(message):
        answer.append(message)

    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
        "path": path, "raw_path": path.encode(), "query_string": query.encode(), "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in [*headers, *SOUND.items()]],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2),
    }  # fmt: skip
    await app(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in answer)
    return answer[0]["status"], json.loads(body) if body else None, len(taken)


def test_a_file_that_says_it_is_too_large_is_refused_before_it_is_read(client, tiny_library):
    status, body, n_taken = sent("/api/similar", [("content-length", str((200 << 20) + 1))], [b"x"])
    assert (status, n_taken) == (413, 0)
    assert body["error"] == "the file is larger than 200 MB: send a part of it."
    assert left(tiny_library) == []


def test_a_file_that_does_not_say_so_is_refused_where_it_passes_the_limit(client, tiny_library):
    status, _, n_taken = sent("/api/similar", chunks=[bytes(1 << 20)] * 210)
    assert (status, n_taken) == (413, 201)
    assert left(tiny_library) == []


def test_a_library_that_is_not_there_is_said_before_the_file_is_read(client):
    answer = client.post("/api/similar?library=nowhere", content=b"x")
    assert answer.status_code == 404


@pytest.mark.slow
def test_a_killed_worker_costs_one_answer(client, tiny_library, tmp_path, song):
    hostile = Asking(client, "/api/similar?minutes=600", content=silence(tmp_path / "long.flac", 600))
    at_work(tiny_library)
    for child in active_children():
        os.kill(child.pid, signal.SIGKILL)
    answer = hostile.answer()
    assert answer.status_code == 422
    assert "the file that was sent: the decoder crashed" in answer.json()["error"]
    assert left(tiny_library) == []
    assert client.post("/api/similar", content=song).status_code == 200


@pytest.mark.slow
def test_files_beyond_the_line_are_refused_for_a_while(client, tiny_library, tmp_path, song, monkeypatch):
    monkeypatch.setattr(http, "_uploads", threading.BoundedSemaphore(1))
    first = Asking(client, "/api/similar?minutes=600", content=silence(tmp_path / "long.flac", 40))
    at_work(tiny_library)
    answer = client.post("/api/similar", content=song)
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0
    assert "again later" in answer.json()["error"]
    assert client.get("/api/songs").status_code == 200, "all else is answered"
    assert first.answer().status_code == 200
    assert client.post("/api/similar", content=song).status_code == 200


def test_a_file_that_comes_slowly_takes_no_place_of_others(client, tiny_library, song, monkeypatch):
    monkeypatch.setattr(http, "_uploads", threading.BoundedSemaphore(1))

    async def attack():
        app = Starlette(routes=routes())
        slow = [asyncio.create_task(send_to(app, "/api/similar", chunks=[b"x"], stalls=True)) for _ in range(8)]
        while len(left(tiny_library)) < len(slow):  # each is received into a folder
            await asyncio.sleep(0.01)
        answer = await send_to(app, "/api/similar", chunks=[song])
        assert not any(task.done() for task in slow)
        for task in slow:
            task.cancel()
        return answer

    status, hits, _ = asyncio.run(attack())
    assert (status, bool(hits)) == (200, True)


@pytest.mark.slow
def test_the_work_for_a_client_that_has_gone_is_dropped(client, tiny_library, tmp_path, song):
    data = silence(tmp_path / "long.flac", 600)
    status, _, _ = sent("/api/similar?minutes=600", chunks=[data], stays=False)
    assert status == 499
    assert client.post("/api/similar", content=song).status_code == 200
    until(lambda: not left(tiny_library))


def peak_mb(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith("VmHWM"))


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_server_holds_no_part_of_a_large_file_in_memory(tiny_library, tmp_path, song):
    import urllib.request

    large = tmp_path / "large.wav"
    samples = np.random.default_rng(0).integers(-3000, 3000, 90 << 20, dtype=np.int16)  # 180 MB
    soundfile.write(large, samples, 44100)
    del samples
    environment = os.environ | {"MUSICSIM_LIBRARY": str(tiny_library.folder)}
    with subprocess.Popen(
        [sys.executable, "-c", SERVER], stdout=subprocess.PIPE, env=environment, cwd=Path(__file__).parents[2]
    ) as server:
        try:
            address = f"http://127.0.0.1:{int(server.stdout.readline())}/api/similar?minutes=1"

            def post(data, size):
                headers = {"Content-Type": "audio/wav", "Content-Length": str(size)}
                request = urllib.request.Request(address, data, headers, method="POST")
                with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                    return json.load(answer)

            assert post(song, len(song))
            before = peak_mb(server.pid)
            with large.open("rb") as file:
                assert post(file, large.stat().st_size)
            assert peak_mb(server.pid) - before < 60
        finally:
            server.kill()
