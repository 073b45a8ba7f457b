"""Lines in which requests wait for a place: without a thread, and in rounds over their addresses."""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from starlette.requests import ClientDisconnect

from musicsim.rounds import Rounds

MAX_WAIT_S = 60.0


class WaitingLine:
    """Places for requests, at most `per_address` and `in_all`; `refusal` is the error of requests that wait in vain."""

    def __init__(self, refusal: Callable[[], Exception], per_address: int, in_all: float = math.inf) -> None:
        self._refusal, self._per_address, self._in_all = refusal, per_address, in_all
        self._running: list[_Entry] = []
        self._waiting: list[_Entry] = []  # in order of arrival
        self._rounds = Rounds()

    @asynccontextmanager
    async def place(
        self, address: str, leaving: Callable[[], Awaitable[Any]] | None = None
    ) -> AsyncIterator[Callable[[], None]]:
        """Wait for a place; yield a function that gives it back early.

        Raises the refusal after a minute, and ClientDisconnect if the client leaves, which ends `leaving`.
        """
        entry = _Entry(address)
        self._waiting.append(entry)
        self._admit()
        try:
            await entry.wait(self._refusal, leaving)
            yield partial(self._leave, entry)
        finally:
            self._leave(entry)

    def _leave(self, entry: "_Entry") -> None:
        if entry in self._running:
            self._running.remove(entry)
            self._admit()
        elif entry in self._waiting:
            self._waiting.remove(entry)

    def _admit(self) -> None:
        while self._waiting and len(self._running) < self._in_all:
            ranks = self._rounds.ranks([entry.address for entry in self._waiting], [e.address for e in self._running])
            first = min(range(len(ranks)), key=ranks.__getitem__)
            if ranks[first][0] >= self._per_address:
                return
            entry = self._waiting.pop(first)
            self._running.append(entry)
            self._rounds.note(entry.address)
            entry.is_admitted.set()


class _Entry:
    def __init__(self, address: str) -> None:
        self.address, self.is_admitted = address, asyncio.Event()

    async def wait(self, refusal: Callable[[], Exception], leaving: Callable[[], Awaitable[Any]] | None) -> None:
        if self.is_admitted.is_set():
            return
        tasks = {asyncio.ensure_future(self.is_admitted.wait())}
        if leaving is not None:
            tasks.add(asyncio.ensure_future(leaving()))
        try:
            done, _ = await asyncio.wait(tasks, timeout=MAX_WAIT_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
        if not self.is_admitted.is_set():
            raise ClientDisconnect if done else refusal()
