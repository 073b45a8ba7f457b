"""Files that other programs send: bounded in size, number, time and memory, and no traces left."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from queue import Queue

import numpy as np
import pytest
import soundfile
from starlette.applications import Starlette
from starlette.testclient import TestClient

from musicsim.api import routes, sound_files
from musicsim.explorer.search.uploads import decode_upload
from musicsim.library.processes.workers import Worker
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
    """Write a small file that takes long to decode."""
    soundfile.write(path, np.zeros(minutes * 60 * 8000, np.int16), 8000)
    return path.read_bytes()


def left(library):
    """Return the temporary files that still exist."""
    return list((library.folder / "scratch").glob("*/*"))


@pytest.fixture
def given(monkeypatch):
    """Return a queue of the workers that were given an uploaded file."""
    workers, give = Queue(), Worker.give

    def give_and_note(worker, task):
        give(worker, task)
        if task is not None and task.name == "the uploaded file":  # no ping, and not the warm-up
            workers.put(worker)

    monkeypatch.setattr(Worker, "give", give_and_note)
    return workers


class Asking(threading.Thread):
    """A client that waits for its response in a separate thread."""

    def __init__(self, client, path, **options):
        super().__init__()
        self._ask = lambda: client.post(path, **options)
        self.start()

    def run(self):
        self._answer = self._ask()

    def answer(self):
        self.join()
        return self._answer


def test_uploaded_file_is_analyzed_and_deleted(client, tiny_library, song):
    answer = client.post("/api/similar?k=2&per_artist=0", content=song)
    assert [hit["artist"] for hit in answer.json()] == ["Artist noise"] * 2
    assert "Musicsim-Notes" not in answer.headers
    assert left(tiny_library) == []


def test_response_notes_number_of_analyzed_minutes(client, tmp_path):
    data = silence(tmp_path / "long.flac", 3)
    answer = client.post("/api/similar?minutes=2", content=data)
    assert answer.status_code == 200
    assert answer.headers["Musicsim-Notes"] == "Only the first 2 minutes were analyzed."
    assert "Musicsim-Notes" not in client.post("/api/similar", content=data).headers
    assert client.post("/api/similar?minutes=0", content=data).status_code == 422


def sent(path, headers=(), chunks=(), *, stays=True):
    """POST chunks one by one; return status, JSON, and the number of chunks read."""
    return asyncio.run(send_to(Starlette(routes=routes()), path, headers, chunks, stays=stays))


async def send_to(app, path, headers=(), chunks=(), *, stays=True, stalls=False):
    """Send as :func:`sent` does, to an app; a body that `stalls` never ends."""
    path, _, query = path.partition("?")
    taken = []
    answer = []

    async def receive():
        if len(taken) < len(chunks):
            taken.append(chunks[len(taken)])
            return {"type": "http.request", "body": taken[-1], "more_body": stalls or len(taken) < len(chunks)}
        if stays:
            await asyncio.Event().wait()
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


def test_large_content_length_is_refused_before_reading(client, tiny_library):
    status, body, n_taken = sent("/api/similar", [("content-length", str((200 << 20) + 1))], [b"x"])
    assert (status, n_taken) == (413, 0)
    assert body["error"] == "the file is larger than 200 MB: send a part of it."
    assert left(tiny_library) == []


def test_oversized_body_without_length_is_cut_off(client, tiny_library):
    status, _, n_taken = sent("/api/similar", chunks=[bytes(1 << 20)] * 210)
    assert (status, n_taken) == (413, 201)
    assert left(tiny_library) == []


def test_unknown_library_returns_404_before_reading(client):
    answer = client.post("/api/similar?library=nowhere", content=b"x")
    assert answer.status_code == 404


@pytest.mark.long
def test_killed_worker_fails_only_one_request(client, tiny_library, tmp_path, song, given):
    hostile = Asking(client, "/api/similar?minutes=600", content=silence(tmp_path / "long.flac", 600))
    # not by `active_children`, which forgets the workers if a test has killed their fork server
    os.kill(given.get(timeout=PATIENCE_S).process.pid, signal.SIGKILL)
    answer = hostile.answer()
    assert answer.status_code == 422
    assert "the uploaded file: the decoder crashed" in answer.json()["error"]
    assert left(tiny_library) == []
    assert client.post("/api/similar", content=song).status_code == 200


@pytest.mark.long
def test_full_queue_returns_503_with_retry_after(client, tiny_library, tmp_path, song, monkeypatch):
    monkeypatch.setattr(sound_files, "upload_slots", threading.BoundedSemaphore(1))
    begun, go = threading.Event(), threading.Event()

    def decode_later(*args, **options):
        begun.set()
        assert go.wait(PATIENCE_S)
        return decode_upload(*args, **options)

    monkeypatch.setattr(sound_files, "decode_upload", decode_later)
    first = Asking(client, "/api/similar", content=song)
    assert begun.wait(PATIENCE_S)
    answer = client.post("/api/similar", content=song)
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0
    assert "again later" in answer.json()["error"]
    assert client.get("/api/songs").status_code == 200, "all else is answered"
    go.set()
    assert first.answer().status_code == 200
    assert client.post("/api/similar", content=song).status_code == 200


def test_slow_upload_does_not_block_others(client, tiny_library, song, monkeypatch):
    monkeypatch.setattr(sound_files, "upload_slots", threading.BoundedSemaphore(1))

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


@pytest.mark.long
def test_analysis_is_canceled_when_client_disconnects(client, tiny_library, tmp_path, song):
    data = silence(tmp_path / "long.flac", 600)
    status, _, _ = sent("/api/similar?minutes=600", chunks=[data], stays=False)
    assert status == 499
    assert client.post("/api/similar", content=song).status_code == 200
    until(lambda: not left(tiny_library))


def peak_mb(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith("VmHWM"))


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_large_upload_is_not_held_in_memory(tiny_library, tmp_path, song):
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
