"""The requests that *Listen* in a browser sends to the HTTP interface, without a browser."""

import asyncio
import json
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any

__all__ = ["ListenClient"]

_PATIENCE_S = 120
_WAITING = ThreadPoolExecutor(200)  # more than the clients that ask at once


class ListenClient:
    """Asks for queues like the client of a tab; `headers` are sent with each request."""

    def __init__(self, address: str, **headers: str) -> None:
        self._address = address.rstrip("/")
        self._headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self.request: dict[str, Any] = {}
        self.items: list[dict[str, Any]] = []
        self.said = b""  # all answers

    async def send(self, name: str, data: bytes) -> None:
        """Send a sound file, and start the queue from it."""
        query = urllib.parse.urlencode({"name": name})
        sound = await self._ask(f"/api/sounds?{query}", data, "application/octet-stream")
        await self.start(sound=sound["sound"])

    async def start(self, **seed: object) -> None:
        """Start the queue from a seed: `song` or `sound`."""
        self.request = {**seed, "thumbs": {}, "seed": 0}
        await self.ask()

    async def press_thumb(self, song_id: int, value: int) -> None:
        """Judge a song of the queue, and ask for the changed queue."""
        self.request["thumbs"][str(song_id)] = value
        await self.ask()

    async def ask(self) -> None:
        """Ask for the queue."""
        answer = await self._ask("/api/queue", json.dumps(self.request).encode(), "application/json")
        self.items = answer["items"]

    async def explain(self, song_id: int) -> None:
        """Ask why a song is in the queue."""
        of = f"sounds/{self.request['sound']}" if "sound" in self.request else f"songs/{self.request['song']}"
        await self._ask(f"/api/{of}/why?other={song_id}")

    async def _ask(self, path: str, body: bytes | None = None, kind: str = "") -> Any:
        headers = self._headers | ({"Content-Type": kind} if kind else {})
        request = urllib.request.Request(self._address + path, body, headers)  # our own server

        def ask() -> bytes:
            try:
                with urllib.request.urlopen(request, timeout=_PATIENCE_S) as answer:
                    return bytes(answer.read())
            except urllib.error.HTTPError as error:
                raise RuntimeError(f"{path} was answered with {error.code}: {error.read()[:200]!r}") from error

        answer = await asyncio.get_running_loop().run_in_executor(_WAITING, ask)
        self.said += answer
        return json.loads(answer)
