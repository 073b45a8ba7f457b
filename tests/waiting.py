"""Waiting for workers, on a busy machine."""

import asyncio
import time

PATIENCE_S = 900.0  # only a hang reaches it
HANG_S = 100 * PATIENCE_S  # what a test lets hang, it ends itself


def outcome(decoding):
    """Return the result of a decoding, or raise its error."""
    until(lambda: decoding.wait(0.1))
    return decoding.future.result()


def until(condition) -> None:
    """Wait until a condition holds."""
    limit = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < limit, "what was waited for did not come"
        time.sleep(0.01)


async def settled(n_rounds: int = 50) -> None:
    """Let all tasks of the event loop run until they wait."""
    for _ in range(n_rounds):
        await asyncio.sleep(0)


class Clock(asyncio.SelectorEventLoop):
    """An event loop whose time passes only by :meth:`advance`; tasks must not wait for anything else."""

    now = 0.0

    def time(self) -> float:
        return self.now

    async def advance(self, seconds: float) -> None:
        self.now += seconds
        await settled()
